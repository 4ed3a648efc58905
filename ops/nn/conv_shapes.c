/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/nn/conv_shapes.h"

#include <string.h>

#include "ops/math/outputs.h"

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

int conv_plan(struct kernel_setup *setup, struct conv *c)
{
    const struct shape *in[] = {&setup->in_types[0].shape, &setup->in_types[1].shape};
    if (c->direction != CONV_FORWARD)
        in[c->direction == CONV_FILTER] = &setup->out_types[0].shape;
    return conv_solve(c, in[0], in[1], setup->err);
}

bool conv_is_empty(const struct conv *c)
{
    return !shape_count(&c->image) || !shape_count(&c->filter) || !shape_count(&c->output);
}

struct tensor *conv_output(struct kernel_call *call, const struct conv *form, struct conv *c)
{
    bool has_sizes = form->direction != CONV_FORWARD;
    int sizes = form->direction == CONV_FILTER;
    struct tensor *out = result_outputs_sized(call, sizes, sizes + has_sizes);
    const struct shape *in[] = {&call->in[0]->shape, &call->in[1]->shape};
    *c = *form;
    if (out && has_sizes)
        in[sizes] = &out->shape;
    return out && !conv_solve(c, in[0], in[1], call->err) ? out : NULL;
}
