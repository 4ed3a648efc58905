/* SPDX-License-Identifier: Apache-2.0
 *
 * Which loops need no points: what enters an iteration is all there when it begins, nothing in it
 * waits, and all that it makes can be planned for.
 */
#include "base/memory.h"
#include "exec/plan/plan_while_private.h"

/* ---- which loop ---- */

static int outermost(const struct frames *frames, int frame)
{
    while (frame != FRAME_ROOT && frames->frames.items[frame].parent != FRAME_ROOT)
        frame = frames->frames.items[frame].parent;
    return frame;
}

static const struct loop_variable *variable_of(const struct while_search *s, int node)
{
    int v = s->frames->variable[node];
    return v < 0 ? NULL : &s->frames->variables.items[v];
}

int while_entered(const struct while_search *s, const struct node *node)
{
    bool enters = node_is(node, "Enter") && !s->top[node->id];
    return enters ? frames_output(s->frames, node) : FRAME_ROOT;
}

static bool leaves(const struct while_search *s, const struct node *node)
{
    return node_is(node, "Exit") && s->frames->frame[node->id] == s->top[node->id];
}

/* ---- what cannot be taken out ---- */

/* Loop variables as while_loop makes them, each op of theirs once. */
static bool is_whole(const struct while_search *s, const struct loop_variable *v)
{
    const struct node *enter = graph_node(s->graph, v->enter);
    if (node_bool(enter, "is_constant"))
        return v->merge < 0;
    if (v->merge < 0 || v->next < 0 || v->switch_ < 0)
        return false;
    const struct node *merge = graph_node(s->graph, v->merge);
    return merge->n_inputs == 2 && merge->inputs[0].node == v->enter &&
           merge->inputs[1].node == v->next;
}

/* A Merge that nothing comes to but from where it is. */
static bool is_merge_of_branch(const struct while_search *s, const struct node *node)
{
    bool is = node_is(node, "Merge");
    for (int i = 0; is && i < node->n_inputs; i++) {
        const struct node *from = graph_node(s->graph, node->inputs[i].node);
        is = !node_is(from, "Enter") && !node_is(from, "NextIteration");
    }
    return is;
}

/* Not of a branch, or of one in an iteration. */
static bool is_of_loop(const struct while_search *s, const struct node *node)
{
    const struct loop_variable *v = variable_of(s, node->id);
    if (!node_has(node, OP_CONTROL_FLOW) || node_is(node, "LoopCond") || node_is(node, "Enter"))
        return true;
    if (node_is(node, "Switch") ? !frames_is_loop_switch(s->graph, node)
                                : is_merge_of_branch(s, node))
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
           !node_is(node, "Send") && plan_can_place(s->plan, node);
}

/* An edge into a loop comes from its Enters, one out of it from its Exits. */
static void check_input(struct while_search *s, const struct node *node, struct edge edge)
{
    const struct node *from = graph_node(s->graph, edge.node);
    int here = s->top[node->id], there = s->top[from->id];
    const struct loop_variable *v = variable_of(s, from->id);
    bool is_index = there && v && v->merge == from->id && edge.slot == 1;
    bool is_last = there && v && v->switch_ == from->id && edge.slot == 0 && !node_is(node, "Exit");
    bool is_next = there && node_is(from, "NextIteration") && !node_is(node, "Merge");
    bool is_first = v && v->enter == from->id && v->merge >= 0 && v->merge != node->id;
    if (there && ((here != there && !leaves(s, from)) || is_index || is_last || is_next))
        s->refused[there] = true;
    if (is_first)
        s->refused[outermost(s->frames, v->frame)] = true;
    if (here && here != there && while_entered(s, from) != here)
        s->refused[here] = true;
}

static void check_control(struct while_search *s, const struct node *node, int control)
{
    int here = s->top[node->id], there = s->top[control];
    const struct node *from = graph_node(s->graph, control);
    if (here != there || leaves(s, from))
        s->refused[here] = s->refused[there] = true;
    s->refused[while_entered(s, from)] = true;
}

static void check_wishes(struct while_search *s, const struct node *node)
{
    const struct attr_value *names = node_attr(node, "_after");
    for (int i = 0; names && names->kind == ATTR_LIST_STRING && i < names->n; i++) {
        const struct node *named = graph_find(s->graph, names->strings[i]);
        if (named)
            s->refused[s->top[named->id]] = true;
    }
}

/* All variables enter the loop if it is to run at all, and so does whatever else enters. */
static void check_conditions(struct while_search *s)
{
    const struct frames *f = s->frames;
    int *condition = mem_array(f->frames.n + 1, sizeof *condition);
    bool *known = mem_array(f->frames.n + 1, sizeof *known);
    for (size_t i = 0; i < f->variables.n; i++) {
        const struct loop_variable *v = &f->variables.items[i];
        int of = f->condition[v->enter];
        if (v->merge >= 0 && known[v->frame] && condition[v->frame] != of)
            s->refused[outermost(f, v->frame)] = true;
        if (v->merge >= 0) {
            condition[v->frame] = of;
            known[v->frame] = true;
        }
    }
    for (size_t i = 0; i < f->variables.n; i++) {
        const struct loop_variable *v = &f->variables.items[i];
        if (!known[v->frame] || !frames_implies(f, condition[v->frame], f->condition[v->enter]))
            s->refused[outermost(f, v->frame)] = true;
    }
    mem_free(condition);
    mem_free(known);
}

static void check_nodes(struct while_search *s)
{
    for (size_t i = 0; i < s->graph->nodes.n; i++) {
        const struct node *node = graph_node(s->graph, (int)i);
        for (int k = 0; k < node->n_inputs; k++)
            check_input(s, node, node->inputs[k]);
        for (int k = 0; k < node->n_controls; k++)
            check_control(s, node, node->controls[k]);
        check_wishes(s, node);
        if (s->top[i] && !can_repeat(s, node))
            s->refused[s->top[i]] = true;
    }
    for (size_t i = 0; i < s->frames->variables.n; i++)
        if (!is_whole(s, &s->frames->variables.items[i]))
            s->refused[outermost(s->frames, s->frames->variables.items[i].frame)] = true;
    for (size_t i = 1; i < s->frames->frames.n; i++)
        if (s->frames->frames.items[i].loop_cond < 0)
            s->refused[outermost(s->frames, (int)i)] = true;
}

/* What was taken out before, and had points nevertheless. */
static void check_kept(struct while_search *s)
{
    for (size_t i = 1; i < s->frames->frames.n; i++) {
        uint64_t key = while_key(s->frames->frames.items[i].name);
        for (size_t k = 0; k < s->plan->kept.n; k++)
            s->refused[i] |= s->plan->kept.items[k] == key;
    }
}

/* What has an effect and does not wait for an iteration to go on would have it twice, or never. */
static void check_effects(struct while_search *s)
{
    for (size_t i = 0; i < s->graph->nodes.n; i++) {
        const struct node *node = graph_node(s->graph, s->order[i]);
        const struct loop_variable *v = variable_of(s, node->id);
        bool begun = v && v->switch_ == node->id && v->frame == s->top[node->id];
        bool merges = v && v->merge == node->id;
        for (int k = 0; k < node->n_inputs - merges; k++)
            begun |= s->begun[node->inputs[k].node];
        for (int k = 0; k < node->n_controls; k++)
            begun |= s->begun[node->controls[k]];
        s->begun[node->id] = begun && s->top[node->id];
        if (s->top[node->id] && !begun && node_has(node, OP_STATEFUL))
            s->refused[s->top[node->id]] = true;
    }
}

/* What is in a loop, and nothing that leaves it needs, was asked for by itself. */
static void check_needs(struct while_search *s)
{
    VEC(int) todo = VEC_INIT;
    for (size_t i = 0; i < s->graph->nodes.n; i++)
        if (s->top[i] && leaves(s, graph_node(s->graph, (int)i))) {
            s->reached[i] = true;
            vec_push(&todo, (int)i);
        }
    while (todo.n) {
        const struct node *node = graph_node(s->graph, vec_pop(&todo));
        for (int k = 0; k < node->n_inputs + node->n_controls; k++) {
            int from =
                k < node->n_inputs ? node->inputs[k].node : node->controls[k - node->n_inputs];
            if (!s->top[from] || s->reached[from])
                continue;
            s->reached[from] = true;
            vec_push(&todo, from);
        }
    }
    vec_release(&todo);
    for (size_t i = 0; i < s->graph->nodes.n; i++)
        if (s->top[i] && !s->reached[i])
            s->refused[s->top[i]] = true;
}

static void check_fetches(struct while_search *s, const struct edge *fetches)
{
    for (int i = 0; i < s->plan->n_fetches; i++)
        if (!leaves(s, graph_node(s->graph, fetches[i].node)))
            s->refused[s->top[fetches[i].node]] =
                s->refused[while_entered(s, graph_node(s->graph, fetches[i].node))] = true;
}

/* ---- all of them ---- */

bool while_can_go(const struct while_search *s, int frame)
{
    return frame != FRAME_ROOT && s->frames->frames.items[frame].parent == FRAME_ROOT &&
           !s->refused[frame];
}

int while_find(struct while_search *s, const struct edge *fetches, struct error *err)
{
    if (graph_order(s->graph, s->order, err))
        return err->code;
    for (size_t i = 0; i < s->graph->nodes.n; i++)
        s->top[i] = outermost(s->frames, s->frames->frame[i]);
    check_kept(s);
    check_nodes(s);
    check_conditions(s);
    check_effects(s);
    check_needs(s);
    check_fetches(s, fetches);
    return 0;
}
