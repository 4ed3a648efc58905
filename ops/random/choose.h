/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernels of Multinomial on all devices check.
 */
#ifndef TF_OPS_RANDOM_CHOOSE_H
#define TF_OPS_RANDOM_CHOOSE_H

#include "exec/device/kernel.h"

/* Reads num_samples on the host. ERR_DATA: it is negative, or logits are no matrix, or have no
 * classes to choose from. */
int multinomial_check(struct kernel_call *call, int64_t *n_samples);

#endif
