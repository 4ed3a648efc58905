/* SPDX-License-Identifier: Apache-2.0
 *
 * The registry and the kernel table, made from the two lists.
 */
#include "ops/ops.h"

#include <pthread.h>

#define OP(name) extern const struct op_def op_##name;
#include "ops/oplist.def"
#undef OP

static const struct op_def *const ops[] = {
#define OP(name) &op_##name,
#include "ops/oplist.def"
#undef OP
};

static const struct kernel_row rows[] = {
#define KERNEL(op, device, code, types, flags, host_inputs, host_outputs)                          \
    {#op, #device, #code, types, flags, host_inputs, host_outputs},
#include "ops/kernels.def"
#undef KERNEL
};

static struct registry *registry;

static void make_registry(void)
{
    struct error err = ERROR_INIT;
    registry = registry_new();
    if (registry_add(registry, ops, sizeof ops / sizeof *ops, &err))
        error_bug(err.file, err.line, err.text);
}

const struct registry *ops_registry(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_registry);
    return registry;
}

const struct kernel_table *ops_kernels(void)
{
    static const struct kernel_table table = {rows, sizeof rows / sizeof *rows};
    return &table;
}
