/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernels of linear algebra as steps, which a run executes with memory it already has.
 * Only files whose names end in _cuda.c include this.
 */
#ifndef TF_OPS_MATRIX_LINEAR_STEPS_CUDA_H
#define TF_OPS_MATRIX_LINEAR_STEPS_CUDA_H

#include "ops/device/kernel_cuda.h"
#include "ops/device/solver_cuda.h"
#include "ops/math/launchers_cuda.h"
#include "ops/matrix/linear_sizes.h"

/* Parts of scratch memory. */
enum linear_part {
    PART_A, /* float32 copies of 16-bit operands and result */
    PART_B,
    PART_OUT,
    PART_FACTORS, /* PART_FACTORS: as large as the first operand; PART_MORE: the second */
    PART_MORE,
    PART_PIVOTS,
    PART_INFOS,     /* one per matrix, and one more */
    PART_WORKSPACE, /* of cuSOLVER */
    N_PARTS
};

/* One run. */
struct linear_job {
    struct kernel_call *call;
    struct linear_flags flags;
    struct linear_sizes sizes;
    enum cuda_type type; /* type of the computation */
    const void *a, *b;
    void *out;
    char *parts[N_PARTS];
    int workspace; /* elements */
};

/* Returns 0 if all is enqueued, else an error. */
typedef int linear_steps(const struct linear_job *job);

struct linear_form {
    const char *op;
    linear_steps *steps;
    bool has_factors, has_more; /* parts of scratch memory */
    bool solver;                /* uses cuSOLVER, else only cuBLAS */
    enum cuda_factors_kind kind;
};

/* Returns the form of the node's op; NULL: there is none. */
const struct linear_form *linear_form_for(const struct node *node);

/* Copies elements, or converts them to another float; 0 if enqueued. */
int linear_cast(const struct linear_job *job, const struct cuda_cast *launch);

#endif
