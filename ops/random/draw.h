/* SPDX-License-Identifier: Apache-2.0
 *
 * What random kernels share on all devices: a node's seeds, and the inputs that say what to draw.
 */
#ifndef TF_OPS_RANDOM_DRAW_H
#define TF_OPS_RANDOM_DRAW_H

#include "exec/device/kernel.h"

/* The state of a random kernel; offset: the number of the first element, not 0 in a slice of what
 * another node would draw; alike: all replicas draw the same, what the first one does. */
struct random_seeds {
    uint64_t seed, seed2;
    int64_t offset;
    bool alike;
};

struct random_seeds random_seeds_of(const struct node *node);

/* prepare: remembers the node's. */
int random_prepare(struct kernel_setup *setup);

/* Output 0, of the shape that input 0 says; NULL with call->err set. */
struct tensor *random_output(struct kernel_call *call);

/* Inputs 1 and 2: the first integer, and how many there are. */
int random_range(struct kernel_call *call, int64_t *low, uint64_t *size);

/* Reads num_samples on the host. ERR_DATA: it is negative, or logits are no matrix, or have no
 * classes to choose from. */
int multinomial_check(struct kernel_call *call, int64_t *n_samples);

#endif
