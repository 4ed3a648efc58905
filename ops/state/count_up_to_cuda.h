/* SPDX-License-Identifier: Apache-2.0
 *
 * CountUpTo: a variable's value, which is then one more.
 */
#ifndef TF_OPS_STATE_COUNT_UP_TO_CUDA_H
#define TF_OPS_STATE_COUNT_UP_TO_CUDA_H

#include "ops/device/launch_cuda.h"

/* FAULT_LIMIT where the value has reached the limit. Then, and in a step that has failed before,
 * nothing is changed. */
struct cuda_count_up_to {
    enum cuda_type type; /* CUDA_INT32, CUDA_INT64 */
    int64_t limit;
    void *value, *out;
    struct cuda_fault fault;
};

CUDA_C int cuda_count_up_to(const struct cuda_count_up_to *call, struct CUstream_st *stream);

#endif
