/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/device/form_cpu.h"

#include <string.h>

const void *form_find(struct kernel_setup *setup, const char *op, const void *forms, size_t n,
                      size_t bytes)
{
    for (size_t i = 0; i < n; i++) {
        const char *const *form = (const void *)((const char *)forms + i * bytes);
        if (!strcmp(*form, op))
            return form;
    }
    kernel_setup_fail(setup, "the kernel has no code for %s", op);
    return NULL;
}
