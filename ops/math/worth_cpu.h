/* SPDX-License-Identifier: Apache-2.0
 *
 * From how much work on a loop is cut among a team. A program for ThreadSanitizer that brings a
 * team which that sees (tests/lib/team.c) has all loops cut, however short they are.
 */
#ifndef TF_OPS_MATH_WORTH_CPU_H
#define TF_OPS_MATH_WORTH_CPU_H

#ifdef PARALLEL_TEAM
extern const int parallel_always __attribute__((weak));
#define PARALLEL_WORTH(n) (&parallel_always ? 1 : (n))
#else
#define PARALLEL_WORTH(n) (n)
#endif

#endif
