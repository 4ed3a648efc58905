/* SPDX-License-Identifier: Apache-2.0
 *
 * Collectives of workers, without shards: exec/step/collective.h.
 */
#include "base/vec.h"
#include "graph/infer.h"
#include "graph/op_cost.h"
#include "ops/aggregate/collective_grad.h"

static int allreduce_shape(struct infer *infer)
{
    /* Results of all but the first three have other rows than a worker contributes. */
    enum { SAME_ROWS = 3, KNOWN = 8 };
    static const char *const known[KNOWN] = {"mean",      "sum",  "first",    "rows",
                                             "mean_rows", "part", "sum_part", "mean_part"};
    const struct attr_value *reductions = node_attr(infer->node, "reductions");
    if (reductions->n != infer->n_in)
        return infer_fail(infer, "%d values and %d reductions", infer->n_in, reductions->n);
    for (int i = 0; i < infer->n_in; i++) {
        const char *reduction = reductions->strings[i];
        size_t k = names_find(known, KNOWN, reduction);
        if (k == KNOWN)
            return infer_fail(infer,
                              "reduction '%s' is none of mean, sum, first, rows, mean_rows, part, "
                              "sum_part and mean_part",
                              reduction);
        infer->out[i] = *infer_shape(infer, i);
        if (k >= SAME_ROWS && infer->out[i].rank > 0)
            infer->out[i].dims[0] = -1;
    }
    return 0;
}

/* A broadcast from the lowest rank has no root that the others could name. */
static void allreduce_gradient(struct grad *g)
{
    const struct attr_value *reductions = node_attr(g->node, "reductions");
    for (int i = 0; i < g->node->n_outputs && !g->b.err->code; i++) {
        const char *back = collective_adjoint(reductions->strings[i]);
        if (!edge_exists(g->out[i]))
            continue;
        if (back)
            g->in[i] = collective_grad(&g->b, g->node, g->out[i], grad_input(g, i), back, -1);
        else
            error_set(g->b.err, ERR_DATA, "there is no gradient of reduction '%s'",
                      reductions->strings[i]);
    }
}

const struct op_def op_AllReduce = {
    .name = "AllReduce",
    .inputs = "values: T...",
    .outputs = "reduced: T...",
    .attrs = "T: list(any) >= 1, reductions: list(string), " COLLECTIVE_GROUP_ATTRS
             ", schedule: {\"direct\",\"chain\",\"ring\",\"tree\",\"halving\",\"two-level\","
             "\"nccl\",\"nccl-auto\",\"servers\"} = \"direct\", schedule_hosts: list(int) = []",
    .doc = "Values of all workers, reduced to one each, which all of them get.",
    .detail =
        "mean and sum add by rank, first is that of the least rank; rows puts all workers' rows "
        "one after\nthe other, mean_rows also divides them by the number of workers. Of part, each "
        "worker's rows are cut\nin as many parts as there are workers, the first ones with a row "
        "more if need be, and a worker gets\nits part of all workers' rows, by rank; sum_part and "
        "mean_part are its part of the sum and the mean.\nEach worker must run it in the same "
        "steps. With a group_size g and a group_stride s those workers are a group, and reduce "
        "together, whose ranks r agree in r / (g s) and in r mod s. A worker whose input is dead "
        "brings nothing: the others of\nits group fail, unless no one brings anything.\n"
        "schedule says on which ways sums and means of more than 64 KiB go, but for 16-bit floats. "
        "chain gives\nthe bits of direct; the others associate otherwise, all workers alike. "
        "two-level wants the host of each\nworker, a number, in schedule_hosts. nccl has NCCL add "
        "sums and means of float32, float64, int32 and\nint64 among the GPUs of all workers, in an "
        "order of its own; nccl-auto does where all have it. With servers the shards add large "
        "sums, and "
        "pass on rows; the bits are\nthose of direct.",
    .flags = OP_STATEFUL | OP_ASYNC | OP_SHAPED_BY_DATA,
    .keeps = 1 << 0,
    .round = ROUND_REDUCE,
    .half = HALF_KEPT,
    .cost = cost_elements,
    .shape = allreduce_shape,
    .gradient = allreduce_gradient,
};
