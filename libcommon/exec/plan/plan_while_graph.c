/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan's graph without the loops that can run as one item: a node stands for each.
 */
#include <string.h>

#include "base/memory.h"
#include "exec/plan/plan_while_private.h"

static const struct op_def while_def = {
    .name = "While", .doc = "A loop, as one item of a plan.", .flags = OP_STATEFUL};
static const struct op while_op = {.def = &while_def};

struct while_loop *plan_while_of(const struct plan *plan, const struct node *node)
{
    for (size_t i = 0; node->op == &while_op && i < plan->loops.n; i++)
        if (plan->loops.items[i]->node == node->id)
            return plan->loops.items[i];
    return NULL;
}

/* ---- the loop ---- */

static void add_given(struct while_loop *loop, const struct graph *graph, struct edge edge,
                      int given)
{
    const struct node_output *output = &graph_node(graph, edge.node)->outputs[edge.slot];
    loop->given[loop->n_feeds] = given;
    loop->feeds[loop->n_feeds++] = (struct plan_feed){edge, output->type, output->shape};
}

static void add_variable(struct while_loop *loop, const struct graph *graph,
                         const struct loop_variable *v, int at)
{
    add_given(loop, graph, (struct edge){v->merge, 0}, at);
    add_given(loop, graph, (struct edge){v->merge, 1}, WHILE_GIVEN_INDEX);
    add_given(loop, graph, (struct edge){v->switch_, 0}, at);
    add_given(loop, graph, (struct edge){v->switch_, 1}, at);
    const struct node *next = graph_node(graph, v->next);
    loop->next[at] = next->inputs[0];
    for (int i = 0; i < next->n_controls; i++)
        loop->targets[loop->n_targets++] = next->controls[i];
}

static int count_targets(const struct while_search *s, int frame)
{
    int n = 0;
    for (size_t i = 0; i < s->frames->variables.n; i++)
        if (s->frames->variables.items[i].frame == frame && s->frames->variables.items[i].next >= 0)
            n += graph_node(s->graph, s->frames->variables.items[i].next)->n_controls;
    return n;
}

/* Variables come first, then what is the same in all iterations. */
static struct while_loop *while_new(struct while_search *s, int frame)
{
    struct arena *memory = &s->plan->memory;
    const struct graph_frame *f = &s->frames->frames.items[frame];
    size_t n = (size_t)f->n_enters;
    struct while_loop *loop = arena_alloc(memory, sizeof *loop);
    *loop = (struct while_loop){
        .frame = arena_strdup(memory, f->name), .key = while_key(f->name), .n_inputs = f->n_enters};
    loop->outputs = arena_array(memory, n + 1, sizeof *loop->outputs);
    loop->feeds = arena_array(memory, 4 * n + 1, sizeof *loop->feeds);
    loop->given = arena_array(memory, 4 * n + 1, sizeof *loop->given);
    loop->next = arena_array(memory, n + 1, sizeof *loop->next);
    loop->targets = arena_array(memory, (size_t)count_targets(s, frame) + 1, sizeof *loop->targets);
    loop->goes_on = graph_node(s->graph, f->loop_cond)->inputs[0];
    for (int constants = 0; constants < 2; constants++) {
        int at = loop->n_variables;
        for (size_t i = 0; i < s->frames->variables.n; i++) {
            const struct loop_variable *v = &s->frames->variables.items[i];
            if (v->frame != frame || (v->merge < 0) != constants)
                continue;
            if (constants)
                add_given(loop, s->graph, (struct edge){v->enter, 0}, at);
            else
                add_variable(loop, s->graph, v, at);
            at++;
        }
        loop->n_variables = constants ? loop->n_variables : at;
    }
    add_given(loop, s->graph, (struct edge){f->loop_cond, 0}, WHILE_GIVEN_TRUE);
    return loop;
}

/* ---- the graph without them ---- */

struct while_rewrite {
    struct while_search *s;
    struct graph *to;
    int *copy;                /* by node of the source; -1 */
    struct while_loop **loop; /* by frame: of those that are taken out */
    int *output_of;           /* by Exit: which output of its loop's node */
};

static struct edge map_edge(const struct while_rewrite *w, struct edge edge)
{
    const struct while_loop *loop = w->loop[w->s->top[edge.node]];
    if (loop)
        return (struct edge){loop->node, w->output_of[edge.node]};
    return (struct edge){w->copy[edge.node], edge.slot};
}

/* What becomes of the node: is it a loop's, in it or at its entrance? */
static bool is_taken(const struct while_rewrite *w, const struct node *node)
{
    return w->loop[w->s->top[node->id]] || w->loop[while_entered(w->s, node)];
}

static void add_loop_node(struct while_rewrite *w, int frame)
{
    const struct while_search *s = w->s;
    struct while_loop *loop = w->loop[frame];
    const struct node *condition = graph_node(s->graph, s->frames->frames.items[frame].loop_cond);
    struct node_output *outputs =
        arena_array(&w->to->arena, (size_t)loop->n_variables + 1, sizeof *outputs);
    struct edge *inputs = arena_array(&w->to->arena, (size_t)loop->n_inputs + 1, sizeof *inputs);
    int n = 0, at = 0;
    for (size_t i = 0; i < s->frames->variables.n; i++) {
        const struct loop_variable *v = &s->frames->variables.items[i];
        if (v->frame != frame || v->merge < 0)
            continue;
        loop->outputs[at++] = v->exit < 0 ? -1 : n;
        if (v->exit < 0)
            continue;
        w->output_of[v->exit] = n;
        outputs[n++] = graph_node(s->graph, v->exit)->outputs[0];
    }
    for (int i = 0; i < loop->n_inputs; i++)
        inputs[i] = EDGE_NONE;
    struct node_spec spec = {.known = &while_op,
                             .name = graph_unique_name(w->to, loop->frame),
                             .inputs = inputs,
                             .n_inputs = loop->n_inputs,
                             .file = condition->file,
                             .line = condition->line};
    loop->node = graph_add_trusted(w->to, &spec, outputs, n)->id;
}

static void connect_loop(struct while_rewrite *w, int frame)
{
    const struct while_search *s = w->s;
    const struct while_loop *loop = w->loop[frame];
    struct node *node = graph_node(w->to, loop->node);
    int variables = 0, constants = loop->n_variables;
    for (size_t i = 0; i < s->frames->variables.n; i++) {
        const struct loop_variable *v = &s->frames->variables.items[i];
        if (v->frame != frame)
            continue;
        const struct node *enter = graph_node(s->graph, v->enter);
        node->inputs[v->merge < 0 ? constants++ : variables++] = map_edge(w, enter->inputs[0]);
        for (int k = 0; k < enter->n_controls; k++)
            graph_add_control(w->to, node, w->copy[enter->controls[k]]);
    }
}

static void connect(struct while_rewrite *w, const struct node *node)
{
    struct node *copy = graph_node(w->to, w->copy[node->id]);
    for (int i = 0; i < node->n_inputs; i++)
        copy->inputs[i] = map_edge(w, node->inputs[i]);
    for (int i = 0; i < node->n_controls; i++)
        graph_add_control(w->to, copy, w->copy[node->controls[i]]);
}

static void rewrite(struct while_rewrite *w)
{
    const struct while_search *s = w->s;
    size_t n_frames = s->frames->frames.n;
    for (size_t i = 0; i < s->graph->nodes.n; i++)
        if (!is_taken(w, graph_node(s->graph, (int)i)))
            w->copy[i] = graph_add_copy(w->to, graph_node(s->graph, (int)i))->id;
    for (size_t i = 0; i < n_frames; i++)
        if (w->loop[i])
            add_loop_node(w, (int)i);
    for (size_t i = 0; i < s->graph->nodes.n; i++)
        if (w->copy[i] >= 0)
            connect(w, graph_node(s->graph, (int)i));
    for (size_t i = 0; i < n_frames; i++)
        if (w->loop[i])
            connect_loop(w, (int)i);
}

void while_take_out(struct while_search *s, struct edge *fetches)
{
    struct plan *plan = s->plan;
    size_t n = s->graph->nodes.n + 1;
    struct while_rewrite w = {.s = s,
                              .to = graph_new(plan->source->registry),
                              .copy = mem_array(n, sizeof *w.copy),
                              .loop = mem_array(s->frames->frames.n + 1, sizeof *w.loop),
                              .output_of = mem_array(n, sizeof *w.output_of)};
    memset(w.copy, -1, n * sizeof *w.copy);
    for (size_t i = 0; i < s->frames->frames.n; i++) {
        if (!while_can_go(s, (int)i))
            continue;
        w.loop[i] = while_new(s, (int)i);
        vec_push(&plan->loops, w.loop[i]);
    }
    rewrite(&w);
    for (int i = 0; i < plan->n_fetches; i++)
        fetches[i] = map_edge(&w, fetches[i]);
    for (int i = 0; i < plan->n_feeds; i++)
        if (plan->feed_nodes[i] >= 0)
            plan->feed_nodes[i] = w.copy[plan->feed_nodes[i]];
    plan->looped = plan->graph;
    plan->graph = w.to;
    mem_free(w.copy);
    mem_free(w.loop);
    mem_free(w.output_of);
}
