/* SPDX-License-Identifier: Apache-2.0
 *
 * A parallel for over many items, by a few threads.
 */
#ifndef TF_CHECKPOINT_PARALLEL_H
#define TF_CHECKPOINT_PARALLEL_H

#include <stdint.h>

#include "base/error.h"

/* Calls work(context, i) for each i below n, in any order, in `threads` threads (0: one for each
 * core, four at most). After a failure no more calls start; returns the first error noticed. */
int checkpoint_parallel(int threads, uint64_t n,
                        int (*work)(void *context, uint64_t i, struct error *err), void *context,
                        struct error *err);

#endif
