/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TF_OPS_AGGREGATE_COLLECTIVE_SHARE_H
#define TF_OPS_AGGREGATE_COLLECTIVE_SHARE_H

#include "exec/step/collective_kernel.h"

/* Makes outputs that share the results of a call, which are in host memory (collective_take). */
int collective_share(struct kernel_call *call, const struct collective_results *results);

#endif
