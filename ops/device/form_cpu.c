/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/device/form_cpu.h"

#include "base/vec.h"

const void *form_find(struct kernel_setup *setup, const char *op, const void *forms, size_t n,
                      size_t bytes)
{
    size_t i = names_find_(forms, n, bytes, op);
    if (i < n)
        return (const char *)forms + i * bytes;
    kernel_setup_fail(setup, "the kernel has no code for %s", op);
    return NULL;
}
