/* SPDX-License-Identifier: Apache-2.0
 *
 * What random kernels on the host share. Only files whose names end in _cpu.c or _any.c use this;
 * random_parallel is the CPU's.
 */
#ifndef TF_OPS_RANDOM_STREAM_H
#define TF_OPS_RANDOM_STREAM_H

#include "exec/device/kernel.h"
#include "ops/random/philox.h"

/* The node's stream in this execution, by what random_prepare (ops/random/draw.h) remembered. */
struct philox_stream random_stream(const struct kernel_call *call);

/* Number i of 64 bits of a stream: its words 2i and 2i + 1. */
void random_words(const struct philox_stream *stream, int64_t i, uint32_t words[2]);

/* The number of its first element: not 0 in a slice of what another node would draw. */
int64_t random_offset(const struct kernel_call *call);

/* Calls draw for parts of [0, n) whose bounds are multiples of `grain`, by several threads if it is
 * worth while. */
void random_parallel(struct kernel_call *call, int64_t n, int64_t grain,
                     void (*draw)(void *context, int64_t first, int64_t last), void *context);

#endif
