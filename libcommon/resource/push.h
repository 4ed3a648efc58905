/* SPDX-License-Identifier: Apache-2.0
 *
 * What a worker pushes is known by who pushed it, as which incarnation, and in which of its steps.
 */
#ifndef TF_RESOURCE_PUSH_H
#define TF_RESOURCE_PUSH_H

#include <stdint.h>

struct push_id {
    int64_t worker; /* index among the workers: its rank */
    uint64_t incarnation;
    int64_t seq; /* of the worker's steps: 1, 2, ... */
};

/* Seals the number of a worker's pushes that count, for a file that is written by one store: the
 * count, and a sum of it and of whose it is. Opened, it is what was sealed; -1: it is not. */
uint64_t push_count_seal(int64_t worker, int64_t count);
int64_t push_count_open(int64_t worker, uint64_t sealed);

struct push_list {
    const struct push_id *ids;
    int n;
};

#endif
