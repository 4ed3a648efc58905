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
    _Atomic int64_t *counts; /* by worker; NULL: not open */
};

/* FOLDER/pushes, made if it is missing. ERR_IO: no space. */
int pushes_open(struct pushes *pushes, const char *folder, struct error *err);
void pushes_close(struct pushes *pushes);

#endif
