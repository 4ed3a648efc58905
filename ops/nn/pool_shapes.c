/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/nn/pool_shapes.h"

#include "base/vec.h"
#include "ops/math/outputs.h"

static const struct pool_form forms[N_POOL_KINDS] = {
    [POOL_MAX] = {"MaxPool", 1, false},
    [POOL_MAX_GRAD] = {"MaxPoolGrad", 3, true},
    [POOL_MAX_GRAD_GRAD] = {"MaxPoolGradGrad", 3, false},
    [POOL_AVG] = {"AvgPool", 1, false},
    [POOL_AVG_GRAD] = {"AvgPoolGrad", 1, true},
    [POOL_WITH_PLACE] = {"MaxPoolWithPlace", 1, false},
    [POOL_PLACE_GRAD] = {"MaxPoolPlaceGrad", 2, true},
};

int pool_init(struct pooling *pool, struct kernel_setup *setup)
{
    const struct node *node = setup->node;
    pool->kind = (enum pool_kind)names_find(forms, N_POOL_KINDS, node->op->def->name);
    if (pool->kind == N_POOL_KINDS)
        return kernel_setup_fail(setup, "the kernel has no code for %s", node->op->def->name);
    pool->form = &forms[pool->kind];
    pool->masked = pool->kind == POOL_WITH_PLACE && node_bool(node, "masked");
    return window_init(&pool->window, node, setup->err);
}

const struct shape *pool_outputs(struct kernel_call *call, const struct pooling *pool,
                                 struct window *w)
{
    const struct tensor *out = result_outputs_sized(call, 0, pool->kind == POOL_AVG_GRAD);
    if (!out)
        return NULL;
    *w = pool->window;
    const struct shape *image = pool->form->to_image ? &out->shape : &call->in[0]->shape;
    return window_solve(w, image, call->err) ? NULL : image;
}
