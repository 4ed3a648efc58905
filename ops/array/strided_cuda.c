/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA's moves and fills of blocks of elements, for kernels of any device.
 */
#include "ops/array/launchers_cuda.h"

#include "ops/array/strided.h"
#include "ops/array/strided_kernels.h"
#include "ops/device/kernel_cuda.h"
#include "ops/math/launchers_cuda.h"

int strided_move(struct kernel_call *call, struct strided *s, void *to, const void *from)
{
    struct cuda_strided_copy launch = {
        .element_bytes = (int)s->item_bytes, .rank = s->rank, .from = from, .to = to};
    int64_t item = (int64_t)s->item_bytes;
    for (int i = 0; i < s->rank; i++) {
        if (!s->dims[i])
            return KERNEL_DONE;
        launch.dims[i] = s->dims[i];
        launch.from_strides[i] = s->from[i] / item;
        launch.to_strides[i] = s->to[i] / item;
    }
    return cuda_launched(call, cuda_strided(&launch, cuda_compute(call)));
}

static int fill(struct kernel_call *call, struct tensor *out, const void *value, uint64_t bits)
{
    struct cuda_fill launch = {.element_bytes = (int)dtype_bytes(out->type),
                               .n = tensor_count(out),
                               .value = value,
                               .out = out->data,
                               .bits = bits};
    if (!launch.n)
        return KERNEL_DONE;
    return cuda_launched(call, cuda_fill(&launch, cuda_compute(call)));
}

int strided_fill(struct kernel_call *call, struct tensor *out, const void *value)
{
    return fill(call, out, value, 0);
}

int strided_fill_bits(struct kernel_call *call, struct tensor *out, uint64_t bits)
{
    return fill(call, out, NULL, bits);
}

#define X(kernel, its_prepare)                                                                     \
    const struct kernel_code kernel_cuda_##kernel = {.prepare = its_prepare, .run = run_##kernel};
STRIDED_KERNELS(X)
#undef X
