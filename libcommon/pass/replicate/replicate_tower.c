/* SPDX-License-Identifier: Apache-2.0
 *
 * In-graph replication: the part of the graph that computes with fed rows is copied into each
 * tower, which gets a part of the rows; one driver runs all towers. Their results are combined, and
 * the nodes that follow, above all the update, exist once.
 */
#include "pass/replicate/replicate_tower.h"

#include <string.h>

#include "base/memory.h"
#include "graph/device_name.h"
#include "graph/prefix.h"
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

bool towers_is_parted(const struct node *node)
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
    if (towers_is_parted(node) || is_once(f, node) || (loop && f->loop_whole[loop]))
        return false;
    bool needs = loop && f->loop_towered[loop];
    for (int i = 0; i < node->n_inputs + node->n_controls; i++) {
        int from = node_dependency(node, i).node;
        bool is_input = i < node->n_inputs;
        needs |= t->towered[from] || (is_input && towers_is_parted(graph_node(t->r->from, from)));
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
        t->feed[node->id] = towers_is_parted(node) ? node->id : -1;
        if (node_is(node, "Placeholder") && node->outputs[0].shape.rank < 0)
            return error_set(t->r->err, ERR_DATA,
                             "%s: Placeholder: towers get a part of its rows or all of it, which "
                             "its shape has to tell",
                             node_text(node));
        parted |= towers_is_parted(node) && has(t->r, node->id, FACT_NEEDED);
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
    bool news = true;
    while (news) { /* until no loop is added any more */
        news = false;
        graph_each_ordered(node, from, t->r->order)
            news |= spread_to(&f, node);
    }
    /* A stack that saves a loop's values for its gradient is in the towers with the loop. */
    for (size_t i = 0; i < from->nodes.n; i++)
        for (int k = 0; f.t->towered[i] && k < graph_node(from, (int)i)->n_inputs; k++) {
            int input = graph_node(from, (int)i)->inputs[k].node;
            f.t->towered[input] |= node_makes_resource(graph_node(from, input));
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

const char *towers_device(struct towers *t, const struct node *node)
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

const char *towers_copy_device(struct towers *t, const struct node *node, int k)
{
    if (t->pipeline)
        return t->pipeline->devices[pipeline_unit(t->pipeline, node->id)->stage];
    return has(t->r, node->id, FACT_SHARD) ? t->shard : t->devices[k];
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
    if (towers_is_parted(graph_node(r->from, edge.node)) && edge.slot != CONTROL_SLOT)
        return towers_feed(t, edge.node)->parts[k];
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

static int add_once(struct towers *t, const struct node *node)
{
    struct replicator *r = t->r;
    const struct node_spec spec = {.name = node->name, .device = towers_device(t, node)};
    struct node *copy = replicate_add_mapped(r, node, &spec, in_none, 0);
    for (int i = 0; i < node->n_controls; i++)
        for (int k = 0; t->towered[node->controls[i]] && k < t->n; k++)
            replicate_wait(r, replicate_out(copy->id), t->copies[k][node->controls[i]]);
    r->copy[node->id] = copy->id;
    if (replicate_is_read(r, node))
        replicate_mark_sent(r, copy->id, 0);
    return r->err->code;
}

/* ---- the graph ---- */

static int open_towers(struct towers *t)
{
    struct replicator *r = t->r;
    struct arena *arena = &r->arena;
    size_t n = r->from->nodes.n + 1;
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
    return frames_new(r->from, &t->frames, r->err);
}

static int copy_tower(struct towers *t)
{
    struct replicator *r = t->r;
    const struct copy_rules rules = {r->from, r->to, leader_in_tower, tower_attr, t};
    graph_each_ordered(node, r->from, r->order) {
        for (int k = 0; t->towered[node->id] && k < t->n; k++) {
            const char *device = towers_copy_device(t, node, k);
            struct node_spec spec = {.name = in_tower(t, node->name, k),
                                     .device = replicate_device(r, node, device)};
            spec.attrs = copy_attrs(&rules, node, k, NULL, &spec.n_attrs);
            struct node *copy = replicate_add_mapped(r, node, &spec, in_one, k);
            t->copies[k][node->id] = copy->id;
            if (has(r, node->id, FACT_SHARD) && replicate_is_lookup(r, node))
                replicate_mark_sent(r, copy->id, 0);
            pass_note(r->options->pass, copy->name, *device ? device : "tower");
        }
        if (r->err->code || (!t->towered[node->id] && add_once(t, node)))
            return r->err->code;
    }
    replicate_close(r);
    return r->err->code;
}

int replicate_towers(struct replicator *r)
{
    struct towers *t = arena_alloc(&r->arena, sizeof *t);
    t->r = r;
    t->n = r->options->towers;
    r->towers = t;
    if (replicate_find(r) || open_towers(t) || find_towered(t) ||
        (r->options->pipeline && pipeline_find(t)))
        return r->err->code;
    /* Nodes that exist once, without a stage of their own, are on the first stage. */
    for (int k = 0; t->pipeline && k < t->n; k++)
        t->devices[k] = t->pipeline->devices[0];
    if (copy_tower(t))
        return r->err->code;
    /* Nodes that a script has named can be fetched by name. */
    for (size_t i = 0; i < r->from->nodes.n && !r->err->code; i++) {
        const struct node *node = graph_node(r->from, (int)i);
        if (t->towered[i] && node->n_outputs && !strchr(node->name, '/') &&
            !node_has(node, OP_CONTROL_FLOW) && !t->frames->frame[i])
            towers_whole(t, (struct edge){(int)i, 0});
    }
    return !r->err->code && t->pipeline ? pipeline_order(t) : r->err->code;
}
