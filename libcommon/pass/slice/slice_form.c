/* SPDX-License-Identifier: Apache-2.0
 *
 * Values in parts. What is computed row by row is computed in each part alone, so that a slice's
 * share of an update never is in one place; what is not is made whole and then parted.
 */
#include <string.h>

#include "base/memory.h"
#include "graph/infer.h"
#include "pass/slice/slice_private.h"

const struct form *slice_known(const struct slicer *s, enum form_kind kind, struct edge edge,
                               struct edge index)
{
    for (const struct form *form = s->forms[edge.node]; form; form = form->next)
        if (form->kind == kind && slice_same_edge(form->edge, edge) &&
            slice_same_edge(form->index, index))
            return form;
    return NULL;
}

const struct form *slice_note(struct slicer *s, const struct form *form)
{
    if (s->err->code)
        return NULL;
    struct form *noted = arena_copy(&s->arena, form, sizeof *form);
    noted->next = s->forms[form->edge.node];
    s->forms[form->edge.node] = noted;
    return noted;
}

const struct form *slice_known_in(const struct slicer *s, const struct form *wanted)
{
    const struct form *form = slice_known(s, wanted->kind, wanted->edge, wanted->index);
    return form && form->slicing == wanted->slicing ? form : NULL;
}

const struct form *slice_known_or(struct slicer *s, struct form *form, slice_maker *make)
{
    const struct form *known = s->err->code ? NULL : slice_known_in(s, form);
    bool is_deeper = form->kind == FORM_ROWS || form->kind == FORM_PART;
    if (known || s->err->code)
        return known;
    s->depth += is_deeper;
    known = make(s, form);
    s->depth -= is_deeper;
    return known;
}

/* ---- what is computed row by row ---- */

bool slice_is_row_by_row(const struct node *node)
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

const struct form *slice_copy_rows(struct slicer *s, struct form *form, const bool *rows)
{
    const struct node *node = graph_node(s->from, form->edge.node);
    struct slice_cut cut = slice_cut_at(s, form->slicing);
    size_t n = (size_t)node->n_inputs;
    struct edge *inputs = arena_array(&s->arena, n * (size_t)cut.n + 1, sizeof *inputs);
    for (int i = 0; i < node->n_inputs && !s->err->code; i++) {
        struct edge edge = node->inputs[i];
        const struct form *in = !rows[i] ? NULL
                                : form->kind == FORM_ROWS
                                    ? slice_rows_of(s, form->slicing, edge)
                                    : slice_part_of(s, form->slicing, edge, form->index);
        struct edge whole = rows[i] ? EDGE_NONE : slice_whole(s, node, edge);
        for (int k = 0; k < cut.n && !s->err->code; k++)
            inputs[(size_t)k * n + (size_t)i] = in ? in->parts[k] : whole;
    }
    for (int k = 0; k < cut.n; k++)
        form->parts[k] = slice_add_copy(
            s, (struct rewrite_copy){
                   .node = node, .k = k, .inputs = inputs + (size_t)k * n, .n_inputs = (int)n});
    return slice_note(s, form);
}

struct form slice_new_form(struct slicer *s, enum form_kind kind, int slicing, struct edge edge)
{
    size_t n = (size_t)slice_cut_at(s, slicing).n;
    return (struct form){.kind = kind,
                         .edge = edge,
                         .index = EDGE_NONE,
                         .slicing = slicing,
                         .parts = arena_array(&s->arena, n + 1, sizeof(struct edge))};
}

/* ---- rows of slices ---- */

/* With the slice's shape instead of the whole's; random numbers begin where the slice does. */
static const struct form *copy_generator(struct slicer *s, struct form *form)
{
    const struct node *node = graph_node(s->from, form->edge.node);
    const struct shape *shape = &node->outputs[0].shape;
    struct slice_cut cut = slice_cut_at(s, form->slicing);
    bool counts = op_find_attr(node->op, "offset") >= 0;
    int64_t row = shape_count_of(shape, 1, shape->rank);
    int64_t first = counts ? node_int(node, "offset") : 0;
    struct edge *inputs = arena_array(&s->arena, (size_t)node->n_inputs, sizeof *inputs);
    for (int i = 1; i < node->n_inputs; i++)
        inputs[i] = slice_whole(s, node, node->inputs[i]);
    for (int k = 0; k < cut.n && !s->err->code; k++) {
        struct shape part = slice_shape(cut, shape, k);
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
    struct slice_cut cut = slice_cut_at(s, form->slicing);
    size_t row = tensor_bytes(whole) / (size_t)cut.rows;
    for (int k = 0; k < cut.n && !s->err->code; k++) {
        struct shape shape = slice_shape(cut, &whole->shape, k);
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
    struct slice_cut cut = slice_cut_at(s, form->slicing);
    int table;
    bool fits = slice_fits(cut, shape) &&
                (s->depth < SLICE_DEPTH_MAX || slice_is_table(s, form->edge, &table));
    bool *row_inputs = arena_alloc(&s->arena, (size_t)node->n_inputs + 1);
    if (fits && slice_is_row_by_row(node) && find_row_inputs(s, node, cut.axis, row_inputs))
        return slice_copy_rows(s, form, row_inputs);
    bool loops = s->frames->frame[node->id] != FRAME_ROOT;
    if (fits && !loops && shape_is_known(shape) && node_rows(node) == ROWS_MADE &&
        (!cut.axis || op_find_attr(node->op, "offset") < 0))
        return copy_generator(s, form);
    if (fits && !cut.axis && node_is(node, "Const") && node_type(node, "dtype") != STRING)
        return cut_constant(s, form);
    if (fits && !cut.axis && node_rows(node) == ROWS_SUM &&
        slice_output(s, node->inputs[1])->shape.rank == 1) {
        /* Sums of rows by number: each slice sums those that are its own. */
        const struct form *index = slice_index_of(s, form->slicing, node->inputs[1]);
        const struct form *values =
            index ? slice_part_of(s, form->slicing, node->inputs[0], node->inputs[1]) : NULL;
        for (int k = 0; values && k < cut.n; k++) {
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
    if (rank <= cut.axis) {
        error_set(s->err, ERR_DATA, "%s: %s: its shape must be known, to be cut into slices",
                  node_text(node), node->op->def->name);
        return NULL;
    }
    struct edge whole = slice_whole(s, node, form->edge);
    for (int k = 0; k < cut.n && !s->err->code; k++) {
        int64_t begin[SHAPE_RANK_MAX] = {0}, size[SHAPE_RANK_MAX];
        for (int i = 0; i < rank; i++)
            size[i] = -1;
        begin[cut.axis] = slice_first(cut, k);
        size[cut.axis] = slice_rows(cut, k);
        struct build *b = slice_builder(s, &(struct slice_site){node, node, -1, whole});
        struct edge inputs[] = {whole, build_ints(b, begin, rank), build_ints(b, size, rank)};
        form->parts[k] = build_op(b, "Slice", inputs, 3, NULL, 0);
    }
    return slice_note(s, form);
}

const struct form *slice_rows_of(struct slicer *s, int slicing, struct edge edge)
{
    struct form form = slice_new_form(s, FORM_ROWS, slicing, edge);
    return slice_known_or(s, &form, make_rows);
}
