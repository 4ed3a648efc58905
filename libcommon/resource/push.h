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

struct push_list {
    const struct push_id *ids;
    int n;
};

#endif
