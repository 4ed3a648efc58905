/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/nn/checks.h"

#include "base/memory.h"
#include "ops/math/outputs.h"
#include "ops/nn/format.h"

/* ---- local response normalization ---- */

void lrn_init(struct lrn *lrn, const struct node *node)
{
    lrn->radius = node_int(node, "depth_radius");
    lrn->bias = node_float(node, "bias");
    lrn->alpha = node_float(node, "alpha");
    lrn->beta = node_float(node, "beta");
}

/* ---- batch normalization ---- */

void norm_init(struct norm *norm, const struct node *node)
{
    norm->epsilon = node_float(node, "epsilon");
    norm->training = node_bool(node, "is_training");
    norm->nchw = format_is_nchw(node);
}

/* ---- TopKV2 and InTopK ---- */

struct tensor *top_k_outputs(struct kernel_call *call)
{
    const struct shape *in = &call->in[0]->shape;
    struct tensor *values = result_outputs(call, 1, 2);
    if (!values || in->dims[in->rank - 1] <= INT32_MAX)
        return values;
    kernel_fail(call, "rows of %lld elements are too long", (long long)in->dims[in->rank - 1]);
    return NULL;
}

int in_top_k_prepare(struct kernel_setup *setup)
{
    int64_t *k = setup->state = mem_alloc(sizeof *k);
    *k = node_int(setup->node, "k");
    return 0;
}
