/* SPDX-License-Identifier: Apache-2.0
 *
 * Shape functions of custom ops.
 */
#include "ops/user/internal.h"

int user_shape(struct infer *infer)
{
    struct tf_infer handle = {&user_functions, {&user_functions, infer->node}, infer};
    int (*shape)(tf_infer *) = user_row(infer->node)->shape;
    if (!shape || !shape(&handle))
        return infer->err->code;
    return infer->err->code ? infer->err->code : infer_fail(infer, "the shapes do not fit");
}

const tf_node *user_infer_node(const tf_infer *infer)
{
    return &infer->node;
}

int user_infer_inputs(const tf_infer *infer)
{
    return infer->infer->n_in;
}

int user_infer_outputs(const tf_infer *infer)
{
    return infer->infer->n_out;
}

static const struct node_output *infer_input(const tf_infer *infer, int input)
{
    return input >= 0 && input < infer->infer->n_in ? infer->infer->in[input] : NULL;
}

enum tf_type user_infer_type(const tf_infer *infer, int input)
{
    const struct node_output *in = infer_input(infer, input);
    return in ? (enum tf_type)in->type : TF_INVALID;
}

void user_infer_shape(const tf_infer *infer, int input, struct tf_shape *shape)
{
    const struct node_output *in = infer_input(infer, input);
    *shape = user_shape_out(in ? &in->shape : &SHAPE_ANY);
}

const void *user_infer_value(const tf_infer *infer, int input, struct tf_shape *shape)
{
    const struct tensor *value =
        infer_input(infer, input) ? infer_value(infer->infer, input) : NULL;
    if (!value || value->type == STRING)
        return NULL;
    *shape = user_shape_out(&value->shape);
    return value->data;
}

void user_infer_set(tf_infer *infer, int output, const struct tf_shape *shape)
{
    struct infer *own = infer->infer;
    if (own->err->code)
        return;
    if (output < 0 || output >= own->n_out)
        infer_fail(own, "its shape function sets output %d of %d", output, own->n_out);
    else if (!user_shape_in(shape, false, &own->out[output]))
        infer_fail(own, "its shape function gives output %d what is no shape", output);
}

static bool has_both(tf_infer *infer, int a, int b)
{
    if (infer_input(infer, a) && infer_input(infer, b))
        return true;
    infer_fail(infer->infer, "its shape function asks for inputs %d and %d of %d", a, b,
               infer->infer->n_in);
    return false;
}

int user_infer_merge(tf_infer *infer, int a, int b, struct tf_shape *merged)
{
    struct shape shape;
    if (!has_both(infer, a, b) || infer_merge(infer->infer, a, b, &shape))
        return infer->infer->err->code;
    *merged = user_shape_out(&shape);
    return 0;
}

int user_infer_broadcast(tf_infer *infer, int a, int b, struct tf_shape *result)
{
    struct shape shape;
    if (!has_both(infer, a, b))
        return infer->infer->err->code;
    const struct shape *x = infer_shape(infer->infer, a), *y = infer_shape(infer->infer, b);
    if (!shape_broadcast(x, y, &shape))
        return infer_fail(infer->infer, "%s and %s cannot be broadcast together", shape_text(x),
                          shape_text(y));
    *result = user_shape_out(&shape);
    return 0;
}

int user_infer_fail(tf_infer *infer, const char *text)
{
    return infer_fail(infer->infer, "%s", text);
}
