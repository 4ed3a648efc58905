/* SPDX-License-Identifier: Apache-2.0
 *
 * What the CPU's kernel of LocallyConnected2D does for a block of images at a position: boxes of
 * tensors to matrices and back, and products of these.
 */
#ifndef TF_OPS_NN_LOCAL_CPU_H
#define TF_OPS_NN_LOCAL_CPU_H

#include "ops/device/blas_cpu.h"

/* Cells [n, width, channels] of a tensor, that far apart, in elements; n rows of a matrix, `line`
 * apart, have the same, one after the other. */
struct local_box {
    int64_t n, width, channels;
    int64_t image, column, channel, line;
    enum dtype type; /* float32 or float64 */
};

void local_take(const struct local_box *box, const void *tensor, void *matrix);
void local_leave(const struct local_box *box, const void *matrix, void *tensor);

/* Adds what another matrix has, whose rows are `step` apart. */
void local_add(const struct local_box *box, int64_t step, const void *rows, void *matrix);

/* Multiplies by one thread: gemm_run, or loops for what is too small to be worth a call. The choice
 * follows from the sizes. */
int local_product(const struct gemm *gemm, const void *a, const void *b, void *c,
                  struct error *err);

#endif
