// Loads, stores and their order.
//
// Data moves with weak 16-byte accesses that bypass L1; order between blocks comes from counters alone:
// - a block's writes happen before its barrier, the barrier before the release store of warp 0 (PTX: release is cumulative over what
//   the barrier synchronised with), and that store before the acquire load of the peer's warp 0, whose barrier then orders the peer's
//   other warps behind it. Hence whoever has waited sees all data, and whoever has been given credit may overwrite it.
// - each counter has one writer, so a writer keeps its own value in shared memory and publishes with a plain store.
// Device scope suffices when all ranks share a device; else the counters are ordered at system scope.
#pragma once
#include "element.cuh"

#if RINGLAB_SYSTEM_SCOPE
#define RINGLAB_SCOPE "sys"
#else
#define RINGLAB_SCOPE "gpu"
#endif

__device__ __forceinline__ uint4 load_vector(const char* p) {
    uint4 v;
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p) : "memory");
    return v;
}

__device__ __forceinline__ void store_vector(char* p, uint4 v) {
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

// For what is not read again soon: the first to leave the L2 cache, which then writes longer runs to memory.
__device__ __forceinline__ void stream_vector(char* p, uint4 v) {
    asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

// A line of LL, or the part of a line of LL128 that a lane has. Volatile, so that a loop sees what arrives; its halves of 8 bytes are each
// read and written at once.
__device__ __forceinline__ uint4 load_line(const char* p) {
    uint4 v;
    asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p) : "memory");
    return v;
}

__device__ __forceinline__ void store_line(char* p, uint4 v) {
    asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

// One element; volatile keeps it out of registers and L1 between accesses.
template <class T>
__device__ __forceinline__ T load_element(const char* p) { return *reinterpret_cast<const volatile T*>(p); }

template <class T>
__device__ __forceinline__ void store_element(char* p, T v) { *reinterpret_cast<volatile T*>(p) = v; }

__device__ __forceinline__ u64 load_acquire(const u64* p) {
    u64 v;
    asm volatile("ld.acquire." RINGLAB_SCOPE ".global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}

__device__ __forceinline__ void store_release(u64* p, u64 v) {
    asm volatile("st.release." RINGLAB_SCOPE ".global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}

__device__ __forceinline__ void store_relaxed(u64* p, u64 v) {
    asm volatile("st.relaxed." RINGLAB_SCOPE ".global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}

// Acquire and release: everyone before the barrier is ordered before everyone behind it.
__device__ __forceinline__ void add_acq_rel(u64* p, u64 v) {
    u64 old;
    asm volatile("atom.acq_rel." RINGLAB_SCOPE ".global.add.u64 %0, [%1], %2;" : "=l"(old) : "l"(p), "l"(v) : "memory");
    (void)old;
}

// The abort word carries no data: whoever sees it raised only stops, so it needs no order.
__device__ __forceinline__ u32 load_abort(const u32* p) {
    u32 v;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

__device__ __forceinline__ void raise_abort(u32* p) {
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(p), "r"(1u) : "memory");
}

// Nanoseconds of the device's global timer.
__device__ __forceinline__ u64 device_nanos() {
    u64 t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
    return t;
}

// stamps[(*launches)++] = now. One thread of a launch; launches of a stream follow each other.
__device__ inline void stamp_launch(u64* stamps, u64* launches, u64 capacity) {
    const u64 launch = *launches;
    if (launch < capacity) stamps[launch] = device_nanos();
    *launches = launch + 1;
}
