/* SPDX-License-Identifier: Apache-2.0
 *
 * What workers push and updates take; resource/clock.h describes the whole.
 */
#include "base/vec.h"
#include "graph/infer.h"
#include "graph/op_cost.h"

#define AGGREGATOR(op, ...)                                                                        \
    const struct op_def op_##op = {.name = #op,                                                    \
                                   .half = HALF_KEPT,                                              \
                                   .cost = cost_elements,                                          \
                                   .no_gradient =                                                  \
                                       "a graph is replicated after its gradients are there",      \
                                   __VA_ARGS__}

AGGREGATOR(AggregatorPush, .inputs = "values: T...", .outputs = "token: int64",
           .attrs = "T: list(any) >= 1, aggregator: string, container: string = \"\"",
           .doc = "Stages what a worker's step pushes to the variables of a device.",
           .detail =
               "It is kept under worker, incarnation and number of the step; the token is the "
               "latter. Staged once\nmore, it is replaced. It counts when a ClockPush that "
               "waits for those of all devices does.",
           .flags = OP_STATEFUL | OP_NO_GRADIENT, .keeps = 1 << 0, .round = ROUND_PUSH,
           .shape = infer_output_scalar);

static int take_shape(struct infer *infer)
{
    static const char *const known[] = {"mean", "sum", "first", "rows", "mean_rows"};
    const size_t n_known = sizeof known / sizeof *known;
    const struct attr_value *shapes = node_attr(infer->node, "shapes");
    const struct attr_value *reductions = node_attr(infer->node, "reductions");
    if (infer_rank(infer, 0, 2) || infer_rank(infer, 1, 2))
        return infer->err->code;
    if (shapes->n != infer->n_out || reductions->n != infer->n_out)
        return infer_fail(infer, "%d values, %d shapes and %d reductions", infer->n_out, shapes->n,
                          reductions->n);
    for (int i = 0; i < infer->n_out; i++) {
        if (names_find(known, n_known, reductions->strings[i]) == n_known)
            return infer_fail(infer,
                              "reduction '%s' is none of mean, sum, first, rows and mean_rows",
                              reductions->strings[i]);
        infer->out[i] = shapes->shapes[i];
    }
    return 0;
}

AGGREGATOR(
    AggregatorTake, .inputs = "members: int64, dropped: int64", .outputs = "values: T...",
    .attrs = "T: list(any) >= 1, shapes: list(shape), reductions: list(string), "
             "aggregator: string, container: string = \"\"",
    .doc = "Takes what the members of a round staged, reduced to one value each.",
    .detail =
        "members and dropped are a ClockRound's. mean and sum add in the order of members, first "
        "is the\nfirst member's; rows puts the members' rows one after the other, mean_rows also "
        "divides them by\ntheir number. What is staged of dropped pushes is forgotten.",
    .flags = OP_STATEFUL | OP_NO_GRADIENT | OP_SHAPED_BY_DATA, .round = ROUND_TAKE,
    .shape = take_shape);
