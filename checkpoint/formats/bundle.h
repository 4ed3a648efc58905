/* SPDX-License-Identifier: Apache-2.0
 *
 * TensorFlow's checkpoints, version 2: PREFIX.index, a sorted table of names, and
 * PREFIX.data-0000i-of-0000n, the bytes. A path names the index.
 */
#ifndef TF_CHECKPOINT_BUNDLE_H
#define TF_CHECKPOINT_BUNDLE_H

#include "checkpoint/formats/archive.h"

/* Turns "x.index" into "x.data-00000-of-00001", in the arena; NULL: the name lacks .index. */
const char *bundle_data_path(const char *path, int shard, int n_shards, struct arena *arena);

/* Both files of a checkpoint with one shard, open for writing and not flushed. Names must differ.
 */
int bundle_write(FILE *index, FILE *data, const struct archive_input *input, struct error *err);

/* Joins variables that were partitioned by rows, columns or both. Every byte is checked. ERR_DATA:
 * the bundle is damaged, or has a type that tensors lack; the error names it. */
int bundle_read(const char *path, struct archive *archive, struct error *err);

#endif
