/* SPDX-License-Identifier: Apache-2.0
 *
 * The launchers of the .cu files of variables: what each takes.
 */
#ifndef TF_OPS_STATE_LAUNCHERS_CUDA_H
#define TF_OPS_STATE_LAUNCHERS_CUDA_H

#include "ops/device/launch_cuda.h"

/* ---- assign ----
 *
 * Writing whole variables: a value takes the place of theirs, is added to it, or subtracted. */

enum cuda_assign_op { CUDA_ASSIGN, CUDA_ASSIGN_ADD, CUDA_ASSIGN_SUB };

struct cuda_assign {
    enum cuda_assign_op op;
    enum cuda_type type; /* CUDA_ASSIGN_ADD, CUDA_ASSIGN_SUB: a real one */
    int64_t n;
    const void *from; /* `to`, or it overlaps that nowhere */
    void *to;
    const struct fault *fault; /* if the step has failed, nothing is changed; NULL: in any case */
};

CUDA_C int cuda_assign(const struct cuda_assign *call, struct CUstream_st *stream);

/* ---- count up to ----
 *
 * CountUpTo: a variable's value, which is then one more. */

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
