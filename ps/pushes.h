/* SPDX-License-Identifier: Apache-2.0
 *
 * How many pushes of each worker have counted, in a file beside the checkpoints that outlives the
 * process, kill -9 included: written before the worker is told. A shard that goes back to a
 * checkpoint so knows how many pushes that undoes.
 */
#ifndef TF_PS_PUSHES_H
#define TF_PS_PUSHES_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/error.h"

#define PUSHES_WORKERS 1024 /* that are counted */

struct pushes {
    _Atomic uint64_t *counts; /* by worker, sealed (resource/push.h); NULL: not open */
};

/* FOLDER/pushes, made if it is missing: then nothing has counted. ERR_IO: no space. */
int pushes_open(struct pushes *pushes, const char *folder, struct error *err);
void pushes_close(struct pushes *pushes);

void pushes_write(struct pushes *pushes, int worker, int64_t count);
/* -1: what is there is not what was written. */
int64_t pushes_read(const struct pushes *pushes, int worker);

#endif
