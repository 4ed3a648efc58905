/* SPDX-License-Identifier: Apache-2.0
 *
 * A piece of work that is shared by the compute team: OpenMP's parallel region as a function.
 */
#ifndef TF_OPS_MATH_TEAM_CPU_H
#define TF_OPS_MATH_TEAM_CPU_H

/* What member `member` of `members` does; each is called once, in a thread of its own. */
typedef void team_body(void *context, int member, int members);

/* Starts a team of `threads` members, or fewer if there are no more, and returns when all are done.
 * The caller is member 0. Within a member's work a team has one. */
void team_run(int threads, team_body *body, void *context);

#endif
