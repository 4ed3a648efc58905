/* SPDX-License-Identifier: Apache-2.0
 *
 * Forward values in backward loops. A value of the forward loop's body is pushed onto a stack in
 * each iteration and popped in the backward loop, which runs through the iterations in reverse; a
 * value that is the same in every iteration enters the backward loop once; constants are copied.
 *
 * Pushes happen in the order of the iterations because the count of the next iteration waits for
 * them (forward_sync), and likewise pops (sync). A stack is made in each run of the loop, and so
 * belongs to one iteration of an outer loop; the outer backward loop gets its handle like any other
 * value. Within a conditional in the loop, a value is pushed only if it is alive, and popped under
 * the recorded predicates.
 */
#include "pass/gradient/grad_engine.h"

static void note(struct grad_engine *e, struct grad_origin made)
{
    while (e->made.n < e->graph->nodes.n - (size_t)e->n_forward)
        vec_push_in(&e->arena, &e->made, made);
}

void grad_note(struct grad_engine *e, struct grad_space *space, int forward_frame)
{
    note(e, (struct grad_origin){space, forward_frame, CONDITION_NONE});
}

struct grad_origin grad_made_beside(const struct grad_engine *e, int loop)
{
    const struct graph_frame *frame = &e->frames->frames.items[loop];
    struct grad_origin made = {NULL, frame->parent, CONDITION_NONE};
    for (int i = 0; i < frame->n_enters && made.condition == CONDITION_NONE; i++)
        made.condition = e->frames->condition[grad_variable(e, loop, i)->enter];
    return made;
}

void grad_note_beside(struct grad_engine *e, int loop)
{
    note(e, grad_made_beside(e, loop));
}

struct edge grad_add_enter(struct build *b, struct edge x, const char *frame, int parallel,
                           bool is_constant)
{
    struct attr attrs[] = {{"frame_name", attr_string(frame)},
                           {"is_constant", attr_bool(is_constant)},
                           {"parallel_iterations", attr_int(parallel)}};
    return build_op(b, "Enter", &x, 1, attrs, 3);
}

struct edge grad_enter(struct grad_engine *e, struct grad_space *space, struct edge edge)
{
    struct build b = grad_build(e, graph_node(e->graph, space->pivot)->name, NULL);
    int parallel = e->frames->frames.items[space->frame].parallel_iterations;
    struct edge entered = grad_add_enter(&b, edge, space->frame_name, parallel, true);
    grad_note(e, space, -1);
    return entered;
}

/* ---- stacks ---- */

int grad_anchor(const struct grad_engine *e, int frame)
{
    if (e->frames->frames.items[frame].parent == FRAME_ROOT)
        return -1;
    return graph_node(e->graph, grad_variable(e, frame, 0)->enter)->inputs[0].node;
}

/* Returns the handle, alive only where the value was: by a Switch per condition in the loop. */
static struct edge guard(struct grad_engine *e, struct build *b, struct grad_space *space,
                         struct edge handle, int condition)
{
    if (condition == CONDITION_NONE || b->failed)
        return handle;
    const struct condition c = e->frames->conditions.items[condition];
    handle = guard(e, b, space, handle, c.parent);
    if (frames_output(e->frames, graph_node(e->graph, c.predicate.node)) != space->frame)
        return handle; /* a condition on the loop as a whole */
    struct edge predicate = grad_value(e, space, c.predicate);
    if (!edge_exists(predicate))
        return EDGE_NONE;
    struct edge both = build_binary(b, "Switch", handle, predicate);
    grad_note(e, space, -1);
    return build_slot(both, c.branch);
}

static struct edge pop(struct grad_engine *e, struct grad_space *space, struct edge value,
                       int condition)
{
    const struct node *node = graph_node(e->graph, value.node);
    struct build b = grad_build_beside(e, node->name, node);
    /* Make a new stack in the frame around the loop. */
    struct attr stack_attrs[] = {{"elem_type", attr_type(build_type(&b, value))}};
    int anchor = grad_anchor(e, space->frame);
    grad_set_control(&b, &anchor);
    struct edge handle = build_op(&b, "Stack", NULL, 0, stack_attrs, 1);
    b.n_controls = 0;
    grad_note_beside(e, space->frame);

    const struct graph_frame *frame = &e->frames->frames.items[space->frame];
    struct edge inside = grad_add_enter(&b, handle, frame->name, frame->parallel_iterations, true);
    grad_set_control(&b, &space->forward_pivot);
    struct edge push = build_binary(&b, "StackPush", inside, value);
    b.n_controls = 0;
    grad_note(e, NULL, space->frame);
    if (!b.failed)
        graph_add_control(e->graph, graph_node(e->graph, space->forward_sync), push.node);
    if (b.failed)
        return EDGE_NONE;
    handle = grad_value(e, space, handle);
    if (!edge_exists(handle))
        return EDGE_NONE;
    handle = guard(e, &b, space, handle, condition);
    if (!edge_exists(handle))
        return EDGE_NONE;
    struct attr attrs[] = {{"elem_type", attr_type(build_type(&b, value))},
                           {"shape", attr_shape(build_shape(&b, value))}};
    grad_set_control(&b, &space->pivot);
    struct edge popped = build_op(&b, "StackPop", &handle, 1, attrs, 2);
    grad_note(e, space, -1);
    if (!b.failed)
        graph_add_control(e->graph, graph_node(e->graph, space->sync), popped.node);
    return popped;
}

/* ---- values ---- */

/* Returns where an edge's node is; of the forward graph, in which frame its outputs are. */
static struct grad_origin origin_of(const struct grad_engine *e, struct edge edge)
{
    if (edge.node >= e->n_forward)
        return e->made.items[edge.node - e->n_forward];
    return (struct grad_origin){NULL, frames_output(e->frames, graph_node(e->graph, edge.node)),
                                frames_edge_condition(e->frames, e->graph, edge)};
}

static struct edge find_value(struct grad_engine *e, struct grad_space *space, struct edge edge,
                              struct grad_origin origin)
{
    const struct node *node = graph_node(e->graph, edge.node);
    bool inside = origin.forward_frame >= 0 && origin.forward_frame == space->frame;
    if (inside && node_is(node, "Const")) {
        struct build b = grad_build(e, node->name, NULL);
        grad_set_control(&b, &space->pivot);
        struct edge copy = build_op(&b, "Const", NULL, 0, node->attrs, node->n_attrs);
        grad_note(e, space, -1);
        return copy;
    }
    if (inside && node_is(node, "Enter") && node_bool(node, "is_constant"))
        edge = node->inputs[0];
    else if (inside)
        return pop(e, space, edge, origin.condition);
    edge = grad_value(e, space->parent, edge);
    return edge_exists(edge) ? grad_enter(e, space, edge) : EDGE_NONE;
}

struct edge grad_value(struct grad_engine *e, struct grad_space *space, struct edge edge)
{
    if (!space || !edge_exists(edge))
        return edge;
    const struct grad_origin origin = origin_of(e, edge);
    if (origin.space == space)
        return edge;
    int known = edge_map_get(&space->values, edge);
    if (known < 0) {
        struct edge value = find_value(e, space, edge, origin);
        if (!edge_exists(value))
            return EDGE_NONE;
        known = (int)space->made.n;
        vec_push_in(&e->arena, &space->made, value);
        edge_map_add(&space->values, edge, known);
    }
    return space->made.items[known];
}

int grad_adopt(struct grad_engine *e, struct grad_space *space, int mark)
{
    int end = (int)e->graph->nodes.n;
    grad_note(e, space, -1);
    for (int id = mark; space && id < end; id++) {
        struct node *node = graph_node(e->graph, id);
        if (e->made.items[id - e->n_forward].space != space)
            continue; /* made for such a value, and placed already */
        for (int i = 0; i < node->n_inputs; i++) {
            node->inputs[i] = grad_value(e, space, node->inputs[i]);
            if (!edge_exists(node->inputs[i]))
                return e->err->code;
        }
        if (!node->n_inputs && !node->n_controls)
            graph_add_control(e->graph, node, space->pivot);
    }
    return 0;
}
