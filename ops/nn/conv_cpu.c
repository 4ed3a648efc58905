/* SPDX-License-Identifier: Apache-2.0
 *
 * Conv2D and its gradients: float32 with known shapes by oneDNN, if it has kernels for the machine,
 * or by our own where faster; everything else by matrix products, or channel by channel.
 */
#include "ops/nn/conv_cpu.h"

#include <string.h>

struct conv_state {
    struct conv form; /* without shapes */
    bool deterministic;
    struct chain *chain;  /* NULL: by matrix products, or: */
    struct conv_few *few; /* the filter of an image with few channels */
    struct shape output;  /* with a chain */
};

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
    state->deterministic = setup->deterministic;
    int code = conv_init(&state->form, setup->node, setup->err);
    if (!code && CPU_DNNL_COMPUTES && setup->shapes_known && state->form.type == FLOAT32) {
        struct conv conv = state->form;
        code = conv_plan(setup, &conv);
        bool is_empty = code || conv_is_empty(&conv);
        state->few = is_empty ? NULL : conv_few_prepare(&conv, setup);
        if (!is_empty && !state->few && !setup->err->code && !conv_chain(&conv, setup)) {
            state->chain = setup->state;
            state->output = setup->out_types[0].shape;
        }
        code = setup->err->code;
    }
    setup->state = code ? NULL : state;
    if (code)
        release(state);
    return code;
}

static int run(struct kernel_call *call)
{
    const struct conv_state *state = call->state;
    if (state->few)
        return conv_few_run(state->few, call);
    if (!state->chain) {
        struct conv conv;
        struct tensor *out = conv_output(call, &state->form, &conv);
        if (!out)
            return call->err->code;
        const struct tensor *operands[3] = {call->in[0], call->in[1],
                                            call->n_in > 2 ? call->in[2] : NULL};
        operands[conv.direction == CONV_FORWARD ? 2 : conv.direction == CONV_IMAGE ? 0 : 1] = out;
        size_t bytes = tensor_bytes(out);
        if (conv_is_empty(&conv)) { /* empty sums */
            if (bytes)
                memset(out->data, 0, bytes);
            return KERNEL_DONE;
        }
        return conv_is_depthwise(&conv) ? conv_depthwise(&conv, call, operands)
                                        : conv_by_gemm(&conv, call, state->deterministic, operands);
    }
    return chain_run_call(state->chain, call, &state->output);
}

const struct kernel_code kernel_conv = {.prepare = prepare, .run = run, .release = release};
