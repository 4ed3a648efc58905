/* SPDX-License-Identifier: Apache-2.0
 *
 * Values sent from worker to worker within a step, and their gradients. The sum of all workers'
 * losses is differentiated, so a sent value's gradient comes from the workers that received it.
 */
#include <string.h>

#include "graph/op_cost.h"
#include "ops/aggregate/collective_grad.h"
#include "ops/array/build.h"

/* ---- shapes ---- */

static int unknown_rows(struct infer *infer)
{
    int code = infer_rank_at_least(infer, 0, 1);
    infer->out[0] = *infer_shape(infer, 0);
    if (infer->out[0].rank > 0)
        infer->out[0].dims[0] = SHAPE_UNKNOWN;
    return code;
}

static int shape_is_given(struct infer *infer)
{
    return infer_dims(infer, 1, &infer->out[0]);
}

/* ---- gradients ---- */

/* Copies an attribute of a node, for another one. */
static struct attr same(const struct node *node, const char *name)
{
    return (struct attr){name, *node_attr(node, name)};
}

struct edge collective_grad(struct build *b, const struct node *sent, struct edge gradient,
                            struct edge x, const char *reduction, int64_t root)
{
    struct edge inputs[] = {gradient, array_shape(b, x, INT64)};
    struct attr attrs[] = {{"reduction", attr_string(reduction)},
                           {"root", attr_int(root)},
                           same(sent, "group_size"),
                           same(sent, "group_stride")};
    return build_op(b, "CollectiveGrad", inputs, 2, attrs, 4);
}

/* Returns the adjoint reduction; the relation is symmetric. */
const char *collective_adjoint(const char *reduction)
{
    static const char *const pairs[][2] = {{"sum", "sum"},
                                           {"mean", "mean"},
                                           {"part", "part"},
                                           {"rows", "sum_part"},
                                           {"mean_rows", "mean_part"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        for (int k = 0; k < 2; k++)
            if (!strcmp(reduction, pairs[i][k]))
                return pairs[i][!k];
    return NULL;
}

static void back(struct grad *g, const char *reduction)
{
    const struct attr_value *root = node_attr(g->node, "root");
    g->in[0] = collective_grad(&g->b, g->node, g->out[0], grad_input(g, 0), reduction,
                               root ? root->i : -1);
}

static void broadcast_gradient(struct grad *g)
{
    back(g, "sum");
}

static void gather_gradient(struct grad *g)
{
    back(g, "part");
}

static void scatter_gradient(struct grad *g)
{
    back(g, "rows");
}

static void reduce_scatter_gradient(struct grad *g)
{
    back(g, strcmp(node_string(g->node, "reduction"), "mean") ? "rows" : "mean_rows");
}

static void all_gather_gradient(struct grad *g)
{
    back(g, "sum_part");
}

static void all_to_all_gradient(struct grad *g)
{
    back(g, "part");
}

/* The gradient of the gradient is the original op again. */
static void grad_gradient(struct grad *g)
{
    const char *reduction = node_string(g->node, "reduction");
    const char *rooted = !strcmp(reduction, "sum")    ? "CollectiveBroadcast"
                         : !strcmp(reduction, "part") ? "CollectiveGather"
                                                      : "CollectiveScatter";
    bool has_root = node_int(g->node, "root") >= 0;
    const char *forward = collective_adjoint(reduction);
    struct attr attrs[] = {same(g->node, "root"), same(g->node, "group_size"),
                           same(g->node, "group_stride")};
    if (!has_root)
        attrs[0] =
            (struct attr){"reductions", {.kind = ATTR_LIST_STRING, .n = 1, .strings = &forward}};
    g->in[0] = build_op(&g->b, has_root ? rooted : "AllReduce", g->out, 1, attrs, 3);
}

/* ---- declarations ---- */

#define EACH_STEP                                                                                  \
    "\nEach worker must run it in the same steps; one alone is the root. Workers are those of a "  \
    "group, and ranks places in it (AllReduce)."

#define ROUTE(op, takes, its_attrs, its_doc, its_shape, its_gradient, ...)                         \
    const struct op_def op_##op = {.name = #op,                                                    \
                                   .inputs = takes,                                                \
                                   .attrs = its_attrs,                                             \
                                   .doc = its_doc,                                                 \
                                   .shape = its_shape,                                             \
                                   .gradient = its_gradient,                                       \
                                   .outputs = "output: T",                                         \
                                   .keeps = 1 << 0,                                                \
                                   .round = ROUND_ROUTE,                                           \
                                   .half = HALF_KEPT,                                              \
                                   .cost = cost_elements,                                          \
                                   __VA_ARGS__}

ROUTE(CollectiveBroadcast, "value: T",
      "T: numeric|bool, root: int = 0 >= 0, " COLLECTIVE_GROUP_ATTRS,
      "The value of the worker whose rank is root, which all workers get.", infer_unchanged,
      broadcast_gradient,
      .detail = "Others' values say only of which type and shape it is." EACH_STEP,
      .flags = OP_STATEFUL | OP_ASYNC);

ROUTE(CollectiveGather, "value: T", "T: numeric|bool, root: int = 0 >= 0, " COLLECTIVE_GROUP_ATTRS,
      "All workers' rows, one worker's after the other's by rank, for the one that is root.",
      unknown_rows, gather_gradient,
      .detail = "Workers may have different numbers of rows. The others get no rows." EACH_STEP,
      .flags = OP_STATEFUL | OP_ASYNC | OP_SHAPED_BY_DATA);

ROUTE(CollectiveScatter, "value: T", "T: numeric|bool, root: int = 0 >= 0, " COLLECTIVE_GROUP_ATTRS,
      "The rows of the worker whose rank is root, a part of them for each worker by rank.",
      unknown_rows, scatter_gradient,
      .detail =
          "Parts are even, the first ones with a row more if need be. Others' values say only "
          "of which\ntype and shape a row is, and may have none." EACH_STEP,
      .flags = OP_STATEFUL | OP_ASYNC | OP_SHAPED_BY_DATA);

ROUTE(CollectiveReduceScatter, "value: T",
      "T: real, reduction: {\"sum\",\"mean\"} = \"sum\", " COLLECTIVE_GROUP_ATTRS,
      "The sum or the mean of all workers' values, a part of its rows for each by rank.",
      unknown_rows, reduce_scatter_gradient,
      .detail = "Parts are even, the first ones with a row more if need be." EACH_STEP,
      .flags = OP_STATEFUL | OP_ASYNC | OP_SHAPED_BY_DATA);

ROUTE(CollectiveAllGather, "value: T", "T: numeric|bool, " COLLECTIVE_GROUP_ATTRS,
      "All workers' rows, one worker's after the other's by rank, for all of them.", unknown_rows,
      all_gather_gradient, .detail = "Workers may have different numbers of rows." EACH_STEP,
      .flags = OP_STATEFUL | OP_ASYNC | OP_SHAPED_BY_DATA);

ROUTE(CollectiveAllToAll, "value: T", "T: numeric|bool, " COLLECTIVE_GROUP_ATTRS,
      "Of every worker's rows the part that is this one's, one worker's after the other's.",
      unknown_rows, all_to_all_gradient,
      .detail = "All have as many rows, which are cut in a part for each by rank: even ones, the "
                "first with a row\nmore if need be." EACH_STEP,
      .flags = OP_STATEFUL | OP_ASYNC | OP_SHAPED_BY_DATA);

ROUTE(
    CollectiveGrad, "gradient: T, shape: int64",
    "T: numeric, reduction: {\"sum\",\"mean\",\"part\",\"rows\",\"mean_rows\","
    "\"sum_part\",\"mean_part\"}, root: int = -1, " COLLECTIVE_GROUP_ATTRS,
    "Gradients of what workers sent each other, for who has sent it.", shape_is_given,
    grad_gradient,
    .detail =
        "shape is that of the value that was sent. reduction is as AllReduce's; part and sum_part "
        "are of as\nmany rows as each worker has sent. With a root from 0 on it alone gets the sum "
        "and the rows, and the\nothers zeros, or its rows are what is parted." EACH_STEP,
    .flags = OP_STATEFUL | OP_ASYNC | OP_SHAPED_BY_DATA);
