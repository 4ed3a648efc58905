/* SPDX-License-Identifier: Apache-2.0
 *
 * The tensors of a record: their list in the header, and the validity of their data.
 */
#ifndef TF_WIRE_BODY_H
#define TF_WIRE_BODY_H

#include "wire/record.h"

/* One entry of the list, checked. `like` has type and shape, but no data. */
struct body_entry {
    const char *name;
    struct tensor like;
    int64_t n_bins;
    size_t bytes;
    size_t text_bytes; /* of a string tensor, after the offsets */
};

/* Sets *list to the header's list of tensors (NULL: none), and allocates as many record->tensors.
 */
int body_list(struct record *record, const msgpack_object **list, struct error *err);

int body_entry(const msgpack_object *object, struct body_entry *entry, struct error *err);

/* Allocates memory for the data of an entry. */
int body_alloc(struct tensor *t, const struct body_entry *entry, struct error *err);

/* Checks that the received data, of `bytes` bytes, is valid for its type: offsets of strings,
 * booleans. */
int body_check(const struct named_tensor *named, size_t bytes, struct error *err);

#endif
