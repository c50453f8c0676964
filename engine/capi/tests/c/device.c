/* Ranks as processes on one GPU, through the C interface alone: `device RANKS [COUNT]`. Every collective, groups, several streams, a
 * made reduction, a split, an abort; then ranks of one process in groups, and a graph of one. Every element is compared. Prints a line for each; exits with the number of failures.
 * The CUDA driver is loaded by name, so that no CUDA header or library is needed to build this. */
#define _DEFAULT_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "interface.h"

typedef int (*Function)();
static void *driver;

static int cu(const char *name, Function *found) {
  *(void **)found = dlsym(driver, name);
  if (!*found) { fprintf(stderr, "the CUDA driver has no %s\n", name); exit(99); }
  return 0;
}

/* Calls a driver function and ends this rank when it fails. */
#define CU(name, ...) do { \
    Function f; int r; cu(#name, &f); \
    if ((r = f(__VA_ARGS__)) != 0) { printf("rank %d: %s gave %d\n", rank, #name, r); exit(99); } \
  } while (0)

typedef struct { volatile int ready; ncclUniqueId id[3]; } Shared;

static int rank, ranks, failures;
static size_t count;
static float *host;
static unsigned long long input, output;
static cudaStream_t streams[2];
static ncclComm_t comm;

/* Small whole numbers: sums of them are exact in any order. */
static float value(int of, size_t at) { return (float)((of * 7 + at * 3) % 32); }

static float sum(size_t at, int from, int to, int step) {
  float all = 0;
  for (int r = from; r < to; r += step) all += value(r, at);
  return all;
}

static void fill(size_t elements) {
  for (size_t i = 0; i < elements; i++) host[i] = value(rank, i);
  CU(cuMemcpyHtoD_v2, input, host, elements * sizeof(float));
  memset(host, 0xff, elements * sizeof(float));
  CU(cuMemcpyHtoD_v2, output, host, elements * sizeof(float));
}

static void finish(void) {
  for (int s = 0; s < 2; s++) CU(cuStreamSynchronize, streams[s]);
}

static void fetch(unsigned long long from, size_t elements) {
  finish();
  CU(cuMemcpyDtoH_v2, host, from, elements * sizeof(float));
}

static int worked(const char *what, ncclResult_t result) {
  if (result == ncclSuccess) return 1;
  printf("rank %d: %s gave %d: %s\n", rank, what, result, ncclGetLastError(comm));
  failures++;
  return 0;
}

static void report(const char *what, size_t wrong, size_t first) {
  if (wrong) {
    printf("rank %d: %s has %zu wrong elements, the first at %zu: %g\n", rank, what, wrong, first, host[first]);
    failures++;
  } else if (rank == 0) {
    printf("%s: ok\n", what);
  }
}

/* Compares `elements` of `host` with an expression of `i`. */
#define COMPARE(what, elements, expected) do { \
    size_t wrong = 0, first = 0; \
    for (size_t i = 0; i < (elements); i++) if (host[i] != (expected)) { if (!wrong++) first = i; } \
    report(what, wrong, first); \
  } while (0)

#define IN ((const void *)input)
#define OUT ((void *)output)

static void collectives(void) {
  size_t all = count * ranks, root = ranks - 1;
  fill(all);
  if (worked("all-reduce", ncclAllReduce(IN, OUT, count, ncclFloat, ncclSum, comm, streams[0]))) {
    fetch(output, count);
    COMPARE("all-reduce", count, sum(i, 0, ranks, 1));
  }
  fill(all);
  if (worked("all-reduce in place", ncclAllReduce(IN, (void *)input, count, ncclFloat, ncclSum, comm, NULL))) {
    CU(cuCtxSynchronize);
    fetch(input, count);
    COMPARE("all-reduce in place on the default stream", count, sum(i, 0, ranks, 1));
  }
  fill(all);
  if (worked("reduce", ncclReduce(IN, OUT, count, ncclFloat, ncclSum, (int)root, comm, streams[0])) && rank == (int)root) {
    fetch(output, count);
    COMPARE("reduce", count, sum(i, 0, ranks, 1));
  }
  fill(all);
  if (worked("broadcast", ncclBroadcast(IN, OUT, count, ncclFloat, (int)root, comm, streams[0]))) {
    fetch(output, count);
    COMPARE("broadcast", count, value((int)root, i));
  }
  fill(all);
  if (worked("all-gather", ncclAllGather(IN, OUT, count, ncclFloat, comm, streams[0]))) {
    fetch(output, all);
    COMPARE("all-gather", all, value((int)(i / count), i % count));
  }
  fill(all);
  if (worked("reduce-scatter", ncclReduceScatter(IN, OUT, count, ncclFloat, ncclSum, comm, streams[0]))) {
    fetch(output, count);
    COMPARE("reduce-scatter", count, sum(rank * count + i, 0, ranks, 1));
  }
  fill(all);
  if (worked("all-to-all", ncclAlltoAll(IN, OUT, count, ncclFloat, comm, streams[0]))) {
    fetch(output, all);
    COMPARE("all-to-all", all, value((int)(i / count), rank * count + i % count));
  }
  fill(all);
  if (worked("gather", ncclGather(IN, OUT, count, ncclFloat, 0, comm, streams[0])) && rank == 0) {
    fetch(output, all);
    COMPARE("gather", all, value((int)(i / count), i % count));
  }
  fill(all);
  if (worked("scatter", ncclScatter(IN, OUT, count, ncclFloat, 0, comm, streams[0]))) {
    fetch(output, count);
    COMPARE("scatter", count, value(0, rank * count + i));
  }
  finish();
}

static void groups(void) {
  int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
  ncclRedOp_t op;
  float factor = 2;
  fill(count);
  ncclGroupStart();
  ncclSend(IN, count, ncclFloat, next, comm, streams[0]);
  ncclRecv(OUT, count, ncclFloat, before, comm, streams[0]);
  if (worked("send and receive", ncclGroupEnd())) {
    fetch(output, count);
    COMPARE("send and receive", count, value(before, i));
  }
  fill(count);
  ncclGroupStart();
  ncclSend(IN, count, ncclFloat, next, comm, streams[0]);
  ncclRecv(OUT, count, ncclFloat, before, comm, streams[1]);
  if (worked("a group on two streams", ncclGroupEnd())) {
    fetch(output, count);
    COMPARE("a group on two streams", count, value(before, i));
  }
  if (count >= 3) {
    size_t third = count / 3;
    fill(count);
    ncclGroupStart();
    for (int part = 0; part < 3; part++)
      ncclAllReduce((const char *)IN + part * third * 4, (char *)OUT + part * third * 4, third, ncclFloat, ncclSum, comm, streams[0]);
    if (worked("three all-reduces in a group", ncclGroupEnd())) {
      fetch(output, 3 * third);
      COMPARE("three all-reduces in a group", 3 * third, sum(i, 0, ranks, 1));
    }
  }
  fill(count);
  if (worked("a made reduction", ncclRedOpCreatePreMulSum(&op, &factor, ncclFloat, 1, comm))) {
    if (worked("a sum times two", ncclAllReduce(IN, OUT, count, ncclFloat, op, comm, streams[0]))) {
      fetch(output, count);
      COMPARE("a sum times two", count, 2 * sum(i, 0, ranks, 1));
    }
    worked("destroying a reduction", ncclRedOpDestroy(op, comm));
  }
  finish();
}

static void split(void) {
  ncclComm_t half = NULL;
  int step = ranks > 1 ? 2 : 1;
  if (!worked("split", ncclCommSplit(comm, rank % 2, -rank, &half, NULL))) return;
  fill(count);
  if (worked("all-reduce of a half", ncclAllReduce(IN, OUT, count, ncclFloat, ncclSum, half, streams[0]))) {
    fetch(output, count);
    COMPARE("all-reduce of a half", count, sum(i, rank % 2, ranks, step));
  }
  finish();
  worked("destroying a half", ncclCommDestroy(half));
}

/* Buffers that all ranks have mapped. With `of` a communicator that ends here: a rank frees its buffer although it is registered. */
static void registered(ncclComm_t of) {
  unsigned long long kept[2] = {input, output};
  size_t bytes = count * ranks * sizeof(float) + 16;
  void *memory[2] = {NULL, NULL}, *windows[2] = {NULL, NULL};
  for (int b = 0; b < 2; b++) {
    if (!worked("memory", ncclMemAlloc(&memory[b], bytes))) return;
    if (!worked("a window", ncclCommWindowRegister(of, memory[b], bytes, &windows[b], NCCL_WIN_COLL_SYMMETRIC))) return;
  }
  input = (unsigned long long)memory[0];
  output = (unsigned long long)memory[1];
  fill(count * ranks);
  if (worked("all-reduce of windows", ncclAllReduce(IN, OUT, count, ncclFloat, ncclSum, of, streams[0]))) {
    fetch(output, count);
    COMPARE("all-reduce of windows", count, sum(i, 0, ranks, 1));
  }
  fill(count * ranks);
  if (worked("reduce-scatter in place", ncclReduceScatter(IN, (float *)input + rank * count, count, ncclFloat, ncclSum, of, streams[0]))) {
    fetch(input + rank * count * sizeof(float), count);
    COMPARE("reduce-scatter of a window in place", count, sum(rank * count + i, 0, ranks, 1));
  }
  if (of != comm) {
    int state = ncclSuccess, last = rank == ranks - 1;
    if (last && ranks > 1) {
      worked("freeing", ncclMemFree(memory[1]));
      if (ncclAllReduce(IN, OUT, count, ncclFloat, ncclSum, of, streams[0]) == ncclSuccess) {
        printf("rank %d: memory that was freed was used\n", rank);
        failures++;
      } else printf("freed while registered: %s\n", ncclGetLastError(of));
    }
    for (int i = 0; i < 2000 && ranks > 1 && state == ncclSuccess; i++) {
      usleep(10000);
      worked("asking for the state", ncclCommGetAsyncError(of, &state));
    }
    if (ranks > 1 && state == ncclSuccess) { printf("rank %d: a freed window was not noticed\n", rank); failures++; }
  } else {
    for (int b = 0; b < 2; b++) {
      worked("the end of a window", ncclCommWindowDeregister(of, windows[b]));
      worked("freeing", ncclMemFree(memory[b]));
    }
    if (ncclCommWindowDeregister(of, windows[0]) == ncclSuccess) { printf("rank %d: a window ended twice\n", rank); failures++; }
  }
  input = kept[0];
  output = kept[1];
}

static void free_badly(const Shared *shared) {
  ncclComm_t third = NULL;
  if (!worked("a third communicator", ncclCommInitRank(&third, ranks, shared->id[2], rank))) return;
  registered(third);
  worked("aborting what has failed", ncclCommAbort(third));
}

static void end_badly(const Shared *shared) {
  ncclComm_t second = NULL;
  int state = ncclSuccess;
  if (!worked("a second communicator", ncclCommInitRank(&second, ranks, shared->id[1], rank))) return;
  if (rank == ranks - 1) {
    worked("abort", ncclCommAbort(second));
    return;
  }
  /* The others learn it without asking for anything. */
  for (int i = 0; i < 2000 && state == ncclSuccess; i++) {
    usleep(10000);
    worked("asking for the state", ncclCommGetAsyncError(second, &state));
  }
  if (state == ncclSuccess) { printf("rank %d: an abort was not noticed\n", rank); failures++; }
  else if (rank == 0) printf("an abort elsewhere: %d, %s\n", state, ncclGetLastError(second));
  worked("aborting what has failed", ncclCommAbort(second));
}

static int run(Shared *shared) {
  void *context;
  int device;
  driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!driver) { printf("there is no CUDA driver\n"); return 99; }
  CU(cuInit, 0);
  CU(cuDeviceGet, &device, 0);
  CU(cuDevicePrimaryCtxRetain, &context, device);
  CU(cuCtxSetCurrent, context);
  for (int s = 0; s < 2; s++) CU(cuStreamCreate, &streams[s], 1);
  CU(cuMemAlloc_v2, &input, count * ranks * sizeof(float) + 16);
  CU(cuMemAlloc_v2, &output, count * ranks * sizeof(float) + 16);
  host = malloc(count * ranks * sizeof(float) + 16);
  if (rank == 0) {
    for (int i = 0; i < 3; i++) if (!worked("making an id", ncclGetUniqueId(&shared->id[i]))) exit(99);
    __atomic_store_n(&shared->ready, 1, __ATOMIC_RELEASE);
  }
  while (!__atomic_load_n(&shared->ready, __ATOMIC_ACQUIRE)) usleep(1000);
  if (!worked("init", ncclCommInitRank(&comm, ranks, shared->id[0], rank))) return failures;
  collectives();
  groups();
  split();
  registered(comm);
  worked("finalize", ncclCommFinalize(comm));
  worked("destroy", ncclCommDestroy(comm));
  end_badly(shared);
  free_badly(shared);
  return failures;
}

/* All ranks of a communicator in this process, called by one thread. */
#define HERE 4

static ncclComm_t local[HERE];
static cudaStream_t queues[HERE];
static unsigned long long inputs[HERE], outputs[HERE];

static void fill_all(size_t elements) {
  for (rank = 0; rank < HERE; rank++) {
    input = inputs[rank];
    output = outputs[rank];
    fill(elements);
  }
  rank = 0;
}

static void fetch_all(int of, size_t elements) {
  for (int r = 0; r < HERE; r++) CU(cuStreamSynchronize, queues[r]);
  CU(cuMemcpyDtoH_v2, host, outputs[of], elements * sizeof(float));
}

static ncclResult_t reduce_all(cudaStream_t only) {
  ncclGroupStart();
  for (int r = 0; r < HERE; r++)
    ncclAllReduce((void *)inputs[r], (void *)outputs[r], count, ncclFloat, ncclSum, local[r], only ? only : queues[r]);
  return ncclGroupEnd();
}

static void graph_of_a_group(void) {
  void *graph = NULL, *runnable = NULL;
  fill_all(count);
  CU(cuStreamBeginCapture_v2, queues[0], 1);
  worked("recording a group", reduce_all(queues[0]));
  CU(cuStreamEndCapture, queues[0], &graph);
  CU(cuGraphInstantiateWithFlags, &runnable, graph, 0ull);
  for (int run = 0; run < 100; run++) CU(cuGraphLaunch, runnable, queues[0]);
  for (int r = 0; r < HERE; r++) {
    fetch_all(r, count);
    COMPARE("a graph of a group run 100 times", count, sum(i, 0, HERE, 1));
  }
  CU(cuGraphExecDestroy, runnable);
  CU(cuGraphDestroy, graph);
}

static int together(void) {
  int device, devices[HERE] = {0};
  void *context;
  size_t bytes = count * HERE * sizeof(float) + 16;
  rank = 0;
  driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!driver) { printf("there is no CUDA driver\n"); return 99; }
  CU(cuInit, 0);
  CU(cuDeviceGet, &device, 0);
  CU(cuDevicePrimaryCtxRetain, &context, device);
  CU(cuCtxSetCurrent, context);
  for (int s = 0; s < 2; s++) CU(cuStreamCreate, &streams[s], 1);
  for (int r = 0; r < HERE; r++) {
    CU(cuStreamCreate, &queues[r], 1);
    CU(cuMemAlloc_v2, &inputs[r], bytes);
    CU(cuMemAlloc_v2, &outputs[r], bytes);
  }
  host = malloc(bytes);
  if (!worked("ranks of one process", ncclCommInitAll(local, HERE, devices))) return failures;
  comm = local[0];
  fill_all(count);
  if (worked("a group of all ranks", reduce_all(NULL)))
    for (int r = 0; r < HERE; r++) {
      fetch_all(r, count);
      COMPARE("a group of all ranks", count, sum(i, 0, HERE, 1));
    }
  fill_all(count);
  ncclGroupStart();
  for (int r = 0; r < HERE; r++) {
    ncclAllGather((void *)inputs[r], (void *)outputs[r], count, ncclFloat, local[r], queues[r]);
    /* To where the all-gather reads nothing and writes nothing. */
    ncclSend((void *)inputs[r], count, ncclFloat, (r + 1) % HERE, local[r], queues[r]);
    ncclRecv((char *)inputs[r] + count * sizeof(float), count, ncclFloat, (r + HERE - 1) % HERE, local[r], queues[r]);
  }
  if (worked("a group of collectives and messages", ncclGroupEnd()))
    for (int r = 0; r < HERE; r++) {
      fetch_all(r, count * HERE);
      COMPARE("an all-gather beside messages", count * HERE, value((int)(i / count), i % count));
      CU(cuMemcpyDtoH_v2, host, inputs[r] + count * sizeof(float), count * sizeof(float));
      COMPARE("messages beside an all-gather", count, value((r + HERE - 1) % HERE, i));
    }
  graph_of_a_group();
  ncclGroupStart();
  for (int r = 0; r < HERE; r++) ncclCommDestroy(local[r]);
  worked("destroying all", ncclGroupEnd());
  return failures;
}

int main(int argc, char **argv) {
  int bad = 0, status;
  Shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ranks = argc > 1 ? atoi(argv[1]) : 2;
  count = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
  setvbuf(stdout, NULL, _IOLBF, 0);
  /* Before anything of CUDA or of the library: neither survives a fork. */
  for (rank = 0; rank < ranks; rank++)
    if (fork() == 0) _exit(run(shared));
  for (int i = 0; i < ranks; i++) {
    wait(&status);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) bad++;
  }
  if (fork() == 0) _exit(together());
  wait(&status);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) { printf("ranks of one process failed\n"); bad++; }
  printf("%d of %d ranks failed\n", bad, ranks);
  return bad;
}
