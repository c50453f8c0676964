// The interpreter for programs whose blocks wait for nobody: what a plan becomes when all ranks are on one device and in one launch
// (engine/src/exec/optimise). Without connections, waits and traces there are registers for as many loads in flight as the specialised
// kernel has. Blocks need not run together, and several share the tiles of a program.
#include "transfer.cuh"

using E = RINGLAB_ELEMENT;
using R = RINGLAB_REDUCTION;
using Acc = E::Acc;
using TheMover = Mover<E, R>;
constexpr u32 LANES = TheMover::LANES;

// The 16-byte vectors of one move's tile.
struct Vectors {
    const Transfer& t;
    // Bytes `begin..end`, of which this thread begins at `first` and goes on by `stride`.
    u32 first, end, stride;

    __device__ __forceinline__ const char* src(u32 n) const { return t.at(t.operands[n]); }

    template <u32 DEPTH>
    __device__ __forceinline__ void put(u32 at, const Pack<E> (&v)[DEPTH]) const {
        for (u32 o = 0; o <= t.other_dsts; o++) {
            char* const dst = const_cast<char*>(t.at(t.operands[t.srcs + o])) + at;
#pragma unroll
            for (u32 d = 0; d < DEPTH; d++) store_vector(dst + d * stride, v[d].words);
        }
    }

    // acc = acc (op) source `s` (op) … (op) source `s + N - 1`, all under way before the first is used; `FIRST` begins with source `s`.
    template <u32 N, u32 DEPTH, bool FIRST>
    __device__ __forceinline__ void fold_in(Acc (&acc)[DEPTH][LANES], u32 s, u32 at) const {
        Pack<E> v[N][DEPTH];
#pragma unroll
        for (u32 n = 0; n < N; n++) {
            const char* const p = src(s + n) + at;
#pragma unroll
            for (u32 d = 0; d < DEPTH; d++) v[n][d].words = load_vector(p + d * stride);
        }
#pragma unroll
        for (u32 n = 0; n < N; n++) {
            TheMover::scale<DEPTH>(v[n], t, s + n);
#pragma unroll
            for (u32 d = 0; d < DEPTH; d++)
#pragma unroll
                for (u32 l = 0; l < LANES; l++) {
                    const Acc x = E::widen(v[n][d].lanes[l]);
                    acc[d][l] = FIRST && n == 0 ? x : R::apply(acc[d][l], x);
                }
        }
    }

    // `N` sources, or any number if 0.
    template <u32 N, u32 DEPTH>
    __device__ __forceinline__ void step(u32 at) const {
        Pack<E> out[DEPTH];
        if constexpr (N == 1) {
            // One source is moved bit by bit, but for a factor.
            const char* const p = src(0) + at;
#pragma unroll
            for (u32 d = 0; d < DEPTH; d++) out[d].words = load_vector(p + d * stride);
            TheMover::scale<DEPTH>(out, t, 0);
        } else {
            Acc acc[DEPTH][LANES];
            if constexpr (N != 0) {
                fold_in<N, DEPTH, true>(acc, 0, at);
            } else {
                fold_in<4, DEPTH, true>(acc, 0, at);
                u32 s = 4;
                for (; s + 4 <= t.srcs; s += 4) fold_in<4, DEPTH, false>(acc, s, at);
                for (; s < t.srcs; s++) fold_in<1, DEPTH, false>(acc, s, at);
            }
#pragma unroll
            for (u32 d = 0; d < DEPTH; d++)
#pragma unroll
                for (u32 l = 0; l < LANES; l++) out[d].lanes[l] = E::round(acc[d][l]);
        }
        put<DEPTH>(at, out);
    }

    template <u32 N, u32 DEPTH>
    __device__ __forceinline__ void all() const {
        u32 at = first;
        for (; at + (DEPTH - 1) * stride < end; at += DEPTH * stride) step<N, DEPTH>(at);
        // A message of a few MiB has two vectors a thread.
        if (DEPTH > 2 && at + stride < end) {
            step<N, 2>(at);
            at += 2 * stride;
        }
        for (; at < end; at += stride) step<N, 1>(at);
    }

    __device__ __forceinline__ void run() const {
        // Eight loads in flight, where sixteen accumulators a vector leave room.
        constexpr u32 WIDE = LANES == 16 ? 2 : 1;
        switch (t.srcs) {
        case 1: return all<1, 4>();
        case 2: return all<2, 4 / WIDE>();
        case 3: return all<3, 2 / WIDE>();
        case 4: return all<4, 2 / WIDE>();
        case 8: return all<8, 1>();
        default: return all<0, 2 / WIDE>();
        }
    }
};

// Part `part` of `parts` of a move's tile, by whole warps.
__device__ __forceinline__ void run(const Transfer& t, u32 part, u32 parts) {
    const u32 head = t.head(), body = t.body();
    if (body != 0) Vectors{t, head + (part * 32 + (threadIdx.x & 31)) * 16, head + body, parts * 512}.run();
    TheMover::loose(t, t.srcs, head, body, part, parts);
}

// Two blocks a multiprocessor leave 64 registers a thread.
extern "C" __global__ void __launch_bounds__(RINGLAB_MOST_THREADS, 2) run_fused(const __grid_constant__ Params p) {
    extern __shared__ __align__(16) char shared[];
    if (p.stamps != nullptr && blockIdx.x == gridDim.x - 1) {
        // A block of its own reads the clock, which takes longer than a short message may.
        if (threadIdx.x == 0) stamp_launch(p.stamps, p.launches, p.stamp_capacity);
        return;
    }
    const u32 program = blockIdx.x / p.replicas, replica = blockIdx.x % p.replicas;
    const char* const words = p.programs + static_cast<u64>(program) * p.program_bytes;
    for (u32 at = threadIdx.x * 16; at < p.program_bytes; at += blockDim.x * 16) {
        *reinterpret_cast<uint4*>(shared + at) = *reinterpret_cast<const uint4*>(words + at);
    }
    __syncthreads();
    const Program prog(shared);
    const Cut whole{0, p.tile};
    for (u64 tile = replica; tile < p.tiles; tile += p.replicas) {
        for (u32 i = 0; i < prog.header.phases; i++) {
            const Phase& phase = prog.phases[i];
            if (tile >= phase.tiles) continue;
            const u64 offset = tile * p.tile;
            const Sharing mine(phase.moves, left(phase.longest, offset, p.tile));
            for (u32 m = mine.first; m < phase.moves; m += mine.step) {
                const Transfer t(prog, prog.moves[phase.first_move + m], nullptr, p, tile, whole);
                run(t, mine.part, mine.parts);
            }
            // The next phase may read what this one wrote, and the next tile overwrite scratch that this one read.
            if (prog.header.phases > 1) __syncthreads();
        }
    }
}
