/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops over several devices. Each has a control loop on each of them,
 *
 *     Enter -> Merge -> Switch(LoopCond) -> NextIteration -> Merge
 *
 * whose Merge, alive once in every iteration, starts what is received and sent there.
 */
#include "base/memory.h"
#include "graph/access_nodes.h"
#include "pass/part/part_private.h"

/* ---- which loops are where ---- */

static void mark_loop(struct cutter *c, int frame, int part)
{
    if (frame != FRAME_ROOT)
        part_loop(c, frame, part)->here = true;
}

int part_find_loops(struct cutter *c)
{
    int n_frames = (int)c->frames->frames.n;
    c->loops = arena_array(&c->arena, (size_t)(n_frames * c->n) + 1, sizeof *c->loops);
    /* The Enter of a variable in a loop's first iteration and its value in later ones must be where
     * they meet: nothing could be received in an iteration where nothing is sent. */
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
            if (several && loop->here) /* a loop in a loop: the outer one goes round there, too */
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

/* Something has to enter an outermost control loop: any value will do. */
static struct edge make_start(struct cutter *c, int frame, int part)
{
    struct tensor zero = tensor_borrow(FLOAT32, &SHAPE_SCALAR, &(float){0});
    struct attr value = {"value", attr_tensor(&zero)};
    struct attr attrs[] = {{"dtype", attr_type(FLOAT32)}, value};
    struct node_spec spec = {.op = "Const", .attrs = attrs, .n_attrs = 2};
    return (struct edge){part_add(c, part, condition_of(c, frame), &spec), 0};
}

static int find_condition(struct cutter *c, int frame, int part)
{
    const struct node *condition = condition_of(c, frame);
    struct part_loop *loop = part_loop(c, frame, part);
    loop->condition = (struct edge){c->copy[condition->id], 0};
    if (c->part[condition->id] == part)
        return 0;
    loop->condition = EDGE_NONE; /* while the original's value is asked for */
    struct edge value = part_edge(c, (struct edge){condition->id, 0}, part, condition);
    struct node_spec spec = {.op = "LoopCond", .inputs = &value, .n_inputs = 1};
    if (edge_exists(value))
        loop->condition = (struct edge){part_add(c, part, condition, &spec), 0};
    return c->err->code;
}

int part_make_loops(struct cutter *c)
{
    int n = (int)c->frames->frames.n * c->n;
    for (int i = 0; i < n; i++) {
        if (!c->loops[i].here)
            continue;
        int frame = i / c->n;
        int part = i % c->n;
        const struct graph_frame *f = &c->frames->frames.items[frame];
        struct part_loop *loop = part_loop(c, frame, part);
        struct edge data = f->parent == FRAME_ROOT
                               ? make_start(c, frame, part)
                               : (struct edge){part_loop(c, f->parent, part)->merge, 0};
        struct attr attrs[] = {{"frame_name", attr_string(f->name)},
                               {"parallel_iterations", attr_int(f->parallel_iterations)}};
        struct node_spec enter = {
            .op = "Enter", .inputs = &data, .n_inputs = 1, .attrs = attrs, .n_attrs = 2};
        if (data.node < 0)
            return c->err->code;
        loop->enter = part_add(c, part, condition_of(c, frame), &enter);
        struct edge inputs[] = {{loop->enter, 0}, EDGE_NONE};
        struct node_spec merge = {.op = "Merge", .inputs = inputs, .n_inputs = 2};
        if (loop->enter >= 0)
            loop->merge = part_add(c, part, condition_of(c, frame), &merge);
        if (c->err->code)
            return c->err->code;
    }
    for (int i = 0; i < n; i++) {
        if (!c->loops[i].here)
            continue;
        int frame = i / c->n;
        int part = i % c->n;
        struct part_loop *loop = part_loop(c, frame, part);
        if (find_condition(c, frame, part))
            return c->err->code;
        struct edge steered[] = {{loop->merge, 0}, loop->condition};
        struct node_spec spec = {.op = "Switch", .inputs = steered, .n_inputs = 2};
        int steering = part_add(c, part, condition_of(c, frame), &spec);
        struct edge taken = {steering, 1};
        struct node_spec next = {.op = "NextIteration", .inputs = &taken, .n_inputs = 1};
        int id = steering < 0 ? -1 : part_add(c, part, condition_of(c, frame), &next);
        if (id < 0)
            return c->err->code;
        struct graph *graph = part_at(c, part);
        if (graph_set_input(graph, graph_node(graph, loop->merge), 1, (struct edge){id, 0}, c->err))
            return c->err->code;
    }
    return 0;
}
