/* SPDX-License-Identifier: Apache-2.0
 *
 * Which variables are cut, into how many slices, and what has to do with them.
 */
#include <string.h>

#include "base/memory.h"
#include "graph/group.h"
#include "pass/part/part.h"
#include "pass/slice/slice_private.h"

#define SLICES_MAX 1024

/* A variable and its slots; under the one with the smallest id. */
struct sliced_table {
    int64_t bytes;    /* of all */
    int64_t largest;  /* of one */
    int64_t rows;     /* of that one */
    int64_t wanted;   /* slices */
    int64_t elements; /* of that one */
    bool elsewhere;   /* one asked for another job than that of the shards */
    bool stays;       /* one asked for a task, or an op needs it whole */
    bool balances;    /* to be cut for balance */
    int slicing;      /* -1: stays whole */
};

struct slicing_finder {
    struct slicer *s;
    int *parent; /* union-find, by node */
    struct sliced_table *tables;
};

static int root_of(struct slicing_finder *f, int node)
{
    while (f->parent[node] != node)
        node = f->parent[node] = f->parent[f->parent[node]];
    return node;
}

static void join(struct slicing_finder *f, int a, int b)
{
    a = root_of(f, a);
    b = root_of(f, b);
    f->parent[a > b ? a : b] = a > b ? b : a;
}

static const struct node *variable_named(const struct slicer *s, const char *name)
{
    const struct node *node = graph_find(s->from, name);
    return node && node_is(node, "Variable") ? node : NULL;
}

/* The i-th group that a node shares a device with, as a variable; NULL: it is none. */
static const struct node *leader_of(const struct slicer *s, const struct node *node, int i)
{
    const struct attr_value *groups = node_attr(node, "_class");
    const struct node *leader =
        groups && i < groups->n ? group_leader(s->from, groups->strings[i]) : NULL;
    return leader && node_is(leader, "Variable") ? leader : NULL;
}

static void join_node(struct slicing_finder *f, const struct node *node)
{
    int first = -1;
    for (int i = 0; i < node->n_inputs; i++) {
        if (!part_takes_ref(node, i) || !part_is_variable(f->s->from, node->inputs[i]))
            continue;
        if (first >= 0)
            join(f, first, node->inputs[i].node);
        first = node->inputs[i].node;
    }
    const struct node *leader = node_is(node, "Variable") ? leader_of(f->s, node, 0) : NULL;
    if (leader)
        join(f, leader->id, node->id);
}

/* ---- how many ---- */

static bool can_be_cut(const struct node *node)
{
    const struct attr_value *local = node_attr(node, "_local");
    return node_is(node, "Variable") && !(local && local->kind == ATTR_BOOL && local->b) &&
           !node_attr(node, SLICE_OF) && node->outputs[0].shape.rank > 0 &&
           shape_is_known(&node->outputs[0].shape);
}

static bool may_be_on_shards(const struct node *node, bool *any)
{
    struct device_name asked;
    struct error ignored = ERROR_INIT;
    *any = !*node->device;
    if (*any)
        return true;
    if (device_name_parse(&asked, node->device, &ignored))
        return false;
    *any = asked.task < 0;
    return !*asked.job || !strcmp(asked.job, SHARD_JOB);
}

static void add_to_table(struct slicing_finder *f, const struct node *node)
{
    if (!node_is(node, "Variable") || !shape_is_known(&node->outputs[0].shape))
        return;
    struct sliced_table *table = &f->tables[root_of(f, node->id)];
    const struct attr_value *wanted = node_attr(node, SLICE_WANTED);
    int64_t bytes = shape_bytes(&node->outputs[0].shape, node->outputs[0].type);
    table->bytes += bytes;
    bool any;
    table->elsewhere |= !may_be_on_shards(node, &any);
    table->stays |= !any;
    if (can_be_cut(node) && bytes > table->largest) {
        table->largest = bytes;
        table->rows = node->outputs[0].shape.dims[0];
        table->elements = shape_count(&node->outputs[0].shape);
    }
    if (wanted && wanted->kind == ATTR_INT && wanted->i > table->wanted)
        table->wanted = wanted->i;
}

struct limits {
    int64_t least, most; /* bytes; 0: somebody has no limit */
    int n;               /* shards */
};

static struct limits find_limits(const struct placement *placement)
{
    struct limits limits = {0};
    for (size_t i = 0; i < placement->devices.n; i++) {
        const struct place_device *device = &placement->devices.items[i];
        if (strcmp(device->name.job, SHARD_JOB) != 0 || device->host != (int)i)
            continue;
        int64_t bytes = device->memory_bytes;
        if (!bytes)
            return (struct limits){0};
        limits.least = limits.n && limits.least < bytes ? limits.least : bytes;
        limits.most = limits.most > bytes ? limits.most : bytes;
        limits.n++;
    }
    return limits;
}

static int count_shards(const struct placement *placement)
{
    int n = 0;
    for (size_t i = 0; i < placement->devices.n; i++)
        n += placement->devices.items[i].host == (int)i &&
             !strcmp(placement->devices.items[i].name.job, SHARD_JOB);
    return n;
}

/* How many slices there must be. */
static int64_t needed(const struct slicing_finder *f, const struct sliced_table *table,
                      const struct limits *limits)
{
    int64_t n = f->s->placement->devices.n > 1 ? table->wanted : 0;
    if (n < 2 && limits->n > 1 && !table->elsewhere && table->bytes > limits->most) {
        n = (table->bytes + limits->least - 1) / limits->least;
        n = n > limits->n ? n : limits->n;
    }
    return n;
}

static void find_balance(struct slicing_finder *f, const struct limits *limits)
{
    int n = (int)f->s->from->nodes.n, shards = count_shards(f->s->placement);
    VEC(struct slice_weight) weights = VEC_INIT;
    for (int i = 0; i < n && f->s->balance_above > 0 && shards > 1; i++) {
        const struct sliced_table *table = &f->tables[i];
        if (f->parent[i] != i || !table->bytes || table->elsewhere)
            continue;
        bool may = !table->stays && table->elements > f->s->balance_above && table->rows >= shards;
        vec_push(&weights,
                 ((struct slice_weight){table->bytes, i, may, needed(f, table, limits) > 1}));
    }
    slice_balance(weights.items, weights.n, shards);
    for (size_t i = 0; i < weights.n; i++)
        f->tables[weights.items[i].table].balances = weights.items[i].cut;
    vec_release(&weights);
}

static void decide(struct slicing_finder *f, struct sliced_table *table,
                   const struct limits *limits)
{
    int64_t n = needed(f, table, limits);
    if (n < 2 && table->balances)
        n = count_shards(f->s->placement);
    n = n < table->rows ? n : table->rows;
    n = n < SLICES_MAX ? n : SLICES_MAX;
    table->slicing = -1;
    if (n < 2)
        return;
    table->slicing = (int)f->s->slicings.n;
    vec_push(&f->s->slicings, ((struct slicing){table->rows, (int)n}));
}

static bool can_write_slices(const struct node *node)
{
    enum op_rows rows = node_rows(node);
    return rows == ROWS_UPDATE || rows == ROWS_SCATTER || rows == ROWS_ASK;
}

/* What has the variable itself, directly or from what does, and could not have a slice. */
static void find_wholes(struct slicing_finder *f)
{
    struct slicer *s = f->s;
    size_t n = s->from->nodes.n;
    int *of = arena_array(&s->arena, n + 1, sizeof *of); /* by node: 1 + the table it is of */
    for (size_t i = 0; i < n; i++) {
        const struct node *node = graph_node(s->from, s->r.order[i]);
        if (node_is(node, "Variable"))
            of[node->id] = 1 + root_of(f, node->id);
        for (int k = 0; k < node->n_inputs; k++) {
            int table = part_takes_ref(node, k) ? of[node->inputs[k].node] : 0;
            if (!table)
                continue;
            of[node->id] = table;
            f->tables[table - 1].stays |= !can_write_slices(node);
        }
    }
}

static void find_tables(struct slicing_finder *f)
{
    struct slicer *s = f->s;
    int n = (int)s->from->nodes.n;
    struct limits limits = find_limits(s->placement);
    for (int i = 0; i < n; i++)
        f->parent[i] = i;
    for (int i = 0; i < n; i++)
        join_node(f, graph_node(s->from, i));
    for (int i = 0; i < n; i++)
        add_to_table(f, graph_node(s->from, i));
    find_wholes(f);
    find_balance(f, &limits);
    for (int i = 0; i < n; i++)
        if (f->parent[i] == i)
            decide(f, &f->tables[i], &limits);
    for (int i = 0; i < n; i++) {
        const struct node *node = graph_node(s->from, i);
        const struct sliced_table *table = &f->tables[root_of(f, i)];
        if (!can_be_cut(node) || table->slicing < 0 ||
            node->outputs[0].shape.dims[0] != table->rows)
            continue;
        s->role[i] = SLICE_VARIABLE;
        s->slicing[i] = table->slicing;
    }
}

/* ---- what has to do with tables ---- */

static int find_writer(struct slicer *s, const struct node *node)
{
    for (int i = 0; i < node->n_inputs; i++) {
        int from = node->inputs[i].node;
        if (!part_takes_ref(node, i) ||
            (s->role[from] != SLICE_VARIABLE && s->role[from] != SLICE_WRITER))
            continue;
        if (!can_write_slices(node))
            return error_set(s->err, ERR_DATA,
                             "%s: %s: needs '%s' whole, which is to be cut into %d slices",
                             node_text(node), node->op->def->name, graph_node(s->from, from)->name,
                             slicing_at(s, s->slicing[from]).n);
        s->role[node->id] = SLICE_WRITER;
        s->slicing[node->id] = s->slicing[from];
        return 0;
    }
    return 0;
}

static const struct node *table_of(const struct slicer *s, const struct node *node)
{
    const struct node *variable = variable_named(s, node_string(node, "aggregator"));
    return variable && s->role[variable->id] == SLICE_VARIABLE ? variable : NULL;
}

/* One of the two factors of a gradient, which have rows of batches, not of the table: "rows" and
 * "mean_rows" as well, but the first of floats. */
static bool is_factor(const struct node *take, int slot)
{
    const char *const *reductions = node_attr(take, "reductions")->strings;
    int left = strcmp(reductions[slot], "mean_rows") ? slot : slot - 1;
    return left >= 0 && !strcmp(reductions[left], "rows") &&
           dtype_is_floating(take->outputs[left].type);
}

enum taken slice_taken(const struct slicer *s, const struct node *take, int slot)
{
    if (is_factor(take, slot))
        return TAKEN_OTHER;
    const char *reduction = node_attr(take, "reductions")->strings[slot];
    const struct shape *shape = &take->outputs[slot].shape;
    const struct node *table = table_of(s, take);
    if (!strcmp(reduction, "rows"))
        return slice_partner(take, slot) < 0 ? TAKEN_OTHER : TAKEN_INDEX;
    if (!strcmp(reduction, "mean_rows"))
        return slice_partner(take, slot) < 0 ? TAKEN_OTHER : TAKEN_VALUES;
    return shape_equal(shape, &table->outputs[0].shape) ? TAKEN_DENSE : TAKEN_OTHER;
}

/* The i-th indices belong to the i-th values. */
int slice_partner(const struct node *take, int slot)
{
    const struct attr_value *reductions = node_attr(take, "reductions");
    bool values = !strcmp(reductions->strings[slot], "mean_rows");
    int before = 0;
    for (int i = 0; i < slot; i++)
        before += !strcmp(reductions->strings[i], reductions->strings[slot]) && !is_factor(take, i);
    for (int i = 0; i < reductions->n; i++)
        if (!strcmp(reductions->strings[i], values ? "rows" : "mean_rows") && !is_factor(take, i) &&
            before-- == 0)
            return i;
    return -1;
}

static bool takes_parts(const struct slicer *s, const struct node *take)
{
    bool found = false;
    for (int i = 0; i < take->n_outputs; i++)
        found |= slice_taken(s, take, i) != TAKEN_OTHER;
    return found;
}

static bool is_push_of(const struct node *push, const struct node *take)
{
    return node_round(push) == ROUND_PUSH && push->n_inputs == take->n_outputs &&
           !strcmp(node_string(push, "aggregator"), node_string(take, "aggregator")) &&
           !strcmp(node_string(push, "container"), node_string(take, "container"));
}

static void find_aggregators(struct slicer *s)
{
    for (size_t i = 0; i < s->from->nodes.n; i++) {
        const struct node *take = graph_node(s->from, (int)i);
        const struct node *table = node_round(take) == ROUND_TAKE ? table_of(s, take) : NULL;
        if (!table || !takes_parts(s, take))
            continue;
        s->role[i] = SLICE_TAKE;
        s->slicing[i] = s->slicing[table->id];
        for (size_t k = 0; k < s->from->nodes.n; k++)
            if (is_push_of(graph_node(s->from, (int)k), take)) {
                s->role[k] = SLICE_PUSH;
                s->slicing[k] = s->slicing[table->id];
                s->take[k] = (int)i;
            }
    }
}

bool slice_is_table(const struct slicer *s, struct edge edge, int *slicing)
{
    const struct node *node = graph_node(s->from, edge.node);
    while (node_is(node, "Identity") || (node_is(node, "Enter") && node_bool(node, "is_constant")))
        node = graph_node(s->from, node->inputs[0].node);
    if (s->role[node->id] != SLICE_VARIABLE)
        return false;
    *slicing = s->slicing[node->id];
    return true;
}

int slice_find(struct slicer *s)
{
    size_t n = s->from->nodes.n;
    struct slicing_finder f = {.s = s};
    f.parent = arena_array(&s->arena, n + 1, sizeof *f.parent);
    f.tables = arena_array(&s->arena, n + 1, sizeof *f.tables);
    find_tables(&f);
    if (!s->slicings.n)
        return 0;
    for (size_t i = 0; i < n; i++)
        if (find_writer(s, graph_node(s->from, s->r.order[i])))
            return s->err->code;
    find_aggregators(s);
    slice_find_on_demand(s);
    return 0;
}
