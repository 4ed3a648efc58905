/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/nn/conv_shapes.h"

#include <string.h>

#include "ops/nn/local.h"

static int check_rank(const char *name, const struct shape *shape, int rank, struct error *err)
{
    if (shape->rank == rank)
        return 0;
    return error_set(err, ERR_DATA, "%s must have rank %d, not %s", name, rank, shape_text(shape));
}

int conv_find_groups(int64_t in_channels, const struct shape *filter, int64_t *groups,
                     struct error *err)
{
    const int64_t *channels = filter->dims + filter->rank - 2;
    bool is_local = filter->rank == 6; /* these have no groups */
    *groups = channels[0] > 0 && !is_local ? in_channels / channels[0] : 1;
    if (in_channels != *groups * channels[0] || *groups < 1)
        return error_set(err, ERR_DATA, "input has %lld channels, filter is for %lld: %s",
                         (long long)in_channels, (long long)channels[0], shape_text(filter));
    if (channels[1] > 0 && channels[1] % *groups)
        return error_set(err, ERR_DATA,
                         "%lld channels of the input are %lld groups for filter %s, whose outputs "
                         "they do not divide",
                         (long long)in_channels, (long long)*groups, shape_text(filter));
    return 0;
}

int conv_init(struct conv *c, const struct node *node, struct error *err)
{
    memset(c, 0, sizeof *c);
    c->direction = strstr(node->op->def->name, "Filter")  ? CONV_FILTER
                   : strstr(node->op->def->name, "Input") ? CONV_IMAGE
                                                          : CONV_FORWARD;
    c->local = conv_is_local(node);
    c->type = node_type(node, "T");
    return window_init(&c->window, node, err);
}

static int solve_shapes(struct conv *c, const struct shape *image, const struct shape *filter,
                        struct error *err)
{
    if (check_rank("image", image, 4, err) || check_rank("filter", filter, c->local ? 6 : 4, err))
        return err->code;
    const int64_t *dims = filter->dims + filter->rank - 4;
    c->window.y.size = dims[0];
    c->window.x.size = dims[1];
    c->batch = image->dims[0];
    c->in_channels = image->dims[c->window.channels];
    c->out_channels = dims[3];
    const struct window_axis *y = &c->window.y, *x = &c->window.x;
    if (conv_find_groups(c->in_channels, filter, &c->groups, err) ||
        window_solve(&c->window, image, err))
        return err->code;
    if (c->local && (filter->dims[0] != y->out || filter->dims[1] != x->out))
        return error_set(err, ERR_DATA,
                         "filter is for [%lld,%lld] positions, the output has [%lld,%lld]",
                         (long long)filter->dims[0], (long long)filter->dims[1], (long long)y->out,
                         (long long)x->out);
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
    return solve_shapes(c, in[0], in[1], setup->err);
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
        solve_shapes(conv, &image, &filter, call->err))
        return call->err->code;
    if (direction != CONV_FORWARD && !shape_equal(&conv->output, &call->in[2]->shape))
        return kernel_fail(call, "out_backprop must be %s, not %s", shape_text(&conv->output),
                           shape_text(&call->in[2]->shape));
    return 0;
}
