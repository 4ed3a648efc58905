/* SPDX-License-Identifier: Apache-2.0
 *
 * The rule as edges between each group of reads and the writes before and after it.
 */
#include "base/memory.h"
#include "graph/access_private.h"

static void add_edge(struct access_rule *rule, int from, int to)
{
    vec_push(&rule->edges, ((struct arc){from, to}));
}

static int vertex_of(const struct access_rule *rule, const struct access *access)
{
    return rule->level.vertex[access->node];
}

/* ---- one kind of reads ---- */

static struct access_group *group_at(struct access_rule *rule, const struct access_kind *kind,
                                     int group)
{
    return &rule->groups.items[kind->first_group + group];
}

/* ---- all frames ---- */

static void mark_writes(const struct access_rule *rule, const struct access_family *family,
                        char *writes, char mark)
{
    for (int w = family->first_write; w < family->first_write + family->n_writes; w++)
        writes[vertex_of(rule, access_write_at(rule, w))] = mark;
}

bool access_rule_init(struct access_rule *rule, const struct access_graph *graph, int frame,
                      int *code, struct error *err)
{
    int n_reads;
    *rule = (struct access_rule){.memory = ARENA_INIT};
    access_level_init(&rule->level, graph, frame);
    rule->n = rule->level.n;
    access_find_families(rule, false, &n_reads);
    if (!rule->families.n)
        return false;
    access_count(rule, n_reads);
    *code = access_find_groups(rule, err);
    if (!*code) {
        char *writes = arena_alloc(&rule->memory, (size_t)rule->level.n + 1);
        vec_each(family, &rule->families) {
            mark_writes(rule, family, writes, 1);
            for (int k = 0; k < family->n_kinds; k++) {
                const struct access_kind *kind = &rule->kinds.items[family->first_kind + k];
                for (int g = 0; g < kind->n_groups; g++) {
                    struct access_group *group = group_at(rule, kind, g);
                    group->point = rule->n++;
                    group->end = rule->n++;
                    group->last = rule->n++;
                    add_edge(rule, group->point, group->end);
                    add_edge(rule, group->end, group->last);
                    if (g)
                        add_edge(rule, group_at(rule, kind, g - 1)->last, group->point);
                }
                /* writes[v] is set if vertex v writes the variable. */
                for (int r = kind->first_read; r < kind->first_read + kind->n_reads; r++) {
                    const struct access *read = access_read_at(rule, r);
                    struct access_group *group = &rule->groups.items[rule->group[r]];
                    int v = vertex_of(rule, read);
                    if (!access_may_copy(rule, read) && writes[v] && group->changes < 0)
                        group->changes = v;
                    bool changes = !access_may_copy(rule, read) && group->changes == v;
                    add_edge(rule, changes ? group->end : group->point, v);
                    if (!access_may_copy(rule, read))
                        add_edge(rule, v, changes ? group->last : group->end);
                }
                for (int w = 0; w < family->n_writes; w++) {
                    int bucket = kind->bucket[w];
                    int v = vertex_of(rule, access_write_at(rule, family->first_write + w));
                    if (bucket >= 0 && bucket < kind->n_groups)
                        add_edge(rule, v, group_at(rule, kind, bucket)->point);
                    if (bucket > 0 && group_at(rule, kind, bucket - 1)->changes != v)
                        add_edge(rule, group_at(rule, kind, bucket - 1)->last, v);
                }
            }
            mark_writes(rule, family, writes, 0);
            if (family->is_placed) {
                for (int w = family->first_write + 1; w < family->first_write + family->n_writes;
                     w++) {
                    int from = vertex_of(rule, access_write_at(rule, w - 1));
                    if (from != vertex_of(rule, access_write_at(rule, w)))
                        add_edge(rule, from, vertex_of(rule, access_write_at(rule, w)));
                }
            }
        }
    }
    return true;
}

void access_rule_release(struct access_rule *rule)
{
    access_level_release(&rule->level);
    vec_release(&rule->families);
    vec_release(&rule->kinds);
    vec_release(&rule->groups);
    vec_release(&rule->edges);
    arena_release(&rule->memory);
}

int *access_count_writes(const struct access_graph *graph)
{
    struct access_rule rule = {.memory = ARENA_INIT};
    int *counts = mem_array(graph->accesses.n + 1, sizeof *counts), n_reads;
    access_level_init(&rule.level, graph, 0);
    access_find_families(&rule, true, &n_reads);
    access_count(&rule, n_reads);
    int *at = arena_array(&rule.memory, (size_t)rule.level.n,
                          sizeof *at); /* by vertex: the family's writes */
    vec_each(family, &rule.families) {
        for (int w = family->first_write; w < family->first_write + family->n_writes; w++)
            at[vertex_of(&rule, access_write_at(&rule, w))]++;
        for (int r = family->first_read; r < family->first_read + family->n_reads; r++)
            rule.count[r] += at[vertex_of(&rule, access_read_at(&rule, r))];
        for (int w = family->first_write; w < family->first_write + family->n_writes; w++)
            at[vertex_of(&rule, access_write_at(&rule, w))] = 0;
    }
    for (int r = 0; r < n_reads; r++)
        counts[rule.reads[r]] = rule.count[r];
    access_rule_release(&rule);
    return counts;
}
