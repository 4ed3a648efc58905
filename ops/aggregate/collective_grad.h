/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of values that workers get from each other.
 */
#ifndef TF_OPS_AGGREGATE_COLLECTIVE_GRAD_H
#define TF_OPS_AGGREGATE_COLLECTIVE_GRAD_H

#include "pass/gradient/grad.h"

/* Attributes that tell which workers form a group (collective/group.h). */
#define COLLECTIVE_GROUP_ATTRS "group_size: int = 0 >= 0, group_stride: int = 1 >= 1"

/* Returns the gradient of x, made by a CollectiveGrad of that reduction within the same group as
 * the node that sent x; root -1: none. */
struct edge collective_grad(struct build *b, const struct node *sent, struct edge gradient,
                            struct edge x, const char *reduction, int64_t root);

/* Returns the reduction for gradients of another reduction; NULL: it has none. */
const char *collective_adjoint(const char *reduction);

#endif
