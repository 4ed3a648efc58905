/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernels of linear algebra as steps, which a run goes through with memory that it has.
 * Only files whose names end in _cuda.c include this.
 */
#ifndef TF_OPS_MATRIX_LINEAR_STEPS_CUDA_H
#define TF_OPS_MATRIX_LINEAR_STEPS_CUDA_H

#include "ops/device/kernel_cuda.h"
#include "ops/device/solver_cuda.h"
#include "ops/math/launchers_cuda.h"
#include "ops/matrix/linear_sizes.h"

/* Scratch memory. */
enum linear_part {
    PART_A, /* operands and result, where they are of 16 bits */
    PART_B,
    PART_OUT,
    PART_FACTORS, /* as many elements as the first operand; as the second */
    PART_MORE,
    PART_PIVOTS,
    PART_INFOS,     /* of each matrix, and one more */
    PART_WORKSPACE, /* of cuSOLVER */
    N_PARTS
};

/* A run. */
struct linear_job {
    struct kernel_call *call;
    struct linear_flags flags;
    struct linear_sizes sizes;
    enum cuda_type type; /* in which it is computed */
    const void *a, *b;
    void *out;
    char *parts[N_PARTS];
    int workspace; /* elements */
};

/* 0 when all is enqueued, else an error. */
typedef int linear_steps(const struct linear_job *job);

struct linear_form {
    const char *op;
    linear_steps *steps;
    bool has_factors, has_more; /* parts of scratch memory */
    bool solver;                /* by cuSOLVER, else by cuBLAS alone */
    enum cuda_factors_kind kind;
};

/* NULL: there is none. */
const struct linear_form *linear_form_for(const struct node *node);

/* Elements as they are, or of another float; 0 when it is enqueued. */
int linear_cast(const struct linear_job *job, const struct cuda_cast *launch);

#endif
