/* SPDX-License-Identifier: Apache-2.0
 *
 * Dense layers cut over workers, the rest of the model by rows of the batch (Krizhevsky, One weird
 * trick for parallelizing convolutional neural networks, 2014). A graph that trains becomes one
 * that each worker runs, with collectives in it; pass/replicate makes workers of it.
 *
 * A dense layer is a product of rows of the batch and a variable that is trained, a matrix. Of the
 * first layer each worker has columns of the matrix, of those behind it the rows that belong to the
 * columns of what is before; and so of its bias, and of the slots of optimizers. What a layer is
 * given, and its errors, go from worker to worker; matrices and their gradients never do.
 *
 * A value of the source, which is one process', of all workers' rows, is in each worker
 *
 *     own    its rows of it; what no rows depend on is each worker's own, and the mean counts
 *     same   the value
 *     all    the value, of all workers' rows
 *     cut    a part of it along an axis, an even one (collective_part)
 *     sum    a term: the value is the sum of all workers'
 *
 * Each node is given its inputs in forms in which it can compute a form of its result, and what is
 * in another form is converted, once. An op of which nothing is known is given the whole.
 *
 * Before the first layer, and behind the last one, is each worker's own: the loss is of its rows.
 * What is minimized is the mean of all workers' losses, as by replication.
 */
#ifndef TF_PASS_DENSE_H
#define TF_PASS_DENSE_H

#include "pass/pass.h"

#define DENSE_PASSES_MAX 1024

struct dense_options {
    const struct pass_options *pass; /* told of each variable that dense_graph cuts, and along which
                                      * axis; NULL: nobody */
    int passes;       /* of dense_passes: as many as workers, at most DENSE_PASSES_MAX */
    bool by_worker;   /* a pass has all rows of one worker, else a part of each worker's */
    bool update_each; /* layers are updated after each pass, not after all of them */
};

/* The dense layers, and the loss, in several passes, one after the other, each of some rows: the
 * schemes b (by worker) and c of the paper. What comes of all of them is what one pass of all rows
 * makes; between layers there are the rows of one. Names mean what they did; what a pass makes of
 * NAME is pass_0/NAME and so on. Of noise each pass draws its own. *to is for dense_graph, and as
 * of that. ERR_DATA also of what has a state, or is control flow, and would be in passes.
 *
 * With update_each a pass' own gradients, as much as they count in those of all, change the layers
 * before the next one: the result is no longer one pass'. Whoever gets a value from behind a layer
 * then trains; ERR_DATA naming an entry that does not train now, or an update that is by gradients
 * of others, too. */
int dense_passes(const struct graph *from, const struct dense_options *options, struct graph **to,
                 struct error *err);

/* *to borrows from `from`. ERR_DATA: there is no dense layer; or naming a node that needs a value
 * whole, or of its own rows, that cannot be so. */
int dense_graph(const struct graph *from, const struct dense_options *options, struct graph **to,
                struct error *err);

#endif
