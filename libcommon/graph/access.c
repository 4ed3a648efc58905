/* SPDX-License-Identifier: Apache-2.0
 *
 * One order of the rule, and the edges and copies that a graph needs for each of its orders to be
 * as good.
 */
#include "graph/access.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/str.h"
#include "graph/access_private.h"

/* ---- the order of all vertices ---- */

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

/* Sets positions to one topological order of all edges, in which writes come as late as possible,
 * ties by name. ERR_DATA, naming the nodes of a cycle. */
static int sort_vertices(struct access_rule *rule, struct error *err)
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

/* Returns, by vertex, numbers that are equal for strongly connected ones. In the rule's memory. */
static int *find_components(struct access_rule *rule, const arc_vec *more)
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

/* ---- edges and copies ---- */

/* An option: an edge from a read or its user to the write that follows; or a wish. */
struct option {
    int read, wish; /* -1 */
};

struct adder {
    struct access_rule *rule;
    const struct access_graph *graph;
    struct successors users;   /* by access: nodes */
    struct successors entries; /* by vertex of a loop: its Enters, as vertices */
    arc_vec edges;             /* between vertices: the fixed ones, then options */
    VEC(struct option) options;
    bool *copied; /* by read */
    int *told[2]; /* by vertex of a loop: the last write with an edge to it, or from it */
    struct access_order *order;
};

static int vertex_of(const struct adder *a, int node)
{
    return a->rule->level.vertex[node];
}

/* ---- writes, and the points between them ---- */

static int by_position(const void *a, const void *b, void *context)
{
    const struct adder *adder = context;
    const struct access *all = adder->graph->accesses.items;
    const int *position = adder->rule->position;
    int x = *(const int *)a, y = *(const int *)b;
    int of_x = position[vertex_of(adder, all[x].node)];
    int of_y = position[vertex_of(adder, all[y].node)];
    return of_x != of_y ? of_x - of_y : x - y;
}

static int write_position(const struct adder *a, int write)
{
    return a->rule->position[vertex_of(a, access_write_at(a->rule, write)->node)];
}

/* Returns the first of the family's writes, in order, at `position` or later. */
static int first_from(const struct adder *a, const struct access_family *family, int position)
{
    int low = family->first_write, high = low + family->n_writes;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (write_position(a, middle) < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int write_node(const struct adder *a, int write)
{
    return access_write_at(a->rule, write)->node;
}

/* For a node that sees the variable while it runs: its own place, not its group's point, counts. */
static void find_around(const struct adder *a, const struct access_family *family, int vertex,
                        int *prev, int *next)
{
    int first = family->first_write, end = first + family->n_writes;
    int at = first_from(a, family, a->rule->position[vertex]), after = at;
    while (after < end && write_position(a, after) == a->rule->position[vertex])
        after++;
    *prev = at > first ? write_node(a, at - 1) : -1;
    *next = after < end ? write_node(a, after) : -1;
}

/* Adds an edge between a write and another node, whichever is first. Several nodes of a loop in a
 * row share one edge to the loop, or from it. */
static void order_with_write(struct adder *a, arc_vec *edges, int from, int to, int write)
{
    int other = write == from ? to : from, v = vertex_of(a, other);
    int *told = &a->told[other == to][v];
    bool is_loop = a->graph->frame && a->graph->frame[other] != a->rule->level.frame;
    if (v == vertex_of(a, write) || (is_loop && *told == write + 1))
        return;
    *told = write + 1;
    vec_push(edges, ((struct arc){from, to}));
}

/* Returns the vertex of the loop that an Enter enters; -1: the node enters none. */
static int entered(const struct adder *a, int node)
{
    const struct access_level *level = &a->rule->level;
    int loop = a->graph->enters[node], v = level->vertex[node];
    const struct successors *next = &level->next;
    for (int e = loop && v >= 0 ? next->first[v] : 0; loop && v >= 0 && e < next->first[v + 1]; e++)
        if (a->graph->frame[level->node[next->to[e]]] != level->frame)
            return next->to[e];
    return -1;
}

/* Adds a fixed edge between vertices. An edge to a loop's vertex also holds for each node that
 * enters the loop. */
static void fix(struct adder *a, int from, int to)
{
    vec_push(&a->edges, ((struct arc){from, to}));
    for (int i = a->entries.first[to]; i < a->entries.first[to + 1]; i++)
        vec_push(&a->edges, ((struct arc){from, a->entries.to[i]}));
}

static void add_option(struct adder *a, int from, int to, int read, int wish)
{
    vec_push(&a->edges, ((struct arc){from, to}));
    vec_push(&a->options, ((struct option){read, wish}));
}

/* Indexes users by the access that they read, and Enters by their loop. */
static void index_users(struct adder *a)
{
    const struct access_graph *graph = a->graph;
    struct arena *memory = &a->rule->memory;
    arc_vec entries = VEC_INIT;
    for (int i = 0; graph->enters && i < graph->n; i++) {
        int loop = entered(a, i);
        if (loop >= 0)
            vec_push(&entries, ((struct arc){loop, vertex_of(a, i)}));
    }
    a->users = successors_new(memory, graph->accesses.n, (const arc_vec *[]){&graph->users, NULL});
    a->entries = successors_new(memory, (size_t)a->rule->n, (const arc_vec *[]){&entries, NULL});
    vec_release(&entries);
}

/* Orders those writes around the vertex, even if conditions exclude one of them: an edge added for
 * the read would close a cycle, too. */
static void fix_around(struct adder *a, const struct access_family *family, int vertex, int *prev,
                       int *next)
{
    find_around(a, family, vertex, prev, next);
    if (*prev >= 0)
        fix(a, vertex_of(a, *prev), vertex);
    if (*next >= 0)
        fix(a, vertex, vertex_of(a, *next));
}

/* Orders the writes of a family and, between them, the points of its groups of reads and the reads
 * that have no point of their own. */
static void fix_family(struct adder *a, const struct access_family *family)
{
    int *writes = a->rule->writes + family->first_write;
    qsort_r(writes, (size_t)family->n_writes, sizeof *writes, by_position, a);
    for (int w = family->first_write + 1; w < family->first_write + family->n_writes; w++) {
        int from = write_node(a, w - 1), to = write_node(a, w);
        order_with_write(a, &a->order->follows, from, to, from);
        if (vertex_of(a, from) != vertex_of(a, to))
            fix(a, vertex_of(a, from), vertex_of(a, to));
    }
    for (int k = 0; k < family->n_kinds; k++) {
        const struct access_kind *kind = &a->rule->kinds.items[family->first_kind + k];
        for (int g = 0; g < kind->n_groups; g++) {
            struct access_group *group = &a->rule->groups.items[kind->first_group + g];
            fix_around(a, family, group->point, &group->prev, &group->next);
        }
    }
    for (int r = family->first_read; r < family->first_read + family->n_reads; r++) {
        int v = vertex_of(a, access_read_at(a->rule, r)->node), prev, next;
        if (access_may_copy(a->rule, access_read_at(a->rule, r)) ||
            a->told[0][v] == family->first_write + 1)
            continue;
        a->told[0][v] = family->first_write + 1;
        fix_around(a, family, v, &prev, &next);
    }
}

/* Adds edges from reads and their users to the write that follows, and wishes, except those that
 * would close a cycle. */
static void choose_options(struct adder *a)
{
    const struct access_rule *rule = a->rule;
    size_t n_fixed = a->edges.n;
    vec_each(family, &rule->families) {
        for (int r = family->first_read; r < family->first_read + family->n_reads; r++) {
            const struct access *read = access_read_at(rule, r);
            int next = rule->groups.items[rule->group[r]].next, access = rule->reads[r];
            if (!access_may_copy(rule, read) || next < 0)
                continue;
            a->copied[r] = read->taken || vertex_of(a, read->node) == vertex_of(a, next);
            add_option(a, vertex_of(a, read->node), vertex_of(a, next), r, -1);
            for (int i = a->users.first[access]; i < a->users.first[access + 1]; i++) {
                int user = vertex_of(a, a->users.to[i]);
                a->copied[r] |= user == vertex_of(a, next);
                if (user >= 0)
                    add_option(a, user, vertex_of(a, next), r, -1);
            }
        }
    }
    for (size_t i = 0; i < a->graph->wishes.n; i++) {
        int from = vertex_of(a, a->graph->wishes.items[i].from);
        int to = vertex_of(a, a->graph->wishes.items[i].to);
        if (from >= 0 && to >= 0 && from != to)
            add_option(a, from, to, -1, (int)i);
    }
    int *component = find_components(a->rule, &a->edges);
    for (size_t i = 0; i < a->options.n; i++) {
        const struct arc *edge = &a->edges.items[n_fixed + i];
        const struct option *option = &a->options.items[i];
        if (component[edge->from] != component[edge->to])
            continue;
        if (option->read >= 0)
            a->copied[option->read] = true;
        else
            vec_push(&a->order->refused, option->wish);
    }
}

static void add_family(struct adder *a, const struct access_family *family)
{
    const struct access_rule *rule = a->rule;
    /* Could a plan that sees only some of the paths find another order? Nodes that exclude each
     * other run in any order. */
    bool hidden = family->n_writes > 1 || family->has_branches;
    int end = family->first_read + family->n_reads;
    for (int r = family->first_read; r < end; r++) {
        const struct access *read = access_read_at(rule, r);
        const struct access_group *group = &rule->groups.items[rule->group[r]];
        int access = rule->reads[r], prev = group->prev, next = group->next;
        hidden |= a->copied[r] || rule->count[r];
        if (!access_may_copy(rule, read))
            find_around(a, family, vertex_of(a, read->node), &prev, &next);
        if (a->copied[r]) {
            vec_push(&a->order->copies, ((struct access_copy){access, prev, next}));
            continue;
        }
        if (prev >= 0)
            order_with_write(a, &a->order->follows, prev, read->node, prev);
        if (next < 0)
            continue;
        order_with_write(a, &a->order->edges, read->node, next, next);
        for (int i = a->users.first[access]; i < a->users.first[access + 1]; i++)
            if (vertex_of(a, a->users.to[i]) >= 0)
                order_with_write(a, &a->order->edges, a->users.to[i], next, next);
    }
    for (int i = 0; hidden && i < family->n_writes + family->n_reads; i++) {
        int r = family->first_read + i - family->n_writes;
        struct access_place place = {.frame = rule->level.frame, .place = i + 2};
        if (i < family->n_writes) {
            place.access = rule->writes[family->first_write + i];
        } else {
            const struct access *read = access_read_at(rule, r);
            int v = access_may_copy(rule, read) ? rule->groups.items[rule->group[r]].point
                                                : vertex_of(a, read->node);
            place.access = rule->reads[r];
            place.place = first_from(a, family, rule->position[v]) - family->first_write + 1;
        }
        vec_push(&a->order->places, place);
    }
}

/* ---- the whole order ---- */

static void add_all(struct adder *a)
{
    const struct access_rule *rule = a->rule;
    a->copied = arena_alloc(&a->rule->memory, a->graph->accesses.n + 1);
    for (int i = 0; i < 2; i++)
        a->told[i] = arena_array(&a->rule->memory, (size_t)rule->level.n + 1, sizeof(int));
    index_users(a);
    for (size_t i = 0; i < rule->families.n; i++)
        fix_family(a, &rule->families.items[i]);
    choose_options(a);
    memset(a->told[0], 0, (size_t)rule->level.n * sizeof *a->told[0]);
    for (size_t i = 0; i < rule->families.n; i++)
        add_family(a, &rule->families.items[i]);
    vec_release(&a->edges);
    vec_release(&a->options);
}

int access_order_find(const struct access_graph *graph, struct access_order *order,
                      struct error *err)
{
    int n_frames = graph->frame ? graph->n_frames : 1, code = 0;
    char *writes = mem_alloc((size_t)n_frames + 1); /* by frame: the frame or a loop in it writes */
    vec_each(access, &graph->accesses) {
        int frame = graph->frame ? graph->frame[access->node] : 0;
        for (; access->write && frame >= 0 && !writes[frame];
             frame = graph->frame ? graph->parent[frame] : -1)
            writes[frame] = 1;
    }
    memset(order, 0, sizeof *order);
    for (int f = 0; !code && f < n_frames; f++) {
        struct access_rule rule;
        struct adder a = {.rule = &rule, .graph = graph, .order = order};
        if (!writes[f])
            continue;
        if (access_rule_init(&rule, graph, f, &code, err) && !code)
            code = sort_vertices(&rule, err);
        if (!code && rule.families.n)
            add_all(&a);
        access_rule_release(&rule);
    }
    mem_free(writes);
    return code;
}

void access_graph_release(struct access_graph *graph)
{
    vec_release(&graph->edges);
    vec_release(&graph->wishes);
    vec_release(&graph->accesses);
    vec_release(&graph->users);
    vec_release(&graph->conditions);
    vec_release(&graph->places);
}

void access_order_release(struct access_order *order)
{
    vec_release(&order->follows);
    vec_release(&order->edges);
    vec_release(&order->copies);
    vec_release(&order->refused);
    vec_release(&order->places);
}
