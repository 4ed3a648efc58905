/* SPDX-License-Identifier: Apache-2.0
 *
 * Strongly connected vertices.
 */
#include <string.h>

#include "graph/access_private.h"

typedef VEC(int) int_vec;

struct component_walk { /* Tarjan 1972, with a stack of its own */
    int *component;     /* -1: not known yet */
    struct successors next;
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

int *access_find_components(struct access_rule *rule, const arc_vec *more)
{
    const arc_vec *all[] = {&rule->level.edges, &rule->edges, more, NULL};
    size_t n = (size_t)rule->n;
    struct component_walk w = {.component = arena_array(&rule->memory, n + 1, sizeof *w.component),
                               .next = successors_new(&rule->memory, n, all),
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
