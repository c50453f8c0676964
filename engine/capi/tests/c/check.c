/* A program as a user would write it, without a GPU in mind: every wrong call must be an error with words, and none may crash.
 * Prints what fails; exits with the number of failures. */
#include <stdio.h>
#include <string.h>

#include "interface.h"

static int failures;

static void expect(int line, const char *call, int got, int wanted, const char *word, ncclComm_t comm) {
  const char *text = ncclGetLastError(comm);
  if (got != wanted || text == NULL || (word != NULL && strstr(text, word) == NULL)) {
    printf("line %d: %s gave %d (%s), wanted %d with `%s`\n", line, call, got, text ? text : "null", wanted, word ? word : "");
    failures++;
  }
}

#define EXPECT(call, wanted, word) expect(__LINE__, #call, (call), (wanted), (word), NULL)

/* Every function that takes a communicator, with this one. */
static void refused(ncclComm_t comm, const char *word) {
  int n;
  float x = 1;
  ncclRedOp_t op;
  void *handle;
  ncclComm_t new;
  EXPECT(ncclCommCount(comm, &n), ncclInvalidArgument, word);
  EXPECT(ncclCommCuDevice(comm, &n), ncclInvalidArgument, word);
  EXPECT(ncclCommUserRank(comm, &n), ncclInvalidArgument, word);
  EXPECT(ncclCommGetAsyncError(comm, &n), ncclInvalidArgument, word);
  EXPECT(ncclCommSplit(comm, 0, 0, &new, NULL), ncclInvalidArgument, word);
  EXPECT(ncclCommRegister(comm, &x, 4, &handle), ncclInvalidArgument, word);
  EXPECT(ncclCommDeregister(comm, &x), ncclInvalidArgument, word);
  EXPECT(ncclRedOpCreatePreMulSum(&op, &x, ncclFloat, 1, comm), ncclInvalidArgument, word);
  EXPECT(ncclRedOpDestroy(7, comm), ncclInvalidArgument, word);
  EXPECT(ncclAllReduce(&x, &x, 1, ncclFloat, ncclSum, comm, NULL), ncclInvalidArgument, word);
  EXPECT(pncclAllReduce(&x, &x, 1, ncclFloat, ncclSum, comm, NULL), ncclInvalidArgument, word);
  EXPECT(ncclReduce(&x, &x, 1, ncclFloat, ncclSum, 0, comm, NULL), ncclInvalidArgument, word);
  EXPECT(ncclBcast(&x, 1, ncclFloat, 0, comm, NULL), ncclInvalidArgument, word);
  EXPECT(ncclBroadcast(&x, &x, 1, ncclFloat, 0, comm, NULL), ncclInvalidArgument, word);
  EXPECT(ncclReduceScatter(&x, &x, 1, ncclFloat, ncclSum, comm, NULL), ncclInvalidArgument, word);
  EXPECT(ncclAllGather(&x, &x, 1, ncclFloat, comm, NULL), ncclInvalidArgument, word);
  EXPECT(ncclSend(&x, 1, ncclFloat, 0, comm, NULL), ncclInvalidArgument, word);
  EXPECT(ncclRecv(&x, 1, ncclFloat, 0, comm, NULL), ncclInvalidArgument, word);
}

int main(void) {
  int version = 0, stranger = 0, code;
  ncclUniqueId id, damaged;
  ncclComm_t comm = (ncclComm_t)&stranger;
  ncclConfig_t config = CONFIG_INITIALIZER, wrong = CONFIG_INITIALIZER;
  ncclSimInfo_t simulated = {sizeof simulated, 0x74685283, 22203, -1};

  EXPECT(ncclGetVersion(&version), ncclSuccess, NULL);
  if (version != 22203) { printf("version %d\n", version); failures++; }
  EXPECT(ncclGetVersion(NULL), ncclInvalidArgument, "null pointer");
  for (code = -1; code < 10; code++)
    if (strlen(ncclGetErrorString(code)) == 0) { printf("no text for %d\n", code); failures++; }

  refused(NULL, "null");
  refused((ncclComm_t)&stranger, "no communicator");
  /* Ending what does not exist is nothing for null, an error for a stranger. */
  EXPECT(ncclCommDestroy(NULL), ncclSuccess, NULL);
  EXPECT(ncclCommAbort(NULL), ncclSuccess, NULL);
  EXPECT(ncclCommFinalize(NULL), ncclSuccess, NULL);
  EXPECT(ncclCommDestroy((ncclComm_t)&stranger), ncclInvalidArgument, "no communicator");
  EXPECT(ncclCommAbort((ncclComm_t)&stranger), ncclInvalidArgument, "no communicator");
  EXPECT(ncclCommFinalize((ncclComm_t)&stranger), ncclInvalidArgument, "no communicator");

  EXPECT(ncclGetUniqueId(NULL), ncclInvalidArgument, "null pointer");
  EXPECT(ncclGetUniqueId(&id), ncclSuccess, NULL);
  memset(&damaged, 0, sizeof damaged);
  EXPECT(ncclCommInitRank(&comm, 1, damaged, 0), ncclInvalidArgument, "all 128 bytes are 0");
  if (comm != NULL) { printf("a refused communicator is not null\n"); failures++; }
  damaged = id;
  damaged.internal[40] ^= 1;
  EXPECT(ncclCommInitRank(&comm, 1, damaged, 0), ncclInvalidArgument, "checksum");
  EXPECT(ncclCommInitRank(NULL, 1, id, 0), ncclInvalidArgument, "null pointer");
  EXPECT(ncclCommInitRank(&comm, 1, id, 1), ncclInvalidArgument, "rank 1 of 1");
  EXPECT(ncclCommInitRank(&comm, 0, id, 0), ncclInvalidArgument, "rank 0 of 0");
  EXPECT(ncclCommInitRank(&comm, 2, id, -1), ncclInvalidArgument, "rank -1 of 2");
  EXPECT(ncclCommInitRank(&comm, 65, id, 0), ncclInvalidArgument, "at most 64");
  EXPECT(ncclCommInitRank(&comm, 2147483647, id, 2147483646), ncclInvalidArgument, "at most 64");
  EXPECT(ncclCommInitRank(&comm, -2147483647 - 1, id, -2147483647 - 1), ncclInvalidArgument, "rank -2147483648 of");
  wrong.magic = 1;
  EXPECT(ncclCommInitRankConfig(&comm, 1, id, 0, &wrong), ncclInvalidArgument, "NCCL_CONFIG_INITIALIZER");
  wrong = config;
  wrong.maxCTAs = -5;
  EXPECT(ncclCommInitRankConfig(&comm, 1, id, 0, &wrong), ncclInvalidArgument, "maxCTAs is -5");
  EXPECT(ncclCommInitAll(NULL, 1, NULL), ncclInvalidArgument, "null pointer");
  EXPECT(ncclCommInitAll(&comm, 0, NULL), ncclInvalidArgument, "at least one");
  EXPECT(ncclCommInitAll(&comm, -1, NULL), ncclInvalidArgument, "at least one");
  EXPECT(ncclCommInitAll(&comm, 2147483647, NULL), ncclInvalidArgument, "at most 64 ranks");
  EXPECT(ncclMemAlloc(NULL, 4), ncclInvalidArgument, "null pointer");
  EXPECT(ncclMemFree(NULL), ncclSuccess, NULL);

  EXPECT(ncclGroupEnd(), ncclInvalidUsage, "no group is open");
  EXPECT(ncclGroupStart(), ncclSuccess, NULL);
  EXPECT(ncclGroupEnd(), ncclSuccess, NULL);
  EXPECT(ncclGroupStart(), ncclSuccess, NULL);
  EXPECT(ncclAllReduce(&version, &version, 1, ncclFloat, ncclSum, NULL, NULL), ncclInvalidArgument, "null");
  EXPECT(ncclGroupEnd(), ncclInvalidArgument, "ncclGroupEnd: the communicator is null");
  EXPECT(ncclGroupEnd(), ncclInvalidUsage, "no group is open");
  EXPECT(ncclGroupStart(), ncclSuccess, NULL);
  EXPECT(ncclGroupSimulateEnd(&simulated), ncclSuccess, NULL);
  failures += simulated.estimatedTime != 0;
  EXPECT(ncclGroupSimulateEnd(&simulated), ncclInvalidUsage, "no group is open");
  EXPECT(ncclGroupStart(), ncclSuccess, NULL);
  EXPECT(ncclGroupSimulateEnd(NULL), ncclInvalidArgument, "simInfo");
  simulated.magic = 1;
  EXPECT(ncclGroupStart(), ncclSuccess, NULL);
  EXPECT(ncclGroupSimulateEnd(&simulated), ncclInvalidArgument, "NCCL_SIM_INFO_INITIALIZER");
  EXPECT(ncclGroupEnd(), ncclInvalidUsage, "no group is open");

  /* Groups within groups: the outermost tells the first fault, once, and what follows starts afresh. */
  EXPECT(ncclGroupStart(), ncclSuccess, NULL);
  EXPECT(ncclGroupStart(), ncclSuccess, NULL);
  EXPECT(ncclCommDestroy((ncclComm_t)&stranger), ncclInvalidArgument, "no communicator");
  EXPECT(ncclCommAbort((ncclComm_t)&stranger), ncclInvalidArgument, "no communicator");
  EXPECT(ncclCommInitRank(&comm, 65, id, 0), ncclInvalidArgument, "at most 64");
  EXPECT(ncclGroupEnd(), ncclSuccess, NULL);
  EXPECT(ncclGroupEnd(), ncclInvalidArgument, "no communicator");
  EXPECT(ncclGroupStart(), ncclSuccess, NULL);
  EXPECT(ncclGroupEnd(), ncclSuccess, NULL);

  /* With a device this works, without one it says so. */
  code = ncclCommInitRank(&comm, 1, id, 0);
  if (code == ncclSuccess) {
    int rank = -1;
    EXPECT(ncclCommUserRank(comm, &rank), ncclSuccess, NULL);
    EXPECT(ncclAllReduce(NULL, NULL, 0, ncclFloat, ncclSum, comm, NULL), ncclSuccess, NULL);
    EXPECT(ncclAllReduce(NULL, NULL, 4, ncclFloat, ncclSum, comm, NULL), ncclInvalidArgument, "null pointer");
    EXPECT(ncclBcast(&version, 4, ncclFloat, 1, comm, NULL), ncclInvalidArgument, "root 1 does not exist");
    EXPECT(ncclAllReduce(&version, &version, 4, 99, ncclSum, comm, NULL), ncclInvalidArgument, "no data type 99");
    EXPECT(ncclAllReduce(&version, &version, 4, ncclFloat, 4000, comm, NULL), ncclInvalidArgument, "no reduction 4000");
    EXPECT(ncclCommDestroy(comm), ncclSuccess, NULL);
    refused(comm, "no communicator");
    printf("with a device\n");
  } else {
    const char *text = ncclGetLastError(NULL);
    if (comm != NULL || strlen(text) < 20) { printf("init gave %d, %p, `%s`\n", code, (void *)comm, text); failures++; }
    printf("without a device: %s\n", text);
  }
  printf("%d failures\n", failures);
  return failures > 100 ? 100 : failures;
}
