/* SPDX-License-Identifier: Apache-2.0
 *
 * Reduces crossings: constants that every part makes itself, control edges, and nodes that stand
 * for many tasks.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/access_nodes.h"
#include "graph/device_name.h"
#include "pass/part/part_private.h"
#include "pass/place/place.h"

/* ---- constants ---- */

struct edge part_constant(struct cutter *c, const struct node *node, int part)
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

/* ---- control edges ---- */

static bool is_in_loop(const struct cutter *c, int node)
{
    return c->frames->frame[node] != FRAME_ROOT ||
           frames_output(c->frames, graph_node(c->from, node)) != FRAME_ROOT;
}

/* The node waits for a node of another part. */
struct wait {
    int part, index, node;
};

static int by_part(const void *a, const void *b)
{
    const struct wait *x = a, *y = b;
    return x->part != y->part ? x->part - y->part : x->index - y->index;
}

/* Connects a node to all that it waits for; the waits for one part cross as one. */
static int connect_waits(struct cutter *c, const struct node *node, struct wait *waits, int n)
{
    int to = c->part[node->id];
    struct graph *graph = part_at(c, to);
    qsort(waits, (size_t)n, sizeof *waits, by_part);
    for (int i = 0, next; i < n && !c->err->code; i = next) {
        int *all = arena_array(&c->arena, (size_t)n, sizeof *all);
        for (next = i; next < n && waits[next].part == waits[i].part; next++)
            all[next - i] = waits[next].node;
        struct part_crossing over = {.edge = {all[0], CONTROL_SLOT},
                                     .also = all + 1,
                                     .n_also = next - i - 1,
                                     .from = waits[i].part,
                                     .to = to,
                                     .frame = FRAME_ROOT,
                                     .reader = -1};
        struct edge here = over.n_also ? part_cross(c, &over) : part_edge(c, over.edge, to, node);
        if (edge_exists(here))
            graph_add_control(graph, graph_node(graph, c->copy[node->id]), here.node);
    }
    return c->err->code;
}

int part_connect_controls(struct cutter *c, const struct node *node)
{
    int part = c->part[node->id], n = 0, code = 0;
    struct graph *graph = part_at(c, part);
    struct wait *waits = arena_array(&c->arena, (size_t)node->n_controls + 1, sizeof *waits);
    for (int i = 0; i < node->n_controls && !code; i++) {
        int before = node->controls[i];
        if (c->part[before] != part && !is_in_loop(c, node->id) && !is_in_loop(c, before) &&
            !place_is_copied(graph_node(c->from, before)) && !node_has(node, OP_CONTROL_FLOW)) {
            waits[n++] = (struct wait){c->part[before], i, before};
            continue;
        }
        struct edge over = part_edge(c, (struct edge){before, CONTROL_SLOT}, part, node);
        if (edge_exists(over))
            graph_add_control(graph, graph_node(graph, c->copy[node->id]), over.node);
        code = c->err->code;
    }
    if (n) {
        /* Mark as `implied` all nodes that the node comes after in any case: through stateful
         * nodes, which nobody feeds and no plan leaves out. Nodes ordered before all its controls
         * are skipped, so that of a long chain only the piece between the node and its controls is
         * walked. */
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
        if (c->implied[waits[i].node] != node->id + 1)
            waits[n_left++] = waits[i];
    if (n_left && !code)
        code = connect_waits(c, node, waits, n_left);
    return code;
}

int part_check_tasks(const struct cutter *c, const struct part_crossing *crossing)
{
    const char *from = c->parts->parts.items[crossing->from].device;
    const char *to = c->parts->parts.items[crossing->to].device;
    struct device_name a, b;
    if (device_name_parse(&a, from, c->err) || device_name_parse(&b, to, c->err))
        return c->err->code;
    if (strcmp(a.job, b.job) != 0 || device_task_is_many(a.task) == device_task_is_many(b.task))
        return 0;
    return error_set(c->err, ERR_DATA,
                     "%s: is on %s, but what takes it on %s: both must ask for one in each task, "
                     "or for the same task",
                     node_text(graph_node(c->from, crossing->edge.node)), from, to);
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

int part_find_loops(struct cutter *c)
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

int part_make_loops(struct cutter *c)
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
