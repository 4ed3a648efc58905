/* SPDX-License-Identifier: Apache-2.0
 *
 * First it is found which variables are partitioned, along which axis, and into how many slices.
 * Then nodes of the source are visited in topological order. Nodes that use a table are made once
 * for each slice; nodes that only they need are made on demand, whole or in parts. After an error
 * all functions that make nodes return EDGE_NONE (-1, NULL).
 */
#include "pass/slice/slice.h"

#include <stdlib.h>
#include <string.h>

#include "graph/access_nodes.h"
#include "graph/update_rows.h"
#include "pass/cut.h"

enum slice_role {
    SLICE_NONE,
    SLICE_VARIABLE,
    SLICE_WRITER, /* takes the variable itself: changes it, or tests it */
    SLICE_PUSH,   /* AggregatorPush of its gradient */
    SLICE_TAKE,   /* AggregatorTake of its gradient */
};

/* The parts in which a value of the source exists. */
enum form_kind {
    FORM_WHOLE, /* not in parts */
    FORM_ROWS,  /* for each slice its rows */
    FORM_INDEX, /* row numbers: for each slice its own, relative to its first row */
    FORM_PART,  /* for each slice the rows that belong to the row numbers `index` */
    FORM_NUMBER /* for row numbers: the slice of each, as one value */
};

/* Of the shards' memory: bytes; 0: some shard has no limit. */
struct slice_limits {
    int64_t least, most;
    int n; /* shards */
};

struct slicer {
    const struct placement *placement;
    int64_t balance_above;
    struct slice_limits limits;
    struct sliced_table *tables; /* by node */
    struct rewrite r;
    bool found;                   /* something is cut */
    const struct partition **cut; /* by node with a role: a table's and its slots' */
    char *role;                   /* by node: enum slice_role */
    const struct node **origin;
    char *on_demand;     /* by node: only nodes made in slices need it */
    unsigned *updates;   /* by node: 1: depends on a take, or is needed by such a node: on shards */
    int *take;           /* by push: its take */
    const char ***names; /* by table and slice */
    struct form **forms; /* by node */
    const char *prefix;  /* of the names of new nodes: prefix/NAME */
    int depth;           /* of values made on demand for one another */
    struct build b;
};

/* Returns whether a value has the axis that is split, with its size. */
static bool slice_fits(const struct partition *cut, const struct shape *shape)
{
    return shape->rank > cut->axis[0] && shape->dims[cut->axis[0]] == cut->size[0];
}

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

/* Returns the output with the indices of these values, or the values of these indices: the i-th
 * belong to the i-th; -1: none. */
static int slice_partner(const struct node *take, int slot)
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

/* Returns the form of an AggregatorTake's output: FORM_ROWS for a whole gradient, FORM_PART for
 * values whose indices are another output, FORM_INDEX for these. */
static enum form_kind slice_taken(const struct slicer *s, const struct node *take, int slot)
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

/* Returns how an edge is cut that is a partitioned variable, or its unchanged value; else NULL. */
static const struct partition *slice_table(const struct slicer *s, struct edge edge)
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
            if (!node_takes_ref(node, j) || !access_is_variable(s->r.from, node->inputs[j]))
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

/* Finds the origin of each value, through nodes that pass it on; the partitioning of tables; roles;
 * nodes made on demand. */
static int slice_find(struct slicer *s)
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

/* Maximum nesting of values made on demand; deeper ones are made whole. */
#define SLICE_DEPTH_MAX 64

/* A value of the source, in parts. */
struct form {
    enum form_kind kind;
    struct edge edge, index; /* in the source */
    const struct partition *cut;
    struct edge *parts; /* in the result */
    struct form *next;  /* of the same node */
};

/* The first index of slice k along the axis, and its size; indices are called rows. */
static int64_t slice_first(const struct partition *cut, int k)
{
    return cut_area(cut, k).from[0];
}

static struct edge slice_whole(void *context, const struct node *asker, struct edge edge);
static const struct form *form_of(struct slicer *s, enum form_kind kind,
                                  const struct partition *cut, struct edge edge, struct edge index);

/* ---- copies ---- */

/* Nodes grouped with a table are grouped with its slice k, or with the first if they are whole. */
static const char *leader_of_slice(void *context, const struct node *leader, int k)
{
    const struct slicer *s = context;
    if (s->role[leader->id] != SLICE_VARIABLE)
        return leader->name;
    bool has_own = k >= 0 && k < s->cut[leader->id]->n[0];
    return s->names[leader->id][has_own ? k : 0];
}

/* Slices lack the attributes that ask for the table's partitioning. */
static bool slice_keeps(void *context, const struct node *node, int k, struct attr *attr)
{
    (void)context, (void)node;
    return k < 0 || (strcmp(attr->name, SLICE_WANTED) != 0 && strcmp(attr->name, SLICE_AXIS) != 0);
}

/* Adds a copy of a node for slice k or, -1, for the whole. `more` replaces attributes, up to one
 * without a name; NULL: none. */
static struct edge slice_copy(struct slicer *s, const struct node *node, int k,
                              const struct edge *inputs, int n_inputs, const struct attr *more)
{
    const char *name = k < 0 ? NULL : rewrite_part_name(&s->r, node->name, k);
    return rewrite_add_copy(&s->r,
                            &(struct rewrite_copy){node, k, name, NULL, inputs, n_inputs, more});
}

/* ---- new nodes ---- */

/* Names of new nodes are below that of `node`, their device and group are those of `with`. In a
 * loop nodes without inputs wait for `here`, an edge of the result or EDGE_NONE, so that they
 * belong to the same iteration. */
static struct build *slice_builder(struct slicer *s, const struct node *node,
                                   const struct node *with, int k, struct edge here)
{
    const struct node *leader = group_first_leader(s->r.from, with);
    const char *scope = arena_printf(&s->r.arena, "%s/%s", s->prefix, node->name);
    s->b = rewrite_build(&s->r, node, scope, with->device);
    if (leader)
        s->b.colocate = group_attr(&s->r.arena, leader_of_slice(s, leader, k)).value.strings[0];
    if (edge_exists(here) && frames_output(s->r.frames, with) != FRAME_ROOT) {
        s->b.controls = arena_copy(&s->r.arena, &here.node, sizeof here.node);
        s->b.n_controls = 1;
    }
    return &s->b;
}

/* ---- values in parts ----
 *
 * Row-wise computations are done in each part separately, so that a slice's share of an update is
 * never in one place with others; other values are made whole and then split. */

static const struct form *find_known(const struct slicer *s, enum form_kind kind, struct edge edge,
                                     struct edge index)
{
    for (const struct form *form = s->forms[edge.node]; form; form = form->next)
        if (form->kind == kind && edge_equal(form->edge, edge) && edge_equal(form->index, index))
            return form;
    return NULL;
}

/* Returns a form without parts. */
static struct form slice_new_form(struct slicer *s, enum form_kind kind,
                                  const struct partition *cut, struct edge edge)
{
    struct edge *parts = arena_array(&s->r.arena, (size_t)cut->n[0] + 1, sizeof *parts);
    return (struct form){kind, edge, EDGE_NONE, cut, parts, NULL};
}

static const struct form *slice_note(struct slicer *s, const struct form *form)
{
    if (s->r.err->code)
        return NULL;
    struct form *noted = arena_copy(&s->r.arena, form, sizeof *form);
    noted->next = s->forms[form->edge.node];
    s->forms[form->edge.node] = noted;
    return noted;
}

/* ---- row-wise computations ---- */

static bool is_row_by_row(const struct node *node)
{
    if (node_is(node, "Enter"))
        return node_bool(node, "is_constant");
    return node_rows(node) == ROWS_ALIKE;
}

/* Returns whether the node sums over the occurrences of each distinct row. */
static bool is_unique_sum(const struct slicer *s, const struct node *node, struct edge index)
{
    return node_rows(node) == ROWS_SUM &&
           node_rows(graph_node(s->r.from, index.node)) == ROWS_DISTINCT && !index.slot &&
           node->inputs[1].node == index.node && node->inputs[1].slot == 1;
}

/* Returns whether the value is known to have one row for each number. */
static bool has_row_each(const struct slicer *s, struct edge edge, struct edge index)
{
    const struct node *node = graph_node(s->r.from, edge.node);
    if (is_unique_sum(s, node, index) || find_known(s, FORM_PART, edge, index))
        return true;
    if (node_rows(node) == ROWS_LOOKUP)
        return edge_equal(node->inputs[1], index);
    if (!is_row_by_row(node) || node->n_inputs > 2)
        return false;
    for (int i = 0; i < node->n_inputs; i++) {
        int rank = graph_output(s->r.from, node->inputs[i])->shape.rank;
        bool has_rows = rank == node->outputs[0].shape.rank;
        if (rank < 0 || (has_rows && !has_row_each(s, node->inputs[i], index)))
            return false;
    }
    return true;
}

/* Finds the inputs that have the rows of the result, that is, do not broadcast along the axis.
 * Returns false if that is unknown, or an input of lower rank has the rows along another axis. */
static bool find_row_inputs(const struct slicer *s, const struct form *form, bool *rows)
{
    const struct node *node = graph_node(s->r.from, form->edge.node);
    const struct shape *out = &graph_output(s->r.from, form->edge)->shape;
    bool by_number = form->kind == FORM_PART; /* it is not known how many there are */
    int n = 0, axis = form->cut->axis[0];
    for (int i = 0; i < node->n_inputs; i++) {
        const struct shape *in = &graph_output(s->r.from, node->inputs[i])->shape;
        int at = in->rank - out->rank + axis;
        if (in->rank < 0 || out->rank <= axis || !is_row_by_row(node))
            return false;
        rows[i] = at == axis && (by_number || in->dims[at] == out->dims[axis]);
        n += rows[i];
        if (!rows[i] && at >= 0 && in->dims[at] != 1)
            return false;
    }
    return n == 1 ||
           (n > 1 && (by_number ? has_row_each(s, form->edge, form->index) : out->dims[axis] > 1));
}

/* Copies the form's node for each slice, with the slice's part of each input. */
static void slice_copies(struct slicer *s, struct form *form, struct edge *const *inputs)
{
    const struct node *node = graph_node(s->r.from, form->edge.node);
    struct edge *mine = arena_array(&s->r.arena, (size_t)node->n_inputs, sizeof *mine);
    for (int k = 0; k < form->cut->n[0] && !s->r.err->code; k++) {
        for (int i = 0; i < node->n_inputs; i++)
            mine[i] = inputs[i][k];
        form->parts[k] = slice_copy(s, node, k, mine, node->n_inputs, NULL);
    }
}

/* Returns the whole value for each slice. */
static struct edge *slice_same(struct slicer *s, const struct partition *cut,
                               const struct node *asker, struct edge edge)
{
    struct edge *same = slice_new_form(s, FORM_ROWS, cut, edge).parts;
    struct edge whole = slice_whole(s, asker, edge);
    for (int k = 0; k < cut->n[0]; k++)
        same[k] = whole;
    return s->r.err->code ? NULL : same;
}

/* Copies the node for each slice; inputs in `rows` are split like its output. */
static void copy_rows(struct slicer *s, struct form *form, const bool *rows)
{
    const struct node *node = graph_node(s->r.from, form->edge.node);
    struct edge **inputs = arena_array(&s->r.arena, (size_t)node->n_inputs + 1, sizeof *inputs);
    for (int i = 0; i < node->n_inputs && !s->r.err->code; i++) {
        struct edge edge = node->inputs[i];
        const struct form *in =
            rows[i] ? form_of(s, form->kind, form->cut, edge, form->index) : NULL;
        inputs[i] = in ? in->parts : slice_same(s, form->cut, node, edge);
    }
    slice_copies(s, form, inputs);
}

/* ---- rows of slices ---- */

/* Copies a generator with the slice's shape; random numbers begin at the slice's offset. */
static void copy_generator(struct slicer *s, struct form *form)
{
    const struct node *node = graph_node(s->r.from, form->edge.node);
    const struct shape *shape = &node->outputs[0].shape;
    bool counts = op_find_attr(node->op, "offset") >= 0;
    int64_t row = shape_count_of(shape, 1, shape->rank);
    int64_t first = counts ? node_int(node, "offset") : 0;
    struct edge *inputs = arena_array(&s->r.arena, (size_t)node->n_inputs, sizeof *inputs);
    for (int i = 1; i < node->n_inputs; i++)
        inputs[i] = slice_whole(s, node, node->inputs[i]);
    for (int k = 0; k < form->cut->n[0] && !s->r.err->code; k++) {
        struct shape part = cut_shape(form->cut, shape, k);
        int64_t drawn = first + slice_first(form->cut, k) * row;
        struct attr offset[] = {{"offset", attr_int(drawn)}, {.name = NULL}};
        struct build *b = slice_builder(s, node, node, k, EDGE_NONE);
        inputs[0] = build_ints(b, part.dims, part.rank);
        form->parts[k] = slice_copy(s, node, k, inputs, node->n_inputs, counts ? offset : NULL);
    }
}

static void cut_constant(struct slicer *s, struct form *form)
{
    const struct node *node = graph_node(s->r.from, form->edge.node);
    const struct tensor *whole = node_attr(node, "value")->tensor;
    size_t row = tensor_bytes(whole) / (size_t)form->cut->size[0];
    for (int k = 0; k < form->cut->n[0] && !s->r.err->code; k++) {
        struct shape shape = cut_shape(form->cut, &whole->shape, k);
        char *data = (char *)whole->data + (size_t)slice_first(form->cut, k) * row;
        struct tensor part = tensor_borrow(whole->type, &shape, data);
        const struct attr value[] = {{"value", attr_tensor(&part)}, {.name = NULL}};
        form->parts[k] = slice_copy(s, node, k, NULL, 0, value);
    }
}

/* Sums of rows by number: each slice sums its own rows. If the sum is over the occurrences of the
 * distinct numbers that `unique` finds, these are the slice's distinct numbers. */
static void sum_parts(struct slicer *s, struct form *form, const struct node *unique)
{
    const struct node *node = graph_node(s->r.from, form->edge.node);
    struct edge ids = node->inputs[1], of = unique ? unique->inputs[0] : ids;
    const struct form *index =
        form_of(s, FORM_INDEX, form->cut, unique ? form->index : ids, EDGE_NONE);
    const struct form *values =
        index ? form_of(s, FORM_PART, form->cut, node->inputs[0], of) : NULL;
    for (int k = 0; values && k < form->cut->n[0] && !s->r.err->code; k++) {
        struct edge part = values->parts[k], own = index->parts[k];
        struct build *b =
            slice_builder(s, node, unique ? unique : node, k, unique ? EDGE_NONE : part);
        int64_t rows = slice_first(form->cut, k + 1) - slice_first(form->cut, k);
        struct edge inputs[] = {part, unique ? build_slot(own, 1) : own,
                                unique ? build_unary(b, "Size", own)
                                       : build_scalar(b, INT32, (double)rows)};
        form->parts[k] = slice_copy(s, node, k, inputs, 3, NULL);
    }
}

static void make_rows(struct slicer *s, struct form *form)
{
    const struct node *node = graph_node(s->r.from, form->edge.node);
    const struct shape *shape = &graph_output(s->r.from, form->edge)->shape;
    int axis = form->cut->axis[0];
    bool fits =
        slice_fits(form->cut, shape) && (s->depth < SLICE_DEPTH_MAX || slice_table(s, form->edge));
    bool *row_inputs = arena_alloc(&s->r.arena, (size_t)node->n_inputs + 1);
    bool loops = s->r.frames->frame[node->id] != FRAME_ROOT;
    if (fits && find_row_inputs(s, form, row_inputs)) {
        copy_rows(s, form, row_inputs);
    } else if (fits && !loops && shape_is_known(shape) && node_rows(node) == ROWS_MADE &&
               (!axis || op_find_attr(node->op, "offset") < 0)) {
        copy_generator(s, form);
    } else if (fits && !axis && node_is(node, "Const") && node_type(node, "dtype") != STRING) {
        cut_constant(s, form);
    } else if (fits && !axis && node_rows(node) == ROWS_SUM &&
               graph_output(s->r.from, node->inputs[1])->shape.rank == 1) {
        sum_parts(s, form, NULL);
    } else if (shape->rank <= axis) {
        node_refuse(node, s->r.err, "its shape must be known, to be cut into slices");
    } else {
        struct edge whole = slice_whole(s, node, form->edge);
        struct build *b = slice_builder(s, node, node, -1, whole);
        for (int k = 0; k < form->cut->n[0] && !b->err->code; k++)
            form->parts[k] = cut_slice(b, whole, form->cut, cut_area(form->cut, k));
    }
}

/* ---- row numbers, split by the slice that they are in ---- */

/* The slice of a row: the first rows % n slices have one row more. */
static struct edge find_slice(struct build *b, const struct partition *cut, struct edge row)
{
    int64_t size = cut->size[0] / cut->n[0], extra = cut->size[0] % cut->n[0];
    struct edge number;
    if (!extra)
        return build_binary(b, "FloorDiv", row, build_scalar_like(b, row, (double)size));
    number = build_binary(b, "Sub", row, build_scalar_like(b, row, (double)extra));
    number = build_binary(b, "FloorDiv", number, build_scalar_like(b, row, (double)size));
    return build_binary(
        b, "Maximum", number,
        build_binary(b, "FloorDiv", row, build_scalar_like(b, row, (double)(size + 1))));
}

static struct edge slice_number_of(struct slicer *s, const struct partition *cut, struct edge edge)
{
    const struct node *node = graph_node(s->r.from, edge.node);
    const struct form *known = find_known(s, FORM_NUMBER, edge, EDGE_NONE);
    if (known && known->cut == cut)
        return known->parts[0];
    struct form form = slice_new_form(s, FORM_NUMBER, cut, edge);
    struct edge row = slice_whole(s, node, edge);
    struct build *b = slice_builder(s, node, node, -1, row);
    form.parts[0] = build_cast(b, find_slice(b, cut, row), INT32);
    slice_note(s, &form);
    return form.parts[0];
}

static struct edge partition(struct slicer *s, struct form *form, struct edge number)
{
    const struct node *node = graph_node(s->r.from, form->edge.node);
    struct edge inputs[] = {slice_whole(s, node, form->edge), number};
    struct attr n = {"num_partitions", attr_int(form->cut->n[0])};
    struct edge numbers = edge_exists(form->index) ? form->index : form->edge;
    return build_op(slice_builder(s, node, graph_node(s->r.from, numbers.node), -1, EDGE_NONE),
                    "DynamicPartition", inputs, 2, &n, 1);
}

/* Row numbers within slice k of those within the whole ("Sub"), or the other way around. */
static struct edge shifted(struct build *b, const char *op, struct edge rows,
                           const struct partition *cut, int k)
{
    if (!k)
        return rows;
    return build_binary(b, op, rows, build_scalar_like(b, rows, (double)slice_first(cut, k)));
}

static void make_index(struct slicer *s, struct form *form)
{
    const struct node *node = graph_node(s->r.from, form->edge.node);
    if (node_rows(node) == ROWS_DISTINCT && !form->edge.slot) {
        /* The distinct row numbers of each slice are found separately. */
        copy_rows(s, form, (bool[]){true});
        return;
    }
    struct edge parts = partition(s, form, slice_number_of(s, form->cut, form->edge));
    struct build *b = slice_builder(s, node, node, -1, parts);
    for (int k = 0; k < form->cut->n[0] && !b->err->code; k++)
        form->parts[k] = shifted(b, "Sub", (struct edge){parts.node, k}, form->cut, k);
}

/* ---- rows that belong to row numbers ---- */

/* Looks up rows of a table in each slice, and beside it, unless the script asks for another device.
 * Only the rows that are found are sent. */
static void gather_parts(struct slicer *s, const struct node *node, const struct partition *cut,
                         struct edge *parts)
{
    const struct form *index = form_of(s, FORM_INDEX, cut, node->inputs[1], EDGE_NONE);
    const struct form *table =
        index ? form_of(s, FORM_ROWS, cut, node->inputs[0], EDGE_NONE) : NULL;
    const struct node *variable = s->origin[node->inputs[0].node];
    bool is_free =
        (!*node->device || !strcmp(node->device, variable->device)) && !node_attr(node, "_class");
    for (int k = 0; table && k < cut->n[0]; k++) {
        const struct edge inputs[] = {table->parts[k], index->parts[k]};
        const struct attr with[] = {group_attr(&s->r.arena, s->names[variable->id][k]),
                                    {.name = NULL}};
        parts[k] = slice_copy(s, node, k, inputs, 2, is_free ? with : NULL);
    }
}

static void make_part(struct slicer *s, struct form *form)
{
    const struct node *node = graph_node(s->r.from, form->edge.node);
    bool *rows = arena_alloc(&s->r.arena, (size_t)node->n_inputs + 1);
    bool vector =
        graph_output(s->r.from, form->index)->shape.rank == 1 && s->depth < SLICE_DEPTH_MAX;
    if (vector && find_row_inputs(s, form, rows)) {
        copy_rows(s, form, rows);
    } else if (vector && is_unique_sum(s, node, form->index)) {
        sum_parts(s, form, graph_node(s->r.from, form->index.node));
    } else if (vector && node_rows(node) == ROWS_LOOKUP &&
               edge_equal(node->inputs[1], form->index) &&
               slice_table(s, node->inputs[0]) == form->cut) {
        /* Rows of a slot that is partitioned alike, by the same numbers. */
        gather_parts(s, node, form->cut, form->parts);
    } else {
        struct edge parts = partition(s, form, slice_number_of(s, form->cut, form->index));
        for (int k = 0; k < form->cut->n[0]; k++)
            form->parts[k] = (struct edge){parts.node, k};
    }
}

/* Returns a value in a form, known or made now; `index` is for FORM_PART. NULL on failure. */
static const struct form *form_of(struct slicer *s, enum form_kind kind,
                                  const struct partition *cut, struct edge edge, struct edge index)
{
    static void (*const make[])(struct slicer *, struct form *) = {
        [FORM_ROWS] = make_rows,
        [FORM_INDEX] = make_index,
        [FORM_PART] = make_part,
    };
    struct form form = slice_new_form(s, kind, cut, edge);
    form.index = kind == FORM_PART ? index : EDGE_NONE;
    const struct form *known = find_known(s, kind, edge, form.index);
    bool is_deeper = kind == FORM_ROWS || kind == FORM_PART;
    if (s->r.err->code)
        return NULL;
    if (known && known->cut == cut)
        return known;
    s->depth += is_deeper;
    make[kind](s, &form);
    s->depth -= is_deeper;
    return slice_note(s, &form);
}

static struct form slice_new_rows(struct slicer *s, const struct node *node, int slot)
{
    return slice_new_form(s, FORM_ROWS, s->cut[node->id], (struct edge){node->id, slot});
}

/* ---- wholes ---- */

static struct edge slice_is_whole(struct slicer *s, struct edge edge, struct edge whole)
{
    s->r.edges[s->r.first[edge.node] + edge.slot] = whole;
    return whole;
}

static const struct form *slice_first_known(const struct slicer *s, struct edge edge)
{
    for (const struct form *form = s->forms[edge.node]; form; form = form->next)
        if (form->edge.slot == edge.slot && form->kind != FORM_NUMBER)
            return form;
    return NULL;
}

/* Returns the device for a whole value: the reader's. Instead of a shard it is a worker's, if each
 * worker has a part of the graph; but an update, which shards run alone, has no worker. */
static const char *reader_of(const struct slicer *s, const struct node *asker,
                             const struct node *node)
{
    if (s->updates[asker->id] && asker != node)
        return asker->device;
    struct device_name asked;
    struct error ignored = ERROR_INIT;
    bool shard =
        !device_name_parse(&asked, asker->device, &ignored) && !strcmp(asked.job, SHARD_JOB);
    for (size_t i = 0; shard && i < s->r.from->nodes.n; i++) {
        const char *device = graph_node(s->r.from, (int)i)->device;
        if (*device && !device_name_parse(&asked, device, &ignored) &&
            device_task_is_many(asked.task))
            return device;
    }
    return shard ? "" : asker->device;
}

/* Concatenates the parts for a node of the source that needs the whole. As this is large, it is
 * placed with the reader, not beside a slice. */
static struct edge concat_parts(struct slicer *s, const struct node *asker, const struct form *form)
{
    const struct node *node = graph_node(s->r.from, form->edge.node);
    struct build *b = slice_builder(s, node, node, -1, form->parts[0]);
    int n = form->cut->n[0];
    struct edge *parts = arena_copy(&s->r.arena, form->parts, (size_t)n * sizeof *parts);
    b->colocate = NULL;
    b->device = reader_of(s, asker, node);
    for (int k = 0; k < n && form->kind == FORM_INDEX; k++)
        parts[k] = shifted(b, "Add", parts[k], form->cut, k);
    struct edge whole = cut_concat(b, form->cut->axis[0], parts, n);
    if (asker == node && edge_exists(whole)) /* it is fetched by name */
        graph_rename(s->r.to, graph_node(s->r.to, whole.node), node->name, s->r.err);
    return whole;
}

/* Stitches the rows found in each slice in the order of the numbers asked for. */
static struct edge stitch(struct slicer *s, const struct node *node, const struct partition *cut)
{
    struct edge ids = node->inputs[1];
    int n = cut->n[0];
    struct edge *inputs = arena_array(&s->r.arena, (size_t)n * 2 + 1, sizeof *inputs);
    gather_parts(s, node, cut, inputs + n);
    struct edge number = slice_number_of(s, cut, ids), whole = slice_whole(s, node, ids);
    struct build *b = slice_builder(s, node, graph_node(s->r.from, ids.node), -1, whole);
    struct edge range[] = {build_scalar(b, INT32, 0), build_unary(b, "Size", whole),
                           build_scalar(b, INT32, 1)};
    struct edge place = build_op(b, "Range", range, 3, NULL, 0);
    if (build_shape(b, whole)->rank != 1)
        place = build_binary(b, "Reshape", place, build_unary(b, "Shape", whole));
    struct attr parts = {"num_partitions", attr_int(n)};
    struct edge places =
        build_op(b, "DynamicPartition", (struct edge[]){place, number}, 2, &parts, 1);
    for (int k = 0; k < n; k++)
        inputs[k] = (struct edge){places.node, b->err->code ? 0 : k};
    return build_op(b, "DynamicStitch", inputs, 2 * n, NULL, 0);
}

static struct edge gather_whole(struct slicer *s, const struct node *node,
                                const struct partition *cut)
{
    struct edge rows = stitch(s, node, cut), ids = slice_whole(s, node, node->inputs[1]);
    if (s->r.err->code)
        return EDGE_NONE;
    const struct node *numbers = graph_node(s->r.from, node->inputs[1].node);
    struct build *b = slice_builder(s, node, numbers, -1, ids);
    const struct shape *shape = &graph_output(s->r.from, node->inputs[0])->shape;
    bool vector = build_shape(b, ids)->rank == 1;
    struct edge inputs[] = {rows, EDGE_NONE};
    if (!vector) { /* the shape of the numbers, and of a row */
        struct edge parts[] = {build_scalar(b, INT32, 0), EDGE_NONE, EDGE_NONE};
        parts[1] = build_unary(b, "Shape", ids);
        parts[2] = build_ints(b, shape->dims + 1, shape->rank - 1);
        inputs[1] = build_op(b, "Concat", parts, 3, NULL, 0);
    }
    b->colocate = NULL;
    b->n_controls = 0;
    struct edge whole = vector ? build_op(b, "Identity", inputs, 1, NULL, 0)
                               : build_op(b, "Reshape", inputs, 2, NULL, 0);
    if (b->err->code ||
        graph_rename(s->r.to, graph_node(s->r.to, whole.node), node->name, s->r.err))
        return EDGE_NONE;
    rewrite_stand_in(&s->r, node, whole.node);
    return whole;
}

/* A value made whole, or, with CONTROL_SLOT, a node that another waits for. */
static struct edge slice_whole(void *context, const struct node *asker, struct edge edge)
{
    struct slicer *s = context;
    const struct node *node = graph_node(s->r.from, edge.node);
    const struct partition *cut = slice_table(s, edge);
    bool waits = edge.slot == CONTROL_SLOT;
    struct edge whole = waits || s->r.err->code ? EDGE_NONE : rewrite_edge(&s->r, edge);
    if (s->r.err->code || edge_exists(whole))
        return whole;
    const struct form *parts =
        cut ? form_of(s, FORM_ROWS, cut, (struct edge){node->id, 0}, EDGE_NONE) : NULL;
    if (cut && !parts)
        return EDGE_NONE;
    if (waits && parts) {
        rewrite_await_parts(&s->r, node, parts->parts, cut->n[0]);
        return EDGE_NONE;
    }
    if (!waits && (cut || s->role[node->id] != SLICE_NONE))
        parts = slice_first_known(s, edge);
    if (parts)
        return slice_is_whole(s, edge, concat_parts(s, asker, parts));
    if (!waits && node_rows(node) == ROWS_LOOKUP && slice_table(s, node->inputs[0]))
        return gather_whole(s, node, slice_table(s, node->inputs[0]));
    rewrite_copy(&s->r, node);
    return waits || s->r.err->code ? EDGE_NONE : rewrite_edge(&s->r, edge);
}

/* ---- tables and their writers ---- */

/* Nodes that wait for the source's node wait for all parts. */
static int slice_stand_in(struct slicer *s, const struct form *form)
{
    if (slice_note(s, form))
        rewrite_await_parts(&s->r, graph_node(s->r.from, form->edge.node), form->parts,
                            form->cut->n[0]);
    return s->r.err->code;
}

static int visit_variable(struct slicer *s, const struct node *node)
{
    struct form form = slice_new_rows(s, node, 0);
    form.parts = cut_variable(&s->r, node, form.cut, s->names[node->id], NULL);
    rewrite_note(&s->r, node->name, "cut into slices");
    return slice_stand_in(s, &form);
}

/* The variable's slices; scalars for all slices; of other inputs each slice's own part. */
static struct edge *writer_input(struct slicer *s, const struct node *node, int i)
{
    struct edge edge = node->inputs[i];
    const struct partition *cut = s->cut[node->id];
    bool scatters = node_rows(node) == ROWS_SCATTER;
    if (graph_output(s->r.from, edge)->shape.rank == 0 && !scatters)
        return slice_same(s, cut, node, edge);
    enum form_kind kind = !scatters || i == 0 ? FORM_ROWS : i == 1 ? FORM_INDEX : FORM_PART;
    const struct form *form = form_of(s, kind, cut, edge, scatters ? node->inputs[1] : EDGE_NONE);
    return form ? form->parts : NULL;
}

static int visit_writer(struct slicer *s, const struct node *node)
{
    struct form form = slice_new_rows(s, node, 0);
    int n = form.cut->n[0];
    struct edge **inputs = arena_array(&s->r.arena, (size_t)node->n_inputs, sizeof *inputs);
    for (int i = 0; i < node->n_inputs; i++)
        if (!(inputs[i] = writer_input(s, node, i)))
            return s->r.err->code;
    slice_copies(s, &form, inputs);
    if (slice_stand_in(s, &form) || node_rows(node) != ROWS_ASK)
        return s->r.err->code;
    /* The reply is true if it is for all slices. */
    struct build *b = slice_builder(s, node, node, -1, EDGE_NONE);
    slice_is_whole(s, form.edge, cut_ask(b, form.parts, n));
    return s->r.err->code;
}

/* ---- aggregators, and the clock that waits for them ---- */

/* Outputs that are no gradient go with the first slice. */
static bool goes_with(enum form_kind kind, int k)
{
    return kind != FORM_WHOLE || k == 0;
}

static const char *aggregator_of(struct slicer *s, const struct node *node, int k)
{
    return s->names[graph_find(s->r.from, node_string(node, "aggregator"))->id][k];
}

static struct edge pushed(struct slicer *s, const struct node *push, int i, int k)
{
    const struct node *take = graph_node(s->r.from, s->take[push->id]);
    enum form_kind kind = slice_taken(s, take, i);
    if (kind == FORM_WHOLE)
        return slice_whole(s, push, push->inputs[i]);
    struct edge index = kind == FORM_PART ? push->inputs[slice_partner(take, i)] : EDGE_NONE;
    const struct form *form = form_of(s, kind, s->cut[push->id], push->inputs[i], index);
    return form ? form->parts[k] : EDGE_NONE;
}

static int slice_visit_push(struct slicer *s, const struct node *node)
{
    const struct node *take = graph_node(s->r.from, s->take[node->id]);
    struct form form = slice_new_rows(s, node, 0);
    struct edge *inputs = arena_array(&s->r.arena, (size_t)node->n_inputs, sizeof *inputs);
    for (int k = 0; k < form.cut->n[0] && !s->r.err->code; k++) {
        int n = 0;
        for (int i = 0; i < node->n_inputs && !s->r.err->code; i++)
            if (goes_with(slice_taken(s, take, i), k))
                inputs[n++] = pushed(s, node, i, k);
        const struct attr more[] = {{"aggregator", attr_string(aggregator_of(s, node, k))},
                                    {.name = NULL}};
        form.parts[k] = slice_copy(s, node, k, inputs, n, more);
    }
    slice_is_whole(s, form.edge, form.parts[0]);
    return slice_stand_in(s, &form);
}

static int slice_visit_take(struct slicer *s, const struct node *node)
{
    const struct partition *cut = s->cut[node->id];
    struct form *forms = arena_array(&s->r.arena, (size_t)node->n_outputs, sizeof *forms);
    struct edge *all = arena_array(&s->r.arena, (size_t)cut->n[0], sizeof *all);
    for (int i = 0; i < node->n_outputs; i++) {
        forms[i] = slice_new_rows(s, node, i);
        forms[i].kind = slice_taken(s, node, i);
        if (forms[i].kind == FORM_PART)
            forms[i].index = (struct edge){node->id, slice_partner(node, i)};
    }
    for (int k = 0; k < cut->n[0] && !s->r.err->code; k++) {
        struct attr more[] = {{"T", {.kind = ATTR_LIST_TYPE}},
                              {"shapes", {.kind = ATTR_LIST_SHAPE}},
                              {"reductions", {.kind = ATTR_LIST_STRING}},
                              {"aggregator", attr_string(aggregator_of(s, node, k))},
                              {.name = NULL}};
        for (int i = 0; i < node->n_outputs; i++) {
            if (!goes_with(forms[i].kind, k))
                continue;
            forms[i].parts[k].slot = more->value.n;
            for (int a = 0; a < 3; a++) {
                struct attr_value item = attr_item(node_attr(node, more[a].name), i);
                struct shape part;
                if (item.kind == ATTR_SHAPE && forms[i].kind == FORM_ROWS) {
                    part = cut_shape(cut, item.shape, k);
                    item.shape = &part;
                }
                attr_add(&s->r.arena, &more[a].value, &item);
            }
        }
        struct edge inputs[] = {slice_whole(s, node, node->inputs[0]),
                                slice_whole(s, node, node->inputs[1])};
        all[k] = slice_copy(s, node, k, inputs, 2, more);
        for (int i = 0; i < node->n_outputs; i++)
            forms[i].parts[k].node = all[k].node;
    }
    rewrite_await_parts(&s->r, node, all, cut->n[0]);
    for (int i = 0; i < node->n_outputs && !s->r.err->code; i++) {
        if (forms[i].kind == FORM_WHOLE)
            slice_is_whole(s, forms[i].edge, forms[i].parts[0]);
        else
            slice_note(s, &forms[i]);
    }
    return s->r.err->code;
}

/* ClockPush gets the tokens of all pushes. */
static int slice_visit_clock(struct slicer *s, const struct node *node)
{
    VEC(struct edge) inputs = VEC_INIT;
    for (int i = 0; i < node->n_inputs && !s->r.err->code; i++) {
        const struct node *from = graph_node(s->r.from, node->inputs[i].node);
        const struct form *tokens =
            s->role[from->id] == SLICE_PUSH ? slice_first_known(s, node->inputs[i]) : NULL;
        for (int k = 0; tokens && k < tokens->cut->n[0]; k++)
            vec_push_in(&s->r.arena, &inputs, tokens->parts[k]);
        if (!tokens)
            vec_push_in(&s->r.arena, &inputs, slice_whole(s, node, node->inputs[i]));
    }
    struct edge clock = slice_copy(s, node, -1, inputs.items, (int)inputs.n, NULL);
    if (edge_exists(clock))
        rewrite_stand_in(&s->r, node, clock.node);
    return s->r.err->code;
}

/* ---- other nodes ---- */

/* Returns whether a node reads a read, or waits for one: such chains may be long, so each node is
 * made in its turn. Other chains of nodes made on demand are short (DEMAND_DEPTH_MAX). */
static bool is_chained(const struct slicer *s, const struct node *node)
{
    bool chained = node->n_inputs && graph_node(s->r.from, node->inputs[0].node)->n_inputs;
    for (int i = 0; i < node->n_controls && !chained; i++)
        chained = graph_node(s->r.from, node->controls[i])->n_outputs &&
                  slice_table(s, (struct edge){node->controls[i], 0});
    return chained;
}

static int visit(struct slicer *s, const struct node *node)
{
    switch ((enum slice_role)s->role[node->id]) {
    case SLICE_VARIABLE:
        return s->r.after[node->id] ? 0 : visit_variable(s, node);
    case SLICE_WRITER:
        return visit_writer(s, node);
    case SLICE_PUSH:
        return slice_visit_push(s, node);
    case SLICE_TAKE:
        return slice_visit_take(s, node);
    default:
        break;
    }
    if (node_round(node) == ROUND_COMMIT)
        return slice_visit_clock(s, node);
    struct edge output = {node->id, 0};
    const struct partition *cut = node->n_outputs ? slice_table(s, output) : NULL;
    if (s->r.after[node->id] || (s->on_demand[node->id] && !(cut && is_chained(s, node))))
        return 0;
    if (s->on_demand[node->id]) {
        form_of(s, FORM_ROWS, cut, output, EDGE_NONE);
        return s->r.err->code;
    }
    struct edge whole =
        slice_whole(s, node, node->n_outputs ? output : (struct edge){node->id, CONTROL_SLOT});
    if (cut && !s->r.err->code)
        rewrite_await_parts(&s->r, node, &whole, 1);
    return s->r.err->code;
}

static int build(struct slicer *s)
{
    s->r.rules = (struct copy_rules){s->r.from, s->r.to, leader_of_slice, slice_keeps, s};
    s->r.make = slice_whole;
    if (frames_new(s->r.from, &s->r.frames, s->r.err) || slice_find(s) || !s->found)
        return s->r.err->code;
    s->prefix = graph_free_prefix(&s->r.arena, s->r.from, "slices");
    graph_each(node, s->r.from) {
        s->updates[node->id] = node_round(node) == ROUND_TAKE;
        if (s->role[node->id] == SLICE_VARIABLE)
            s->names[node->id] = cut_names(&s->r, node, s->cut[node->id]->n[0]);
    }
    spread_facts(s->r.from, s->r.order, s->updates, (struct spread){.fact = 1});
    spread_facts(s->r.from, s->r.order, s->updates, (struct spread){.fact = 1, .up = true});
    /* Slices come first, since other nodes are grouped with them. */
    graph_each(node, s->r.from) {
        if (s->role[node->id] == SLICE_VARIABLE && visit(s, node))
            return s->r.err->code;
    }
    graph_each_ordered(node, s->r.from, s->r.order) {
        if (visit(s, node))
            return s->r.err->code;
    }
    rewrite_make_named(&s->r);
    return s->r.err->code;
}

int slice_variables(const struct graph *from, const struct slice_options *options,
                    struct graph **to, struct error *err)
{
    size_t n = from->nodes.n + 1;
    struct slicer s = {.placement = options->placement, .balance_above = options->balance_above};
    *to = NULL;
    if (rewrite_open(&s.r, from, NULL, err))
        return err->code;
    s.cut = arena_array(&s.r.arena, n, sizeof *s.cut);
    s.role = arena_alloc(&s.r.arena, n);
    s.origin = arena_array(&s.r.arena, n, sizeof *s.origin);
    s.on_demand = arena_alloc(&s.r.arena, n);
    s.updates = arena_array(&s.r.arena, n, sizeof *s.updates);
    s.names = arena_array(&s.r.arena, n, sizeof *s.names);
    s.take = arena_array(&s.r.arena, n, sizeof *s.take);
    s.forms = arena_array(&s.r.arena, n, sizeof(struct form *));
    return rewrite_finish(&s.r, build(&s), to);
}
