/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernels of TopKV2 and InTopK on all devices check.
 */
#ifndef TF_OPS_NN_TOP_K_SHAPES_H
#define TF_OPS_NN_TOP_K_SHAPES_H

#include "exec/device/kernel.h"

/* Rows of n elements, of which k are to be found; k is read on the host. ERR_DATA. */
int top_k_check(struct kernel_call *call, int64_t *n, int64_t *k);

/* Makes both outputs of TopKV2. */
int top_k_outputs(struct kernel_call *call, int64_t k, struct tensor **values,
                  struct tensor **indices);

/* prepare of InTopK, whose state is k, an int64_t. */
int in_top_k_prepare(struct kernel_setup *setup);

/* ERR_DATA: predictions are no matrix, or targets no vector of its rows. */
int in_top_k_check(struct kernel_call *call);

#endif
