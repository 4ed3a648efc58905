/* SPDX-License-Identifier: Apache-2.0
 *
 * A push is identified by its worker, the worker's incarnation, and the number of its step.
 */
#ifndef TF_RESOURCE_PUSH_H
#define TF_RESOURCE_PUSH_H

#include <stdint.h>

struct push_id {
    int64_t worker; /* index among the workers: its rank */
    uint64_t incarnation;
    int64_t seq; /* of the worker's steps: 1, 2, ... */
};

/* Seals the number of a worker's counted pushes for a file that only the store writes: the count
 * and a checksum of both. Opening returns the count; -1: it was not sealed for this worker. */
uint64_t push_count_seal(int64_t worker, int64_t count);
int64_t push_count_open(int64_t worker, uint64_t sealed);

struct push_list {
    const struct push_id *ids;
    int n;
};

#endif
