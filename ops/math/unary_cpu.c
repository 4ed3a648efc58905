/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel of element-wise ops of one tensor.
 */
#include "ops/device/widened_cpu.h"
#include "ops/math/elementwise_cpu.h"
#include "ops/math/parallel_cpu.h"

static int unary_prepare(struct kernel_setup *setup)
{
    const char *op = setup->node->op->def->name;
    enum dtype in = setup->in_types[0].type, out = setup->out_types[0].type;
    const struct unary_row *row = unary_find(op, widened_type(in));
    if (!row)
        return kernel_setup_fail(setup, "no loop for %s of %s", op, dtype_name(in));
    setup->state = (void *)row;
    setup->name = row->name;
    if (dtype_bytes(in) == dtype_bytes(out))
        setup->out[0].forward = FORWARD_REUSE;
    return 0;
}

struct unary_work {
    unary_loop *loop;
    widened_loop *widen, *narrow; /* for narrow types; else NULL */
    const char *x;
    char *out;
    int64_t in_bytes, out_bytes;
};

static int narrow_body(const struct unary_work *work, int64_t begin, int64_t end)
{
    ELEMENT_BLOCK(x);
    ELEMENT_BLOCK(y);
    int flags = 0;
    for (int64_t at = begin, n; at < end; at += n) {
        n = end - at < ELEMENT_BLOCK_LENGTH ? end - at : ELEMENT_BLOCK_LENGTH;
        char *out = work->out + at * work->out_bytes;
        work->widen(work->x + at * work->in_bytes, x, n);
        flags |= work->loop(n, x, work->narrow ? y : out);
        if (work->narrow)
            work->narrow(y, out, n);
    }
    return flags;
}

static int unary_body(void *context, int64_t begin, int64_t end)
{
    const struct unary_work *work = context;
    if (work->widen)
        return narrow_body(work, begin, end);
    return work->loop(end - begin, work->x + begin * work->in_bytes,
                      work->out + begin * work->out_bytes);
}

static int unary_run(struct kernel_call *call)
{
    const struct unary_row *row = call->state;
    const struct tensor *x = call->in[0];
    struct tensor *out = kernel_alloc_output(call, 0, &x->shape);
    if (!out)
        return call->err->code;
    struct unary_work work = {.loop = row->loop,
                              .widen = widened_conversions[x->type].widen,
                              .narrow = widened_conversions[out->type].narrow,
                              .x = x->data,
                              .out = out->data,
                              .in_bytes = (int64_t)dtype_bytes(x->type),
                              .out_bytes = (int64_t)dtype_bytes(out->type)};
    parallel_for(call->threads, tensor_count(x), row->grain, unary_body, &work);
    return KERNEL_DONE;
}

static void unary_release(void *state)
{
    (void)state; /* a constant row */
}

const struct kernel_code kernel_unary = {
    .prepare = unary_prepare, .run = unary_run, .release = unary_release};
