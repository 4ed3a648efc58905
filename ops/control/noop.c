/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes that only order others.
 */
#include "graph/op.h"
#include "graph/op_cost.h"

const struct op_def op_NoOp = {
    .name = "NoOp",
    .doc = "Computes nothing; runs after its control inputs, so it groups them.",
    .flags = OP_NO_GRADIENT,
    .cost = cost_nothing,
    .no_gradient = "it has no inputs",
};

const struct op_def op_ControlTrigger = {
    .name = "ControlTrigger",
    .doc = "Computes nothing; runs after its control inputs, even if they are dead.",
    .flags = OP_NO_GRADIENT | OP_STATEFUL,
    .cost = cost_nothing,
    .no_gradient = "it has no inputs",
};
