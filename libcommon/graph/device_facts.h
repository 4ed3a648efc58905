/* SPDX-License-Identifier: Apache-2.0
 *
 * What cluster files and files of costs state about a device, in KEY=VALUE words. The device itself
 * is never opened for it.
 */
#ifndef TF_GRAPH_DEVICE_FACTS_H
#define TF_GRAPH_DEVICE_FACTS_H

#include <stdint.h>

#include "base/error.h"

/* A member of 0 is unknown. */
struct device_facts {
    int64_t memory_bytes;
    double speed;      /* compared with others of its type */
    double operations; /* per second, at speed 1, */
    double bandwidth;  /* and bytes per second between a kernel and its memory */
    double bus;        /* bytes per second to and from the memory of its host, in each direction */
};

/* ERR_CONFIG "KEY=VALUE: what", without the name of the file. */
int device_facts_set(struct device_facts *facts, const char *key, const char *value,
                     struct error *err);

/* Takes facts that are unknown from `others`. */
void device_facts_fill(struct device_facts *facts, const struct device_facts *others);

#endif
