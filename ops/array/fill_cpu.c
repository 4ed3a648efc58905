/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/array/args.h"
#include "ops/array/range.h"
#include "ops/array/reshape.h"
#include "ops/array/strided.h"
#include "ops/math/parallel_cpu.h"

/* ---- Fill, ZerosLike, OnesLike ---- */

static void fill(struct kernel_call *call, struct tensor *out, const void *value)
{
    size_t item = dtype_bytes(out->type);
    struct strided s = {.item_bytes = item};
    strided_add(&s, tensor_count(out), (int64_t)item, 0);
    strided_copy(&s, out->data, value, call->threads);
}

static int fill_run(struct kernel_call *call)
{
    struct shape shape;
    if (reshape_read(call->in[0], &shape, call->err))
        return call->err->code;
    if (shape_count(&shape) < 0)
        return kernel_fail(call, "a tensor of shape %s is impossible", shape_text(&shape));
    if (tensor_count(call->in[1]) != 1)
        return kernel_fail(call, "value must be a scalar, not %s", shape_text(&call->in[1]->shape));
    struct tensor *out = kernel_alloc_output(call, 0, &shape);
    if (!out)
        return call->err->code;
    fill(call, out, call->in[1]->data);
    return KERNEL_DONE;
}

static int zeros_run(struct kernel_call *call)
{
    struct tensor *out = kernel_alloc_output(call, 0, &call->in[0]->shape);
    if (!out)
        return call->err->code;
    const uint64_t zero = 0;
    fill(call, out, &zero);
    return KERNEL_DONE;
}

static int ones_run(struct kernel_call *call)
{
    struct tensor *out = kernel_alloc_output(call, 0, &call->in[0]->shape);
    if (!out)
        return call->err->code;
    uint64_t element = 0;
    struct tensor one = tensor_borrow(out->type, &SHAPE_SCALAR, &element);
    tensor_set_float64(&one, 0, 1);
    fill(call, out, &element);
    return KERNEL_DONE;
}

const struct kernel_code kernel_fill = {.run = fill_run};
const struct kernel_code kernel_zeros_like = {.run = zeros_run};
const struct kernel_code kernel_ones_like = {.run = ones_run};

/* ---- Range ---- */

/* Element i is start + i * delta, not a running sum: errors do not add up. Integers wrap around. */
#define RANGE(name, type, unit)                                                                    \
    static int name(void *context, int64_t begin, int64_t end)                                     \
    {                                                                                              \
        const struct progression *p = context;                                                     \
        type *y = p->out, from = *(const type *)p->start, step = *(const type *)p->delta;          \
        for (int64_t i = begin; i < end; i++)                                                      \
            y[i] = from + (unit)i * step;                                                          \
        return 0;                                                                                  \
    }

struct progression {
    const void *start, *delta;
    void *out;
};

RANGE(range_float32, float, float)
RANGE(range_float64, double, double)
RANGE(range_int32, uint32_t, uint32_t)
RANGE(range_int64, uint64_t, uint64_t)

static parallel_body *range_loop(enum dtype type)
{
    if (type == FLOAT32)
        return range_float32;
    if (type == FLOAT64)
        return range_float64;
    return type == INT32 ? range_int32 : range_int64;
}

static int range_run(struct kernel_call *call)
{
    int64_t n;
    for (int i = 0; i < 3; i++)
        if (tensor_count(call->in[i]) != 1)
            return kernel_fail(call, "start, limit and delta must be scalars, not %s",
                               shape_text(&call->in[i]->shape));
    if (range_count(call->in[0], call->in[1], call->in[2], &n, call->err))
        return call->err->code;
    struct shape shape = shape_vector(n);
    struct tensor *out = kernel_alloc_output(call, 0, &shape);
    if (!out)
        return call->err->code;
    struct progression p = {call->in[0]->data, call->in[2]->data, out->data};
    parallel_for(call->threads, n, PARALLEL_GRAIN_MOVE, range_loop(out->type), &p);
    return KERNEL_DONE;
}

const struct kernel_code kernel_range = {.run = range_run};
