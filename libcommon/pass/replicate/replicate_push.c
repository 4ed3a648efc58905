/* SPDX-License-Identifier: Apache-2.0
 *
 * The values that a worker sends with a push, and the state that it keeps where it does not push or
 * fetch in each step: sums of gradients (accumulation, and Downpour of DistBelief, Dean et al.
 * 2012), and copies of variables. A counter tells which steps push or fetch, and Switches steer
 * them: in a step that does not push, the push is dead.
 */
#include "pass/replicate/replicate_push.h"

#include "graph/infer.h"
#include "graph/worker_attr.h"
#include "pass/replicate/replicate_reduce.h"

/* ---- values of a push ---- */

struct edge replicate_due_to_push(struct replicator *r, struct edge flag)
{
    if (!edge_exists(r->own->fires) || r->err->code)
        return flag;
    return replicate_when(r, flag, r->own->fires, "%s/push", graph_node(r->to, flag.node)->name);
}

/* ---- sums over steps ---- */

/* A sum over steps, in the result. */
struct step_sum {
    struct edge variable;
    struct edge full; /* pushed when it is due */
    struct edge rest; /* the variable's next value */
};

static const struct shape *shape_of_sum(const struct exchange *x)
{
    const struct shape *shape = &x->output->shape;
    return x->variable && !shape_is_known(shape) ? &x->variable->outputs[0].shape : shape;
}

int replicate_check_sums(struct replicator *r)
{
    vec_each(at, &r->planned) {
        const struct exchange *x = *at;
        if (x->steps < 2 || !x->is_gradient || x->crossing == CROSSES_BY_FACTORS ||
            (!x->is_of_rows && shape_is_known(shape_of_sum(x))))
            continue;
        return error_set(r->err, ERR_DATA,
                         x->is_of_rows
                             ? "%s: is a gradient of some rows, of which there is no sum over steps"
                             : "%s: its shape must be known to be summed over steps",
                         node_text(x->node));
    }
    return 0;
}

/* Adds a worker's sum of a gradient; the caller assigns the variable, at the join and after each
 * step. */
static struct step_sum sum_steps(struct replicator *r, const char *name, const struct exchange *x,
                                 struct edge gradient, struct edge due)
{
    struct step_sum sum = {.variable = replicate_local(r, name, x->output->type, shape_of_sum(x))};
    struct edge total = replicate_op(r, "Add", sum.variable, gradient, "%s/Add", name);
    struct edge steered = replicate_op(r, "Switch", total, due, "%s/Switch", name);
    sum.full = build_slot(steered, 1);
    struct edge zeros = replicate_op(r, "ZerosLike", sum.full, EDGE_NONE, "%s/ZerosLike", name);
    sum.rest = replicate_op(r, "Merge", steered, zeros, "%s/Merge", name);
    return sum;
}

/* The pushed value: the sum over steps, or their mean. */
static struct edge mean_of_steps(struct replicator *r, const char *name, struct edge sum,
                                 enum dtype type)
{
    if (r->options->mode == REPLICATE_DOWNPOUR)
        return sum;
    struct edge k = replicate_number(r, type, r->steps, "%s/steps", name);
    return replicate_op(r, "Div", sum, k, "%s/mean", name);
}

/* Holds the gradient back: the result is the sum, in pushes to the clock that have this
 * interval. */
static struct edge hold(struct replicator *r, const struct exchange *x, struct edge gradient)
{
    const char *name = replicate_text(r, x->node->name, "held");
    struct step_sum sum =
        sum_steps(r, name, x, gradient, replicate_find_due(r, x->push->steps)->due);
    vec_push_in(&r->arena, &r->own->states, ((struct own_state){x, sum.variable, sum.rest}));
    replicate_assign(r, &r->own->held, sum.variable, sum.rest, "%s/Assign", name);
    return sum.full;
}

struct edge replicate_pushed(struct replicator *r, struct exchange *x)
{
    struct edge value = replicate_exchanged(r, x);
    enum dtype type = x->output->type;
    if (edge_exists(r->own->fires) && x->is_gradient) {
        const char *name = replicate_text(r, x->node->name, "sum");
        struct step_sum sum = sum_steps(r, name, x, value, r->own->fires);
        replicate_assign(r, &r->joined, sum.variable,
                         replicate_zeros(r, name, type, shape_of_sum(x)), "%s/join", name);
        replicate_assign(r, &r->ends, sum.variable, sum.rest, "%s/Assign", name);
        value = mean_of_steps(r, name, sum.full, type);
    } else if (edge_exists(r->own->fires))
        value = replicate_when(r, value, r->own->fires, "%s/push", x->node->name);
    return !x->push || replicate_is_steady(r, x->push) ? value : hold(r, x, value);
}

/* ---- rows of factors ---- */

/* The number of rows may differ from step to step. */
static void assign_rows(struct replicator *r, node_list *nodes, struct edge variable,
                        struct edge value, const char *name)
{
    const struct edge inputs[] = {variable, value};
    const struct attr attr = {"validate_shape", attr_bool(false)};
    replicate_also(r, nodes, replicate_node(r, "Assign", inputs, 2, &attr, 1, "%s", name));
}

/* The rows of some steps, concatenated; after a push the worker begins with none. */
static struct edge keep_rows(struct replicator *r, const char *name, const struct node_output *rows,
                             struct edge value)
{
    const struct shape none = shape_matrix(0, rows->shape.dims[1]);
    const struct shape any = shape_matrix(-1, rows->shape.dims[1]);
    struct edge kept = replicate_local(r, name, rows->type, &any);
    struct edge empty = replicate_zeros(r, name, rows->type, &none);
    struct edge inputs[] = {replicate_number(r, INT32, 0, "%s/axis", name), kept, value};
    struct edge all = replicate_node(r, "Concat", inputs, 3, NULL, 0, "%s/all", name);
    struct edge steered = replicate_op(r, "Switch", all, r->own->fires, "%s/Switch", name);
    struct edge begin = replicate_op(r, "Switch", empty, r->own->fires, "%s/begin", name);
    struct edge rest = replicate_op(r, "Merge", steered, build_slot(begin, 1), "%s/Merge", name);
    assign_rows(r, &r->joined, kept, empty, replicate_text(r, name, "join"));
    assign_rows(r, &r->ends, kept, rest, replicate_text(r, name, "end"));
    return build_slot(steered, 1);
}

struct edge replicate_factor(struct replicator *r, const struct exchange *x, int i)
{
    static const char *const names[] = {"gradient/left/rows", "gradient/right/rows"};
    struct edge factor = x->product->inputs[i], value = replicate_edge(r, factor);
    const struct node_output *rows = graph_output(r->from, factor);
    if (!edge_exists(r->own->fires))
        return value;
    const char *name = replicate_text(r, x->push->variable, names[i]);
    value = keep_rows(r, name, rows, value);
    return i ? mean_of_steps(r, name, value, rows->type) : value; /* it divides the product */
}

/* ---- the counter of steps ---- */

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
        r->own->fetches = replicate_due(r, "clock/fetches", count, r->options->fetch);
    if (r->steps > 1)
        r->own->fires = replicate_due(r, WORKER_PUSHES, next, r->steps);
    replicate_assign(r, &r->joined, count, zero, "clock/count/join");
    replicate_assign(r, &r->ends, count, next, "clock/count/Assign");
    return r->err->code;
}

/* ---- variables fetched every so often ---- */

/* Returns the learning rate of the worker's own steps between fetches. */
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
    if (!edge_exists(r->own->fetches) || !variable || has(r, reader->id, FACT_SHARD | FACT_INITIAL))
        return replicate_edge(r, edge);
    for (size_t i = 0; i < r->own->locals.n; i++)
        if (r->own->locals.items[i].variable == variable)
            return r->own->locals.items[i].used;
    struct edge shared = replicate_edge(r, edge);
    const struct node_output *output = &variable->outputs[0];
    const char *name = replicate_text(r, variable->name, "local");
    struct edge copy = replicate_local(r, name, output->type, &output->shape);
    /* The shard sends the variable only in steps that fetch. */
    struct edge fetched = replicate_op_beside(r, "Switch", shared, r->own->fetches, variable->name,
                                              "%s/local/fetched", variable->name);
    if (edge_exists(fetched) && !replicate_narrow(r, fetched.node))
        replicate_hurry(r, fetched.node, r->priority[variable->id]);
    struct edge kept = replicate_op(r, "Switch", copy, r->own->fetches, "%s/kept", name);
    struct edge used =
        replicate_op(r, "Merge", build_slot(kept, 0), build_slot(fetched, 1), "%s/used", name);
    replicate_assign(r, &r->joined, copy, shared, "%s/join", name);
    vec_push_in(&r->arena, &r->own->locals, ((struct local_copy){variable, copy, used}));
    return used;
}

/* After a step the copy is the value that was used, minus the step's own change. */
int replicate_end_local(struct replicator *r)
{
    for (size_t i = 0; i < r->own->locals.n && !r->err->code; i++) {
        struct local_copy local = r->own->locals.items[i];
        const struct node *gradient = NULL;
        for (size_t k = 0; !gradient && k < r->from->nodes.n; k++)
            if (replicate_variable_of(r, graph_node(r->from, (int)k)) == local.variable)
                gradient = graph_node(r->from, (int)k);
        const char *name = replicate_text(r, local.variable->name, "local");
        double rate = gradient ? rate_of(r, local.variable) : 0;
        struct edge next = local.used;
        if (rate > 0 &&
            replicate_refuse_leaving_out(r, "steps of a worker's own cannot: give downpour rate=0"))
            return r->err->code;
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
