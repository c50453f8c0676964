// Element types and reductions. 16-bit floats compute in f32 and round to nearest even, once (engine::plan::Step).
#pragma once

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i32 = int;
using i64 = long long;

struct f32 {
    using Store = float;
    using Acc = float;
    static __device__ Acc widen(Store x) { return x; }
    static __device__ Store round(Acc x) { return x; }
    static __device__ Store from_int(i64 x) { return __ll2float_rn(x); }
    static __device__ Store average(Store sum, u32 ranks) { return __fdiv_rn(sum, __uint2float_rn(ranks)); }
};

struct f16 {
    using Store = u16;
    using Acc = float;
    static __device__ Acc widen(Store x) {
        float y;
        asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
        return y;
    }
    static __device__ Store round(Acc x) {
        u16 y;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
        return y;
    }
    static __device__ Store from_int(i64 x) { return round(__ll2float_rn(x)); }
    static __device__ Store average(Store sum, u32 ranks) {
        return round(__fdiv_rn(widen(sum), __uint2float_rn(ranks)));
    }
};

struct bf16 {
    using Store = u16;
    using Acc = float;
    static __device__ Acc widen(Store x) { return __uint_as_float(static_cast<u32>(x) << 16); }
    static __device__ Store round(Acc x) {
        u16 y;
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
        return y;
    }
    static __device__ Store from_int(i64 x) { return round(__ll2float_rn(x)); }
    static __device__ Store average(Store sum, u32 ranks) {
        return round(__fdiv_rn(widen(sum), __uint2float_rn(ranks)));
    }
};

// Integers wrap, as in the CPU back end; unsigned arithmetic keeps that defined.
struct int32 {
    using Store = i32;
    using Acc = i32;
    static __device__ Acc widen(Store x) { return x; }
    static __device__ Store round(Acc x) { return x; }
    static __device__ Store from_int(i64 x) { return static_cast<i32>(x); }
    static __device__ Store average(Store sum, u32 ranks) {
        return static_cast<i32>(static_cast<i64>(sum) / static_cast<i64>(ranks));
    }
};

struct int64 {
    using Store = i64;
    using Acc = i64;
    static __device__ Acc widen(Store x) { return x; }
    static __device__ Store round(Acc x) { return x; }
    static __device__ Store from_int(i64 x) { return x; }
    static __device__ Store average(Store sum, u32 ranks) { return sum / static_cast<i64>(ranks); }
};

struct Sum {
    static __device__ float apply(float a, float b) { return __fadd_rn(a, b); }
    static __device__ i32 apply(i32 a, i32 b) { return static_cast<i32>(static_cast<u32>(a) + static_cast<u32>(b)); }
    static __device__ i64 apply(i64 a, i64 b) { return static_cast<i64>(static_cast<u64>(a) + static_cast<u64>(b)); }
};

struct Prod {
    static __device__ float apply(float a, float b) { return __fmul_rn(a, b); }
    static __device__ i32 apply(i32 a, i32 b) { return static_cast<i32>(static_cast<u32>(a) * static_cast<u32>(b)); }
    static __device__ i64 apply(i64 a, i64 b) { return static_cast<i64>(static_cast<u64>(a) * static_cast<u64>(b)); }
};

struct Min {
    static __device__ float apply(float a, float b) { return fminf(a, b); }
    static __device__ i32 apply(i32 a, i32 b) { return a < b ? a : b; }
    static __device__ i64 apply(i64 a, i64 b) { return a < b ? a : b; }
};

struct Max {
    static __device__ float apply(float a, float b) { return fmaxf(a, b); }
    static __device__ i32 apply(i32 a, i32 b) { return a > b ? a : b; }
    static __device__ i64 apply(i64 a, i64 b) { return a > b ? a : b; }
};

// 16 bytes of elements.
template <class E>
struct Pack {
    static constexpr u32 LANES = 16 / sizeof(typename E::Store);
    union {
        uint4 words;
        typename E::Store lanes[LANES];
    };
};
