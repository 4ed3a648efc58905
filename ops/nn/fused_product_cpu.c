/* SPDX-License-Identifier: Apache-2.0
 *
 * Products and convolutions followed by biases and activations: the kernel of the product, then one
 * pass over its result, some rows at a time, which stay in the first-level cache for the next loop.
 * The loops, and so the bits, are those of the separate ops.
 */
#include "ops/nn/fused_product.h"

#include <stdio.h>
#include <string.h>

#include "ops/math/elementwise_cpu.h"
#include "ops/math/parallel_cpu.h"
#include "ops/nn/bias_cpu.h"
#include "ops/nn/format.h"

#define ROWS_BYTES 8192 /* of rows processed at a time, at least one row */

struct epilogue_step { /* one of the loops is set */
    bias_loop *bias;   /* with the bias from: */
    int input;
    unary_loop *unary;
};

struct fused_product {
    const struct kernel_code *product;
    void *product_state;
    const struct layout *layout; /* of the product's result; NULL: row-major */
    int axis;                    /* the channel axis of the result */
    int64_t grain;
    size_t item_bytes;
    char name[32];
    int n_steps;
    struct epilogue_step steps[];
};

extern const struct kernel_code kernel_matmul, kernel_conv;

/* ---- made once ---- */

static bool is_mask(const char *op)
{
#define IS(name, ...) || !strcmp(op, #name)
    return false ACTIVATION_MASKS(IS);
#undef IS
}

static int find_step(struct kernel_setup *setup, const char *op, int *n_biases,
                     struct epilogue_step *step, bool *keeps_zero)
{
    enum dtype type = setup->in_types[0].type;
    const struct unary_row *unary = unary_find(op, type);
    *keeps_zero = is_mask(op);
    if (!strcmp(op, "BiasAdd")) {
        step->bias = bias_add_loop(type);
        step->input = FUSED_PRODUCT_INPUTS + (*n_biases)++;
        *keeps_zero = true;
        return 0;
    }
    if (!unary)
        return kernel_setup_fail(setup, "no loop for %s of 1 %s", op, dtype_name(type));
    step->unary = unary->loop;
    return 0;
}

/* The padding of a layout's blocks must stay 0: if a step does not keep it, there is no layout. */
static int find_steps(struct kernel_setup *setup, struct fused_product *state)
{
    const struct attr_value *ops = node_attr(setup->node, "epilogue");
    int n_biases = 0;
    for (int i = 0; i < state->n_steps; i++) {
        bool keeps_zero;
        if (find_step(setup, ops->strings[i], &n_biases, &state->steps[i], &keeps_zero))
            return setup->err->code;
        setup->layouts &= keeps_zero;
        if (!keeps_zero)
            state->grain = PARALLEL_GRAIN_COMPUTE;
    }
    return 0;
}

static void fusion_release(void *pointer)
{
    struct fused_product *state = pointer;
    if (state->product->release && state->product_state)
        state->product->release(state->product_state);
    else
        mem_free(state->product_state);
    mem_free(state);
}

static int fused_prepare(struct kernel_setup *setup, const struct kernel_code *product)
{
    int n = node_attr(setup->node, "epilogue")->n;
    struct fused_product *state = mem_alloc(sizeof *state + (size_t)n * sizeof *state->steps);
    state->product = product;
    state->axis = product == &kernel_conv ? format_channel_axis(setup->node, 4) : 1;
    state->n_steps = n;
    state->grain = PARALLEL_GRAIN_MOVE;
    state->item_bytes = dtype_bytes(setup->in_types[0].type);
    if (find_steps(setup, state)) {
        mem_free(state);
        return setup->err->code;
    }
    int code = product->prepare(setup);
    state->product_state = setup->state;
    setup->state = state;
    state->layout = setup->out[0].layout;
    if (setup->name) {
        snprintf(state->name, sizeof state->name, "fused_%s", setup->name);
        setup->name = state->name;
    }
    return code;
}

static int product_prepare(struct kernel_setup *setup)
{
    return fused_prepare(setup, &kernel_matmul);
}

static int conv_prepare(struct kernel_setup *setup)
{
    return fused_prepare(setup, &kernel_conv);
}

/* ---- run ---- */

struct epilogue_work {
    const struct fused_product *state;
    struct channels channels;
    int64_t row; /* elements */
    struct tensor *const *in;
    char *data;
};

static int epilogue_body(void *context, int64_t begin, int64_t end)
{
    const struct epilogue_work *work = context;
    int64_t most = ROWS_BYTES / (int64_t)((size_t)work->row * work->state->item_bytes);
    most = most > 0 ? most : 1;
    for (int64_t at = begin, n; at < end; at += n) {
        n = end - at < most ? end - at : most;
        char *first = work->data + (size_t)(at * work->row) * work->state->item_bytes;
        for (int i = 0; i < work->state->n_steps; i++) {
            const struct epilogue_step *step = &work->state->steps[i];
            if (step->bias)
                for (int64_t j = at; j < at + n; j++)
                    step->bias(&work->channels, j, work->data, work->in[step->input]->data,
                               work->data);
            else
                step->unary(n * work->row, first, first);
        }
    }
    return 0;
}

static int fused_run(struct kernel_call *call)
{
    struct fused_product *state = call->state;
    call->state = state->product_state;
    int result = state->product->run(call);
    call->state = state;
    if (result != KERNEL_DONE)
        return result;
    const struct tensor *out = call->out[0];
    struct epilogue_work work = {.state = state, .in = call->in, .data = out->data};
    work.channels =
        state->layout ? state->layout->channels : cpu_channels(&out->shape, state->axis);
    work.row = work.channels.inner * work.channels.block;
    int64_t rows = work.row ? work.channels.outer * work.channels.blocks : 0;
    parallel_for(call->threads, rows, state->grain / (work.row ? work.row : 1) + 1, epilogue_body,
                 &work);
    return KERNEL_DONE;
}

const struct kernel_code kernel_fused_matmul = {
    .prepare = product_prepare, .run = fused_run, .release = fusion_release};
const struct kernel_code kernel_fused_conv = {
    .prepare = conv_prepare, .run = fused_run, .release = fusion_release};
