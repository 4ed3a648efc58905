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
    if (window_init(&state->window, setup->node, setup->err) ||
        window_from_ksize(&state->window, setup->node, setup->err))
        return setup->err->code;
    return 0;
}

static int place_run(struct kernel_call *call)
{
    const struct cuda_place_state *state = call->state;
    bool back = state->form->to_image;
    struct pool_shapes shapes;
    if (pool_solve(call, state->form, &state->window, &shapes))
        return call->err->code;
    struct tensor *out = kernel_alloc_output(call, 0, back ? &shapes.image : &shapes.output);
    struct tensor *place = back || !out ? NULL : kernel_alloc_output(call, 1, &shapes.output);
    if (!out || (!back && !place))
        return call->err->code;
    if (!tensor_count(out))
        return KERNEL_DONE;
    const struct window *w = &shapes.window;
    const int64_t *dims = shapes.image.dims;
    struct cuda_pool_place launch = {.type = cuda_type_of(out->type),
                                     .masked = state->masked,
                                     .planes = dims[0] * (w->nchw ? dims[w->channels] : 1),
                                     .block = w->nchw ? 1 : dims[w->channels],
                                     .y = cuda_window_of(&w->y),
                                     .x = cuda_window_of(&w->x),
                                     .image = back ? NULL : call->in[0]->data,
                                     .gradient = back ? call->in[1]->data : NULL,
                                     .place = back ? call->in[0]->data : place->data,
                                     .result = out->data};
    return cuda_launched(call, back ? cuda_max_pool_place_grad(&launch, cuda_compute(call))
                                    : cuda_max_pool_place(&launch, cuda_compute(call)));
}

const struct kernel_code kernel_cuda_pool_place = {.prepare = place_prepare, .run = place_run};
