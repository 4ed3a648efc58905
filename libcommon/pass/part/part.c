/* SPDX-License-Identifier: Apache-2.0
 *
 * The partitioner: first copies nodes to their parts, then connects them.
 */
#include "pass/part/part.h"

#include <string.h>

#include "graph/access_nodes.h"
#include "graph/join.h"
#include "pass/part/part_private.h"
#include "pass/place/place.h"

/* ---- names: entries, aliases and provenance, in the parts that have the nodes ---- */

static int connect_names(struct cutter *c)
{
    const struct graph *from = c->from;
    vec_each(entry, &from->entries) {
        /* Does the entry have fetches on several parts? */
        int first = -1;
        bool spread = false;
        for (int k = 0; k < entry->n_edges; k++) {
            if (entry->edges[k].slot == CONTROL_SLOT)
                continue;
            first = first < 0 ? c->part[entry->edges[k].node] : first;
            spread |= c->part[entry->edges[k].node] != first;
        }
        for (int k = 0; spread && k < entry->n_edges; k++) {
            if (entry->edges[k].slot == CONTROL_SLOT)
                continue;
            /* Note at the node that an entry fetches it, and at which position: joining the parts
             * restores the order. */
            struct edge edge = entry->edges[k];
            struct graph *graph = part_at(c, c->part[edge.node]);
            struct node *node = graph_node(graph, c->copy[edge.node]);
            const struct attr_value *known = node_attr(node, JOIN_ORDER);
            int n = known ? known->n : 0;
            const char **notes = arena_array(&c->arena, (size_t)n + 1, sizeof *notes);
            for (int j = 0; j < n; j++)
                notes[j] = known->strings[j];
            notes[n] = arena_printf(&c->arena, "%s:%d:%d", entry->name, edge.slot, k);
            struct attr_value value = {.kind = ATTR_LIST_STRING, .n = n + 1, .strings = notes};
            if (graph_set_attr(graph, node, &(struct attr){JOIN_ORDER, value}, c->err))
                return c->err->code;
        }

        struct edge *edges = arena_array(&c->arena, (size_t)entry->n_edges + 1, sizeof *edges);
        for (int part = 0; part < c->n; part++) {
            int n = 0;
            for (int k = 0; k < entry->n_edges; k++)
                if (c->part[entry->edges[k].node] == part)
                    edges[n++] = (struct edge){c->copy[entry->edges[k].node], entry->edges[k].slot};
            if (n)
                graph_add_entry(part_at(c, part), entry->name, edges, n);
        }
    }
    vec_each(alias, &from->aliases) {
        struct edge edge = {c->copy[alias->edge.node], alias->edge.slot};
        if (graph_add_alias(part_at(c, c->part[alias->edge.node]), alias->name, edge, c->err))
            return c->err->code;
    }
    for (int part = 0; part < c->n; part++)
        graph_add_history(part_at(c, part), from);
    return 0;
}

/* ---- parts and copies ---- */

int part_add(struct cutter *c, int part, const struct node *near, const struct node_spec *spec)
{
    struct graph *graph = part_at(c, part);
    struct node_spec named = *spec;
    do
        named.name = arena_printf(&c->arena, "%s/%s_%d", near->name, spec->op, ++c->n_made);
    while (graph_find(c->from, named.name));
    named.assigned = c->parts->parts.items[part].device;
    named.file = near->file;
    named.line = near->line;
    struct node *node = graph_add(graph, &named, c->err);
    return node ? node->id : -1;
}

/* ---- crossings ---- */

/* Reads a variable on its own part once everything else that the reader needs is there. */
static struct edge add_read(struct cutter *c, int part, const struct part_crossing *crossing)
{
    const struct node *node = graph_node(c->from, crossing->reader);
    struct edge variable = {c->copy[crossing->edge.node], crossing->edge.slot};
    int *after =
        arena_array(&c->arena, (size_t)(node->n_inputs + node->n_controls) + 1, sizeof *after);
    struct node_spec spec = {.op = "Identity", .inputs = &variable, .n_inputs = 1};
    int n = node_is(node, "Merge") ? 0 : node->n_inputs + node->n_controls;
    spec.controls = after;
    for (int i = 0; i < n; i++) {
        struct edge other = node_dependency(node, i);
        if (part_is_variable(c->from, other))
            continue;
        if (part_variable(c, other) >= 0) /* its value is read for the reader, too */
            other.slot = CONTROL_SLOT;
        struct edge here = part_edge(c, other, part, node);
        if (c->err->code)
            break;
        after[spec.n_controls++] = here.node;
    }
    return c->err->code ? EDGE_NONE : (struct edge){part_add(c, part, node, &spec), 0};
}

/* Returns the value to send, on the part that has it. */
static struct edge sent_value(struct cutter *c, const struct part_crossing *crossing)
{
    const struct node *node = graph_node(c->from, crossing->edge.node);
    struct edge value = {c->copy[node->id], crossing->edge.slot};
    if (value.slot == CONTROL_SLOT) {
        /* An empty tensor that exists once the nodes have run. */
        int *after = arena_array(&c->arena, (size_t)crossing->n_also + 1, sizeof *after);
        after[0] = c->copy[node->id];
        for (int i = 0; i < crossing->n_also; i++)
            after[i + 1] = c->copy[crossing->also[i]];
        struct shape empty = shape_vector(0);
        struct tensor nothing = tensor_borrow(FLOAT32, &empty, NULL);
        struct attr attrs[] = {{"dtype", attr_type(FLOAT32)}, {"value", attr_tensor(&nothing)}};
        struct node_spec spec = {.op = "Const",
                                 .attrs = attrs,
                                 .n_attrs = 2,
                                 .controls = after,
                                 .n_controls = crossing->n_also + 1};
        return (struct edge){part_add(c, crossing->from, node, &spec), 0};
    }
    if (crossing->reader >= 0)
        return add_read(c, crossing->from, crossing);
    return value;
}

/* Returns the Merge of the control loop, which runs once per iteration; -1 outside of loops. */
static int pace(const struct cutter *c, int frame, int part)
{
    return frame == FRAME_ROOT ? -1 : part_loop(c, frame, part)->merge;
}

static int add_send(struct cutter *c, const struct part_crossing *crossing, struct edge value)
{
    const struct graph_part *parts = c->parts->parts.items;
    int after = pace(c, crossing->frame, crossing->from);
    int priority = node_priority(graph_node(c->from, crossing->edge.node));
    bool is_ranked = priority && crossing->edge.slot != CONTROL_SLOT;
    struct attr attrs[] = {{"tensor_name", attr_string("")},
                           {"send_device", attr_string(parts[crossing->from].device)},
                           {"recv_device", attr_string(parts[crossing->to].device)},
                           {"_priority", attr_int(priority)}};
    struct node_spec spec = {.op = "Send",
                             .inputs = &value,
                             .n_inputs = 1,
                             .attrs = attrs,
                             .n_attrs = 3 + is_ranked,
                             .controls = &after,
                             .n_controls = after >= 0};
    int send = part_add(c, crossing->from, graph_node(c->from, crossing->edge.node), &spec);
    if (send < 0)
        return -1;
    struct graph *graph = part_at(c, crossing->from);
    struct node *node = graph_node(graph, send);
    attrs[0].value = attr_string(node->name);
    return graph_set_attr(graph, node, &attrs[0], c->err) ? -1 : send;
}

static int add_recv(struct cutter *c, const struct part_crossing *crossing, int send,
                    const struct node_output *output)
{
    const struct graph_part *parts = c->parts->parts.items;
    int after = pace(c, crossing->frame, crossing->to);
    const char *name = graph_node(part_at(c, crossing->from), send)->name;
    struct attr attrs[] = {{"tensor_name", attr_string(name)},
                           {"send_device", attr_string(parts[crossing->from].device)},
                           {"recv_device", attr_string(parts[crossing->to].device)},
                           {"tensor_type", attr_type(output->type)},
                           {"shape", attr_shape(&output->shape)}};
    struct node_spec spec = {
        .op = "Recv", .attrs = attrs, .n_attrs = 5, .controls = &after, .n_controls = after >= 0};
    return part_add(c, crossing->to, graph_node(c->from, crossing->edge.node), &spec);
}

static int add_cast(struct cutter *c, const struct part_crossing *crossing, int part,
                    struct edge value, enum dtype type)
{
    struct attr attr = {"DstT", attr_type(type)};
    struct node_spec spec = {
        .op = "Cast", .inputs = &value, .n_inputs = 1, .attrs = &attr, .n_attrs = 1};
    return part_add(c, part, graph_node(c->from, crossing->edge.node), &spec);
}

static const struct node_output *output_of(const struct cutter *c, int part, struct edge edge)
{
    return &graph_node(part_at(c, part), edge.node)->outputs[edge.slot];
}

/* Returns whether what has crossed is what would cross. */
static bool is_crossing(const struct part_crossing *known, const struct part_crossing *wanted)
{
    return known->edge.slot == wanted->edge.slot && known->to == wanted->to &&
           known->reader == wanted->reader && known->n_also == wanted->n_also &&
           (!known->n_also ||
            !memcmp(known->also, wanted->also, (size_t)known->n_also * sizeof *known->also));
}

struct edge part_cross(struct cutter *c, const struct part_crossing *wanted)
{
    const struct node *node = graph_node(c->from, wanted->edge.node);
    struct part_crossing crossing = *wanted;
    for (int i = c->head[node->id]; i >= 0; i = c->parts->crossings.items[i].next) {
        const struct part_crossing *known = &c->parts->crossings.items[i];
        if (is_crossing(known, wanted))
            return (struct edge){known->value, wanted->edge.slot < 0 ? CONTROL_SLOT : 0};
    }
    if (node_is(node, "NextIteration") ||
        (node_is(node, "Enter") && !node_bool(node, "is_constant"))) {
        error_set(c->err, ERR_DATA, "%s: %s: can only be used on the device of its Merge",
                  node_text(node), node->op->def->name);
        return EDGE_NONE;
    }
    if (crossing.n_also)
        crossing.also = arena_copy(&part_at(c, crossing.to)->arena, crossing.also,
                                   (size_t)crossing.n_also * sizeof *crossing.also);
    const struct attr_value *attr = node_attr(node, "_wire");
    struct edge value = part_check_tasks(c, &crossing) ? EDGE_NONE : sent_value(c, &crossing);
    bool is_narrow = edge_exists(value) && attr && attr->kind == ATTR_TYPE &&
                     crossing.edge.slot != CONTROL_SLOT &&
                     output_of(c, crossing.from, value)->type == FLOAT32;
    if (is_narrow)
        value = (struct edge){add_cast(c, &crossing, crossing.from, value, attr->type), 0};
    int send = edge_exists(value) ? add_send(c, &crossing, value) : -1;
    if (send < 0)
        return EDGE_NONE;
    struct node_output output = *output_of(c, crossing.from, value);
    crossing.bytes = shape_bytes(&output.shape, output.type);
    crossing.recv = crossing.value = add_recv(c, &crossing, send, &output);
    if (crossing.recv >= 0 && is_narrow)
        crossing.value =
            add_cast(c, &crossing, crossing.to, (struct edge){crossing.recv, 0}, FLOAT32);
    if (crossing.value < 0)
        return EDGE_NONE;
    crossing.next = c->head[crossing.edge.node]; /* by now others may have crossed */
    c->head[crossing.edge.node] = (int)c->parts->crossings.n;
    vec_push(&c->parts->crossings, crossing);
    return (struct edge){crossing.value, crossing.edge.slot < 0 ? CONTROL_SLOT : 0};
}

struct edge part_edge(struct cutter *c, struct edge edge, int part, const struct node *reader)
{
    const struct node *node = graph_node(c->from, edge.node);
    if (c->part[edge.node] == part)
        return (struct edge){c->copy[edge.node], edge.slot};
    if (place_is_copied(node))
        return (struct edge){part_constant(c, node, part).node, edge.slot};
    if (node_is(node, "LoopCond")) {
        struct part_loop *loop = part_loop(c, c->frames->frame[edge.node], part);
        if (edge_exists(loop->condition))
            return (struct edge){loop->condition.node, edge.slot};
    }

    int frame = c->frames->frame[reader->id];
    bool variable = part_is_variable(c->from, edge);
    /* A variable's value must be sent to this reader alone in three cases: in a loop, where it is
     * read in each iteration; after writes that not all readers follow; and where a branch may skip
     * the reader. It is then read when the reader could run. */
    const int *condition = c->frames->condition;
    bool alone = (variable && frame != FRAME_ROOT) ||
                 (part_variable(c, edge) >= 0 &&
                  (c->late[reader->id] ||
                   (!node_is(reader, "Merge") && condition[reader->id] != condition[edge.node])));
    return part_cross(
        c, &(struct part_crossing){.edge = edge,
                                   .from = c->part[edge.node],
                                   .to = part,
                                   .frame = variable ? frame : frames_output(c->frames, node),
                                   .reader = alone ? reader->id : -1});
}

/* ---- connecting ---- */

static int connect_node(struct cutter *c, const struct node *node)
{
    int part = c->part[node->id];
    struct node *copy = graph_node(part_at(c, part), c->copy[node->id]);
    for (int i = 0; i < node->n_inputs; i++) {
        const struct node *from = graph_node(c->from, node->inputs[i].node);
        if (c->part[from->id] != part) {
            /* A resource or a reference is usable only in the task that made it. */
            const struct node_output *output = &from->outputs[node->inputs[i].slot];
            if (output->type == RESOURCE || (output->is_ref && node_takes_ref(node, i)))
                return error_set(c->err, ERR_DATA, "%s: must be on the device of '%s', %s",
                                 node_text(node), from->name, from->assigned);
        }
        copy->inputs[i] = part_edge(c, node->inputs[i], part, node);
        if (!edge_exists(copy->inputs[i]))
            return c->err->code;
    }
    return part_connect_controls(c, node);
}

static int cut(struct cutter *c)
{
    const struct graph *from = c->from;
    graph_each(node, c->from) {
        if (!*node->assigned)
            return error_set(c->err, ERR_DATA, "%s: has no device; tf-place gives it one",
                             node_text(node));
        if (node_is(node, "Send") || node_is(node, "Recv"))
            return error_set(c->err, ERR_DATA, "%s: the graph was cut before", node_text(node));
        int part = 0;
        while (part < c->n && strcmp(c->parts->parts.items[part].device, node->assigned) != 0)
            part++;
        if (part == c->n) {
            vec_push(&c->parts->parts,
                     ((struct graph_part){node->assigned, graph_new(c->from->registry)}));
            c->n++;
        }
        c->part[node->id] = part;
    }
    if (part_find_loops(c))
        return c->err->code;
    graph_each(node, from) {
        struct node *copy = graph_add_copy(part_at(c, c->part[node->id]), node);
        copy->assigned = c->parts->parts.items[c->part[node->id]].device;
        c->copy[node->id] = copy->id;
    }
    part_find_late(c);
    if (part_make_loops(c))
        return c->err->code;
    for (size_t i = 0; i < from->nodes.n; i++)
        if (connect_node(c, graph_node(from, (int)i)))
            return c->err->code;
    if (part_delay(c) || connect_names(c))
        return c->err->code;
    for (int part = 0; part < c->n; part++)
        if (graph_check(part_at(c, part), c->err))
            return c->err->code;
    return 0;
}

int part_graph(const struct graph *graph, const struct part_estimates *estimates,
               struct parts *parts, struct error *err)
{
    const struct part_estimates none = {0};
    struct cutter c = {.from = graph,
                       .estimates = estimates ? estimates : &none,
                       .parts = parts,
                       .arena = ARENA_INIT,
                       .err = err};
    size_t n = graph->nodes.n;
    memset(parts, 0, sizeof *parts);
    c.part = arena_array(&c.arena, n + 1, sizeof *c.part);
    c.copy = arena_array(&c.arena, n + 1, sizeof *c.copy);
    c.head = arena_array(&c.arena, n + 1, sizeof *c.head);
    c.constants = arena_array(&c.arena, n + 1, sizeof *c.constants);
    c.implied = arena_array(&c.arena, n + 1, sizeof *c.implied);
    c.seen = arena_array(&c.arena, n + 1, sizeof *c.seen);
    c.order = arena_array(&c.arena, n + 1, sizeof *c.order);
    c.position = arena_array(&c.arena, n + 1, sizeof *c.position);
    memset(c.head, -1, n * sizeof *c.head);
    int code = graph_order(graph, c.order, err);
    if (!code)
        code = frames_new(graph, &c.frames, err);
    if (!code) {
        for (size_t i = 0; i < n; i++)
            c.position[c.order[i]] = (int)i;
        code = cut(&c);
        frames_free(c.frames);
    }
    if (code)
        parts_release(parts);
    arena_release(&c.arena);
    return code;
}

void parts_release(struct parts *parts)
{
    for (size_t i = 0; i < parts->parts.n; i++)
        graph_free(parts->parts.items[i].graph);
    vec_release(&parts->parts);
    vec_release(&parts->crossings);
}
