/* SPDX-License-Identifier: Apache-2.0
 *
 * A request on a graph that was cut into parts (graph/join.h), divided among places, which are
 * devices or tasks: for each place its feeds, its fetches, and what it must run. A Recv that is
 * needed makes its Send a target of the Send's place.
 */
#ifndef TF_EXEC_DIVIDE_H
#define TF_EXEC_DIVIDE_H

#include "exec/plan/plan.h"

struct share {
    VEC(int) feeds;   /* indices among the request's */
    VEC(int) fetches; /* indices among the request's */
    VEC(int) targets; /* node ids */
};

/* `place` is by node: the share that it belongs to. The shares are zeroed before. */
void request_divide(const struct graph *graph, const struct plan_request *request, const int *place,
                    struct share *shares);

/* Adds to `own` the places of the share's fetches, renumbered, and all places of nodes. */
void share_take_order(const struct share *share, const plan_order *whole, plan_order *own);

/* Returns whether there is anything to run. */
bool share_is_idle(const struct share *share);
void share_release(struct share *share);

/* ---- facts that one part cannot see of the others ---- */

/* For one request the graph is put together again as it was before it was cut: the consumers of a
 * Recv take the input of its Send. So the plan of a part without feeds of its own, such as a second
 * tower, knows as much of its shapes as a plan of the whole graph would; and reads and writes of
 * variables have one order, whatever is run. */

struct uncut;

/* Joins the nodes that the request needs, including those of other parts. Borrows both. */
struct uncut *uncut_new(const struct graph *graph, const struct plan_request *request);
void uncut_free(struct uncut *uncut);

/* By node, for plan_request: the shape that each Recv receives. NULL: nothing is known besides the
 * Recvs' attributes, and the plans will report why. The caller frees the array. */
struct shape *uncut_shapes(struct uncut *uncut);

/* For plan_request; called last. ERR_DATA: reads and writes contradict each other. */
int uncut_order(struct uncut *uncut, plan_order *order, struct error *err);

#endif
