/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls of QuantizeGradient, DequantizeGradient and ApplyResidual on all devices: what their
 * inputs are, and whether they fit. The kernels' state is a struct gradient_code.
 */
#ifndef TF_OPS_AGGREGATE_QUANTIZE_H
#define TF_OPS_AGGREGATE_QUANTIZE_H

#include "exec/device/kernel.h"
#include "ops/aggregate/gradient_code.h"

/* prepare of all three. */
int quantize_prepare(struct kernel_setup *setup);

/* A gradient, of that many groups, and the first of the residual's that belong to it. */
struct quantize_call {
    int64_t groups, first;
};

/* Describes a call of QuantizeGradient, whose output is made. ERR_DATA: the residual does not have
 * the groups. */
int quantize_describe(struct kernel_call *call, struct quantize_call *q);

/* Describes a call of ApplyResidual; the variable may be written to. ERR_DATA: shapes do not fit.
 * */
int residual_describe(struct kernel_call *call, struct quantize_call *q);

/* The terms of DequantizeGradient: codes of n members, `groups` each. */
struct dequantize_call {
    int64_t n, groups;
};

/* The output is made. ERR_DATA: there are not as many codes. */
int dequantize_describe(struct kernel_call *call, struct dequantize_call *d);

/* A code that a peer has sent has an index beyond its group: ERR_DATA. */
int quantize_fail_malformed(struct kernel_call *call);

#endif
