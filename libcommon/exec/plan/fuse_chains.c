/* SPDX-License-Identifier: Apache-2.0
 *
 * Chains of element-wise ops, found from their ends: each becomes one node, named as its last op.
 */
#include <string.h>

#include "base/memory.h"
#include "exec/plan/fuse.h"

#define STEPS_MAX 16 /* no tree of so many needs more results at once than the kernel has */

struct step_chain {
    VEC(const struct node *) steps; /* in the order in which they run; the last is the end */
    VEC(struct edge) inputs;
};

struct chains {
    const struct graph *graph;
    const struct fuse_options *options;
    struct graph *to;
    int *order;
    int *uses;     /* by node: who takes an output, or waits for it */
    bool *fusable; /* by node */
    int *kept;     /* by fusable node: tensors that nobody else needs, and its chain does */
    int *end;      /* by node: the end of the chain that it is part of; -1: of none */
    struct fused *fused;
};

/* ---- which ops ---- */

static bool is_scalar(const struct shape *shape)
{
    return shape_count(shape) == 1;
}

static const struct node_output *source_of(const struct chains *c, struct edge edge)
{
    return &graph_node(c->graph, edge.node)->outputs[edge.slot];
}

/* All of one type, and each as large as the result, or a scalar. */
static bool has_fitting_inputs(const struct chains *c, const struct node *node)
{
    const struct node_output *out = &node->outputs[0];
    bool is_full = is_scalar(&out->shape);
    for (int i = 0; i < node->n_inputs; i++) {
        const struct node_output *in = source_of(c, node->inputs[i]);
        bool is_same = shape_is_known(&in->shape) && shape_equal(&in->shape, &out->shape);
        if (in->type != out->type || !shape_is_known(&in->shape) ||
            (!is_same && !is_scalar(&in->shape)))
            return false;
        is_full |= is_same;
    }
    return is_full;
}

/* An order, a place with others, a gradient: the node would no longer be there to have it. */
static bool has_marks(const struct node *node)
{
    for (int i = 0; i < node->n_attrs; i++)
        if (node->attrs[i].name[0] == '_')
            return true;
    return false;
}

static bool has_loops(const struct chains *c, const struct node *node)
{
    const struct kernel_row *row = kernel_find(c->options->kernels, node, c->options->device);
    return row && row->flags & KERNEL_ELEMENTWISE;
}

/* The table of kernels is long, and is asked last. */
static bool can_be_step(const struct chains *c, const struct node *node)
{
    const struct node_output *out = &node->outputs[0];
    return node->n_outputs == 1 && (out->type == FLOAT32 || out->type == FLOAT64) &&
           shape_is_known(&out->shape) && !node->n_controls && !has_marks(node) &&
           has_fitting_inputs(c, node) && has_loops(c, node);
}

/* Those that a node names, as what it comes after, or is to be with ("loc:@NAME"). */
static void refuse_named(struct chains *c, const struct node *node)
{
    for (int k = 0; k < node->n_attrs; k++) {
        const struct attr_value *names = &node->attrs[k].value;
        bool is_mark = node->attrs[k].name[0] == '_' && names->kind == ATTR_LIST_STRING;
        for (int i = 0; is_mark && i < names->n; i++) {
            const char *at = strchr(names->strings[i], '@');
            const struct node *named = graph_find(c->graph, at ? at + 1 : names->strings[i]);
            if (named)
                c->fusable[named->id] = false;
        }
    }
}

static void look_at_all(struct chains *c)
{
    for (size_t i = 0; i < c->graph->nodes.n; i++) {
        const struct node *node = graph_node(c->graph, (int)i);
        c->fusable[i] = can_be_step(c, node);
        c->end[i] = -1;
        for (int k = 0; k < node->n_inputs; k++)
            c->uses[node->inputs[k].node]++;
        for (int k = 0; k < node->n_controls; k++)
            c->uses[node->controls[k]]++;
    }
    for (int i = 0; i < c->options->n_keep; i++)
        c->uses[c->options->keep[i].node]++;
    for (size_t i = 0; i < c->graph->nodes.n; i++)
        refuse_named(c, graph_node(c->graph, (int)i));
}

/* ---- one chain ---- */

/* A variable that it reads would be read when the end runs. */
static bool reads_variables(const struct chains *c, const struct node *node)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (source_of(c, node->inputs[i])->is_ref)
            return true;
    return false;
}

static bool is_same_place(const struct node *a, const struct node *b)
{
    return !strcmp(a->device, b->device) && !strcmp(a->assigned, b->assigned);
}

/* Whether it can be a step of the chain that `next`, which takes its output, is part of. */
static bool can_join(const struct chains *c, const struct node *node, const struct node *next)
{
    return c->fusable[node->id] && c->uses[node->id] == 1 && c->kept[node->id] <= 1 &&
           node->outputs[0].type == next->outputs[0].type &&
           shape_equal(&node->outputs[0].shape, &next->outputs[0].shape) &&
           is_same_place(node, next) && !reads_variables(c, node);
}

/* In place of its result, what the op takes is kept until the chain's end runs: no more than that
 * would have taken. */
static void count_kept(struct chains *c, const struct node *node)
{
    for (int i = 0; i < node->n_inputs; i++) {
        const struct node *from = graph_node(c->graph, node->inputs[i].node);
        if (can_join(c, from, node))
            c->kept[node->id] += c->kept[from->id];
        else if (c->uses[from->id] == 1 && !is_scalar(&source_of(c, node->inputs[i])->shape))
            c->kept[node->id]++;
    }
}

/* Marks the end and what leads to it, from the end on. */
static int claim(struct chains *c, const struct node *end)
{
    VEC(const struct node *) todo = VEC_INIT;
    int n = 1;
    c->end[end->id] = end->id;
    vec_push(&todo, end);
    while (todo.n) {
        const struct node *node = vec_pop(&todo);
        for (int i = 0; i < node->n_inputs && n < STEPS_MAX; i++) {
            const struct node *from = graph_node(c->graph, node->inputs[i].node);
            if (!can_join(c, from, node))
                continue;
            c->end[from->id] = end->id;
            vec_push(&todo, from);
            n++;
        }
    }
    vec_release(&todo);
    if (n == 1)
        c->end[end->id] = -1;
    return n;
}

static void find_chains(struct chains *c)
{
    for (size_t i = 0; i < c->graph->nodes.n; i++)
        if (c->fusable[c->order[i]])
            count_kept(c, graph_node(c->graph, c->order[i]));
    for (size_t i = c->graph->nodes.n; i-- > 0;) {
        int id = c->order[i];
        if (c->fusable[id] && c->end[id] < 0)
            c->fused->n_gone += claim(c, graph_node(c->graph, id)) - 1;
    }
}

/* ---- its node ---- */

static int input_number(struct step_chain *chain, struct edge edge)
{
    for (size_t i = 0; i < chain->inputs.n; i++)
        if (chain->inputs.items[i].node == edge.node && chain->inputs.items[i].slot == edge.slot)
            return (int)i;
    vec_push(&chain->inputs, edge);
    return (int)chain->inputs.n - 1;
}

static void collect(const struct chains *c, struct step_chain *chain, const struct node *node)
{
    for (int i = 0; i < node->n_inputs; i++) {
        const struct node *from = graph_node(c->graph, node->inputs[i].node);
        if (c->end[from->id] == c->end[node->id])
            collect(c, chain, from);
        else
            input_number(chain, node->inputs[i]);
    }
    vec_push(&chain->steps, node);
}

static int64_t step_number(const struct step_chain *chain, const struct node *node)
{
    size_t i = 0;
    while (chain->steps.items[i] != node)
        i++;
    return (int64_t)(chain->inputs.n + i);
}

/* Ops and operands as FusedElementwise has them, in the graph's memory. */
static struct attr *describe(const struct chains *c, struct step_chain *chain, int *n)
{
    struct arena *arena = &c->to->arena;
    size_t n_steps = chain->steps.n;
    const char **ops = arena_array(arena, n_steps, sizeof *ops);
    int64_t *operands = arena_array(arena, 2 * n_steps, sizeof *operands);
    for (size_t i = 0; i < n_steps; i++) {
        const struct node *node = chain->steps.items[i];
        ops[i] = node->op->def->name;
        for (int k = 0; k < 2; k++) {
            struct edge edge = k < node->n_inputs ? node->inputs[k] : EDGE_NONE;
            const struct node *from = k < node->n_inputs ? graph_node(c->graph, edge.node) : NULL;
            operands[2 * i + (size_t)k] = !from ? -1
                                          : c->end[from->id] == c->end[node->id]
                                              ? step_number(chain, from)
                                              : input_number(chain, edge);
        }
    }
    struct attr *attrs = arena_array(arena, 4, sizeof *attrs);
    attrs[0] = (struct attr){"N", attr_int((int64_t)chain->inputs.n)};
    attrs[1] = (struct attr){"T", attr_type(chain->steps.items[0]->outputs[0].type)};
    attrs[2] = (struct attr){"operands", attr_ints(operands, (int)(2 * n_steps))};
    attrs[3] = (struct attr){"ops", {.kind = ATTR_LIST_STRING, .n = (int)n_steps, .strings = ops}};
    *n = 4;
    return attrs;
}

static void add_chain(struct chains *c, const struct node *end)
{
    struct step_chain chain = {VEC_INIT, VEC_INIT};
    collect(c, &chain, end);
    struct node_spec spec = {.op = "FusedElementwise",
                             .name = end->name,
                             .inputs = chain.inputs.items,
                             .n_inputs = (int)chain.inputs.n,
                             .device = end->device,
                             .assigned = end->assigned,
                             .file = end->file,
                             .line = end->line};
    spec.attrs = describe(c, &chain, &spec.n_attrs);
    c->fused->node_of[end->id] = graph_add_trusted(c->to, &spec, end->outputs, 1)->id;
    vec_release(&chain.steps);
    vec_release(&chain.inputs);
}

static void connect(const struct chains *c, const struct node *node)
{
    struct node *copy = graph_node(c->to, c->fused->node_of[node->id]);
    for (int i = 0; i < copy->n_inputs; i++)
        copy->inputs[i] = fused_edge(c->fused, copy->inputs[i]);
    for (int i = 0; i < node->n_controls; i++)
        graph_add_control(c->to, copy, c->fused->node_of[node->controls[i]]);
}

static void rewrite(struct chains *c)
{
    c->fused->graph = c->to = graph_new(c->graph->registry);
    for (size_t i = 0; i < c->graph->nodes.n; i++) {
        const struct node *node = graph_node(c->graph, (int)i);
        c->fused->node_of[i] = -1;
        if (c->end[i] < 0)
            c->fused->node_of[i] = graph_add_copy(c->to, node)->id;
        else if (c->end[i] == (int)i)
            add_chain(c, node);
    }
    for (size_t i = 0; i < c->graph->nodes.n; i++)
        if (c->fused->node_of[i] >= 0)
            connect(c, graph_node(c->graph, (int)i));
}

void fuse_chains(const struct graph *graph, const struct fuse_options *options, struct fused *fused)
{
    struct arena memory = ARENA_INIT;
    struct error ignored = ERROR_INIT; /* what has no order is refused elsewhere */
    size_t n = graph->nodes.n + 1;
    struct chains c = {.graph = graph,
                       .options = options,
                       .order = arena_array(&memory, n, sizeof *c.order),
                       .uses = arena_array(&memory, n, sizeof *c.uses),
                       .kept = arena_array(&memory, n, sizeof *c.kept),
                       .fusable = arena_array(&memory, n, sizeof *c.fusable),
                       .end = arena_array(&memory, n, sizeof *c.end),
                       .fused = fused};
    *fused = (struct fused){.node_of = mem_array(n, sizeof *fused->node_of)};
    look_at_all(&c);
    if (kernel_exists(options->kernels, "FusedElementwise", options->device) &&
        !graph_order(graph, c.order, &ignored))
        find_chains(&c);
    if (fused->n_gone)
        rewrite(&c);
    arena_release(&memory);
}
