/* SPDX-License-Identifier: Apache-2.0 */
#include "pass/cut.h"

#include <string.h>

#include "graph/worker_attr.h"

/* ---- which places ---- */

static int64_t first_place(const struct partition *cut, int d, int64_t i)
{
    int64_t extra = cut->size[d] % cut->n[d];
    return cut->is_floor ? i * cut->size[d] / cut->n[d]
                         : cut->size[d] / cut->n[d] * i + (i < extra ? i : extra);
}

struct area cut_area(const struct partition *cut, int k)
{
    const int at[2] = {k / cut->n[1], k % cut->n[1]};
    struct area area;
    for (int d = 0; d < 2; d++) {
        area.from[d] = first_place(cut, d, at[d]);
        area.to[d] = first_place(cut, d, at[d] + 1);
    }
    return area;
}

struct shape cut_shape(const struct partition *cut, const struct shape *whole, int k)
{
    struct shape shape = *whole;
    struct area area = cut_area(cut, k);
    for (int d = 0; d < 2; d++)
        if (cut->axis[d] >= 0)
            shape.dims[cut->axis[d]] = area.to[d] - area.from[d];
    return shape;
}

bool cut_equal(const struct partition *a, const struct partition *b)
{
    return a->is_cut == b->is_cut && !memcmp(a->axis, b->axis, sizeof a->axis) &&
           !memcmp(a->size, b->size, sizeof a->size);
}

struct area area_meet(struct area a, struct area b)
{
    for (int d = 0; d < 2; d++) {
        a.from[d] = a.from[d] > b.from[d] ? a.from[d] : b.from[d];
        a.to[d] = a.to[d] < b.to[d] ? a.to[d] : b.to[d];
    }
    return a;
}

struct area area_within(struct area a, struct area of)
{
    for (int d = 0; d < 2; d++) {
        a.from[d] -= of.from[d];
        a.to[d] -= of.from[d];
    }
    return a;
}

bool area_is_empty(struct area a)
{
    return a.from[0] >= a.to[0] || a.from[1] >= a.to[1];
}

bool area_equal(struct area a, struct area b)
{
    return !memcmp(&a, &b, sizeof a);
}

/* ---- nodes ---- */

struct edge cut_slice(struct build *b, struct edge whole, const struct partition *cut,
                      struct area area)
{
    int64_t begin[SHAPE_RANK_MAX] = {0}, size[SHAPE_RANK_MAX];
    int rank = build_shape(b, whole)->rank;
    for (int i = 0; i < rank; i++)
        size[i] = -1;
    for (int d = 0; d < 2; d++) {
        if (cut->axis[d] < 0)
            continue;
        begin[cut->axis[d]] = area.from[d];
        size[cut->axis[d]] = area.to[d] - area.from[d];
    }
    struct edge inputs[] = {whole, build_ints(b, begin, rank), build_ints(b, size, rank)};
    return build_op(b, "Slice", inputs, 3, NULL, 0);
}

struct edge cut_concat(struct build *b, int axis, const struct edge *parts, int n)
{
    struct edge *inputs = arena_array(&b->graph->arena, (size_t)n + 1, sizeof *inputs);
    if (n == 1)
        return parts[0];
    inputs[0] = build_scalar(b, INT32, axis);
    memcpy(inputs + 1, parts, (size_t)n * sizeof *parts);
    return build_op(b, "Concat", inputs, n + 1, NULL, 0);
}

struct edge cut_join(struct build *b, const struct partition *cut, const struct edge *parts)
{
    int n_rows = 0, columns = cut->n[1];
    struct edge *rows = arena_array(&b->graph->arena, (size_t)(cut->n[0] + columns), sizeof *rows);
    struct edge *row = rows + cut->n[0];
    for (int i = 0; i < cut->n[0]; i++) {
        int n = 0;
        for (int k = i * columns; k < (i + 1) * columns; k++)
            if (edge_exists(parts[k]))
                row[n++] = parts[k];
        if (n)
            rows[n_rows++] = cut_concat(b, cut->axis[1], row, n);
    }
    return n_rows ? cut_concat(b, cut->axis[0], rows, n_rows) : EDGE_NONE;
}

struct edge cut_ask(struct build *b, const struct edge *parts, int n)
{
    struct edge all = parts[0];
    for (int k = 1; k < n; k++)
        all = build_binary(b, "LogicalAnd", all, parts[k]);
    return all;
}

/* ---- variables ---- */

bool cut_is_possible(const struct node *node)
{
    const struct attr_value *local = node_attr(node, WORKER_LOCAL);
    return node_is(node, "Variable") && !(local && local->kind == ATTR_BOOL && local->b) &&
           shape_is_known(&node->outputs[0].shape);
}

const char **cut_names(struct rewrite *r, const struct node *node, int n)
{
    const char **names = arena_array(&r->arena, (size_t)n, sizeof *names);
    for (int k = 0; k < n; k++)
        names[k] = rewrite_part_name(r, node->name, k);
    return names;
}

struct edge *cut_variable(struct rewrite *r, const struct node *node, const struct partition *cut,
                          const char *const *names, const char *const *devices)
{
    const struct shape *whole = &node->outputs[0].shape;
    const char *shared = node_string(node, "shared_name");
    bool by_rows = cut->axis[0] == 0 && cut->axis[1] < 0;
    int n = cut->n[0] * cut->n[1];
    struct edge *parts = arena_array(&r->arena, (size_t)n, sizeof *parts);
    for (int k = 0; k < n; k++) {
        const struct shape shape = cut_shape(cut, whole, k);
        const struct area area = cut_area(cut, k);
        int64_t begin[SHAPE_RANK_MAX] = {0};
        for (int d = 0; d < 2; d++)
            if (cut->axis[d] >= 0)
                begin[cut->axis[d]] = area.from[d];
        const struct attr attrs[] = {
            {"shape", attr_shape(&shape)},
            {"shared_name",
             attr_string(*shared ? arena_printf(&r->arena, "%s/part_%d", shared, k) : "")},
            {SLICE_OF, attr_string(*shared ? shared : node->name)},
            {SLICE_SHAPE, attr_shape(whole)},
            {SLICE_OFFSET, by_rows ? attr_int(*begin) : attr_ints(begin, whole->rank)},
            {.name = NULL}};
        const char *device = devices ? devices[k] : NULL;
        parts[k] =
            rewrite_add_copy(r, &(struct rewrite_copy){node, k, names[k], device, NULL, 0, attrs});
    }
    return parts;
}
