/* SPDX-License-Identifier: Apache-2.0
 *
 * NumPy's .npz files: ZIP archives of .npy arrays, stored or deflated, with ZIP64 sizes. An array
 * is checked only when it is read, as others may be of unsupported types or damaged.
 */
#ifndef TF_WIRE_NPZ_H
#define TF_WIRE_NPZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "tensor/tensor.h"

struct npz_array;

struct npz {
    const char *name;         /* of the file, for messages */
    struct npz_array *arrays; /* in the order of the archive */
    int n;
    struct map places; /* by name */
    const uint8_t *data;
    size_t n_data;
    uint8_t *loaded; /* owned; NULL: the data is borrowed, or ... */
    bool is_mapped;  /* ... a mapping of the file */
    uint64_t unpacked;
    struct arena arena;
};

/* Reads the directory; "-" is stdin. Members that are not .npy files are ignored. Messages start
 * with the name. ERR_NOINPUT, ERR_DATA (damage, a repeated name), ERR_IO, ERR_OS. */
int npz_open(const char *path, struct npz *npz, struct error *err);
/* The same for borrowed data. */
int npz_open_memory(const void *data, size_t n, const char *name, struct npz *npz,
                    struct error *err);
void npz_close(struct npz *npz);

const char *npz_name(const struct npz *npz, int i); /* without ".npy" */

/* ERR_DATA if there is no such array. */
int npz_find(const struct npz *npz, const char *name, int *i, struct error *err);

/* ERR_DATA: damage, also of its name; encryption, unknown compression; a type that tensors lack.
 * ERR_OS. */
int npz_read(struct npz *npz, int i, struct tensor *t, struct error *err);

#endif
