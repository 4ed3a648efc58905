/* SPDX-License-Identifier: Apache-2.0
 *
 * The partitioner: first copies nodes to their parts, then connects them.
 */
#include "pass/part/part.h"

#include <limits.h>
#include <string.h>

#include "base/memory.h"
#include "graph/access_nodes.h"
#include "graph/device_name.h"
#include "graph/join.h"
#include "pass/part/part_private.h"
#include "pass/place/place.h"

/* A loop on one of the several devices that it is on. */
struct part_loop {
    bool here;
    int enter, merge;      /* of the control loop: nodes of the part */
    struct edge condition; /* the LoopCond there */
};

static struct part_loop *part_loop(const struct cutter *c, int frame, int part)
{
    return &c->loops[frame * c->n + part];
}

static struct edge part_edge(struct cutter *c, struct edge edge, int part,
                             const struct node *reader);

/* ---- variables ----
 *
 * These functions find the nodes that take a variable itself, rather than its value, or change it;
 * and nodes that read a variable after other writes than the node that they have it from. The order
 * of all reads and writes is found when it is known which nodes run (exec/run/divide.h). */

bool part_is_variable(const struct graph *graph, struct edge edge)
{
    const struct node *from = graph_node(graph, edge.node);
    return edge.slot >= 0 && !from->n_inputs && from->outputs[edge.slot].is_ref;
}

const struct node *part_written(const struct graph *graph, const struct node *node)
{
    if (node_has(node, OP_READS_REF | OP_CONTROL_FLOW | OP_UNINITIALIZED) &&
        !node_has(node, OP_OVERWRITES))
        return NULL;
    for (int i = 0; i < node->n_inputs; i++)
        if (edge_exists(node->inputs[i]) && node_takes_ref(node, i) &&
            part_is_variable(graph, node->inputs[i]))
            return graph_node(graph, node->inputs[i].node);
    return NULL;
}

/* A node and the one it has a variable from: their accesses; the second also counts as a read. */
struct read_source {
    int reader, from;
};
typedef VEC(struct read_source) taking_vec;

static int add_access(struct access_graph *graph, int node, int variable)
{
    struct access access = {.variable = variable, .node = node};
    vec_push(&graph->accesses, access);
    return (int)graph->accesses.n - 1;
}

static void part_find_late(struct cutter *c)
{
    size_t n = c->from->nodes.n;
    struct access_graph graph = {.n = (int)n,
                                 .frame = c->frames->frame,
                                 .parent = c->frames->parents,
                                 .n_frames = (int)c->frames->frames.n};
    taking_vec takings = VEC_INIT;
    c->variable = access_variables(c->from, &c->arena);
    c->late = arena_alloc(&c->arena, n + 1);
    graph_each(node, c->from) {
        access_add_node(&graph, c->from, c->variable, node);
        for (int k = 0; k < node->n_inputs; k++) {
            int variable = access_variable_at(c->from, c->variable, node->inputs[k]);
            if (variable < 0 || node_takes_ref(node, k))
                continue;
            struct read_source taking = {add_access(&graph, node->id, variable),
                                         add_access(&graph, node->inputs[k].node, variable)};
            vec_push_in(&c->arena, &takings, taking);
        }
    }
    /* A reader is late if it follows other writes than the node that it has the variable from. */
    int *counts = access_count_writes(&graph);
    vec_each(taking, &takings) {
        if (counts[taking->reader] != counts[taking->from])
            c->late[graph.accesses.items[taking->reader].node] = 1;
    }
    mem_free(counts);
    access_graph_release(&graph);
}

/* ---- parts and copies ---- */

/* A name after a node of the source, and its purpose. */
static const char *new_name(struct cutter *c, const struct node *near, const char *op)
{
    const char *name;
    do
        name = arena_printf(&c->arena, "%s/%s_%d", near->name, op, ++c->n_made);
    while (graph_find(c->from, name));
    return name;
}

/* Adds a node to a part, for `near` of the source; -1 on failure. Inferred attributes, and a name,
 * may be left out. */
static int part_add(struct cutter *c, int part, const struct node *near,
                    const struct node_spec *spec)
{
    struct graph *graph = part_at(c, part);
    struct node_spec named = *spec;
    named.name = spec->name ? spec->name : new_name(c, near, spec->op);
    named.assigned = c->parts->parts.items[part].device;
    named.file = near->file;
    named.line = near->line;
    struct node *node = graph_add(graph, &named, c->err);
    return node ? node->id : -1;
}

/* A constant, which each part that needs it makes itself. */
static struct edge part_constant(struct cutter *c, const struct node *node, int part)
{
    int **copies = &c->constants[node->id];
    struct attr attrs[] = {{"dtype", *node_attr(node, "dtype")},
                           {"value", *node_attr(node, "value")}};
    struct node_spec spec = {.op = "Const", .attrs = attrs, .n_attrs = 2};
    if (!*copies)
        *copies = arena_array(&c->arena, (size_t)c->n + 1, sizeof **copies);
    if (!(*copies)[part])
        (*copies)[part] = part_add(c, part, node, &spec) + 1;
    return (struct edge){(*copies)[part] - 1, 0};
}

/* ERR_DATA if one end is in each task of a job and the other only in one of them: a worker that
 * drives its own steps takes no part in another's. */
static int part_check_tasks(const struct cutter *c, const struct part_crossing *crossing)
{
    const struct graph_part *from = &c->parts->parts.items[crossing->from];
    const struct graph_part *to = &c->parts->parts.items[crossing->to];
    if (strcmp(from->name.job, to->name.job) != 0 ||
        device_task_is_many(from->name.task) == device_task_is_many(to->name.task))
        return 0;
    return error_set(c->err, ERR_DATA,
                     "%s: is on %s, but what takes it on %s: both must ask for one in each task, "
                     "or for the same task",
                     node_text(graph_node(c->from, crossing->edge.node)), from->device, to->device);
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
        /* the reader also reads its value */
        if (access_variable_at(c->from, c->variable, other) >= 0)
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

/* Sends a value from part to part; returns the Recv, or -1 on failure. */
static int add_transfer(struct cutter *c, const struct part_crossing *crossing, struct edge value)
{
    const struct graph_part *from = &c->parts->parts.items[crossing->from];
    const struct graph_part *to = &c->parts->parts.items[crossing->to];
    const struct node *node = graph_node(c->from, crossing->edge.node);
    const struct node_output *output = graph_output(from->graph, value);
    int sender = pace(c, crossing->frame, crossing->from), priority = node_priority(node);
    int receiver = pace(c, crossing->frame, crossing->to);
    const char *name = new_name(c, node, "Send");
    const struct attr sent[] = {{"tensor_name", attr_string(name)},
                                {"send_device", attr_string(from->device)},
                                {"recv_device", attr_string(to->device)},
                                {"_priority", attr_int(priority)}};
    const struct attr received[] = {sent[0],
                                    sent[1],
                                    sent[2],
                                    {"tensor_type", attr_type(output->type)},
                                    {"shape", attr_shape(&output->shape)}};
    const struct node_spec send = {.op = "Send",
                                   .name = name,
                                   .inputs = &value,
                                   .n_inputs = 1,
                                   .attrs = sent,
                                   .n_attrs = priority && crossing->edge.slot >= 0 ? 4 : 3,
                                   .controls = &sender,
                                   .n_controls = sender >= 0};
    const struct node_spec recv = {.op = "Recv",
                                   .attrs = received,
                                   .n_attrs = 5,
                                   .controls = &receiver,
                                   .n_controls = receiver >= 0};
    return part_add(c, crossing->from, node, &send) < 0 ? -1
                                                        : part_add(c, crossing->to, node, &recv);
}

static int add_cast(struct cutter *c, const struct part_crossing *crossing, int part,
                    struct edge value, enum dtype type)
{
    struct attr attr = {"DstT", attr_type(type)};
    struct node_spec spec = {
        .op = "Cast", .inputs = &value, .n_inputs = 1, .attrs = &attr, .n_attrs = 1};
    return part_add(c, part, graph_node(c->from, crossing->edge.node), &spec);
}

/* Returns whether a known crossing is the wanted one. */
static bool is_crossing(const struct part_crossing *known, const struct part_crossing *wanted)
{
    return known->edge.slot == wanted->edge.slot && known->to == wanted->to &&
           known->reader == wanted->reader && known->n_also == wanted->n_also &&
           (!known->n_also ||
            !memcmp(known->also, wanted->also, (size_t)known->n_also * sizeof *known->also));
}

/* Returns the edge's counterpart on the part that it crosses to; for CONTROL_SLOT, a node to wait
 * for, which stands for all nodes of the crossing. */
static struct edge part_cross(struct cutter *c, const struct part_crossing *wanted)
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
        node_refuse(node, c->err, "can only be used on the device of its Merge");
        return EDGE_NONE;
    }
    if (crossing.n_also)
        crossing.also = arena_copy(&part_at(c, crossing.to)->arena, crossing.also,
                                   (size_t)crossing.n_also * sizeof *crossing.also);
    const struct attr_value *attr = node_attr(node, "_wire");
    struct edge value = part_check_tasks(c, &crossing) ? EDGE_NONE : sent_value(c, &crossing);
    bool is_narrow = edge_exists(value) && attr && attr->kind == ATTR_TYPE &&
                     crossing.edge.slot != CONTROL_SLOT &&
                     graph_output(part_at(c, crossing.from), value)->type == FLOAT32;
    if (is_narrow)
        value = (struct edge){add_cast(c, &crossing, crossing.from, value, attr->type), 0};
    if (!edge_exists(value))
        return EDGE_NONE;
    const struct node_output *output = graph_output(part_at(c, crossing.from), value);
    crossing.bytes = shape_bytes(&output->shape, output->type);
    crossing.recv = crossing.value = add_transfer(c, &crossing, value);
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

/* The value, in a part, of an edge of the source that `reader` needs; for CONTROL_SLOT, a node to
 * wait for. EDGE_NONE on failure. */
static struct edge part_edge(struct cutter *c, struct edge edge, int part,
                             const struct node *reader)
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
                 (access_variable_at(c->from, c->variable, edge) >= 0 &&
                  (c->late[reader->id] ||
                   (!node_is(reader, "Merge") && condition[reader->id] != condition[edge.node])));
    return part_cross(
        c, &(struct part_crossing){.edge = edge,
                                   .from = c->part[edge.node],
                                   .to = part,
                                   .frame = variable ? frame : frames_output(c->frames, node),
                                   .reader = alone ? reader->id : -1});
}

/* ---- control edges ---- */

static bool is_in_loop(const struct cutter *c, int node)
{
    return c->frames->frame[node] != FRAME_ROOT ||
           frames_output(c->frames, graph_node(c->from, node)) != FRAME_ROOT;
}

/* Connects a node to nodes of other parts; those of one part cross as one. */
static int connect_waits(struct cutter *c, const struct node *node, const int *waits, int n)
{
    int to = c->part[node->id];
    struct graph *graph = part_at(c, to);
    int *all = arena_array(&c->arena, (size_t)n + 1, sizeof *all);
    for (int from = 0; from < c->n && !c->err->code; from++) {
        int n_all = 0;
        for (int i = 0; i < n; i++)
            if (c->part[waits[i]] == from)
                all[n_all++] = waits[i];
        if (!n_all)
            continue;
        struct part_crossing over = {.edge = {all[0], CONTROL_SLOT},
                                     .also = all + 1,
                                     .n_also = n_all - 1,
                                     .from = from,
                                     .to = to,
                                     .frame = FRAME_ROOT,
                                     .reader = -1};
        struct edge here = part_cross(c, &over);
        if (edge_exists(here))
            graph_add_control(graph, graph_node(graph, c->copy[node->id]), here.node);
    }
    return c->err->code;
}

static int part_connect_controls(struct cutter *c, const struct node *node)
{
    int part = c->part[node->id], n = 0, code = 0;
    struct graph *graph = part_at(c, part);
    int *waits = arena_array(&c->arena, (size_t)node->n_controls + 1, sizeof *waits);
    for (int i = 0; i < node->n_controls && !code; i++) {
        int before = node->controls[i];
        if (c->part[before] != part && !is_in_loop(c, node->id) && !is_in_loop(c, before) &&
            !place_is_copied(graph_node(c->from, before)) && !node_has(node, OP_CONTROL_FLOW)) {
            waits[n++] = before;
            continue;
        }
        struct edge over = part_edge(c, (struct edge){before, CONTROL_SLOT}, part, node);
        if (edge_exists(over))
            graph_add_control(graph, graph_node(graph, c->copy[node->id]), over.node);
        code = c->err->code;
    }
    if (n) {
        /* Mark as `implied` all nodes that the node always comes after: those it reaches through
         * stateful nodes, which are never fed and which no plan leaves out. Nodes ordered before
         * all its controls are skipped, so that only the end of a long chain is walked, up to the
         * controls. */
        int stamp = node->id + 1, earliest = INT_MAX;
        for (int i = 0; i < node->n_controls; i++)
            if (c->position[node->controls[i]] < earliest)
                earliest = c->position[node->controls[i]];
        c->todo.n = 0;
        vec_push_in(&c->arena, &c->todo, node->id);
        while (c->todo.n) {
            const struct node *at = graph_node(c->from, vec_pop(&c->todo));
            for (int i = 0; i < at->n_inputs + at->n_controls; i++) {
                int before = node_dependency(at, i).node;
                const struct node *from = graph_node(c->from, before);
                if (at != node || i < at->n_inputs)
                    c->implied[before] = stamp;
                if (c->seen[before] == stamp || c->position[before] <= earliest ||
                    !node_has(from, OP_STATEFUL) || node_has(from, OP_CONTROL_FLOW))
                    continue;
                c->seen[before] = stamp;
                vec_push_in(&c->arena, &c->todo, before);
            }
        }
    }
    int n_left = 0;
    for (int i = 0; i < n; i++)
        if (c->implied[waits[i]] != node->id + 1)
            waits[n_left++] = waits[i];
    if (n_left && !code)
        code = connect_waits(c, node, waits, n_left);
    return code;
}

/* ---- loops over several devices ----
 *
 * Such a loop has a control loop on each of them,
 *
 *     Enter -> Merge -> Switch(LoopCond) -> NextIteration -> Merge
 *
 * whose Merge, alive once per iteration, starts the transfers there. */

static void mark_loop(struct cutter *c, int frame, int part)
{
    if (frame != FRAME_ROOT)
        part_loop(c, frame, part)->here = true;
}

static int part_find_loops(struct cutter *c)
{
    int n_frames = (int)c->frames->frames.n;
    c->loops = arena_array(&c->arena, (size_t)(n_frames * c->n) + 1, sizeof *c->loops);
    /* A loop variable's Enter and NextIteration must be on the device of its Merge: a Recv could
     * receive nothing in an iteration in which nothing is sent. */
    vec_each(v, &c->frames->variables) {
        if (v->merge >= 0 && v->enter >= 0)
            c->part[v->enter] = c->part[v->merge];
        if (v->merge >= 0 && v->next >= 0)
            c->part[v->next] = c->part[v->merge];
    }
    graph_each(node, c->from) {
        mark_loop(c, c->frames->frame[node->id], c->part[node->id]);
        mark_loop(c, frames_output(c->frames, node), c->part[node->id]);
        for (int k = 0; k < node->n_inputs; k++)
            if (part_is_variable(c->from, node->inputs[k]) && !node_takes_ref(node, k))
                mark_loop(c, c->frames->frame[node->id], c->part[node->inputs[k].node]);
    }
    for (int f = n_frames - 1; f > FRAME_ROOT; f--) {
        int n = 0;
        for (int part = 0; part < c->n; part++)
            n += part_loop(c, f, part)->here;
        bool several = n > 1;
        if (several && c->frames->frames.items[f].loop_cond < 0)
            return error_set(c->err, ERR_DATA,
                             "the loop '%s' is on several devices and has no LoopCond",
                             c->frames->frames.items[f].name);
        for (int part = 0; part < c->n; part++) {
            struct part_loop *loop = part_loop(c, f, part);
            if (several && loop->here) /* a nested loop: the outer one iterates there, too */
                mark_loop(c, c->frames->frames.items[f].parent, part);
            loop->here = loop->here && several;
        }
    }
    return 0;
}

/* ---- control loops ---- */

static const struct node *condition_of(const struct cutter *c, int frame)
{
    return graph_node(c->from, c->frames->frames.items[frame].loop_cond);
}

/* Adds a node of the i-th control loop; -1 once something has failed. */
static int add_to_loop(struct cutter *c, int i, struct node_spec spec)
{
    return c->err->code ? -1 : part_add(c, i % c->n, condition_of(c, i / c->n), &spec);
}

static void find_condition(struct cutter *c, int i)
{
    const struct node *condition = condition_of(c, i / c->n);
    struct part_loop *loop = &c->loops[i];
    loop->condition = (struct edge){c->copy[condition->id], 0};
    if (c->part[condition->id] == i % c->n)
        return;
    loop->condition = EDGE_NONE; /* while the original condition is requested */
    struct edge value = part_edge(c, (struct edge){condition->id, 0}, i % c->n, condition);
    int id =
        add_to_loop(c, i, (struct node_spec){.op = "LoopCond", .inputs = &value, .n_inputs = 1});
    loop->condition = (struct edge){id, 0};
}

static int part_make_loops(struct cutter *c)
{
    int n = (int)c->frames->frames.n * c->n;
    struct tensor zero = tensor_borrow(FLOAT32, &SHAPE_SCALAR, &(float){0});
    const struct attr anything[] = {{"dtype", attr_type(FLOAT32)}, {"value", attr_tensor(&zero)}};
    for (int i = 0; i < n; i++) {
        struct part_loop *loop = &c->loops[i];
        if (!loop->here)
            continue;
        /* An outermost control loop may be entered by any value. */
        const struct graph_frame *f = &c->frames->frames.items[i / c->n];
        struct node_spec start = {.op = "Const", .attrs = anything, .n_attrs = 2};
        struct edge data = {f->parent == FRAME_ROOT ? add_to_loop(c, i, start)
                                                    : part_loop(c, f->parent, i % c->n)->merge,
                            0};
        const struct attr attrs[] = {{"frame_name", attr_string(f->name)},
                                     {"parallel_iterations", attr_int(f->parallel_iterations)}};
        loop->enter = add_to_loop(
            c, i,
            (struct node_spec){
                .op = "Enter", .inputs = &data, .n_inputs = 1, .attrs = attrs, .n_attrs = 2});
        const struct edge inputs[] = {{loop->enter, 0}, EDGE_NONE};
        loop->merge =
            add_to_loop(c, i, (struct node_spec){.op = "Merge", .inputs = inputs, .n_inputs = 2});
    }
    for (int i = 0; i < n && !c->err->code; i++) {
        struct part_loop *loop = &c->loops[i];
        if (!loop->here)
            continue;
        find_condition(c, i);
        const struct edge steered[] = {{loop->merge, 0}, loop->condition};
        struct node_spec spec = {.op = "Switch", .inputs = steered, .n_inputs = 2};
        struct edge taken = {add_to_loop(c, i, spec), 1};
        spec = (struct node_spec){.op = "NextIteration", .inputs = &taken, .n_inputs = 1};
        struct edge next = {add_to_loop(c, i, spec), 0};
        struct graph *graph = part_at(c, i % c->n);
        if (!c->err->code)
            graph_set_input(graph, graph_node(graph, loop->merge), 1, next, c->err);
    }
    return c->err->code;
}

/* ---- names: entries, aliases and provenance, in the parts that have the nodes ---- */

static int connect_names(struct cutter *c)
{
    const struct graph *from = c->from;
    vec_each(entry, &from->entries) {
        /* Find whether the entry has fetches on several parts. */
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
            struct graph_part made = {.device = node->assigned};
            if (device_name_parse(&made.name, node->assigned, c->err))
                return c->err->code;
            made.graph = graph_new(c->from->registry);
            vec_push(&c->parts->parts, made);
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
    int **const by_node[] = {&c.part, &c.copy, &c.head, &c.implied, &c.seen, &c.order, &c.position};
    for (size_t i = 0; i < sizeof by_node / sizeof *by_node; i++)
        *by_node[i] = arena_array(&c.arena, n + 1, sizeof(int));
    c.constants = arena_array(&c.arena, n + 1, sizeof *c.constants);
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
