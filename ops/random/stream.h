/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by random kernels on the host. Only files whose names end in _cpu.c or _any.c use this;
 * random_parallel is only for the CPU.
 */
#ifndef TF_OPS_RANDOM_STREAM_H
#define TF_OPS_RANDOM_STREAM_H

#include "exec/device/kernel.h"
#include "ops/random/philox.h"

/* The node's stream in this execution, from what random_prepare (ops/random/draw.h) stored. */
struct philox_stream random_stream(const struct kernel_call *call);

/* Returns the i-th 64-bit number of a stream: its words 2i and 2i + 1. */
void random_words(const struct philox_stream *stream, int64_t i, uint32_t words[2]);

/* Returns the number of the first element: nonzero in a slice of a larger tensor. */
int64_t random_offset(const struct kernel_call *call);

/* Calls draw for parts of [0, n) whose bounds are multiples of `grain`, in several threads if this
 * is worthwhile. */
void random_parallel(struct kernel_call *call, int64_t n, int64_t grain,
                     void (*draw)(void *context, int64_t first, int64_t last), void *context);

#endif
