/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic simplification's rules for rearrangements. Each is given a node and its view; it
 * returns true after it has put something into the node's place.
 */
#ifndef TF_PASS_ARITH_PRIVATE_H
#define TF_PASS_ARITH_PRIVATE_H

#include "pass/rewrite.h"

/* The producer of input 0 if it is such an op and may be looked through. */
const struct node *arith_inner(const struct rewrite *r, const struct node *view,
                               const struct op *op);

bool arith_reshape(struct rewrite *r, const struct node *node, const struct node *view);
bool arith_transpose(struct rewrite *r, const struct node *node, const struct node *view);

#endif
