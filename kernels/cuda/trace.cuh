// Records of phases, written by one thread a block. Compiled out when not traced.
#pragma once
#include "memory.cuh"
#include "program.cuh"

struct Tracer {
#if RINGLAB_TRACED
    TraceRecord now;
    u64 kept, lost;

    __device__ Tracer() : kept(0), lost(0) {}
    __device__ void begin() { now.begin = device_nanos(); }
    __device__ void ready() { now.ready = device_nanos(); }
    __device__ void moved() { now.moved = device_nanos(); }
    __device__ void end(const Params& p, u32 phase, u64 tile, u32 steps) {
        if (kept == p.records_per_block) {
            lost += steps;
            return;
        }
        now.end = device_nanos();
        now.tile = tile;
        now.phase = phase;
        p.records[blockIdx.x * p.records_per_block + kept] = now;
        kept += 1;
    }
    __device__ void finish(const Params& p) {
        p.recorded[blockIdx.x] = kept;
        p.dropped[blockIdx.x] = lost;
    }
#else
    __device__ void begin() {}
    __device__ void ready() {}
    __device__ void moved() {}
    __device__ void end(const Params&, u32, u64, u32) {}
    __device__ void finish(const Params&) {}
#endif
};
