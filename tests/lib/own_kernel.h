/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: a device like another one, except for the kernel of one op, which is the test's own.
 */
#ifndef TF_TESTS_LIB_OWN_KERNEL_H
#define TF_TESTS_LIB_OWN_KERNEL_H

#include <string.h>

#include "base/memory.h"
#include "exec/device/device.h"

struct own_kernel {
    struct device device;
    struct kernel_table table;
};

static inline struct device *own_kernel_open(struct own_kernel *own, const struct device *like,
                                             const char *op, const struct kernel_code *code,
                                             unsigned flags)
{
    struct kernel_row *rows = mem_array(like->kernels->n, sizeof *rows);
    for (size_t i = 0; i < like->kernels->n; i++) {
        rows[i] = like->kernels->rows[i];
        if (strcmp(rows[i].op, op) != 0)
            continue;
        rows[i].own = code;
        rows[i].flags = flags;
    }
    own->table = (struct kernel_table){rows, like->kernels->n};
    own->device = *like;
    own->device.kernels = &own->table;
    return &own->device;
}

static inline void own_kernel_close(struct own_kernel *own)
{
    mem_free((struct kernel_row *)(uintptr_t)own->table.rows);
}

#endif
