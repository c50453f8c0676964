// Element types and reductions. Floats of 16 and 8 bits compute in f32 and round to nearest even, once (engine::plan::Step); integers wrap,
// as in the CPU back end, in unsigned arithmetic, which keeps that defined. Host counterpart: engine/src/exec/cpu/ops.rs.
#pragma once

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i8 = signed char;
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

struct f64 {
    using Store = double;
    using Acc = double;
    static __device__ Acc widen(Store x) { return x; }
    static __device__ Store round(Acc x) { return x; }
    static __device__ Store from_int(i64 x) { return __ll2double_rn(x); }
    static __device__ Store average(Store sum, u32 ranks) { return __ddiv_rn(sum, __uint2double_rn(ranks)); }
};

__device__ __forceinline__ float half_to_float(u16 x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
    return y;
}

// What types that compute in f32 have in common.
template <class E, class S>
struct Narrow {
    using Store = S;
    using Acc = float;
    static __device__ Store from_int(i64 x) { return E::round(__ll2float_rn(x)); }
    static __device__ Store average(Store sum, u32 ranks) {
        return E::round(__fdiv_rn(E::widen(sum), __uint2float_rn(ranks)));
    }
};

struct f16 : Narrow<f16, u16> {
    static __device__ Acc widen(Store x) { return half_to_float(x); }
    static __device__ Store round(Acc x) {
        u16 y;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
        return y;
    }
};

struct bf16 : Narrow<bf16, u16> {
    static __device__ Acc widen(Store x) { return __uint_as_float(static_cast<u32>(x) << 16); }
    static __device__ Store round(Acc x) {
        u16 y;
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
        return y;
    }
};

// The conversions to fp8 of a device that has no instruction for them, step by step as engine/src/fp8.rs does it.
template <u32 MANTISSA, u32 BIAS, u32 LARGEST>
__device__ __forceinline__ u8 round_to_fp8(float x) {
    constexpr u32 DROPPED = 23 - MANTISSA;
    const u32 bits = __float_as_uint(x), size = bits & 0x7fffffffu;
    const u32 half = (1u << (DROPPED - 1)) - 1 + ((size >> DROPPED) & 1);
    const u32 normal = ((size + half) >> DROPPED) - ((127 - BIAS) << MANTISSA);
    constexpr u32 UNIT = (127 + 24 - BIAS - MANTISSA) << 23;
    const u32 small = __float_as_uint(__fadd_rn(__uint_as_float(size), __uint_as_float(UNIT))) - UNIT;
    const u32 magnitude = min(size < ((128 - BIAS) << 23) ? small : normal, LARGEST);
    return static_cast<u8>(size > 0x7f800000u ? 0x7f : magnitude | (bits >> 24 & 0x80));
}

struct e4m3 : Narrow<e4m3, u8> {
    static __device__ Acc widen(Store x) {
#if __CUDA_ARCH__ >= 890
        u32 y;
        asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(y) : "h"(static_cast<u16>(x)));
        return half_to_float(static_cast<u16>(y));
#else
        // In f32's place the exponent is too small by 127 - 7.
        const float y = __fmul_rn(__uint_as_float((x & 0x7fu) << 20), 0x1p120f);
        return (x & 0x7f) == 0x7f ? __uint_as_float(0x7fffffffu) : x & 0x80 ? -y : y;
#endif
    }
    static __device__ Store round(Acc x) {
#if __CUDA_ARCH__ >= 890
        u16 y;
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(y) : "f"(0.0f), "f"(x));
        return static_cast<u8>(y);
#else
        return round_to_fp8<3, 7, 0x7e>(x);
#endif
    }
};

struct e5m2 : Narrow<e5m2, u8> {
    // The upper byte of an f16.
    static __device__ Acc widen(Store x) { return half_to_float(static_cast<u16>(x) << 8); }
    static __device__ Store round(Acc x) {
#if __CUDA_ARCH__ >= 890
        u16 y;
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(y) : "f"(0.0f), "f"(x));
        return static_cast<u8>(y);
#else
        return round_to_fp8<2, 15, 0x7b>(x);
#endif
    }
};

// An integer, computed in one of at least 32 bits: what is kept of a result does not depend on the bits above it.
template <class S, class A>
struct Integer {
    using Store = S;
    using Acc = A;
    static __device__ Acc widen(Store x) { return x; }
    static __device__ Store round(Acc x) { return static_cast<Store>(x); }
    static __device__ Store from_int(i64 x) { return static_cast<Store>(x); }
    static __device__ Store average(Store sum, u32 ranks) {
        // Signed sums are divided as signed, unsigned ones as unsigned.
        if constexpr (static_cast<Store>(-1) < static_cast<Store>(0)) {
            return static_cast<Store>(static_cast<i64>(sum) / static_cast<i64>(ranks));
        } else {
            return static_cast<Store>(sum / static_cast<Acc>(ranks));
        }
    }
};

struct int8 : Integer<i8, i32> {};
struct uint8 : Integer<u8, u32> {};
struct int32 : Integer<i32, i32> {};
struct uint32 : Integer<u32, u32> {};
struct int64 : Integer<i64, i64> {};
struct uint64 : Integer<u64, u64> {};

// A reduction that `SCALES` multiplies what it reads of an input by the factor of the input's rank.
struct Sum {
    static constexpr bool SCALES = false;
    static __device__ float apply(float a, float b) { return __fadd_rn(a, b); }
    static __device__ double apply(double a, double b) { return __dadd_rn(a, b); }
    static __device__ u32 apply(u32 a, u32 b) { return a + b; }
    static __device__ u64 apply(u64 a, u64 b) { return a + b; }
    static __device__ i32 apply(i32 a, i32 b) { return static_cast<i32>(apply(static_cast<u32>(a), static_cast<u32>(b))); }
    static __device__ i64 apply(i64 a, i64 b) { return static_cast<i64>(apply(static_cast<u64>(a), static_cast<u64>(b))); }
};

struct PreMulSum : Sum {
    static constexpr bool SCALES = true;
};

struct Prod {
    static constexpr bool SCALES = false;
    static __device__ float apply(float a, float b) { return __fmul_rn(a, b); }
    static __device__ double apply(double a, double b) { return __dmul_rn(a, b); }
    static __device__ u32 apply(u32 a, u32 b) { return a * b; }
    static __device__ u64 apply(u64 a, u64 b) { return a * b; }
    static __device__ i32 apply(i32 a, i32 b) { return static_cast<i32>(apply(static_cast<u32>(a), static_cast<u32>(b))); }
    static __device__ i64 apply(i64 a, i64 b) { return static_cast<i64>(apply(static_cast<u64>(a), static_cast<u64>(b))); }
};

// The NaN that is left where no number was: the one that PTX's `min` and `max` give for float. For double they keep some input's bits.
__device__ __forceinline__ double one_nan(double x) { return x == x ? x : __longlong_as_double(0x7fffffffffffffffll); }

// A number wins over a NaN, -0 is below +0: PTX's `min` and `max`, as in NCCL's FuncMinMax.
struct Min {
    static constexpr bool SCALES = false;
    static __device__ float apply(float a, float b) { return fminf(a, b); }
    static __device__ double apply(double a, double b) { return one_nan(fmin(a, b)); }
    template <class T>
    static __device__ T apply(T a, T b) { return a < b ? a : b; }
};

struct Max {
    static constexpr bool SCALES = false;
    static __device__ float apply(float a, float b) { return fmaxf(a, b); }
    static __device__ double apply(double a, double b) { return one_nan(fmax(a, b)); }
    template <class T>
    static __device__ T apply(T a, T b) { return a > b ? a : b; }
};

// `x` times `factor`, rounded to the type.
template <class E>
__device__ __forceinline__ typename E::Store scaled(typename E::Store x, typename E::Store factor) {
    return E::round(Prod::apply(E::widen(x), E::widen(factor)));
}

// 16 bytes of elements.
template <class E>
struct Pack {
    static constexpr u32 LANES = 16 / sizeof(typename E::Store);
    union {
        uint4 words;
        typename E::Store lanes[LANES];
    };
};
