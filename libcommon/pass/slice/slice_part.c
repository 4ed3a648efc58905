/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows that are known by their numbers, parted by the slice that each number is in.
 */
#include "base/memory.h"
#include "pass/slice/slice_private.h"

/* ---- rows by number ---- */

/* In which slice a row is: the first rows % n slices have one row more. */
static struct edge find_slice(struct build *b, struct slice_cut cut, struct edge row)
{
    int64_t size = cut.rows / cut.n, extra = cut.rows % cut.n;
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
    const struct form *made = slice_known_or(s, &form, make_number);
    return made ? made->parts[0] : EDGE_NONE;
}

static struct edge partition(struct slicer *s, struct form *form, struct edge number)
{
    const struct node *node = graph_node(s->from, form->edge.node);
    struct edge inputs[] = {slice_whole(s, node, form->edge), number};
    struct attr n = {"num_partitions", attr_int(slice_cut_at(s, form->slicing).n)};
    struct edge numbers = edge_exists(form->index) ? form->index : form->edge;
    struct slice_site site = {node, graph_node(s->from, numbers.node), -1, EDGE_NONE};
    return build_op(slice_builder(s, &site), "DynamicPartition", inputs, 2, &n, 1);
}

static const struct form *make_index(struct slicer *s, struct form *form)
{
    struct slice_cut cut = slice_cut_at(s, form->slicing);
    struct edge edge = form->edge;
    const struct node *node = graph_node(s->from, edge.node);
    if (node_rows(node) == ROWS_DISTINCT && !edge.slot) {
        /* The different ones among row numbers: of each slice, its own. */
        const struct form *in = slice_index_of(s, form->slicing, node->inputs[0]);
        for (int k = 0; in && k < cut.n; k++)
            form->parts[k] = slice_add_copy(
                s, (struct rewrite_copy){
                       .node = node, .k = k, .inputs = &in->parts[k], .n_inputs = 1});
        return slice_note(s, form);
    }
    struct edge parts = partition(s, form, slice_number_of(s, form->slicing, edge));
    struct build *b = slice_builder(s, &(struct slice_site){node, node, -1, parts});
    for (int k = 0; k < cut.n && !b->failed; k++) {
        struct edge part = {parts.node, k};
        struct edge first = k ? build_scalar_like(b, part, (double)slice_first(cut, k)) : part;
        form->parts[k] = k ? build_binary(b, "Sub", part, first) : part;
    }
    return slice_note(s, form);
}

const struct form *slice_index_of(struct slicer *s, int slicing, struct edge edge)
{
    struct form form = slice_new_form(s, FORM_INDEX, slicing, edge);
    return slice_known_or(s, &form, make_index);
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
    if (is_unique_sum(s, node, index) || slice_known(s, FORM_PART, edge, index))
        return true;
    if (node_rows(node) == ROWS_LOOKUP)
        return slice_same_edge(node->inputs[1], index);
    if (!slice_is_row_by_row(node) || node->n_inputs > 2)
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
    if (!slice_is_row_by_row(node) || rank < 1)
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
    struct slice_cut cut = slice_cut_at(s, form->slicing);
    bool *rows = arena_alloc(&s->arena, (size_t)node->n_inputs + 1);
    bool vector = slice_output(s, form->index)->shape.rank == 1 && s->depth < SLICE_DEPTH_MAX;
    int slicing;
    if (vector && find_aligned(s, form, rows))
        return slice_copy_rows(s, form, rows);
    if (vector && is_unique_sum(s, node, form->index)) {
        const struct node *unique = graph_node(s->from, form->index.node);
        const struct form *index = slice_index_of(s, form->slicing, form->index);
        const struct form *values =
            index ? slice_part_of(s, form->slicing, node->inputs[0], unique->inputs[0]) : NULL;
        for (int k = 0; values && k < slice_cut_at(s, form->slicing).n && !s->err->code; k++) {
            struct build *b = slice_builder(s, &(struct slice_site){node, unique, k, EDGE_NONE});
            struct edge inputs[] = {values->parts[k],
                                    {index->parts[k].node, 1},
                                    build_unary(b, "Size", index->parts[k])};
            form->parts[k] = slice_add_copy(
                s, (struct rewrite_copy){.node = node, .k = k, .inputs = inputs, .n_inputs = 3});
        }
        return slice_note(s, form);
    }
    if (vector && node_rows(node) == ROWS_LOOKUP && slice_same_edge(node->inputs[1], form->index) &&
        slice_is_table(s, node->inputs[0], &slicing) && slicing == form->slicing) {
        /* Rows of a slot that is cut alike, by the same numbers. */
        const struct form *index = slice_index_of(s, form->slicing, form->index);
        const struct form *table = index ? slice_rows_of(s, form->slicing, node->inputs[0]) : NULL;
        for (int k = 0; table && k < slice_cut_at(s, form->slicing).n; k++)
            form->parts[k] = slice_add_gather(s, node, k, table->parts[k], index->parts[k]);
        return slice_note(s, form);
    }
    struct edge parts = partition(s, form, slice_number_of(s, form->slicing, form->index));
    for (int k = 0; k < cut.n; k++)
        form->parts[k] = (struct edge){parts.node, k};
    return slice_note(s, form);
}

const struct form *slice_part_of(struct slicer *s, int slicing, struct edge edge, struct edge index)
{
    struct form form = slice_new_form(s, FORM_PART, slicing, edge);
    form.index = index;
    return slice_known_or(s, &form, make_part);
}
