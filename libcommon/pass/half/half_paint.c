/* SPDX-License-Identifier: Apache-2.0
 *
 * The colouring of the graph, as in TensorFlow's automatic mixed precision: what is allowed is
 * painted; what is denied refuses what is inferred from it; what is clear or inferred and lies
 * between painted nodes is painted; and what is clear beside them, where casts then have less to
 * do, or as much.
 */
#include "pass/half/half_private.h"

#define UNKNOWN_SIZE 32 /* what a dimension counts as that is not known */

/* ---- spreading facts ---- */

typedef bool (*enters)(const struct halver *h, int node);

static void add_fact(struct halver *h, int node, unsigned fact)
{
    int i = node;
    do {
        if (!half_has(h, i, fact)) {
            h->facts[i] |= fact;
            vec_push_in(&h->r.arena, &h->todo, i);
        }
        i = h->next[i];
    } while (i != node);
}

static void spread_down(struct halver *h, unsigned fact, enters enter)
{
    while (h->todo.n) {
        int node = vec_pop(&h->todo);
        for (int i = h->first_user[node]; i < h->first_user[node + 1]; i++)
            if (!half_has(h, h->users[i], fact) && enter(h, h->users[i]))
                add_fact(h, h->users[i], fact);
    }
}

static void spread_up(struct halver *h, unsigned fact, enters enter)
{
    while (h->todo.n) {
        const struct node *node = graph_node(h->r.from, vec_pop(&h->todo));
        for (int i = 0; i < node->n_inputs; i++)
            if (half_is_float(h->r.from, node->inputs[i]) &&
                !half_has(h, node->inputs[i].node, fact) && enter(h, node->inputs[i].node))
                add_fact(h, node->inputs[i].node, fact);
    }
}

/* The nodes that facts spread from. */
static void start(struct halver *h, enters is_root)
{
    for (size_t i = 0; i < h->r.from->nodes.n; i++)
        if (is_root(h, (int)i))
            vec_push_in(&h->r.arena, &h->todo, (int)i);
}

/* ---- what is denied ---- */

static bool is_clear(const struct halver *h, int node)
{
    return h->kind[node] == HALF_CLEAR;
}

static bool judges(const struct halver *h, int node)
{
    return h->kind[node] == HALF_DENIED || h->kind[node] == HALF_INFERRED;
}

/* The gradient of a loss is what the loss is: float32, up to the first product. */
static bool is_denied(const struct halver *h, int node)
{
    return h->kind[node] == HALF_DENIED || node_attr(graph_node(h->r.from, node), "_loss");
}

static bool is_refused(const struct halver *h, int node)
{
    return h->kind[node] == HALF_INFERRED ||
           (is_clear(h, node) && half_has(h, node, HALF_FACT_ABOVE));
}

/* ---- what lies between ---- */

static bool is_allowed(const struct halver *h, int node)
{
    return h->kind[node] == HALF_ALLOWED;
}

static bool may_follow(const struct halver *h, int node)
{
    enum op_half kind = h->kind[node];
    return (kind == HALF_INFERRED || kind == HALF_CLEAR || kind == HALF_AROUND) &&
           !half_has(h, node, HALF_FACT_REFUSED);
}

static bool is_behind(const struct halver *h, int node)
{
    return half_has(h, node, HALF_FACT_BEHIND);
}

/* ---- what is clear beside it ---- */

static bool is_painted(const struct halver *h, int node)
{
    return half_has(h, node, HALF_FACT_PAINTED);
}

static double size_of(const struct shape *shape)
{
    double size = shape->rank < 0 ? 0 : 1;
    for (int i = 0; i < shape->rank; i++)
        size *= shape->dims[i] < 0 ? UNKNOWN_SIZE : (double)shape->dims[i];
    return size;
}

static bool joins(const struct halver *h, int node)
{
    const struct graph *from = h->r.from;
    double in = 0, out = 0;                   /* elements of float32 */
    int n_users = 0, n_painted = 0;           /* that take its result */
    bool by_painted = false, foreign = false; /* it takes what is neither painted nor a constant */
    int i = node;
    do {
        const struct node *member = graph_node(from, i);
        for (int k = 0; k < member->n_inputs; k++) {
            const struct edge edge = member->inputs[k];
            const struct node *source = graph_node(from, edge.node);
            if (!half_is_float(from, edge) || h->unit[edge.node] == h->unit[i])
                continue;
            by_painted |= is_painted(h, edge.node);
            foreign |= !is_painted(h, edge.node) && !node_is(source, "Const");
            in += size_of(&source->outputs[edge.slot].shape);
        }
        for (int k = h->first_user[i]; k < h->first_user[i + 1]; k++) {
            n_users += h->unit[h->users[k]] != h->unit[i];
            n_painted += h->unit[h->users[k]] != h->unit[i] && is_painted(h, h->users[k]);
        }
        for (int k = 0; k < member->n_outputs; k++)
            if (member->outputs[k].type == FLOAT32)
                out += size_of(&member->outputs[k].shape);
        i = h->next[i];
    } while (i != node);

    bool even = h->next[node] != node || node_has(graph_node(h->r.from, node), OP_VIEW);
    if (n_users && n_users == n_painted && !(h->r.flags[node] & REWRITE_KEPT) &&
        (even || in <= out))
        return true;
    return by_painted && !foreign && (even || out <= in);
}

static bool paint_one(struct halver *h, int node)
{
    if (!is_clear(h, node) || is_painted(h, node) || half_has(h, node, HALF_FACT_REFUSED) ||
        !joins(h, node))
        return false;
    int i = node;
    do {
        h->facts[i] |= HALF_FACT_PAINTED;
        i = h->next[i];
    } while (i != node);
    return true;
}

void half_paint(struct halver *h)
{
    start(h, judges);
    spread_up(h, HALF_FACT_ABOVE, is_clear);
    start(h, is_denied);
    spread_down(h, HALF_FACT_REFUSED, is_refused);
    start(h, is_allowed);
    spread_down(h, HALF_FACT_BEHIND, may_follow);
    start(h, is_allowed);
    spread_up(h, HALF_FACT_BETWEEN, is_behind);
    for (size_t i = 0; i < h->r.from->nodes.n; i++)
        if (is_allowed(h, (int)i) ||
            (half_has(h, (int)i, HALF_FACT_BETWEEN) && h->kind[i] != HALF_AROUND))
            h->facts[i] |= HALF_FACT_PAINTED;
    size_t n = h->r.from->nodes.n;
    bool more = true;
    while (more) {
        more = false;
        for (size_t i = 0; i < n; i++)
            more |= paint_one(h, h->r.order[i]);
        for (size_t i = n; i-- > 0;)
            more |= paint_one(h, h->r.order[i]);
    }
}
