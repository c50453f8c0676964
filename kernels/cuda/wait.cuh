// Bounded waits. Every spin polls the abort word, which lives in host memory, and the deadline; a wait that is stopped leaves a record.
#pragma once
#include "memory.cuh"
#include "program.cuh"

// Spins between two looks at the multiprocessor's own clock, which costs next to nothing.
constexpr u32 POLL_EVERY = 64;
// Its ticks between two looks of a block at the device's timer, the deadline and the device's copy of the abort word: about 0.1 ms.
constexpr u64 LOOK_EVERY = 200000;
// Nanoseconds between two looks of a device at the abort word itself, by any block. Each is a read across PCIe of about a microsecond, and
// few are under way at a time: when every block looked, 256 of them took hundreds of times as long for a message as one look a time does.
constexpr u64 HOST_EVERY = 100000;

struct Watch {
    const Params& p;
    // In shared memory: the device's timer when the block first looked, or 0, and the clock when it last did.
    unsigned long long* began;
    unsigned long long* looked;

    // Any thread. Past the deadline it stops everyone.
    __device__ bool stopped() const {
        const u64 clock = static_cast<u64>(clock64());
        const u64 last = atomicAdd(looked, 0ull);
        // One thread a time. A block that was moved to another multiprocessor may find its clock behind, which counts as late as well.
        if (clock - last < LOOK_EVERY || atomicCAS(looked, last, clock) != last) return false;
        const u64 now = device_nanos(), first = atomicCAS(began, 0ull, now);
        const u64 waited = first == 0 ? 0 : now - first;
        if (load_abort(&p.halt->halted) != 0) return true;
        if (waited <= p.deadline_ns && !aborted(now)) return false;
        stop();
        return true;
    }

    // Looks at the abort word when no block of the device has for a while.
    __device__ bool aborted(u64 now) const {
        unsigned long long* const at = &p.halt->looked;
        const u64 last = *static_cast<volatile unsigned long long*>(at);
        if (now - last < HOST_EVERY || atomicCAS(at, last, now) != last) return false;
        return load_abort(p.abort) != 0;
    }

    __device__ void stop() const {
        raise_abort(p.abort);
        raise_abort(&p.halt->halted);
    }

    // Whether an earlier launch of this run was stopped: its counters no longer fit together, and its records must stay.
    __device__ bool halted_before() const {
        // On several devices, one that was not waiting when another stopped has not noticed.
        return load_abort(&p.halt->halted) != 0 || (RINGLAB_SYSTEM_SCOPE && load_abort(p.abort) != 0);
    }
};

// `steps`: of a slice.
__device__ __forceinline__ bool satisfied(u16 want, const EndpointState& s, u32 steps) {
    switch (want) {
    // Steps sent and not yet freed are at most all.
    case WANT_CREDIT: return s.count + steps <= s.seen + SLOTS;
    // Lines are waited for one by one, where they are read.
    case WANT_DATA: return LINES || s.count + steps <= s.seen;
    default: return s.count < s.seen;
    }
}

__device__ inline void leave_record(Stall* out, const Wait& w, const EndpointState& s, const Endpoint& e, u64 tile) {
    const bool producer = w.want == WANT_CREDIT;
    out->want = w.want;
    out->peer = e.peer;
    out->step = w.step;
    out->tile = tile;
    out->head = producer ? s.seen : s.count;
    out->tail = producer ? s.count : s.seen;
    out->valid = 1;
}

// Whole warp 0: waits for all waits of a phase, a lane each; for signals before the first slice only. Returns whether all came; else the
// block has to stop.
__device__ inline bool wait_for(const Program& prog, const Phase& phase, EndpointState* states, const Watch& watch, u64 tile, u32 slice) {
    const u32 steps = watch.p.slice_steps;
    const u32 lane = threadIdx.x & 31;
    for (u32 first = 0; first < phase.waits; first += 32) {
        const u32 i = first + lane;
        bool used = i < phase.waits;
        Wait w{};
        EndpointState s{0, 0};
        const u64* theirs = nullptr;
        if (used) {
            w = prog.waits[phase.first_wait + i];
            used = slice == 0 || w.want != WANT_SIGNAL;
            s = states[w.endpoint];
            theirs = prog.endpoints[w.endpoint].theirs;
        }
        bool done = !used || satisfied(w.want, s, steps);
        for (u32 spins = 1; !__all_sync(~0u, done); spins++) {
            if (!done) {
                s.seen = load_acquire(theirs);
                done = satisfied(w.want, s, steps);
            }
            if (spins % POLL_EVERY == 0) {
                const bool stop = __shfl_sync(~0u, lane == 0 && watch.stopped(), 0);
                const u32 missing = __ballot_sync(~0u, !done);
                if (stop && missing != 0) {
                    if (lane == __ffs(missing) - 1) leave_record(&watch.p.stalls[blockIdx.x], w, s, prog.endpoints[w.endpoint], tile);
                    return false;
                }
            }
        }
        if (used) {
            if (w.want == WANT_SIGNAL) s.count += 1;
            states[w.endpoint] = s;
        }
        __syncwarp();
    }
    return true;
}

// Whole warp 0, behind the barrier that ends the moves: publishes a slice's steps on each posted FIFO and, behind the last slice, one
// signal. What comes before a launch is ordered by the launch, so a block that has done nothing yet has nothing to release.
__device__ inline void post(const Program& prog, const Phase& phase, EndpointState* states, u32 steps, bool last, bool nothing_yet) {
    for (u32 i = threadIdx.x & 31; i < phase.posts; i += 32) {
        const u16 e = prog.posts[phase.first_post + i];
        const Endpoint& endpoint = prog.endpoints[e];
        const bool signals = endpoint.role == SIGNALLER;
        if (signals && !last) continue;
        const u64 count = states[e].count + (signals ? 1 : steps);
        states[e].count = count;
        // Lines tell of themselves.
        if (LINES && endpoint.role == SENDER) continue;
        // A credit for lines releases nothing but what was read, and every line's flag was looked at: no later store comes before that.
        if (nothing_yet || (LINES && endpoint.role == RECEIVER)) store_relaxed(endpoint.mine, count);
        else store_release(endpoint.mine, count);
    }
    __syncwarp();
}

// One thread: waits until all blocks of the session have come here. False when stopped.
__device__ inline bool meet(const Params& p, const Watch& watch) {
    const u64 round = p.rounds[blockIdx.x] + 1;
    p.rounds[blockIdx.x] = round;
    add_acq_rel(p.meeting, 1);
    for (u32 spins = 1; load_acquire(p.meeting) < round * p.meeting_blocks; spins++) {
        if (spins % POLL_EVERY == 0 && watch.stopped()) return false;
    }
    return true;
}
