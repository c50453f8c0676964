// Fills inputs and checks buffers on the device.
#include "exact.cuh"

using E = RINGLAB_ELEMENT;

template <class T>
__device__ __forceinline__ u64 bits_of(T value) {
    union {
        u64 bits;
        T value;
    } both{0};
    both.value = value;
    return both.bits;
}

// out[i] = element i of the rank's input.
extern "C" __global__ void fill(const Exact x, E::Store* out, const u64 elements) {
    const u64 stride = static_cast<u64>(gridDim.x) * blockDim.x;
    for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < elements; i += stride) {
        out[i] = E::from_int(element_of(x, x.rank, i));
    }
}

// data[i] = data[i] * factor, which is at `at` or, if that is null, in the low bytes of `bits`: what a pre-multiplied sum in place does
// before its plan starts.
extern "C" __global__ void scale(E::Store* data, const u64 elements, const E::Store* at, const u64 bits) {
    const E::Store by = at != nullptr ? *at : *reinterpret_cast<const E::Store*>(&bits);
    const u64 stride = static_cast<u64>(gridDim.x) * blockDim.x;
    for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < elements; i += stride) data[i] = scaled<E>(data[i], by);
}

// Compares every element with the rank's input (`input` != 0) or its expected output, bit by bit.
// result[0] counts the wrong ones, result[1] is the lowest index of one (the host sets it to the largest u64 before).
extern "C" __global__ void check(const Exact x, const E::Store* got, const u64 elements, const u32 input, u64* result) {
    const u64 stride = static_cast<u64>(gridDim.x) * blockDim.x;
    u64 wrong = 0, first = ~0ull;
    for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < elements; i += stride) {
        const E::Store want = input ? E::from_int(element_of(x, x.rank, i)) : expected<E>(x, i);
        if (bits_of(got[i]) != bits_of(want)) {
            wrong += 1;
            first = min(first, i);
        }
    }
    if (wrong != 0) {
        atomicAdd(&result[0], wrong);
        atomicMin(&result[1], first);
    }
}
