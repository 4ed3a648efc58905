/* SPDX-License-Identifier: Apache-2.0
 *
 * How many writes of its variable each read follows; and which, as these sets are nested.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "graph/access_private.h"

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
    const struct access_family *last =
        rule->families.n ? &rule->families.items[rule->families.n - 1] : &(struct access_family){0};
    int n = last->first_write + last->n_writes, code = 0;
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
        if (!access_level_reach(&rule->level, from, end - base, place, reached))
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

void access_count(struct access_rule *rule, int n_reads)
{
    struct error none = ERROR_INIT;
    rule->count = arena_array(&rule->memory, (size_t)n_reads + 1, sizeof *rule->count);
    rule->group = arena_array(&rule->memory, (size_t)n_reads + 1, sizeof *rule->group);
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
        if (access_level_excludes(&rule->level, node, access_read_at(rule, read)->node) ||
            !access_level_reach(&rule->level, &from, 1, rule->level.n, reached))
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

int access_find_groups(struct access_rule *rule, struct error *err)
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
