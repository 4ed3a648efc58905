/* SPDX-License-Identifier: Apache-2.0
 *
 * MaxPool and its gradient by places: MaxPool leaves a byte for each window, from which the
 * gradient is made without the image. A ReluGrad behind it that masks by that image is folded into
 * the places: where a window's largest value is not above 0, none of its cells lets a gradient
 * through, and where it is, the cell that has it does.
 */
#include "base/container_of.h"
#include "base/memory.h"
#include "exec/plan/fuse_private.h"

#define PLACES_MAX 254 /* cells of a window that a byte can count */

struct pools {
    struct fuse_groups groups;
    const struct node **pool;        /* by gradient: the pool that leaves its places; NULL: none */
    const struct op_places **places; /* by pool that leaves them */
    bool *masked;
};

/* ---- which ops ---- */

static bool same_edge(struct edge a, struct edge b)
{
    return a.node == b.node && a.slot == b.slot;
}

static bool is_countable(const struct node *pool)
{
    const struct attr_value *ksize = node_attr(pool, "ksize");
    int64_t cells = 1;
    for (int i = 0; i < ksize->n && cells <= PLACES_MAX; i++)
        cells *= ksize->ints[i];
    return cells <= PLACES_MAX;
}

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

/* The pool whose gradient this is; NULL: it is none, or one that stays. */
static const struct node *pool_of(const struct fuse_groups *g, const struct node *grad)
{
    if (!places_of(grad) || g->bound[grad->id])
        return NULL;
    const struct node *pool = graph_node(g->graph, grad->inputs[1].node);
    bool fits = node_is(pool, places_of(grad)->pool) && !g->bound[pool->id] &&
                same_edge(pool->inputs[0], grad->inputs[0]) && fuse_attrs_agree(pool, grad) &&
                fuse_same_place(pool, grad) && shape_is_known(&grad->outputs[0].shape) &&
                shape_is_known(&pool->outputs[0].shape) && !fuse_source(g, grad->inputs[0])->is_ref;
    return fits && is_countable(pool) && has_kernels(g, grad) ? pool : NULL;
}

/* Whether the mask takes the gradient, and lets through where the image is above 0. */
static bool is_mask(const struct pools *p, const struct node *grad, const struct node *mask)
{
    const struct fuse_groups *g = &p->groups;
    return mask && node_is(mask, places_of(grad)->mask) && g->uses[grad->id] == 1 &&
           !g->bound[mask->id] && mask->inputs[0].node == grad->id &&
           same_edge(mask->inputs[1], grad->inputs[0]) && fuse_same_place(grad, mask);
}

/* ---- groups ---- */

static void find_pools(struct pools *p)
{
    struct fuse_groups *g = &p->groups;
    int *n_grads = arena_array(&g->memory, g->graph->nodes.n + 1, sizeof *n_grads);
    for (size_t i = 0; i < g->graph->nodes.n; i++) {
        const struct node *node = graph_node(g->graph, (int)i);
        const struct node *pool = p->pool[i] = pool_of(g, node);
        if (pool)
            n_grads[pool->id]++;
    }
    for (size_t i = 0; i < g->graph->nodes.n; i++) {
        const struct node *grad = graph_node(g->graph, (int)i), *pool = p->pool[i];
        if (!pool)
            continue;
        const struct node *mask = g->taker[i];
        bool masked = n_grads[pool->id] == 1 && is_mask(p, grad, mask);
        p->places[pool->id] = places_of(grad);
        p->masked[pool->id] = masked;
        g->end[pool->id] = pool->id;
        g->end[i] = masked ? mask->id : (int)i;
        g->end[g->end[i]] = g->end[i];
        g->fused->n_gone++;
    }
}

/* ---- their nodes ---- */

static void describe_pool(struct pools *p, const struct node *pool, struct node_spec *spec)
{
    struct arena *arena = &p->groups.to->arena;
    struct node_output *outputs = arena_array(arena, 2, sizeof *outputs);
    outputs[0] = outputs[1] = pool->outputs[0];
    outputs[1].type = UINT8;
    spec->op = p->places[pool->id]->with_place;
    spec->inputs = pool->inputs;
    spec->n_inputs = 1;
    fuse_set_attrs(&p->groups, pool, &(struct attr){"masked", attr_bool(p->masked[pool->id])}, 1,
                   spec);
    p->groups.outputs = outputs;
    p->groups.n_outputs = 2;
}

static void describe_grad(struct pools *p, const struct node *end, struct node_spec *spec)
{
    struct arena *arena = &p->groups.to->arena;
    const struct node *grad =
        p->pool[end->id] ? end : graph_node(p->groups.graph, end->inputs[0].node);
    const struct node *pool = p->pool[grad->id];
    struct edge *inputs = arena_array(arena, 2, sizeof *inputs);
    inputs[0] = (struct edge){pool->id, 1};
    inputs[1] = grad->inputs[2];
    spec->op = places_of(grad)->gradient;
    spec->inputs = inputs;
    spec->n_inputs = 2;
    const int64_t *sizes = arena_copy(arena, grad->outputs[0].shape.dims, 4 * sizeof *sizes);
    fuse_set_attrs(&p->groups, pool, &(struct attr){"image", attr_ints(sizes, 4)}, 1, spec);
}

static void describe(struct fuse_groups *groups, const struct node *end, struct node_spec *spec)
{
    struct pools *p = CONTAINER_OF(groups, struct pools, groups);
    if (p->places[end->id])
        describe_pool(p, end, spec);
    else
        describe_grad(p, end, spec);
}

void fuse_pools(const struct graph *graph, const struct fuse_options *options, struct fused *fused)
{
    struct pools p;
    struct fuse_groups *g = &p.groups;
    size_t n = graph->nodes.n + 1;
    bool has_order = fuse_groups_init(g, graph, options, fused);
    p.pool = arena_array(&g->memory, n, sizeof *p.pool);
    p.places = arena_array(&g->memory, n, sizeof *p.places);
    p.masked = arena_array(&g->memory, n, sizeof *p.masked);
    if (has_order)
        find_pools(&p);
    if (fused->n_gone)
        fuse_rewrite(g, describe);
    fuse_groups_release(g);
}
