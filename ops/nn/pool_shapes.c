/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/nn/pool_shapes.h"

#include "ops/math/outputs.h"

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

const struct shape *pool_outputs(struct kernel_call *call, const struct pool_form *form,
                                 struct window *w)
{
    bool has_sizes = form->to_image && !form->place && call->n_in == 2; /* of a mean's gradient */
    const struct tensor *out = result_outputs_sized(call, 0, has_sizes);
    if (!out)
        return NULL;
    const struct shape *image = form->to_image ? &out->shape : &call->in[0]->shape;
    return window_solve(w, image, call->err) ? NULL : image;
}
