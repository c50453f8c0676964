// Exact inputs and expected outputs. Host counterpart and derivation: engine/src/data/draw.rs.
#pragma once
#include "element.cuh"

constexpr u64 GOLDEN = 0x9E3779B97F4A7C15ull;

// Reductions and shapes of the formula by the numbers the host gives them.
enum Op : u32 { OP_SUM = 0, OP_PROD = 1, OP_MIN = 2, OP_MAX = 3, OP_AVG = 4, OP_PREMULSUM = 5 };
enum Shape : u32 { SHAPE_ANY = 0, SHAPE_ODD = 1, SHAPE_SHARE = 2, SHAPE_FACTOR = 3 };
enum Kind : u32 {
    ALL_REDUCE = 0,
    ALL_GATHER = 1,
    REDUCE_SCATTER = 2,
    BROADCAST = 3,
    REDUCE = 4,
    ALL_TO_ALL = 5,
    GATHER = 6,
    SCATTER = 7,
    SEND_RECV = 8
};

struct Exact {
    u64 seed;
    u64 block;
    // The formula's constants.
    u64 most;
    u32 givers, shifts, bits, shape, is_signed;
    u32 op;
    u32 ranks;
    u32 collective;
    u32 root;
    u32 rank;
};
static_assert(sizeof(Exact) == 64, "host layout");

__device__ __forceinline__ u64 mix(u64 z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

// nccl-tests' factor of a pre-multiplied sum.
__device__ __forceinline__ i64 parity_factor(u32 rank) { return 1 + rank % 2; }

__device__ inline i64 element_of(const Exact& x, u32 rank, u64 index) {
    const u64 step = GOLDEN * (index + 1);
    const u64 hash = mix(mix(x.seed + GOLDEN * (static_cast<u64>(rank) + 1)) + step);
    const u64 turn = mix(x.seed + step);
    const u32 shift = static_cast<u32>(turn & 0xffff) * x.shifts >> 16;
    if (x.shape <= SHAPE_ODD) {
        const u64 any = x.is_signed ? static_cast<u64>(static_cast<i64>(hash) >> (64 - x.bits)) : hash >> (64 - x.bits);
        return static_cast<i64>(x.shape == SHAPE_ODD ? any | 1 : any << shift);
    }
    const u32 from_start = rank + __umulhi(static_cast<u32>(turn >> 32), x.ranks);
    const u32 place = from_start >= x.ranks ? from_start - x.ranks : from_start;
    if (x.shape == SHAPE_FACTOR) {
        const i64 size = place == 0 ? 1 + __umul64hi(hash, x.most) : place <= x.givers ? 2 : 1;
        return hash & 1 ? -size : size;
    }
    const u32 nth = x.is_signed ? place / 2 : place;
    if (nth >= x.givers) return 0;
    const u64 most = x.op == OP_PREMULSUM && parity_factor(rank) == 2 ? x.most / 2 : x.most;
    const i64 size = static_cast<i64>(__umul64hi(hash, most + 1) << shift);
    return x.is_signed && place % 2 == 1 ? -size : size;
}

// Integers wrap: in unsigned arithmetic, which keeps that defined.
__device__ inline i64 reduced(const Exact& x, u64 index) {
    const bool multiplies = x.op == OP_PREMULSUM;
    // With the sign bit turned round, unsigned values compare as signed ones do.
    const u64 turned = x.is_signed ? 0 : 1ull << 63;
    constexpr u32 FIRST = ~0u;
    u64 acc = 0;
    for (u32 rank = 0; rank < x.ranks; rank++) {
        const u64 v = static_cast<u64>(element_of(x, rank, index)) * (multiplies ? parity_factor(rank) : 1);
        const bool less = static_cast<i64>(v ^ turned) < static_cast<i64>(acc ^ turned);
        switch (rank == 0 ? FIRST : x.op) {
            case OP_PROD: acc *= v; break;
            case OP_MIN: acc = less ? v : acc; break;
            case OP_MAX: acc = less ? acc : v; break;
            case OP_SUM:
            case OP_AVG:
            case OP_PREMULSUM: acc += v; break;
            default: acc = v;
        }
    }
    return static_cast<i64>(acc);
}

template <class E>
__device__ inline typename E::Store expected(const Exact& x, u64 index) {
    switch (x.collective) {
        case ALL_GATHER:
        case GATHER: return E::from_int(element_of(x, static_cast<u32>(index / x.block), index % x.block));
        case BROADCAST: return E::from_int(element_of(x, x.root, index));
        case ALL_TO_ALL: {
            const u32 from = static_cast<u32>(index / x.block);
            return E::from_int(element_of(x, from, x.rank * x.block + index % x.block));
        }
        case SCATTER: return E::from_int(element_of(x, x.root, x.rank * x.block + index));
        case SEND_RECV: return E::from_int(element_of(x, (x.rank + x.ranks - 1) % x.ranks, index));
        default: {
            const u64 at = x.collective == REDUCE_SCATTER ? x.rank * x.block + index : index;
            const typename E::Store sum = E::from_int(reduced(x, at));
            return x.op == OP_AVG ? E::average(sum, x.ranks) : sum;
        }
    }
}
