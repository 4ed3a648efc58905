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

int64_t norm_channels(const struct norm *norm, const struct shape *image)
{
    return image->dims[norm->nchw ? 1 : 3];
}

static int check_image(struct kernel_call *call, const struct shape *image)
{
    if (image->rank == 4)
        return 0;
    return kernel_fail(call, "images must have rank 4, not %s", shape_text(image));
}

static int check_vectors(struct kernel_call *call, int first, int end, int64_t n)
{
    for (int i = first; i < end; i++) {
        const struct shape *v = &call->in[i]->shape;
        if (v->rank != 1 || v->dims[0] != n)
            return kernel_fail(call, "%s must have %lld elements, one per channel, not %s",
                               call->node->op->inputs[i].name, (long long)n, shape_text(v));
    }
    return 0;
}

int norm_check(struct kernel_call *call, const struct norm *norm)
{
    const struct shape *image = &call->in[0]->shape;
    if (check_image(call, image))
        return call->err->code;
    int64_t n = norm_channels(norm, image);
    int code = check_vectors(call, 1, 3, n);
    return code ? code : check_vectors(call, 3, 5, norm->training ? 0 : n);
}

int norm_grad_check(struct kernel_call *call, const struct norm *norm)
{
    const struct shape *image = &call->in[1]->shape, *given = &call->in[0]->shape;
    if (check_image(call, image))
        return call->err->code;
    if (!shape_equal(image, given))
        return kernel_fail(call, "y_backprop must be %s, not %s", shape_text(image),
                           shape_text(given));
    return check_vectors(call, 2, 5, norm_channels(norm, image));
}

int norm_outputs(struct kernel_call *call, const struct shape *image, const int64_t sizes[4],
                 void *out[5])
{
    for (int i = 0; i < 5; i++) {
        struct shape shape = i ? shape_vector(sizes[i - 1]) : *image;
        struct tensor *output = kernel_alloc_output(call, i, &shape);
        if (!output)
            return call->err->code;
        out[i] = output->data;
    }
    return 0;
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
