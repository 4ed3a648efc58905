/* SPDX-License-Identifier: Apache-2.0
 *
 * The ways in which the CPU computes the three kernels of Conv2D.
 */
#ifndef TF_OPS_NN_CONV_CPU_H
#define TF_OPS_NN_CONV_CPU_H

#include "ops/device/chain_cpu.h"
#include "ops/nn/conv_shapes.h"

/* float32 by oneDNN, in its layouts: makes the chain, sets the output's layout. Geometry known, no
 * dimension 0. Where neither plain Winograd (3x3, stride 1) nor direct convolution is to be had it
 * fails. */
int conv_chain(const struct conv *conv, struct kernel_setup *setup);

/* Convolves any floating type by products over unrolled windows; all row-major, nothing empty. */
int conv_by_gemm(const struct conv *conv, struct kernel_call *call, bool deterministic,
                 const struct tensor *const operands[3]);

/* The gradient of the filter in float32, of an image whose channels are few beside a vector.
 * Geometry known, no dimension 0. NULL: it is none of those, or the machine or the layout is not
 * for it, or with an error. */
struct conv_few *conv_few_prepare(const struct conv *conv, struct kernel_setup *setup);
int conv_few_run(const struct conv_few *few, struct kernel_call *call);
void conv_few_free(struct conv_few *few);

#endif
