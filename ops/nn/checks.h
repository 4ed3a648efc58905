/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernels of neural networks on all devices read from their nodes, and how they make
 * outputs.
 */
#ifndef TF_OPS_NN_CHECKS_H
#define TF_OPS_NN_CHECKS_H

#include "exec/device/kernel.h"

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

/* ---- TopKV2 and InTopK ---- */

/* Makes both outputs of TopKV2, of rows that int32 can number. Returns the first, or NULL with
 * call->err set. */
struct tensor *top_k_outputs(struct kernel_call *call);

/* prepare of InTopK, whose state is k, an int64_t. */
int in_top_k_prepare(struct kernel_setup *setup);

#endif
