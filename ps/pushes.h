/* SPDX-License-Identifier: Apache-2.0
 *
 * The number of accepted pushes of each worker, in a file beside the checkpoints that survives the
 * process, even a kill -9: it is written before the worker gets its reply. So a shard that goes
 * back to a checkpoint knows how many pushes that undoes.
 */
#ifndef TF_PS_PUSHES_H
#define TF_PS_PUSHES_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/error.h"

#define PUSHES_WORKERS 1024 /* whose pushes are counted */

struct pushes {
    _Atomic uint64_t *counts; /* by worker, sealed (resource/push.h); NULL: not open */
};

/* Opens FOLDER/pushes; a missing file is created with zero counts. ERR_IO: no space. */
int pushes_open(struct pushes *pushes, const char *folder, struct error *err);
void pushes_close(struct pushes *pushes);

void pushes_write(struct pushes *pushes, int worker, int64_t count);
/* Returns -1 if the stored count is damaged. */
int64_t pushes_read(const struct pushes *pushes, int worker);

#endif
