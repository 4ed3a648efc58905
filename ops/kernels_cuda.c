/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of the CUDA device, by name.
 */
#include "base/vec.h"
#include "ops/device/kernel_cuda.h"

#define KERNEL(op, code, types, ...) extern const struct kernel_code kernel_##code;
#include "ops/kernels_cuda.def"

static const struct named_code {
    const char *name;
    const struct kernel_code *code;
} codes[] = {
#define KERNEL(op, code, types, ...) {#code, &kernel_##code},
#include "ops/kernels_cuda.def"
};

const struct kernel_code *cuda_kernel_code(struct device *device, const char *name)
{
    size_t n = sizeof codes / sizeof *codes, i = names_find(codes, n, name);
    (void)device;
    return i < n ? codes[i].code : NULL;
}
