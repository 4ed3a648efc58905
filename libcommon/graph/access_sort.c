/* SPDX-License-Identifier: Apache-2.0
 *
 * One topological order of the rule, in which writes come as late as possible, ties by name; and
 * which vertices are strongly connected.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/str.h"
#include "graph/access_private.h"

typedef VEC(int) int_vec;

struct sorter {
    struct access_rule *rule;
    struct successors next;
    int *pending; /* by vertex */
    int n_placed;
    int_vec ready;       /* vertices that do not write */
    const char **name;   /* by vertex that writes: the name of its first writer */
    int *by_rank, *rank; /* writing vertices sorted by name; the inverse, -1 for others */
    bool *may_write;     /* by rank */
    int n_writes, n_may, lowest;
};

/* ---- the order ---- */

static int compare_node_names(const void *a, const void *b, void *context)
{
    const struct sorter *s = context;
    return strcmp(s->name[*(const int *)a], s->name[*(const int *)b]);
}

static void make_ready(struct sorter *s, int v)
{
    if (!s->name[v]) {
        vec_push(&s->ready, v);
        return;
    }
    int rank = s->rank[v];
    s->may_write[rank] = true;
    s->n_may++;
    if (rank < s->lowest)
        s->lowest = rank;
}

/* ---- cycles ---- */

static void print_vertex(const struct sorter *s, int v, struct str *text)
{
    const struct access_rule *rule = s->rule;
    const char *const *names = rule->level.graph->names;
    if (v < rule->level.n) {
        str_printf(text, "'%s'", names[rule->level.node[v]]);
        return;
    }
    int group = (v - rule->level.n) / 3, read = 0;
    while (rule->group[read] != group)
        read++;
    str_printf(text, "'%s' reads", names[access_read_at(rule, read)->node]);
}

static int fail(const struct sorter *s, struct error *err)
{
    struct str text = STR_INIT;
    int n = s->rule->level.n;
    int *cycle = mem_array((size_t)s->rule->n, sizeof *cycle);
    int i = successors_cycle(&s->next, s->rule->position, cycle), last = cycle[0];
    print_vertex(s, last, &text);
    for (; i > 0 && text.n < 200; last = cycle[i]) {
        /* The first vertex that is met of a group stands for the whole group. */
        if (cycle[--i] < n || last < n || (cycle[i] - n) / 3 != (last - n) / 3) {
            str_append(&text, " before ");
            print_vertex(s, cycle[i], &text);
        }
    }
    error_set(err, ERR_DATA, "reads and writes of variables contradict each other: %s",
              str_text(&text));
    str_release(&text);
    mem_free(cycle);
    return err->code;
}

int access_sort(struct access_rule *rule, struct error *err)
{
    const arc_vec *edges[] = {&rule->level.edges, &rule->edges, NULL};
    struct arena *memory = &rule->memory;
    size_t n = (size_t)rule->n;
    struct sorter s = {.rule = rule, .next = successors_new(memory, n, edges)};
    rule->position = arena_array(memory, n + 1, sizeof *rule->position);
    memset(rule->position, -1, n * sizeof *rule->position);
    s.pending = arena_array(memory, 3 * n + 1, sizeof *s.pending);
    s.by_rank = s.pending + n;
    s.rank = s.by_rank + n;
    s.name = arena_array(memory, n + 1, sizeof *s.name);
    s.may_write = arena_alloc(memory, n + 1);
    for (int e = 0; e < s.next.first[n]; e++)
        s.pending[s.next.to[e]]++;
    /* Writes that nothing else of their variables has to follow take their turns by name, too. */
    vec_each(access, &rule->level.graph->accesses) {
        int v = rule->level.vertex[access->node];
        const char *name = rule->level.graph->names[access->node];
        if (!access->write || v < 0)
            continue;
        if (!s.name[v])
            s.by_rank[s.n_writes++] = v;
        if (!s.name[v] || strcmp(name, s.name[v]) < 0)
            s.name[v] = name;
    }
    qsort_r(s.by_rank, (size_t)s.n_writes, sizeof *s.by_rank, compare_node_names, &s);
    for (int i = 0; i < s.n_writes; i++)
        s.rank[s.by_rank[i]] = i;
    s.lowest = s.n_writes;
    for (int v = 0; v < rule->n; v++)
        if (!s.pending[v])
            make_ready(&s, v);
    while (s.ready.n || s.n_may) {
        int v;
        if (s.ready.n) {
            v = vec_pop(&s.ready);
        } else {
            while (!s.may_write[s.lowest])
                s.lowest++;
            s.may_write[s.lowest] = false;
            s.n_may--;
            v = s.by_rank[s.lowest];
        }
        rule->position[v] = s.n_placed++;
        for (int e = s.next.first[v]; e < s.next.first[v + 1]; e++)
            if (!--s.pending[s.next.to[e]])
                make_ready(&s, s.next.to[e]);
    }
    int code = s.n_placed == rule->n ? 0 : fail(&s, err);
    vec_release(&s.ready);
    return code;
}

/* ---- strongly connected vertices ---- */

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
