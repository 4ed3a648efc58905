/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/nn/pool_shapes.h"

const struct pool_form *pool_form_of(const struct node *node)
{
    static const struct pool_form forms[] = {
        {"MaxPool", 1, false, false, false},        {"MaxPoolGrad", 3, true, false, false},
        {"MaxPoolGradGrad", 3, false, true, false}, {"AvgPool", 1, false, false, false},
        {"AvgPoolGrad", 1, true, false, false},     {"MaxPoolWithPlace", 1, false, false, true},
        {"MaxPoolPlaceGrad", 2, true, false, true},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (node_is(node, forms[i].op))
            return &forms[i];
    return NULL;
}

/* Finds the image's shape: that of input 0; for the gradient of a mean, the value of input 0; if
 * only places are left of the image, the output's shape, from an attribute. */
static int image_shape(struct kernel_call *call, const struct pool_form *form, struct shape *image)
{
    const struct tensor *in = call->in[0];
    *image = in->shape;
    if (form->to_image && form->place) {
        *image = call->node->outputs[0].shape;
    } else if (call->n_in == 2) {
        if (in->shape.rank != 1 || in->shape.dims[0] != 4)
            return kernel_fail(call, "orig_input_shape must have 4 elements, not %s",
                               shape_text(&in->shape));
        image->rank = 4;
        for (int i = 0; i < 4; i++)
            image->dims[i] = tensor_get_int64(in, i);
        if (shape_count(image) < 0)
            return kernel_fail(call, "orig_input_shape %s", shape_text(image));
    }
    if (image->rank != 4)
        return kernel_fail(call, "%s must have rank 4, not %s", call->node->op->inputs[0].name,
                           shape_text(image));
    return 0;
}

int pool_solve(struct kernel_call *call, const struct pool_form *form, const struct window *window,
               struct pool_shapes *shapes)
{
    struct window *w = &shapes->window;
    *w = *window;
    if (image_shape(call, form, &shapes->image) || window_solve(w, &shapes->image, call->err))
        return call->err->code;
    shapes->output = window_output(w, &shapes->image, shapes->image.dims[w->channels]);
    /* Inputs after the first have the output's shape, except a gradient with the image's shape. */
    for (int i = form->to_image && form->place ? 0 : 1; i < call->n_in; i++) {
        bool is_image = form->of_image && i == call->n_in - 1;
        const struct shape *expected = is_image ? &shapes->image : &shapes->output;
        if (!shape_equal(expected, &call->in[i]->shape))
            return kernel_fail(call, "%s must be %s, not %s", call->node->op->inputs[i].name,
                               shape_text(expected), shape_text(&call->in[i]->shape));
    }
    return 0;
}
