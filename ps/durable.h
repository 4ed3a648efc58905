/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that are there whole or not at all, also after a power cut: written under a temporary name,
 * synchronised, renamed, and the folder synchronised.
 */
#ifndef TF_PS_DURABLE_H
#define TF_PS_DURABLE_H

#include "base/error.h"

#include <stdint.h>

struct durable {
    char *folder, *path, *temporary;
    int fd; /* to write to */
};

/* ERR_IO, ERR_DENIED. */
int durable_open(struct durable *file, const char *folder, const char *name, struct error *err);

/* On failure the temporary file is gone, and what stood under the name before still does. */
int durable_commit(struct durable *file, struct error *err);
void durable_discard(struct durable *file);

/* Synchronises the names in a folder. */
int durable_sync_folder(const char *folder, struct error *err);

/* A failed call on `path`, by errno. */
int durable_fail(const char *path, struct error *err);

#endif
