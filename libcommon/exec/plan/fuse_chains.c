/* SPDX-License-Identifier: Apache-2.0
 *
 * Chains of element-wise ops, found from their ends: each becomes one node, named as its last op.
 */
#include "exec/plan/fuse_private.h"

#define STEPS_MAX 16 /* no tree of so many needs more intermediate results than the kernel has */

struct step_chain {
    VEC(const struct node *) steps; /* in the order in which they run; the last is the end */
    fuse_edges inputs;
};

struct chains {
    struct fuse_groups *groups;
    bool *fusable; /* by node */
    int *kept;     /* by fusable node: tensors that are kept only for its chain */
};

/* ---- which ops ---- */

static bool is_scalar(const struct shape *shape)
{
    return shape_count(shape) == 1;
}

/* Returns whether inputs have the result's type and each has its shape or is a scalar. */
static bool has_fitting_inputs(const struct fuse_groups *g, const struct node *node)
{
    const struct node_output *out = &node->outputs[0];
    bool is_full = is_scalar(&out->shape);
    for (int i = 0; i < node->n_inputs; i++) {
        const struct node_output *in = fuse_source(g, node->inputs[i]);
        bool is_same = shape_is_known(&in->shape) && shape_equal(&in->shape, &out->shape);
        if (in->type != out->type || !shape_is_known(&in->shape) ||
            (!is_same && !is_scalar(&in->shape)))
            return false;
        is_full |= is_same;
    }
    return is_full;
}

/* ---- one chain ---- */

/* Returns whether `node` can be a step of the chain that contains its consumer, `next`. */
static bool can_join(const struct chains *c, const struct node *node, const struct node *next)
{
    return c->fusable[node->id] && c->groups->uses[node->id] == 1 && c->kept[node->id] <= 1 &&
           node->outputs[0].type == next->outputs[0].type &&
           shape_equal(&node->outputs[0].shape, &next->outputs[0].shape) &&
           fuse_same_place(node, next) && !fuse_reads_variables(c->groups, node);
}

/* Instead of its result, the op's inputs are kept until the chain's end runs: they must take no
 * more memory than the result would have. */
static void count_kept(struct chains *c, const struct node *node)
{
    for (int i = 0; i < node->n_inputs; i++) {
        const struct node *from = graph_node(c->groups->graph, node->inputs[i].node);
        if (can_join(c, from, node))
            c->kept[node->id] += c->kept[from->id];
        else if (c->groups->uses[from->id] == 1 &&
                 !is_scalar(&fuse_source(c->groups, node->inputs[i])->shape))
            c->kept[node->id]++;
    }
}

/* Marks the end and the steps that lead to it, backwards from the end. */
static int claim_chain(struct chains *c, const struct node *end)
{
    VEC(const struct node *) todo = VEC_INIT;
    int n = 1;
    c->groups->end[end->id] = end->id;
    vec_push(&todo, end);
    while (todo.n) {
        const struct node *node = vec_pop(&todo);
        for (int i = 0; i < node->n_inputs && n < STEPS_MAX; i++) {
            const struct node *from = graph_node(c->groups->graph, node->inputs[i].node);
            if (!can_join(c, from, node))
                continue;
            c->groups->end[from->id] = end->id;
            vec_push(&todo, from);
            n++;
        }
    }
    vec_release(&todo);
    if (n == 1)
        c->groups->end[end->id] = -1;
    return n;
}

void fuse_chains_find(struct fuse_groups *g)
{
    size_t n = g->graph->nodes.n;
    struct chains c = {.groups = g};
    if (!kernel_exists(g->options->kernels, "FusedElementwise", g->options->device))
        return;
    c.kept = arena_array(&g->memory, n + 1, sizeof *c.kept);
    c.fusable = arena_array(&g->memory, n + 1, sizeof *c.fusable);
    for (size_t i = 0; i < n; i++) {
        const struct node *node = graph_node(g->graph, (int)i);
        if (!fuse_can_go(g, node) || !has_fitting_inputs(g, node))
            continue; /* searched last, as the table of kernels is long */
        const struct kernel_row *row = fuse_row(g, node);
        c.fusable[i] = row && row->flags & KERNEL_ELEMENTWISE;
    }
    for (size_t i = 0; i < n; i++)
        if (c.fusable[g->order[i]])
            count_kept(&c, graph_node(g->graph, g->order[i]));
    for (size_t i = n; i-- > 0;)
        if (c.fusable[g->order[i]] && g->end[g->order[i]] < 0)
            g->n_gone += claim_chain(&c, graph_node(g->graph, g->order[i])) - 1;
}

/* ---- its node ---- */

static int input_number(struct step_chain *chain, struct edge edge)
{
    for (size_t i = 0; i < chain->inputs.n; i++)
        if (edge_equal(chain->inputs.items[i], edge))
            return (int)i;
    vec_push(&chain->inputs, edge);
    return (int)chain->inputs.n - 1;
}

static void collect(const struct fuse_groups *g, struct step_chain *chain, const struct node *node)
{
    for (int i = 0; i < node->n_inputs; i++) {
        const struct node *from = graph_node(g->graph, node->inputs[i].node);
        if (g->end[from->id] == g->end[node->id])
            collect(g, chain, from);
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

/* The ops and operands as attributes of FusedElementwise, in the graph's memory. */
static struct attr *describe(const struct fuse_groups *g, struct step_chain *chain, int *n)
{
    struct arena *arena = &g->to->arena;
    size_t n_steps = chain->steps.n;
    const char **ops = arena_array(arena, n_steps, sizeof *ops);
    int64_t *operands = arena_array(arena, 2 * n_steps, sizeof *operands);
    for (size_t i = 0; i < n_steps; i++) {
        const struct node *node = chain->steps.items[i];
        ops[i] = node->op->def->name;
        for (int k = 0; k < 2; k++) {
            struct edge edge = k < node->n_inputs ? node->inputs[k] : EDGE_NONE;
            const struct node *from = k < node->n_inputs ? graph_node(g->graph, edge.node) : NULL;
            operands[2 * i + (size_t)k] = !from ? -1
                                          : g->end[from->id] == g->end[node->id]
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

void fuse_chains_describe(struct fuse_groups *g, const struct node *end, struct node_spec *spec)
{
    struct step_chain chain = {VEC_INIT, VEC_INIT};
    collect(g, &chain, end);
    spec->op = "FusedElementwise";
    spec->attrs = describe(g, &chain, &spec->n_attrs);
    fuse_take_inputs(g, &chain.inputs, spec);
    vec_release(&chain.steps);
}
