/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/nn/launchers_cuda.h"

#include "base/memory.h"
#include "ops/device/kernel_cuda.h"
#include "ops/nn/pool_shapes.h"
#include "ops/nn/window_dnn_cuda.h"

struct cuda_place_state {
    const struct pool_form *form;
    struct window window;
    bool masked;
};

static int place_prepare(struct kernel_setup *setup)
{
    struct cuda_place_state *state = setup->state = mem_alloc(sizeof *state);
    *state = (struct cuda_place_state){.form = pool_form_of(setup->node)};
    state->masked = !state->form->to_image && node_bool(setup->node, "masked");
    return window_init(&state->window, setup->node, setup->err);
}

static int place_run(struct kernel_call *call)
{
    const struct cuda_place_state *state = call->state;
    bool back = state->form->to_image;
    struct window solved = state->window;
    const struct window *w = &solved;
    const struct shape *image = pool_outputs(call, state->form, &solved);
    const struct tensor *out = call->out[0];
    if (!image || !tensor_count(out))
        return call->err->code;
    const int64_t *dims = image->dims;
    struct cuda_pool_place launch = {.type = cuda_type_of(out->type),
                                     .masked = state->masked,
                                     .planes = dims[0] * (w->nchw ? dims[w->channels] : 1),
                                     .block = w->nchw ? 1 : dims[w->channels],
                                     .y = cuda_window_of(&w->y),
                                     .x = cuda_window_of(&w->x),
                                     .image = back ? NULL : call->in[0]->data,
                                     .gradient = back ? call->in[1]->data : NULL,
                                     .place = back ? call->in[0]->data : call->out[1]->data,
                                     .result = out->data};
    return cuda_launched(call, back ? cuda_max_pool_place_grad(&launch, cuda_compute(call))
                                    : cuda_max_pool_place(&launch, cuda_compute(call)));
}

const struct kernel_code kernel_cuda_pool_place = {.prepare = place_prepare, .run = place_run};
