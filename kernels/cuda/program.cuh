// What a block runs. Host counterpart: engine/src/exec/cuda/image.rs, which lays these structures out byte by byte.
//
// A program is a list of phases; a phase is `waits`, then `moves`, then `posts`. Warp 0 waits and posts, one peer a lane; all warps
// move. The moves of one phase are independent of each other.
#pragma once
#include "element.cuh"

// Steps of a connection's buffer.
constexpr u32 SLOTS = 8;

// What is left of `whole` bytes from `offset` on, at most `most`.
__device__ __forceinline__ u64 left(u64 whole, u64 offset, u64 most) { return offset >= whole ? 0 : min(whole - offset, most); }

// Which protocol the kernel is compiled for. Host counterpart: engine/src/fifo.rs.
enum Protocol { SIMPLE = 0, LL = 1, LL128 = 2 };
constexpr Protocol PROTOCOL = static_cast<Protocol>(RINGLAB_PROTOCOL);
// Whether slots are made of lines, which say themselves that they have arrived.
constexpr bool LINES = PROTOCOL != SIMPLE;
constexpr u16 NONE = 0xffff;

enum Want : u16 { WANT_DATA = 0, WANT_CREDIT = 1, WANT_SIGNAL = 2 };
enum Role : u32 { SENDER = 0, RECEIVER = 1, SIGNALLER = 2, WAITER = 3 };

struct Phase {
    u32 first_wait, first_move, first_post;
    u16 waits, moves, posts;
    // Plan steps this phase carries out, for the count of dropped spans.
    u16 steps;
    // Tiles that have this phase: the first so many. Messages of one group differ in length.
    u32 tiles;
    // Bytes of the longest slice any move works on.
    u64 longest;
    // Whether a move is on a FIFO: then a tile crosses in `Params::slices` slices.
    u32 sliced;
    // Turns after which a tile comes to it: what goes the other way is behind, so that a tile is on its way up while others come down.
    u32 lag;
};
static_assert(sizeof(Phase) == 40, "host layout");

struct Wait {
    u16 endpoint;
    u16 want;
    u32 step;
};
static_assert(sizeof(Wait) == 8, "host layout");

struct Move {
    // Bytes of the channel's slice of the chunk; a tile is a part of it.
    u64 slice;
    u32 first_src;
    // Operands in memory: sources (a received slot comes before them), then destinations.
    u16 srcs;
    u16 dsts;
    u16 recv, send;
    // Times each byte crosses between ranks.
    u16 crossings;
    // Common misalignment of all operands to 16 bytes, or MIXED.
    u16 misaligned;
};
static_assert(sizeof(Move) == 24, "host layout");
constexpr u16 MIXED = 16;

// Where an operand starts; scratch stays put while input and output advance tile by tile: `advances` is 0 or 1, or 2 + r for what a
// pre-multiplied sum reads of rank r's input. `base` counts from the launch's buffer of that
// number, of which the first starts at 0.
struct Operand {
    u64 base;
    u32 advances;
    u32 buffer;
};
static_assert(sizeof(Operand) == 16, "host layout");
constexpr u32 BUFFERS = 3;

// One side of a connection or semaphore as its block sees it.
struct Endpoint {
    // The counter this side writes (tail, head, signals, none) and the one it watches (head, tail, none, signals). With lines no tail is
    // needed.
    u64* mine;
    u64* theirs;
    char* slots;
    u32 peer;
    u32 role;
};
static_assert(sizeof(Endpoint) == 32, "host layout");

// First words of a block's program; its parts follow in the order of `Program`.
struct Header {
    u32 phases, waits, moves, posts, operands, endpoints;
    // Spans of the output this block averages, by index into the span table.
    u32 first_span, spans;
};
static_assert(sizeof(Header) == 32, "host layout");

struct OutputSpan {
    u64 base;
    u64 bytes;
    u64 buffer;
};
static_assert(sizeof(OutputSpan) == 24, "host layout");

struct Stall {
    u32 valid;
    u32 want;
    u32 peer;
    u32 step;
    u64 tile, head, tail;
};
static_assert(sizeof(Stall) == 40, "host layout");

struct TraceRecord {
    u64 tile;
    u32 phase;
    u32 reserved;
    // Begin of waiting, all waits over, all moves done, all posts done.
    u64 begin, ready, moved, end;
};
static_assert(sizeof(TraceRecord) == 48, "host layout");

struct Halt {
    // A copy of the abort word, which later launches of the same run see first.
    u32 halted;
    u32 reserved;
    // When a block last looked at the abort word, by the device's timer.
    unsigned long long looked;
};
static_assert(sizeof(Halt) == 16, "host layout");

struct Params {
    // One program a block, `program_bytes` apart.
    const char* programs;
    // Where every endpoint's count is kept between launches, `endpoints_per_block` a block.
    u64* counts;
    const OutputSpan* spans;
    u64 tiles;
    // Bytes of a full tile.
    u64 tile;
    // Distance of two steps of a FIFO, and payload bytes of a slice.
    u64 slot;
    u64 slice;
    u64 deadline_ns;
    // Raised for all devices, in host memory; and what this device knows of it.
    u32* abort;
    Halt* halt;
    Stall* stalls;
    u64* moved;
    // Null, or where one more block stamps each launch: stamps[(*launches)++].
    u64* stamps;
    u64* launches;
    u64 stamp_capacity;
    // Meeting of all blocks of the session before an average is taken; `rounds` has one word a block.
    u64* meeting;
    u64* rounds;
    u64 meeting_blocks;
    TraceRecord* records;
    u64* recorded;
    u64* dropped;
    u64 records_per_block;
    // 0, and where the caller's input and output are, for programs laid out before that was known.
    u64 buffers[BUFFERS];
    // What a pre-multiplied sum multiplies inputs by: an element in the low bytes of a word a rank; or null, and one for all.
    const u64* factors;
    u64 factor;
    u32 average;
    u32 program_bytes;
    u32 endpoints_per_block;
    // Whether shared memory has room for a program; else it is read where it lies.
    u32 program_fits;
    // Whether operands count from `buffers`. Only a program in shared memory can be completed.
    u32 relocates;
    // Slices of a tile on a FIFO, and steps of a slice.
    u32 slices;
    u32 slice_steps;
    // Whether lines order more than what they carry: a plan may read a peer's buffer because of what came from it.
    u32 fences;
    // Blocks that share a program, whose tiles they take in turns; above 1 only where programs are free of each other.
    u32 replicas;
    // Most of any phase.
    u32 lag;
};
static_assert(sizeof(Params) == 256, "host layout");

// Ranks of one process in one launch, each with blocks of its own: the first of them by rank. A rank's addresses that are indexed by
// block count from the launch's first block, not from the rank's.
constexpr u32 LOCAL_RANKS = 12;
struct Ranks {
    Params of[LOCAL_RANKS];
    u32 first[LOCAL_RANKS];
};
static_assert(sizeof(Ranks) == 3120, "host layout");

struct EndpointState {
    // Steps this side has taken (for a sender, receiver or signaller: the value of `mine`), and the latest value seen of `theirs`.
    u64 count, seen;
};

// A program where it is read: in shared memory if it fits.
struct Program {
    const Header& header;
    const Phase* phases;
    const Wait* waits;
    const Move* moves;
    const u16* posts;
    const Operand* operands;
    const Endpoint* endpoints;

    // The order puts the strictest alignment first; `posts` come last.
    __device__ explicit Program(const char* words) : header(*reinterpret_cast<const Header*>(words)) {
        operands = reinterpret_cast<const Operand*>(words + sizeof(Header));
        endpoints = reinterpret_cast<const Endpoint*>(operands + header.operands);
        phases = reinterpret_cast<const Phase*>(endpoints + header.endpoints);
        moves = reinterpret_cast<const Move*>(phases + header.phases);
        waits = reinterpret_cast<const Wait*>(moves + header.moves);
        posts = reinterpret_cast<const u16*>(waits + header.waits);
    }
};
