/* SPDX-License-Identifier: Apache-2.0
 *
 * Dense layers cut over workers, the rest of the model by rows of the batch (Krizhevsky, One weird
 * trick for parallelizing convolutional neural networks, 2014). A graph that trains becomes one
 * that each worker runs, with collectives in it; pass/replicate makes workers of it.
 *
 * A dense layer is a product of rows of the batch and a variable that is trained, a matrix. Of the
 * first layer each worker has columns of the matrix; of a later one the rows that belong to the
 * columns that the layer before makes there. Biases and the slots of optimizers are cut likewise.
 * Inputs of layers, and their errors, go from worker to worker; matrices and their gradients never
 * do.
 *
 * The source is the graph of one process, which has the rows of all workers. A worker has of a
 * value
 *
 *     own    the worker's rows; of a value without rows its own version, whose mean counts
 *     same   the value, equal in all workers
 *     all    the value with the rows of all workers
 *     cut    one of the even parts along an axis (collective_part)
 *     sum    a term: the value is the sum of the workers' terms
 *
 * A node gets its inputs in layouts from which it can compute its result in one of these. A value
 * is converted once to each other layout that is needed. An op without a rule gets whole values.
 *
 * Before the first layer, and behind the last one, workers compute with their own rows, so each has
 * a loss of its own. What is minimized is the mean of these, as with replication.
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

/* The dense layers and the loss in several passes, one after the other, each of some rows: the
 * schemes b (by worker) and c of the paper. Together they compute what one pass of all rows would,
 * while the values between layers have the rows of one pass. Names keep their meaning; node NAME in
 * pass 0 is pass_0/NAME. Each pass draws noise of its own. *to is for dense_graph, with the same
 * errors; ERR_DATA also for state or control flow within the passes.
 *
 * With update_each the gradients of a pass, weighted by its share of the rows, change the layers
 * before the next pass, so the result is no longer that of one pass. To compute a value behind a
 * layer is to train then; ERR_DATA naming an entry that did not train before, or an update that
 * needs gradients of other passes as well. */
int dense_passes(const struct graph *from, const struct dense_options *options, struct graph **to,
                 struct error *err);

/* *to borrows from `from`. ERR_DATA: there is no dense layer; or naming a node that needs a value
 * whole, or of its own rows, that cannot be so. */
int dense_graph(const struct graph *from, const struct dense_options *options, struct graph **to,
                struct error *err);

#endif
