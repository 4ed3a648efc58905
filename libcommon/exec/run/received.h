/* SPDX-License-Identifier: Apache-2.0
 *
 * What a part of a graph gets from other parts of the same process: its shape follows from what
 * the request is fed there. So the plan of a part that is fed nothing itself, as that of a second
 * tower, knows as much of its shapes as that of the graph before it was cut.
 */
#ifndef TF_EXEC_RECEIVED_H
#define TF_EXEC_RECEIVED_H

#include "exec/plan/plan.h"

/* By node, for plan_request: of each Recv that is `needed` (by node, with what it depends on in
 * other parts, too) the shape of what it gets. NULL: nothing can be said but what the Recvs say;
 * why is for the plans to find. */
struct shape *received_shapes(const struct graph *graph, const struct plan_request *request,
                              const bool *needed);

#endif
