/* SPDX-License-Identifier: Apache-2.0
 *
 * What the CPU's kernel of LocallyConnected2D does for a block of images at a position: copies
 * boxes of tensors to matrices and back, and multiplies these.
 */
#ifndef TF_OPS_NN_LOCAL_CPU_H
#define TF_OPS_NN_LOCAL_CPU_H

#include "ops/device/blas_cpu.h"

/* Cells [n, width, channels] of a tensor, with strides in elements; a matrix holds the same in n
 * dense rows, `line` elements apart. */
struct local_box {
    int64_t n, width, channels;
    int64_t image, column, channel, line;
    enum dtype type; /* float32 or float64 */
};

void local_take(const struct local_box *box, const void *tensor, void *matrix);
void local_leave(const struct local_box *box, const void *matrix, void *tensor);

/* Adds another matrix, whose rows are `step` elements apart. */
void local_add(const struct local_box *box, int64_t step, const void *rows, void *matrix);

/* Multiplies in one thread: by gemm_run, or by loops if too small for a library call. The choice
 * depends only on the sizes. */
int local_product(const struct gemm *gemm, const void *a, const void *b, void *c,
                  struct error *err);

#endif
