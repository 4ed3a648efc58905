/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/nn/conv_shapes.h"

#include <string.h>

int conv_init(struct conv *c, enum conv_direction direction, const struct node *node,
              const struct shape *image, const struct shape *filter, struct error *err)
{
    memset(c, 0, sizeof *c);
    if (image->rank != 4 || filter->rank != 4)
        return error_set(err, ERR_DATA, "image and filter must have rank 4, not %s and %s",
                         shape_text(image), shape_text(filter));
    if (window_init(&c->window, node, err))
        return err->code;
    c->direction = direction;
    c->type = node_type(node, "T");
    c->window.y.size = filter->dims[0];
    c->window.x.size = filter->dims[1];
    c->batch = image->dims[0];
    c->in_channels = image->dims[c->window.channels];
    c->out_channels = filter->dims[3];
    if (c->in_channels != filter->dims[2])
        return error_set(err, ERR_DATA, "input has %lld channels, filter is for %lld",
                         (long long)c->in_channels, (long long)filter->dims[2]);
    if (window_solve(&c->window, node, image, err))
        return err->code;
    c->image = *image;
    c->filter = *filter;
    c->output = window_output(&c->window, image, c->out_channels);
    return 0;
}

enum conv_direction conv_direction_of(const struct node *node)
{
    if (node_is(node, "Conv2D"))
        return CONV_FORWARD;
    return node_is(node, "Conv2DBackpropInput") ? CONV_IMAGE : CONV_FILTER;
}

bool conv_is_empty(const struct conv *c)
{
    return !shape_count(&c->image) || !shape_count(&c->filter) || !shape_count(&c->output);
}

const struct shape *conv_result(const struct conv *c)
{
    const struct shape *const shapes[] = {&c->output, &c->image, &c->filter};
    return shapes[c->direction];
}

/* An input that holds a shape. */
static int read_sizes(struct kernel_call *call, int input, struct shape *sizes)
{
    const struct tensor *t = call->in[input];
    if (t->shape.rank != 1 || t->shape.dims[0] != 4)
        return kernel_fail(call, "sizes must be a vector of 4 elements, not %s",
                           shape_text(&t->shape));
    sizes->rank = 4;
    for (int i = 0; i < 4; i++) {
        sizes->dims[i] = tensor_get_int64(t, i);
        if (sizes->dims[i] < 0)
            return kernel_fail(call, "size %lld at [%d] is negative", (long long)sizes->dims[i], i);
    }
    return 0;
}

int conv_describe(struct kernel_call *call, enum conv_direction direction, struct conv *conv)
{
    struct shape image = call->in[0]->shape, filter = call->in[1]->shape;
    if ((direction == CONV_IMAGE && read_sizes(call, 0, &image)) ||
        (direction == CONV_FILTER && read_sizes(call, 1, &filter)) ||
        conv_init(conv, direction, call->node, &image, &filter, call->err))
        return call->err->code;
    if (direction != CONV_FORWARD && !shape_equal(&conv->output, &call->in[2]->shape))
        return kernel_fail(call, "out_backprop must be %s, not %s", shape_text(&conv->output),
                           shape_text(&call->in[2]->shape));
    return 0;
}
