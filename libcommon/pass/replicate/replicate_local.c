/* SPDX-License-Identifier: Apache-2.0
 *
 * What a worker keeps for itself: sums of gradients that are pushed every so often (accumulation,
 * and Downpour of DistBelief, Dean et al. 2012), and copies of variables that are fetched every so
 * often. Which steps do is told by a counter, and steered by Switches: a step that does not push
 * leaves its push dead.
 */
#include <string.h>

#include "graph/infer.h"
#include "graph/worker_attr.h"
#include "pass/part/part.h"
#include "pass/replicate/replicate_push.h"

struct edge replicate_due(struct replicator *r, const char *name, struct edge number, int every)
{
    struct edge n = replicate_number(r, INT64, every, "%s/every", name);
    struct edge zero = replicate_number(r, INT64, 0, "%s/zero", name);
    struct edge rest = replicate_op(r, "Mod", number, n, "%s/rest", name);
    return replicate_op(r, "Equal", rest, zero, "%s", name);
}

int replicate_add_local(struct replicator *r)
{
    if (r->steps <= 1 && r->options->fetch <= 1)
        return 0;
    struct edge count = replicate_local(r, WORKER_STEP_COUNT, INT64, &SHAPE_SCALAR);
    struct edge zero = replicate_number(r, INT64, 0, "clock/count/zero");
    struct edge one = replicate_number(r, INT64, 1, "clock/count/one");
    struct edge next = replicate_op(r, "Add", count, one, "clock/count/next");
    if (r->err->code)
        return r->err->code;
    if (r->options->fetch > 1)
        r->fetches = replicate_due(r, "clock/fetches", count, r->options->fetch);
    if (r->steps > 1)
        r->fires = replicate_due(r, WORKER_PUSHES, next, r->steps);
    replicate_assign(r, &r->joined, count, zero, "clock/count/join");
    replicate_assign(r, &r->ends, count, next, "clock/count/Assign");
    return r->err->code;
}

/* ---- pushing every so often ---- */

struct step_sum replicate_sum(struct replicator *r, const char *name, const struct node *node,
                              struct edge gradient, struct edge due)
{
    const struct node *variable = replicate_variable_of(r, node);
    const struct node_output *output = &node->outputs[0];
    const struct shape *shape =
        variable && !shape_is_known(&output->shape) ? &variable->outputs[0].shape : &output->shape;
    bool is_of_rows = *replicate_role(node);
    if (is_of_rows || !shape_is_known(shape)) {
        error_set(r->err, ERR_DATA,
                  is_of_rows ? "%s: is a gradient of some rows, of which there is no sum over steps"
                             : "%s: its shape must be known to be summed over steps",
                  node_text(node));
        return (struct step_sum){EDGE_NONE, EDGE_NONE, EDGE_NONE};
    }
    struct step_sum sum = {.variable = replicate_local(r, name, output->type, shape)};
    struct edge total = replicate_op(r, "Add", sum.variable, gradient, "%s/Add", name);
    struct edge steered = replicate_op(r, "Switch", total, due, "%s/Switch", name);
    sum.full = (struct edge){steered.node, 1};
    struct edge zeros = replicate_op(r, "ZerosLike", sum.full, EDGE_NONE, "%s/ZerosLike", name);
    sum.rest = replicate_op(r, "Merge", steered, zeros, "%s/Merge", name);
    return sum;
}

/* The shapes of rows may differ from step to step. */
static struct edge assign_rows(struct replicator *r, const char *name, struct edge variable,
                               struct edge value)
{
    const struct edge inputs[] = {variable, value};
    const struct attr attr = {"validate_shape", attr_bool(false)};
    return replicate_node(r, "Assign", inputs, 2, &attr, 1, "%s", name);
}

/* The rows of some steps, one after the other; when they are pushed the worker begins with none. */
static struct edge keep_rows(struct replicator *r, const char *name, const struct node_output *rows,
                             struct edge value)
{
    const struct shape none = shape_matrix(0, rows->shape.dims[1]);
    const struct shape any = shape_matrix(-1, rows->shape.dims[1]);
    struct edge kept = replicate_local(r, name, rows->type, &any);
    struct edge empty = replicate_zeros(r, name, rows->type, &none);
    struct edge inputs[] = {replicate_number(r, INT32, 0, "%s/axis", name), kept, value};
    struct edge all = replicate_node(r, "Concat", inputs, 3, NULL, 0, "%s/all", name);
    struct edge steered = replicate_op(r, "Switch", all, r->fires, "%s/Switch", name);
    struct edge begin = replicate_op(r, "Switch", empty, r->fires, "%s/begin", name);
    struct edge rest = replicate_op(r, "Merge", steered, build_slot(begin, 1), "%s/Merge", name);
    replicate_also(r, &r->joined, assign_rows(r, replicate_text(r, name, "join"), kept, empty));
    replicate_also(r, &r->ends, assign_rows(r, replicate_text(r, name, "end"), kept, rest));
    return build_slot(steered, 1);
}

static struct edge pushed_whole(struct replicator *r, const struct push *push,
                                const struct pushed_value *value)
{
    const struct node *node = graph_node(r->from, value->edge.node);
    struct edge crossing = replicate_crossing(r, value->edge);
    if (!edge_exists(r->fires))
        return crossing;
    if (value->as == PUSHED_FACTOR) {
        /* The right factor is divided for the mean over steps, too. */
        const struct node_output *rows = &node->outputs[value->edge.slot];
        bool right = !strcmp(value->reduction, "mean_rows");
        const char *name =
            replicate_text(r, push->variable, right ? "gradient/right/rows" : "gradient/left/rows");
        struct edge all = keep_rows(r, name, rows, crossing);
        if (!right || r->options->mode == REPLICATE_DOWNPOUR)
            return all;
        struct edge k = replicate_number(r, rows->type, r->steps, "%s/steps", name);
        return replicate_op(r, "Div", all, k, "%s/mean", name);
    }
    if (has(r, node->id, FACT_MARKED)) {
        /* Sums a gradient; what is pushed is the sum, or the mean, and the sum starts again. */
        const char *name = replicate_text(r, node->name, "sum");
        struct step_sum sum = replicate_sum(r, name, node, crossing, r->fires);
        if (r->err->code)
            return EDGE_NONE;
        const struct node_output *output = &graph_node(r->to, sum.variable.node)->outputs[0];
        replicate_assign(r, &r->joined, sum.variable,
                         replicate_zeros(r, name, output->type, &output->shape), "%s/join", name);
        replicate_assign(r, &r->ends, sum.variable, sum.rest, "%s/Assign", name);
        if (r->options->mode == REPLICATE_DOWNPOUR)
            return sum.full;
        struct edge k = replicate_number(r, output->type, r->steps, "%s/steps", name);
        return replicate_op(r, "Div", sum.full, k, "%s/mean", name);
    }
    return build_slot(replicate_op(r, "Switch", crossing, r->fires, "%s/push", node->name), 1);
}

struct edge replicate_pushed(struct replicator *r, const struct push *push,
                             const struct pushed_value *value)
{
    if (value->as == PUSHED_DUE)
        return replicate_due_to_push(r, value->edge);
    if (value->as == PUSHED_FIRST || value->as == PUSHED_CODING)
        return replicate_push_first(r, value);
    struct edge whole = pushed_whole(r, push, value);
    if (!replicate_is_steady(r, push))
        whole = replicate_hold(r, push, graph_node(r->from, value->edge.node), whole);
    return value->as == PUSHED_CODE ? replicate_push_code(r, value->edge, whole) : whole;
}

/* ---- variables fetched every so often ---- */

/* The step that the worker takes in between: the rate times its gradient. */
static double rate_of(const struct replicator *r, const struct node *variable)
{
    for (size_t i = 0; i < r->from->nodes.n && r->options->rate < 0; i++) {
        const struct node *node = graph_node(r->from, (int)i);
        if (!has(r, (int)i, FACT_WRITER) || !node->op->def->descent.is_plain ||
            node->inputs[0].node != variable->id)
            continue;
        const struct tensor *rate =
            graph_constant(r->from, node->inputs[node->op->def->descent.rate]);
        return rate && tensor_count(rate) == 1 ? tensor_get_float64(rate, 0) : 0;
    }
    return r->options->rate > 0 ? r->options->rate : 0;
}

struct edge replicate_read(struct replicator *r, const struct node *reader, struct edge edge)
{
    /* The edge may be a variable's value, on a shard. */
    const struct node *node = graph_node(r->from, edge.node);
    if (node_is(node, "Identity") && has(r, node->id, FACT_SHARD))
        node = graph_node(r->from, node->inputs[0].node);
    const struct node *variable = edge.slot == 0 && node_is(node, "Variable") ? node : NULL;
    if (!edge_exists(r->fetches) || !variable || has(r, reader->id, FACT_SHARD | FACT_INITIAL))
        return replicate_edge(r, edge);
    for (size_t i = 0; i < r->locals.n; i++)
        if (r->locals.items[i].variable == variable)
            return r->locals.items[i].used;
    struct edge shared = replicate_edge(r, edge);
    const struct node_output *output = &variable->outputs[0];
    const char *name = replicate_text(r, variable->name, "local");
    struct edge copy = replicate_local(r, name, output->type, &output->shape);
    /* Sent by the shard only in steps that fetch. */
    struct edge fetched = replicate_op_beside(r, "Switch", shared, r->fetches, variable->name,
                                              "%s/local/fetched", variable->name);
    if (edge_exists(fetched) && !replicate_narrow(r, fetched.node))
        replicate_hurry(r, fetched.node, r->priority[variable->id]);
    struct edge kept = replicate_op(r, "Switch", copy, r->fetches, "%s/kept", name);
    struct edge used =
        replicate_op(r, "Merge", build_slot(kept, 0), build_slot(fetched, 1), "%s/used", name);
    replicate_assign(r, &r->joined, copy, shared, "%s/join", name);
    vec_push_in(&r->arena, &r->locals, ((struct local_copy){variable, copy, used}));
    return used;
}

static const struct node *gradient_of(const struct replicator *r, const struct node *variable)
{
    for (size_t i = 0; i < r->from->nodes.n; i++) {
        if (replicate_variable_of(r, graph_node(r->from, (int)i)) == variable)
            return graph_node(r->from, (int)i);
    }
    return NULL;
}

/* After a step the copy is what was used, less what the step itself would change. */
int replicate_end_local(struct replicator *r)
{
    for (size_t i = 0; i < r->locals.n && !r->err->code; i++) {
        struct local_copy local = r->locals.items[i];
        const struct node *gradient = gradient_of(r, local.variable);
        const char *name = replicate_text(r, local.variable->name, "local");
        double rate = gradient ? rate_of(r, local.variable) : 0;
        struct edge next = local.used;
        if (rate > 0 && replicate_may_leave_out(r))
            return error_set(r->err, ERR_DATA,
                             "the graph leaves out updates now and then, as a dynamic loss scale "
                             "does, which steps of a worker's own cannot: give downpour rate=0");
        if (rate > 0) {
            struct edge factor =
                replicate_number(r, local.variable->outputs[0].type, rate, "%s/rate", name);
            struct edge change =
                replicate_op(r, "Mul", replicate_edge(r, replicate_out(gradient->id)), factor,
                             "%s/change", name);
            next = replicate_op(r, "Sub", local.used, change, "%s/next", name);
        }
        replicate_assign(r, &r->ends, local.copy, next, "%s/Assign", name);
    }
    return r->err->code;
}
