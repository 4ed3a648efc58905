/* SPDX-License-Identifier: Apache-2.0
 *
 * Work that is shared by the compute team: OpenMP's parallel region as a function, and a loop that
 * is split. How a loop is cut never changes what an element's value is: bodies compute each index
 * on its own, or write partial results that are cut by shape.
 */
#ifndef TF_OPS_MATH_PARALLEL_CPU_H
#define TF_OPS_MATH_PARALLEL_CPU_H

#include <stdint.h>

/* The work of member `member` of `members`; each is called once, in a thread of its own. */
typedef void team_body(void *context, int member, int members);

/* Starts a team of `threads` members, or fewer if there are no more, and returns when all are done.
 * The caller is member 0. Within a member's work a team has one. */
void team_run(int threads, team_body *body, void *context);

/* From how much work on a loop is cut among a team. A program for ThreadSanitizer that brings a
 * team which that sees (tests/lib/team.c) has all loops cut, however short they are. */
#ifdef PARALLEL_TEAM
extern const int parallel_always __attribute__((weak));
#define PARALLEL_WORTH(n) (&parallel_always ? 1 : (n))
#else
#define PARALLEL_WORTH(n) (n)
#endif

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
