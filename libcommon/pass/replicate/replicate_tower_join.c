/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that cross between the towers and the nodes that exist once.
 *
 * Fed rows are split as evenly as possible: row i of n belongs to tower (i * towers / n). So values
 * with a row for each of them are combined by Concat; means over rows by the mean of the towers',
 * weighted by their numbers of rows; for all other values the first tower's is used.
 *
 * A tower's weight is its rows divided by those of the first tower, and the weighted sum is divided
 * by all rows over those of the first: if all towers have equally many, this is the same mean, to
 * the bit, that workers take of as many pushes. A 16-bit sum may overflow where the mean does not:
 * there the weights are shares of all rows.
 */
#include <string.h>

#include "graph/group.h"
#include "pass/replicate/replicate_tower.h"

static struct build builder(struct towers *t, const char *what, const char *name, int k)
{
    struct replicator *r = t->r;
    return (struct build){.graph = r->to,
                          .scope = arena_printf(&r->to->arena, "%ss/%s/%s", t->prefix, what, name),
                          .device = t->devices[k],
                          .err = r->err};
}

/* ---- feeds ---- */

static struct edge rows_of(struct build *b, struct edge value)
{
    struct edge inputs[] = {build_unary(b, "Shape", value), build_ints(b, (int64_t[]){0}, 1),
                            build_ints(b, (int64_t[]){1}, 1), build_ints(b, (int64_t[]){1}, 1)};
    struct attr shrink = {"shrink_axis_mask", attr_int(1)};
    return build_op(b, "StridedSlice", inputs, 4, &shrink, 1);
}

struct feed_parts *towers_feed(struct towers *t, int feed)
{
    if (t->parted[feed])
        return t->parted[feed];
    struct replicator *r = t->r;
    struct feed_parts *parted = arena_alloc(&r->arena, sizeof *parted);
    struct build b = builder(t, "part", graph_node(r->from, feed)->name, 0);
    struct edge value = {r->copy[feed], 0};
    parted->rows = rows_of(&b, value);
    parted->parts = arena_array(&r->arena, (size_t)t->n, sizeof *parted->parts);
    struct edge begin = build_ints(&b, (int64_t[]){0}, 1);
    for (int k = 0; k < t->n; k++) {
        /* The first row i of n with floor(i N / n) = k + 1, that is ceil((k + 1) n / N), as a
         * vector: thus the shapes of all parts are known if that of the feed is. */
        struct edge scaled = build_binary(&b, "Mul", parted->rows, build_scalar(&b, INT32, k + 1));
        struct edge up = build_binary(&b, "Add", scaled, build_scalar(&b, INT32, t->n - 1));
        struct edge first = build_binary(&b, "FloorDiv", up, build_scalar(&b, INT32, t->n));
        struct edge end = build_op(&b, "Pack", &first, 1, NULL, 0);
        struct edge slice[] = {value, begin, end, build_ints(&b, (int64_t[]){1}, 1)};
        parted->parts[k] = build_op(&b, "StridedSlice", slice, 4, NULL, 0);
        begin = end;
    }
    for (int i = 0; i < N_WEIGHTS; i++)
        parted->weights[i] = arena_array(&r->arena, (size_t)t->n + 1, sizeof *parted->weights[i]);
    parted->check = -1;
    return t->parted[feed] = parted;
}

/* Returns a node that checks that each tower has rows: no rows have no mean. */
static int check_rows(struct towers *t, int feed)
{
    struct feed_parts *parted = towers_feed(t, feed);
    struct build b = builder(t, "has_rows_for_all", graph_node(t->r->from, feed)->name, 0);
    struct edge n = build_scalar(&b, INT32, t->n);
    struct edge inputs[] = {build_binary(&b, "GreaterEqual", parted->rows, n), parted->rows, n};
    if (parted->check < 0)
        parted->check = build_op(&b, "Assert", inputs, 3, NULL, 0).node;
    return parted->check;
}

static enum weights weights_for(enum dtype type)
{
    return type == FLOAT32 ? WEIGHTS_FLOAT32 : type == FLOAT64 ? WEIGHTS_FLOAT64 : WEIGHTS_SHARES;
}

/* The weight of tower k or, for k = n, of all together. */
static struct edge weight(struct towers *t, int feed, int k, enum weights kind)
{
    struct feed_parts *parted = towers_feed(t, feed);
    int *made = &parted->weights[kind][k];
    if (*made)
        return replicate_out(*made);
    int check = check_rows(t, feed);
    struct build b = builder(t, "weight", graph_node(t->r->from, feed)->name, 0);
    if (check < 0)
        return EDGE_NONE;
    enum dtype type = kind == WEIGHTS_FLOAT64 ? FLOAT64 : FLOAT32;
    struct edge rows = k < t->n ? rows_of(&b, parted->parts[k]) : parted->rows;
    struct edge of = kind == WEIGHTS_SHARES ? parted->rows : rows_of(&b, parted->parts[0]);
    rows = build_cast(&b, rows, type);
    of = build_cast(&b, of, type);
    b.controls = &check;
    b.n_controls = 1;
    struct edge share = build_binary(&b, "Div", rows, of);
    *made = share.node;
    return share;
}

/* ---- results ---- */

/* The device of nodes made from a tower's value: the tower's, or the value's stage. */
static const char *own_device(struct towers *t, const struct node *node, int k)
{
    return t->pipeline ? towers_copy_device(t, node, k) : t->devices[k];
}

/* A tower's value times its weight, on the tower's device. */
static struct edge weighed(struct towers *t, const struct node *node, struct edge value, int k)
{
    struct build b = builder(t, "weigh", node->name, k);
    b.device = own_device(t, node, k);
    enum dtype type = build_type(&b, value);
    enum weights kind = weights_for(type);
    struct edge by = weight(t, t->feed[node->id], k, kind);
    if (kind == WEIGHTS_SHARES && edge_exists(by))
        by = build_cast(&b, by, type);
    struct edge product = edge_exists(by) ? build_binary(&b, "Mul", value, by) : EDGE_NONE;
    if (node_attr(node, "_gradient"))
        replicate_mark_sent(t->r, product.node, 0);
    return product;
}

/* Gradients are combined beside their variable. */
static struct build joiner(struct towers *t, const struct node *node, const char *what)
{
    const struct node *variable = replicate_variable_of(t->r, node);
    struct build b = builder(t, what, node->name, 0);
    b.device = variable ? towers_device(t, variable) : own_device(t, node, 0);
    return b;
}

/* Gradients of micro-batches are added as they come, which leaves two values. The sum after each
 * one counts as the end of its backward item. */
static int accumulate(struct towers *t, const struct node *node, struct edge *values)
{
    struct replicator *r = t->r;
    struct pipeline *p = t->pipeline;
    const struct node *variable = replicate_variable_of(t->r, node);
    struct build b = joiner(t, node, "add");
    int stage = pipeline_unit(p, node->id)->stage;
    bool is_here = variable && pipeline_unit(p, variable->id)->stage == stage;
    for (int k = 0; k + 1 < t->n && !r->err->code; k++) {
        if (k)
            values[0] = build_binary(&b, "Add", values[0], values[k]);
        if (is_here)
            vec_push_in(&r->arena, &p->ends, ((struct item_end){stage, k, values[0].node}));
    }
    values[1] = values[t->n - 1];
    return 2;
}

static struct edge joined(struct towers *t, const struct node *node, int slot)
{
    struct replicator *r = t->r;
    const struct node_output *output = &node->outputs[slot];
    const struct attr_value *mark = node_attr(node, "_gradient");
    const struct attr_value *role = node_attr(node, "_gradient_role");
    const struct node *variable = replicate_variable_of(r, node);
    enum weights kind = weights_for(output->type);
    /* Rows are concatenated; a mean over all rows, and each row's contribution to one, is weighted;
     * for other values the first tower's is used. */
    bool is_of_rows = mark ? strstr(replicate_reduction(node, output->type), "rows") != NULL
                           : output->shape.rank > 0 && output->shape.dims[0] == SHAPE_UNKNOWN;
    bool weigh = dtype_is_floating(output->type) && t->feed[node->id] >= 0 && (mark || !is_of_rows);
    int n = is_of_rows || weigh ? t->n : 1, n_values = 0;
    struct edge *values = arena_array(&r->arena, (size_t)n + 1, sizeof *values);
    struct build b = builder(t, "join", node->name, 0);
    if (is_of_rows)
        values[n_values++] = build_scalar(&b, INT32, 0);
    for (int k = 0; k < n && !r->err->code; k++) {
        struct edge value = {t->copies[k][node->id], slot};
        values[n_values++] = weigh ? weighed(t, node, value, k) : value;
    }
    if (weigh && !is_of_rows && t->pipeline && mark && !r->err->code)
        n_values = accumulate(t, node, values);
    b = joiner(t, node, "join");
    struct node_spec spec = {.op = is_of_rows ? "Concat"
                                   : weigh    ? "AddN"
                                              : "Identity",
                             .name = slot ? arena_printf(&r->to->arena, "%s/%d", b.scope, slot)
                                          : node->name,
                             .inputs = values,
                             .n_inputs = n_values,
                             .device = b.device,
                             .file = node->file,
                             .line = node->line};
    struct edge mean[2];
    if (weigh && kind != WEIGHTS_SHARES && !r->err->code) {
        /* The weighted sum, beside the node made from it. */
        b.colocate = variable ? arena_printf(&r->to->arena, "loc:@%s", variable->name) : NULL;
        mean[0] = build_op(&b, spec.op, values, n_values, NULL, 0);
        mean[1] = weight(t, t->feed[node->id], t->n, kind);
        spec.op = "Div";
        spec.inputs = mean;
        spec.n_inputs = 2;
    }
    if (r->err->code)
        return EDGE_NONE;
    /* As in the source, a node's attributes mark a gradient as handed over. */
    struct attr attrs[3];
    spec.attrs = attrs;
    if (mark)
        attrs[spec.n_attrs++] = (struct attr){"_gradient", *mark};
    if (role)
        attrs[spec.n_attrs++] = (struct attr){"_gradient_role", *role};
    if (variable)
        attrs[spec.n_attrs++] = group_attr(&r->to->arena, variable->name);
    struct node *made = graph_add(r->to, &spec, r->err);
    if (made)
        pass_note(r->options->pass, made->name, "of all towers");
    return made ? replicate_out(made->id) : EDGE_NONE;
}

/* Adds a node after all copies of one, whose value is then taken. */
static int after_all(struct towers *t, const struct node *node)
{
    struct replicator *r = t->r;
    int *copies = arena_array(&r->arena, (size_t)t->n, sizeof *copies);
    for (int k = 0; k < t->n; k++)
        copies[k] = t->copies[k][node->id];
    struct node_spec spec = {
        .op = "NoOp",
        .name = node->n_outputs ? arena_printf(&r->to->arena, "%ss/all/%s", t->prefix, node->name)
                                : node->name,
        .controls = copies,
        .n_controls = t->n,
        .device = t->devices[0]};
    const struct node *all = graph_add(r->to, &spec, r->err);
    return all ? all->id : -1;
}

struct edge towers_whole(struct towers *t, struct edge edge)
{
    if (!edge_exists(edge))
        return EDGE_NONE;
    if (!t->towered[edge.node])
        return (struct edge){t->r->copy[edge.node], edge.slot};
    const struct node *node = graph_node(t->r->from, edge.node);
    bool waits = edge.slot == CONTROL_SLOT;
    int whole = edge_map_get(&t->whole_at, edge);
    if (whole < 0) {
        whole = waits ? after_all(t, node) : joined(t, node, edge.slot).node;
        edge_map_add(&t->whole_at, edge, whole);
    }
    return (struct edge){whole, waits ? CONTROL_SLOT : 0};
}
