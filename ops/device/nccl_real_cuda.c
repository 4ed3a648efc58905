/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL, of the version that this was built with, in communicators whose calls do not block.
 */
#include "ops/device/nccl_cuda.h"

#include <string.h>

#include "ops/device/library_real_cuda.h"

#if __has_include(<nccl.h>)
#include <nccl.h>

_Static_assert((int)ncclInProgress == CUDA_NCCL_IN_PROGRESS, "the header has another number");
_Static_assert(sizeof(ncclUniqueId) == COMMUNICATOR_ID_BYTES, "ids have another size");

#define FUNCTIONS(X)                                                                               \
    X(version, ncclGetVersion)                                                                     \
    X(id, ncclGetUniqueId)                                                                         \
    X(open, ncclCommInitRankConfig)                                                                \
    X(state, ncclCommGetAsyncError)                                                                \
    X(add, ncclAllReduce)                                                                          \
    X(abort, ncclCommAbort)                                                                        \
    X(text, ncclGetErrorString)

CUDA_LIBRARY(nccl, FUNCTIONS, "sums among GPUs", CUDA_LIBRARY_FILE("nccl", NCCL_MAJOR))

CUDA_LIBRARY_ERRORS(nccl, ncclResult_t)

static int version(int *number)
{
    return (int)nccl.version(number);
}

static int make_id(char id[COMMUNICATOR_ID_BYTES])
{
    return (int)nccl.id((ncclUniqueId *)id);
}

static int open_group(void **communicator, const struct communicator_place *place)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;
    config.blocking = 0;
    memcpy(&id, place->id, sizeof id);
    return (int)nccl.open((ncclComm_t *)communicator, place->n, id, place->rank, &config);
}

static int state(void *communicator, int *status)
{
    ncclResult_t found = ncclSuccess, asked = nccl.state(communicator, &found);
    *status = (int)found;
    return (int)asked;
}

static int add(void *communicator, const struct communicator_sum *sum, struct CUstream_st *stream)
{
    static const ncclDataType_t types[] = {
        [FLOAT32] = ncclFloat32, [FLOAT64] = ncclFloat64, [INT32] = ncclInt32, [INT64] = ncclInt64};
    return (int)nccl.add(sum->from, sum->to, (size_t)sum->count, types[sum->type],
                         sum->mean ? ncclAvg : ncclSum, communicator, stream);
}

static int abort_group(void *communicator)
{
    return (int)nccl.abort(communicator);
}

const struct cuda_nccl cuda_nccl_real = {
    .calls = {.name = "NCCL", .load = load, .error_text = error_text},
    .version = version,
    .id = make_id,
    .open = open_group,
    .state = state,
    .add = add,
    .abort = abort_group};
#else
CUDA_LIBRARY_ABSENT(cuda_nccl, "sums among GPUs", "nccl.h");
#endif
