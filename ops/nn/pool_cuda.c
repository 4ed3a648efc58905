/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernels of pooling.
 */
#include "ops/nn/pool_cuda.h"

#include "base/memory.h"
#include "ops/device/kernel_cuda.h"
#include "ops/nn/pool_shapes.h"

struct cuda_pool_state {
    const struct pool_form *form;
    enum cuda_pool_form launch;
    struct window window;
};

static enum cuda_pool_form launch_of(const struct node *node)
{
    static const char *const ops[] = {[CUDA_MAX_POOL] = "MaxPool",
                                      [CUDA_MAX_POOL_GRAD] = "MaxPoolGrad",
                                      [CUDA_MAX_POOL_GRAD_GRAD] = "MaxPoolGradGrad",
                                      [CUDA_AVG_POOL] = "AvgPool",
                                      [CUDA_AVG_POOL_GRAD] = "AvgPoolGrad"};
    enum cuda_pool_form form = CUDA_MAX_POOL;
    while (form < CUDA_AVG_POOL_GRAD && !node_is(node, ops[form]))
        form++;
    return form;
}

static int pool_prepare(struct kernel_setup *setup)
{
    struct cuda_pool_state *state = mem_alloc(sizeof *state);
    setup->state = state;
    state->form = pool_form_of(setup->node);
    state->launch = launch_of(setup->node);
    if (window_init(&state->window, setup->node, setup->err) ||
        window_from_ksize(&state->window, setup->node, setup->err))
        return setup->err->code;
    return 0;
}

static struct cuda_window axis_of(const struct window_axis *axis)
{
    return (struct cuda_window){axis->in, axis->size, axis->stride, axis->before, axis->out};
}

static int pool_run(struct kernel_call *call)
{
    const struct cuda_pool_state *state = call->state;
    struct pool_shapes shapes;
    if (pool_solve(call, state->form, &state->window, &shapes))
        return call->err->code;
    struct tensor *out =
        kernel_alloc_output(call, 0, state->form->to_image ? &shapes.image : &shapes.output);
    if (!out)
        return call->err->code;
    if (!tensor_count(out))
        return KERNEL_DONE;
    const struct window *w = &shapes.window;
    int64_t channels = shapes.image.dims[w->channels];
    struct cuda_pool launch = {.form = state->launch,
                               .type = cuda_type_of(out->type),
                               .planes = shapes.image.dims[0] * (w->nchw ? channels : 1),
                               .block = w->nchw ? 1 : channels,
                               .y = axis_of(&w->y),
                               .x = axis_of(&w->x),
                               .result = out->data};
    launch.image = call->n_in == 2 ? NULL : call->in[0]->data;
    launch.output = call->n_in == 3 ? call->in[1]->data : NULL;
    launch.gradient = call->n_in > 1 ? call->in[call->n_in - 1]->data : NULL;
    return cuda_launched(call, cuda_pool(&launch, cuda_compute(call)));
}

const struct kernel_code kernel_cuda_pool = {.prepare = pool_prepare, .run = pool_run};
