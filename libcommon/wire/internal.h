/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of this folder only.
 */
#ifndef TF_WIRE_INTERNAL_H
#define TF_WIRE_INTERNAL_H

#include "wire/record.h"

/* Every header ends with "sum" and a fixed-size unsigned int. */
#define SUM_BYTES 9

/* Reads a big-endian number of n bytes. */
static inline uint64_t wire_uint(const uint8_t *p, size_t n)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++)
        value = value << 8 | p[i];
    return value;
}

bool record_parse_kind(const msgpack_object *name, enum record_kind *kind);
void record_release_tensors(struct record *record);

/* Returns whether the type may cross processes: a resource is an address within one. */
bool record_carries(enum dtype type);

/* Returns whether a tensor's name is fit for terminals and messages. */
bool record_name_fits(const char *name);

#endif
