/* SPDX-License-Identifier: Apache-2.0
 *
 * Values in parts. What is computed row by row is computed in each part alone, so that a slice's
 * share of an update never is in one place; what is not is made whole and then parted.
 */
#include <string.h>

#include "base/memory.h"
#include "graph/infer.h"
#include "pass/slice/slice_private.h"

static const struct form *find_known(const struct slicer *s, enum form_kind kind, struct edge edge,
                                     struct edge index)
{
    for (const struct form *form = s->forms[edge.node]; form; form = form->next)
        if (form->kind == kind && edge_equal(form->edge, edge) && edge_equal(form->index, index))
            return form;
    return NULL;
}

const struct form *slice_note(struct slicer *s, const struct form *form)
{
    if (s->err->code)
        return NULL;
    struct form *noted = arena_copy(&s->r.arena, form, sizeof *form);
    noted->next = s->forms[form->edge.node];
    s->forms[form->edge.node] = noted;
    return noted;
}

/* One that is there, or that is made; NULL on failure. */
static const struct form *known_or(struct slicer *s, struct form *form,
                                   const struct form *(*make)(struct slicer *, struct form *))
{
    const struct form *known = find_known(s, form->kind, form->edge, form->index);
    bool is_deeper = form->kind == FORM_ROWS || form->kind == FORM_PART;
    if (s->err->code)
        return NULL;
    if (known && known->slicing == form->slicing)
        return known;
    s->depth += is_deeper;
    known = make(s, form);
    s->depth -= is_deeper;
    return known;
}

/* ---- what is computed row by row ---- */

static bool is_row_by_row(const struct node *node)
{
    if (node_is(node, "Enter"))
        return node_bool(node, "is_constant");
    return node_rows(node) == ROWS_ALIKE;
}

/* Finds the inputs that have the rows of the result: all that do not broadcast along them. False:
 * it cannot be told, or one has them along another axis, as it has fewer. */
static bool find_row_inputs(const struct slicer *s, const struct node *node, int axis, bool *rows)
{
    const struct shape *out = &node->outputs[0].shape;
    int n = 0;
    for (int i = 0; i < node->n_inputs; i++) {
        const struct shape *in = &slice_output(s, node->inputs[i])->shape;
        int at = in->rank - out->rank + axis;
        if (in->rank < 0 || out->rank <= axis)
            return false;
        rows[i] = at == axis && in->dims[at] == out->dims[axis];
        n += rows[i];
        if (!rows[i] && at >= 0 && in->dims[at] != 1)
            return false;
    }
    return n == 1 || (n > 1 && out->dims[axis] > 1);
}

const struct form *slice_copies(struct slicer *s, struct form *form, struct edge *const *inputs)
{
    const struct node *node = graph_node(s->from, form->edge.node);
    struct edge *mine = arena_array(&s->r.arena, (size_t)node->n_inputs, sizeof *mine);
    for (int k = 0; k < slice_cut_at(s, form->slicing).n[0] && !s->err->code; k++) {
        for (int i = 0; i < node->n_inputs; i++)
            mine[i] = inputs[i][k];
        form->parts[k] = slice_add_copy(
            s, (struct rewrite_copy){
                   .node = node, .k = k, .inputs = mine, .n_inputs = node->n_inputs});
    }
    return slice_note(s, form);
}

struct edge *slice_same(struct slicer *s, int slicing, const struct node *asker, struct edge edge)
{
    struct edge *same = slice_new_form(s, FORM_ROWS, slicing, edge).parts;
    struct edge whole = slice_whole(s, asker, edge);
    for (int k = 0; k < slice_cut_at(s, slicing).n[0]; k++)
        same[k] = whole;
    return s->err->code ? NULL : same;
}

/* Copies of the node for each slice, whose inputs are parted alike where `rows` says so. */
static const struct form *copy_rows(struct slicer *s, struct form *form, const bool *rows)
{
    const struct node *node = graph_node(s->from, form->edge.node);
    struct edge **inputs = arena_array(&s->r.arena, (size_t)node->n_inputs + 1, sizeof *inputs);
    for (int i = 0; i < node->n_inputs && !s->err->code; i++) {
        struct edge edge = node->inputs[i];
        const struct form *in = !rows[i] ? NULL
                                : form->kind == FORM_ROWS
                                    ? slice_rows_of(s, form->slicing, edge)
                                    : slice_part_of(s, form->slicing, edge, form->index);
        inputs[i] = in ? in->parts : slice_same(s, form->slicing, node, edge);
    }
    return s->err->code ? NULL : slice_copies(s, form, inputs);
}

struct form slice_new_form(struct slicer *s, enum form_kind kind, int slicing, struct edge edge)
{
    size_t n = (size_t)slice_cut_at(s, slicing).n[0];
    return (struct form){.kind = kind,
                         .edge = edge,
                         .index = EDGE_NONE,
                         .slicing = slicing,
                         .parts = arena_array(&s->r.arena, n + 1, sizeof(struct edge))};
}

/* ---- rows of slices ---- */

/* With the slice's shape instead of the whole's; random numbers begin where the slice does. */
static const struct form *copy_generator(struct slicer *s, struct form *form)
{
    const struct node *node = graph_node(s->from, form->edge.node);
    const struct shape *shape = &node->outputs[0].shape;
    struct partition cut = slice_cut_at(s, form->slicing);
    bool counts = op_find_attr(node->op, "offset") >= 0;
    int64_t row = shape_count_of(shape, 1, shape->rank);
    int64_t first = counts ? node_int(node, "offset") : 0;
    struct edge *inputs = arena_array(&s->r.arena, (size_t)node->n_inputs, sizeof *inputs);
    for (int i = 1; i < node->n_inputs; i++)
        inputs[i] = slice_whole(s, node, node->inputs[i]);
    for (int k = 0; k < cut.n[0] && !s->err->code; k++) {
        struct shape part = cut_shape(&cut, shape, k);
        struct attr offset = {"offset", attr_int(first + slice_first(cut, k) * row)};
        struct build *b = slice_builder(s, &(struct slice_site){node, node, k, EDGE_NONE});
        inputs[0] = build_ints(b, part.dims, part.rank);
        form->parts[k] = slice_add_copy(s, (struct rewrite_copy){.node = node,
                                                                 .k = k,
                                                                 .inputs = inputs,
                                                                 .n_inputs = node->n_inputs,
                                                                 .more = &offset,
                                                                 .n_more = counts});
    }
    return slice_note(s, form);
}

static const struct form *cut_constant(struct slicer *s, struct form *form)
{
    const struct node *node = graph_node(s->from, form->edge.node);
    const struct tensor *whole = node_attr(node, "value")->tensor;
    struct partition cut = slice_cut_at(s, form->slicing);
    size_t row = tensor_bytes(whole) / (size_t)cut.size[0];
    for (int k = 0; k < cut.n[0] && !s->err->code; k++) {
        struct shape shape = cut_shape(&cut, &whole->shape, k);
        struct tensor part = tensor_borrow(whole->type, &shape,
                                           (char *)whole->data + (size_t)slice_first(cut, k) * row);
        struct attr value = {"value", attr_tensor(&part)};
        form->parts[k] = slice_add_copy(
            s, (struct rewrite_copy){.node = node, .k = k, .more = &value, .n_more = 1});
    }
    return slice_note(s, form);
}

static const struct form *make_rows(struct slicer *s, struct form *form)
{
    const struct node *node = graph_node(s->from, form->edge.node);
    const struct shape *shape = &slice_output(s, form->edge)->shape;
    struct partition cut = slice_cut_at(s, form->slicing);
    int table;
    bool fits = slice_fits(cut, shape) &&
                (s->depth < SLICE_DEPTH_MAX || slice_is_table(s, form->edge, &table));
    bool *row_inputs = arena_alloc(&s->r.arena, (size_t)node->n_inputs + 1);
    if (fits && is_row_by_row(node) && find_row_inputs(s, node, cut.axis[0], row_inputs))
        return copy_rows(s, form, row_inputs);
    bool loops = s->r.frames->frame[node->id] != FRAME_ROOT;
    if (fits && !loops && shape_is_known(shape) && node_rows(node) == ROWS_MADE &&
        (!cut.axis[0] || op_find_attr(node->op, "offset") < 0))
        return copy_generator(s, form);
    if (fits && !cut.axis[0] && node_is(node, "Const") && node_type(node, "dtype") != STRING)
        return cut_constant(s, form);
    if (fits && !cut.axis[0] && node_rows(node) == ROWS_SUM &&
        slice_output(s, node->inputs[1])->shape.rank == 1) {
        /* Sums of rows by number: each slice sums those that are its own. */
        const struct form *index = slice_index_of(s, form->slicing, node->inputs[1]);
        const struct form *values =
            index ? slice_part_of(s, form->slicing, node->inputs[0], node->inputs[1]) : NULL;
        for (int k = 0; values && k < cut.n[0]; k++) {
            struct build *b =
                slice_builder(s, &(struct slice_site){node, node, k, values->parts[k]});
            struct edge n = build_scalar(b, INT32, (double)slice_rows(cut, k));
            struct edge inputs[] = {values->parts[k], index->parts[k], n};
            form->parts[k] = slice_add_copy(
                s, (struct rewrite_copy){.node = node, .k = k, .inputs = inputs, .n_inputs = 3});
        }
        return slice_note(s, form);
    }

    int rank = slice_output(s, form->edge)->shape.rank;
    if (rank <= cut.axis[0]) {
        error_set(s->err, ERR_DATA, "%s: %s: its shape must be known, to be cut into slices",
                  node_text(node), node->op->def->name);
        return NULL;
    }
    struct edge whole = slice_whole(s, node, form->edge);
    for (int k = 0; k < cut.n[0] && !s->err->code; k++) {
        struct build *b = slice_builder(s, &(struct slice_site){node, node, -1, whole});
        form->parts[k] = cut_slice(b, whole, &cut, cut_area(&cut, k));
    }
    return slice_note(s, form);
}

const struct form *slice_rows_of(struct slicer *s, int slicing, struct edge edge)
{
    struct form form = slice_new_form(s, FORM_ROWS, slicing, edge);
    return known_or(s, &form, make_rows);
}

/* ---- rows that are known by their numbers, parted by the slice that each number is in ---- */

/* In which slice a row is: the first rows % n slices have one row more. */
static struct edge find_slice(struct build *b, struct partition cut, struct edge row)
{
    int64_t size = cut.size[0] / cut.n[0], extra = cut.size[0] % cut.n[0];
    struct edge number;
    if (!extra)
        return build_binary(b, "FloorDiv", row, build_scalar_like(b, row, (double)size));
    number = build_binary(b, "Sub", row, build_scalar_like(b, row, (double)extra));
    number = build_binary(b, "FloorDiv", number, build_scalar_like(b, row, (double)size));
    return build_binary(
        b, "Maximum", number,
        build_binary(b, "FloorDiv", row, build_scalar_like(b, row, (double)(size + 1))));
}

static const struct form *make_number(struct slicer *s, struct form *form)
{
    const struct node *node = graph_node(s->from, form->edge.node);
    struct edge row = slice_whole(s, node, form->edge);
    struct build *b = slice_builder(s, &(struct slice_site){node, node, -1, row});
    form->parts[0] = build_cast(b, find_slice(b, slice_cut_at(s, form->slicing), row), INT32);
    return slice_note(s, form);
}

struct edge slice_number_of(struct slicer *s, int slicing, struct edge edge)
{
    struct form form = slice_new_form(s, FORM_NUMBER, slicing, edge);
    const struct form *made = known_or(s, &form, make_number);
    return made ? made->parts[0] : EDGE_NONE;
}

static struct edge partition(struct slicer *s, struct form *form, struct edge number)
{
    const struct node *node = graph_node(s->from, form->edge.node);
    struct edge inputs[] = {slice_whole(s, node, form->edge), number};
    struct attr n = {"num_partitions", attr_int(slice_cut_at(s, form->slicing).n[0])};
    struct edge numbers = edge_exists(form->index) ? form->index : form->edge;
    struct slice_site site = {node, graph_node(s->from, numbers.node), -1, EDGE_NONE};
    return build_op(slice_builder(s, &site), "DynamicPartition", inputs, 2, &n, 1);
}

static const struct form *make_index(struct slicer *s, struct form *form)
{
    struct partition cut = slice_cut_at(s, form->slicing);
    struct edge edge = form->edge;
    const struct node *node = graph_node(s->from, edge.node);
    if (node_rows(node) == ROWS_DISTINCT && !edge.slot) {
        /* The different ones among row numbers: of each slice, its own. */
        const struct form *in = slice_index_of(s, form->slicing, node->inputs[0]);
        return in ? slice_copies(s, form, &in->parts) : NULL;
    }
    struct edge parts = partition(s, form, slice_number_of(s, form->slicing, edge));
    struct build *b = slice_builder(s, &(struct slice_site){node, node, -1, parts});
    for (int k = 0; k < cut.n[0] && !b->failed; k++) {
        struct edge part = {parts.node, k};
        struct edge first = k ? build_scalar_like(b, part, (double)slice_first(cut, k)) : part;
        form->parts[k] = k ? build_binary(b, "Sub", part, first) : part;
    }
    return slice_note(s, form);
}

const struct form *slice_index_of(struct slicer *s, int slicing, struct edge edge)
{
    struct form form = slice_new_form(s, FORM_INDEX, slicing, edge);
    return known_or(s, &form, make_index);
}

/* ---- rows that belong to row numbers ---- */

/* A sum over the occurrences of each different row. */
static bool is_unique_sum(const struct slicer *s, const struct node *node, struct edge index)
{
    return node_rows(node) == ROWS_SUM &&
           node_rows(graph_node(s->from, index.node)) == ROWS_DISTINCT && !index.slot &&
           node->inputs[1].node == index.node && node->inputs[1].slot == 1;
}

/* Returns whether the value is known to have one row for each of the numbers. */
static bool has_row_each(const struct slicer *s, struct edge edge, struct edge index)
{
    const struct node *node = graph_node(s->from, edge.node);
    bool rows[4] = {false};
    if (is_unique_sum(s, node, index) || find_known(s, FORM_PART, edge, index))
        return true;
    if (node_rows(node) == ROWS_LOOKUP)
        return edge_equal(node->inputs[1], index);
    if (!is_row_by_row(node) || node->n_inputs > 2)
        return false;
    for (int i = 0; i < node->n_inputs; i++) {
        int rank = slice_output(s, node->inputs[i])->shape.rank;
        rows[i] = rank == node->outputs[0].shape.rank;
        if (rank < 0 || (rows[i] && !has_row_each(s, node->inputs[i], index)))
            return false;
    }
    return true;
}

static bool find_aligned(const struct slicer *s, const struct form *form, bool *rows)
{
    const struct node *node = graph_node(s->from, form->edge.node);
    int rank = node->n_outputs ? node->outputs[0].shape.rank : -1, n = 0;
    if (!is_row_by_row(node) || rank < 1)
        return false;
    for (int i = 0; i < node->n_inputs; i++) {
        int in = slice_output(s, node->inputs[i])->shape.rank;
        rows[i] = in == rank;
        n += rows[i];
        if (in < 0)
            return false;
    }
    return n == 1 || (n > 1 && has_row_each(s, form->edge, form->index));
}

static const struct form *make_part(struct slicer *s, struct form *form)
{
    const struct node *node = graph_node(s->from, form->edge.node);
    struct partition cut = slice_cut_at(s, form->slicing);
    bool *rows = arena_alloc(&s->r.arena, (size_t)node->n_inputs + 1);
    bool vector = slice_output(s, form->index)->shape.rank == 1 && s->depth < SLICE_DEPTH_MAX;
    int slicing;
    if (vector && find_aligned(s, form, rows))
        return copy_rows(s, form, rows);
    if (vector && is_unique_sum(s, node, form->index)) {
        const struct node *unique = graph_node(s->from, form->index.node);
        const struct form *index = slice_index_of(s, form->slicing, form->index);
        const struct form *values =
            index ? slice_part_of(s, form->slicing, node->inputs[0], unique->inputs[0]) : NULL;
        for (int k = 0; values && k < cut.n[0] && !s->err->code; k++) {
            struct build *b = slice_builder(s, &(struct slice_site){node, unique, k, EDGE_NONE});
            struct edge inputs[] = {values->parts[k],
                                    {index->parts[k].node, 1},
                                    build_unary(b, "Size", index->parts[k])};
            form->parts[k] = slice_add_copy(
                s, (struct rewrite_copy){.node = node, .k = k, .inputs = inputs, .n_inputs = 3});
        }
        return slice_note(s, form);
    }
    if (vector && node_rows(node) == ROWS_LOOKUP && edge_equal(node->inputs[1], form->index) &&
        slice_is_table(s, node->inputs[0], &slicing) && slicing == form->slicing) {
        /* Rows of a slot that is cut alike, by the same numbers. */
        const struct form *index = slice_index_of(s, form->slicing, form->index);
        const struct form *table = index ? slice_rows_of(s, form->slicing, node->inputs[0]) : NULL;
        for (int k = 0; table && k < cut.n[0]; k++)
            form->parts[k] = slice_add_gather(s, node, k, table->parts[k], index->parts[k]);
        return slice_note(s, form);
    }
    struct edge parts = partition(s, form, slice_number_of(s, form->slicing, form->index));
    for (int k = 0; k < cut.n[0]; k++)
        form->parts[k] = (struct edge){parts.node, k};
    return slice_note(s, form);
}

const struct form *slice_part_of(struct slicer *s, int slicing, struct edge edge, struct edge index)
{
    struct form form = slice_new_form(s, FORM_PART, slicing, edge);
    form.index = index;
    return known_or(s, &form, make_part);
}
