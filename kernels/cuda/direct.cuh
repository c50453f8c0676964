// What the direct kernel is told. Host counterpart: engine/src/exec/cuda/direct.rs, which lays these structures out byte by byte.
//
// A collective is a grid of pieces (i, j), each a block of the collective's contract: read it from every source, fold, write it to every
// destination. A side has either the same buffers for all pieces or one buffer a piece.
#pragma once
#include "element.cuh"

constexpr u32 MOST_RANKS = 64;

// Buffer `k` of piece (i, j) is `buffers[k + i * pick_i + j * pick_j]`, from block `i * step_i + j * step_j` of it.
struct Side {
    u64 buffers[MOST_RANKS];
    // Buffers of a piece.
    u32 count;
    u32 pick_i, pick_j, step_i, step_j;
    u32 reserved;
};
static_assert(sizeof(Side) == 536, "host layout");

struct DirectParams {
    Side sources;
    Side destinations;
    // Bytes of a piece, and of the part of it that one block works on at a time.
    u64 bytes;
    u64 tile;
    u64 tiles;
    // Null, or where the first block stamps the launch: stamps[(*launches)++].
    u64* stamps;
    u64* launches;
    u64 stamp_capacity;
    // What an average divides by.
    u32 ranks;
    // Whether the buffers of one side are misaligned to 16 bytes by different amounts.
    u32 mixed;
    // Whether all that is read and written is more than the L2 cache holds, so that nothing written will be found there.
    u32 streams;
    u32 reserved;
};
static_assert(sizeof(DirectParams) == 1136, "host layout");
