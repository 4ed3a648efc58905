/* SPDX-License-Identifier: Apache-2.0
 *
 * The registry and the kernel table, made from the lists.
 */
#include "ops/ops.h"

#include <pthread.h>
#include <string.h>

#include "base/memory.h"

#define OP(name) extern const struct op_def op_##name;
#include "ops/oplist.def"

static const struct op_def *const ops[] = {
#define OP(name) &op_##name,
#include "ops/oplist.def"
};

static const struct kernel_row builtin[] = {
#define KERNEL(name, its_code, of, ...)                                                            \
    {.op = #name, .device = "CPU", .code = #its_code, .types = of, __VA_ARGS__},
#define WIDENED(name, its_code, of, ...)                                                           \
    {.op = #name, .device = "CPU", .code = "widened_" #its_code, .types = of, __VA_ARGS__},
#define BOUNDED(name, its_code, of, ...)                                                           \
    {.op = #name, .device = "CPU", .code = "bounded_" #its_code, .types = of, __VA_ARGS__},
#include "ops/kernels_cpu.def"
#define KERNEL(name, its_code, of, ...)                                                            \
    {.op = #name, .device = "CUDA", .code = #its_code, .types = of, __VA_ARGS__},
#include "ops/kernels_cuda.def"
};

static struct registry *registry;
static struct kernel_table kernels = {builtin, sizeof builtin / sizeof *builtin};

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
    return &kernels;
}

/* Rows that were returned before stay where they are: plans have pointers to them. */
int ops_add(const struct op_def *const *defs, size_t n, const struct kernel_table *more,
            struct error *err)
{
    ops_registry();
    if (registry_add(registry, defs, n, err))
        return err->code;
    struct kernel_row *rows = mem_array(kernels.n + more->n, sizeof *rows);
    memcpy(rows, kernels.rows, kernels.n * sizeof *rows);
    memcpy(rows + kernels.n, more->rows, more->n * sizeof *rows);
    kernels = (struct kernel_table){rows, kernels.n + more->n};
    return 0;
}
