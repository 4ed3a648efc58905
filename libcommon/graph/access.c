/* SPDX-License-Identifier: Apache-2.0
 *
 * One topological order of the rule's edges in each frame, and what has to be added to a graph for
 * all of its orders to be as good.
 */
#include "graph/access.h"

#include <string.h>

#include "base/memory.h"
#include "graph/access_private.h"

typedef VEC(int) int_vec;

struct adder {
    const struct access_sorter *s;
    access_place_vec places;
    int_vec *users; /* nodes, by access */
    struct access_order *order;
};

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

/* Writes follow each other as they are placed. */
static void add_writes(struct adder *a)
{
    size_t first = a->order->edges.n;
    for (size_t i = 0; i < a->places.n; i++) {
        const struct access_place *place = &a->places.items[i];
        if (access_at(a, place->access)->write && place->next >= 0)
            add_edge(a, access_at(a, place->access)->node, place->next);
    }
    access_level_drop_implied(&a->s->rule->level, &a->order->edges, first);
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

static void add_read(struct adder *a, int read, int after, int next)
{
    const struct access_rule *rule = a->s->rule;
    bool has_point = rule->point[read] >= rule->level.n;
    if (has_point && is_late(a, read, next)) {
        struct access_copy copy = {read, after, next};
        vec_push(&a->order->copies, copy);
        return;
    }
    add_edge(a, access_at(a, read)->node, next);
    for (size_t i = 0; has_point && i < a->users[read].n; i++)
        add_edge(a, a->users[read].items[i], next);
}

/* The write that follows a point, of those that may run when the read does. */
static int next_of(const struct adder *a, size_t place)
{
    const struct access_place *from = &a->places.items[place], *end = a->places.items + a->places.n;
    int node = access_at(a, from->access)->node;
    for (const struct access_place *at = from; at < end && at->next >= 0; at++)
        if (!access_level_excludes(&a->s->rule->level, node, at->next))
            return at->next;
    return -1;
}

static void add_reads(struct adder *a)
{
    int after = -1, variable = -1, next;
    for (size_t i = 0; i < a->places.n; i++) {
        const struct access_place *place = &a->places.items[i];
        const struct access *access = access_at(a, place->access);
        after = place->variable == variable ? after : -1;
        variable = place->variable;
        if (access->write)
            after = access->node;
        else if ((next = next_of(a, i)) >= 0)
            add_read(a, place->access, after, next);
    }
}

static void add_all(const struct access_sorter *s, struct access_order *order)
{
    size_t n = s->graph->accesses.n;
    struct adder a = {.s = s, .order = order};
    a.users = mem_array(n + 1, sizeof *a.users);
    for (size_t i = 0; i < s->graph->users.n; i++) {
        const struct access_user *user = &s->graph->users.items[i];
        if (s->rule->level.vertex[user->node] >= 0)
            vec_push(&a.users[user->access], user->node);
    }
    access_sort_places(s, &a.places);
    add_writes(&a);
    add_reads(&a);
    for (size_t i = 0; i < n; i++)
        vec_release(&a.users[i]);
    mem_free(a.users);
    vec_release(&a.places);
}

static void find_refused(const struct access_rule *rule, struct access_order *order)
{
    for (size_t i = 0; i < rule->edges.n; i++) {
        const struct rule_edge *edge = &rule->edges.items[i];
        if (edge->wish >= 0 && !access_rule_holds(rule, edge))
            vec_push(&order->refused, edge->wish);
    }
}

static int order_frame(const struct access_graph *graph, int frame, struct access_order *order,
                       struct error *err)
{
    struct access_rule rule;
    struct access_sorter s;
    int code = 0;
    if (!access_frame_writes(graph, frame) || !access_rule_init(&rule, graph, frame))
        return 0;
    if (access_sort(&s, &rule))
        add_all(&s, order);
    else
        code = access_sort_fail(&s, err);
    find_refused(&rule, order);
    access_sort_release(&s);
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
    vec_release(&graph->wishes);
    vec_release(&graph->accesses);
    vec_release(&graph->users);
    vec_release(&graph->conditions);
}

void access_order_release(struct access_order *order)
{
    vec_release(&order->edges);
    vec_release(&order->copies);
    vec_release(&order->refused);
}
