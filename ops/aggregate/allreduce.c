/* SPDX-License-Identifier: Apache-2.0
 *
 * What workers compute together without shards: exec/step/collective.h.
 */
#include <string.h>

#include "graph/infer.h"
#include "graph/op_cost.h"

static int allreduce_shape(struct infer *infer)
{
    const struct attr_value *reductions = node_attr(infer->node, "reductions");
    if (reductions->n != infer->n_in)
        return infer_fail(infer, "%d values and %d reductions", infer->n_in, reductions->n);
    for (int i = 0; i < infer->n_in; i++) {
        const char *reduction = reductions->strings[i];
        bool rows = !strcmp(reduction, "rows") || !strcmp(reduction, "mean_rows");
        if (!rows && strcmp(reduction, "mean") != 0 && strcmp(reduction, "sum") != 0 &&
            strcmp(reduction, "first") != 0)
            return infer_fail(
                infer, "reduction '%s' is none of mean, sum, first, rows and mean_rows", reduction);
        infer->out[i] = *infer_shape(infer, i);
        if (rows && infer->out[i].rank > 0)
            infer->out[i].dims[0] = -1;
    }
    return 0;
}

const struct op_def op_AllReduce = {
    .name = "AllReduce",
    .inputs = "values: T...",
    .outputs = "reduced: T...",
    .attrs = "T: list(any) >= 1, reductions: list(string)",
    .doc = "Values of all workers, reduced to one each, which all of them get.",
    .detail =
        "mean and sum add by rank, first is that of the least rank; rows puts all workers' rows "
        "one after\nthe other, mean_rows also divides them by the number of workers. Each worker "
        "must run it in the\nsame steps.",
    .flags = OP_STATEFUL | OP_NO_GRADIENT | OP_ASYNC | OP_SHAPED_BY_DATA,
    .keeps = 1 << 0,
    .round = ROUND_REDUCE,
    .half = HALF_KEPT,
    .cost = cost_elements,
    .shape = allreduce_shape,
    .no_gradient = "a graph is replicated after its gradients are there",
};
