/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels built from strided_move and fills, and so usable on any device (_any.c). Each device
 * gives them its own names.
 */
#ifndef TF_OPS_ARRAY_STRIDED_KERNELS_H
#define TF_OPS_ARRAY_STRIDED_KERNELS_H

#include "exec/device/kernel.h"

/* X(kernel, its prepare); its run function is run_KERNEL. */
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

/* Store a node's slice attributes, or its axis, as the kernel's state. */
int prepare_slice_masks(struct kernel_setup *setup);
int prepare_axis(struct kernel_setup *setup);

#endif
