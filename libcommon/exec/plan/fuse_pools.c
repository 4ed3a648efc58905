/* SPDX-License-Identifier: Apache-2.0
 *
 * MaxPool and its gradient by positions: MaxPool outputs a byte for each window, from which the
 * gradient is made without the image. A ReluGrad behind it that masks by that image is folded into
 * the positions: where a window's largest value is not above 0, none of its cells lets a gradient
 * through; elsewhere the cell with that value does.
 */
#include "exec/plan/fuse_private.h"

#define PLACES_MAX 254 /* cells of a window that a byte can number */

struct pools {
    const struct node **pool;        /* by gradient: its pool, to be rewritten; NULL: none */
    const struct op_places **places; /* by pool that outputs positions */
    bool *masked;
};

/* ---- which ops ---- */

static const struct op_places *places_of(const struct node *grad)
{
    return grad->op ? grad->op->def->places : NULL;
}

static bool has_kernels(const struct fuse_groups *g, const struct node *grad)
{
    const char *const ops[] = {places_of(grad)->with_place, places_of(grad)->gradient};
    bool all = true;
    for (int i = 0; i < 2; i++) {
        const struct op *op = registry_find(g->graph->registry, ops[i]);
        int type = op ? op_find_attr(op, "T") : -1;
        all &= type >= 0 &&
               kernel_types(g->options->kernels, op, &op->attrs[type], g->options->device) &
                   DTYPE_BIT(grad->outputs[0].type);
    }
    return all;
}

/* The pool whose gradient this is; NULL: it is none, or one that cannot be rewritten. */
static const struct node *pool_of(const struct fuse_groups *g, const struct node *grad)
{
    if (!places_of(grad) || g->bound[grad->id])
        return NULL;
    const struct node *pool = graph_node(g->graph, grad->inputs[1].node);
    bool fits = node_is(pool, places_of(grad)->pool) && !g->bound[pool->id] &&
                edge_equal(pool->inputs[0], grad->inputs[0]) && fuse_attrs_agree(pool, grad) &&
                fuse_same_place(pool, grad) && shape_is_known(&grad->outputs[0].shape) &&
                shape_is_known(&pool->outputs[0].shape) &&
                !graph_output(g->graph, grad->inputs[0])->is_ref;
    const struct attr_value *ksize = fits ? node_attr(pool, "ksize") : NULL;
    int64_t cells = 1;
    for (int i = 0; fits && i < ksize->n && cells <= PLACES_MAX; i++)
        cells *= ksize->ints[i];
    return fits && cells <= PLACES_MAX && has_kernels(g, grad) ? pool : NULL;
}

/* Returns whether `mask` takes the gradient and passes it on where the image is above 0. */
static bool is_mask(const struct fuse_groups *g, const struct node *grad, const struct node *mask)
{
    return mask && node_is(mask, places_of(grad)->mask) && g->uses[grad->id] == 1 &&
           !g->bound[mask->id] && mask->inputs[0].node == grad->id &&
           edge_equal(mask->inputs[1], grad->inputs[0]) && fuse_same_place(grad, mask);
}

/* ---- groups ---- */

void fuse_pools_find(struct fuse_groups *g)
{
    size_t n = g->graph->nodes.n + 1;
    struct pools *p = g->own = arena_alloc(&g->memory, sizeof *p);
    int *n_grads = arena_array(&g->memory, n, sizeof *n_grads);
    p->pool = arena_array(&g->memory, n, sizeof *p->pool);
    p->places = arena_array(&g->memory, n, sizeof *p->places);
    p->masked = arena_array(&g->memory, n, sizeof *p->masked);
    graph_each(grad, g->graph) {
        const struct node *pool = p->pool[grad->id] = pool_of(g, grad);
        if (pool)
            n_grads[pool->id]++;
    }
    graph_each(grad, g->graph) {
        const struct node *pool = p->pool[grad->id], *mask = g->taker[grad->id];
        if (!pool)
            continue;
        bool masked = n_grads[pool->id] == 1 && is_mask(g, grad, mask);
        p->places[pool->id] = places_of(grad);
        p->masked[pool->id] = masked;
        g->end[pool->id] = pool->id;
        int end = masked ? mask->id : grad->id;
        g->end[grad->id] = g->end[end] = end;
        g->n_gone++;
    }
}

/* ---- their nodes ---- */

static void describe_pool(struct fuse_groups *g, const struct node *pool, struct node_spec *spec)
{
    const struct pools *p = g->own;
    struct node_output *outputs = arena_array(&g->to->arena, 2, sizeof *outputs);
    outputs[0] = outputs[1] = pool->outputs[0];
    outputs[1].type = UINT8;
    spec->op = p->places[pool->id]->with_place;
    spec->inputs = pool->inputs;
    spec->n_inputs = 1;
    fuse_set_attrs(g, pool, &(struct attr){"masked", attr_bool(p->masked[pool->id])}, 1, spec);
    g->outputs = outputs;
    g->n_outputs = 2;
}

void fuse_pools_describe(struct fuse_groups *g, const struct node *end, struct node_spec *spec)
{
    const struct pools *p = g->own;
    struct arena *arena = &g->to->arena;
    if (p->places[end->id]) {
        describe_pool(g, end, spec);
        return;
    }
    const struct node *grad = p->pool[end->id] ? end : graph_node(g->graph, end->inputs[0].node);
    const struct node *pool = p->pool[grad->id];
    struct edge *inputs = arena_array(arena, 2, sizeof *inputs);
    inputs[0] = (struct edge){pool->id, 1};
    inputs[1] = grad->inputs[2];
    spec->op = places_of(grad)->gradient;
    spec->inputs = inputs;
    spec->n_inputs = 2;
    const int64_t *sizes = arena_copy(arena, grad->outputs[0].shape.dims, 4 * sizeof *sizes);
    fuse_set_attrs(g, pool, &(struct attr){"image", attr_ints(sizes, 4)}, 1, spec);
}
