// The specialised kernel of the direct plans (one-shot, two-shot): all ranks are on one device and in one launch.
//
// Inputs are ready before a launch begins and outputs are read after it has ended, so no block waits for another and every launch ends
// by itself: whoever owns a range reads it from every source, folds in the plan's order and writes it to every destination. That is
// each input byte read once and each output byte written once, the least there is. In place it is as safe: a range is read by nobody
// but the thread that overwrites it, and that thread has read all sources before its first write.
#include "direct.cuh"
#include "memory.cuh"

using E = RINGLAB_ELEMENT;
using R = RINGLAB_REDUCTION;
static_assert(!R::SCALES, "factors belong to a plan's operands");
using Store = E::Store;
using Acc = E::Acc;

// Buffers of a side when compiled for so many, else 0.
constexpr u32 SOURCES = RINGLAB_SOURCES;
constexpr u32 DESTINATIONS = RINGLAB_DESTINATIONS;

constexpr u32 clamped(u32 x, u32 least, u32 most) { return x < least ? least : x > most ? most : x; }

// Sources that are read together, and what a thread reads of each before it writes: two vectors of up to two sources, else one, or as many
// elements as a vector has.
constexpr u32 BATCH = SOURCES != 0 ? SOURCES : 4;
constexpr u32 DEPTH = BATCH <= 2 ? 2 : 1;
constexpr u32 ELEMENT_DEPTH = clamped(16 / BATCH, 1, 16 / sizeof(Store));

// Elements that travel together: 16 bytes, or one.
template <u32 LANES>
struct Group {
    static constexpr u32 BYTES = LANES * sizeof(Store);
    static_assert(BYTES == 16 || LANES == 1, "a vector or an element");
    union {
        uint4 words;
        Store lanes[LANES];
    };

    __device__ __forceinline__ void load(u64 at) {
        // Every byte is read once, so L1 is of no use.
        if constexpr (BYTES == 16) {
            asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w) : "l"(at) : "memory");
        } else {
            lanes[0] = load_element<Store>(reinterpret_cast<const char*>(at));
        }
    }

    template <bool STREAMS>
    __device__ __forceinline__ void store(u64 at) const {
        if constexpr (BYTES == 16 && STREAMS) stream_vector(reinterpret_cast<char*>(at), words);
        else if constexpr (BYTES == 16) store_vector(reinterpret_cast<char*>(at), words);
        else store_element<Store>(reinterpret_cast<char*>(at), lanes[0]);
    }
};

// One side of one piece.
template <u32 COUNT>
struct Place {
    const Side& side;
    u32 first;
    u64 offset;

    // The buffers that all pieces share are the first ones; known to the compiler, their addresses need no registers.
    __device__ Place(const Side& s, u64 block, u32 i, u32 j)
        : side(s), first(COUNT == 1 ? i * s.pick_i + j * s.pick_j : 0),
          offset((static_cast<u64>(i) * s.step_i + static_cast<u64>(j) * s.step_j) * block) {}

    __device__ __forceinline__ u32 count() const { return COUNT != 0 ? COUNT : side.count; }
    __device__ __forceinline__ u64 at(u32 k) const { return side.buffers[first + k] + offset; }
};

struct Piece {
    const DirectParams& p;
    Place<SOURCES> from;
    Place<DESTINATIONS> to;

    __device__ Piece(const DirectParams& params, u32 i, u32 j)
        : p(params), from(params.sources, params.bytes, i, j), to(params.destinations, params.bytes, i, j) {}

    // Bytes to the first 16-byte boundary if all addresses have it at the same place, else 16.
    __device__ u32 head() const {
        const u64 source = from.at(0), destination = to.at(0);
        if (p.mixed || ((source ^ destination) & 15) != 0) return 16;
        return static_cast<u32>((16 - (source & 15)) & 15);
    }

    // acc = acc (op) source `s` (op) … (op) source `s + N - 1`, all under way before the first is used; `FIRST` begins with source `s`.
    template <u32 LANES, u32 GROUPS, u32 N, bool FIRST>
    __device__ __forceinline__ void fold_in(Acc (&acc)[GROUPS][LANES], u32 s, u64 at, u64 stride) const {
        Group<LANES> v[N][GROUPS];
#pragma unroll
        for (u32 n = 0; n < N; n++)
#pragma unroll
            for (u32 g = 0; g < GROUPS; g++) v[n][g].load(from.at(s + n) + at + g * stride);
#pragma unroll
        for (u32 n = 0; n < N; n++)
#pragma unroll
            for (u32 g = 0; g < GROUPS; g++)
#pragma unroll
                for (u32 l = 0; l < LANES; l++) {
                    const Acc x = E::widen(v[n][g].lanes[l]);
                    acc[g][l] = FIRST && n == 0 ? x : R::apply(acc[g][l], x);
                }
    }

    template <u32 LANES, u32 GROUPS>
    __device__ __forceinline__ void fold(Group<LANES> (&out)[GROUPS], u64 at, u64 stride) const {
        Acc acc[GROUPS][LANES];
        if constexpr (SOURCES != 0) {
            fold_in<LANES, GROUPS, SOURCES, true>(acc, 0, at, stride);
        } else {
            fold_in<LANES, GROUPS, 1, true>(acc, 0, at, stride);
            u32 s = 1;
            for (; s + BATCH <= from.count(); s += BATCH) fold_in<LANES, GROUPS, BATCH, false>(acc, s, at, stride);
            for (; s < from.count(); s++) fold_in<LANES, GROUPS, 1, false>(acc, s, at, stride);
        }
#pragma unroll
        for (u32 g = 0; g < GROUPS; g++)
#pragma unroll
            for (u32 l = 0; l < LANES; l++) out[g].lanes[l] = E::round(acc[g][l]);
    }

    // `GROUPS` groups, `stride` bytes apart, from byte `at`: all loads, then all stores.
    template <u32 LANES, u32 GROUPS, bool STREAMS>
    __device__ __forceinline__ void run(u64 at, u64 stride) const {
        Group<LANES> out[GROUPS];
        if constexpr (SOURCES == 1) {
            // One source is moved bit by bit, as the interpreter does.
#pragma unroll
            for (u32 g = 0; g < GROUPS; g++) out[g].load(from.at(0) + at + g * stride);
        } else {
            fold<LANES, GROUPS>(out, at, stride);
        }
        if constexpr (RINGLAB_AVERAGE) {
#pragma unroll
            for (u32 g = 0; g < GROUPS; g++)
#pragma unroll
                for (u32 l = 0; l < LANES; l++) out[g].lanes[l] = E::average(out[g].lanes[l], p.ranks);
        }
#pragma unroll
        for (u32 d = 0; d < to.count(); d++) {
            // A block copied onto itself, as in place, touches nothing.
            if (SOURCES == 1 && !RINGLAB_AVERAGE && to.at(d) == from.at(0)) continue;
#pragma unroll
            for (u32 g = 0; g < GROUPS; g++) out[g].template store<STREAMS>(to.at(d) + at + g * stride);
        }
    }

    // Bytes `begin..end`, a whole number of groups, by all threads of the block.
    template <u32 LANES, bool STREAMS>
    __device__ __forceinline__ void range(u64 begin, u64 end) const {
        constexpr u32 WIDTH = Group<LANES>::BYTES;
        constexpr u32 GROUPS = WIDTH == 16 ? DEPTH : ELEMENT_DEPTH;
        const u64 stride = RINGLAB_THREADS * WIDTH;
        u64 at = begin + threadIdx.x * WIDTH;
        for (; at + (GROUPS - 1) * stride < end; at += GROUPS * stride) run<LANES, GROUPS, STREAMS>(at, stride);
        for (; at < end; at += stride) run<LANES, 1, STREAMS>(at, stride);
    }
};

// Registers for eight blocks a multiprocessor, which the host counts on.
extern "C" __global__ void __launch_bounds__(RINGLAB_THREADS, 8) run_direct(const __grid_constant__ DirectParams p) {
    const u32 stampers = p.stamps != nullptr;
    if (blockIdx.x < stampers) {
        // Its own block, since reading the clock takes longer than a short message may; the first, since a long message's blocks come in
        // turns.
        if (threadIdx.x == 0 && blockIdx.y == 0 && blockIdx.z == 0) stamp_launch(p.stamps, p.launches, p.stamp_capacity);
        return;
    }
    constexpr u32 LANES = 16 / sizeof(Store);
    const Piece piece(p, blockIdx.z, blockIdx.y);
    const u32 aligned = piece.head();
    const u64 head = aligned == 16 ? 0 : min(static_cast<u64>(aligned), p.bytes);
    const u64 body = aligned == 16 ? p.bytes : (p.bytes - head) / 16 * 16;
    for (u64 tile = blockIdx.x - stampers; tile < p.tiles; tile += gridDim.x - stampers) {
        const u64 begin = head + min(tile * p.tile, body), end = head + min((tile + 1) * p.tile, body);
        if (aligned == 16) piece.range<1, false>(begin, end);
        else if (p.streams) piece.range<LANES, true>(begin, end);
        else piece.range<LANES, false>(begin, end);
    }
    // What no vector covers, before the first boundary and behind the last: fewer elements than a warp has threads.
    if (blockIdx.x == stampers) {
        const u32 loose = static_cast<u32>(p.bytes - body) / sizeof(Store);
        for (u32 i = threadIdx.x; i < loose; i += RINGLAB_THREADS) {
            const u64 at = i * sizeof(Store);
            piece.run<1, 1, false>(at < head ? at : at + body, 0);
        }
    }
}
