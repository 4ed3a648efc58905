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
    return node->op == &while_op ? plan->loops.items[node->id - plan->loops.items[0]->node] : NULL;
}

struct while_rewrite {
    struct while_search *s;
    struct graph *to;
    int *copy;                /* by node of the source: of `to`, or of its loop's graph */
    struct while_loop **loop; /* by frame: of those that are taken out */
    int *output_of;           /* by Exit: which output of its loop's node */
};

static const struct loop_variable *variable_at(const struct while_search *s, int frame, int i)
{
    return &s->frames->variables.items[s->frames->frames.items[frame].first_variable + i];
}

/* ---- the loops ---- */

/* The loop that is to be taken out which a node is in, or at the entrance of. */
static struct while_loop *loop_of(const struct while_rewrite *w, const struct node *node)
{
    struct while_loop *loop = w->loop[w->s->top[node->id]];
    return loop ? loop : w->loop[while_entered(w->s, node)];
}

static struct edge copy_of(const struct while_rewrite *w, struct edge edge)
{
    return (struct edge){w->copy[edge.node], edge.slot};
}

static void add_given(const struct while_rewrite *w, struct while_loop *loop, struct edge edge,
                      int given)
{
    const struct node_output *output = &graph_node(w->s->graph, edge.node)->outputs[edge.slot];
    loop->given[loop->n_feeds] = given;
    loop->feeds[loop->n_feeds++] =
        (struct plan_feed){copy_of(w, edge), output->type, output->shape};
}

static void add_variable(const struct while_rewrite *w, struct while_loop *loop,
                         const struct loop_variable *v, int at)
{
    add_given(w, loop, (struct edge){v->merge, 0}, at);
    add_given(w, loop, (struct edge){v->merge, 1}, WHILE_GIVEN_INDEX);
    add_given(w, loop, (struct edge){v->switch_, 0}, at);
    add_given(w, loop, (struct edge){v->switch_, 1}, at);
    const struct node *next = graph_node(w->s->graph, v->next);
    loop->next[at] = copy_of(w, next->inputs[0]);
    for (int i = 0; i < next->n_controls; i++)
        loop->targets[loop->n_targets++] = w->copy[next->controls[i]];
}

static int count_targets(const struct while_search *s, int frame)
{
    int n = 0;
    for (int i = 0; i < s->frames->frames.items[frame].n_enters; i++)
        if (variable_at(s, frame, i)->next >= 0)
            n += graph_node(s->graph, variable_at(s, frame, i)->next)->n_controls;
    return n;
}

static struct while_loop *while_new(const struct while_search *s, int frame)
{
    struct arena *memory = &s->plan->memory;
    const struct graph_frame *f = &s->frames->frames.items[frame];
    size_t n = (size_t)f->n_enters;
    struct while_loop *loop = arena_alloc(memory, sizeof *loop);
    *loop = (struct while_loop){.frame = arena_strdup(memory, f->name),
                                .key = while_key(f->name),
                                .graph = graph_new(s->graph->registry),
                                .n_inputs = f->n_enters};
    loop->outputs = arena_array(memory, n + 1, sizeof *loop->outputs);
    loop->feeds = arena_array(memory, 4 * n + 1, sizeof *loop->feeds);
    loop->given = arena_array(memory, 4 * n + 1, sizeof *loop->given);
    loop->next = arena_array(memory, n + 1, sizeof *loop->next);
    loop->targets = arena_array(memory, (size_t)count_targets(s, frame) + 1, sizeof *loop->targets);
    return loop;
}

/* Once its nodes are copied. Variables come first, then what is the same in all iterations. */
static void fill_loop(const struct while_rewrite *w, int frame)
{
    const struct while_search *s = w->s;
    const struct graph_frame *f = &s->frames->frames.items[frame];
    struct while_loop *loop = w->loop[frame];
    loop->goes_on = copy_of(w, graph_node(s->graph, f->loop_cond)->inputs[0]);
    for (int i = 0; i < f->n_enters; i++)
        if (variable_at(s, frame, i)->merge >= 0)
            add_variable(w, loop, variable_at(s, frame, i), loop->n_variables++);
    for (int i = 0, at = loop->n_variables; i < f->n_enters; i++)
        if (variable_at(s, frame, i)->merge < 0)
            add_given(w, loop, (struct edge){variable_at(s, frame, i)->enter, 0}, at++);
    add_given(w, loop, (struct edge){f->loop_cond, 0}, WHILE_GIVEN_TRUE);
}

/* ---- the graph without them ---- */

static struct edge map_edge(const struct while_rewrite *w, struct edge edge)
{
    const struct while_loop *loop = w->loop[w->s->top[edge.node]];
    if (loop)
        return (struct edge){loop->node, w->output_of[edge.node]};
    return copy_of(w, edge);
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
    for (int i = 0; i < loop->n_inputs; i++) {
        const struct loop_variable *v = variable_at(s, frame, i);
        if (v->merge < 0)
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

/* What enters as a variable is read where the Enter was, which sees what it did outside of the
 * loop: all that enters is there later. */
static struct edge read_variable(struct while_rewrite *w, const struct node *enter)
{
    const struct graph *from = w->s->graph;
    struct edge edge = map_edge(w, enter->inputs[0]);
    struct node_output output =
        graph_node(from, enter->inputs[0].node)->outputs[enter->inputs[0].slot];
    const struct attr_value *place = node_attr(enter, PLAN_PLACE);
    struct attr attrs[] = {{"T", attr_type(output.type)}, {PLAN_PLACE, {0}}};
    if (!output.is_ref)
        return edge;
    if (place)
        attrs[1].value = *place;
    struct node_spec spec = {.op = "Identity",
                             .name = enter->name,
                             .inputs = &edge,
                             .n_inputs = 1,
                             .attrs = arena_copy(&w->to->arena, attrs, sizeof attrs),
                             .n_attrs = place ? 2 : 1,
                             .file = enter->file,
                             .line = enter->line};
    output.is_ref = false;
    struct node *node = graph_add_trusted(w->to, &spec, &output, 1);
    for (int k = 0; k < enter->n_controls; k++)
        graph_add_control(w->to, node, w->copy[enter->controls[k]]);
    return (struct edge){node->id, 0};
}

static void connect_loop(struct while_rewrite *w, int frame)
{
    const struct while_search *s = w->s;
    const struct while_loop *loop = w->loop[frame];
    struct node *node = graph_node(w->to, loop->node);
    int variables = 0, constants = loop->n_variables;
    for (int i = 0; i < loop->n_inputs; i++) {
        const struct loop_variable *v = variable_at(s, frame, i);
        const struct node *enter = graph_node(s->graph, v->enter);
        struct edge input = read_variable(w, enter); /* it may add a node */
        node->inputs[v->merge < 0 ? constants++ : variables++] = input;
        for (int k = 0; k < enter->n_controls; k++)
            graph_add_control(w->to, node, w->copy[enter->controls[k]]);
    }
}

/* What a loop takes comes to it through its Enters, whose inputs stay open in its graph. */
static void connect(struct while_rewrite *w, const struct node *node)
{
    const struct while_loop *loop = loop_of(w, node);
    struct node *copy = graph_node(loop ? loop->graph : w->to, w->copy[node->id]);
    bool enters = loop && while_entered(w->s, node) != FRAME_ROOT;
    for (int i = 0; i < node->n_inputs; i++)
        copy->inputs[i] = enters ? EDGE_NONE
                          : loop ? copy_of(w, node->inputs[i])
                                 : map_edge(w, node->inputs[i]);
    for (int i = 0; i < node->n_controls && !enters; i++)
        graph_add_control(loop ? loop->graph : w->to, copy, w->copy[node->controls[i]]);
}

static void rewrite(struct while_rewrite *w)
{
    const struct while_search *s = w->s;
    int n_frames = (int)s->frames->frames.n;
    for (size_t i = 0; i < s->graph->nodes.n; i++) {
        const struct node *node = graph_node(s->graph, (int)i);
        const struct while_loop *loop = loop_of(w, node);
        w->copy[i] = graph_add_copy(loop ? loop->graph : w->to, node)->id;
    }
    for (int i = 0; i < n_frames; i++) {
        if (!w->loop[i])
            continue;
        fill_loop(w, i);
        add_loop_node(w, i);
    }
    for (size_t i = 0; i < s->graph->nodes.n; i++)
        connect(w, graph_node(s->graph, (int)i));
    for (int i = 0; i < n_frames; i++)
        if (w->loop[i])
            connect_loop(w, i);
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
    vec_push(&plan->wholes, plan->graph);
    plan->graph = w.to;
    mem_free(w.copy);
    mem_free(w.loop);
    mem_free(w.output_of);
}
