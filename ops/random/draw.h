/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by random kernels on all devices: a node's seeds, and the inputs that tell what to draw.
 */
#ifndef TF_OPS_RANDOM_DRAW_H
#define TF_OPS_RANDOM_DRAW_H

#include "exec/device/kernel.h"

struct philox_stream;

enum random_form { RANDOM_UNIFORM, RANDOM_NORMAL, RANDOM_TRUNCATED_NORMAL, RANDOM_UNIFORM_INT };

/* The state of a random kernel; offset: the number of the first element, nonzero in a slice of a
 * larger tensor; alike: all replicas draw what the first one does. */
struct random_seeds {
    uint64_t seed, seed2;
    int64_t offset;
    bool alike;
};

struct random_seeds random_seeds_of(const struct node *node);

/* prepare: stores the node's seeds as state. */
int random_prepare(struct kernel_setup *setup);

/* The node's stream in this execution, on the host; seeds are the first member of the state. */
struct philox_stream random_stream(const struct kernel_call *call);

/* Makes output 0, of the shape in input 0; NULL with call->err set. */
struct tensor *random_output(struct kernel_call *call);

/* Reads inputs 1 and 2 as a range of integers: the first, and how many there are. */
int random_range(struct kernel_call *call, int64_t *low, uint64_t *size);

/* Makes the output of Multinomial; NULL with call->err set, also if logits have no classes to
 * choose from. */
struct tensor *multinomial_output(struct kernel_call *call);

#endif
