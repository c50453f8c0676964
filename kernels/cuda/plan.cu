// The interpreter: runs any plan, one block a rank and channel, all blocks of all local ranks in one cooperative launch.
#include "memory.cuh"
#include "program.cuh"
#include "trace.cuh"
#include "transfer.cuh"
#include "wait.cuh"

constexpr u32 THREADS = 512;
constexpr u32 WARPS = THREADS / 32;

using TheMover = Mover<RINGLAB_ELEMENT, RINGLAB_REDUCTION>;

// All warps: the moves of a phase. Short ones are spread over the warps, so that their latencies overlap.
__device__ __forceinline__ void move_all(const Program& prog, const Phase& phase, const EndpointState* states, const Params& p, u64 tile) {
    const u32 warp = threadIdx.x / 32;
    const u64 offset = tile * p.tile;
    const u64 longest = offset >= phase.longest ? 0 : min(phase.longest - offset, p.tile);
    const u32 n = phase.moves;
    if (n == 1 || longest >= WARPS * 512) {
        for (u32 m = 0; m < n; m++) {
            const Transfer t(prog, prog.moves[phase.first_move + m], states, p, tile);
            TheMover::run(t, warp, WARPS);
        }
        return;
    }
    for (u32 m = warp % n; m < n; m += WARPS) {
        // Warps m, m + n, m + 2n, … share move m.
        const u32 sharers = m < WARPS ? (WARPS - m + n - 1) / n : 1;
        const Transfer t(prog, prog.moves[phase.first_move + m], states, p, tile);
        TheMover::run(t, n <= WARPS ? warp / n : 0, n <= WARPS ? sharers : 1);
    }
}

// Payload bytes that the phase's moves carried between ranks.
__device__ inline u64 crossed(const Program& prog, const Phase& phase, const Params& p, u64 tile) {
    const u64 offset = tile * p.tile;
    u64 bytes = 0;
    for (u32 m = 0; m < phase.moves; m++) {
        const Move& move = prog.moves[phase.first_move + m];
        if (offset < move.slice) bytes += move.crossings * min(move.slice - offset, p.tile);
    }
    return bytes;
}

// All threads: divides this block's part of the output by the number of ranks.
__device__ inline void average(const Params& p, const Header& h) {
    using E = RINGLAB_ELEMENT;
    constexpr u32 LANES = Pack<E>::LANES;
    for (u32 s = 0; s < h.spans; s++) {
        const OutputSpan span = p.spans[h.first_span + s];
        char* const base = reinterpret_cast<char*>(span.base);
        const bool aligned = span.base % 16 == 0;
        const u64 body = aligned ? span.bytes / 16 * 16 : 0;
        for (u64 at = threadIdx.x * 16; at < body; at += THREADS * 16) {
            Pack<E> v;
            v.words = load_vector(base + at);
#pragma unroll
            for (u32 l = 0; l < LANES; l++) v.lanes[l] = E::average(v.lanes[l], p.average);
            store_vector(base + at, v.words);
        }
        for (u64 at = body + threadIdx.x * sizeof(E::Store); at < span.bytes; at += THREADS * sizeof(E::Store)) {
            store_element<E::Store>(base + at, E::average(load_element<E::Store>(base + at), p.average));
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 2) run_plan(const Params p) {
    extern __shared__ __align__(16) char shared[];
    __shared__ volatile u32 stop;
    const Header h = p.headers[blockIdx.x];
    const Watch watch{p, device_nanos() + p.deadline_ns};
    const u32 warp = threadIdx.x / 32;
    if (threadIdx.x == 0) {
        stop = watch.halted_before();
        if (blockIdx.x == 0 && p.stamps != nullptr) {
            const u64 launch = *p.launches;
            if (launch < p.stamp_capacity) p.stamps[launch] = watch.deadline - p.deadline_ns;
            *p.launches = launch + 1;
        }
    }

    EndpointState* const states = reinterpret_cast<EndpointState*>(shared);
    char* const close = shared + h.endpoints * sizeof(EndpointState);
    const char* words = p.image + h.offset;
    if (h.bytes <= p.program_bytes) {
        for (u32 at = threadIdx.x * 16; at < h.bytes; at += THREADS * 16) {
            *reinterpret_cast<uint4*>(close + at) = *reinterpret_cast<const uint4*>(words + at);
        }
        words = close;
    }
    __syncthreads();
    const Program prog(words, h);
    for (u32 e = threadIdx.x; e < h.endpoints; e += THREADS) {
        // Counters outlive launches; 0 for the peer's is always behind and makes the first wait look.
        states[e] = EndpointState{*prog.endpoints[e].mine, 0};
    }
    // Read before the barrier: behind it warp 0 may already stop for another reason.
    const bool halted = stop;
    __syncthreads();
    if (halted) return;

    u64 moved = 0;
    Tracer tracer;
    for (u64 tile = 0; tile < p.tiles; tile++) {
        // A program that never waits has to end at the deadline as well.
        if (threadIdx.x == 0 && tile > 0 && device_nanos() > watch.deadline) {
            watch.stop();
            stop = 1;
        }
        for (u32 i = 0; i < h.phases; i++) {
            const Phase phase = prog.phases[i];
            if (warp == 0) {
                __syncwarp();
                if (threadIdx.x == 0) tracer.begin();
                if (!stop && !wait_for(prog, phase, states, watch, tile)) stop = 1;
                if (threadIdx.x == 0) tracer.ready();
            }
            if (phase.moves != 0) {
                __syncthreads();
                // Warp 0 writes it again only behind the barrier that ends the moves, so all threads read the same.
                if (stop) goto ended;
                move_all(prog, phase, states, p, tile);
                __syncthreads();
            }
            if (warp == 0) {
                __syncwarp();
                if (threadIdx.x == 0) tracer.moved();
                if (!stop) post(prog, phase, states);
                if (threadIdx.x == 0) {
                    tracer.end(p, i, tile, phase.steps);
                    moved += crossed(prog, phase, p, tile);
                }
            }
        }
    }
    if (p.average != 0) {
        // Peers may read this output directly until their programs end.
        __syncthreads();
        if (threadIdx.x == 0 && !stop && !meet(p, watch)) stop = 1;
        __syncthreads();
        if (!stop) average(p, h);
    }
ended:
    if (threadIdx.x == 0) {
        p.moved[blockIdx.x] = moved;
        tracer.finish(p);
    }
}
