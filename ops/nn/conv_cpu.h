/* SPDX-License-Identifier: Apache-2.0
 *
 * The methods by which the CPU computes the three kernels of Conv2D.
 */
#ifndef TF_OPS_NN_CONV_CPU_H
#define TF_OPS_NN_CONV_CPU_H

#include "ops/device/chain_cpu.h"
#include "ops/nn/conv_shapes.h"

/* float32 by oneDNN, in its layouts: makes the chain, sets the output's layout. Shapes are known,
 * no dimension is 0. Fails if neither plain Winograd (3x3, stride 1) nor direct convolution is
 * available. */
int conv_chain(const struct conv *conv, struct kernel_setup *setup);

/* Convolves any floating type by products over unrolled windows; all row-major, none empty. */
int conv_by_gemm(const struct conv *conv, struct kernel_call *call, bool deterministic,
                 const struct tensor *const operands[3]);

/* The same of a convolution that is depthwise, in NHWC. */
bool conv_is_depthwise(const struct conv *conv);
int conv_depthwise(const struct conv *conv, struct kernel_call *call,
                   const struct tensor *const operands[3]);

/* The gradient of the filter in float32, for an image with few channels compared to a vector.
 * Shapes are known, no dimension is 0. NULL: it is another case, the machine or layout is
 * unsuitable, or there is an error. */
struct conv_few *conv_few_prepare(const struct conv *conv, struct kernel_setup *setup);
int conv_few_run(const struct conv_few *few, struct kernel_call *call);
void conv_few_free(struct conv_few *few);

#endif
