/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/nn/conv_shapes.h"

#include <string.h>

int conv_init(struct conv *c, const struct node *node, struct error *err)
{
    memset(c, 0, sizeof *c);
    c->direction = conv_direction_of(node);
    c->local = conv_is_local(node);
    c->type = node_type(node, "T");
    return window_init(&c->window, node, err);
}

/* Groups of input channels, as deep as the filter, have as many groups of out channels. */
static int conv_groups(struct conv *c, const struct shape *filter, struct error *err)
{
    int64_t in = c->in_channels, depth = window_filter_dim(filter, 2);
    c->groups = in < 0 || depth < 0 ? SHAPE_UNKNOWN : depth > 0 && !c->local ? in / depth : 1;
    if (c->groups >= 0 && (in != c->groups * depth || !c->groups))
        return error_set(err, ERR_DATA, "input has %lld channels, filter is for %lld: %s",
                         (long long)in, (long long)depth, shape_text(filter));
    if (c->groups > 0 && c->out_channels > 0 && c->out_channels % c->groups)
        return error_set(err, ERR_DATA,
                         "%lld channels of the input are %lld groups for filter %s, whose outputs "
                         "they do not divide",
                         (long long)in, (long long)c->groups, shape_text(filter));
    return 0;
}

int conv_solve(struct conv *c, const struct shape *image, const struct shape *filter,
               struct error *err)
{
    struct window_axis *y = &c->window.y, *x = &c->window.x;
    y->size = window_filter_dim(filter, 0);
    x->size = window_filter_dim(filter, 1);
    c->batch = image->rank == 4 ? image->dims[0] : SHAPE_UNKNOWN;
    c->in_channels = image->rank == 4 ? image->dims[c->window.channels] : SHAPE_UNKNOWN;
    c->out_channels = window_filter_dim(filter, 3);
    if (conv_groups(c, filter, err) || window_solve(&c->window, image, err))
        return err->code;
    if (filter->rank == 6) {
        /* The filter's shape tells its positions; some may not be known from the output. */
        struct shape given = shape_matrix(filter->dims[0], filter->dims[1]);
        struct shape there = shape_matrix(y->out, x->out), met;
        if (!shape_merge(&given, &there, &met))
            return error_set(err, ERR_DATA, "filter is for %s positions, the output has %s",
                             shape_text(&given), shape_text(&there));
        y->out = met.dims[0];
        x->out = met.dims[1];
    }
    c->image = *image;
    c->filter = *filter;
    c->output = window_output(&c->window, image, c->out_channels);
    return 0;
}

/* Solves for shapes that are known. */
static int solve_known(struct conv *c, const struct shape *image, const struct shape *filter,
                       struct error *err)
{
    if (image->rank != 4 || filter->rank != (c->local ? 6 : 4))
        return error_set(err, ERR_DATA, "image must have rank 4 and filter rank %d, not %s and %s",
                         c->local ? 6 : 4, shape_text(image), shape_text(filter));
    return conv_solve(c, image, filter, err);
}

int conv_plan(struct kernel_setup *setup, struct conv *c)
{
    const struct shape *in[] = {&setup->in_types[0].shape, &setup->in_types[1].shape};
    if (c->direction != CONV_FORWARD)
        in[c->direction == CONV_FILTER] = &setup->out_types[0].shape;
    return solve_known(c, in[0], in[1], setup->err);
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

/* Reads an input that holds a shape. */
static int read_sizes(struct kernel_call *call, int input, int rank, struct shape *sizes)
{
    const struct tensor *t = call->in[input];
    if (t->shape.rank != 1 || t->shape.dims[0] != rank)
        return kernel_fail(call, "sizes must be a vector of %d elements, not %s", rank,
                           shape_text(&t->shape));
    sizes->rank = rank;
    for (int i = 0; i < rank; i++) {
        sizes->dims[i] = tensor_get_int64(t, i);
        if (sizes->dims[i] < 0)
            return kernel_fail(call, "size %lld at [%d] is negative", (long long)sizes->dims[i], i);
    }
    return 0;
}

int conv_describe(struct kernel_call *call, const struct conv *form, struct conv *conv)
{
    enum conv_direction direction = form->direction;
    struct shape image = call->in[0]->shape, filter = call->in[1]->shape;
    *conv = *form;
    if ((direction == CONV_IMAGE && read_sizes(call, 0, 4, &image)) ||
        (direction == CONV_FILTER && read_sizes(call, 1, form->local ? 6 : 4, &filter)) ||
        solve_known(conv, &image, &filter, call->err))
        return call->err->code;
    if (direction != CONV_FORWARD && !shape_equal(&conv->output, &call->in[2]->shape))
        return kernel_fail(call, "out_backprop must be %s, not %s", shape_text(&conv->output),
                           shape_text(&call->in[2]->shape));
    return 0;
}
