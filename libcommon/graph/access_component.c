/* SPDX-License-Identifier: Apache-2.0
 *
 * Strongly connected vertices.
 */
#include <string.h>

#include "graph/access_private.h"

typedef VEC(int) int_vec;

struct access_successors access_successors(struct arena *memory, size_t n,
                                           const access_edge_vec *const *arrays)
{
    size_t n_edges = 0;
    for (int k = 0; arrays[k]; k++)
        n_edges += arrays[k]->n;
    struct access_successors s = {.first = arena_array(memory, n + 2, sizeof *s.first),
                                  .to = arena_array(memory, n_edges + 1, sizeof *s.to)};
    for (int k = 0; arrays[k]; k++)
        vec_each(edge, arrays[k])
            s.first[edge->from + 2]++;
    for (size_t v = 2; v <= n; v++)
        s.first[v] += s.first[v - 1];
    for (int k = 0; arrays[k]; k++)
        vec_each(edge, arrays[k])
            s.to[s.first[edge->from + 1]++] = edge->to;
    return s;
}

struct component_walk { /* Tarjan 1972, with a stack of its own */
    int *component;     /* -1: not known yet */
    struct access_successors next;
    int *index, *low, *at; /* index: 0 is new; at: the next successor to look at */
    int_vec path, open;
    int n_seen, n_components;
};

static void walk_enter(struct component_walk *w, int v)
{
    w->index[v] = w->low[v] = ++w->n_seen;
    w->at[v] = w->next.first[v];
    vec_push(&w->path, v);
    vec_push(&w->open, v);
}

static void walk_from(struct component_walk *w, int start)
{
    walk_enter(w, start);
    while (w->path.n) {
        int v = w->path.items[w->path.n - 1], member;
        if (w->at[v] < w->next.first[v + 1]) {
            int to = w->next.to[w->at[v]++];
            if (!w->index[to])
                walk_enter(w, to);
            else if (w->component[to] < 0 && w->index[to] < w->low[v])
                w->low[v] = w->index[to];
            continue;
        }
        (void)vec_pop(&w->path);
        int *parent_low = w->path.n ? &w->low[w->path.items[w->path.n - 1]] : NULL;
        if (parent_low && w->low[v] < *parent_low)
            *parent_low = w->low[v];
        if (w->low[v] != w->index[v])
            continue;
        do {
            member = vec_pop(&w->open);
            w->component[member] = w->n_components;
        } while (member != v);
        w->n_components++;
    }
}

int *access_find_components(struct access_rule *rule, const access_edge_vec *more)
{
    const access_edge_vec *all[] = {&rule->level.edges, &rule->edges, more, NULL};
    size_t n = (size_t)rule->n;
    struct component_walk w = {.component = arena_array(&rule->memory, n + 1, sizeof *w.component),
                               .next = access_successors(&rule->memory, n, all),
                               .index = arena_array(&rule->memory, 3 * n + 1, sizeof *w.index)};
    memset(w.component, -1, n * sizeof *w.component);
    w.low = w.index + n;
    w.at = w.low + n;
    for (int v = 0; v < rule->n; v++)
        if (!w.index[v])
            walk_from(&w, v);
    vec_release(&w.path);
    vec_release(&w.open);
    return w.component;
}
