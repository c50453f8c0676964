// Exact inputs and expected outputs. Host counterpart and derivation: engine/src/data.rs.
#pragma once
#include "element.cuh"

constexpr u64 GOLDEN = 0x9E3779B97F4A7C15ull;

// Reductions by the number the host gives them.
enum Op : u32 { OP_SUM = 0, OP_PROD = 1, OP_MIN = 2, OP_MAX = 3, OP_AVG = 4 };
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
    u32 op;
    u32 ranks;
    // Random bits of an element.
    u32 bits;
    u32 collective;
    u32 root;
    u32 rank;
};
static_assert(sizeof(Exact) == 40, "host layout");

__device__ __forceinline__ u64 mix(u64 z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

__device__ inline i64 element_of(const Exact& x, u32 rank, u64 index) {
    const u64 key = mix(x.seed + GOLDEN * (static_cast<u64>(rank) + 1));
    const u64 hash = mix(key + GOLDEN * (index + 1));
    if (x.op == OP_PROD) {
        const u64 turn = mix(x.seed + GOLDEN * (index + 1));
        const i64 size = ((turn >> 32) + rank) % 8 == 0 ? 2 : 1;
        return hash >> 63 ? -size : size;
    }
    return static_cast<i64>(hash >> (64 - x.bits)) - (1ll << (x.bits - 1));
}

__device__ inline i64 reduced(const Exact& x, u64 index) {
    i64 acc = element_of(x, 0, index);
    for (u32 rank = 1; rank < x.ranks; rank++) {
        const i64 v = element_of(x, rank, index);
        switch (x.op) {
            case OP_PROD: acc *= v; break;
            case OP_MIN: acc = min(acc, v); break;
            case OP_MAX: acc = max(acc, v); break;
            default: acc += v;
        }
    }
    return acc;
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
