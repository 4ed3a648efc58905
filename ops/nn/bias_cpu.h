/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU's loop of BiasAdd.
 */
#ifndef TF_OPS_NN_BIAS_CPU_H
#define TF_OPS_NN_BIAS_CPU_H

#include "ops/device/chain_cpu.h"

/* A row is [inner, block] of one outer index and block; `bias` has a value per channel; the padding
 * of the last block becomes 0. `out` is `x` or does not overlap it. */
typedef void bias_loop(const struct channels *c, int64_t row, const void *x, const void *bias,
                       void *out);
bias_loop *bias_add_loop(enum dtype type);

#endif
