/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing whole variables: a value takes the place of theirs, is added to it, or subtracted.
 */
#ifndef TF_OPS_STATE_ASSIGN_CUDA_H
#define TF_OPS_STATE_ASSIGN_CUDA_H

#include "ops/device/launch_cuda.h"

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

#endif
