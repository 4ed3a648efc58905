/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients that workers could make of factors, and what takes less time: the gradient itself, of
 * which a worker sends 2 (n - 1) / n, or n - 1 times its rows of both factors, and n times as much
 * to multiply. Of rows of a table it sends n - 1 times its own.
 */
#include <string.h>

#include "pass/replicate/replicate_private.h"

int replicate_workers(const struct replicator *r)
{
    const struct cluster *cluster = r->options->cluster;
    return r->options->workers ? r->options->workers
           : cluster           ? cluster_count(cluster, "worker")
                               : 0;
}

/* ---- what can be ---- */

/* NULL: it can; else why it cannot. A factor has a row for each of the batch, so that those of all
 * workers go one after the other. */
static const char *find_product(const struct replicator *r, struct edge edge,
                                struct gradient_product *product)
{
    const struct node *gradient = graph_node(r->from, edge.node);
    if (!has(r, gradient->id, FACT_MARKED))
        return "it is no gradient";
    if (*replicate_role(gradient))
        return "it is of some rows of a table";
    const struct node *made = graph_node(r->from, gradient->inputs[0].node);
    if (!made->op->def->sums_rows)
        return "it is no product of two matrices";
    if (!made->op->def->sums_rows(made))
        return "its factors have no row for each of the batch";
    *product = (struct gradient_product){edge, made->inputs[0], made->inputs[1], made};
    return NULL;
}

/* ---- what it costs ---- */

static double elements(const struct replicator *r, struct edge edge)
{
    const struct shape *shape = &graph_node(r->from, edge.node)->outputs[edge.slot].shape;
    double n = 1;
    for (int i = 0; i < shape->rank; i++)
        n *= (double)(shape->dims[i] < 0 ? r->options->assume : shape->dims[i]);
    return n;
}

static double edge_bytes(const struct replicator *r, struct edge edge)
{
    enum dtype type = graph_node(r->from, edge.node)->outputs[edge.slot].type;
    return elements(r, edge) * (double)dtype_bytes(type);
}

static double product_ns(const struct replicator *r, const struct node *node)
{
    const struct cost_query query = {node, r->from, r->options->assume};
    const struct cost_rates rates = cost_rates_of("CPU");
    double ns;
    if (r->options->measured && costs_find(r->options->measured, node, &ns))
        return ns;
    return cost_estimate_ns(&query, &rates);
}

static void estimate(const struct replicator *r, struct replicate_choice *choice,
                     struct edge gradient, const struct gradient_product *product)
{
    int n = replicate_workers(r);
    if (n < 1)
        n = 1;
    struct cost_way way = cost_exchange("worker", n, r->options->cluster);
    const char *role = replicate_role(graph_node(r->from, gradient.node));
    choice->dense.bytes = (*role ? n - 1 : 2.0 * (n - 1) / n) * edge_bytes(r, gradient);
    choice->dense.ns = way.latency + way.per_byte * choice->dense.bytes;
    if (choice->obstacle)
        return;
    choice->dense.ns += product_ns(r, product->node);
    choice->factors.bytes =
        (n - 1) * (edge_bytes(r, product->left) + edge_bytes(r, product->right));
    choice->factors.ns =
        way.latency + way.per_byte * choice->factors.bytes + n * product_ns(r, product->node);
}

/* ---- what is taken ---- */

static bool takes_factors(const struct replicator *r, const struct replicate_choice *choice)
{
    if (choice->obstacle)
        return false;
    return r->options->factors == FACTORS_ALL ||
           (r->options->factors == FACTORS_AUTO && choice->factors.ns < choice->dense.ns);
}

bool replicate_by_factors(struct replicator *r, struct edge gradient,
                          struct gradient_product *product)
{
    const struct node *node = graph_node(r->from, gradient.node);
    const struct attr_value *variable = node_attr(node, "_gradient");
    struct replicate_choice choice = {.variable = variable ? variable->s : node->name,
                                      .shape = node->outputs[gradient.slot].shape,
                                      .obstacle = find_product(r, gradient, product)};
    estimate(r, &choice, gradient, product);
    choice.takes_factors = takes_factors(r, &choice);
    if (r->options->explain)
        r->options->explain(r->options->context, &choice);
    return choice.takes_factors;
}
