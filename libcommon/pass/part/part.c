/* SPDX-License-Identifier: Apache-2.0
 *
 * The partitioner: first copies nodes to their parts, then connects them; then it says when values
 * are received.
 */
#include "pass/part/part.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/access.h"
#include "graph/access_nodes.h"
#include "graph/device_name.h"
#include "graph/frames.h"
#include "graph/join.h"
#include "pass/place/place.h"

typedef VEC(int) part_node_vec;

struct cutter {
    const struct graph *from;
    const struct part_estimates *estimates;
    struct parts *parts;
    struct frames *frames;
    int n;                   /* parts */
    int *part, *copy, *head; /* by node: its part, its copy there, its first crossing or -1 */
    struct part_loop *loops; /* by frame and part */
    int **constants;         /* by node and part: its copy plus 1; NULL: none yet */
    int *order, *position;   /* nodes in topological order; by node: its index there */
    int *implied, *seen;     /* by node: id + 1 of the node whose controls last marked it */
    part_node_vec todo;      /* stack of that search */
    const int *variable;     /* by node: the variable that it is or passes on; -1 */
    char *late;              /* by node: it reads a variable after a write that not all do */
    int n_made;              /* number of added nodes, for names */
    struct arena arena;
    struct error *err;
};

static struct graph *graph_of_part(const struct cutter *c, int part)
{
    return c->parts->parts.items[part].graph;
}

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
 * Which nodes read a variable after other writes than the node that they have it from. The order of
 * all reads and writes is found when it is known which nodes run (exec/run/divide.h). */

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
    struct graph *graph = graph_of_part(c, part);
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
        if (access_is_variable(c->from, other))
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
        crossing.also = arena_copy(&graph_of_part(c, crossing.to)->arena, crossing.also,
                                   (size_t)crossing.n_also * sizeof *crossing.also);
    const struct attr_value *attr = node_attr(node, "_wire");
    struct edge value = part_check_tasks(c, &crossing) ? EDGE_NONE : sent_value(c, &crossing);
    bool is_narrow = edge_exists(value) && attr && attr->kind == ATTR_TYPE &&
                     crossing.edge.slot != CONTROL_SLOT &&
                     graph_output(graph_of_part(c, crossing.from), value)->type == FLOAT32;
    if (is_narrow)
        value = (struct edge){add_cast(c, &crossing, crossing.from, value, attr->type), 0};
    if (!edge_exists(value))
        return EDGE_NONE;
    const struct node_output *output = graph_output(graph_of_part(c, crossing.from), value);
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
    bool variable = access_is_variable(c->from, edge);
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
    struct graph *graph = graph_of_part(c, to);
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
    struct graph *graph = graph_of_part(c, part);
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
            if (access_is_variable(c->from, node->inputs[k]) && !node_takes_ref(node, k))
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
        struct graph *graph = graph_of_part(c, i % c->n);
        if (!c->err->code)
            graph_set_input(graph, graph_node(graph, loop->merge), 1, next, c->err);
    }
    return c->err->code;
}

/* ---- receiving late, and in groups ----
 *
 * Receiving late (the 2015 white paper, section 5.2). A Recv has no inputs, so all would start with
 * the step, and received values would occupy memory until used. Here a step is simulated, in which
 * each device and link does one thing at a time. It shows when a value is needed, so when it must
 * be sent, and the Recv is made to run `_after` a node of its own part that is over by then.
 *
 * A plan without that node behaves as before. A Recv never waits for a node that comes after a
 * write: readers of the variable after the Recv would then also read it after the write. As the
 * simulated times are respected, the new edges close no cycle.
 *
 * Grouping small values: values of a few KiB from one task to another that exist at nearly the same
 * time share a group, as any message costs both ends some microseconds, whatever its size. A group
 * waits for its last member. So that no two values wait for each other, each node has a level, the
 * largest number of crossings before it, and members of a group are of one level: nodes that need a
 * member are of a higher one. Nodes that may wait for more than their edges say have no group:
 * those after a write, which waits for reads, and those after control flow.
 */

#define SMALL_BYTES 65536 /* sent along with its announcement */
#define ASSUMED_DIM 32
#define AHEAD 0.05 /* of the step: allowed error of the estimates */

#define MEMBER_BYTES_MAX 4096
#define GROUP_MAX 1024
#define MEMBER_WAIT_NS 1e5 /* longest wait of a value for others of its group, */
#define MEMBER_WAIT 0.125  /* or this part of the step */

/* The device that a part runs on. */
struct delay_device {
    struct device_name name;
    struct cost_rates rates;
    double speed;
};

/* A node of the source. */
struct delay_node {
    bool after_write;
    bool apart;           /* after a write or control flow */
    int level;            /* largest number of crossings before it */
    double start, finish; /* in the simulated step */
};

struct delayer {
    struct cutter *c;
    struct delay_device *devices; /* by part */
    struct delay_node *nodes;
    bool is_grouped; /* some values cross in a group */
    double *arrival; /* by crossing; < 0: not known yet */
    double *need;    /* by crossing: start of the first node that needs it */
    double *free_part, *free_link;
    double end;
};

static const struct part_crossing *crossing_at(const struct delayer *d, int i)
{
    return &d->c->parts->crossings.items[i];
}

static double bytes_of(const struct delayer *d, const struct part_crossing *crossing)
{
    const struct node *node = graph_node(d->c->from, crossing->edge.node);
    return crossing->edge.slot < 0 ? 0
                                   : cost_bytes(&node->outputs[crossing->edge.slot], ASSUMED_DIM);
}

static double way_ns(const struct delayer *d, const struct part_crossing *crossing)
{
    struct cost_way way = cost_way(&d->devices[crossing->from].name, &d->devices[crossing->to].name,
                                   d->c->estimates->cluster, d->c->estimates->costs);
    return way.latency + bytes_of(d, crossing) * way.per_byte;
}

/* ---- simulating a step ---- */

static int find_way(const struct delayer *d, struct edge edge, int to)
{
    if (d->c->part[edge.node] == to)
        return -1;
    for (int i = d->c->head[edge.node]; i >= 0; i = crossing_at(d, i)->next)
        if (crossing_at(d, i)->to == to && crossing_at(d, i)->edge.slot == edge.slot)
            return i;
    return -1;
}

/* Returns when the value is available. */
static double arrive(struct delayer *d, struct edge edge, const struct node *node)
{
    const struct cutter *c = d->c;
    int to = c->part[node->id], way = find_way(d, edge, to);
    double ready = d->nodes[edge.node].finish;
    if (way < 0)
        return ready;
    if (d->arrival[way] < 0) {
        double *link = &d->free_link[c->part[edge.node] * c->n + to];
        ready = ready > *link ? ready : *link;
        *link = d->arrival[way] = ready + way_ns(d, crossing_at(d, way));
    }
    return d->arrival[way];
}

/* ---- from the last transfer to the first ---- */

static int by_link_and_need(const void *a, const void *b, void *context)
{
    const struct delayer *d = context;
    int x = *(const int *)a, y = *(const int *)b;
    const struct part_crossing *p = crossing_at(d, x), *q = crossing_at(d, y);
    int link = p->from * d->c->n + p->to, other = q->from * d->c->n + q->to;
    if (link != other)
        return link < other ? -1 : 1;
    if (d->need[x] != d->need[y])
        return d->need[x] > d->need[y] ? -1 : 1;
    return x - y;
}

/* ---- groups ---- */

static bool can_join(const struct delayer *d, const struct part_crossing *crossing)
{
    const struct device_name *from = &d->devices[crossing->from].name;
    const struct device_name *to = &d->devices[crossing->to].name;
    const struct node *node = graph_node(d->c->from, crossing->edge.node);
    const struct node_output *output =
        node->outputs + (crossing->edge.slot < 0 ? 0 : crossing->edge.slot);
    return crossing->edge.slot >= 0 && crossing->frame == FRAME_ROOT && crossing->reader < 0 &&
           crossing->bytes >= 0 && crossing->bytes <= MEMBER_BYTES_MAX &&
           !d->nodes[node->id].apart && !output->is_ref && output->type != STRING &&
           output->type != RESOURCE && !strcmp(from->type, "CPU") && !strcmp(to->type, "CPU") &&
           !device_name_same_task(from, to);
}

static int by_way_and_time(const void *a, const void *b, void *context)
{
    const struct delayer *d = context;
    const struct part_crossing *x = crossing_at(d, *(const int *)a);
    const struct part_crossing *y = crossing_at(d, *(const int *)b);
    const struct delay_node *p = &d->nodes[x->edge.node], *q = &d->nodes[y->edge.node];
    int keys[] = {x->from - y->from, x->to - y->to, p->level - q->level,
                  (p->finish > q->finish) - (p->finish < q->finish)};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i])
            return keys[i];
    return *(const int *)a - *(const int *)b;
}

/* Sets the group's name at both ends of each member: the name of the first Send, extended. */
static int name_group(struct delayer *d, const int *members, size_t n)
{
    struct cutter *c = d->c;
    const char *name = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct part_crossing *crossing = crossing_at(d, members[i]);
        struct graph *to = graph_of_part(c, crossing->to), *from = graph_of_part(c, crossing->from);
        struct node *recv = graph_node(to, crossing->recv);
        struct node *send = graph_find(from, node_string(recv, "tensor_name"));
        name = name ? name : arena_printf(&c->arena, "%s/group", send->name);
        struct attr attr = {NODE_GROUP, attr_string(name)};
        if (graph_set_attr(to, recv, &attr, c->err) || graph_set_attr(from, send, &attr, c->err))
            return c->err->code;
    }
    d->is_grouped = true;
    return 0;
}

static int find_groups(struct delayer *d)
{
    double wait = d->end * MEMBER_WAIT > MEMBER_WAIT_NS ? d->end * MEMBER_WAIT : MEMBER_WAIT_NS;
    part_node_vec may = VEC_INIT;
    for (size_t i = 0; i < d->c->parts->crossings.n; i++)
        if (can_join(d, crossing_at(d, (int)i)))
            vec_push_in(&d->c->arena, &may, (int)i);
    if (may.n)
        qsort_r(may.items, may.n, sizeof *may.items, by_way_and_time, d);
    for (size_t first = 0, i = 1; i <= may.n; i++) {
        const struct part_crossing *x = crossing_at(d, may.items[first]);
        const struct part_crossing *y = i < may.n ? crossing_at(d, may.items[i]) : NULL;
        if (y && y->from == x->from && y->to == x->to &&
            d->nodes[y->edge.node].level == d->nodes[x->edge.node].level &&
            d->nodes[y->edge.node].finish <= d->nodes[x->edge.node].finish + wait &&
            (int64_t)(i - first) < GROUP_MAX)
            continue;
        if (i - first > 1 && name_group(d, may.items + first, i - first))
            break;
        first = i;
    }
    return d->c->err->code;
}

/* ---- the whole pass ---- */

/* The attribute names a node of the Recv's part. The plan ignores it if it closes a cycle. */
static int wait_after(struct cutter *c, const struct part_crossing *crossing, int node)
{
    const char **name = arena_alloc(&c->arena, sizeof *name);
    struct attr attr = {"_after", {.kind = ATTR_LIST_STRING, .n = 1, .strings = name}};
    struct graph *graph = graph_of_part(c, crossing->to);
    *name = graph_node(c->from, node)->name;
    return graph_set_attr(graph, graph_node(graph, crossing->recv), &attr, c->err);
}

/* Sets what each Recv waits for, and which small values cross in a group. */
static int part_delay(struct cutter *c)
{
    size_t n = c->from->nodes.n, n_crossings = c->parts->crossings.n, parts = (size_t)c->n;
    struct delayer d = {.c = c};
    d.nodes = arena_array(&c->arena, n + 1, sizeof *d.nodes);
    d.arrival = arena_array(&c->arena, n_crossings + 1, sizeof *d.arrival);
    d.need = arena_array(&c->arena, n_crossings + 1, sizeof *d.need);
    d.free_part = arena_array(&c->arena, parts + 1, sizeof *d.free_part);
    d.free_link = arena_array(&c->arena, parts * parts + 1, sizeof *d.free_link);
    for (size_t i = 0; i < n_crossings; i++) {
        d.arrival[i] = -1;
        d.need[i] = HUGE_VAL;
    }
    const struct cluster *cluster = c->estimates->cluster;
    d.devices = arena_array(&d.c->arena, (size_t)c->n + 1, sizeof *d.devices);
    for (int i = 0; i < c->n; i++) {
        struct delay_device *device = &d.devices[i];
        device->name = c->parts->parts.items[i].name;
        struct device_facts facts = cost_facts(&device->name, cluster, c->estimates->costs);
        device->rates = cost_rates_of(device->name.type, &facts);
        device->speed = facts.speed > 0 ? facts.speed : 1;
    }

    /* If a loop writes, the nodes after that write are not known: delay nothing. */
    graph_each_ordered(node, c->from, c->order) {
        struct delay_node *own = &d.nodes[node->id];
        for (int k = 0; k < node->n_inputs; k++)
            own->after_write |= node_writes_ref(node, k);
        own->apart = own->after_write || node_has(node, OP_CONTROL_FLOW);
        if (own->after_write && c->frames->frame[node->id] != FRAME_ROOT)
            return 0;
        for (int k = 0; k < node->n_inputs + node->n_controls; k++) {
            int from = node_dependency(node, k).node;
            int level = d.nodes[from].level + (c->part[from] != c->part[node->id]);
            own->after_write |= d.nodes[from].after_write;
            own->apart |= d.nodes[from].apart;
            own->level = level > own->level ? level : own->level;
        }
    }

    graph_each_ordered(node, c->from, c->order) {
        struct delay_node *own = &d.nodes[node->id];
        double *part = &d.free_part[c->part[node->id]], ready = *part;
        for (int j = 0; j < node->n_inputs + node->n_controls; j++) {
            struct edge edge = node_dependency(node, j);
            if (graph_is_back_edge(c->from, node, edge))
                continue;
            double there = arrive(&d, edge, node);
            ready = there > ready ? there : ready;
        }
        const struct delay_device *device = &d.devices[c->part[node->id]];
        double ns;
        if (!costs_find(c->estimates->costs, node, device->name.type, &ns))
            ns = cost_estimate_ns(&(struct cost_query){node, c->from, ASSUMED_DIM}, &device->rates);
        own->start = ready;
        own->finish = ready + ns / device->speed;
        if (own->finish > ready)
            *part = own->finish;
        d.end = own->finish > d.end ? own->finish : d.end;
        for (int j = 0; j < node->n_inputs; j++) {
            int way = find_way(&d, node->inputs[j], c->part[node->id]);
            if (way >= 0 && ready < d.need[way])
                d.need[way] = ready;
        }
    }
    if (find_groups(&d))
        return c->err->code;

    /* The value needed last on a link is considered first: earlier ones must leave the link free
     * for it. */
    part_node_vec ways = VEC_INIT;
    for (int i = 0; i < (int)c->parts->crossings.n; i++)
        if (d.arrival[i] >= 0 && d.need[i] <= d.end)
            vec_push_in(&c->arena, &ways, i);
    if (ways.n)
        qsort_r(ways.items, ways.n, sizeof *ways.items, by_link_and_need, &d);
    double leave = 0;
    for (size_t i = 0; i < ways.n; i++) {
        const struct part_crossing *crossing = crossing_at(&d, ways.items[i]);
        const struct part_crossing *before = crossing_at(&d, ways.items[i ? i - 1 : 0]);
        bool same = i && before->from == crossing->from && before->to == crossing->to;
        double need = d.need[ways.items[i]], ns = way_ns(&d, crossing);
        leave = (same && leave < need ? leave : need) - ns;
        double margin = ns > d.end * AHEAD ? ns : d.end * AHEAD;
        if (crossing->frame == FRAME_ROOT && crossing->reader < 0 &&
            bytes_of(&d, crossing) > SMALL_BYTES) {
            /* Find the node of the part that is over last before that time; with groups, one that
             * comes after no grouped value of a higher level. */
            int best = -1, level = d.nodes[crossing->edge.node].level + 1;
            for (int j = 0; j < (int)c->from->nodes.n; j++) {
                const struct delay_node *node = &d.nodes[j];
                if (c->part[j] == crossing->to && !node->after_write &&
                    (!d.is_grouped || (!node->apart && node->level <= level)) &&
                    c->frames->frame[j] == FRAME_ROOT && node->finish > node->start &&
                    node->finish <= leave - margin &&
                    (best < 0 || node->finish > d.nodes[best].finish))
                    best = j;
            }
            if (best >= 0 && wait_after(c, crossing, best))
                break;
        }
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
            struct graph *graph = graph_of_part(c, c->part[edge.node]);
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
                graph_add_entry(graph_of_part(c, part), entry->name, edges, n);
        }
    }
    vec_each(alias, &from->aliases) {
        struct edge edge = {c->copy[alias->edge.node], alias->edge.slot};
        if (graph_add_alias(graph_of_part(c, c->part[alias->edge.node]), alias->name, edge, c->err))
            return c->err->code;
    }
    for (int part = 0; part < c->n; part++)
        graph_add_history(graph_of_part(c, part), from);
    return 0;
}

/* ---- connecting ---- */

static int connect_node(struct cutter *c, const struct node *node)
{
    int part = c->part[node->id];
    struct node *copy = graph_node(graph_of_part(c, part), c->copy[node->id]);
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
        struct node *copy = graph_add_copy(graph_of_part(c, c->part[node->id]), node);
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
        if (graph_check(graph_of_part(c, part), c->err))
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
