/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/nn/checks.h"

#include "base/memory.h"
#include "ops/array/args.h"
#include "ops/nn/format.h"

/* ---- local response normalization ---- */

void lrn_init(struct lrn *lrn, const struct node *node)
{
    lrn->radius = node_int(node, "depth_radius");
    lrn->bias = node_float(node, "bias");
    lrn->alpha = node_float(node, "alpha");
    lrn->beta = node_float(node, "beta");
}

int lrn_check(struct kernel_call *call)
{
    const struct shape *shape = &call->in[0]->shape;
    if (shape->rank != 4)
        return kernel_fail(call, "images must have rank 4, not %s", shape_text(shape));
    for (int i = 1; i < call->n_in; i++)
        if (!shape_equal(shape, &call->in[i]->shape))
            return kernel_fail(call, "shapes must be equal, not %s and %s", shape_text(shape),
                               shape_text(&call->in[i]->shape));
    return 0;
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

/* ---- Softmax and cross entropies ---- */

int softmax_rows_of(struct kernel_call *call, int64_t *rows, int64_t *n)
{
    const struct shape *shape = &call->in[0]->shape;
    if (!shape->rank)
        return kernel_fail(call, "logits must have at least rank 1, not %s", shape_text(shape));
    *n = shape->dims[shape->rank - 1];
    *rows = *n ? shape_count(shape) / *n : 0;
    return 0;
}

int cross_entropy_shape_of(struct kernel_call *call, struct shape *shape)
{
    const struct shape *features = &call->in[0]->shape, *labels = &call->in[1]->shape;
    if (!shape_broadcast(features, labels, shape) || shape->rank != 2)
        return kernel_fail(call, "features and labels must broadcast to a matrix, not %s and %s",
                           shape_text(features), shape_text(labels));
    return 0;
}

int sparse_cross_entropy_check(struct kernel_call *call)
{
    const struct shape *shape = &call->in[0]->shape, *labels = &call->in[1]->shape;
    if (shape->rank != 2 || labels->rank != 1 || labels->dims[0] != shape->dims[0])
        return kernel_fail(call,
                           "features must be a matrix and labels a vector of its rows, not %s "
                           "and %s",
                           shape_text(shape), shape_text(labels));
    return 0;
}

int cross_entropy_outputs(struct kernel_call *call, const struct shape *shape, struct tensor **loss,
                          struct tensor **backprop)
{
    struct shape losses = shape_vector(shape->dims[0]);
    *loss = kernel_alloc_output(call, 0, &losses);
    *backprop = *loss ? kernel_alloc_output(call, 1, shape) : NULL;
    return *backprop ? 0 : call->err->code;
}

/* ---- TopKV2 and InTopK ---- */

int top_k_check(struct kernel_call *call, int64_t *n, int64_t *k)
{
    const struct shape *shape = &call->in[0]->shape;
    if (!shape->rank)
        return kernel_fail(call, "input must have at least rank 1");
    *n = shape->dims[shape->rank - 1];
    if (*n > INT32_MAX)
        return kernel_fail(call, "rows of %lld elements are too long", (long long)*n);
    if (args_scalar(call, 1, "k", k))
        return call->err->code;
    if (*k < 0 || *k > *n)
        return kernel_fail(call, "k is %lld, but rows have %lld elements", (long long)*k,
                           (long long)*n);
    return 0;
}

int top_k_outputs(struct kernel_call *call, int64_t k, struct tensor **values,
                  struct tensor **indices)
{
    struct shape shape = call->in[0]->shape;
    shape.dims[shape.rank - 1] = k;
    *values = kernel_alloc_output(call, 0, &shape);
    *indices = *values ? kernel_alloc_output(call, 1, &shape) : NULL;
    return *indices ? 0 : call->err->code;
}

int in_top_k_prepare(struct kernel_setup *setup)
{
    int64_t *k = setup->state = mem_alloc(sizeof *k);
    *k = node_int(setup->node, "k");
    return 0;
}

int in_top_k_check(struct kernel_call *call)
{
    const struct shape *predictions = &call->in[0]->shape, *targets = &call->in[1]->shape;
    if (predictions->rank == 2 && targets->rank == 1 && predictions->dims[0] == targets->dims[0])
        return 0;
    return kernel_fail(call,
                       "predictions must be a matrix and targets a vector of its rows, "
                       "not %s and %s",
                       shape_text(predictions), shape_text(targets));
}
