/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of what workers have of each other.
 */
#ifndef TF_OPS_AGGREGATE_COLLECTIVE_GRAD_H
#define TF_OPS_AGGREGATE_COLLECTIVE_GRAD_H

#include "pass/gradient/grad.h"

/* Attributes that say which workers are of one group (collective/group.h). */
#define COLLECTIVE_GROUP_ATTRS "group_size: int = 0 >= 0, group_stride: int = 1 >= 1"

/* Returns x, whose gradient a CollectiveGrad of that reduction brings back; root -1: none. Among
 * those who were a group of the node that sent it. */
struct edge collective_grad(struct build *b, const struct node *sent, struct edge gradient,
                            struct edge x, const char *reduction, int64_t root);

/* The reduction that brings gradients of another one back; NULL: it has none. */
const char *collective_adjoint(const char *reduction);

#endif
