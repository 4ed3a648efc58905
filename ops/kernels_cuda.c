/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of the CUDA device, by name.
 */
#include <string.h>

#include "ops/device/kernel_cuda.h"

#define KERNEL(op, code, types, ...) extern const struct kernel_code kernel_##code;
#include "ops/kernels_cuda.def"
#undef KERNEL

static const struct named_code {
    const char *name;
    const struct kernel_code *code;
} codes[] = {
#define KERNEL(op, code, types, ...) {#code, &kernel_##code},
#include "ops/kernels_cuda.def"
#undef KERNEL
};

const struct kernel_code *cuda_kernel_code(struct device *device, const char *name)
{
    (void)device;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (!strcmp(codes[i].name, name))
            return codes[i].code;
    return NULL;
}
