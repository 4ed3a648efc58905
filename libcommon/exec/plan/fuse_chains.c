/* SPDX-License-Identifier: Apache-2.0
 *
 * Chains of element-wise ops, found from their ends: each becomes one node, named as its last op.
 */
#include "exec/plan/fuse_private.h"

#define STEPS_MAX 16 /* no tree of so many needs more intermediate results than the kernel has */

struct step_chain {
    VEC(const char *) ops; /* in the order in which they run; the last is the end's */
    VEC(int64_t) operands; /* two of each: the number of an input, -1, or -2 - that of a step */
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
        const struct node_output *in = graph_output(g->graph, node->inputs[i]);
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
                 !is_scalar(&graph_output(c->groups->graph, node->inputs[i])->shape))
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
    graph_each(node, g->graph) {
        if (!fuse_can_go(g, node) || !has_fitting_inputs(g, node))
            continue; /* searched last, as the table of kernels is long */
        const struct kernel_row *row = fuse_row(g, node);
        c.fusable[node->id] = row && row->flags & KERNEL_ELEMENTWISE;
    }
    graph_each_ordered(node, g->graph, g->order) {
        if (c.fusable[node->id])
            count_kept(&c, node);
    }
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

/* Adds the steps up to the node's. Returns what the node is as an operand. */
static int64_t add_steps(const struct fuse_groups *g, struct step_chain *chain,
                         const struct node *node)
{
    int64_t operands[2] = {-1, -1};
    for (int i = 0; i < node->n_inputs; i++) {
        const struct node *from = graph_node(g->graph, node->inputs[i].node);
        operands[i] = g->end[from->id] == g->end[node->id] ? add_steps(g, chain, from)
                                                           : input_number(chain, node->inputs[i]);
    }
    for (int i = 0; i < 2; i++)
        vec_push_in(&g->to->arena, &chain->operands, operands[i]);
    vec_push_in(&g->to->arena, &chain->ops, node->op->def->name);
    return -1 - (int64_t)chain->ops.n;
}

/* To the kernel, steps have the numbers behind those of inputs. */
void fuse_chains_describe(struct fuse_groups *g, const struct node *end, struct node_spec *spec)
{
    struct step_chain chain = {VEC_INIT, VEC_INIT, VEC_INIT};
    add_steps(g, &chain, end);
    int64_t n_inputs = (int64_t)chain.inputs.n;
    vec_each(operand, &chain.operands) {
        *operand = *operand < -1 ? n_inputs - 2 - *operand : *operand;
    }
    const struct attr attrs[] = {
        {"N", attr_int(n_inputs)},
        {"T", attr_type(end->outputs[0].type)},
        {"operands", attr_ints(chain.operands.items, (int)chain.operands.n)},
        {"ops", {.kind = ATTR_LIST_STRING, .n = (int)chain.ops.n, .strings = chain.ops.items}}};
    spec->op = "FusedElementwise";
    spec->attrs = arena_copy(&g->to->arena, attrs, sizeof attrs);
    spec->n_attrs = sizeof attrs / sizeof *attrs;
    fuse_take_inputs(g, &chain.inputs, spec);
}
