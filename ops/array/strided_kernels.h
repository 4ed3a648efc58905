/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels that are made of strided_move and fills, and so are those of any device (_any.c). Each
 * device gives them names of its own.
 */
#ifndef TF_OPS_ARRAY_STRIDED_KERNELS_H
#define TF_OPS_ARRAY_STRIDED_KERNELS_H

#include "exec/device/kernel.h"

int run_transpose(struct kernel_call *call);
int run_reverse(struct kernel_call *call);
int run_slice(struct kernel_call *call);
int run_pad(struct kernel_call *call);
int run_strided_slice(struct kernel_call *call);
int run_strided_slice_grad(struct kernel_call *call);
int run_concat(struct kernel_call *call);
int run_split(struct kernel_call *call);
int run_pack(struct kernel_call *call);
int run_unpack(struct kernel_call *call);
int run_tile(struct kernel_call *call);
int run_fill(struct kernel_call *call);
int run_zeros_like(struct kernel_call *call);
int run_ones_like(struct kernel_call *call);

/* What a node says of its slices, or its axis, is the state of their kernels. */
int prepare_slice_masks(struct kernel_setup *setup);
int prepare_axis(struct kernel_setup *setup);

#endif
