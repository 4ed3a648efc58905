/* SPDX-License-Identifier: Apache-2.0
 *
 * In-graph replication: the part of the graph that computes with fed rows is copied into each
 * tower, which gets a part of the rows; one driver runs all towers. Their results are combined, and
 * the nodes that follow, above all the update, exist once.
 */
#include "pass/replicate/replicate_tower.h"

#include <string.h>

#include "graph/device_name.h"
#include "pass/part/part.h"

/* ---- the nodes of towers ----
 *
 * Nodes are in each tower if they depend on fed rows, but not on a gradient. Nodes after gradients,
 * above all the update, exist once and get the towers' combined values. A loop is in the towers as
 * a whole or not at all. */

struct tower_finder {
    struct towers *t;
    bool *looked_at;                 /* by node: some node or entry uses a value of it */
    bool *loop_towered, *loop_whole; /* by outermost frame */
};

static bool is_parted(const struct node *node)
{
    return node_is(node, "Placeholder") && node->outputs[0].shape.rank > 0 &&
           node->outputs[0].shape.dims[0] == SHAPE_UNKNOWN;
}

int towers_loop(const struct towers *t, const struct node *node)
{
    const struct frames *frames = t->frames;
    int frame = frames->frame[node->id];
    if (frame == FRAME_ROOT)
        frame = frames_output(frames, node);
    while (frame != FRAME_ROOT && frames->frames.items[frame].parent != FRAME_ROOT)
        frame = frames->frames.items[frame].parent;
    return frame;
}

/* A check that other nodes only wait for is made once, of the towers' combined values. */
static bool is_once(const struct tower_finder *f, const struct node *node)
{
    const struct replicator *r = f->t->r;
    return has(r, node->id, FACT_DOWN | FACT_UPDATE | FACT_INITIAL) ||
           part_written(r->from, node) || node_is(node, "Variable") ||
           (node_has(node, OP_CHECKS) && !f->looked_at[node->id]);
}

/* The node is in the towers if one that it depends on is; its feed is that of the first input with
 * one. */
static bool spread_to(struct tower_finder *f, const struct node *node)
{
    struct towers *t = f->t;
    int loop = towers_loop(t, node), *feed = &t->feed[node->id], before = *feed;
    if (is_parted(node) || is_once(f, node) || (loop && f->loop_whole[loop]))
        return false;
    bool needs = loop && f->loop_towered[loop];
    for (int i = 0; i < node->n_inputs + node->n_controls; i++) {
        int from = node_dependency(node, i).node;
        bool is_input = i < node->n_inputs;
        needs |= t->towered[from] || (is_input && is_parted(graph_node(t->r->from, from)));
        if (is_input && *feed < 0)
            *feed = t->feed[from];
    }
    if (!needs)
        *feed = before;
    bool news = needs && (!t->towered[node->id] || *feed != before);
    t->towered[node->id] |= needs;
    if (needs && loop && !f->loop_towered[loop])
        news = f->loop_towered[loop] = true;
    return news;
}

static int find_towered(struct towers *t)
{
    const struct graph *from = t->r->from;
    struct arena *arena = &t->r->arena;
    size_t n_frames = t->frames->frames.n;
    bool parted = false;
    graph_each(node, from) {
        t->feed[node->id] = is_parted(node) ? node->id : -1;
        if (node_is(node, "Placeholder") && node->outputs[0].shape.rank < 0)
            return error_set(t->r->err, ERR_DATA,
                             "%s: Placeholder: towers get a part of its rows or all of it, which "
                             "its shape has to tell",
                             node_text(node));
        parted |= is_parted(node) && has(t->r, node->id, FACT_NEEDED);
    }
    if (!parted)
        return error_set(t->r->err, ERR_DATA,
                         "nothing that the entry '%s' is fed has any number of rows (a first "
                         "dimension of -1), which towers could share",
                         t->r->entry->name);
    struct tower_finder f = {.t = t,
                             .looked_at = arena_array(arena, from->nodes.n + 1, sizeof(bool)),
                             .loop_towered = arena_array(arena, n_frames + 1, sizeof(bool)),
                             .loop_whole = arena_array(arena, n_frames + 1, sizeof(bool))};
    graph_each(node, from) {
        for (int k = 0; k < node->n_inputs; k++)
            f.looked_at[node->inputs[k].node] = true;
    }
    vec_each(entry, &from->entries) {
        for (int k = 0; k < entry->n_edges; k++)
            f.looked_at[entry->edges[k].node] |= entry->edges[k].slot != CONTROL_SLOT;
    }
    graph_each(node, from) {
        if (is_once(&f, node))
            f.loop_whole[towers_loop(t, node)] = true;
    }
    for (bool news = true; news;) { /* until no loop is added any more */
        news = false;
        graph_each_ordered(node, from, t->r->order)
            news |= spread_to(&f, node);
    }
    /* A stack that saves a loop's values for its gradient is in the towers with the loop. */
    graph_each(node, from) {
        for (int k = 0; t->towered[node->id] && k < node->n_inputs; k++) {
            int input = node->inputs[k].node;
            t->towered[input] |= node_makes_resource(graph_node(from, input));
        }
    }
    return 0;
}

/* ---- devices and names ---- */

const char *towers_name_device(struct towers *t, int k)
{
    struct replicator *r = t->r;
    const char *pattern = r->options->tower_device ? r->options->tower_device : WORKER_DEVICE;
    struct device_name name;
    struct error why = ERROR_INIT;
    const char *text = device_pattern_text(&r->arena, pattern, k);
    if (!text || device_name_parse(&name, text, &why)) {
        error_set(r->err, ERR_USAGE, "--towers '%s' is no device with a '*' for the tower's number",
                  pattern);
        return NULL;
    }
    t->shard = *name.job && !r->options->pipeline ? SHARD_DEVICE : "";
    return device_name_text(&r->to->arena, &name);
}

static const char *once_device(struct towers *t, const struct node *node)
{
    struct replicator *r = t->r;
    int stage =
        t->pipeline && !t->towered[node->id] ? pipeline_unit(t->pipeline, node->id)->stage : -1;
    bool is_source = node_has(node, OP_SOURCE) && !node_is(node, "Variable");
    if (stage >= 0 && !is_source)
        return replicate_device(r, node, t->pipeline->devices[stage]);
    if (has(r, node->id, FACT_SHARD | FACT_INITIAL | FACT_UPDATE))
        return replicate_device(r, node, t->shard);
    return node_has(node, OP_SOURCE) ? replicate_device(r, node, t->devices[0]) : node->device;
}

static const char *copy_device(struct towers *t, const struct node *node, int k)
{
    if (t->pipeline)
        return t->pipeline->devices[pipeline_unit(t->pipeline, node->id)->stage];
    return has(t->r, node->id, FACT_SHARD) ? t->shard : t->devices[k];
}

/* ---- values that cross between the towers and the nodes that exist once ----
 *
 * Fed rows are split as evenly as possible: row i of n belongs to tower (i * towers / n). So values
 * with a row for each of them are combined by Concat; means over rows by the mean of the towers',
 * weighted by their numbers of rows; for all other values the first tower's is used.
 *
 * A tower's weight is its rows divided by those of the first tower, and the weighted sum is divided
 * by all rows over those of the first: if all towers have equally many, this is the same mean, to
 * the bit, that workers take of as many pushes. A 16-bit sum may overflow where the mean does not:
 * there the weights are shares of all rows. */

/* The weights of towers' means: of one of two types, or shares for 16-bit types. */
enum weights { WEIGHTS_FLOAT32, WEIGHTS_FLOAT64, WEIGHTS_SHARES, N_WEIGHTS };

/* A feed that is split. */
struct feed_parts {
    struct edge *parts;      /* in the result, by tower: its rows */
    int *weights[N_WEIGHTS]; /* nodes by tower, then of all; 0: not yet */
    struct edge rows;        /* in the result: the number of rows */
    int check;               /* node of the result that checks that each tower has some; -1: not
                              * yet */
};

static struct build builder(struct towers *t, const char *what, const char *name, int k)
{
    struct replicator *r = t->r;
    return (struct build){.graph = r->to,
                          .scope = arena_printf(&r->to->arena, "%ss/%s/%s", t->prefix, what, name),
                          .device = t->devices[k],
                          .err = r->err};
}

static struct edge rows_of(struct build *b, struct edge value)
{
    struct edge inputs[] = {build_unary(b, "Shape", value), build_ints(b, (int64_t[]){0}, 1),
                            build_ints(b, (int64_t[]){1}, 1), build_ints(b, (int64_t[]){1}, 1)};
    struct attr shrink = {"shrink_axis_mask", attr_int(1)};
    return build_op(b, "StridedSlice", inputs, 4, &shrink, 1);
}

static struct feed_parts *split_feed(struct towers *t, int feed)
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

static enum weights weights_for(enum dtype type)
{
    return type == FLOAT32 ? WEIGHTS_FLOAT32 : type == FLOAT64 ? WEIGHTS_FLOAT64 : WEIGHTS_SHARES;
}

/* The weight of tower k or, for k = n, of all together. */
static struct edge weight(struct towers *t, int feed, int k, enum weights kind)
{
    struct feed_parts *parted = split_feed(t, feed);
    int *made = &parted->weights[kind][k];
    const char *name = graph_node(t->r->from, feed)->name;
    if (*made)
        return replicate_out(*made);
    /* Each tower has rows: no rows have no mean. */
    struct build checks = builder(t, "has_rows_for_all", name, 0);
    struct edge n = build_scalar(&checks, INT32, t->n);
    struct edge has = build_binary(&checks, "GreaterEqual", parted->rows, n);
    const struct edge inputs[] = {has, parted->rows, n};
    if (parted->check < 0)
        parted->check = build_op(&checks, "Assert", inputs, 3, NULL, 0).node;
    struct build b = builder(t, "weight", name, 0);
    if (t->r->err->code)
        return EDGE_NONE;
    enum dtype type = kind == WEIGHTS_FLOAT64 ? FLOAT64 : FLOAT32;
    struct edge rows = k < t->n ? rows_of(&b, parted->parts[k]) : parted->rows;
    struct edge of = kind == WEIGHTS_SHARES ? parted->rows : rows_of(&b, parted->parts[0]);
    rows = build_cast(&b, rows, type);
    of = build_cast(&b, of, type);
    b.controls = &parted->check;
    b.n_controls = 1;
    struct edge share = build_binary(&b, "Div", rows, of);
    *made = share.node;
    return share;
}

/* The device of nodes made from a tower's value: the tower's, or the value's stage. */
static const char *own_device(struct towers *t, const struct node *node, int k)
{
    return t->pipeline ? copy_device(t, node, k) : t->devices[k];
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
    b.device = variable ? once_device(t, variable) : own_device(t, node, 0);
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
        if (waits) { /* a node after all copies */
            node_list copies = VEC_INIT;
            for (int k = 0; k < t->n; k++)
                vec_push_in(&t->r->arena, &copies, t->copies[k][node->id]);
            struct node_spec spec = {
                .op = "NoOp",
                .name = node->n_outputs
                            ? arena_printf(&t->r->to->arena, "%ss/all/%s", t->prefix, node->name)
                            : node->name,
                .controls = copies.items,
                .n_controls = t->n,
                .device = t->devices[0]};
            const struct node *all = graph_add(t->r->to, &spec, t->r->err);
            whole = all ? all->id : -1;
        } else {
            whole = joined(t, node, edge.slot).node;
        }
        edge_map_add(&t->whole_at, edge, whole);
    }
    return (struct edge){whole, waits ? CONTROL_SLOT : 0};
}

/* ---- copies ---- */

static const char *in_tower(struct towers *t, const char *name, int k)
{
    return arena_printf(&t->r->to->arena, "%s_%d/%s", t->prefix, k, name);
}

static const char *leader_in_tower(void *context, const struct node *leader, int k)
{
    struct towers *t = context;
    return t->towered[leader->id] ? in_tower(t, leader->name, k) : leader->name;
}

/* Each tower has its own frames and stacks, and all towers but the first have their own random
 * numbers: two rows of a batch must not get the same. Gradients are not handed over in towers. */
static bool tower_attr(void *context, const struct node *node, int k, struct attr *attr)
{
    struct towers *t = context;
    if (!strcmp(attr->name, "frame_name") || !strcmp(attr->name, "stack_name"))
        attr->value = attr_string(in_tower(t, attr->value.s, k));
    else if (!strcmp(attr->name, "seed2") && k > 0)
        attr->value = attr_int((int64_t)(hash_text(in_tower(t, node->name, k)) >> 1));
    return strcmp(attr->name, "_gradient") != 0 && strcmp(attr->name, "_gradient_role") != 0;
}

static struct edge in_one(struct replicator *r, const struct node *reader, struct edge edge, int k)
{
    struct towers *t = r->towers;
    (void)reader;
    if (!edge_exists(edge))
        return EDGE_NONE;
    if (is_parted(graph_node(r->from, edge.node)) && edge.slot != CONTROL_SLOT)
        return split_feed(t, edge.node)->parts[k];
    return (struct edge){t->towered[edge.node] ? t->copies[k][edge.node] : r->copy[edge.node],
                         edge.slot};
}

/* Nodes that exist once wait for all copies of a node, not for a node after them. */
static struct edge in_none(struct replicator *r, const struct node *reader, struct edge edge, int k)
{
    (void)reader, (void)k;
    return edge.slot == CONTROL_SLOT && r->towers->towered[edge.node]
               ? EDGE_NONE
               : towers_whole(r->towers, edge);
}

/* ---- the graph ---- */

static int copy_tower(struct towers *t)
{
    struct replicator *r = t->r;
    const struct copy_rules rules = {r->from, r->to, leader_in_tower, tower_attr, t};
    graph_each_ordered(node, r->from, r->order) {
        for (int k = 0; t->towered[node->id] && k < t->n; k++) {
            const char *device = copy_device(t, node, k);
            struct node_spec spec = {.name = in_tower(t, node->name, k),
                                     .device = replicate_device(r, node, device)};
            spec.attrs = copy_attrs(&rules, node, k, NULL, &spec.n_attrs);
            struct node *copy = replicate_add_mapped(r, node, &spec, in_one, k);
            t->copies[k][node->id] = copy->id;
            if (has(r, node->id, FACT_SHARD) && replicate_is_lookup(r, node))
                replicate_mark_sent(r, copy->id, 0);
            pass_note(r->options->pass, copy->name, *device ? device : "tower");
        }
        if (!t->towered[node->id]) {
            const struct node_spec spec = {.name = node->name, .device = once_device(t, node)};
            struct node *copy = replicate_add_mapped(r, node, &spec, in_none, 0);
            for (int i = 0; i < node->n_controls; i++)
                for (int k = 0; t->towered[node->controls[i]] && k < t->n; k++)
                    replicate_wait(r, replicate_out(copy->id), t->copies[k][node->controls[i]]);
            r->copy[node->id] = copy->id;
            if (replicate_is_read(r, node))
                replicate_mark_sent(r, copy->id, 0);
        }
        if (r->err->code)
            return r->err->code;
    }
    replicate_close(r);
    return r->err->code;
}

int replicate_towers(struct replicator *r)
{
    struct arena *arena = &r->arena;
    struct towers *t = r->towers = arena_alloc(arena, sizeof *t);
    size_t n = r->from->nodes.n + 1;
    t->r = r;
    t->n = r->options->towers;
    if (replicate_find(r))
        return r->err->code;
    t->devices = arena_array(arena, (size_t)t->n, sizeof *t->devices);
    t->copies = arena_array(arena, (size_t)t->n, sizeof *t->copies);
    t->towered = arena_array(arena, n, sizeof *t->towered);
    t->feed = arena_array(arena, n, sizeof *t->feed);
    t->parted = arena_array(arena, n, sizeof *t->parted);
    for (int k = 0; k < t->n; k++) {
        if (!(t->devices[k] = towers_name_device(t, k)))
            return r->err->code;
        t->copies[k] = arena_array(arena, n, sizeof **t->copies);
        memset(t->copies[k], -1, n * sizeof **t->copies);
    }
    t->prefix = graph_free_prefix(&r->to->arena, r->from, "tower");
    if (frames_new(r->from, &t->frames, r->err) || find_towered(t) ||
        (r->options->pipeline && pipeline_find(t)))
        return r->err->code;
    /* Nodes that exist once, without a stage of their own, are on the first stage. */
    for (int k = 0; t->pipeline && k < t->n; k++)
        t->devices[k] = t->pipeline->devices[0];
    if (copy_tower(t))
        return r->err->code;
    /* Nodes that a script has named can be fetched by name. */
    graph_each(node, r->from) {
        if (t->towered[node->id] && node->n_outputs && !strchr(node->name, '/') &&
            !node_has(node, OP_CONTROL_FLOW) && !t->frames->frame[node->id] && !r->err->code)
            towers_whole(t, replicate_out(node->id));
    }
    return !r->err->code && t->pipeline ? pipeline_order(t) : r->err->code;
}
