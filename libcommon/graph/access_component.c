/* SPDX-License-Identifier: Apache-2.0
 *
 * Strongly connected vertices.
 */
#include "base/memory.h"
#include "graph/access_private.h"

typedef VEC(int) int_vec;

/* Counts the successors of each vertex (`to` NULL), or lists them. */
static void each_edge(const struct access_rule *rule, const access_edge_vec *more, int *count,
                      int *to)
{
    const access_edge_vec *all[] = {&rule->level.edges, &rule->edges, more};
    for (int k = 0; k < (more ? 3 : 2); k++)
        vec_each(edge, all[k]) {
            if (to)
                to[count[edge->from + 1]++] = edge->to;
            else
                count[edge->from + 2]++;
        }
}

struct access_successors access_successors(const struct access_rule *rule,
                                           const access_edge_vec *more)
{
    size_t n = (size_t)rule->n,
           n_edges = rule->level.edges.n + rule->edges.n + (more ? more->n : 0);
    struct access_successors s = {.first = mem_array(n + 2, sizeof *s.first),
                                  .to = mem_array(n_edges + 1, sizeof *s.to)};
    each_edge(rule, more, s.first, NULL);
    for (size_t v = 2; v <= n; v++)
        s.first[v] += s.first[v - 1];
    each_edge(rule, more, s.first, s.to);
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

int *access_find_components(const struct access_rule *rule, const access_edge_vec *more)
{
    size_t n = (size_t)rule->n;
    struct component_walk w = {.component = mem_array(n + 1, sizeof *w.component)};
    for (size_t v = 0; v < n; v++)
        w.component[v] = -1;
    w.next = access_successors(rule, more);
    w.index = mem_array(3 * n + 1, sizeof *w.index);
    w.low = w.index + n;
    w.at = w.low + n;
    for (int v = 0; v < rule->n; v++)
        if (!w.index[v])
            walk_from(&w, v);
    vec_release(&w.path);
    vec_release(&w.open);
    mem_free(w.index);
    mem_free(w.next.first);
    mem_free(w.next.to);
    return w.component;
}
