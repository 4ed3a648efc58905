/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes of the source are visited in topological order. Nodes that use a table are made once for
 * each slice; nodes that only they need are made on demand, whole or in parts. After an error all
 * functions return EDGE_NONE (-1, NULL).
 */
#include "pass/slice/slice.h"

#include <string.h>

#include "base/memory.h"
#include "graph/infer.h"
#include "pass/part/part.h"
#include "pass/place/place.h"
#include "pass/slice/slice_private.h"

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
 * made in its turn. Other chains of nodes made on demand are short (slice_find.c). */
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
