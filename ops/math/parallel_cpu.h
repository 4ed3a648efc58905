/* SPDX-License-Identifier: Apache-2.0
 *
 * Work shared by the compute team: OpenMP's parallel region as a function, and a parallel loop. How
 * a loop is split never changes an element's value: bodies compute each index independently, or
 * write partial results that are split by shape.
 */
#ifndef TF_OPS_MATH_PARALLEL_CPU_H
#define TF_OPS_MATH_PARALLEL_CPU_H

#include <stdint.h>

/* The work of member `member` of `members`; called once for each, in its own thread. */
typedef void team_body(void *context, int member, int members);

/* Runs a team of `threads` members, or fewer if no more are available, and returns when all are
 * done. The caller is member 0. A team within a member's work has one member. */
void team_run(int threads, team_body *body, void *context);

/* The amount of work from which a loop is split among a team. ThreadSanitizer builds, with a team
 * that it can observe (tests/lib/team.c), split all loops, however short. */
#ifdef PARALLEL_TEAM
extern const int parallel_always __attribute__((weak));
#define PARALLEL_WORTH(n) (&parallel_always ? 1 : (n))
#else
#define PARALLEL_WORTH(n) (n)
#endif

/* Elements that are worth a thread: of a loop bound by memory, and of one that computes about an
 * exponential for each. */
#define PARALLEL_GRAIN_MOVE 32768
#define PARALLEL_GRAIN_COMPUTE 4096

/* Processes indices [begin, end). Returns flags that the caller defines, 0 on success. */
typedef int parallel_body(void *context, int64_t begin, int64_t end);

/* Calls the body over [0, n) in at most `threads` threads, each with at least `grain` indices; with
 * one thread, directly. Returns the union of the bodies' flags. */
int parallel_for(int threads, int64_t n, int64_t grain, parallel_body *body, void *context);

#endif
