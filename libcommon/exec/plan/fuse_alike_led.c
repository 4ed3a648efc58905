/* SPDX-License-Identifier: Apache-2.0
 *
 * What leads to updates. A cause is an edge of a node that decides whether or when others run, or
 * what they see of variables: control flow, what waits for other parts and processes, what only
 * running tells the shape of, a write. What is behind a cause depends on what was before it in the
 * same way, so that only the nearest causes of an update count.
 */
#include "exec/plan/fuse_alike.h"

#define BATCH 64 /* causes that are followed at once */

struct causes {
    struct alike *alike;
    int *first; /* by node: its first cause; -1: it is none */
    int n;
    uint64_t *led; /* by node: bit i: cause i of the batch leads to it, by no other cause */
};

static bool writes(const struct alike *a, const struct node *node)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (alike_writes(a, node, i))
            return true;
    return false;
}

/* Each output of control flow has a cause of its own, and so has waiting for it. */
static int count_causes(const struct alike *a, const struct node *node)
{
    if (node_has(node, OP_CONTROL_FLOW))
        return node->n_outputs + 1;
    return node_has(node, OP_ASYNC) || node_has(node, OP_SHAPED_BY_DATA) || writes(a, node);
}

static void number_causes(struct causes *c)
{
    const struct fuse_groups *g = c->alike->groups;
    for (size_t i = 0; i < g->graph->nodes.n; i++) {
        int n = count_causes(c->alike, graph_node(g->graph, (int)i));
        c->first[i] = n ? c->n : -1;
        c->n += n;
    }
}

static uint64_t led_by(const struct causes *c, struct edge edge, int batch)
{
    const struct node *from = graph_node(c->alike->groups->graph, edge.node);
    if (c->first[edge.node] < 0)
        return c->led[edge.node];
    int cause = c->first[edge.node] + (node_has(from, OP_CONTROL_FLOW) ? edge.slot + 1 : 0);
    return cause >= batch && cause < batch + BATCH ? (uint64_t)1 << (cause - batch) : 0;
}

static void follow(struct causes *c, int batch)
{
    const struct fuse_groups *g = c->alike->groups;
    for (size_t i = 0; i < g->graph->nodes.n; i++) {
        const struct node *node = graph_node(g->graph, g->order[i]);
        uint64_t led = 0;
        for (int k = 0; k < node->n_inputs; k++)
            led |= led_by(c, node->inputs[k], batch);
        for (int k = 0; k < node->n_controls; k++)
            led |= led_by(c, (struct edge){node->controls[k], CONTROL_SLOT}, batch);
        c->led[node->id] = led;
    }
}

/* The first update of the same class that is led to by the same causes. */
static int first_like(const struct causes *c, size_t update, const int *class)
{
    const int *updates = c->alike->updates.items;
    int node = updates[update];
    for (size_t i = 0; i < update; i++)
        if (class[i] == class[update] && c->led[updates[i]] == c->led[node])
            return updates[i];
    return node;
}

static void split(struct causes *c, int *class)
{
    const node_vec *updates = &c->alike->updates;
    for (size_t i = 0; i < updates->n; i++)
        class[i] = c->alike->class[updates->items[i]];
    for (size_t i = 0; i < updates->n; i++)
        if (c->led[updates->items[i]] != c->led[class[i]])
            c->alike->class[updates->items[i]] = first_like(c, i, class);
}

void alike_split_by_causes(struct alike *a)
{
    size_t n = a->groups->graph->nodes.n + 1;
    struct arena *memory = &a->groups->memory;
    struct causes c = {.alike = a};
    c.first = arena_array(memory, n, sizeof *c.first);
    c.led = arena_array(memory, n, sizeof *c.led);
    int *class = arena_array(memory, a->updates.n + 1, sizeof *class);
    number_causes(&c);
    for (int batch = 0; batch < c.n; batch += BATCH) {
        follow(&c, batch);
        split(&c, class);
    }
}
