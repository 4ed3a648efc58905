/* SPDX-License-Identifier: Apache-2.0
 *
 * One topological order of the rule's edges in each frame, and what has to be added to a graph for
 * all of its orders to be as good.
 */
#include "graph/access.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/str.h"
#include "graph/access_private.h"

typedef VEC(int) int_vec;

struct sorter {
    const struct access_rule *rule;
    const struct access_graph *graph;
    struct access_successors next;
    int *pending;  /* by vertex */
    int *position; /* by vertex; -1: not yet */
    int n_placed;
    int_vec ready;       /* vertices that do not write */
    const char **name;   /* by vertex that writes: its first writer's */
    int *by_rank, *rank; /* vertices that write, by name; and back */
    bool *may_write;     /* by rank */
    int n_writes, n_may, lowest;
};

/* ---- the order ---- */

static int by_name(const void *a, const void *b, void *context)
{
    const struct sorter *s = context;
    return strcmp(s->name[*(const int *)a], s->name[*(const int *)b]);
}

static void rank_writes(struct sorter *s)
{
    for (size_t i = 0; i < s->graph->accesses.n; i++) {
        const struct access *access = &s->graph->accesses.items[i];
        int v = s->rule->level.vertex[access->node];
        if (!access->write || v < 0 || !s->rule->writes[v])
            continue;
        const char *name = s->graph->names[access->node];
        if (!s->name[v])
            s->by_rank[s->n_writes++] = v;
        if (!s->name[v] || strcmp(name, s->name[v]) < 0)
            s->name[v] = name;
    }
    qsort_r(s->by_rank, (size_t)s->n_writes, sizeof *s->by_rank, by_name, s);
    for (int i = 0; i < s->n_writes; i++)
        s->rank[s->by_rank[i]] = i;
    s->lowest = s->n_writes;
}

static void make_ready(struct sorter *s, int v)
{
    if (!s->rule->writes[v]) {
        vec_push(&s->ready, v);
        return;
    }
    int rank = s->rank[v];
    s->may_write[rank] = true;
    s->n_may++;
    if (rank < s->lowest)
        s->lowest = rank;
}

static int take_write(struct sorter *s)
{
    while (!s->may_write[s->lowest])
        s->lowest++;
    s->may_write[s->lowest] = false;
    s->n_may--;
    return s->by_rank[s->lowest];
}

static void place_all(struct sorter *s)
{
    for (int v = 0; v < s->rule->n; v++)
        if (!s->pending[v])
            make_ready(s, v);
    while (s->ready.n || s->n_may) {
        int v = s->ready.n ? vec_pop(&s->ready) : take_write(s);
        s->position[v] = s->n_placed++;
        for (int e = s->next.first[v]; e < s->next.first[v + 1]; e++)
            if (!--s->pending[s->next.to[e]])
                make_ready(s, s->next.to[e]);
    }
}

static void sorter_init(struct sorter *s, const struct access_rule *rule)
{
    size_t n = (size_t)rule->n;
    *s = (struct sorter){.rule = rule, .graph = rule->level.graph};
    s->next = access_rule_successors(rule);
    s->pending = mem_array(4 * n + 1, sizeof *s->pending);
    s->position = s->pending + n;
    s->by_rank = s->position + n;
    s->rank = s->by_rank + n;
    s->name = mem_array(n + 1, sizeof *s->name);
    s->may_write = mem_alloc(n + 1);
    memset(s->position, -1, n * sizeof *s->position);
    for (int e = 0; e < s->next.first[n]; e++)
        s->pending[s->next.to[e]]++;
    rank_writes(s);
}

static void sorter_release(struct sorter *s)
{
    vec_release(&s->ready);
    mem_free(s->next.first);
    mem_free(s->next.to);
    mem_free(s->pending);
    mem_free(s->name);
    mem_free(s->may_write);
}

/* ---- what cannot be ---- */

static void print_vertex(const struct sorter *s, int v, struct str *text)
{
    const struct access_rule *rule = s->rule;
    for (size_t i = 0; v >= rule->level.n && i < s->graph->accesses.n; i++)
        if (rule->point[i] == v)
            str_printf(text, "'%s' reads", s->graph->names[s->graph->accesses.items[i].node]);
    if (v < rule->level.n)
        str_printf(text, "'%s'", s->graph->names[rule->level.node[v]]);
}

/* One of what comes before the vertex and was not placed either. */
static int find_before(const struct sorter *s, int v)
{
    for (int from = 0; from < s->rule->n; from++)
        for (int e = s->next.first[from]; e < s->next.first[from + 1]; e++)
            if (s->next.to[e] == v && s->position[from] < 0)
                return from;
    return v;
}

/* From a vertex that was not placed back to one that was met before: that is a cycle. */
static int report(const struct sorter *s, struct error *err)
{
    struct str text = STR_INIT;
    int_vec path = VEC_INIT;
    char *met = mem_alloc((size_t)s->rule->n + 1);
    int v = 0;
    while (s->position[v] >= 0)
        v++;
    for (; !met[v]; v = find_before(s, v)) {
        met[v] = 1;
        vec_push(&path, v);
    }
    print_vertex(s, v, &text);
    for (size_t i = path.n; i-- > 0 && text.n < 200;) {
        str_append(&text, " before ");
        print_vertex(s, path.items[i], &text);
        if (path.items[i] == v)
            break;
    }
    error_set(err, ERR_DATA, "reads and writes of variables contradict each other: %s",
              str_text(&text));
    str_release(&text);
    vec_release(&path);
    mem_free(met);
    return err->code;
}

/* ---- what is to be added ---- */

struct place { /* of a write, or of the point of a read */
    int variable, position, access;
    int next; /* node of the write that follows; -1: there is none */
};

struct adder {
    const struct sorter *s;
    VEC(struct place) places;
    int_vec *users; /* nodes, by access */
    struct access_order *order;
};

static int by_place(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->variable != y->variable)
        return x->variable < y->variable ? -1 : 1;
    return x->position != y->position ? x->position - y->position : x->access - y->access;
}

static const struct access *access_at(const struct adder *a, int i)
{
    return &a->s->graph->accesses.items[i];
}

static int position_of(const struct adder *a, int node)
{
    return a->s->position[a->s->rule->level.vertex[node]];
}

static void add_edge(struct adder *a, int from, int to)
{
    const int *vertex = a->s->rule->level.vertex;
    if (vertex[from] != vertex[to])
        vec_push(&a->order->edges, ((struct access_edge){from, to}));
}

static void find_places(struct adder *a)
{
    const struct access_rule *rule = a->s->rule;
    for (size_t i = 0; i < a->s->graph->accesses.n; i++) {
        const struct access *access = access_at(a, (int)i);
        int v = access->write ? rule->level.vertex[access->node] : rule->point[i];
        if (v < 0)
            continue;
        struct place place = {access->variable, a->s->position[v], (int)i, -1};
        vec_push(&a->places, place);
    }
    if (a->places.n)
        qsort(a->places.items, a->places.n, sizeof *a->places.items, by_place);
}

/* Writes follow each other as they are placed. */
static void add_writes(struct adder *a)
{
    int next = -1, variable = -1;
    for (size_t i = a->places.n; i-- > 0;) {
        struct place *place = &a->places.items[i];
        const struct access *access = access_at(a, place->access);
        next = place->variable == variable ? next : -1;
        variable = place->variable;
        place->next = next;
        if (access->write && next >= 0)
            add_edge(a, access->node, next);
        if (access->write)
            next = access->node;
    }
}

/* Whether the read, or some user, comes after the write. */
static bool is_late(const struct adder *a, int read, int write)
{
    const int_vec *users = &a->users[read];
    int limit = position_of(a, write);
    bool late = position_of(a, access_at(a, read)->node) > limit;
    for (size_t i = 0; i < users->n && !late; i++)
        late = position_of(a, users->items[i]) > limit;
    return late;
}

static void add_read(struct adder *a, const struct place *place, int after)
{
    const struct access_rule *rule = a->s->rule;
    int read = place->access;
    bool has_point = rule->point[read] >= rule->level.n;
    if (has_point && is_late(a, read, place->next)) {
        struct access_copy copy = {read, after, place->next};
        vec_push(&a->order->copies, copy);
        return;
    }
    add_edge(a, access_at(a, read)->node, place->next);
    for (size_t i = 0; has_point && i < a->users[read].n; i++)
        add_edge(a, a->users[read].items[i], place->next);
}

static void add_reads(struct adder *a)
{
    int after = -1, variable = -1;
    for (size_t i = 0; i < a->places.n; i++) {
        const struct place *place = &a->places.items[i];
        const struct access *access = access_at(a, place->access);
        after = place->variable == variable ? after : -1;
        variable = place->variable;
        if (access->write)
            after = access->node;
        else if (place->next >= 0)
            add_read(a, place, after);
    }
}

static void add_all(const struct sorter *s, struct access_order *order)
{
    size_t n = s->graph->accesses.n;
    struct adder a = {.s = s, .order = order};
    a.users = mem_array(n + 1, sizeof *a.users);
    for (size_t i = 0; i < s->graph->users.n; i++) {
        const struct access_user *user = &s->graph->users.items[i];
        if (s->rule->level.vertex[user->node] >= 0)
            vec_push(&a.users[user->access], user->node);
    }
    find_places(&a);
    add_writes(&a);
    add_reads(&a);
    for (size_t i = 0; i < n; i++)
        vec_release(&a.users[i]);
    mem_free(a.users);
    vec_release(&a.places);
}

static int order_frame(const struct access_graph *graph, int frame, struct access_order *order,
                       struct error *err)
{
    struct access_rule rule;
    struct sorter s;
    int code = 0;
    if (!access_frame_writes(graph, frame) || !access_rule_init(&rule, graph, frame))
        return 0;
    sorter_init(&s, &rule);
    place_all(&s);
    if (s.n_placed < rule.n)
        code = report(&s, err);
    else
        add_all(&s, order);
    sorter_release(&s);
    access_rule_release(&rule);
    return code;
}

int access_order_find(const struct access_graph *graph, struct access_order *order,
                      struct error *err)
{
    int code = 0;
    memset(order, 0, sizeof *order);
    for (int f = 0; !code && f < (graph->frame ? graph->n_frames : 1); f++)
        code = order_frame(graph, f, order, err);
    return code;
}

void access_graph_release(struct access_graph *graph)
{
    vec_release(&graph->edges);
    vec_release(&graph->orders);
    vec_release(&graph->accesses);
    vec_release(&graph->users);
}

void access_order_release(struct access_order *order)
{
    vec_release(&order->edges);
    vec_release(&order->copies);
}
