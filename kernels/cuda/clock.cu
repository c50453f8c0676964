// Stamps the device clock behind the last launch, so that every launch has an end.
#include "memory.cuh"

extern "C" __global__ void stamp(u64* stamps, u64* launches, const u64 capacity) {
    stamp_launch(stamps, launches, capacity);
}
