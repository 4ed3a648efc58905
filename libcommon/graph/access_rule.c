/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/access_private.h"

typedef VEC(int) int_vec;

struct maker {
    struct access_rule *rule;
    const struct access_graph *graph;
    int_vec sorted; /* accesses of the level, by variable */
    int *users;     /* by access, and one more: of graph->users sorted by access */
    int *user;
};

static void add_hard(struct access_rule *rule, int from, int to)
{
    struct rule_edge edge = {from, to, .access = -1, .wish = -1};
    vec_push(&rule->edges, edge);
}

static int frame_of(const struct access_graph *graph, int node)
{
    return graph->frame ? graph->frame[node] : 0;
}

bool access_frame_writes(const struct access_graph *graph, int frame)
{
    for (size_t i = 0; i < graph->accesses.n; i++) {
        const struct access *access = &graph->accesses.items[i];
        int of = frame_of(graph, access->node);
        if (access->write &&
            (of == frame || access_common_frame(graph->parent, frame, of) == frame))
            return true;
    }
    return false;
}

static const struct access *access_at(const struct maker *m, size_t i)
{
    return &m->graph->accesses.items[m->sorted.items[i]];
}

static int vertex_at(const struct maker *m, size_t i)
{
    return m->rule->level.vertex[access_at(m, i)->node];
}

static int by_variable(const void *a, const void *b, void *context)
{
    const struct access_graph *graph = context;
    int x = *(const int *)a, y = *(const int *)b;
    int of_x = graph->accesses.items[x].variable, of_y = graph->accesses.items[y].variable;
    if (of_x != of_y)
        return of_x < of_y ? -1 : 1;
    return x - y;
}

static void sort_accesses(struct maker *m)
{
    const struct access_graph *graph = m->graph;
    for (size_t i = 0; i < graph->accesses.n; i++)
        if (m->rule->level.vertex[graph->accesses.items[i].node] >= 0)
            vec_push(&m->sorted, (int)i);
    if (m->sorted.n)
        qsort_r(m->sorted.items, m->sorted.n, sizeof *m->sorted.items, by_variable,
                (void *)(uintptr_t)graph);
}

/* Where the accesses of the same variable end. */
static size_t group_end(const struct maker *m, size_t from)
{
    size_t to = from;
    while (to < m->sorted.n && access_at(m, to)->variable == access_at(m, from)->variable)
        to++;
    return to;
}

/* Whether the order of some of them is open: one writes, and they are not all at one vertex. */
static bool is_open(const struct maker *m, size_t from, size_t to)
{
    bool writes = false, several = false;
    for (size_t i = from; i < to; i++) {
        writes |= access_at(m, i)->write;
        several |= vertex_at(m, i) != vertex_at(m, from);
    }
    return writes && several;
}

/* Drops the variables whose accesses need no order. */
static void keep_open(struct maker *m)
{
    size_t kept = 0;
    for (size_t from = 0, to; from < m->sorted.n; from = to) {
        to = group_end(m, from);
        if (is_open(m, from, to))
            for (size_t i = from; i < to; i++)
                m->sorted.items[kept++] = m->sorted.items[i];
    }
    m->sorted.n = kept;
}

/* ---- users of reads ---- */

static void index_users(struct maker *m)
{
    const struct access_graph *graph = m->graph;
    m->users = arena_array(&m->rule->memory, graph->accesses.n + 2, sizeof *m->users);
    m->user = arena_array(&m->rule->memory, graph->users.n + 1, sizeof *m->user);
    for (size_t i = 0; i < graph->users.n; i++)
        m->users[graph->users.items[i].access + 2]++;
    for (size_t i = 2; i <= graph->accesses.n; i++)
        m->users[i] += m->users[i - 1];
    for (size_t i = 0; i < graph->users.n; i++)
        m->user[m->users[graph->users.items[i].access + 1]++] = graph->users.items[i].node;
}

static void add_points(struct maker *m)
{
    struct access_rule *rule = m->rule;
    size_t n = m->graph->accesses.n;
    rule->n = rule->level.n;
    rule->point = arena_array(&rule->memory, n + 1, sizeof *rule->point);
    rule->copied = arena_alloc(&rule->memory, n + 1);
    memset(rule->point, -1, n * sizeof *rule->point);
    for (size_t i = 0; i < m->sorted.n; i++) {
        const struct access *access = access_at(m, i);
        bool may_copy = access->copies && !rule->level.frame && !frame_of(m->graph, access->node);
        if (access->write)
            continue;
        rule->point[m->sorted.items[i]] = may_copy ? rule->n++ : vertex_at(m, i);
        if (may_copy)
            add_hard(rule, rule->n - 1, vertex_at(m, i));
    }
}

/* ---- before and after ---- */

/* A user comes before the write, unless a path says that it comes after. */
static void put_user(struct maker *m, int access, int user, int write, bool is_reached)
{
    struct access_rule *rule = m->rule;
    if (user == write || user < 0)
        return;
    rule->copied[access] |= is_reached;
    struct rule_edge edge = {user, write, .optional = true, .access = access, .wish = -1};
    if (!is_reached)
        vec_push(&rule->edges, edge);
}

static void put_read(struct maker *m, int access, int writer, const uint64_t *reached, uint64_t bit)
{
    struct access_rule *rule = m->rule;
    const int *vertex = rule->level.vertex;
    int reader = m->graph->accesses.items[access].node, point = rule->point[access];
    int read = vertex[reader], write = vertex[writer];
    if (read == write || access_level_excludes(&rule->level, reader, writer))
        return;
    if (reached[read] & bit) {
        if (point != read)
            add_hard(rule, write, point);
        return;
    }
    add_hard(rule, point, write);
    if (point == read || m->graph->accesses.items[access].taken)
        return;
    put_user(m, access, read, write, false);
    for (int i = m->users[access]; i < m->users[access + 1]; i++) {
        int user = vertex[m->user[i]];
        put_user(m, access, user, write, user >= 0 && reached[user] & bit);
    }
}

/* Orders reads around some writes; all[i] is the place of a write in `sorted`. */
static void put_batch(struct maker *m, const int *all, int n, uint64_t *reached)
{
    int from[ACCESS_BATCH] = {0};
    for (int i = 0; i < n; i++)
        from[i] = vertex_at(m, (size_t)all[i]);
    access_level_reach(&m->rule->level, from, n, reached);
    for (int i = 0; i < n; i++) {
        int variable = access_at(m, (size_t)all[i])->variable;
        size_t at = (size_t)all[i];
        while (at > 0 && access_at(m, at - 1)->variable == variable)
            at--;
        for (; at < m->sorted.n && access_at(m, at)->variable == variable; at++)
            if (!access_at(m, at)->write)
                put_read(m, m->sorted.items[at], access_at(m, (size_t)all[i])->node, reached,
                         (uint64_t)1 << i);
    }
}

static void put_all(struct maker *m)
{
    struct access_rule *rule = m->rule;
    uint64_t *reached = mem_array((size_t)rule->level.n + 1, sizeof *reached);
    int batch[ACCESS_BATCH], n = 0;
    rule->writes = arena_alloc(&rule->memory, (size_t)rule->n + 1);
    for (size_t i = 0; i < m->sorted.n; i++) {
        if (!access_at(m, i)->write)
            continue;
        rule->writes[vertex_at(m, i)] = true;
        batch[n++] = (int)i;
        if (n == ACCESS_BATCH) {
            put_batch(m, batch, n, reached);
            n = 0;
        }
    }
    put_batch(m, batch, n, reached);
    mem_free(reached);
}

static void put_wishes(struct maker *m)
{
    struct access_rule *rule = m->rule;
    for (size_t i = 0; i < m->graph->wishes.n; i++) {
        const struct access_edge *wish = &m->graph->wishes.items[i];
        struct rule_edge edge = {rule->level.vertex[wish->from], rule->level.vertex[wish->to],
                                 .optional = true, .access = -1, .wish = (int)i};
        if (edge.from >= 0 && edge.to >= 0 && edge.from != edge.to)
            vec_push(&rule->edges, edge);
    }
}

/* ---- strongly connected vertices ---- */

static void add_successor(int *count, const struct access_edge *edge, int *to)
{
    if (to)
        to[count[edge->from + 1]++] = edge->to;
    else
        count[edge->from + 2]++;
}

/* Counts the successors of each vertex, or lists them. */
static void each_edge(const struct access_rule *rule, int *count, int *to)
{
    const struct access_level *level = &rule->level;
    for (size_t i = 0; i < level->edges.n; i++)
        add_successor(count, &level->edges.items[i], to);
    for (size_t i = 0; i < rule->edges.n; i++) {
        const struct rule_edge *edge = &rule->edges.items[i];
        if (access_rule_holds(rule, edge))
            add_successor(count, &(struct access_edge){edge->from, edge->to}, to);
    }
}

struct access_successors access_rule_successors(const struct access_rule *rule)
{
    const struct access_level *level = &rule->level;
    size_t n = (size_t)rule->n, n_edges = level->edges.n + rule->edges.n;
    struct access_successors s = {.first = mem_array(n + 2, sizeof *s.first),
                                  .to = mem_array(n_edges + 1, sizeof *s.to)};
    each_edge(rule, s.first, NULL);
    for (size_t v = 2; v <= n; v++)
        s.first[v] += s.first[v - 1];
    each_edge(rule, s.first, s.to);
    return s;
}

struct component_walk { /* Tarjan 1972, with a stack of its own */
    struct access_rule *rule;
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

static void walk_leave(struct component_walk *w, int v)
{
    (void)vec_pop(&w->path);
    if (w->path.n) {
        int parent = w->path.items[w->path.n - 1];
        if (w->low[v] < w->low[parent])
            w->low[parent] = w->low[v];
    }
    if (w->low[v] != w->index[v])
        return;
    int member;
    do {
        member = vec_pop(&w->open);
        w->rule->component[member] = w->n_components;
    } while (member != v);
    w->n_components++;
}

static void walk_from(struct component_walk *w, int start)
{
    walk_enter(w, start);
    while (w->path.n) {
        int v = w->path.items[w->path.n - 1];
        if (w->at[v] == w->next.first[v + 1]) {
            walk_leave(w, v);
            continue;
        }
        int to = w->next.to[w->at[v]++];
        if (!w->index[to])
            walk_enter(w, to);
        else if (w->rule->component[to] < 0 && w->index[to] < w->low[v])
            w->low[v] = w->index[to];
    }
}

static void find_components(struct access_rule *rule)
{
    size_t n = (size_t)rule->n;
    struct component_walk w = {.rule = rule};
    rule->component = arena_array(&rule->memory, n + 1, sizeof *rule->component);
    for (int v = 0; v < rule->n; v++)
        rule->component[v] = -1 - v; /* for now, so that all optional edges are followed */
    w.next = access_rule_successors(rule);
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
}

bool access_rule_init(struct access_rule *rule, const struct access_graph *graph, int frame)
{
    struct maker m = {.rule = rule, .graph = graph};
    *rule = (struct access_rule){.memory = ARENA_INIT};
    access_level_init(&rule->level, graph, frame);
    sort_accesses(&m);
    keep_open(&m);
    bool open = m.sorted.n > 0;
    if (open) {
        index_users(&m);
        add_points(&m);
        put_all(&m);
        put_wishes(&m);
        find_components(rule);
    } else {
        access_rule_release(rule);
    }
    vec_release(&m.sorted);
    return open;
}

void access_rule_release(struct access_rule *rule)
{
    access_level_release(&rule->level);
    vec_release(&rule->edges);
    arena_release(&rule->memory);
}
