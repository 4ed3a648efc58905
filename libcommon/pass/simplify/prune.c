/* SPDX-License-Identifier: Apache-2.0
 *
 * Prune: what no entry, no alias and no kept node needs goes. A graph without an entry of its own
 * stays whole, since anything in it may be fetched; `init` and `ready`, which every graph with
 * variables has, do not count.
 */
#include <string.h>

#include "base/memory.h"
#include "graph/group.h"
#include "pass/rewrite.h"
#include "pass/simplify/simplify.h"

struct marks {
    const struct graph *graph;
    char *needed;
    VEC(int) todo;
};

static void need(struct marks *m, int node)
{
    if (!m->needed[node]) {
        m->needed[node] = 1;
        vec_push(&m->todo, node);
    }
}

int pass_prune(const struct graph *from, const struct pass_options *options, struct graph **to,
               int *n_changes, struct error *err)
{
    struct rewrite r;
    struct marks m = {.graph = from};
    bool has_own_entry = false;
    for (size_t i = 0; i < from->entries.n; i++)
        has_own_entry |= strcmp(from->entries.items[i].name, "init") &&
                         strcmp(from->entries.items[i].name, "ready");
    if (!has_own_entry)
        return 0;
    if (rewrite_open(&r, from, options, err))
        return err->code;
    m.needed = arena_alloc(&r.arena, from->nodes.n + 1);
    const struct graph *graph = m.graph;
    for (size_t i = 0; i < graph->entries.n; i++)
        for (int k = 0; k < graph->entries.items[i].n_edges; k++)
            need(&m, graph->entries.items[i].edges[k].node);
    for (size_t i = 0; i < graph->aliases.n; i++)
        need(&m, graph->aliases.items[i].edge.node);
    for (size_t i = 0; i < graph->nodes.n; i++)
        if (r.flags[i] & REWRITE_OPAQUE)
            need(&m, (int)i);
    while (m.todo.n) {
        const struct node *node = graph_node(m.graph, vec_pop(&m.todo));
        for (int i = 0; i < node->n_inputs; i++)
            need(&m, node->inputs[i].node);
        for (int i = 0; i < node->n_controls; i++)
            need(&m, node->controls[i]);
        /* The nodes that lead the groups a node is to be with: they may carry the group's
         * device. */
        const struct attr_value *groups = node_attr(node, "_class");
        for (int i = 0; groups && i < groups->n; i++) {
            const struct node *leader = group_leader(m.graph, groups->strings[i]);
            if (leader)
                need(&m, leader->id);
        }
    }
    for (size_t i = 0; i < from->nodes.n; i++) {
        const struct node *node = graph_node(from, r.order[i]);
        if (m.needed[node->id])
            rewrite_copy(&r, node);
        else
            rewrite_note(&r, node->name, "no entry needs it");
    }
    vec_release(&m.todo);
    return rewrite_close(&r, 0, to, n_changes);
}
