/* SPDX-License-Identifier: Apache-2.0
 *
 * Large gradients of products in pieces: what replicate_pieces.c has for all-reduce. Private to
 * libcommon/pass.
 */
#ifndef TF_PASS_REPLICATE_PIECES_H
#define TF_PASS_REPLICATE_PIECES_H

#include "pass/replicate/replicate_private.h"

/* Some rows of a gradient, in the result: what the worker makes, and the sum of all workers'. */
struct gradient_piece {
    struct edge gradient; /* of the source */
    struct edge made;
    int64_t first_row;
    struct edge sum;
};

/* Whether a gradient that crosses whole does so some rows at a time. */
bool replicate_is_in_pieces(const struct replicator *r, struct edge gradient);

/* Makes the pieces of such a gradient, and reduces them; a smaller priority goes first, 0: none. */
int replicate_reduce_pieces(struct replicator *r, struct edge gradient, int priority);

/* Adds the updates by these pieces in place of the node, if that is an update by one. */
bool replicate_copy_pieces(struct replicator *r, const struct node *node);

#endif
