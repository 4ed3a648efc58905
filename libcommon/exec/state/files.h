/* SPDX-License-Identifier: Apache-2.0
 *
 * How the ops Save and Restore reach checkpoints: a program gives its store of variables this
 * interface; without it a graph touches no files.
 */
#ifndef TF_EXEC_FILES_H
#define TF_EXEC_FILES_H

#include "wire/record.h"

struct variable_store;

struct checkpoint_files {
    /* Commits a checkpoint of these tensors, in host memory, to the store of checkpoints `path`. */
    int (*save)(struct checkpoint_files *files, const char *path, int64_t step,
                const struct named_tensor *tensors, int n, struct error *err);
    /* Reads one tensor of STORE, STORE@STEP or a file; the caller releases it. */
    int (*restore)(struct checkpoint_files *files, const char *path, const char *name,
                   struct tensor *value, struct error *err);
};

/* Called before the first step; `files` must live as long as the store. */
void variable_store_set_files(struct variable_store *store, struct checkpoint_files *files);
struct checkpoint_files *variable_store_files(struct variable_store *store); /* NULL: none */

#endif
