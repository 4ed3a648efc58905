/* SPDX-License-Identifier: Apache-2.0
 *
 * The launchers of the .cu files of variables, and their arguments.
 */
#ifndef TF_OPS_STATE_LAUNCHERS_CUDA_H
#define TF_OPS_STATE_LAUNCHERS_CUDA_H

#include "ops/device/launch_cuda.h"

/* ---- assign ----
 *
 * Writing whole variables: a value replaces theirs, is added to it, or subtracted. */

enum cuda_assign_op { CUDA_ASSIGN, CUDA_ASSIGN_ADD, CUDA_ASSIGN_SUB };

struct cuda_assign {
    enum cuda_assign_op op;
    enum cuda_type type; /* CUDA_ASSIGN_ADD, CUDA_ASSIGN_SUB: a real one */
    int64_t n;
    const void *from; /* `to`, or does not overlap it */
    void *to;
    const struct fault *fault; /* if set, nothing is changed; NULL: always writes */
};

CUDA_C int cuda_assign(const struct cuda_assign *call, struct CUstream_st *stream);

/* ---- count up to ----
 *
 * CountUpTo: returns a variable's value, and increments it. */

/* FAULT_LIMIT if the value has reached the limit. Then, and if the step has failed before, nothing
 * is changed. */
struct cuda_count_up_to {
    enum cuda_type type; /* CUDA_INT32, CUDA_INT64 */
    int64_t limit;
    void *value, *out;
    struct cuda_fault fault;
};

CUDA_C int cuda_count_up_to(const struct cuda_count_up_to *call, struct CUstream_st *stream);

#endif
