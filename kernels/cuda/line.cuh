// Slots of lines: LL and LL128. A receiver looks at the lines themselves, so data needs neither a counter nor a fence.
//
// - LL: a line is 16 bytes, twice 4 bytes of data and a 4-byte flag. Each half is stored at once, so a flag vouches for the data beside
//   it. The flag is the step's number modulo 2^32; lines are cleaned before one can recur.
// - LL128: a line is 128 bytes, 120 of data and an 8-byte flag, stored by eight neighbouring lanes in one instruction. It needs lines to
//   become visible whole, which holds within a GPU and over NVLink.
//
// A slot of LL has its payload in order. A slot of LL128 is made of groups of eight lines, a warp's two stores, with 60 vectors of 16 bytes:
// lane l has vector l - l / 8 of the first 28 in its first store and of the second 28 in its second. The lanes with the flags have half a
// vector's room in each, and carry the last four vectors so. Memory is thus accessed in whole vectors.
#pragma once
#include "transfer.cuh"
#include "wait.cuh"

// Every slot is written whole once in so many steps: four times before a flag recurs.
constexpr u64 CLEAN_EVERY = 1ull << 30;
static_assert(CLEAN_EVERY % SLOTS == 0, "all slots come up behind a boundary");

constexpr u32 GROUP_PAYLOAD = 960, GROUP_WIRE = 1024, GROUP_HALF = 28 * 16;

// Waiting within moves, by any thread. The first of a block that gives up leaves the record.
struct LineWatch {
    const Program& prog;
    const Phase& phase;
    const EndpointState* states;
    const Watch& watch;
    u64 tile;
    // In shared memory.
    u32* lost;
};

// A thread's patience for the lines of one move.
struct Patience {
    const LineWatch& w;
    u16 endpoint;

    __device__ bool ends() const {
        if (*static_cast<volatile u32*>(w.lost) != 0) return true;
        if (!w.watch.stopped()) return false;
        if (atomicExch(w.lost, 1) == 0) record();
        return true;
    }

    __device__ void record() const {
        for (u32 i = 0; i < w.phase.waits; i++) {
            const Wait& wait = w.prog.waits[w.phase.first_wait + i];
            if (wait.want != WANT_DATA || wait.endpoint != endpoint) continue;
            EndpointState s = w.states[endpoint];
            s.seen = s.count;
            leave_record(&w.watch.p.stalls[blockIdx.x], wait, s, w.prog.endpoints[endpoint], w.tile);
        }
    }
};

template <class E, class R>
struct LineMover {
    using Store = typename E::Store;
    using Acc = typename E::Acc;
    static constexpr u32 LANES = Pack<E>::LANES;

    const Transfer& t;
    const Move& move;
    const LineWatch& watch;
    u64 flag_in, flag_out;

    __device__ LineMover(const Transfer& transfer, const Move& m, const LineWatch& w)
        : t(transfer), move(m), watch(w), flag_in(m.recv == NONE ? 0 : w.states[m.recv].count + 1),
          flag_out(m.send == NONE ? 0 : w.states[m.send].count + 1) {}

    // An empty slice crosses as one line, since plans count on its arrival.
    __device__ u32 extent() const { return max(t.bytes, 1u); }

    // Bytes of vector `at` that are payload.
    __device__ u32 valid(u32 at) const { return at >= t.bytes ? 0 : min(t.bytes - at, 16u); }

    __device__ Pack<E> memory(u32 s, u32 at) const {
        const char* const p = t.src(s) + at;
        const u32 bytes = valid(at);
        Pack<E> v;
        if (bytes == 16 && t.misaligned == 0) {
            v.words = load_vector(p);
        } else {
            v.words = make_uint4(0, 0, 0, 0);
#pragma unroll
            for (u32 l = 0; l < LANES; l++)
                if (l * sizeof(Store) < bytes) v.lanes[l] = load_element<Store>(p + l * sizeof(Store));
        }
        if constexpr (R::SCALES) {
            if (t.has_factor(s)) {
                const Store by = t.factor<Store>(s);
#pragma unroll
                for (u32 l = 0; l < LANES; l++) v.lanes[l] = scaled<E>(v.lanes[l], by);
            }
        }
        return v;
    }

    // The first source in memory, which is under way while lines are waited for.
    __device__ Pack<E> memory_first(u32 at) const {
        Pack<E> v;
        v.words = make_uint4(0, 0, 0, 0);
        return t.srcs != 0 ? memory(t.in_slot != nullptr, at) : v;
    }

    // What the move makes of vector `at`; `received` is its first source where one is received, `own` the first in memory.
    __device__ uint4 combined(u32 at, uint4 received, const Pack<E>& own) const {
        Pack<E> v = own;
        if (t.in_slot != nullptr) v.words = received;
        const u32 total = t.total();
        if (total > 1) {
            Acc acc[LANES];
#pragma unroll
            for (u32 l = 0; l < LANES; l++) acc[l] = E::widen(v.lanes[l]);
            for (u32 s = 1; s < total; s++) {
                const Pack<E> x = s == 1 && t.in_slot != nullptr ? own : memory(s, at);
#pragma unroll
                for (u32 l = 0; l < LANES; l++) acc[l] = R::apply(acc[l], E::widen(x.lanes[l]));
            }
#pragma unroll
            for (u32 l = 0; l < LANES; l++) v.lanes[l] = E::round(acc[l]);
        }
        if (t.dst != nullptr) keep(t.dst, at, v);
        for (u32 o = 0; o < t.other_dsts; o++) keep(t.other(o), at, v);
        return v.words;
    }

    __device__ void keep(char* dst, u32 at, const Pack<E>& v) const {
        const u32 bytes = valid(at);
        if (bytes == 16 && t.misaligned == 0) {
            store_vector(dst + at, v.words);
            return;
        }
#pragma unroll
        for (u32 l = 0; l < LANES; l++)
            if (l * sizeof(Store) < bytes) store_element<Store>(dst + at + l * sizeof(Store), v.lanes[l]);
    }

    static __device__ bool has(uint4 line, u32 flag) { return line.y == flag && line.w == flag; }

    // False when given up: what the lines hold is then of no use to anybody.
    __device__ bool receive_ll(u32 at, uint4& v) const {
        const char* const lines = t.in_slot + 2 * at;
        const u32 flag = static_cast<u32>(flag_in);
        const Patience patience{watch, move.recv};
        for (u32 spins = 1;; spins++) {
            const uint4 a = load_line(lines), b = load_line(lines + 16);
            if (has(a, flag) && has(b, flag)) {
                v = make_uint4(a.x, a.z, b.x, b.z);
                return true;
            }
            if (spins % POLL_EVERY == 0 && patience.ends()) return false;
        }
    }

    __device__ void send_ll(u32 at, uint4 v) const {
        char* const lines = t.out_slot + 2 * at;
        const u32 flag = static_cast<u32>(flag_out);
        store_line(lines, make_uint4(v.x, flag, v.y, flag));
        store_line(lines + 16, make_uint4(v.z, flag, v.w, flag));
    }

    __device__ void run_ll(u32 warp, u32 warps) const {
        const u32 first = (warp * 32 + (threadIdx.x & 31)) * 16, stride = warps * 512;
        u32 at = first;
        for (; at < extent(); at += stride) {
            const Pack<E> own = memory_first(at);
            uint4 received = make_uint4(0, 0, 0, 0);
            if (t.in_slot != nullptr && !receive_ll(at, received)) return;
            const uint4 v = combined(at, received, own);
            if (t.out_slot != nullptr) send_ll(at, v);
        }
        if (t.out_slot != nullptr && (flag_out - 1) % CLEAN_EVERY < SLOTS) {
            // The slot is as long as the longest slice, which may be less than a slice can be.
            const Params& p = watch.watch.p;
            const u64 payload = p.slot * p.slice_steps / 2;
            for (; at < payload; at += stride) send_ll(at, make_uint4(0, 0, 0, 0));
        }
    }

    static __device__ u64 low(uint4 v) { return static_cast<u64>(v.y) << 32 | v.x; }
    static __device__ u64 high(uint4 v) { return static_cast<u64>(v.w) << 32 | v.z; }
    static __device__ uint4 joined(u64 low, u64 high) {
        return make_uint4(static_cast<u32>(low), static_cast<u32>(low >> 32), static_cast<u32>(high), static_cast<u32>(high >> 32));
    }

    // A whole warp; `second`: whether the group has a second store. False as above.
    __device__ bool receive_ll128(u32 group, bool second, uint4& first_half, uint4& second_half) const {
        const u32 lane = threadIdx.x & 31;
        const char* const lines = t.in_slot + group * GROUP_WIRE + lane * 16;
        const bool flagged = lane % 8 == 7;
        const Patience patience{watch, move.recv};
        for (u32 spins = 1;; spins++) {
            first_half = load_line(lines);
            if (second) second_half = load_line(lines + 512);
            const bool missing = flagged && (high(first_half) != flag_in || (second && high(second_half) != flag_in));
            if (!__any_sync(~0u, missing)) return true;
            if (spins % POLL_EVERY == 0 && __shfl_sync(~0u, lane == 0 && patience.ends(), 0)) return false;
        }
    }

    __device__ void run_ll128(u32 warp, u32 warps) const {
        const u32 lane = threadIdx.x & 31;
        const bool flagged = lane % 8 == 7;
        const u32 place = (flagged ? 56 + lane / 8 : lane - lane / 8) * 16;
        const u32 groups = (extent() + GROUP_PAYLOAD - 1) / GROUP_PAYLOAD;
        for (u32 g = warp; g < groups; g += warps) {
            const u32 begin = g * GROUP_PAYLOAD, at = begin + place;
            const bool second = extent() - begin > GROUP_HALF;
            uint4 a = make_uint4(0, 0, 0, 0), b = a;
            const Pack<E> own_a = memory_first(at), own_b = memory_first(at + GROUP_HALF);
            if (t.in_slot != nullptr) {
                if (!receive_ll128(g, second, a, b)) return;
                if (flagged) a = joined(low(a), low(b));
            }
            a = combined(at, a, own_a);
            if (second && !flagged) b = combined(at + GROUP_HALF, b, own_b);
            if (t.out_slot == nullptr) continue;
            char* const lines = t.out_slot + g * GROUP_WIRE + lane * 16;
            if (flagged) {
                b = joined(high(a), flag_out);
                a = joined(low(a), flag_out);
            }
            __syncwarp();
            store_line(lines, a);
            if (second) store_line(lines + 512, b);
        }
    }

    __device__ void run(u32 warp, u32 warps) const {
        // What the block wrote before is behind its barrier, so a fence here orders it before every line that follows, and one behind the
        // lines orders what follows them.
        const bool fences = watch.watch.p.fences;
        if (fences && t.out_slot != nullptr) __threadfence_system();
        if constexpr (PROTOCOL == LL) run_ll(warp, warps);
        else run_ll128(warp, warps);
        if (fences && t.in_slot != nullptr) __threadfence_system();
    }
};
