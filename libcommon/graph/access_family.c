/* SPDX-License-Identifier: Apache-2.0
 *
 * The reads and writes that need ordering: by variable, where at least one writes and they are not
 * all at one vertex.
 */
#include <stdlib.h>

#include "graph/access_private.h"

typedef VEC(int) int_vec;

struct finder {
    struct access_rule *rule;
    const struct access_graph *graph;
    int *sorted, n; /* accesses of the level */
    int n_reads, n_writes;
};

static const struct access *access_at(const struct finder *f, int i)
{
    return &f->graph->accesses.items[f->sorted[i]];
}

/* Compares by variable; within one by known place or by condition. */
static int by_variable(const void *a, const void *b, void *context)
{
    const struct access_rule *rule = context;
    const struct access_level *level = &rule->level;
    const struct access *all = level->graph->accesses.items;
    int x = *(const int *)a, y = *(const int *)b;
    if (all[x].variable != all[y].variable)
        return all[x].variable < all[y].variable ? -1 : 1;
    int of_x = access_level_condition(level, all[x].node);
    int of_y = access_level_condition(level, all[y].node);
    if (rule->place[x] != rule->place[y])
        return rule->place[x] - rule->place[y];
    return of_x != of_y ? (of_x < of_y ? -1 : 1) : x - y;
}

/* ---- kinds of reads ---- */

struct chosen { /* a predicate and the branch taken */
    int predicate, branch;
};

static int by_predicate(const void *a, const void *b)
{
    const struct chosen *x = a, *y = b;
    if (x->predicate != y->predicate)
        return x->predicate < y->predicate ? -1 : 1;
    return x->branch - y->branch;
}

/* Returns whether any two of the accesses exclude each other. They are sorted by condition, reads
 * and writes together. `met` is by condition. */
static bool has_branches(const struct finder *f, int from, int to, int *met)
{
    const struct access_condition *all = f->graph->conditions.items;
    VEC(struct chosen) chosen = VEC_INIT;
    bool found = false;
    for (int i = from; i < to; i++)
        for (int c = access_level_condition(&f->rule->level, access_at(f, i)->node);
             c >= 0 && met[c] != from + 1; c = all[c].parent) {
            met[c] = from + 1;
            vec_push(&chosen, ((struct chosen){all[c].predicate, all[c].branch}));
        }
    if (chosen.n)
        qsort(chosen.items, chosen.n, sizeof *chosen.items, by_predicate);
    for (size_t i = 1; i < chosen.n && !found; i++)
        found = chosen.items[i].predicate == chosen.items[i - 1].predicate &&
                chosen.items[i].branch != chosen.items[i - 1].branch;
    vec_release(&chosen);
    return found;
}

static void add_kinds(struct access_rule *rule, struct access_family *family)
{
    int end = family->first_read + family->n_reads;
    family->first_kind = (int)rule->kinds.n;
    for (int from = family->first_read, to; from < end; from = to) {
        int of = access_level_condition(&rule->level, access_read_at(rule, from)->node);
        for (to = family->has_branches ? from + 1 : end; to < end; to++)
            if (access_level_condition(&rule->level, access_read_at(rule, to)->node) != of)
                break;
        struct access_kind kind = {.first_read = from, .n_reads = to - from};
        kind.bucket = arena_array(&rule->memory, (size_t)family->n_writes + 1, sizeof *kind.bucket);
        for (int w = 0; family->has_branches && w < family->n_writes; w++)
            if (access_level_excludes(&rule->level, access_read_at(rule, from)->node,
                                      access_write_at(rule, family->first_write + w)->node))
                kind.bucket[w] = -1;
        vec_push(&rule->kinds, kind);
    }
    family->n_kinds = (int)rule->kinds.n - family->first_kind;
}

void access_find_families(struct access_rule *rule, bool all, int *n_reads)
{
    const struct access_graph *graph = rule->level.graph;
    size_t n = graph->accesses.n;
    struct finder f = {.rule = rule, .graph = graph};
    int *met = arena_array(&rule->memory, graph->conditions.n, sizeof *met);
    f.sorted = arena_array(&rule->memory, n, sizeof *f.sorted);
    rule->place = arena_array(&rule->memory, n + 1, sizeof *rule->place);
    for (size_t i = 0; i < graph->places.n; i++)
        if (graph->places.items[i].frame == rule->level.frame)
            rule->place[graph->places.items[i].access] = graph->places.items[i].place;
    rule->reads = arena_array(&rule->memory, n + 1, sizeof *rule->reads);
    rule->writes = arena_array(&rule->memory, n + 1, sizeof *rule->writes);
    for (size_t i = 0; i < n; i++)
        if (rule->level.vertex[graph->accesses.items[i].node] >= 0)
            f.sorted[f.n++] = (int)i;
    qsort_r(f.sorted, (size_t)f.n, sizeof *f.sorted, by_variable, rule);
    for (int from = 0, to; from < f.n; from = to) {
        to = from;
        while (to < f.n && access_at(&f, to)->variable == access_at(&f, from)->variable)
            to++;
        if (!all) {
            /* A node that reads the variable that it writes may need a copy. */
            const int *vertex = f.rule->level.vertex;
            bool writes = false, several = false;
            for (int i = from; i < to; i++) {
                writes |= access_at(&f, i)->write;
                several |= vertex[access_at(&f, i)->node] != vertex[access_at(&f, from)->node] ||
                           (!access_at(&f, i)->write && access_may_copy(f.rule, access_at(&f, i)));
            }
            if (!writes || !several)
                continue;
        }
        struct access_family family = {.first_read = f.n_reads, .first_write = f.n_writes};
        for (int i = from; i < to; i++) {
            if (access_at(&f, i)->write)
                rule->writes[f.n_writes++] = f.sorted[i];
            else
                rule->reads[f.n_reads++] = f.sorted[i];
        }
        family.is_placed = rule->place[f.sorted[from]] > 0;
        family.n_reads = f.n_reads - family.first_read;
        family.n_writes = f.n_writes - family.first_write;
        family.has_branches =
            graph->condition && !family.is_placed && has_branches(&f, from, to, met);
        add_kinds(rule, &family);
        vec_push(&rule->families, family);
    }
    *n_reads = f.n_reads;
}
