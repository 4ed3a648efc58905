/* SPDX-License-Identifier: Apache-2.0
 *
 * The same work on many items by a few threads.
 */
#ifndef TF_CHECKPOINT_PARALLEL_H
#define TF_CHECKPOINT_PARALLEL_H

#include <stdint.h>

#include "base/error.h"

/* Calls work(context, i) for each i below n, in any order, by `threads` (0: one for each core, four
 * at most); after a failure no more are begun. The first error that was noticed is returned. */
int checkpoint_parallel(int threads, uint64_t n,
                        int (*work)(void *context, uint64_t i, struct error *err), void *context,
                        struct error *err);

#endif
