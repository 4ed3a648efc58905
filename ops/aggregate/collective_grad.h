/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of what workers have of each other.
 */
#ifndef TF_OPS_AGGREGATE_COLLECTIVE_GRAD_H
#define TF_OPS_AGGREGATE_COLLECTIVE_GRAD_H

#include "pass/gradient/grad.h"

/* Of x, of which a CollectiveGrad of that reduction brings the gradient back; root -1: none. */
struct edge collective_grad(struct build *b, struct edge gradient, struct edge x,
                            const char *reduction, int64_t root);

/* The reduction that brings gradients of another one back; NULL: it has none. */
const char *collective_adjoint(const char *reduction);

#endif
