// Moving and folding one tile of one move. Operands come in the plan's order, which fixes every rounding.
#pragma once
#include "memory.cuh"
#include "program.cuh"

// Bytes of a tile that cross together.
struct Cut {
    u64 begin, bytes;
};

// One move's tile, or a slice of it, made ready: sources are `slot` (if received) and then operands in memory.
struct Transfer {
    const Operand* operands;
    // As in Params.
    const u64* factors;
    u64 common_factor;
    const char* in_slot;
    char* out_slot;
    char* dst;
    // Destinations after the first: the programs of a fused launch have some.
    const Operand* others;
    u32 other_dsts;
    // Where the slice begins in the buffers, and in a chunk of scratch.
    u64 offset, within;
    u32 srcs;
    u32 bytes;
    u16 misaligned;

    __device__ Transfer(const Program& prog, const Move& m, const EndpointState* states, const Params& p, u64 tile, const Cut& cut)
        : operands(prog.operands + m.first_src), factors(p.factors), common_factor(p.factor), in_slot(nullptr), out_slot(nullptr), dst(nullptr),
          others(operands + m.srcs + 1), other_dsts(m.dsts > 1 ? m.dsts - 1 : 0),
          offset(tile * p.tile + cut.begin), within(cut.begin), srcs(m.srcs), misaligned(m.misaligned) {
        bytes = static_cast<u32>(left(m.slice, offset, cut.bytes));
        if (m.recv != NONE) in_slot = slot_of(prog, states, m.recv, p.slot);
        if (m.send != NONE) out_slot = slot_of(prog, states, m.send, p.slot);
        if (m.dsts != 0) dst = const_cast<char*>(at(operands[m.srcs]));
    }

    static __device__ char* slot_of(const Program& prog, const EndpointState* states, u16 e, u64 slot) {
        return prog.endpoints[e].slots + (states[e].count % SLOTS) * slot;
    }

    __device__ const char* at(const Operand& o) const {
        return reinterpret_cast<const char*>(o.base) + (o.advances ? offset : within);
    }

    // Source `i` of `total()`.
    __device__ const char* src(u32 i) const {
        if (in_slot != nullptr) {
            if (i == 0) return in_slot;
            i -= 1;
        }
        return at(operands[i]);
    }

    // Whether source `i` is an input that a pre-multiplied sum multiplies.
    __device__ bool has_factor(u32 i) const {
        if (in_slot != nullptr) {
            if (i == 0) return false;
            i -= 1;
        }
        return operands[i].advances >= 2;
    }

    // By what, if so.
    template <class T>
    __device__ T factor(u32 i) const {
        if (factors == nullptr) return *reinterpret_cast<const T*>(&common_factor);
        const u32 rank = operands[i - (in_slot != nullptr)].advances - 2;
        return *reinterpret_cast<const T*>(factors + rank);
    }

    __device__ char* other(u32 o) const { return const_cast<char*>(at(others[o])); }

    __device__ u32 total() const { return srcs + (in_slot != nullptr); }

    // Bytes before the first 16-byte boundary, and of the whole vectors behind it.
    __device__ u32 head() const { return misaligned == MIXED ? bytes : min(bytes, (16u - misaligned) % 16u); }
    __device__ u32 body() const { return misaligned == MIXED ? 0 : (bytes - head()) / 16 * 16; }
};

// How the warps of a block share out the moves of a phase's tile, of which `bytes` bytes are left at most. Short moves are spread over the
// warps, so that their latencies overlap: warps m, m + n, m + 2n, … share move m. Long ones follow each other, each shared by all warps.
struct Sharing {
    // This warp's moves, and which part of how many it takes of each.
    u32 first, step, part, parts;

    __device__ Sharing(u32 moves, u64 bytes) {
        const u32 warp = threadIdx.x / 32, warps = blockDim.x / 32;
        const bool spread = moves > 1 && bytes < warps * 512;
        first = spread ? warp % moves : 0;
        step = spread ? warps : 1;
        part = spread ? warp / moves : warp;
        parts = !spread ? warps : first < warps % moves ? warps / moves + 1 : max(warps / moves, 1);
    }
};

template <class E, class R>
struct Mover {
    using Store = typename E::Store;
    using Acc = typename E::Acc;
    static constexpr u32 LANES = Pack<E>::LANES;
    // 16-byte accesses a thread has in flight: when folding, of each of up to four sources. Sixteen elements in 16 bytes are as many
    // accumulators.
    static constexpr u32 COPY_DEPTH = 4;
    static constexpr u32 FOLD_DEPTH = LANES == 16 ? 1 : 2;
    // Of two sources, as all steps of a ring have, where the accumulators leave room.
    static constexpr u32 PAIR_DEPTH = LANES <= 4 ? 4 : FOLD_DEPTH;

    static __device__ __forceinline__ void put(const Transfer& t, u32 at, uint4 v) {
        if (t.dst != nullptr) store_vector(t.dst + at, v);
        for (u32 o = 0; o < t.other_dsts; o++) store_vector(t.other(o) + at, v);
        if (t.out_slot != nullptr) store_vector(t.out_slot + at, v);
    }

    // `DEPTH` vectors, a warp's width apart, from byte `at`.
    template <u32 DEPTH>
    static __device__ __forceinline__ void copy(const Transfer& t, const char* src, u32 at) {
        uint4 v[DEPTH];
#pragma unroll
        for (u32 d = 0; d < DEPTH; d++) v[d] = load_vector(src + at + d * 512);
#pragma unroll
        for (u32 d = 0; d < DEPTH; d++) put(t, at + d * 512, v[d]);
    }

    template <u32 DEPTH>
    static __device__ __forceinline__ void load(Pack<E> (&v)[DEPTH], const char* src) {
#pragma unroll
        for (u32 d = 0; d < DEPTH; d++) v[d].words = load_vector(src + d * 512);
    }

    // Multiplies what was read of source `s` where the reduction has factors; compiles to nothing in others.
    template <u32 DEPTH>
    static __device__ __forceinline__ void scale(Pack<E> (&v)[DEPTH], const Transfer& t, u32 s) {
        if constexpr (R::SCALES) {
            if (!t.has_factor(s)) return;
            const Store by = t.factor<Store>(s);
#pragma unroll
            for (u32 d = 0; d < DEPTH; d++)
#pragma unroll
                for (u32 l = 0; l < LANES; l++) v[d].lanes[l] = scaled<E>(v[d].lanes[l], by);
        }
    }

    static __device__ __forceinline__ Store load_scaled(const Transfer& t, u32 s, u32 at) {
        const Store x = load_element<Store>(t.src(s) + at);
        if constexpr (R::SCALES) {
            if (t.has_factor(s)) return scaled<E>(x, t.factor<Store>(s));
        }
        return x;
    }

    // acc = acc (op) source `s` (op) … (op) source `s + N - 1`; all are under way before the first is used.
    template <u32 N, u32 DEPTH>
    static __device__ __forceinline__ void fold_in(Acc (&acc)[DEPTH][LANES], const Transfer& t, u32 s, u32 at) {
        Pack<E> v[N][DEPTH];
#pragma unroll
        for (u32 n = 0; n < N; n++) load<DEPTH>(v[n], t.src(s + n) + at);
#pragma unroll
        for (u32 n = 0; n < N; n++) scale<DEPTH>(v[n], t, s + n);
#pragma unroll
        for (u32 n = 0; n < N; n++)
#pragma unroll
            for (u32 d = 0; d < DEPTH; d++)
#pragma unroll
                for (u32 l = 0; l < LANES; l++) acc[d][l] = R::apply(acc[d][l], E::widen(v[n][d].lanes[l]));
    }

    template <u32 DEPTH>
    static __device__ __forceinline__ void fold(const Transfer& t, u32 total, u32 at) {
        Acc acc[DEPTH][LANES];
        Pack<E> first[DEPTH];
        load<DEPTH>(first, t.src(0) + at);
        scale<DEPTH>(first, t, 0);
#pragma unroll
        for (u32 d = 0; d < DEPTH; d++)
#pragma unroll
            for (u32 l = 0; l < LANES; l++) acc[d][l] = E::widen(first[d].lanes[l]);
        u32 s = 1;
        for (; s + 3 <= total; s += 3) fold_in<3, DEPTH>(acc, t, s, at);
        if (s + 2 == total) fold_in<2, DEPTH>(acc, t, s, at);
        if (s + 1 == total) fold_in<1, DEPTH>(acc, t, s, at);
#pragma unroll
        for (u32 d = 0; d < DEPTH; d++) {
            Pack<E> v;
#pragma unroll
            for (u32 l = 0; l < LANES; l++) v.lanes[l] = E::round(acc[d][l]);
            put(t, at + d * 512, v.words);
        }
    }

    // Bytes `begin..end` of vectors by warp `warp` of `warps`.
    template <u32 DEPTH, bool FOLD>
    static __device__ __forceinline__ void vectors(const Transfer& t, u32 total, u32 begin, u32 end, u32 warp, u32 warps) {
        constexpr u32 UNIT = DEPTH * 512;
        const u32 lane = (threadIdx.x & 31) * 16;
        const char* src = FOLD ? nullptr : t.src(0);
        u32 unit = begin + warp * UNIT;
        for (; unit + UNIT <= end; unit += warps * UNIT) {
            if (FOLD) fold<DEPTH>(t, total, unit + lane);
            else copy<DEPTH>(t, src, unit + lane);
        }
        // At most one unit is cut short, and it belongs to the warp that comes to it.
        for (u32 at = unit + lane; at < end && unit < end; at += 512) {
            if (FOLD) fold<1>(t, total, at);
            else copy<1>(t, src, at);
        }
    }

    static __device__ __forceinline__ void element(const Transfer& t, u32 total, u32 at) {
        Store out = load_scaled(t, 0, at);
        if (total > 1) {
            Acc acc = E::widen(out);
            for (u32 s = 1; s < total; s++) acc = R::apply(acc, E::widen(load_scaled(t, s, at)));
            out = E::round(acc);
        }
        if (t.dst != nullptr) store_element<Store>(t.dst + at, out);
        for (u32 o = 0; o < t.other_dsts; o++) store_element<Store>(t.other(o) + at, out);
        if (t.out_slot != nullptr) store_element<Store>(t.out_slot + at, out);
    }

    // What no vector covers: before the first 16-byte boundary and behind the last.
    static __device__ __forceinline__ void loose(const Transfer& t, u32 total, u32 head, u32 body, u32 warp, u32 warps) {
        const u32 elements = (t.bytes - body) / sizeof(Store);
        for (u32 i = warp * 32 + (threadIdx.x & 31); i < elements; i += warps * 32) {
            const u32 at = i * sizeof(Store);
            element(t, total, at < head ? at : at + body);
        }
    }

    // The part of a tile that falls to warp `warp` of `warps`.
    static __device__ __forceinline__ void run(const Transfer& t, u32 warp, u32 warps) {
        const u32 total = t.total(), head = t.head(), body = t.body();
        if (body != 0) {
            const bool copies = total == 1 && !(R::SCALES && t.has_factor(0));
            if (copies) vectors<COPY_DEPTH, false>(t, total, head, head + body, warp, warps);
            else if (total == 2 && PAIR_DEPTH > FOLD_DEPTH) vectors<PAIR_DEPTH, true>(t, total, head, head + body, warp, warps);
            else vectors<FOLD_DEPTH, true>(t, total, head, head + body, warp, warps);
        }
        loose(t, total, head, body, warp, warps);
    }
};
