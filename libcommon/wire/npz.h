/* SPDX-License-Identifier: Apache-2.0
 *
 * NumPy's .npz files: ZIP archives of .npy arrays, stored or deflated, with ZIP64 sizes.
 */
#ifndef TF_WIRE_NPZ_H
#define TF_WIRE_NPZ_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "wire/record.h"

struct npz {
    struct named_tensor *arrays; /* in the order of the archive, names without ".npy" */
    int n;
    struct arena arena; /* the list and the names */
};

/* Reads all arrays; "-" is stdin. Messages start with the name. ERR_NOINPUT, ERR_DATA (damage, also
 * of names and of their number; a name that is there twice, a member that is no .npy file nor a
 * folder; encryption, unknown compression), ERR_IO, ERR_OS. */
int npz_read(const char *path, struct npz *npz, struct error *err);
int npz_read_memory(const void *data, size_t n, const char *name, struct npz *npz,
                    struct error *err);
void npz_release(struct npz *npz);

#endif
