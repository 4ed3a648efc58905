/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums among GPUs of several processes by NCCL. The library is found by name when a job asks for
 * it. This is included only by files whose names end in _cuda.c, and by the tests' own module,
 * which implements the same calls over shared memory.
 */
#ifndef TF_OPS_DEVICE_NCCL_CUDA_H
#define TF_OPS_DEVICE_NCCL_CUDA_H

#include "exec/device/communicator.h"
#include "ops/device/library_cuda.h"

struct cuda_device;

#define CUDA_NCCL_IN_PROGRESS 7 /* a status: the call is in progress; `state` tells its result */

/* The library functions that are called. Functions that return an int return a ncclResult_t, and do
 * not wait for other members: the call may still be in progress. */
struct cuda_nccl {
    struct cuda_library_calls calls;           /* without handles */
    int (*version)(int *version);              /* 22809: 2.28.9 */
    int (*id)(char id[COMMUNICATOR_ID_BYTES]); /* makes the id of a new group */
    int (*open)(void **communicator, const struct communicator_place *place); /* on the thread's
                                                                                 device */
    int (*state)(void *communicator, int *state); /* of the call in progress, or an error */
    int (*add)(void *communicator, const struct communicator_sum *sum, struct CUstream_st *stream);
    int (*abort)(void *communicator); /* frees it; work in streams ends, with garbage */
};

extern const struct cuda_nccl cuda_nccl_real;

/* The functions for struct device. */
extern const struct communicator_functions cuda_communicators;

#endif
