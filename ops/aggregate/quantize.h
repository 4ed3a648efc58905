/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls of QuantizeGradient, DequantizeGradient and ApplyResidual on all devices: their inputs,
 * and the checks of these. The kernels' state is a struct gradient_code.
 */
#ifndef TF_OPS_AGGREGATE_QUANTIZE_H
#define TF_OPS_AGGREGATE_QUANTIZE_H

#include "exec/device/kernel.h"
#include "ops/aggregate/gradient_code.h"

/* prepare of all three. */
int quantize_prepare(struct kernel_setup *setup);

/* Describes a call of QuantizeGradient, and makes its output. ERR_DATA: the residual lacks these
 * groups. */
int quantize_describe(struct kernel_call *call, struct coded_gradients *q);

/* Describes a call of ApplyResidual; the variable may be written to. ERR_DATA: shapes do not fit.
 * */
int residual_describe(struct kernel_call *call, struct coded_gradients *q);

/* Describes a call of DequantizeGradient, and makes its output. ERR_DATA: there are too few
 * rows. */
int dequantize_describe(struct kernel_call *call, struct coded_gradients *q);

/* Fails as a peer has sent a row with an index outside its group: ERR_DATA. */
int quantize_fail_malformed(struct kernel_call *call);

#endif
