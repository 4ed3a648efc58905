/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading what is left of a damaged store. Its file is read page by page, without LMDB and
 * regardless of the tree. Every page that still looks like a leaf is searched for manifests and
 * chunks; a chunk is used only if its digest is right.
 */
#ifndef TF_CHECKPOINT_SALVAGE_H
#define TF_CHECKPOINT_SALVAGE_H

#include "checkpoint/store/store.h"
#include "tensor/tensor.h"

struct salvage; /* of the environment in one folder */

/* ERR_NOINPUT when there is no file, ERR_IO. */
int salvage_open(const char *folder, struct salvage **salvage, struct error *err);
void salvage_close(struct salvage *salvage);

/* The manifests found intact, each once, in the order of saving; also those of forgotten
 * checkpoints that were not yet overwritten. */
const manifest_vec *salvage_manifests(const struct salvage *salvage);

/* ERR_DATA naming the tensor if a chunk of it is lost. The caller releases. */
int salvage_read(struct salvage *salvage, const struct manifest_tensor *tensor,
                 struct tensor *value, struct error *err);

#endif
