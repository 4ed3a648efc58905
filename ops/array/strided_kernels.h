/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels that are made of strided_move and fills, and so are those of any device (_any.c). Each
 * device gives them names of its own.
 */
#ifndef TF_OPS_ARRAY_STRIDED_KERNELS_H
#define TF_OPS_ARRAY_STRIDED_KERNELS_H

#include "exec/device/kernel.h"

/* X(kernel, its prepare): what it runs is run_KERNEL. */
#define STRIDED_KERNELS(X)                                                                         \
    X(transpose, NULL)                                                                             \
    X(reverse, NULL)                                                                               \
    X(slice, NULL)                                                                                 \
    X(pad, NULL)                                                                                   \
    X(strided_slice, prepare_slice_masks)                                                          \
    X(strided_slice_grad, prepare_slice_masks)                                                     \
    X(concat, NULL)                                                                                \
    X(split, NULL)                                                                                 \
    X(pack, prepare_axis)                                                                          \
    X(unpack, prepare_axis)                                                                        \
    X(tile, NULL)                                                                                  \
    X(fill, NULL)                                                                                  \
    X(zeros_like, NULL)                                                                            \
    X(ones_like, NULL)

#define X(kernel, its_prepare) int run_##kernel(struct kernel_call *call);
STRIDED_KERNELS(X)
#undef X

/* A node's attributes of slices, or its axis, are the state of their kernels. */
int prepare_slice_masks(struct kernel_setup *setup);
int prepare_axis(struct kernel_setup *setup);

#endif
