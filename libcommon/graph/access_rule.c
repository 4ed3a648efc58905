/* SPDX-License-Identifier: Apache-2.0
 *
 * The rule of access.h in one frame: its graph, in which each inner loop is one vertex; the
 * accesses that need ordering; how many writes of its variable each read follows, and which, as
 * these sets are nested; and edges between each group of reads and the writes before and after it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "graph/access_private.h"

int access_common_frame(const int *parent, int a, int b)
{
    while (a != b) { /* parents come before children */
        if (a > b)
            a = parent[a];
        else
            b = parent[b];
    }
    return a;
}

int access_frame_below(const int *parent, int outer, int frame)
{
    while (frame > outer && parent[frame] != outer)
        frame = parent[frame];
    return frame;
}

/* Returns the child of the level's frame around the node, or that frame itself; -1: neither. */
static int child_frame(const struct access_level *level, int node)
{
    const struct access_graph *graph = level->graph;
    int of = graph->frame ? graph->frame[node] : 0;
    if (of == level->frame)
        return of;
    if (access_common_frame(graph->parent, level->frame, of) != level->frame)
        return -1;
    return access_frame_below(graph->parent, level->frame, of);
}

/* Returns the condition that a node runs under. */
static int level_condition(const struct access_level *level, int node)
{
    const struct access_graph *graph = level->graph;
    int place = child_frame(level, node);
    if (!graph->condition)
        return -1;
    return place == level->frame ? graph->condition[node] : graph->frame_condition[place];
}

/* Returns whether two nodes never both run in one iteration of the frame. */
static bool level_excludes(const struct access_level *level, int a, int b)
{
    const struct access_graph *graph = level->graph;
    const struct access_condition *all = graph->conditions.items;
    int of_b = level_condition(level, b);
    for (int x = level_condition(level, a); x >= 0; x = all[x].parent)
        for (int y = of_b; y >= 0; y = all[y].parent)
            if (all[x].predicate == all[y].predicate && all[x].branch != all[y].branch)
                return true;
    return false;
}

/* ---- vertices and edges ---- */

static void level_init(struct access_level *level, const struct access_graph *graph, int frame,
                       struct arena *memory)
{
    *level = (struct access_level){.graph = graph, .frame = frame};
    int n_frames = graph->frame ? graph->n_frames : 1;
    int *loop = arena_array(memory, (size_t)n_frames + 1, sizeof *loop);
    level->vertex = arena_array(memory, (size_t)graph->n + 1, sizeof *level->vertex);
    level->node = arena_array(memory, (size_t)graph->n + 1, sizeof *level->node);
    memset(loop, -1, (size_t)n_frames * sizeof *loop);
    for (int i = 0; i < graph->n; i++) {
        int place = child_frame(level, i);
        if (place < 0) {
            level->vertex[i] = -1;
        } else if (place == level->frame) {
            level->node[level->n] = i;
            level->vertex[i] = level->n++;
        } else {
            if (loop[place] < 0) {
                level->node[level->n] = i;
                loop[place] = level->n++;
            }
            level->vertex[i] = loop[place];
        }
    }
    const arc_vec *all = &level->graph->edges;
    for (size_t i = 0; i < all->n; i++) {
        struct arc edge = {level->vertex[all->items[i].from], level->vertex[all->items[i].to]};
        if (edge.from >= 0 && edge.to >= 0 && edge.from != edge.to)
            vec_push_in(memory, &level->edges, edge);
    }
    level->next =
        successors_new(memory, (size_t)level->n, (const arc_vec *[]){&level->edges, NULL});
    level->order = arena_array(memory, (size_t)level->n + 1, sizeof *level->order);
    level->place = arena_array(memory, (size_t)level->n + 1, sizeof *level->place);
    for (int i = successors_order(&level->next, level->order, level->place); i < level->n; i++)
        level->place[level->order[i]] = i;
}

#define ACCESS_BATCH 64

/* Sets bit i of reached[v], for vertices v up to place `last` of `order`, if a path leads to v from
 * another vertex from[i], i < n <= ACCESS_BATCH. Returns false, and sets nothing, if no such path
 * can exist because every from[i] lies at `last` or later. */
static bool level_reach(const struct access_level *level, const int *from, int n, int last,
                        uint64_t *reached)
{
    int first = level->n;
    for (int i = 0; i < n; i++)
        if (level->place[from[i]] < first)
            first = level->place[from[i]];
    if (first >= last)
        return false;
    memset(reached, 0, (size_t)level->n * sizeof *reached);
    uint64_t *at = mem_array((size_t)level->n + 1, sizeof *at); /* and the starts */
    for (int i = 0; i < n; i++)
        at[from[i]] |= (uint64_t)1 << i;
    for (int i = first; i < last; i++) {
        int v = level->order[i];
        uint64_t mask = at[v] | reached[v];
        if (!mask)
            continue;
        for (int e = level->next.first[v]; e < level->next.first[v + 1]; e++)
            reached[level->next.to[e]] |= mask;
    }
    mem_free(at);
    return true;
}

/* ---- families ---- */

/* Compares by variable; within one by known place or by condition. */
static int by_variable(const void *a, const void *b, void *context)
{
    const struct access_rule *rule = context;
    const struct access_level *level = &rule->level;
    const struct access *all = level->graph->accesses.items;
    int x = *(const int *)a, y = *(const int *)b;
    if (all[x].variable != all[y].variable)
        return all[x].variable < all[y].variable ? -1 : 1;
    int of_x = level_condition(level, all[x].node);
    int of_y = level_condition(level, all[y].node);
    if (rule->place[x] != rule->place[y])
        return rule->place[x] - rule->place[y];
    return of_x != of_y ? (of_x < of_y ? -1 : 1) : x - y;
}

/* Returns whether any two of the sorted accesses exclude each other. They are sorted by condition,
 * reads and writes together. `met` is by condition. */
static bool has_branches(const struct access_rule *rule, const int *sorted, int n, int *met)
{
    const struct access_graph *graph = rule->level.graph;
    const struct access_condition *all = graph->conditions.items;
    struct map taken = MAP_INIT; /* by predicate: the branch */
    bool found = false;
    for (int i = 0; i < n; i++)
        for (int c = level_condition(&rule->level, graph->accesses.items[sorted[i]].node);
             c >= 0 && met[c] != sorted[0] + 1; c = all[c].parent) {
            int64_t branch = all[c].branch;
            met[c] = sorted[0] + 1;
            map_get_number(&taken, (uint64_t)all[c].predicate, &branch);
            found |= branch != all[c].branch;
            map_put_number(&taken, (uint64_t)all[c].predicate, branch);
        }
    map_release(&taken);
    return found;
}

static void add_kinds(struct access_rule *rule, struct access_family *family)
{
    int end = family->first_read + family->n_reads;
    family->first_kind = (int)rule->kinds.n;
    for (int from = family->first_read, to; from < end; from = to) {
        int of = level_condition(&rule->level, access_read_at(rule, from)->node);
        for (to = family->has_branches ? from + 1 : end; to < end; to++)
            if (level_condition(&rule->level, access_read_at(rule, to)->node) != of)
                break;
        struct access_kind kind = {.first_read = from, .n_reads = to - from};
        kind.bucket = arena_array(&rule->memory, (size_t)family->n_writes + 1, sizeof *kind.bucket);
        for (int w = 0; family->has_branches && w < family->n_writes; w++)
            if (level_excludes(&rule->level, access_read_at(rule, from)->node,
                               access_write_at(rule, family->first_write + w)->node))
                kind.bucket[w] = -1;
        vec_push(&rule->kinds, kind);
    }
    family->n_kinds = (int)rule->kinds.n - family->first_kind;
}

/* Finds and sorts the accesses that need ordering: by variable, where at least one writes and they
 * are not all at one vertex; or `all`. Sets *n_reads to the number of reads. */
static void find_families(struct access_rule *rule, bool all)
{
    const struct access_graph *graph = rule->level.graph;
    const struct access *accesses = graph->accesses.items;
    const int *vertex = rule->level.vertex;
    size_t n = graph->accesses.n;
    int *met = arena_array(&rule->memory, graph->conditions.n, sizeof *met), n_sorted = 0;
    int *sorted = arena_array(&rule->memory, n, sizeof *sorted); /* accesses of the level */
    rule->place = arena_array(&rule->memory, n + 1, sizeof *rule->place);
    for (size_t i = 0; i < graph->places.n; i++)
        if (graph->places.items[i].frame == rule->level.frame)
            rule->place[graph->places.items[i].access] = graph->places.items[i].place;
    rule->reads = arena_array(&rule->memory, n + 1, sizeof *rule->reads);
    rule->writes = arena_array(&rule->memory, n + 1, sizeof *rule->writes);
    for (size_t i = 0; i < n; i++)
        if (vertex[accesses[i].node] >= 0)
            sorted[n_sorted++] = (int)i;
    qsort_r(sorted, (size_t)n_sorted, sizeof *sorted, by_variable, rule);
    for (int from = 0, to; from < n_sorted; from = to) {
        const struct access *first = &accesses[sorted[from]];
        struct access_family family = {.first_read = rule->n_reads,
                                       .first_write = rule->n_writes,
                                       .is_placed = rule->place[sorted[from]] > 0};
        bool several = all;
        for (to = from; to < n_sorted && accesses[sorted[to]].variable == first->variable; to++) {
            const struct access *access = &accesses[sorted[to]];
            if (access->write)
                rule->writes[rule->n_writes++] = sorted[to];
            else
                rule->reads[rule->n_reads++] = sorted[to];
            /* A node that reads the variable that it writes may need a copy. */
            several |= vertex[access->node] != vertex[first->node] ||
                       (!access->write && access_may_copy(rule, access));
        }
        family.n_reads = rule->n_reads - family.first_read;
        family.n_writes = rule->n_writes - family.first_write;
        if (!several || (!all && !family.n_writes)) {
            rule->n_reads = family.first_read;
            rule->n_writes = family.first_write;
            continue;
        }
        family.has_branches = graph->condition && !family.is_placed &&
                              has_branches(rule, sorted + from, to - from, met);
        add_kinds(rule, &family);
        vec_push(&rule->families, family);
    }
}

/* ---- batches of writes ---- */

/* Some writes of one family: first to end, of rule->writes; bit 0 is for write `base`. */
struct write_batch {
    const struct access_family *family;
    int base, first, end;
    const uint64_t *reached;
};

/* Called for each batch; an error code ends the walk. */
typedef int (*batch_visit)(struct access_rule *rule, const struct write_batch *batch,
                           struct error *err);

static int each_batch(struct access_rule *rule, batch_visit visit, struct error *err)
{
    int n = rule->n_writes, code = 0;
    size_t family = 0;
    uint64_t *reached = arena_array(&rule->memory, (size_t)rule->level.n, sizeof *reached);
    for (int base = 0, end; base < n && !code; base = end) {
        int from[ACCESS_BATCH];
        struct write_batch batch = {.base = base, .reached = reached};
        end = n - base < ACCESS_BATCH ? n : base + ACCESS_BATCH;
        for (int w = base; w < end; w++)
            from[w - base] = rule->level.vertex[access_write_at(rule, w)->node];
        while (rule->families.items[family].first_write + rule->families.items[family].n_writes <=
               base)
            family++;
        /* Find the families with writes in the batch, and the last place of their reads. */
        size_t next = family;
        int place = -1;
        for (; next < rule->families.n && rule->families.items[next].first_write < end; next++) {
            const struct access_family *f = &rule->families.items[next];
            for (int r = f->first_read; r < f->first_read + f->n_reads; r++) {
                int v = rule->level.vertex[access_read_at(rule, r)->node];
                place = rule->level.place[v] > place ? rule->level.place[v] : place;
            }
        }
        if (!level_reach(&rule->level, from, end - base, place, reached))
            continue;
        for (size_t k = family; k < next && !code; k++) {
            const struct access_family *f = &rule->families.items[k];
            int f_end = f->first_write + f->n_writes;
            batch.family = f;
            batch.first = f->first_write > base ? f->first_write : base;
            batch.end = f_end < end ? f_end : end;
            code = visit(rule, &batch, err);
        }
    }
    return code;
}

/* Returns the writes of the batch that are not excluded for the reads of the kind. */
static uint64_t known_writes(const struct access_kind *kind, const struct write_batch *batch)
{
    uint64_t known = 0;
    for (int w = batch->first; w < batch->end; w++)
        if (kind->bucket[w - batch->family->first_write] >= 0)
            known |= (uint64_t)1 << (w - batch->base);
    return known;
}

static uint64_t writes_before(const struct access_rule *rule, const struct write_batch *batch,
                              int read)
{
    return batch->reached[rule->level.vertex[access_read_at(rule, read)->node]];
}

/* ---- counts ---- */

static int count_batch(struct access_rule *rule, const struct write_batch *batch, struct error *err)
{
    (void)err;
    for (int k = 0; k < batch->family->n_kinds; k++) {
        const struct access_kind *kind = &rule->kinds.items[batch->family->first_kind + k];
        uint64_t known = known_writes(kind, batch);
        for (int r = kind->first_read; r < kind->first_read + kind->n_reads; r++)
            rule->count[r] += __builtin_popcountll(writes_before(rule, batch, r) & known);
    }
    return 0;
}

static void count_writes(struct access_rule *rule)
{
    struct error none = ERROR_INIT;
    rule->count = arena_array(&rule->memory, (size_t)rule->n_reads + 1, sizeof *rule->count);
    rule->group = arena_array(&rule->memory, (size_t)rule->n_reads + 1, sizeof *rule->group);
    each_batch(rule, count_batch, &none);
}

/* ---- groups ---- */

struct counted_read {
    int read, count, access; /* read: index of the access in `reads` */
};

static int by_count(const void *a, const void *b)
{
    const struct counted_read *x = a, *y = b;
    return x->count != y->count ? x->count - y->count : x->access - y->access;
}

/* Returns the name of a write that `read` follows and `not_read` does not. */
static const char *find_other(const struct access_rule *rule, const struct access_family *family,
                              int read, int not_read)
{
    uint64_t *reached = mem_array((size_t)rule->level.n + 1, sizeof *reached);
    const char *name = "";
    int of = rule->level.vertex[access_read_at(rule, read)->node];
    int not_of = rule->level.vertex[access_read_at(rule, not_read)->node];
    int end = family->first_write + family->n_writes;
    for (int w = family->first_write; w < end && !*name; w++) {
        int node = access_write_at(rule, w)->node, from = rule->level.vertex[node];
        if (level_excludes(&rule->level, node, access_read_at(rule, read)->node) ||
            !level_reach(&rule->level, &from, 1, rule->level.n, reached))
            continue;
        if (reached[of] && !reached[not_of])
            name = rule->level.graph->names[node];
    }
    mem_free(reached);
    return name;
}

/* Puts each write into the bucket of the first group that follows it; later groups must as well. */
static int fill_buckets(struct access_rule *rule, const struct write_batch *batch,
                        struct error *err)
{
    const char *const *names = rule->level.graph->names;
    if (batch->family->is_placed)
        return 0;
    for (int k = 0; k < batch->family->n_kinds; k++) {
        const struct access_kind *kind = &rule->kinds.items[batch->family->first_kind + k];
        uint64_t known = known_writes(kind, batch), followed = 0;
        for (int r = kind->first_read; r < kind->first_read + kind->n_reads; r++) {
            uint64_t before = writes_before(rule, batch, r) & known;
            uint64_t lost = followed & ~before;
            if (lost) { /* each of two reads follows a write that the other does not */
                int write = batch->base + __builtin_ctzll(lost);
                const char *name = names[access_write_at(rule, write)->node];
                return error_set(err, ERR_DATA,
                                 "reads and writes of variables contradict each other: '%s' before "
                                 "'%s' reads before '%s' before '%s' reads before '%s'",
                                 name, names[access_read_at(rule, r - 1)->node],
                                 find_other(rule, batch->family, r, r - 1),
                                 names[access_read_at(rule, r)->node], name);
            }
            for (uint64_t fresh = before & ~followed; fresh; fresh &= fresh - 1)
                kind->bucket[batch->base + __builtin_ctzll(fresh) - batch->family->first_write] =
                    rule->group[r] - kind->first_group;
            followed = before;
        }
    }
    return 0;
}

static int group_reads(struct access_rule *rule, struct error *err)
{
    vec_each(family, &rule->families) {
        for (int k = 0; k < family->n_kinds; k++) {
            struct access_kind *kind = &rule->kinds.items[family->first_kind + k];
            size_t n = (size_t)kind->n_reads;
            int *reads = rule->reads + kind->first_read, *count = rule->count + kind->first_read;
            struct counted_read *sorted = arena_array(&rule->memory, n, sizeof *sorted);
            for (size_t j = 0; j < n; j++) {
                int place = rule->place[reads[j]];
                sorted[j] = (struct counted_read){(int)j, place ? place - 1 : count[j], reads[j]};
            }
            qsort(sorted, n, sizeof *sorted, by_count);
            for (size_t j = 0; j < n; j++) {
                reads[j] = sorted[j].access;
                count[j] = sorted[j].count;
            }
            kind->first_group = (int)rule->groups.n;
            for (int r = kind->first_read; r < kind->first_read + kind->n_reads; r++) {
                if (r == kind->first_read || rule->count[r] != rule->count[r - 1])
                    vec_push(&rule->groups,
                             ((struct access_group){.changes = -1, .prev = -1, .next = -1}));
                rule->group[r] = (int)rule->groups.n - 1;
            }
            kind->n_groups = (int)rule->groups.n - kind->first_group;
            for (int w = 0; w < family->n_writes; w++)
                if (kind->bucket[w] >= 0)
                    kind->bucket[w] = kind->n_groups;
            if (family->is_placed) {
                /* Where the places of writes are known, writes and reads are sorted by place. */
                int r = kind->first_read, end = r + kind->n_reads;
                for (int w = 0; w < family->n_writes; w++) {
                    while (r < end &&
                           rule->count[r] < rule->place[rule->writes[family->first_write + w]] - 1)
                        r++;
                    if (r < end)
                        kind->bucket[w] = rule->group[r] - kind->first_group;
                }
            }
        }
    }
    return each_batch(rule, fill_buckets, err);
}

/* ---- the rule ---- */

static void add_edge(struct access_rule *rule, int from, int to)
{
    vec_push(&rule->edges, ((struct arc){from, to}));
}

static int vertex_of(const struct access_rule *rule, const struct access *access)
{
    return rule->level.vertex[access->node];
}

static struct access_group *group_at(struct access_rule *rule, const struct access_kind *kind,
                                     int group)
{
    return &rule->groups.items[kind->first_group + group];
}

static void mark_writes(const struct access_rule *rule, const struct access_family *family,
                        char *writes, char mark)
{
    for (int w = family->first_write; w < family->first_write + family->n_writes; w++)
        writes[vertex_of(rule, access_write_at(rule, w))] = mark;
}

bool access_rule_init(struct access_rule *rule, const struct access_graph *graph, int frame,
                      int *code, struct error *err)
{
    *rule = (struct access_rule){.memory = ARENA_INIT};
    level_init(&rule->level, graph, frame, &rule->memory);
    rule->n = rule->level.n;
    find_families(rule, false);
    if (!rule->families.n)
        return false;
    count_writes(rule);
    *code = group_reads(rule, err);
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
    vec_release(&rule->families);
    vec_release(&rule->kinds);
    vec_release(&rule->groups);
    vec_release(&rule->edges);
    arena_release(&rule->memory);
}

int *access_count_writes(const struct access_graph *graph)
{
    struct access_rule rule = {.memory = ARENA_INIT};
    int *counts = mem_array(graph->accesses.n + 1, sizeof *counts);
    level_init(&rule.level, graph, 0, &rule.memory);
    find_families(&rule, true);
    count_writes(&rule);
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
    for (int r = 0; r < rule.n_reads; r++)
        counts[rule.reads[r]] = rule.count[r];
    access_rule_release(&rule);
    return counts;
}
