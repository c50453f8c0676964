// NCCL with all ranks in one process on one GPU, which nccl-tests cannot ask for: it gives each rank of a process a device of its own.
// Prints lines in nccl-tests' form. Needs NCCL 2.30.3 or newer with NCCL_MULTI_RANK_GPU_ENABLE=1.
//
//   nvcc -O2 -o nccl_perf nccl_perf.cu -lnccl
//   nccl_perf all_reduce -g 4 -b 4096 -e 1073741824 -f 4 -n 20 -w 5 -c 1
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>
#include <nccl.h>

#define CUDA(call)                                                                            \
    do {                                                                                      \
        cudaError_t status = (call);                                                          \
        if (status != cudaSuccess) {                                                          \
            fprintf(stderr, "nccl_perf: %s: %s\n", #call, cudaGetErrorString(status));        \
            exit(3);                                                                          \
        }                                                                                     \
    } while (0)
#define NCCL(call)                                                                            \
    do {                                                                                      \
        ncclResult_t status = (call);                                                         \
        if (status != ncclSuccess) {                                                          \
            fprintf(stderr, "nccl_perf: %s: %s\n", #call, ncclGetErrorString(status));        \
            exit(3);                                                                          \
        }                                                                                     \
    } while (0)

namespace {

enum Kind { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, ALL_TO_ALL };
const char* const NAMES[] = {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all"};

struct Rank {
    ncclComm_t comm;
    cudaStream_t stream;
    float* send;
    float* recv;
};

// Inputs are small integers, so that sums are exact; element i of rank r is (i + r) % 7.
__global__ void fill(float* out, size_t count, int rank) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) out[i] = (i + rank) % 7;
}

__global__ void compare(const float* got, size_t block, int kind, int rank, int ranks, unsigned long long* wrong) {
    const size_t count = kind == ALL_GATHER || kind == ALL_TO_ALL ? block * ranks : block;
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) {
        const size_t from = i / block, at = i % block;
        float want = 0;
        switch (kind) {
            case ALL_GATHER: want = (at + from) % 7; break;
            case ALL_TO_ALL: want = (rank * block + at + from) % 7; break;
            case BROADCAST: want = i % 7; break;
            default:
                for (int r = 0; r < ranks; r++) want += ((kind == REDUCE_SCATTER ? rank * block + i : i) + r) % 7;
        }
        if (got[i] != want) atomicAdd(wrong, 1);
    }
}

void queue(Kind kind, const std::vector<Rank>& ranks, size_t block) {
    const int n = int(ranks.size());
    NCCL(ncclGroupStart());
    for (const Rank& r : ranks) {
        switch (kind) {
            case ALL_REDUCE: NCCL(ncclAllReduce(r.send, r.recv, block, ncclFloat, ncclSum, r.comm, r.stream)); break;
            case ALL_GATHER: NCCL(ncclAllGather(r.send, r.recv, block, ncclFloat, r.comm, r.stream)); break;
            case REDUCE_SCATTER: NCCL(ncclReduceScatter(r.send, r.recv, block, ncclFloat, ncclSum, r.comm, r.stream)); break;
            case BROADCAST: NCCL(ncclBroadcast(r.send, r.recv, block, ncclFloat, 0, r.comm, r.stream)); break;
            case ALL_TO_ALL:
                for (int peer = 0; peer < n; peer++) {
                    NCCL(ncclSend(r.send + peer * block, block, ncclFloat, peer, r.comm, r.stream));
                    NCCL(ncclRecv(r.recv + peer * block, block, ncclFloat, peer, r.comm, r.stream));
                }
        }
    }
    NCCL(ncclGroupEnd());
}

void finish(const std::vector<Rank>& ranks) {
    for (const Rank& r : ranks) CUDA(cudaStreamSynchronize(r.stream));
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: nccl_perf COLLECTIVE [-g RANKS] [-b BYTES] [-e BYTES] [-f FACTOR] [-n ITERS] [-w WARMUP] [-c CHECK]\n");
        return 2;
    }
    int kind = 0;
    while (kind < 5 && strcmp(argv[1], NAMES[kind]) != 0) kind++;
    if (kind == 5) {
        fprintf(stderr, "nccl_perf: unknown collective %s\n", argv[1]);
        return 2;
    }
    int n = 2, iters = 20, warmup = 5, check = 1;
    size_t least = 4096, most = 4096, factor = 4;
    for (int i = 2; i + 1 < argc; i += 2) {
        const unsigned long long value = strtoull(argv[i + 1], nullptr, 10);
        switch (argv[i][1]) {
            case 'g': n = int(value); break;
            case 'b': least = value; break;
            case 'e': most = value; break;
            case 'f': factor = value; break;
            case 'n': iters = int(value); break;
            case 'w': warmup = int(value); break;
            case 'c': check = int(value); break;
            default: fprintf(stderr, "nccl_perf: unknown flag %s\n", argv[i]); return 2;
        }
    }
    if (n < 1 || iters < 1 || factor < 2 || least < 4) {
        fprintf(stderr, "nccl_perf: -g and -n take 1 or more, -f 2 or more, -b 4 or more\n");
        return 2;
    }
    int version;
    NCCL(ncclGetVersion(&version));
    if (version < 23003) {
        fprintf(stderr, "nccl_perf: NCCL %d takes one rank of a communicator for each device; 2.30.3 or newer is needed\n", version);
        return 3;
    }
    CUDA(cudaSetDevice(0));
    ncclUniqueId id;
    NCCL(ncclGetUniqueId(&id));
    std::vector<Rank> ranks(n);
    NCCL(ncclGroupStart());
    for (int r = 0; r < n; r++) NCCL(ncclCommInitRank(&ranks[r].comm, n, id, r));
    NCCL(ncclGroupEnd());
    const bool split = kind == ALL_GATHER || kind == REDUCE_SCATTER || kind == ALL_TO_ALL;
    for (Rank& r : ranks) {
        CUDA(cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking));
        CUDA(cudaMalloc(&r.send, most));
        CUDA(cudaMalloc(&r.recv, most));
    }
    unsigned long long* wrong;
    CUDA(cudaMalloc(&wrong, sizeof *wrong));
    printf("# nccl_perf nccl-library=%d %s ranks %d in one process on device 0\n", version, NAMES[kind], n);
    for (size_t size = least; size <= most; size *= factor) {
        const size_t block = split ? size / 4 / n / 4 * 4 : size / 4;
        const size_t bytes = split ? block * n * 4 : block * 4;
        for (int r = 0; r < n; r++) {
            fill<<<256, 256, 0, ranks[r].stream>>>(ranks[r].send, kind == REDUCE_SCATTER || kind == ALL_TO_ALL ? block * n : block, r);
            CUDA(cudaMemsetAsync(ranks[r].recv, 0xA5, most, ranks[r].stream));
        }
        for (int i = 0; i < warmup; i++) queue(Kind(kind), ranks, block);
        finish(ranks);
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < iters; i++) queue(Kind(kind), ranks, block);
        finish(ranks);
        const double us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / iters;
        unsigned long long found = 0;
        CUDA(cudaMemset(wrong, 0, sizeof *wrong));
        for (int r = 0; check && r < n; r++) compare<<<256, 256, 0, ranks[r].stream>>>(ranks[r].recv, block, kind, r, n, wrong);
        finish(ranks);
        CUDA(cudaMemcpy(&found, wrong, sizeof found, cudaMemcpyDeviceToHost));
        const double gbs = bytes / us / 1e3;
        const double bus = gbs * (kind == ALL_REDUCE ? 2.0 * (n - 1) / n : split ? double(n - 1) / n : 1.0);
        printf("%12zu  %12zu  %8s  %6s  %6d  %7.2f  %6.2f  %6.2f  %6llu\n", bytes, block, "float",
               kind == ALL_REDUCE || kind == REDUCE_SCATTER ? "sum" : "none", kind == BROADCAST ? 0 : -1, us, gbs, bus, found);
        fflush(stdout);
        if (found != 0) return 1;
    }
    return 0;
}
