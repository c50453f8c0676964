/* Times one collective of an MPI library in the manner of nccl-tests and prints its table's lines (see README.md).
 *
 * Build: mpicc -O2 -o mpi_perf mpi_perf.c        Run: mpirun -np 2 ./mpi_perf all_reduce -b 8 -e 1048576 -f 2 -n 100 -w 5 -c 1
 *
 * Time is the host's clock over -n back-to-back executions divided by -n, averaged over ranks, after a barrier. Inputs are small whole
 * numbers, so that a sum of floats is exact in any order and the check has tolerance 0. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, ALL_TO_ALL };
static const char *const names[] = {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all"};

static int rank, ranks;

/* A block is the unit that each rank contributes or receives; `bytes` is the larger of a rank's two buffers. */
struct shape { size_t block, in, out; };

static struct shape shape_of(enum kind kind, size_t bytes) {
    size_t elems = bytes / sizeof(float), n = (size_t)ranks, part = elems / n / 4 * 4;
    switch (kind) {
    case ALL_GATHER: return (struct shape){part, part, part * n};
    case REDUCE_SCATTER: return (struct shape){part, part * n, part};
    case ALL_TO_ALL: return (struct shape){part, part * n, part * n};
    default: return (struct shape){elems, elems, elems};
    }
}

static void must(int code, const char *what) {
    if (code == MPI_SUCCESS) return;
    fprintf(stderr, "mpi_perf: rank %d: %s failed with code %d\n", rank, what, code);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static float input(int of, size_t i) { return (float)((i * 7 + (size_t)of * 13) % 101) - 50.0f; }

static void fill(float *to, size_t from, size_t len) {
    for (size_t i = 0; i < len; i++) to[i] = input(rank, from + i);
}

static float expected(enum kind kind, struct shape s, size_t i) {
    float sum = 0;
    switch (kind) {
    case ALL_GATHER: return input((int)(i / s.block), i % s.block);
    case BROADCAST: return input(0, i);
    case ALL_TO_ALL: return input((int)(i / s.block), (size_t)rank * s.block + i % s.block);
    case REDUCE_SCATTER: i += (size_t)rank * s.block; /* fall through */
    default:
        for (int r = 0; r < ranks; r++) sum += input(r, i);
        return sum;
    }
}

/* In place, `in` and `out` lie in one buffer as MPI wants it. */
static void once(enum kind kind, struct shape s, float *in, float *out, int in_place) {
    MPI_Comm world = MPI_COMM_WORLD;
    const void *src = in_place ? MPI_IN_PLACE : (const void *)in;
    int block = (int)s.block;
    switch (kind) {
    case ALL_REDUCE: must(MPI_Allreduce(src, out, block, MPI_FLOAT, MPI_SUM, world), "MPI_Allreduce"); break;
    case ALL_GATHER: must(MPI_Allgather(src, block, MPI_FLOAT, out, block, MPI_FLOAT, world), "MPI_Allgather"); break;
    case REDUCE_SCATTER:
        must(MPI_Reduce_scatter_block(src, out, block, MPI_FLOAT, MPI_SUM, world), "MPI_Reduce_scatter_block");
        break;
    case BROADCAST: must(MPI_Bcast(out, block, MPI_FLOAT, 0, world), "MPI_Bcast"); break;
    case ALL_TO_ALL: must(MPI_Alltoall(src, block, MPI_FLOAT, out, block, MPI_FLOAT, world), "MPI_Alltoall"); break;
    }
}

static void prepare(enum kind kind, struct shape s, float *in, float *out, int in_place) {
    if (kind == BROADCAST) {
        memset(out, 0xff, s.out * sizeof(float));
        if (rank == 0) fill(out, 0, s.out);
    } else if (!in_place) {
        fill(in, 0, s.in);
        memset(out, 0xff, s.out * sizeof(float));
    } else if (kind == ALL_GATHER) {
        memset(out, 0xff, s.out * sizeof(float));
        fill(out + (size_t)rank * s.block, 0, s.block);
    } else {
        fill(out, 0, s.in);
    }
}

struct result { double us; long long wrong; };

static struct result measure(enum kind kind, struct shape s, float *in, float *out, int in_place, int iters, int warmup, int check) {
    struct result result = {0, 0};
    prepare(kind, s, in, out, in_place);
    for (int i = 0; i < warmup; i++) once(kind, s, in, out, in_place);
    must(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
    double start = MPI_Wtime();
    for (int i = 0; i < iters; i++) once(kind, s, in, out, in_place);
    double us = (MPI_Wtime() - start) * 1e6 / iters, total = 0;
    must(MPI_Allreduce(&us, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD), "MPI_Allreduce");
    result.us = total / ranks;
    for (int i = 0; i < check; i++) {
        long long wrong = 0, sum = 0;
        prepare(kind, s, in, out, in_place);
        once(kind, s, in, out, in_place);
        for (size_t e = 0; e < s.out; e++) wrong += out[e] != expected(kind, s, e);
        must(MPI_Allreduce(&wrong, &sum, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD), "MPI_Allreduce");
        result.wrong += sum;
    }
    return result;
}

static void cells(struct result r, size_t bytes, double factor, int check) {
    double algbw = bytes / 1e3 / r.us;
    printf("  %.3f  %.3f  %.3f  ", r.us, algbw, algbw * factor);
    if (check) printf("%lld", r.wrong);
    else printf("N/A");
}

int main(int argc, char **argv) {
    must(MPI_Init(&argc, &argv), "MPI_Init");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    size_t from = 8, to = 8, factor = 2;
    int iters = 20, warmup = 5, check = 1, kind = -1;
    for (int k = 0; k < 5 && argc > 1; k++)
        if (!strcmp(argv[1], names[k])) kind = k;
    for (int i = 2; i + 1 < argc; i += 2) {
        long long value = atoll(argv[i + 1]);
        switch (argv[i][0] == '-' ? argv[i][1] : 0) {
        case 'b': from = (size_t)value; break;
        case 'e': to = (size_t)value; break;
        case 'f': factor = (size_t)value; break;
        case 'n': iters = (int)value; break;
        case 'w': warmup = (int)value; break;
        case 'c': check = (int)value; break;
        default: kind = -1;
        }
    }
    if (kind < 0 || from < sizeof(float) || factor < 2 || iters < 1) {
        if (rank == 0)
            fprintf(stderr, "usage: mpi_perf all_reduce|all_gather|reduce_scatter|broadcast|all_to_all "
                            "[-b BYTES] [-e BYTES] [-f FACTOR] [-n ITERS] [-w WARMUP] [-c CHECKS]\n");
        MPI_Finalize();
        return 2;
    }
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(version, &length);
    if (rank == 0) printf("# library %.*s\n", (int)strcspn(version, "\n"), version);
    for (size_t bytes = from; bytes <= to; bytes *= factor) {
        struct shape s = shape_of((enum kind)kind, bytes);
        size_t size = (s.in > s.out ? s.in : s.out) * sizeof(float), room = size ? size : 4;
        float *in = malloc(room), *out = malloc(room);
        if (!in || !out) must(MPI_ERR_NO_MEM, "malloc");
        int rooted = kind == BROADCAST, exchange = kind == ALL_TO_ALL;
        double share = (double)(ranks - 1) / ranks;
        double bus = kind == ALL_REDUCE ? 2 * share : rooted ? 1 : share;
        struct result in_place = {0, 0}, out_of_place = {0, 0};
        if (!rooted) out_of_place = measure((enum kind)kind, s, in, out, 0, iters, warmup, check);
        if (!exchange) in_place = measure((enum kind)kind, s, in, out, 1, iters, warmup, check);
        if (rank == 0) {
            printf("%12zu  %12zu  %8s  %6s  %6d", size, s.block, "float", kind == ALL_REDUCE || kind == REDUCE_SCATTER ? "sum" : "none",
                   rooted ? 0 : -1);
            if (rooted) printf("  N/A  N/A  N/A  N/A");
            else cells(out_of_place, size, bus, check);
            if (exchange) printf("  N/A  N/A  N/A  N/A");
            else cells(in_place, size, bus, check);
            printf("\n");
            fflush(stdout);
        }
        free(in);
        free(out);
    }
    must(MPI_Finalize(), "MPI_Finalize");
    return 0;
}
