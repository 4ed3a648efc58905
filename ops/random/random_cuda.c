/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernels of random numbers. The step's part of the seed is read on the device.
 */
#include "ops/random/launchers_cuda.h"

#include "ops/device/kernel_cuda.h"
#include "ops/random/draw_cuda.h"

static int draw(struct kernel_call *call, struct cuda_random *launch)
{
    const struct random_seeds *seeds = call->state;
    struct tensor *out = random_output(call);
    if (!out || !tensor_count(out))
        return call->err->code; /* 0 if there is nothing to draw */
    launch->form = (enum cuda_random_form)call->form;
    launch->type = cuda_type_of(out->type);
    launch->n = tensor_count(out);
    launch->place = cuda_random_place_of(call, seeds);
    launch->out = out->data;
    return cuda_launched(call, cuda_random(launch, cuda_compute(call)));
}

static int floats_run(struct kernel_call *call)
{
    const struct random_seeds *seeds = call->state;
    return draw(call, &(struct cuda_random){.offset = seeds->offset});
}

static int uniform_int_run(struct kernel_call *call)
{
    struct cuda_random launch = {.offset = 0};
    if (random_range(call, &launch.low, &launch.size))
        return call->err->code;
    return draw(call, &launch);
}

const struct kernel_code kernel_cuda_random_uniform = {
    .prepare = random_prepare, .run = floats_run, .form = CUDA_UNIFORM};
const struct kernel_code kernel_cuda_random_normal = {
    .prepare = random_prepare, .run = floats_run, .form = CUDA_NORMAL};
const struct kernel_code kernel_cuda_truncated_normal = {
    .prepare = random_prepare, .run = floats_run, .form = CUDA_TRUNCATED_NORMAL};
const struct kernel_code kernel_cuda_random_uniform_int = {
    .prepare = random_prepare, .run = uniform_int_run, .form = CUDA_UNIFORM_INT};
