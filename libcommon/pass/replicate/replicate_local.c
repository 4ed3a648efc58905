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

static void set_at_join(struct replicator *r, const char *name, struct edge variable,
                        struct edge value)
{
    int set = replicate_op(r, "Assign", replicate_text(r, name, "join"), variable, value);
    if (set >= 0)
        vec_push(&r->joined, set);
}

static void set_at_end(struct replicator *r, const char *op, const char *name, struct edge variable,
                       struct edge value)
{
    int set = replicate_op(r, op, replicate_text(r, name, op), variable, value);
    if (set >= 0)
        vec_push(&r->ends, set);
}

struct edge replicate_due(struct replicator *r, const char *name, struct edge number, int every)
{
    struct edge n = replicate_number(r, replicate_text(r, name, "every"), INT64, every);
    struct edge zero = replicate_number(r, replicate_text(r, name, "zero"), INT64, 0);
    int rest = replicate_op(r, "Mod", replicate_text(r, name, "rest"), number, n);
    return replicate_out(replicate_op(r, "Equal", name, replicate_out(rest), zero));
}

int replicate_add_local(struct replicator *r)
{
    if (r->steps <= 1 && r->options->fetch <= 1)
        return 0;
    struct edge count = replicate_local(r, WORKER_STEP_COUNT, INT64, &SHAPE_SCALAR);
    struct edge zero = replicate_number(r, "clock/count/zero", INT64, 0);
    struct edge one = replicate_number(r, "clock/count/one", INT64, 1);
    int next = replicate_op(r, "Add", "clock/count/next", count, one);
    if (r->err->code)
        return r->err->code;
    if (r->options->fetch > 1)
        r->fetches = replicate_due(r, "clock/fetches", count, r->options->fetch);
    if (r->steps > 1)
        r->fires = replicate_due(r, WORKER_PUSHES, replicate_out(next), r->steps);
    set_at_join(r, "clock/count", count, zero);
    set_at_end(r, "Assign", "clock/count", count, replicate_out(next));
    return r->err->code;
}

/* ---- pushing every so often ---- */

static struct edge steer(struct replicator *r, const char *name, struct edge value)
{
    return replicate_out(replicate_op(r, "Switch", name, value, r->fires));
}

struct step_sum replicate_sum(struct replicator *r, const char *name, const struct node *node,
                              struct edge gradient, struct edge due)
{
    const struct node *variable = graph_find(r->from, node_attr(node, "_gradient")->s);
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
    struct edge total = replicate_out(
        replicate_op(r, "Add", replicate_text(r, name, "Add"), sum.variable, gradient));
    struct edge steered =
        replicate_out(replicate_op(r, "Switch", replicate_text(r, name, "Switch"), total, due));
    sum.full = (struct edge){steered.node, 1};
    struct edge zeros = replicate_out(
        replicate_op(r, "ZerosLike", replicate_text(r, name, "ZerosLike"), sum.full, EDGE_NONE));
    sum.rest =
        replicate_out(replicate_op(r, "Merge", replicate_text(r, name, "Merge"), steered, zeros));
    return sum;
}

/* The shapes of rows may differ from step to step. */
static int assign_rows(struct replicator *r, const char *name, struct edge variable,
                       struct edge value)
{
    struct edge inputs[] = {variable, value};
    struct attr attr = {"validate_shape", attr_bool(false)};
    struct node_spec spec = {
        .op = "Assign", .inputs = inputs, .n_inputs = 2, .attrs = &attr, .n_attrs = 1};
    return r->err->code ? -1 : replicate_add(r, WORKER_DEVICE, name, &spec);
}

/* The rows of some steps, one after the other; when they are pushed the worker begins with none. */
static struct edge keep_rows(struct replicator *r, const char *name, const struct node_output *rows,
                             struct edge value)
{
    const struct shape none = shape_matrix(0, rows->shape.dims[1]);
    const struct shape any = shape_matrix(-1, rows->shape.dims[1]);
    struct edge kept = replicate_local(r, name, rows->type, &any);
    struct edge empty = replicate_zeros(r, name, rows->type, &none);
    struct edge inputs[] = {replicate_number(r, replicate_text(r, name, "axis"), INT32, 0), kept,
                            value};
    struct node_spec spec = {.op = "Concat", .inputs = inputs, .n_inputs = 3};
    if (r->err->code)
        return EDGE_NONE;
    struct edge all =
        replicate_out(replicate_add(r, WORKER_DEVICE, replicate_text(r, name, "all"), &spec));
    struct edge steered = steer(r, replicate_text(r, name, "Switch"), all);
    struct edge begin = steer(r, replicate_text(r, name, "begin"), empty);
    int rest = replicate_op(r, "Merge", replicate_text(r, name, "Merge"), steered,
                            (struct edge){begin.node, 1});
    int joined = assign_rows(r, replicate_text(r, name, "join"), kept, empty);
    int ends = assign_rows(r, replicate_text(r, name, "end"), kept, replicate_out(rest));
    if (ends < 0)
        return EDGE_NONE;
    vec_push(&r->joined, joined);
    vec_push(&r->ends, ends);
    return (struct edge){steered.node, 1};
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
        struct edge k = replicate_number(r, replicate_text(r, name, "steps"), rows->type, r->steps);
        return replicate_out(replicate_op(r, "Div", replicate_text(r, name, "mean"), all, k));
    }
    if (has(r, node->id, FACT_MARKED)) {
        /* Sums a gradient; what is pushed is the sum, or the mean, and the sum starts again. */
        const char *name = replicate_text(r, node->name, "sum");
        struct step_sum sum = replicate_sum(r, name, node, crossing, r->fires);
        if (r->err->code)
            return EDGE_NONE;
        const struct node_output *output = &graph_node(r->to, sum.variable.node)->outputs[0];
        set_at_join(r, name, sum.variable, replicate_zeros(r, name, output->type, &output->shape));
        set_at_end(r, "Assign", name, sum.variable, sum.rest);
        if (r->options->mode == REPLICATE_DOWNPOUR)
            return sum.full;
        struct edge k =
            replicate_number(r, replicate_text(r, name, "steps"), output->type, r->steps);
        return replicate_out(replicate_op(r, "Div", replicate_text(r, name, "mean"), sum.full, k));
    }
    return (struct edge){steer(r, replicate_text(r, node->name, "push"), crossing).node, 1};
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

/* What the worker steps by in between: rate times its gradient. */
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
    const char *group = arena_printf(&r->to->arena, "loc:@%s", variable->name);
    struct edge inputs[] = {shared, r->fetches};
    struct attr attr = {"_class", {.kind = ATTR_LIST_STRING, .n = 1, .strings = &group}};
    struct node_spec spec = {
        .op = "Switch", .inputs = inputs, .n_inputs = 2, .attrs = &attr, .n_attrs = 1};
    int fetched = r->err->code
                      ? -1
                      : replicate_add(r, SHARD_DEVICE,
                                      replicate_text(r, variable->name, "local/fetched"), &spec);
    if (fetched >= 0 && !replicate_narrow(r, fetched))
        replicate_hurry(r, fetched, r->priority[variable->id]);
    int kept = replicate_op(r, "Switch", replicate_text(r, name, "kept"), copy, r->fetches);
    struct edge used =
        replicate_out(replicate_op(r, "Merge", replicate_text(r, name, "used"),
                                   (struct edge){kept, 0}, (struct edge){fetched, 1}));
    set_at_join(r, name, copy, shared);
    vec_push(&r->locals, ((struct local_copy){variable, copy, used}));
    return used;
}

static const struct node *gradient_of(const struct replicator *r, const struct node *variable)
{
    for (size_t i = 0; i < r->from->nodes.n; i++) {
        const struct attr_value *mark = node_attr(graph_node(r->from, (int)i), "_gradient");
        if (mark && !strcmp(mark->s, variable->name))
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
            struct edge factor = replicate_number(r, replicate_text(r, name, "rate"),
                                                  local.variable->outputs[0].type, rate);
            int change = replicate_op(r, "Mul", replicate_text(r, name, "change"),
                                      replicate_edge(r, (struct edge){gradient->id, 0}), factor);
            next = replicate_out(replicate_op(r, "Sub", replicate_text(r, name, "next"), local.used,
                                              replicate_out(change)));
        }
        set_at_end(r, "Assign", name, local.copy, next);
    }
    return r->err->code;
}
