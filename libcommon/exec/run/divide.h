/* SPDX-License-Identifier: Apache-2.0
 *
 * A request on a graph that was cut into parts (graph/join.h), divided among places, which are
 * devices or tasks: what each of them is fed, what is fetched from it, what it must run. A Recv
 * that is needed makes its Send a target of the place that has it.
 */
#ifndef TF_EXEC_DIVIDE_H
#define TF_EXEC_DIVIDE_H

#include "exec/plan/plan.h"

struct share {
    VEC(int) feeds;   /* which of the request's */
    VEC(int) fetches; /* which of the request's */
    VEC(int) targets; /* node ids */
};

/* `place` says of each node which of the shares it belongs to; these are zeroed before. */
void request_divide(const struct graph *graph, const struct plan_request *request, const int *place,
                    struct share *shares);

/* Adds what concerns a share, whose fetches have numbers of their own, and all that is of nodes. */
void share_take_order(const struct share *share, const plan_order *whole, plan_order *own);

/* Returns whether there is anything to run. */
bool share_is_idle(const struct share *share);
void share_release(struct share *share);

/* ---- what the parts do not see of each other ---- */

/* For one request the graph is put together as
 * it was before it was cut: who took what a Recv gives takes what its Send is given. So the plan of
 * a part that is fed nothing itself, as that of a second tower, knows as much of its shapes as that
 * of the whole graph; and reads and writes of variables have one order, whatever is run.
 */

struct uncut;

/* Joins the nodes that the request needs, those of other parts, too. Borrows both. */
struct uncut *uncut_new(const struct graph *graph, const struct plan_request *request);
void uncut_free(struct uncut *uncut);

/* By node, for plan_request: of each Recv the shape of what it gets. NULL: nothing can be said but
 * what the Recvs say; why is for the plans to find. The caller frees it. */
struct shape *uncut_shapes(struct uncut *uncut);

/* For plan_request; to be asked last. ERR_DATA: reads and writes contradict each other. */
int uncut_order(struct uncut *uncut, plan_order *order, struct error *err);

#endif
