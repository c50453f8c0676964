// The interpreter: runs any plan, one block a rank and channel, all blocks of all local ranks in one cooperative launch.
// One more block stamps the launch.
#include "line.cuh"
#include "memory.cuh"
#include "program.cuh"
#include "trace.cuh"
#include "transfer.cuh"
#include "wait.cuh"

// The host launches up to 1024 threads, or 512 so that two blocks fit a multiprocessor; both leave 64 registers a thread.
constexpr u32 MOST_THREADS = 1024;

using TheMover = Mover<RINGLAB_ELEMENT, RINGLAB_REDUCTION>;
using TheLineMover = LineMover<RINGLAB_ELEMENT, RINGLAB_REDUCTION>;

// All warps: the moves of a phase, or a slice of them.
__device__ __forceinline__ void move_all(const LineWatch& w, const Params& p, const Cut& cut) {
    const Phase& phase = w.phase;
    const u64 offset = w.tile * p.tile + cut.begin;
    const Sharing mine(phase.moves, left(phase.longest, offset, cut.bytes));
    for (u32 m = mine.first; m < phase.moves; m += mine.step) {
        const Move& move = w.prog.moves[phase.first_move + m];
        const Transfer t(w.prog, move, w.states, p, w.tile, cut);
        if (LINES && (move.recv != NONE || move.send != NONE)) TheLineMover(t, move, w).run(mine.part, mine.parts);
        else TheMover::run(t, mine.part, mine.parts);
    }
}

// Payload bytes that the phase's moves carried between ranks.
__device__ inline u64 crossed(const Program& prog, const Phase& phase, const Params& p, u64 tile) {
    const u64 offset = tile * p.tile;
    u64 bytes = 0;
    for (u32 m = 0; m < phase.moves; m++) {
        const Move& move = prog.moves[phase.first_move + m];
        bytes += move.crossings * left(move.slice, offset, p.tile);
    }
    return bytes;
}

// All threads: completes the operands of a program in shared memory with where this launch's buffers are.
__device__ inline void relocate(const Params& p, const Program& prog) {
    Operand* const operands = const_cast<Operand*>(prog.operands);
    for (u32 i = threadIdx.x; i < prog.header.operands; i += blockDim.x) operands[i].base += p.buffers[operands[i].buffer];
}

// All threads: divides this block's part of the output by the number of ranks.
__device__ inline void average(const Params& p, const Header& h) {
    using E = RINGLAB_ELEMENT;
    constexpr u32 LANES = Pack<E>::LANES;
    for (u32 s = 0; s < h.spans; s++) {
        const OutputSpan span = p.spans[h.first_span + s];
        char* const base = reinterpret_cast<char*>(span.base + p.buffers[span.buffer]);
        const bool aligned = reinterpret_cast<u64>(base) % 16 == 0;
        const u64 body = aligned ? span.bytes / 16 * 16 : 0;
        for (u64 at = threadIdx.x * 16; at < body; at += blockDim.x * 16) {
            Pack<E> v;
            v.words = load_vector(base + at);
#pragma unroll
            for (u32 l = 0; l < LANES; l++) v.lanes[l] = E::average(v.lanes[l], p.average);
            store_vector(base + at, v.words);
        }
        for (u64 at = body + threadIdx.x * sizeof(E::Store); at < span.bytes; at += blockDim.x * sizeof(E::Store)) {
            store_element<E::Store>(base + at, E::average(load_element<E::Store>(base + at), p.average));
        }
    }
}

__device__ __forceinline__ void run(const Params& p) {
    extern __shared__ __align__(16) char shared[];
    __shared__ unsigned long long began, looked;
    __shared__ volatile u32 stop;
    __shared__ volatile u32 halted;
    // Raised within moves, by whoever waited for a line in vain.
    __shared__ u32 lost;
    const u32 warp = threadIdx.x / 32;
    const Watch watch{p, &began, &looked};
    if (p.stamps != nullptr && blockIdx.x == gridDim.x - 1) {
        // A block of its own reads the clock, which takes longer than a short message may.
        if (threadIdx.x == 0) stamp_launch(p.stamps, p.launches, p.stamp_capacity);
        return;
    }

    // Everything a block needs is fetched by warps of its own, so that its latencies overlap.
    EndpointState* const states = reinterpret_cast<EndpointState*>(shared);
    u64* const counts = p.counts + blockIdx.x * p.endpoints_per_block;
    const char* words = p.programs + static_cast<u64>(blockIdx.x) * p.program_bytes;
    if (p.program_fits) {
        char* const close = shared + p.endpoints_per_block * sizeof(EndpointState);
        for (u32 at = threadIdx.x * 16; at < p.program_bytes; at += blockDim.x * 16) {
            *reinterpret_cast<uint4*>(close + at) = *reinterpret_cast<const uint4*>(words + at);
        }
        words = close;
    }
    for (u32 e = blockDim.x - 1 - threadIdx.x; e < p.endpoints_per_block; e += blockDim.x) {
        // 0 for the peer's counter is always behind and makes the first wait look.
        states[e] = EndpointState{counts[e], 0};
    }
    if (threadIdx.x == 0) {
        stop = 0;
        lost = 0;
        began = 0;
        looked = static_cast<u64>(clock64());
    }
    if (threadIdx.x == blockDim.x / 2) halted = watch.halted_before();
    __syncthreads();
    if (halted) return;
    const Program prog(words);
    const Header& h = prog.header;
    if (p.relocates) {
        relocate(p, prog);
        __syncthreads();
    }

    u64 moved = 0;
    Tracer tracer;
    for (u64 turn = 0; turn < p.tiles + p.lag; turn++) {
        // A program that never waits has to end at the deadline as well.
        if (threadIdx.x == 0 && turn > 0 && watch.stopped()) stop = 1;
        for (u32 i = 0; i < h.phases; i++) {
            const Phase phase = prog.phases[i];
            // Beyond all tiles in the first turns of what is put off.
            const u64 tile = turn - phase.lag;
            if (tile >= phase.tiles || tile >= p.tiles) continue;
            const LineWatch moving{prog, phase, states, watch, tile, &lost};
            const u32 slices = phase.sliced ? p.slices : 1;
            // A slice without bytes is announced with the one before it, so that nobody waits for it or for its slots, which nothing is put
            // into. Lines have to be sent to be seen.
            const u64 bytes = LINES ? ~0ull : left(phase.longest, tile * p.tile, p.tile);
            bool last = false;
            for (u32 slice = 0; !last; slice++) {
                last = slice + 1 == slices || (slice + 1) * p.slice >= bytes;
                if (warp == 0) {
                    __syncwarp();
                    if (threadIdx.x == 0 && slice == 0) tracer.begin();
                    if (!stop && !wait_for(prog, phase, states, watch, tile, slice)) stop = 1;
                    if (threadIdx.x == 0 && slice == 0) tracer.ready();
                }
                if (phase.moves != 0) {
                    __syncthreads();
                    // Warp 0 writes it again only behind the barrier that ends the moves, so all threads read the same.
                    if (stop) goto ended;
                    move_all(moving, p, phase.sliced ? Cut{slice * p.slice, p.slice} : Cut{0, p.tile});
                    __syncthreads();
                    // The next moves that could raise it are behind another barrier.
                    if (LINES && *static_cast<volatile u32*>(&lost)) goto ended;
                }
                if (warp == 0) {
                    __syncwarp();
                    if (threadIdx.x == 0 && last) tracer.moved();
                    const bool nothing_yet = turn == 0 && i == 0 && phase.waits == 0 && phase.moves == 0;
                    const u32 posted = last ? slices - slice : 1;
                    if (!stop) post(prog, phase, states, posted * p.slice_steps, last, nothing_yet);
                    if (threadIdx.x == 0 && last) tracer.end(p, i, tile, phase.steps);
                } else if (threadIdx.x == 32 && last) {
                    // Not warp 0: its next wait is what the peers may be waiting for.
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
    // Warp 0 alone changes the states.
    for (u32 e = threadIdx.x; warp == 0 && e < h.endpoints; e += 32) counts[e] = states[e].count;
    if (threadIdx.x == 32 && p.moved != nullptr) p.moved[blockIdx.x] = moved;
    if (threadIdx.x == 0) tracer.finish(p);
}

#ifdef RINGLAB_RANKS
extern "C" __global__ void __launch_bounds__(MOST_THREADS, 1) run_ranks(const __grid_constant__ Ranks ranks) {
    u32 at = 0;
    while (at + 1 < LOCAL_RANKS && blockIdx.x >= ranks.first[at + 1]) at++;
    run(ranks.of[at]);
}
#else
extern "C" __global__ void __launch_bounds__(MOST_THREADS, 1) run_plan(const Params p) { run(p); }
#endif
