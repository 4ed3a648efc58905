/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernels of local response normalization on all devices have in common.
 */
#ifndef TF_OPS_NN_LRN_H
#define TF_OPS_NN_LRN_H

#include "exec/device/kernel.h"

struct lrn {
    int64_t radius;
    double bias, alpha, beta;
};

void lrn_init(struct lrn *lrn, const struct node *node);

/* ERR_DATA: the inputs are no images, or not of one shape. */
int lrn_check(struct kernel_call *call);

#endif
