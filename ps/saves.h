/* SPDX-License-Identifier: Apache-2.0
 *
 * The folder of a job's checkpoints:
 *
 *     DIR/300/ps-0.ckpt      of each shard, written by it
 *     DIR/300/ps-1.ckpt
 *     DIR/300/manifest       of all, written last
 *
 * While a checkpoint is made its folder is DIR/300.part; renaming that is what makes it one. So a
 * process killed at any moment leaves the checkpoints before as they were, and a new one is there
 * whole or not at all. All shards see the same folder. One process at a time makes, replaces and
 * removes checkpoints there: it holds the lock of the folder.
 */
#ifndef TF_PS_SAVES_H
#define TF_PS_SAVES_H

#include "ps/manifest.h"
#include "wire/record.h"

struct saves {
    char *folder;
    int fd; /* locked */
};

/* Makes the folder if it is missing and locks it. ERR_RETRY when another process saves there. What
 * unfinished saves have left is removed. */
int saves_open(struct saves *saves, const char *folder, struct error *err);
void saves_close(struct saves *saves);

/* An empty folder for the checkpoint of a step; its path is the caller's to free. */
int saves_begin(struct saves *saves, int64_t step, char **part, struct error *err);

/* Writes the manifest into it and gives it its name, in the place of an older checkpoint of that
 * step; then removes all but the newest `keep`. */
int saves_commit(struct saves *saves, const char *part, struct manifest *manifest, int keep,
                 struct error *err);

/* Removes what saves_begin made. */
void saves_abandon(const char *part);

/* The newest checkpoint that is complete and intact, or the one of a step (>= 0). Of each that is
 * passed over `skipped` is told why. ERR_NOINPUT when there is none. Needs no lock. *path is the
 * caller's to free. */
struct saves_skipped {
    void (*tell)(struct saves_skipped *skipped, const char *why);
};
int saves_find(const char *folder, int64_t step, struct saves_skipped *skipped,
               struct manifest *manifest, char **path, struct error *err);

/* Whether the folder holds a checkpoint of this form at all. */
bool saves_exist(const char *folder);

/* The same, to be read: the files of all shards one after the other. The reader is the caller's to
 * free, and named after folder and step: "ckpt@300". */
int saves_read(const char *folder, int64_t step, struct saves_skipped *skipped,
               struct stream_reader **reader, struct error *err);

#endif
