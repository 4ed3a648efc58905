/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing whole variables. The executor gives the kernel the variable for itself.
 */
#include <string.h>

#include "base/memory.h"
#include "exec/kernel.h"
#include "exec/variable.h"

#define PARALLEL_BYTES (1 << 18)

static int finish(struct kernel_call *call)
{
    variable_written(call->refs[0]);
    return kernel_alias_output(call, 0, 0, NULL) ? KERNEL_DONE : call->err->code;
}

/* ---- Assign ---- */

static int assign_prepare(struct kernel_setup *setup)
{
    bool *validate = mem_alloc(sizeof *validate);
    *validate = node_bool(setup->node, "validate_shape");
    setup->state = validate;
    return 0;
}

static void copy(struct kernel_call *call, void *to, const void *from, size_t bytes)
{
    if (call->threads == 1 || bytes < PARALLEL_BYTES) {
        memmove(to, from, bytes);
        return;
    }
    size_t part = (bytes / (size_t)call->threads + 63) & ~(size_t)63;
#pragma omp parallel for num_threads(call->threads)
    for (int i = 0; i < call->threads; i++) {
        size_t start = part * (size_t)i, end = start + part < bytes ? start + part : bytes;
        if (start < end)
            memmove((char *)to + start, (const char *)from + start, end - start);
    }
}

static int assign_run(struct kernel_call *call)
{
    struct variable *variable = call->refs[0];
    const struct tensor *value = call->in[1];
    bool reshape = !*(const bool *)call->state;
    if (reshape && variable->value.data && variable->value.data == value->data) {
        variable->value.shape = value->shape; /* its own memory, seen with another shape */
        return finish(call);
    }
    if (variable_prepare_write(variable, &value->shape, reshape, call->err))
        return call->err->code;
    if (variable->value.data != value->data)
        copy(call, variable->value.data, value->data, tensor_bytes(value));
    return finish(call);
}

const struct kernel_code kernel_assign = {.prepare = assign_prepare, .run = assign_run};

/* ---- AssignAdd, AssignSub ---- */

/* Integers wrap around: their arithmetic is unsigned. */
#define UPDATE(name, type, op)                                                                     \
    static void name(void *to, const void *from, int64_t n)                                        \
    {                                                                                              \
        type *x = to;                                                                              \
        const type *y = from;                                                                      \
        for (int64_t i = 0; i < n; i++)                                                            \
            x[i] = x[i] op y[i];                                                                   \
    }

UPDATE(add_float32, float, +)
UPDATE(sub_float32, float, -)
UPDATE(add_float64, double, +)
UPDATE(sub_float64, double, -)
UPDATE(add_int32, uint32_t, +)
UPDATE(sub_int32, uint32_t, -)
UPDATE(add_int64, uint64_t, +)
UPDATE(sub_int64, uint64_t, -)

typedef void update_fn(void *to, const void *from, int64_t n);

static update_fn *find_update(enum dtype type, bool subtract)
{
    switch (type) {
    case FLOAT32:
        return subtract ? sub_float32 : add_float32;
    case FLOAT64:
        return subtract ? sub_float64 : add_float64;
    case INT32:
        return subtract ? sub_int32 : add_int32;
    case INT64:
        return subtract ? sub_int64 : add_int64;
    default:
        return NULL;
    }
}

static void update_all(struct kernel_call *call, update_fn *update, void *to, const void *from)
{
    int64_t n = tensor_count(call->in[1]);
    size_t item = dtype_bytes(call->in[1]->type);
    if (call->threads == 1 || n * (int64_t)item < PARALLEL_BYTES) {
        update(to, from, n);
        return;
    }
    int64_t part = (n / call->threads + 64) & ~(int64_t)63;
#pragma omp parallel for num_threads(call->threads)
    for (int i = 0; i < call->threads; i++) {
        int64_t start = part * i, count = start + part < n ? part : n - start;
        if (count > 0)
            update((char *)to + (size_t)start * item, (const char *)from + (size_t)start * item,
                   count);
    }
}

static int update_run(struct kernel_call *call, bool subtract)
{
    struct variable *variable = call->refs[0];
    const struct tensor *value = call->in[1];
    if (!shape_equal(&variable->value.shape, &value->shape))
        return kernel_fail(call, "variable '%s' is %s, the value %s", variable->name,
                           shape_text(&variable->value.shape), shape_text(&value->shape));
    if (variable_prepare_write(variable, &value->shape, false, call->err))
        return call->err->code;
    update_all(call, find_update(value->type, subtract), variable->value.data, value->data);
    return finish(call);
}

static int add_run(struct kernel_call *call)
{
    return update_run(call, false);
}

static int sub_run(struct kernel_call *call)
{
    return update_run(call, true);
}

const struct kernel_code kernel_assign_add = {.run = add_run};
const struct kernel_code kernel_assign_sub = {.run = sub_run};
