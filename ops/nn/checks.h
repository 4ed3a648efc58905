/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernels of neural networks on all devices read from their nodes and check of their
 * inputs, and how they make outputs. Each check returns 0 or ERR_DATA.
 */
#ifndef TF_OPS_NN_CHECKS_H
#define TF_OPS_NN_CHECKS_H

#include "exec/device/kernel.h"

/* ---- BiasAdd and BiasAddGrad ---- */

/* Checks that input 0 has channels. */
static inline int bias_check_value(struct kernel_call *call, bool nchw)
{
    const struct shape *shape = &call->in[0]->shape;
    if (shape->rank >= (nchw ? 3 : 2))
        return 0;
    return kernel_fail(call, "value must have at least rank %d, not %s", nchw ? 3 : 2,
                       shape_text(shape));
}

static inline int bias_check_vector(struct kernel_call *call, int64_t channels)
{
    const struct shape *bias = &call->in[1]->shape;
    if (bias->rank == 1 && bias->dims[0] == channels)
        return 0;
    return kernel_fail(call, "bias must be a vector of %lld channels, not %s", (long long)channels,
                       shape_text(bias));
}

/* ---- local response normalization ---- */

struct lrn {
    int64_t radius;
    double bias, alpha, beta;
};

void lrn_init(struct lrn *lrn, const struct node *node);

/* ---- batch normalization ---- */

/* Forms of its kernels: with NORM_GRAD the first input is the incoming gradient. */
enum { NORM = 0, NORM_GRAD = 1 };

struct norm {
    double epsilon;
    bool training, nchw;
};

void norm_init(struct norm *norm, const struct node *node);

/* Check, for FusedBatchNorm and its gradient, that images have rank 4, and that each vector has one
 * element per channel, or none where it must be empty. ERR_DATA. */
int norm_check(struct kernel_call *call, const struct norm *norm);
int norm_grad_check(struct kernel_call *call, const struct norm *norm);

/* Makes five outputs: one like the image, and four vectors of the given sizes. */
int norm_outputs(struct kernel_call *call, const struct shape *image, const int64_t sizes[4],
                 void *out[5]);

/* Returns the channels of an image that was checked. */
int64_t norm_channels(const struct norm *norm, const struct shape *image);

/* ---- TopKV2 and InTopK ---- */

/* Makes both outputs of TopKV2, of rows that int32 can number. Returns the first, or NULL with
 * call->err set. */
struct tensor *top_k_outputs(struct kernel_call *call);

/* prepare of InTopK, whose state is k, an int64_t. */
int in_top_k_prepare(struct kernel_setup *setup);

#endif
