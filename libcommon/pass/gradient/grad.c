/* SPDX-License-Identifier: Apache-2.0
 *
 * gradients_add: finds the nodes between xs and ys, processes them backward, and reports where a
 * path ended if no gradient came through. It touches only nodes that ys depend on.
 *
 * Backward nodes belong to *spaces*: the base, where ys and xs are, and for each loop between them
 * a backward loop with as many iterations as the forward one. A gradient function sees forward
 * nodes; the nodes that it builds are then adopted into their space: forward values that they use
 * are replaced by the space's values for them.
 *
 * Each node of a frame is a unit, and so is each loop within it. A unit is processed after all its
 * consumers, when all contributions to its outputs are there.
 */
#include "pass/gradient/grad.h"

#include <string.h>

#include "graph/edge_map.h"
#include "graph/frames.h"
#include "graph/walk.h"

enum grad_mark {
    MARK_ANCESTOR = 1, /* some y depends on it */
    MARK_BETWEEN = 2,  /* and it depends on some x */
};

typedef VEC(struct gradient) gradient_list;
typedef VEC(int) id_list;

/* The backward loop of a forward loop, with counters for both. */
struct grad_space {
    int frame;                 /* of the forward loop */
    struct grad_space *parent; /* NULL: the base */
    const char *frame_name;    /* of the backward loop */
    int forward_pivot;         /* node that runs once in each iteration of the forward loop */
    int forward_sync;          /* ControlTrigger before the count of the next iteration */
    int pivot, sync;           /* the same for the backward loop */
    struct edge loop_cond;     /* of the backward loop */
    struct edge_map values;    /* by other edges: node of the space's value for each */
};

/* The place of a node that was made here. */
struct grad_origin {
    struct grad_space *space; /* NULL: the base, or the forward graph */
    int forward_frame;        /* for a node added to the forward graph; -1: a backward one */
    int condition;            /* that a forward node runs under; or CONDITION_NONE */
};

struct grad_engine {
    struct graph *graph;
    const struct gradients_options *options;
    const char *scope;
    struct error *err;
    int n_forward;                 /* nodes with smaller ids existed before */
    int base;                      /* the frame of ys and xs */
    unsigned char *marks;          /* by forward id: enum grad_mark */
    gradient_list **contributions; /* by forward id, by output */
    struct frames *frames;         /* NULL: no control flow between */
    struct grad_space **spaces;    /* by frame */
    struct map loop_names;         /* of forward loops */
    VEC(struct grad_origin) made;  /* by id - n_forward */
    id_list ancestors;             /* of ys, and ys themselves */
    id_list cuts;                  /* nodes where a gradient ended */
    struct arena arena;
    /* The ancestors sorted so that those of a frame and of the loops in it are
     * adjacent, from begin[frame] to end[frame]. */
    id_list by_frame;
    int *begin, *end;
    int *pending; /* by unit, each of one frame: edges from units not yet processed */
};

/* Returns the frame that a node runs in; the root without control flow. */
static int grad_frame(const struct grad_engine *e, int id)
{
    return e->frames ? e->frames->frame[id] : FRAME_ROOT;
}

static bool grad_differentiable(enum dtype type)
{
    return dtype_is_floating(type) || type == COMPLEX64;
}

/* Returns a builder of backward nodes under "SCOPE/suffix" (NULL: SCOPE). */
static struct build grad_build(struct grad_engine *e, const char *suffix,
                               const struct node *forward)
{
    struct build b = {.graph = e->graph,
                      .scope =
                          suffix ? arena_printf(&e->arena, "%s/%s", e->scope, suffix) : e->scope,
                      .device = e->options->device,
                      .colocate = e->options->group,
                      .file = e->options->file,
                      .line = e->options->line,
                      .err = e->err};
    if (e->options->colocate && forward) {
        b.colocate = arena_printf(&e->arena, "loc:@%s", forward->name);
        b.device = forward->device;
    }
    return b;
}

static const struct loop_variable *grad_variable(const struct grad_engine *e, int frame, int i)
{
    return &e->frames->variables.items[e->frames->frames.items[frame].first_variable + i];
}

/* Returns a builder of nodes of the forward graph: in the frame of `node`, whose value they store
 * or whose loop they count. */
static struct build grad_build_beside(struct grad_engine *e, const char *suffix,
                                      const struct node *node)
{
    struct build b = grad_build(e, suffix, NULL);
    b.colocate = NULL;
    b.device = node->device;
    return b;
}

/* Sets the control input of nodes built next; none for -1. `control` must stay valid meanwhile. */
static void grad_set_control(struct build *b, const int *control)
{
    b->controls = control;
    b->n_controls = *control >= 0;
}

/* ---- forward values in backward loops ----
 *
 * A value of the forward loop's body is pushed onto a stack in each iteration and popped in the
 * backward loop, which runs through the iterations in reverse; a value that is the same in every
 * iteration enters the backward loop once; constants are copied.
 *
 * Pushes happen in the order of the iterations because the count of the next iteration waits for
 * them (forward_sync), and likewise pops (sync). A stack is made in each run of the loop, and so
 * belongs to one iteration of an outer loop; the outer backward loop gets its handle like any other
 * value. Within a conditional in the loop, a value is pushed only if it is alive, and popped under
 * the recorded predicates. */

static void note(struct grad_engine *e, struct grad_origin made)
{
    while (e->made.n < e->graph->nodes.n - (size_t)e->n_forward)
        vec_push_in(&e->arena, &e->made, made);
}

/* Records the place (struct grad_origin) of all nodes added since the last call. */
static void grad_note(struct grad_engine *e, struct grad_space *space, int forward_frame)
{
    note(e, (struct grad_origin){space, forward_frame, CONDITION_NONE});
}

/* Likewise for nodes added to the forward graph beside a loop, in the frame around it: they run
 * under the loop's condition. */
static struct grad_origin grad_made_beside(const struct grad_engine *e, int loop)
{
    const struct graph_frame *frame = &e->frames->frames.items[loop];
    struct grad_origin made = {NULL, frame->parent, CONDITION_NONE};
    for (int i = 0; i < frame->n_enters && made.condition == CONDITION_NONE; i++)
        made.condition = e->frames->condition[grad_variable(e, loop, i)->enter];
    return made;
}

/* Adds an Enter of the loop with that name. */
static struct edge grad_add_enter(struct build *b, struct edge x, const char *frame, int parallel,
                                  bool is_constant)
{
    struct attr attrs[] = {{"frame_name", attr_string(frame)},
                           {"is_constant", attr_bool(is_constant)},
                           {"parallel_iterations", attr_int(parallel)}};
    return build_op(b, "Enter", &x, 1, attrs, 3);
}

/* ---- stacks ---- */

/* Returns a node of the frame around a loop, after which nodes without inputs run in that frame;
 * -1: that is the root, where none is needed. */
static int grad_anchor(const struct grad_engine *e, int frame)
{
    if (e->frames->frames.items[frame].parent == FRAME_ROOT)
        return -1;
    return graph_node(e->graph, grad_variable(e, frame, 0)->enter)->inputs[0].node;
}

/* Returns a space's value for an edge: itself in the base, else a popped or re-entered value. */
static struct edge grad_value(struct grad_engine *e, struct grad_space *space, struct edge edge);

/* Returns the handle, alive only where the value was: by a Switch per condition in the loop. */
static struct edge guard(struct grad_engine *e, struct build *b, struct grad_space *space,
                         struct edge handle, int condition)
{
    if (condition == CONDITION_NONE)
        return handle;
    const struct condition c = e->frames->conditions.items[condition];
    handle = guard(e, b, space, handle, c.parent);
    if (frames_output(e->frames, graph_node(e->graph, c.predicate.node)) != space->frame)
        return handle; /* a condition on the loop as a whole */
    struct edge both = build_binary(b, "Switch", handle, grad_value(e, space, c.predicate));
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
    note(e, grad_made_beside(e, space->frame));

    const struct graph_frame *frame = &e->frames->frames.items[space->frame];
    struct edge inside = grad_add_enter(&b, handle, frame->name, frame->parallel_iterations, true);
    grad_set_control(&b, &space->forward_pivot);
    struct edge push = build_binary(&b, "StackPush", inside, value);
    b.n_controls = 0;
    grad_note(e, NULL, space->frame);
    if (e->err->code)
        return EDGE_NONE;
    graph_add_control(e->graph, graph_node(e->graph, space->forward_sync), push.node);
    handle = guard(e, &b, space, grad_value(e, space, handle), condition);
    struct attr attrs[] = {{"elem_type", attr_type(build_type(&b, value))},
                           {"shape", attr_shape(build_shape(&b, value))}};
    grad_set_control(&b, &space->pivot);
    struct edge popped = build_op(&b, "StackPop", &handle, 1, attrs, 2);
    grad_note(e, space, -1);
    if (edge_exists(popped))
        graph_add_control(e->graph, graph_node(e->graph, space->sync), popped.node);
    return popped;
}

/* ---- values ---- */

/* Returns the place of an edge's node; in the forward graph its frame is that of the outputs. */
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
    /* The parent's value enters the space, and is there in every iteration. */
    struct build b = grad_build(e, graph_node(e->graph, space->pivot)->name, NULL);
    int parallel = e->frames->frames.items[space->frame].parallel_iterations;
    edge = grad_add_enter(&b, edge, space->frame_name, parallel, true);
    grad_note(e, space, -1);
    return edge;
}

static struct edge grad_value(struct grad_engine *e, struct grad_space *space, struct edge edge)
{
    if (!space || !edge_exists(edge))
        return edge;
    const struct grad_origin origin = origin_of(e, edge);
    if (origin.space == space)
        return edge;
    struct edge value = {edge_map_get(&space->values, edge), 0};
    if (!edge_exists(value)) {
        value = find_value(e, space, edge, origin);
        edge_map_add(&space->values, edge, value.node);
    }
    return value;
}

/* Takes the nodes added since the last call into a space. */
static int grad_adopt(struct grad_engine *e, struct grad_space *space)
{
    int id = e->n_forward + (int)e->made.n, end = (int)e->graph->nodes.n;
    grad_note(e, space, -1);
    for (; space && id < end; id++) {
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
    return e->err->code;
}

/* ---- contributions ---- */

static gradient_list *list_of(struct grad_engine *e, struct edge edge)
{
    gradient_list **lists = &e->contributions[edge.node];
    if (!*lists)
        *lists = arena_array(&e->arena, (size_t)graph_node(e->graph, edge.node)->n_outputs,
                             sizeof **lists);
    return &(*lists)[edge.slot];
}

/* Adds to the gradient of a forward edge. */
static void grad_contribute(struct grad_engine *e, struct edge edge, struct gradient gradient)
{
    vec_push_in(&e->arena, list_of(e, edge), gradient);
}

/* Returns whether the contributions can be concatenated: all are rows, with indices of one type. */
static bool stay_rows(const struct build *b, const gradient_list *list)
{
    enum dtype type = build_type(b, list->items[0].indices);
    bool stay = true;
    vec_each(gradient, list)
        stay &= edge_exists(gradient->indices) && build_type(b, gradient->indices) == type;
    return stay;
}

/* Returns the sum of the contributions to an edge, which replaces them; values EDGE_NONE: none. */
static struct gradient grad_total(struct grad_engine *e, struct grad_space *space, struct edge edge)
{
    gradient_list *list = list_of(e, edge);
    struct gradient none = {EDGE_NONE, EDGE_NONE}, *all = list->items;
    int n = (int)list->n;
    if (n < 2)
        return n ? *all : none;
    struct build b = grad_build(e, NULL, graph_node(e->graph, edge.node));
    struct edge *values = arena_array(&e->arena, (size_t)n + 1, sizeof *values);
    if (stay_rows(&b, list)) { /* concatenate values and indices */
        struct edge *indices = arena_array(&e->arena, (size_t)n + 1, sizeof *indices);
        for (int i = 0; i < n; i++) {
            values[i + 1] = all[i].values;
            indices[i + 1] = all[i].indices;
        }
        values[0] = indices[0] = build_scalar(&b, INT32, 0);
        all->values = build_op(&b, "Concat", values, n + 1, NULL, 0);
        all->indices = build_op(&b, "Concat", indices, n + 1, NULL, 0);
    } else {
        for (int i = 0; i < n; i++)
            values[i] = gradient_dense(&b, &all[i], edge);
        *all = (struct gradient){build_op(&b, "AddN", values, n, NULL, 0), EDGE_NONE};
    }
    list->n = 1;
    return grad_adopt(e, space) ? none : *all;
}

static struct edge grad_total_dense(struct grad_engine *e, struct grad_space *space,
                                    struct edge edge)
{
    struct gradient total = grad_total(e, space, edge);
    if (!edge_exists(total.indices))
        return total.values;
    struct build b = grad_build(e, NULL, graph_node(e->graph, edge.node));
    struct edge dense = gradient_dense(&b, &total, edge);
    return grad_adopt(e, space) ? EDGE_NONE : dense;
}

/* ---- conditionals ----
 *
 * Where the forward graph splits, the backward graph merges, and vice versa, with the same
 * predicate. */

/* Returns the condition that leads from the Merge's own to that of one of its inputs. */
static const struct condition *branch_of(const struct grad_engine *e, struct edge input, int outer)
{
    int inner = frames_edge_condition(e->frames, e->graph, input);
    const struct condition *items = e->frames->conditions.items;
    if (inner == outer || !frames_implies(e->frames, inner, outer))
        return NULL;
    while (items[inner].parent != outer)
        inner = items[inner].parent;
    return &items[inner];
}

static int merge_gradient(struct grad_engine *e, struct grad *g)
{
    const struct node *node = g->node;
    int outer = e->frames->condition[node->id];
    for (int i = 0; i < node->n_inputs; i++) {
        const struct condition *branch = branch_of(e, node->inputs[i], outer);
        if (!branch)
            return error_set(e->err, ERR_DATA,
                             "%s: this Merge ends no conditional: it has no gradient",
                             node_text(node));
        struct edge both = build_binary(&g->b, "Switch", g->out[0], branch->predicate);
        g->in[i] = build_slot(both, branch->branch);
    }
    return e->err->code;
}

/* ---- loops ----
 *
 * The gradient of a loop is a loop that runs as often. An Exit becomes an Enter of the gradient,
 * Switch and Merge swap places, NextIteration becomes the start of the body, Enter an Exit;
 * constant Enters get an accumulator. A counter in the forward loop counts the iterations. */

/* A loop variable under construction: Merge(Enter(start), open) -> Switch -> body, Exit. */
struct cycle {
    struct edge merge, body, exit;
};

/* Opens a cycle that begins with `start`; close_cycle sets the Merge's second input. */
static struct cycle open_cycle(struct grad_engine *e, struct build *b, const char *frame_name,
                               int frame, struct edge start)
{
    int parallel = e->frames->frames.items[frame].parallel_iterations;
    struct edge entered = grad_add_enter(b, start, frame_name, parallel, false);
    return (struct cycle){.merge = build_binary(b, "Merge", entered, entered)};
}

/* Adds a number after the node `control`; -1: without control. */
static struct edge const_after(struct build *b, int control, int value)
{
    grad_set_control(b, &control);
    struct edge made = build_scalar(b, INT32, value);
    b->n_controls = 0;
    return made;
}

static void make_cycle(struct build *b, struct cycle *c, struct edge predicate)
{
    struct edge both = build_binary(b, "Switch", c->merge, predicate);
    c->body = build_unary(b, "Identity", build_slot(both, 1));
    c->exit = build_unary(b, "Exit", both);
}

/* Adds merge <- NextIteration(next), after `sync` (-1: without). */
static void close_cycle(struct build *b, const struct cycle *c, struct edge next, int sync)
{
    grad_set_control(b, &sync);
    struct edge edge = build_unary(b, "NextIteration", next);
    b->n_controls = 0;
    if (edge_exists(edge))
        graph_set_input(b->graph, graph_node(b->graph, c->merge.node), 1, edge, b->err);
}

/* ---- counters ---- */

/* Closes a counter, whose `step` is "Add" or "Sub" of one. Sets the node that runs once in each
 * iteration, and the one before the count of the next. */
static void close_counter(struct build *b, const struct cycle *c, const char *step, int *pivot,
                          int *sync)
{
    struct edge next = build_binary(b, step, c->body, const_after(b, c->body.node, 1));
    *pivot = c->body.node;
    grad_set_control(b, &next.node);
    *sync = build_op(b, "ControlTrigger", NULL, 0, NULL, 0).node;
    close_cycle(b, c, next, *sync);
}

/* Counts the iterations of the forward loop; returns the count, in the frame around it. */
static struct edge count_forward(struct grad_engine *e, struct build *b, struct grad_space *space)
{
    const struct graph_frame frame = e->frames->frames.items[space->frame];
    struct edge start = const_after(b, grad_anchor(e, space->frame), 0);
    note(e, grad_made_beside(e, space->frame));
    struct cycle c = open_cycle(e, b, frame.name, space->frame, start);
    make_cycle(b, &c, (struct edge){frame.loop_cond, 0});
    close_counter(b, &c, "Add", &space->forward_pivot, &space->forward_sync);
    grad_note(e, NULL, space->frame);
    if (edge_exists(c.exit)) /* its output belongs to the frame around the loop */
        e->made.items[c.exit.node - e->n_forward] = grad_made_beside(e, space->frame);
    return c.exit;
}

static void count_backward(struct grad_engine *e, struct build *b, struct grad_space *space,
                           struct edge count)
{
    struct cycle c = open_cycle(e, b, space->frame_name, space->frame, count);
    struct edge zero = const_after(b, c.merge.node, 0);
    space->loop_cond = build_unary(b, "LoopCond", build_binary(b, "Greater", c.merge, zero));
    make_cycle(b, &c, space->loop_cond);
    close_counter(b, &c, "Sub", &space->pivot, &space->sync);
    grad_note(e, space, -1);
}

/* Returns "LOOP_suffix", for use in the scope; the loop's name is used if it is valid for nodes. */
static const char *loop_scope(struct grad_engine *e, int frame, const char *suffix)
{
    const struct graph_frame *f = &e->frames->frames.items[frame];
    const char *name =
        graph_name_valid(f->name) ? f->name : graph_node(e->graph, f->loop_cond)->name;
    return arena_printf(&e->arena, "%s_%s", name, suffix);
}

/* Returns the space of a loop's gradient, created at the first call. */
static struct grad_space *space_of_loop(struct grad_engine *e, struct grad_space *parent, int frame)
{
    if (e->spaces[frame])
        return e->spaces[frame];
    const struct graph_frame *f = &e->frames->frames.items[frame];
    if (f->loop_cond < 0) {
        error_set(e->err, ERR_DATA, "loop '%s' has no LoopCond: it has no gradient", f->name);
        return NULL;
    }
    struct grad_space *space = arena_alloc(&e->arena, sizeof *space);
    struct build forward =
        grad_build_beside(e, loop_scope(e, frame, "count"), graph_node(e->graph, f->loop_cond));
    struct build backward = grad_build(e, loop_scope(e, frame, "grad"), NULL);
    space->frame = frame;
    space->parent = parent;
    /* Choose a name that no loop has: a loop of that name and parent would be the same. */
    const char *name = backward.scope;
    for (int k = 1; map_get(&e->loop_names, name, NULL); k++)
        name = arena_printf(&e->arena, "%s_%d", backward.scope, k);
    space->frame_name = name;
    e->spaces[frame] = space;
    count_backward(e, &backward, space, grad_value(e, parent, count_forward(e, &forward, space)));
    return e->err->code ? NULL : space;
}

/* ---- variables and constants ---- */

/* Opens the backward loop's variable for a forward one, starting with the parent's `start`. */
static struct cycle open_variable(struct grad_engine *e, struct build *b, struct grad_space *space,
                                  struct edge start)
{
    struct cycle c = open_cycle(e, b, space->frame_name, space->frame, start);
    make_cycle(b, &c, space->loop_cond);
    grad_note(e, space, -1);
    if (edge_exists(c.exit)) /* its output belongs to the parent */
        e->made.items[c.exit.node - e->n_forward].space = space->parent;
    return c;
}

static void close_variable(struct grad_engine *e, struct build *b, struct grad_space *space,
                           const struct cycle *c, struct edge next)
{
    close_cycle(b, c, next, -1);
    grad_note(e, space, -1);
}

static struct edge zeros_like(struct grad_engine *e, struct build *b, struct grad_space *space,
                              struct edge edge)
{
    struct edge zeros = build_unary(b, "ZerosLike", edge);
    grad_adopt(e, space);
    return zeros;
}

static bool is_wanted(const struct grad_engine *e, const struct loop_variable *v)
{
    return v->merge >= 0 && v->switch_ >= 0 && (e->marks[v->merge] & MARK_BETWEEN) &&
           grad_differentiable(graph_node(e->graph, v->merge)->outputs[0].type);
}

/* Returns the gradient with which a variable's backward loop starts. An Exit that leads to no y has
 * zeros: the variable may still affect others. */
static struct edge start_of(struct grad_engine *e, struct build *b, struct grad_space *parent,
                            const struct loop_variable *v)
{
    if (v->exit >= 0 && (e->marks[v->exit] & MARK_BETWEEN)) {
        struct edge total = grad_total_dense(e, parent, (struct edge){v->exit, 0});
        if (edge_exists(total) || e->err->code)
            return total;
    }
    if (v->exit >= 0)
        return zeros_like(e, b, parent, (struct edge){v->exit, 0});
    const struct node *last = graph_node(e->graph, v->switch_);
    struct build forward = grad_build_beside(e, loop_scope(e, v->frame, "grad"), last);
    struct edge exit = build_unary(&forward, "Exit", (struct edge){v->switch_, 0});
    note(e, grad_made_beside(e, v->frame));
    return zeros_like(e, b, parent, exit);
}

static void finish_variable(struct grad_engine *e, struct build *b, struct grad_space *space,
                            const struct loop_variable *v, const struct cycle *c)
{
    struct edge next = grad_total_dense(e, space, (struct edge){v->switch_, 1});
    if (!edge_exists(next)) /* the next value does not depend on this one */
        next = zeros_like(e, b, space, c->body);
    close_variable(e, b, space, c, next);
    grad_contribute(e, (struct edge){v->enter, 0}, (struct gradient){c->exit, EDGE_NONE});
}

static void finish_constants(struct grad_engine *e, struct build *b, struct grad_space *space)
{
    int n = e->frames->frames.items[space->frame].n_enters;
    for (int i = 0; i < n && !e->err->code; i++) {
        const struct loop_variable *v = grad_variable(e, space->frame, i);
        const struct node *node = graph_node(e->graph, v->enter);
        if (!node_bool(node, "is_constant") || !(e->marks[v->enter] & MARK_BETWEEN))
            continue;
        /* A value that is the same in every iteration gets the sum over the iterations. */
        struct edge output = {node->id, 0}, term = grad_total_dense(e, space, output);
        if (!edge_exists(term))
            continue;
        struct edge zeros = zeros_like(e, b, space->parent, node->inputs[0]);
        struct cycle c = open_variable(e, b, space, zeros);
        close_variable(e, b, space, &c, build_binary(b, "Add", c.body, term));
        list_of(e, output)->n = 0;
        grad_contribute(e, output, (struct gradient){c.exit, EDGE_NONE});
    }
}

/* Processes backward all nodes between that run in a frame. Called once per frame. */
static int grad_process_frame(struct grad_engine *e, struct grad_space *space, int frame);

/* Processes a loop, from the gradients of its Exits to those of its Enters. */
static int process_loop(struct grad_engine *e, struct grad_space *parent, int frame)
{
    int n = e->frames->frames.items[frame].n_enters;
    bool has_gradient = false; /* some gradient flows back into the loop */
    for (int i = 0; i < n && !has_gradient; i++) {
        const struct loop_variable *v = grad_variable(e, frame, i);
        has_gradient = is_wanted(e, v) && v->exit >= 0 && e->contributions[v->exit] &&
                       e->contributions[v->exit][0].n;
    }
    if (!has_gradient)
        return 0;
    struct grad_space *space = space_of_loop(e, parent, frame);
    if (!space)
        return e->err->code;
    struct build b = grad_build(e, loop_scope(e, frame, "grad"), NULL);
    struct cycle *cycles = arena_array(&e->arena, (size_t)n, sizeof *cycles);
    for (int i = 0; i < n && !e->err->code; i++) {
        const struct loop_variable *v = grad_variable(e, frame, i);
        if (!is_wanted(e, v))
            continue;
        cycles[i] = open_variable(e, &b, space, start_of(e, &b, parent, v));
        grad_contribute(e, graph_node(e->graph, v->next)->inputs[0],
                        (struct gradient){cycles[i].body, EDGE_NONE});
    }
    grad_process_frame(e, space, frame);
    for (int i = 0; i < n && !e->err->code; i++)
        if (is_wanted(e, grad_variable(e, frame, i)))
            finish_variable(e, &b, space, grad_variable(e, frame, i), &cycles[i]);
    finish_constants(e, &b, space);
    return e->err->code;
}

/* ---- frames ---- */

struct frame_walk {
    struct grad_engine *e;
    struct grad_space *space;
    int frame;
    VEC(int) queue; /* of units */
};

/* Returns the unit of a node: its id, or n_forward + the frame of a loop; -1: not in this frame. */
static int unit_of(const struct frame_walk *w, int id)
{
    const struct grad_engine *e = w->e;
    if (!(e->marks[id] & MARK_BETWEEN))
        return -1;
    int frame = grad_frame(e, id);
    if (frame == w->frame) {
        bool own_loop = e->frames && e->frames->variable[id] >= 0 &&
                        !node_is(graph_node(e->graph, id), "Enter");
        return own_loop ? -1 : id;
    }
    while (frame >= 0 && e->frames->frames.items[frame].parent != w->frame)
        frame = e->frames->frames.items[frame].parent;
    return frame < 0 ? -1 : e->n_forward + frame;
}

/* Lists the frame's own nodes, then those of the loops within it. */
static void list_frame(struct grad_engine *e, int frame, const id_list *own)
{
    int n_frames = e->frames ? (int)e->frames->frames.n : 1;
    e->begin[frame] = (int)e->by_frame.n;
    vec_each(id, &own[frame])
        vec_push_in(&e->arena, &e->by_frame, *id);
    for (int inner = frame + 1; inner < n_frames; inner++)
        if (e->frames->frames.items[inner].parent == frame)
            list_frame(e, inner, own);
    e->end[frame] = (int)e->by_frame.n;
}

/* Sorts the ancestors by frame, before any of them is processed. */
static void grad_sort_ancestors(struct grad_engine *e)
{
    size_t n_frames = e->frames ? e->frames->frames.n : 1;
    id_list *own = arena_array(&e->arena, n_frames, sizeof *own);
    e->begin = arena_array(&e->arena, n_frames, sizeof *e->begin);
    e->end = arena_array(&e->arena, n_frames, sizeof *e->end);
    e->pending = arena_array(&e->arena, (size_t)e->n_forward + n_frames, sizeof *e->pending);
    vec_each(id, &e->ancestors)
        vec_push_in(&e->arena, &own[grad_frame(e, *id)], *id);
    list_frame(e, FRAME_ROOT, own);
}

static void finish_node(struct frame_walk *w, int unit, int id)
{
    const struct node *node = graph_node(w->e->graph, id);
    for (int k = 0; k < node->n_inputs; k++) {
        int from = unit_of(w, node->inputs[k].node);
        if (from >= 0 && from != unit && --w->e->pending[from] == 0)
            vec_push_in(&w->e->arena, &w->queue, from);
    }
}

/* ---- one node ---- */

static int call_gradient(struct frame_walk *w, struct grad *g)
{
    struct grad_engine *e = w->e;
    const struct op_def *def = g->node->op->def;
    if (node_is(g->node, "Switch")) {
        /* The zeros are alive if that branch is taken. */
        struct edge branches[2];
        for (int k = 0; k < 2; k++)
            branches[k] = grad_out_or_zeros(g, k);
        g->in[0] = build_op(&g->b, "Merge", branches, 2, NULL, 0);
        return e->err->code;
    }
    if (node_is(g->node, "Merge"))
        return merge_gradient(e, g);
    if (node_is(g->node, "Enter")) {
        g->in[0] = g->out[0];
        return 0;
    }
    if (!def->gradient)
        return error_set(e->err, ERR_DATA, "%s: op %s has no gradient%s%s", node_text(g->node),
                         def->name, def->no_gradient ? ": " : "",
                         def->no_gradient ? def->no_gradient : "");
    def->gradient(g);
    if (e->err->code)
        error_prefix(e->err, "%s: gradient of %s: ", node_text(g->node), def->name);
    return e->err->code;
}

/* Contributes the gradients that the gradient function has set to the inputs. */
static int pass_on(struct frame_walk *w, const struct grad *g)
{
    struct grad_engine *e = w->e;
    bool any = false;
    for (int i = 0; i < g->node->n_inputs; i++) {
        struct edge input = g->node->inputs[i];
        struct gradient gradient = {g->in[i], g->in_indices[i]};
        if (!edge_exists(gradient.values) || !(e->marks[input.node] & MARK_BETWEEN))
            continue;
        enum dtype type = build_type(&g->b, input);
        if (build_type(&g->b, gradient.values) != type)
            return error_set(e->err, ERR_INTERNAL, "%s: gradient of input %d is %s, not %s",
                             node_text(g->node), i, dtype_name(build_type(&g->b, gradient.values)),
                             dtype_name(type));
        gradient.values = grad_value(e, w->space, gradient.values);
        if (edge_exists(gradient.indices))
            gradient.indices = grad_value(e, w->space, gradient.indices);
        if (e->err->code)
            return e->err->code;
        grad_contribute(e, input, gradient);
        any = true;
    }
    if (!any)
        vec_push_in(&e->arena, &e->cuts, g->node->id);
    return 0;
}

static int process_node(struct frame_walk *w, const struct node *node)
{
    struct grad_engine *e = w->e;
    bool is_wanted = false;
    for (int i = 0; i < node->n_inputs; i++)
        is_wanted |= e->marks[node->inputs[i].node] & MARK_BETWEEN;
    if (is_wanted && node_is(node, "Identity")) {
        /* Rows pass through the read of a variable as rows. */
        struct gradient total = grad_total(e, w->space, (struct edge){node->id, 0});
        if (edge_exists(total.values))
            grad_contribute(e, node->inputs[0], total);
        is_wanted = false;
    }
    if (!is_wanted)
        return e->err->code;
    size_t n_out = (size_t)node->n_outputs, n_in = (size_t)node->n_inputs;
    struct edge *edges = arena_array(&e->arena, n_out + 2 * n_in + 1, sizeof *edges);
    struct grad g = {.node = node, .out = edges, .in = edges + n_out};
    g.in_indices = g.in + n_in;
    bool any = false;
    for (size_t k = 0; k < n_out; k++) {
        edges[k] = grad_total_dense(e, w->space, (struct edge){node->id, (int)k});
        any = any || edge_exists(edges[k]);
    }
    for (size_t i = 0; i < 2 * n_in; i++)
        g.in[i] = EDGE_NONE;
    if (any && !e->err->code) {
        g.b = grad_build(e, arena_printf(&e->arena, "%s_grad", node->name), node);
        if (node->op->def->flags & OP_NO_GRADIENT)
            vec_push_in(&e->arena, &e->cuts, node->id);
        else if (!call_gradient(w, &g) && !grad_adopt(e, w->space))
            pass_on(w, &g);
    }
    return e->err->code;
}

static int grad_process_frame(struct grad_engine *e, struct grad_space *space, int frame)
{
    struct frame_walk w = {.e = e, .space = space, .frame = frame};
    for (int i = e->begin[frame]; i < e->end[frame]; i++) {
        const struct node *node = graph_node(e->graph, e->by_frame.items[i]);
        int unit = unit_of(&w, node->id);
        for (int k = 0; k < node->n_inputs && unit >= 0; k++) {
            int from = unit_of(&w, node->inputs[k].node);
            if (from >= 0 && from != unit)
                e->pending[from]++;
        }
    }
    for (int i = e->begin[frame]; i < e->end[frame]; i++) {
        int unit = unit_of(&w, e->by_frame.items[i]);
        if (unit < 0 || e->pending[unit])
            continue;
        e->pending[unit] = -1; /* queued: a loop's unit is found once per node */
        vec_push_in(&e->arena, &w.queue, unit);
    }
    for (size_t at = 0; at < w.queue.n && !e->err->code; at++) {
        int unit = w.queue.items[at], loop = unit - e->n_forward;
        if (loop < 0) {
            process_node(&w, graph_node(e->graph, unit));
            finish_node(&w, unit, unit);
            continue;
        }
        process_loop(e, space, loop);
        for (int i = e->begin[loop]; i < e->end[loop]; i++)
            if (unit_of(&w, e->by_frame.items[i]) == unit)
                finish_node(&w, unit, e->by_frame.items[i]);
    }
    return e->err->code;
}

/* ---- nodes between xs and ys ---- */

struct gradient_request {
    const struct edge *ys, *grad_ys, *xs;
    int n_ys, n_xs;
};

static const char *edge_text(struct grad_engine *e, struct edge edge)
{
    struct str text = STR_INIT;
    graph_print_edge(&text, e->graph, edge);
    const char *copy = arena_strdup(&e->arena, str_text(&text));
    str_release(&text);
    return copy;
}

/* Returns whether a node ends paths: they do not follow back edges of the loop around ys and xs. */
static bool is_barrier(const struct grad_engine *e, int id)
{
    return e->frames && e->frames->variable[id] >= 0 && e->frames->frame[id] == e->base &&
           node_is(graph_node(e->graph, id), "Merge");
}

static void find_ancestors(struct grad_engine *e, const struct gradient_request *r)
{
    VEC(int) stack = VEC_INIT;
    for (int i = 0; i < r->n_ys; i++)
        vec_push_in(&e->arena, &stack, r->ys[i].node);
    while (stack.n) {
        int id = vec_pop(&stack);
        if (e->marks[id] & MARK_ANCESTOR)
            continue;
        e->marks[id] |= MARK_ANCESTOR;
        vec_push_in(&e->arena, &e->ancestors, id);
        const struct node *node = graph_node(e->graph, id);
        for (int i = 0; i < node->n_inputs && !is_barrier(e, id); i++)
            vec_push_in(&e->arena, &stack, node->inputs[i].node);
    }
}

/* Marks the ancestors that depend on some x: back edges of loops may lead to earlier ones. */
static void find_between(struct grad_engine *e, const struct gradient_request *r)
{
    for (int i = 0; i < r->n_xs; i++)
        if (e->marks[r->xs[i].node] & MARK_ANCESTOR)
            e->marks[r->xs[i].node] |= MARK_BETWEEN;
    for (bool news = true; news;) {
        news = false;
        for (int id = 0; id < e->n_forward; id++) {
            if (e->marks[id] != MARK_ANCESTOR || is_barrier(e, id))
                continue;
            const struct node *node = graph_node(e->graph, id);
            for (int k = 0; k < node->n_inputs; k++)
                e->marks[id] |= e->marks[node->inputs[k].node] & MARK_BETWEEN;
            news |= e->marks[id] & MARK_BETWEEN;
        }
    }
}

/* ---- control flow ---- */

static int check_frames(struct grad_engine *e, const struct edge *edges, int n)
{
    for (int i = 0; i < n; i++)
        if (frames_output(e->frames, graph_node(e->graph, edges[i].node)) != e->base)
            return error_set(e->err, ERR_DATA, "gradients: '%s' and '%s' are not in the same loop",
                             edge_text(e, edges[0]), edge_text(e, edges[i]));
    return 0;
}

static int analyse_frames(struct grad_engine *e, const struct gradient_request *r)
{
    bool needed = false;
    for (size_t i = 0; i < e->ancestors.n; i++) {
        const struct node *node = graph_node(e->graph, e->ancestors.items[i]);
        needed = needed || node_has(node, OP_CONTROL_FLOW);
        /* A node with a stack as its only input is a pop in the gradient of a loop; a push has a
         * second input. */
        struct edge in = node->n_inputs == 1 ? node->inputs[0] : EDGE_NONE;
        if (edge_exists(in) && graph_output(e->graph, in)->type == RESOURCE)
            return error_set(e->err, ERR_DATA,
                             "%s: second derivatives through a loop are not supported",
                             node_text(node));
    }
    if (!needed)
        return 0;
    if (frames_new(e->graph, &e->frames, e->err))
        return e->err->code;
    e->base = frames_output(e->frames, graph_node(e->graph, r->ys[0].node));
    e->spaces = arena_array(&e->arena, e->frames->frames.n, sizeof *e->spaces);
    for (size_t i = 0; i < e->frames->frames.n; i++)
        map_put(&e->loop_names, e->frames->frames.items[i].name, 0);
    if (check_frames(e, r->ys, r->n_ys) || check_frames(e, r->xs, r->n_xs))
        return e->err->code;
    if (e->base == FRAME_ROOT)
        return 0;
    for (size_t i = 0; i < e->ancestors.n; i++) /* repeated, as barriers are now known */
        e->marks[e->ancestors.items[i]] = 0;
    e->ancestors.n = 0;
    find_ancestors(e, r);
    return 0;
}

/* ---- start and end ---- */

static int check_types(struct grad_engine *e, const struct edge *edges, int n, const char *what)
{
    for (int i = 0; i < n; i++) {
        const struct node *node = graph_node(e->graph, edges[i].node);
        if (edges[i].slot < 0 || edges[i].slot >= node->n_outputs)
            return error_set(e->err, ERR_DATA, "gradients: %s: '%s' is not a tensor",
                             node_text(node), edge_text(e, edges[i]));
        if (!grad_differentiable(node->outputs[edges[i].slot].type))
            return error_set(e->err, ERR_DATA,
                             "gradients: %s: %s must be of a floating-point type, not %s",
                             node_text(node), what, dtype_name(node->outputs[edges[i].slot].type));
    }
    return 0;
}

/* Returns whether `id` depends on x, through nodes between. */
static bool depends_on(struct grad_engine *e, int id, int x)
{
    struct graph_walk walk = graph_walk_new(&e->arena, e->graph);
    const struct node *node;
    graph_walk_to(&walk, id);
    while ((node = graph_walk_next(&walk, e->graph)))
        if (e->marks[node->id] & MARK_BETWEEN)
            graph_walk_inputs(&walk, node);
    return walk.seen[x];
}

static int collect(struct grad_engine *e, const struct gradient_request *r, struct gradient *result)
{
    for (int i = 0; i < r->n_xs; i++) {
        result[i] = grad_total(e, NULL, r->xs[i]);
        if (e->err->code)
            return e->err->code;
        if (edge_exists(result[i].values) || e->options->allow_missing)
            continue;
        struct edge x = r->xs[i];
        const char *y = edge_text(e, r->ys[0]), *to = node_text(graph_node(e->graph, x.node));
        for (size_t j = 0; j < e->cuts.n; j++) {
            const struct node *cut = graph_node(e->graph, e->cuts.items[j]);
            if (depends_on(e, cut->id, x.node))
                return error_set(
                    e->err, ERR_DATA,
                    "there is no gradient of '%s' to %s: it ends at %s, as %s passes none on", y,
                    to, node_text(cut), cut->op->def->name);
        }
        return error_set(e->err, ERR_DATA,
                         "there is no gradient of '%s' to %s: '%s' does not depend on it", y, to,
                         y);
    }
    return 0;
}

static int run(struct grad_engine *e, const struct gradient_request *r, struct gradient *result)
{
    if (check_types(e, r->ys, r->n_ys, "what is differentiated") ||
        check_types(e, r->xs, r->n_xs, "what it is differentiated by"))
        return e->err->code;
    find_ancestors(e, r);
    if (analyse_frames(e, r))
        return e->err->code;
    find_between(e, r);
    grad_sort_ancestors(e);
    struct build b = grad_build(e, NULL, NULL);
    for (int i = 0; i < r->n_ys; i++) {
        struct edge y = r->ys[i], g = r->grad_ys ? r->grad_ys[i] : EDGE_NONE;
        if (!edge_exists(g) && build_shape(&b, y)->rank == 0)
            g = build_scalar_like(&b, y, 1);
        else if (!edge_exists(g))
            g = build_binary(&b, "Fill", build_unary(&b, "Shape", y), build_scalar_like(&b, y, 1));
        if (grad_adopt(e, NULL))
            return e->err->code;
        grad_contribute(e, y, (struct gradient){g, EDGE_NONE});
    }
    if (grad_process_frame(e, NULL, e->base))
        return e->err->code;
    if (collect(e, r, result))
        return e->err->code;
    /* Skip nodes added to the forward graph, which the controls may wait for. */
    const struct gradients_options *options = e->options;
    bool *waits = arena_array(&e->arena, e->graph->nodes.n, sizeof *waits); /* by node */
    for (size_t i = 0; i < e->made.n && options->n_controls; i++) {
        struct node *node = graph_node(e->graph, e->n_forward + (int)i);
        if (e->made.items[i].forward_frame >= 0)
            continue;
        /* A node runs after the controls if one input does; a Merge only if all do, except later
         * ones, which are back edges. */
        bool any = false, all = true;
        for (int j = 0; j < node->n_inputs; j++) {
            bool waiting = waits[node->inputs[j].node];
            any = any || waiting;
            all = all && (waiting || node->inputs[j].node >= node->id);
        }
        bool found = node_is(node, "Merge") ? all : any;
        for (int j = 0; j < node->n_controls; j++)
            found |= waits[node->controls[j]];
        waits[node->id] = found || !node_is(node, "Const");
        for (int k = 0; k < options->n_controls && waits[node->id] && !found; k++)
            graph_add_control(e->graph, node, options->controls[k]);
    }
    return 0;
}

int gradients_add(struct graph *graph, const struct edge *ys, const struct edge *grad_ys, int n_ys,
                  const struct edge *xs, int n_xs, const struct gradients_options *options,
                  struct gradient *result, struct error *err)
{
    static const struct gradients_options defaults;
    struct gradient_request r = {ys, grad_ys, xs, n_ys, n_xs};
    struct grad_engine e = {.graph = graph,
                            .options = options ? options : &defaults,
                            .err = err,
                            .n_forward = (int)graph->nodes.n};
    e.scope = e.options->scope ? e.options->scope : "gradients";
    e.marks = arena_alloc(&e.arena, graph->nodes.n + 1);
    e.contributions = arena_array(&e.arena, graph->nodes.n + 1, sizeof *e.contributions);
    for (int i = 0; i < n_xs; i++)
        result[i] = (struct gradient){EDGE_NONE, EDGE_NONE};
    int code = n_ys ? run(&e, &r, result) : error_set(err, ERR_DATA, "gradients of nothing");
    if (e.frames)
        for (size_t i = 0; i < e.frames->frames.n; i++)
            if (e.spaces && e.spaces[i])
                edge_map_release(&e.spaces[i]->values);
    frames_free(e.frames);
    map_release(&e.loop_names);
    arena_release(&e.arena);
    return code;
}
