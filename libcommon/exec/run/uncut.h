/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of a graph do not see of each other, for one request. The graph is put together as
 * it was before it was cut: who took what a Recv gives takes what its Send is given. So the plan of
 * a part that is fed nothing itself, as that of a second tower, knows as much of its shapes as that
 * of the whole graph; and reads and writes of variables have one order, whatever is run.
 */
#ifndef TF_EXEC_UNCUT_H
#define TF_EXEC_UNCUT_H

#include "exec/plan/plan.h"

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
