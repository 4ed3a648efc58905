/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernels of random numbers. The step's part of the seed is read on the device.
 */
#include "ops/device/kernel_cuda.h"
#include "ops/random/launchers_cuda.h"

static int run(struct kernel_call *call)
{
    struct cuda_random launch = {.form = (enum random_form)call->form,
                                 .place = cuda_random_place_of(call)};
    if (launch.form == RANDOM_UNIFORM_INT && random_range(call, &launch.low, &launch.size))
        return call->err->code;
    struct tensor *out = random_output(call);
    if (!out || !tensor_count(out))
        return call->err->code; /* 0 if there is nothing to draw */
    launch.type = cuda_type_of(out->type);
    launch.n = tensor_count(out);
    launch.out = out->data;
    return cuda_launched(call, cuda_random(&launch, cuda_compute(call)));
}

const struct kernel_code kernel_cuda_random_uniform = {
    .prepare = random_prepare, .run = run, .form = RANDOM_UNIFORM};
const struct kernel_code kernel_cuda_random_normal = {
    .prepare = random_prepare, .run = run, .form = RANDOM_NORMAL};
const struct kernel_code kernel_cuda_truncated_normal = {
    .prepare = random_prepare, .run = run, .form = RANDOM_TRUNCATED_NORMAL};
const struct kernel_code kernel_cuda_random_uniform_int = {
    .prepare = random_prepare, .run = run, .form = RANDOM_UNIFORM_INT};
