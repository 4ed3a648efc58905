/* SPDX-License-Identifier: Apache-2.0
 *
 * Conv2D and its gradients: float32 with known shapes by oneDNN, where it has kernels for the
 * machine, or better by our own; everything else by matrix products.
 */
#include "ops/nn/conv_cpu.h"

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

struct conv_state {
    enum conv_direction direction;
    bool deterministic;
    struct chain *chain;  /* NULL: by matrix products, or: */
    struct conv_few *few; /* the filter of an image with few channels */
    struct shape output;  /* with a chain */
};

static enum conv_direction direction_of(const struct node *node)
{
    if (node_is(node, "Conv2D"))
        return CONV_FORWARD;
    return node_is(node, "Conv2DBackpropInput") ? CONV_IMAGE : CONV_FILTER;
}

static bool is_empty(const struct conv *c)
{
    return !shape_count(&c->image) || !shape_count(&c->filter) || !shape_count(&c->output);
}

static int prepare_chain(struct kernel_setup *setup, struct conv_state *state)
{
    const struct shape *image = &setup->in_types[0].shape, *filter = &setup->in_types[1].shape;
    struct conv conv;
    if (state->direction == CONV_IMAGE)
        image = &setup->out_types[0].shape;
    if (state->direction == CONV_FILTER)
        filter = &setup->out_types[0].shape;
    if (conv_init(&conv, state->direction, setup->node, image, filter, setup->err))
        return setup->err->code;
    if (is_empty(&conv))
        return 0;
    state->few = conv_few_prepare(&conv, setup);
    if (state->few)
        return setup->err->code;
    if (conv_chain(&conv, setup))
        return setup->err->code;
    state->chain = setup->state;
    state->output = setup->out_types[0].shape;
    return 0;
}

static void release(void *pointer)
{
    struct conv_state *state = pointer;
    chain_free(state->chain);
    conv_few_free(state->few);
    mem_free(state);
}

static int prepare(struct kernel_setup *setup)
{
    struct conv_state *state = mem_alloc(sizeof *state);
    state->direction = direction_of(setup->node);
    state->deterministic = setup->deterministic;
    if (CPU_DNNL_COMPUTES && setup->shapes_known && node_type(setup->node, "T") == FLOAT32 &&
        prepare_chain(setup, state)) {
        release(state);
        setup->state = NULL;
        return setup->err->code;
    }
    setup->state = state;
    return 0;
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

static int describe(struct kernel_call *call, enum conv_direction direction, struct conv *conv)
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

static int run_gemm(struct kernel_call *call)
{
    const struct conv_state *state = call->state;
    struct conv conv;
    if (describe(call, state->direction, &conv))
        return call->err->code;
    const struct shape *shapes[] = {&conv.output, &conv.image, &conv.filter};
    struct tensor *out = kernel_alloc_output(call, 0, shapes[conv.direction]);
    if (!out)
        return call->err->code;
    const struct tensor *operands[3] = {call->in[0], call->in[1],
                                        call->n_in > 2 ? call->in[2] : NULL};
    operands[conv.direction == CONV_FORWARD ? 2 : conv.direction == CONV_IMAGE ? 0 : 1] = out;
    size_t bytes = tensor_bytes(out);
    if (is_empty(&conv)) { /* sums of nothing */
        if (bytes)
            memset(out->data, 0, bytes);
        return KERNEL_DONE;
    }
    return conv_by_gemm(&conv, call, state->deterministic, operands);
}

static int run(struct kernel_call *call)
{
    const struct conv_state *state = call->state;
    if (state->few)
        return conv_few_run(state->few, call);
    if (!state->chain)
        return run_gemm(call);
    return chain_run_call(state->chain, call, &state->output);
}

const struct kernel_code kernel_conv = {prepare, run, release};
