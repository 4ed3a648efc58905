/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients that are multiplied from all workers' factors, by each worker or by the shard.
 */
#include "graph/index_rule.h"
#include "graph/worker_attr.h"
#include "pass/replicate/replicate_plan.h"

/* ---- terms ----
 *
 * Gradients that are the sum of a product of rows and other terms: weight decay in the loss adds
 * terms made from the variable alone. These are equal wherever they are computed, so only the
 * product is handed over, and the terms are added to its reduced value. */

/* Returns whether the node sums over the rows of inputs 0 and 1, one term for each pair: for
 * concatenated inputs the result is the sum of the parts' results. */
static bool sums_rows(const struct graph *graph, const struct node *node)
{
    struct bound_rule rule;
    return rule_is_product(node->op) && rule_bind(graph, node, &rule) && !rule_summed(&rule, 0) &&
           !rule_summed(&rule, 1);
}

/* Returns the input of the gradient's sum that is handed over; -1: none. `varies`, by node: it may
 * differ between workers. */
static int parted_at(const struct graph *from, const bool *varies, const struct node *node)
{
    if (!node_attr(node, "_gradient") || *replicate_role(node))
        return -1;
    /* This is the input with rows, if the gradient is a sum whose other inputs are the same
     * everywhere. */
    const struct node *sum = graph_node(from, node->inputs[0].node);
    int product = -1, n_vary = 0;
    for (int i = 0; i < sum->n_inputs; i++) {
        if (!varies[sum->inputs[i].node])
            continue;
        n_vary++;
        if (sums_rows(from, graph_node(from, sum->inputs[i].node)))
            product = i;
    }
    return node_has(sum, OP_SUMS) && !sum->n_controls && sum->n_inputs > 1 && n_vary == 1 ? product
                                                                                          : -1;
}

int replicate_part_terms(const struct graph *from, struct graph **to, struct error *err)
{
    const unsigned own = OP_STATEFUL | OP_FED | OP_SOURCE | OP_RANDOM | OP_CONTROL_FLOW | OP_ASYNC |
                         OP_UNINITIALIZED;
    struct rewrite r;
    size_t n = from->nodes.n + 1;
    int n_changes;
    *to = NULL;
    if (rewrite_open(&r, from, NULL, err))
        return err->code;
    bool *varies = arena_array(&r.arena, n, sizeof *varies);
    int *n_uses = arena_array(&r.arena, n, sizeof *n_uses);
    bool *is_gone = arena_array(&r.arena, n, sizeof *is_gone);
    graph_each_ordered(node, from, r.order) {
        /* Variables are private to workers if their attributes say so. */
        bool own_value = node_is(node, "Variable")
                             ? node_attr(node, PER_WORKER) || node_attr(node, WORKER_PART_SHAPE)
                             : node_has(node, own) || node_makes_resource(node);
        for (int j = 0; j < node->n_inputs + node->n_controls; j++) {
            int before = node_dependency(node, j).node;
            own_value |= varies[before];
            n_uses[before]++;
        }
        varies[node->id] = own_value;
    }
    /* A sum that only its gradient reads is not needed any more. */
    graph_each(node, from) {
        if (parted_at(from, varies, node) >= 0)
            is_gone[node->inputs[0].node] = n_uses[node->inputs[0].node] == 1;
    }
    graph_each_named(at, from)
        is_gone[at.edge.node] = false;
    graph_each_ordered(node, from, r.order) {
        int product = parted_at(from, varies, node);
        if (product >= 0) {
            /* Users of the gradient get the sum, which takes over its name. */
            struct node sum = rewrite_view(&r, graph_node(from, node->inputs[0].node));
            struct node handed = rewrite_view(&r, node);
            handed.inputs[0] = sum.inputs[product];
            const char *name = rewrite_name_near(&r, node->name, "rows");
            sum.inputs[product].node = rewrite_add_as(&r, node, &handed, name)->id;
            sum.inputs[product].slot = 0;
            rewrite_add(&r, node, &sum);
            rewrite_note(&r, node->name, "parted");
        } else if (!is_gone[node->id])
            rewrite_copy(&r, node);
    }
    return rewrite_close(&r, 0, to, &n_changes);
}

/* ---- products ---- */

/* One variable keeps the rows of some steps. */
static bool can_keep(const struct replicator *r, struct edge factor)
{
    const struct shape *shape = &graph_output(r->w.from, factor)->shape;
    return r->steps < 2 || (shape->rank == 2 && shape->dims[1] >= 0);
}

/* A factor must have a row for each of the batch, so that those of all workers can be
 * concatenated. */
static const char *refuse(const struct replicator *r, struct exchange *x)
{
    if (r->options->average)
        return "it is a variable";
    if (x->steps != r->steps)
        return "it is pushed at an interval of its own";
    if (!x->is_gradient)
        return "it is no gradient";
    if (x->is_of_rows)
        return "it is of some rows of a table";
    const struct node *made = graph_node(r->w.from, x->node->inputs[0].node);
    if (!rule_is_product(made->op))
        return "it is no product of two matrices";
    if (!sums_rows(r->w.from, made))
        return "its factors have no row for each of the batch";
    if (!can_keep(r, made->inputs[0]) || !can_keep(r, made->inputs[1]))
        return "how long its factors' rows are is not known";
    x->product = made;
    return NULL;
}

/* Among workers each sends its rows n - 1 times, and multiplies those of n. Shards receive the rows
 * of all, and share the products. */
static struct cost_sum price(const struct replicator *r, const struct exchange *x)
{
    double left = replicate_bytes(r, x->product->inputs[0]);
    double right = replicate_bytes(r, x->product->inputs[1]);
    double products = r->ways->n * replicate_node_ns(r, x->product);
    struct cost_way way = r->ways->sent;
    if (replicate_pushes(r))
        return (struct cost_sum){left + right, way.latency + way.per_byte * (left + right) +
                                                   replicate_shards_ns(r, products)};
    struct cost_sum l = replicate_gather_way(r, left), q = replicate_gather_way(r, right);
    return (struct cost_sum){l.bytes + q.bytes,
                             l.ns + q.ns - way.latency + replicate_workers_ns(r, products)};
}

/* Among workers layers with the same input share a factor: the first that has it sends it. */
static const struct exchange *sender(const struct replicator *r, const struct exchange *x, int i)
{
    struct exchange *const *other = r->planned.items;
    if (x->push)
        return x;
    while ((*other)->crossing != CROSSES_BY_FACTORS ||
           !edge_equal((*other)->product->inputs[i], x->product->inputs[i]))
        other++;
    return *other;
}

static void send_factors(struct replicator *r, struct exchange *x)
{
    static const char *const reductions[] = {"rows", "mean_rows"};
    for (int i = 0; i < 2; i++)
        if (sender(r, x, i) == x)
            replicate_put(
                r, replicate_bucket(r, x), x,
                (struct bucket_value){replicate_factor(r, x, i), reductions[i], &x->factors[i]});
}

/* Each worker, or the shard, multiplies the rows of all workers, concatenated by rank: both give
 * the same bits (Chilimbi et al., Project Adam, OSDI 2014, section 3.2). */
static void take_factors(struct replicator *r, struct exchange *x)
{
    for (int i = 0; i < 2; i++)
        x->factors[i] = sender(r, x, i)->factors[i];
    /* On the worker, or beside the variable. */
    const char *variable = x->push ? x->push->variable : NULL;
    const struct node *product = x->product;
    const char *name = replicate_text(r, x->node->name, "product");
    if (!variable)
        name = arena_printf(&r->w.to->arena, ALLREDUCE_SCOPE "%s", x->node->name);
    struct node_spec spec = graph_spec_like(product);
    spec.name = rewrite_free_name(r->w.from, r->w.to, name);
    spec.inputs = x->factors;
    spec.n_inputs = 2;
    spec.device = replicate_device(r, product, variable ? SHARD_DEVICE : WORKER_DEVICE);
    /* Attributes are the product's, with the group of the variable, if there is one. */
    struct attr group[] = {{.name = NULL}, {.name = NULL}};
    if (variable)
        group[0] = group_attr(&r->w.to->arena, variable);
    spec.attrs = copy_attrs(&r->w.rules, product, -1, group, &spec.n_attrs);
    const struct node *made = graph_add_trusted(r->w.to, &spec, product->outputs, 1);
    rewrite_note(&r->w, made->name, made->device);
    x->got = replicate_out(made->id);
}

const struct technique replicate_factors = {.name = "factors",
                                            .refuse = refuse,
                                            .price = price,
                                            .send = send_factors,
                                            .take = take_factors};
