/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops that need no async ops run as one item: everything that enters an iteration is there when
 * it begins, nothing in it waits, and all its results can be planned. Merge, Switch and Exit of its
 * variables are no items: the values of the first two are the slots that iterations pass on, those
 * of the last are the outputs of the loop's item. A loop within such a loop is an item in it.
 */
#include <string.h>

#include "base/memory.h"
#include "exec/plan/plan_steps.h"

struct while_search {
    const struct plan *plan;
    const struct graph *graph;
    const struct frames *frames;
    bool *refused;    /* by frame, of outermost loops */
    int *n_variables; /* by frame: that iterations change */
    int *begun;       /* by node: number of loops around it that it knows go on */
};

/* ---- nodes that can be planned ---- */

/* Returns whether the output is on the device; constants and feeds are on the host. */
static bool is_made_on_device(const struct plan *plan, struct edge edge)
{
    const struct node *node = graph_node(plan->graph, edge.node);
    if (node_is(node, "Const") || edge_map_get(&plan->fed, edge) >= 0)
        return false;
    const struct kernel_row *row =
        kernel_find(plan->options.kernels, node, plan->options.device->type);
    return node_is(node, "Variable") ||
           (row && plan_puts_on_device(plan, row, node, true, edge.slot));
}

/* Returns whether the host needs a value that the device computes: only running tells when it is
 * there. */
static bool host_waits(const struct plan *plan, const struct node *node,
                       const struct kernel_row *row)
{
    if (plan->options.device->is_host || !row || node_has(node, OP_SHAPE_ONLY))
        return false;
    for (int i = 0; i < node->n_inputs; i++)
        if (!plan_puts_on_device(plan, row, node, false, i) &&
            is_made_on_device(plan, node->inputs[i]))
            return true;
    return false;
}

static bool can_place(const struct plan *plan, const struct node *node)
{
    for (int k = 0; k < node->n_outputs; k++) {
        const struct node_output *output = &node->outputs[k];
        if (!output->is_ref && !node_is(node, "Const") &&
            (!shape_is_known(&output->shape) || output->type == STRING))
            return false;
    }
    const struct kernel_row *row =
        kernel_find(plan->options.kernels, node, plan->options.device->type);
    return !(row && row->flags & KERNEL_ASYNC) && !host_waits(plan, node, row);
}

/* ---- outermost loops ---- */

static void refuse(struct while_search *s, int frame)
{
    s->refused[access_frame_below(s->frames->parents, FRAME_ROOT, frame)] = true;
}

static const struct loop_variable *variable_of(const struct frames *frames, int node)
{
    int v = frames->variable[node];
    return v < 0 ? NULL : &frames->variables.items[v];
}

/* ---- loops that cannot be one item ---- */

/* Returns whether the node computes, steers the loop, is a branch's, or is part of its variable. A
 * Merge without a variable is a branch's, or what would lead back to it is refused. */
static bool is_of_loop(const struct while_search *s, const struct node *node)
{
    const struct loop_variable *v = variable_of(s->frames, node->id);
    if (!node_has(node, OP_CONTROL_FLOW) || node_is(node, "LoopCond") || node_is(node, "Enter"))
        return true;
    if (node_is(node, "Switch") ? !frames_is_loop_switch(s->graph, node)
                                : node_is(node, "Merge") && !v)
        return true;
    bool is_its = v && (v->merge == node->id || v->switch_ == node->id || v->next == node->id ||
                        v->exit == node->id);
    return is_its && (!node->n_controls || v->next == node->id);
}

static bool can_repeat(const struct while_search *s, const struct node *node)
{
    for (int i = 0; i < node->n_outputs; i++)
        if (node->outputs[i].is_ref)
            return false;
    return is_of_loop(s, node) && !node_attr(node, "_after") && !node_has(node, OP_ASYNC) &&
           !node_is(node, "Send") && can_place(s->plan, node);
}

/* Returns whether the variable is constant, and enters whenever the loop runs, or has a Merge, a
 * Switch and a NextIteration that no other variable takes, and enters if and only if the loop runs.
 */
static bool enters_with_loop(const struct while_search *s, const struct loop_variable *v)
{
    int of_loop = s->frames->frames.items[v->frame].condition;
    int own = s->frames->condition[v->enter];
    return node_bool(graph_node(s->graph, v->enter), "is_constant")
               ? frames_implies(s->frames, of_loop, own)
               : v->switch_ >= 0 && own == of_loop && variable_of(s->frames, v->next) == v;
}

/* Edges into a loop must come from its Enters. graph/check.c says who takes the values of an
 * Enter and of a NextIteration. */
static void check_nodes(struct while_search *s)
{
    graph_each(node, s->graph) {
        for (int k = 0; k < node->n_inputs; k++) {
            const struct node *from = graph_node(s->graph, node->inputs[k].node);
            int here = s->frames->frame[node->id], there = frames_output(s->frames, from);
            int slot = node->inputs[k].slot;
            const struct loop_variable *v = variable_of(s->frames, from->id);
            bool is_index = v && v->merge == from->id && slot == 1;
            bool is_last = v && v->switch_ == from->id && slot == 0 && !node_is(node, "Exit");
            if (is_index || is_last)
                refuse(s, there);
            if (here != there)
                refuse(s, here);
        }
        for (int k = 0; k < node->n_controls; k++) {
            const struct node *from = graph_node(s->graph, node->controls[k]);
            if (node_is(from, "Enter")) /* it has no value to wait for */
                refuse(s, frames_output(s->frames, from));
        }
        const struct attr_value *names = node_attr(node, "_after");
        for (int i = 0; names && names->kind == ATTR_LIST_STRING && i < names->n; i++) {
            const struct node *named = graph_find(s->graph, names->strings[i]);
            if (named)
                refuse(s, s->frames->frame[named->id]);
        }
        if (s->frames->frame[node->id] && !can_repeat(s, node))
            refuse(s, s->frames->frame[node->id]);
    }
    vec_each(v, &s->frames->variables) {
        s->n_variables[v->frame] += v->merge >= 0;
        if (!enters_with_loop(s, v))
            refuse(s, v->frame);
    }
    for (size_t i = 1; i < s->frames->frames.n; i++)
        if (s->frames->frames.items[i].loop_cond < 0 || !s->n_variables[i])
            refuse(s, (int)i);
}

/* A stateful node that does not wait for the decision that an iteration runs would run in an
 * iteration too many, or never. */
static void check_effects(struct while_search *s, const int *order)
{
    graph_each_ordered(node, s->graph, order) {
        const struct loop_variable *v = variable_of(s->frames, node->id);
        int depth = s->frames->frames.items[s->frames->frame[node->id]].depth, begun = 0;
        bool merges = v && v->merge == node->id;
        for (int k = 0; k < node->n_inputs + node->n_controls; k++) {
            int other = s->begun[node_dependency(node, k).node];
            if (!merges || k != node->n_inputs - 1) /* from the iteration before */
                begun = other > begun ? other : begun;
        }
        if (v && v->switch_ == node->id && begun == depth - 1)
            begun = depth;
        s->begun[node->id] = begun < depth ? begun : depth;
        if (begun < depth && node_has(node, OP_STATEFUL))
            refuse(s, s->frames->frame[node->id]);
    }
}

/* ---- loops that can ---- */

static int find_items(struct plan *plan, struct error *err)
{
    struct arena memory = ARENA_INIT;
    const struct frames *f = plan->graph_frames;
    size_t n = plan->graph->nodes.n + 1;
    struct while_search s = {.plan = plan, .graph = plan->graph, .frames = f};
    s.refused = arena_array(&memory, f->frames.n, sizeof *s.refused);
    s.n_variables = arena_array(&memory, f->frames.n, sizeof *s.n_variables);
    s.begun = arena_array(&memory, n, sizeof *s.begun);
    int *order = arena_array(&memory, n, sizeof *order);
    int code = graph_order(plan->graph, order, err);
    if (!code) {
        check_nodes(&s);
        check_effects(&s, order);
    }
    for (size_t i = 1; i < f->frames.n && !code; i++) {
        struct plan_frame *loop = &plan->frames.items[i];
        size_t n_entered = (size_t)loop->n_entered + 1;
        if (s.refused[access_frame_below(f->parents, FRAME_ROOT, (int)i)])
            continue;
        loop->is_item = true;
        loop->kept = arena_array(&plan->memory, n_entered, sizeof *loop->kept);
        loop->inputs = arena_array(&plan->memory, 3 * n_entered, sizeof *loop->inputs);
        loop->outputs = loop->inputs + n_entered;
        loop->next = loop->outputs + n_entered;
        memset(loop->inputs, -1, 3 * n_entered * sizeof *loop->inputs);
    }
    arena_release(&memory);
    return code;
}

/* ---- whole plans ---- */

/* The frame that the node, an Enter, begins, if that frame is an item; else FRAME_ROOT. */
static int entered_loop(const struct plan *plan, const struct node *node)
{
    int frame = node_is(node, "Enter") ? frames_output(plan->graph_frames, node) : FRAME_ROOT;
    return plan->frames.items[frame].is_item ? frame : FRAME_ROOT;
}

static bool is_of_branch(const struct node *node)
{
    return node_is(node, "Switch") || node_is(node, "Merge");
}

/* A fixed order with planned memory will do unless something waits. It skips items of a branch that
 * is not taken, which requires that the host decides on branches. */
static void find_static(struct plan *plan)
{
    bool is_whole = plan->options.cut == CUT_WHOLE, in_loops = false, outside = false;
    graph_each(node, plan->graph) {
        bool is_flow = node_has(node, OP_CONTROL_FLOW) && !entered_loop(plan, node);
        if (plan->frames.items[plan_frame_of(plan, node)].is_item) {
            in_loops |= plan->graph_frames->variable[node->id] < 0 && is_of_branch(node);
            continue;
        }
        is_whole = is_whole && can_place(plan, node) &&
                   (!is_flow || (plan->options.device->is_host && is_of_branch(node)));
        outside |= is_flow;
    }
    plan->is_whole = is_whole;
    plan->has_branches = (is_whole && outside) || in_loops;
    for (size_t i = 0; i < plan->frames.n; i++)
        plan->frames.items[i].has_order = plan->frames.items[i].borrows =
            is_whole || plan->frames.items[i].is_item;
}

int plan_find_frames(struct plan *plan, const struct edge *fetches, struct error *err)
{
    const struct plan_options *options = &plan->options;
    bool any = false;
    graph_each(node, plan->graph)
        any |= node_has(node, OP_CONTROL_FLOW);
    if (any && frames_new_fed(plan->graph, &plan->fed, &plan->graph_frames, err))
        return err->code;
    size_t n = any ? plan->graph_frames->frames.n : 1;
    plan->parents = any ? plan->graph_frames->parents : NULL;
    for (size_t i = 0; i < n; i++) {
        const struct graph_frame root = {.name = "", .parent = -1, .parallel_iterations = 1};
        const struct graph_frame *of = any ? &plan->graph_frames->frames.items[i] : &root;
        struct plan_frame frame = {.name = of->name,
                                   .key = hash_bytes(of->name, strlen(of->name), 0),
                                   .parallel_iterations = of->parallel_iterations,
                                   .n_entered = of->n_enters,
                                   .first_variable = of->first_variable,
                                   .item = -1};
        vec_push_in(&plan->memory, &plan->frames, frame);
    }
    for (int i = 0; any && i < plan->n_fetches; i++) {
        int frame = frames_output(plan->graph_frames, graph_node(plan->graph, fetches[i].node));
        if (frame != FRAME_ROOT)
            return error_set(err, ERR_DATA, "a value inside the loop '%s' cannot be fetched",
                             plan->graph_frames->frames.items[frame].name);
    }
    bool may = plan->frames.n > 1 && options->device->is_host && options->cut == CUT_WHOLE;
    if (may && find_items(plan, err))
        return err->code;
    find_static(plan);
    return 0;
}

/* ---- values of loops ---- */

bool plan_is_wiring(const struct plan *plan, const struct node *node)
{
    return entered_loop(plan, node) ||
           (plan->frames.items[plan_frame_of(plan, node)].is_item &&
            (node_is(node, "NextIteration") || node_is(node, "LoopCond")));
}

/* Adds the item of a loop, whose Enters have been prepared. */
static void add_item_of(struct plan *plan, struct plan_frame *loop, const struct loop_variable *v)
{
    const struct node *enter = graph_node(plan->graph, v->enter);
    const struct graph_frame *f = &plan->graph_frames->frames.items[v->frame];
    struct item item = {.node = enter,
                        .name = f->name,
                        .kernel = "while",
                        .builtin = BUILTIN_LOOP,
                        .state = loop,
                        .n_in = loop->n_entered,
                        .in = loop->inputs};
    item.out = arena_array(&plan->memory, (size_t)loop->n_entered, sizeof *item.out);
    for (int i = 0; i < loop->n_entered; i++) {
        const struct loop_variable *other =
            &plan->graph_frames->variables.items[loop->first_variable + i];
        if (other->exit < 0)
            continue;
        loop->outputs[i] = item.n_out;
        const struct node_output *output = graph_node(plan->graph, other->exit)->outputs;
        int value = plan_add_value(plan, output->type, &output->shape);
        plan->value_of[other->exit] = item.out[item.n_out++] = value;
        plan->item_of[other->exit] = plan->values.items[value].item = (int)plan->items.n;
        plan->values.items[value].is_counted = true;
    }
    plan->in_frame = f->parent;
    loop->item = plan_add_item(plan, &item);
}

/* Adds the values that an iteration receives. */
static void add_carried(struct plan *plan, const struct node *node, int slot)
{
    plan->value_of[node->id] = (int)plan->values.n;
    for (int i = 0; i < node->n_outputs; i++) {
        int v = plan_add_value(plan, node->outputs[i].type, &node->outputs[i].shape);
        plan->values.items[v].kind = VALUE_CARRIED;
        plan->values.items[v].feed = slot;
    }
}

bool plan_add_wiring(struct plan *plan, const struct node *node)
{
    struct plan_frame *loop = &plan->frames.items[plan_frame_of(plan, node)];
    int at = loop->is_item ? plan->graph_frames->variable[node->id] : -1;
    if (at < 0)
        return false;
    const struct loop_variable *v = &plan->graph_frames->variables.items[at];
    if (v->exit == node->id)
        return true;
    if (v->merge != node->id && v->switch_ != node->id)
        return false;
    if (loop->item < 0)
        add_item_of(plan, loop, v);
    add_carried(plan, node, at - loop->first_variable);
    return true;
}

void plan_bind_wiring(struct plan *plan, const struct node *node)
{
    int entered = entered_loop(plan, node), value = plan->value_of[node->id];
    struct plan_frame *loop = &plan->frames.items[entered ? entered : plan_frame_of(plan, node)];
    int slot = plan->graph_frames->variable[node->id] - loop->first_variable;
    if (!entered && !node_is(node, "NextIteration")) {
        loop->goes_on = value;
    } else if (!entered) {
        loop->next[slot] = value;
    } else {
        loop->inputs[slot] = value;
        if (node_bool(node, "is_constant"))
            add_carried(plan, node, slot);
    }
}
