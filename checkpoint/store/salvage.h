/* SPDX-License-Identifier: Apache-2.0
 *
 * What is left of a damaged store: its file is read page by page, without LMDB and whatever the
 * tree says. Every leaf of it that still looks like one is asked for manifests and chunks; a chunk
 * is taken only if its digest is right.
 */
#ifndef TF_CHECKPOINT_SALVAGE_H
#define TF_CHECKPOINT_SALVAGE_H

#include "checkpoint/store/store.h"
#include "tensor/tensor.h"

struct salvage; /* of the environment in one folder */

/* ERR_NOINPUT when there is no file, ERR_IO. */
int salvage_open(const char *folder, struct salvage **salvage, struct error *err);
void salvage_close(struct salvage *salvage);

/* The manifests that were found whole, each once, in the order of saving; also of checkpoints that
 * were forgotten, while nothing was written over them. */
const manifest_vec *salvage_manifests(const struct salvage *salvage);

/* ERR_DATA naming the tensor when a chunk of it is lost. The caller releases. */
int salvage_read(struct salvage *salvage, const struct manifest_tensor *tensor,
                 struct tensor *value, struct error *err);

#endif
