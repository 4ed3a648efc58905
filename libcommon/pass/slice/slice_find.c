/* SPDX-License-Identifier: Apache-2.0
 *
 * Which variables are partitioned, along which axis, and into how many slices.
 */
#include <stdlib.h>
#include <string.h>

#include "graph/access_nodes.h"
#include "graph/update_rows.h"
#include "pass/part/part.h"
#include "pass/slice/slice_private.h"

/* ---- writers of tables, and aggregators of their gradients ---- */

/* Returns whether a node that takes a variable itself can take a slice instead. */
static bool can_write(const struct node *node)
{
    enum op_rows rows = node_rows(node);
    bool is_of_all = update_first_row(node) < 0;
    return (rows == ROWS_UPDATE && is_of_all) || rows == ROWS_SCATTER || rows == ROWS_ASK;
}

static int find_writer(struct slicer *s, const struct node *node)
{
    for (int i = 0; i < node->n_inputs; i++) {
        int from = node->inputs[i].node;
        if (!node_takes_ref(node, i) ||
            (s->role[from] != SLICE_VARIABLE && s->role[from] != SLICE_WRITER))
            continue;
        if (!can_write(node))
            return node_refuse(node, s->r.err,
                               "needs '%s' whole, which is to be cut into %d slices",
                               graph_node(s->r.from, from)->name, s->cut[from]->n[0]);
        s->role[node->id] = SLICE_WRITER;
        s->cut[node->id] = s->cut[from];
        return 0;
    }
    return 0;
}

static const struct node *table_of(const struct slicer *s, const struct node *node)
{
    const struct node *variable = graph_find(s->r.from, node_string(node, "aggregator"));
    bool is_cut = variable && node_is(variable, "Variable");
    return is_cut && s->role[variable->id] == SLICE_VARIABLE ? variable : NULL;
}

/* Returns whether the output is one of a gradient's two factors, which have rows of batches, not of
 * the table. They are also "rows" and "mean_rows", but the first is floating. */
static bool is_factor(const struct node *take, int slot)
{
    const char *const *reductions = node_attr(take, "reductions")->strings;
    int left = strcmp(reductions[slot], "mean_rows") ? slot : slot - 1;
    return left >= 0 && !strcmp(reductions[left], "rows") &&
           dtype_is_floating(take->outputs[left].type);
}

enum form_kind slice_taken(const struct slicer *s, const struct node *take, int slot)
{
    if (is_factor(take, slot))
        return FORM_WHOLE;
    const char *reduction = node_attr(take, "reductions")->strings[slot];
    const struct shape *shape = &take->outputs[slot].shape;
    const struct node *table = table_of(s, take);
    if (!strcmp(reduction, "rows"))
        return slice_partner(take, slot) < 0 ? FORM_WHOLE : FORM_INDEX;
    if (!strcmp(reduction, "mean_rows"))
        return slice_partner(take, slot) < 0 ? FORM_WHOLE : FORM_PART;
    return shape_equal(shape, &table->outputs[0].shape) ? FORM_ROWS : FORM_WHOLE;
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

const struct partition *slice_table(const struct slicer *s, struct edge edge)
{
    const struct node *node = s->origin[edge.node];
    return s->role[node->id] == SLICE_VARIABLE ? s->cut[node->id] : NULL;
}

static int find_roles(struct slicer *s)
{
    graph_each_ordered(node, s->r.from, s->r.order) {
        if (find_writer(s, node))
            return s->r.err->code;
    }
    graph_each(take, s->r.from) {
        const struct node *table = node_round(take) == ROUND_TAKE ? table_of(s, take) : NULL;
        if (!table)
            continue;
        bool found = false;
        for (int j = 0; j < take->n_outputs; j++)
            found |= slice_taken(s, take, j) != FORM_WHOLE;
        if (!found)
            continue;
        s->role[take->id] = SLICE_TAKE;
        s->cut[take->id] = s->cut[table->id];
        graph_each(push, s->r.from) {
            if (node_round(push) == ROUND_PUSH && push->n_inputs == take->n_outputs &&
                !strcmp(node_string(push, "aggregator"), node_string(take, "aggregator")) &&
                !strcmp(node_string(push, "container"), node_string(take, "container"))) {
                s->role[push->id] = SLICE_PUSH;
                s->cut[push->id] = s->cut[table->id];
                s->take[push->id] = take->id;
            }
        }
    }
    return 0;
}

/* ---- tables ---- */

#define SLICES_MAX 1024

/* A variable and its slots; indexed by the smallest id among them. */
struct sliced_table {
    int parent;                  /* union-find */
    int64_t bytes;               /* of all of them */
    int64_t largest;             /* of the largest one that can be split */
    struct shape shape;          /* its shape */
    int64_t wanted;              /* number of slices asked for */
    int axis;                    /* asked for; -1: none */
    bool by_rows;                /* rows of one are looked up, or changed */
    bool elsewhere;              /* one asks for another job than the shards' */
    bool stays;                  /* one asks for a task, or an op needs it whole */
    bool balances;               /* split, if only for balance */
    const struct partition *cut; /* NULL: stays whole */
};

static int root_of(struct slicer *s, int node)
{
    struct sliced_table *tables = s->tables;
    while (tables[node].parent != node)
        node = tables[node].parent = tables[tables[node].parent].parent;
    return node;
}

static struct sliced_table *table_at(struct slicer *s, int node)
{
    return &s->tables[root_of(s, node)];
}

static void join(struct slicer *s, int a, int b)
{
    a = root_of(s, a);
    b = root_of(s, b);
    s->tables[a > b ? a : b].parent = a > b ? b : a;
}

/* ---- balance over shards ---- */

#define MOST_OVER_MEAN 1.1 /* for the fullest shard */

static int by_bytes(const void *a, const void *b)
{
    const struct sliced_table *x = *(struct sliced_table *const *)a;
    const struct sliced_table *y = *(struct sliced_table *const *)b;
    return x->bytes != y->bytes ? (y->bytes > x->bytes) - (y->bytes < x->bytes) : (x > y) - (x < y);
}

/* Spreads tables as the placer does: the largest first, each to the shard with the fewest bytes.
 * Returns whether the fullest has little more than the mean. */
static bool is_even(struct sliced_table *const *tables, size_t n, int shards, double *load)
{
    double total = 0, most = 0;
    memset(load, 0, (size_t)shards * sizeof *load);
    for (size_t i = 0; i < n; i++) {
        double bytes = (double)tables[i]->bytes;
        int least = 0;
        for (int k = 0; k < shards; k++) {
            load[k] += tables[i]->balances ? bytes / shards : 0;
            least = load[k] < load[least] ? k : least;
        }
        load[least] += tables[i]->balances ? 0 : bytes;
        total += bytes;
    }
    for (int k = 0; k < shards; k++)
        most = load[k] > most ? load[k] : most;
    return total <= 0 || most * shards / total <= MOST_OVER_MEAN;
}

/* Sorts the tables, the largest first, and splits them in this order until no shard would have more
 * than a tenth above the mean, or no other may be split. */
static void balance(struct sliced_table **tables, size_t n, int shards, double *load)
{
    if (n)
        qsort(tables, n, sizeof *tables, by_bytes);
    for (size_t i = 0; !is_even(tables, n, shards, load); tables[i]->balances = true) {
        while (i < n && (tables[i]->balances || tables[i]->stays))
            i++;
        if (i == n)
            break;
    }
}

/* ---- the number of slices ---- */

static bool can_be_cut(const struct node *node)
{
    return cut_is_possible(node) && !node_attr(node, SLICE_OF) && node->outputs[0].shape.rank > 0;
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

/* Returns the axis asked for; -1: none; SHAPE_RANK_MAX: the number is no axis. */
static int axis_asked(const struct node *node)
{
    const struct attr_value *axis = node_attr(node, SLICE_AXIS);
    if (!axis)
        return -1;
    return axis->kind == ATTR_INT && axis->i >= 0 && axis->i < SHAPE_RANK_MAX ? (int)axis->i
                                                                              : SHAPE_RANK_MAX;
}

/* The axis is that of rows, or the longest if there are too few rows and nothing is row-wise. */
static int axis_for(const struct sliced_table *table, int64_t n)
{
    int axis = 0;
    if (table->axis >= 0)
        return table->axis;
    if (table->by_rows || table->shape.dims[0] >= n)
        return 0;
    for (int i = 1; i < table->shape.rank; i++)
        axis = table->shape.dims[i] > table->shape.dims[axis] ? i : axis;
    return axis;
}

static void find_limits(struct slicer *s)
{
    struct slice_limits *limits = &s->limits;
    bool all = true;
    for (size_t i = 0; i < s->placement->devices.n; i++) {
        const struct place_device *device = &s->placement->devices.items[i];
        if (strcmp(device->name.job, SHARD_JOB) != 0 || device->host != (int)i)
            continue;
        int64_t bytes = device->memory_bytes;
        all &= bytes != 0;
        limits->least = limits->n && limits->least < bytes ? limits->least : bytes;
        limits->most = limits->most > bytes ? limits->most : bytes;
        limits->n++;
    }
    if (!all)
        limits->most = 0;
}

/* Returns how many slices there must be. */
static int64_t needed(const struct slicer *s, const struct sliced_table *table)
{
    const struct slice_limits *limits = &s->limits;
    int64_t n = s->placement->devices.n > 1 ? table->wanted : 0;
    if (n < 2 && limits->most && limits->n > 1 && !table->elsewhere &&
        table->bytes > limits->most) {
        n = (table->bytes + limits->least - 1) / limits->least;
        n = n > limits->n ? n : limits->n;
    }
    return n;
}

static void decide(struct slicer *s, struct sliced_table *table)
{
    int64_t n = needed(s, table);
    if (n < 2 && table->balances)
        n = s->limits.n;
    int axis = axis_for(table, n);
    int64_t rows = table->largest ? table->shape.dims[axis] : 0;
    n = n < rows ? n : rows;
    n = n < SLICES_MAX ? n : SLICES_MAX;
    const struct partition cut = {true, false, {axis, -1}, {(int)n, 1}, {rows, 1}};
    if (n < 2)
        return;
    table->cut = arena_copy(&s->r.arena, &cut, sizeof cut);
    s->found = true;
}

/* Finds direct and indirect readers that need the whole variable and cannot take a slice. */
static void find_wholes(struct slicer *s)
{
    struct sliced_table **of; /* by node: the table that it has, or NULL */
    of = arena_array(&s->r.arena, s->r.from->nodes.n + 1, sizeof *of);
    graph_each_ordered(node, s->r.from, s->r.order) {
        if (node_is(node, "Variable"))
            of[node->id] = table_at(s, node->id);
        for (int k = 0; k < node->n_inputs; k++) {
            struct sliced_table *table = node_takes_ref(node, k) ? of[node->inputs[k].node] : NULL;
            if (!table)
                continue;
            of[node->id] = table;
            table->stays |= !can_write(node);
            table->by_rows |= node_rows(node) == ROWS_SCATTER;
        }
        if (node_rows(node) == ROWS_LOOKUP)
            table_at(s, s->origin[node->inputs[0].node]->id)->by_rows = true;
    }
}

static int find_tables(struct slicer *s)
{
    int n = (int)s->r.from->nodes.n;
    for (int i = 0; i < n; i++)
        s->tables[i] = (struct sliced_table){.parent = i, .axis = -1};
    graph_each(node, s->r.from) {
        int first = -1;
        for (int j = 0; j < node->n_inputs; j++) {
            if (!node_takes_ref(node, j) || !part_is_variable(s->r.from, node->inputs[j]))
                continue;
            if (first >= 0)
                join(s, first, node->inputs[j].node);
            first = node->inputs[j].node;
        }
        const struct node *leader =
            node_is(node, "Variable") ? group_first_leader(s->r.from, node) : NULL;
        if (leader && node_is(leader, "Variable"))
            join(s, leader->id, node->id);
    }
    graph_each(node, s->r.from) {
        if (!node_is(node, "Variable") || !shape_is_known(&node->outputs[0].shape))
            continue;
        struct sliced_table *table = table_at(s, node->id);
        const struct attr_value *wanted = node_attr(node, SLICE_WANTED);
        int64_t bytes = shape_bytes(&node->outputs[0].shape, node->outputs[0].type);
        table->bytes += bytes;
        bool any;
        table->elsewhere |= !may_be_on_shards(node, &any);
        table->stays |= !any;
        if (can_be_cut(node) && bytes > table->largest) {
            table->largest = bytes;
            table->shape = node->outputs[0].shape;
        }
        if (wanted && wanted->kind == ATTR_INT && wanted->i > table->wanted)
            table->wanted = wanted->i;
        int axis = axis_asked(node); /* slots ask for none */
        if (axis >= 0 && axis < node->outputs[0].shape.rank)
            table->axis = axis;
    }
    find_wholes(s);
    int shards = s->limits.n;
    VEC(struct sliced_table *) weighed = VEC_INIT;
    for (int i = 0; i < n && s->balance_above > 0 && shards > 1; i++) {
        struct sliced_table *table = &s->tables[i];
        if (s->tables[i].parent != i || !table->bytes || table->elsewhere)
            continue;
        table->stays |= !table->largest || shape_count(&table->shape) <= s->balance_above ||
                        table->shape.dims[axis_for(table, shards)] < shards;
        table->balances = needed(s, table) > 1;
        vec_push_in(&s->r.arena, &weighed, table);
    }
    balance(weighed.items, weighed.n, shards,
            arena_array(&s->r.arena, (size_t)shards + 1, sizeof(double)));
    for (int i = 0; i < n; i++)
        if (s->tables[i].parent == i)
            decide(s, &s->tables[i]);
    graph_each(node, s->r.from) {
        const struct sliced_table *table = table_at(s, node->id);
        if (node_is(node, "Variable")) {
            int axis = axis_asked(node), rank = node->outputs[0].shape.rank;
            if (axis >= rank)
                return node_refuse(node, s->r.err, SLICE_AXIS " is to be an axis of %s",
                                   shape_text(&node->outputs[0].shape));
            if (axis > 0 && table->by_rows)
                return node_refuse(node, s->r.err,
                                   "cannot be cut along axis %d, as rows of it are looked up or "
                                   "changed",
                                   axis);
        }
        if (!can_be_cut(node) || !table->cut || !slice_fits(table->cut, &node->outputs[0].shape))
            continue;
        s->role[node->id] = SLICE_VARIABLE;
        s->cut[node->id] = table->cut;
    }
    return 0;
}

/* ---- nodes made on demand: when another needs their value, whole or in parts ---- */

#define DEMAND_DEPTH_MAX 64 /* of nodes made on demand for one another */

static bool may_wait(const struct slicer *s, const struct node *node)
{
    if (s->role[node->id] != SLICE_NONE || s->r.flags[node->id] & REWRITE_KEPT || !node->n_outputs)
        return false;
    if (slice_table(s, (struct edge){node->id, 0}))
        return true;
    return node_has(node, OP_RANDOM) || !node_has(node, OP_STATEFUL | OP_CONTROL_FLOW | OP_SOURCE);
}

/* Visits nodes from the end: those needed only by tables, or by nodes made on demand themselves. */
static void find_on_demand(struct slicer *s)
{
    size_t n = s->r.from->nodes.n;
    int *level = arena_array(&s->r.arena, n + 1, sizeof *level);
    char *used = arena_alloc(&s->r.arena, n + 1);
    for (size_t i = 0; i < s->r.from->aliases.n; i++)
        level[s->r.from->aliases.items[i].edge.node] = DEMAND_DEPTH_MAX;
    for (size_t i = n; i-- > 0;) {
        const struct node *node = graph_node(s->r.from, s->r.order[i]);
        int id = node->id;
        bool made = s->role[id] != SLICE_NONE;
        bool table = !made && node->n_outputs && slice_table(s, (struct edge){id, 0});
        s->on_demand[id] =
            may_wait(s, node) && (table || (used[id] && level[id] < DEMAND_DEPTH_MAX));
        int below = made || table ? 1 : s->on_demand[id] ? level[id] + 1 : DEMAND_DEPTH_MAX;
        for (int k = 0; k < node->n_inputs + node->n_controls; k++) {
            bool data = k < node->n_inputs;
            int from = node_dependency(node, k).node;
            used[from] = 1;
            if (!data)
                below = DEMAND_DEPTH_MAX;
            level[from] = level[from] > below ? level[from] : below;
        }
    }
}

/* ---- the whole search ---- */

int slice_find(struct slicer *s)
{
    size_t n = s->r.from->nodes.n;
    graph_each_ordered(node, s->r.from, s->r.order) {
        bool hands_on =
            node_is(node, "Identity") || (node_is(node, "Enter") && node_bool(node, "is_constant"));
        s->origin[node->id] = hands_on ? s->origin[node->inputs[0].node] : node;
    }
    s->tables = arena_array(&s->r.arena, n + 1, sizeof *s->tables);
    find_limits(s);
    if (find_tables(s) || !s->found)
        return s->r.err->code;
    if (!find_roles(s))
        find_on_demand(s);
    return s->r.err->code;
}
