/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/str.h"
#include "graph/access_private.h"

typedef VEC(int) int_vec;

/* ---- the order ---- */

static int by_name(const void *a, const void *b, void *context)
{
    const struct access_sorter *s = context;
    return strcmp(s->name[*(const int *)a], s->name[*(const int *)b]);
}

static void rank_writes(struct access_sorter *s)
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

static void make_ready(struct access_sorter *s, int v)
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

static int take_write(struct access_sorter *s)
{
    while (!s->may_write[s->lowest])
        s->lowest++;
    s->may_write[s->lowest] = false;
    s->n_may--;
    return s->by_rank[s->lowest];
}

static void place_all(struct access_sorter *s)
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

bool access_sort(struct access_sorter *s, const struct access_rule *rule)
{
    size_t n = (size_t)rule->n;
    *s = (struct access_sorter){.rule = rule, .graph = rule->level.graph};
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
    place_all(s);
    return s->n_placed == rule->n;
}

void access_sort_release(struct access_sorter *s)
{
    vec_release(&s->ready);
    mem_free(s->next.first);
    mem_free(s->next.to);
    mem_free(s->pending);
    mem_free(s->name);
    mem_free(s->may_write);
}

/* ---- what cannot be ---- */

static void print_vertex(const struct access_sorter *s, int v, struct str *text)
{
    const struct access_rule *rule = s->rule;
    for (size_t i = 0; v >= rule->level.n && i < s->graph->accesses.n; i++)
        if (rule->point[i] == v)
            str_printf(text, "'%s' reads", s->graph->names[s->graph->accesses.items[i].node]);
    if (v < rule->level.n)
        str_printf(text, "'%s'", s->graph->names[rule->level.node[v]]);
}

/* One of what comes before the vertex and was not placed either. */
static int find_before(const struct access_sorter *s, int v)
{
    for (int from = 0; from < s->rule->n; from++)
        for (int e = s->next.first[from]; e < s->next.first[from + 1]; e++)
            if (s->next.to[e] == v && s->position[from] < 0)
                return from;
    return v;
}

/* From a vertex that was not placed back to one that was met before: that is a cycle. */
int access_sort_fail(const struct access_sorter *s, struct error *err)
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

/* ---- places ---- */

static int by_place(const void *a, const void *b)
{
    const struct access_place *x = a, *y = b;
    if (x->variable != y->variable)
        return x->variable < y->variable ? -1 : 1;
    return x->position != y->position ? x->position - y->position : x->access - y->access;
}

static void find_next(const struct access_sorter *s, access_place_vec *places)
{
    int next = -1, variable = -1;
    for (size_t i = places->n; i-- > 0;) {
        struct access_place *place = &places->items[i];
        const struct access *access = &s->graph->accesses.items[place->access];
        place->next = place->variable == variable ? next : -1;
        next = access->write ? access->node : place->next;
        variable = place->variable;
    }
}

void access_sort_places(const struct access_sorter *s, access_place_vec *places)
{
    const struct access_rule *rule = s->rule;
    for (size_t i = 0; i < s->graph->accesses.n; i++) {
        const struct access *access = &s->graph->accesses.items[i];
        int v = access->write ? rule->level.vertex[access->node] : rule->point[i];
        if (v < 0 || s->position[v] < 0)
            continue;
        struct access_place place = {access->variable, s->position[v], (int)i, -1};
        vec_push(places, place);
    }
    if (places->n)
        qsort(places->items, places->n, sizeof *places->items, by_place);
    find_next(s, places);
}
