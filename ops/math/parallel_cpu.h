/* SPDX-License-Identifier: Apache-2.0
 *
 * Splitting a loop over the compute team. How a loop is cut never changes what an element's value
 * is: bodies compute each index on its own, or write partial results that are cut by shape.
 */
#ifndef TF_OPS_MATH_PARALLEL_CPU_H
#define TF_OPS_MATH_PARALLEL_CPU_H

#include <stdint.h>

/* Elements that are worth a thread of their own: of a loop bound by memory, and of one that
 * computes an exponential or so for each. */
#define PARALLEL_GRAIN_MOVE 32768
#define PARALLEL_GRAIN_COMPUTE 4096

/* Indices [begin, end). Returns flags of the caller's own, 0 when all is well. */
typedef int parallel_body(void *context, int64_t begin, int64_t end);

/* Calls the body over [0, n) by at most `threads` threads, each with at least `grain` indices; with
 * one thread, directly. Returns the union of the bodies' flags. */
int parallel_for(int threads, int64_t n, int64_t grain, parallel_body *body, void *context);

#endif
