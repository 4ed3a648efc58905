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

/* The number of groups of a gradient, and the first of the residual's groups that belong to it. */
struct quantize_call {
    int64_t groups, first;
};

/* Describes a call of QuantizeGradient, and makes its output. ERR_DATA: the residual lacks these
 * groups. */
int quantize_describe(struct kernel_call *call, struct quantize_call *q);

/* Describes a call of ApplyResidual; the variable may be written to. ERR_DATA: shapes do not fit.
 * */
int residual_describe(struct kernel_call *call, struct quantize_call *q);

/* The inputs of DequantizeGradient: rows of n members, `groups` each. */
struct dequantize_call {
    int64_t n, groups;
};

/* Makes the output. ERR_DATA: there are too few rows. */
int dequantize_describe(struct kernel_call *call, struct dequantize_call *d);

/* Fails as a peer has sent a row with an index outside its group: ERR_DATA. */
int quantize_fail_malformed(struct kernel_call *call);

#endif
