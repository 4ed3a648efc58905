/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel of element-wise ops of two tensors.
 */
#include "base/memory.h"
#include "exec/device/step_block.h"
#include "ops/device/widened_cpu.h"
#include "ops/math/broadcast_cpu.h"
#include "ops/math/elementwise_cpu.h"
#include "ops/math/outputs.h"
#include "ops/math/parallel_cpu.h"

struct binary_state {
    const struct binary_row *row;
    struct broadcast broadcast; /* if shapes were known in prepare */
};

static int binary_prepare(struct kernel_setup *setup)
{
    const char *op = setup->node->op->def->name;
    const struct binary_row *row = binary_find(op, widened_type(setup->in_types[0].type));
    if (!row)
        return kernel_setup_fail(setup, "no loop for %s of %s", op,
                                 dtype_name(setup->in_types[0].type));
    struct binary_state *state = setup->state = mem_alloc(sizeof *state);
    setup->name = row->name;
    state->row = row;
    const struct shape *const in[] = {&setup->in_types[0].shape, &setup->in_types[1].shape};
    if (setup->shapes_known)
        broadcast_plan(&state->broadcast, &setup->out_types[0].shape, in, 2);
    /* An input that is not broadcast may be overwritten. */
    kernel_offer_reuse(setup, 0);
    kernel_offer_reuse(setup, 1);
    return 0;
}

struct binary_work {
    const struct binary_row *row;
    const struct broadcast *broadcast;
    const char *x, *y;
    char *out;
    size_t in_bytes, out_bytes;
    widened_loop *widen, *narrow; /* for narrow types; else NULL */
};

/* Computes a row of a narrow type. A single-element operand is widened once. */
static int narrow_row(const struct binary_work *work, int64_t length, const char *x, const char *y,
                      char *out, enum binary_mode mode)
{
    ELEMENT_BLOCK(wide_x);
    ELEMENT_BLOCK(wide_y);
    ELEMENT_BLOCK(wide_out);
    size_t x_step = mode == BINARY_SCALAR_X ? 0 : work->in_bytes;
    size_t y_step = mode == BINARY_SCALAR_Y ? 0 : work->in_bytes;
    int flags = 0;
    for (int64_t at = 0, n; at < length; at += n) {
        n = length - at < ELEMENT_BLOCK_LENGTH ? length - at : ELEMENT_BLOCK_LENGTH;
        if (x_step || !at)
            work->widen(x + (size_t)at * x_step, wide_x, x_step ? n : 1);
        if (y_step || !at)
            work->widen(y + (size_t)at * y_step, wide_y, y_step ? n : 1);
        char *to = out + (size_t)at * work->out_bytes;
        flags |= work->row->loop(n, wide_x, wide_y, work->narrow ? wide_out : to, mode);
        if (work->narrow)
            work->narrow(wide_out, to, n);
    }
    return flags;
}

static int binary_body(void *context, int64_t begin, int64_t end)
{
    const struct binary_work *work = context;
    enum binary_mode mode = !broadcast_advances(work->broadcast, 0)   ? BINARY_SCALAR_X
                            : !broadcast_advances(work->broadcast, 1) ? BINARY_SCALAR_Y
                                                                      : BINARY_BOTH;
    struct broadcast_walk walk;
    struct broadcast_row row;
    int flags = 0;
    broadcast_start(&walk, work->broadcast, begin, end);
    while (broadcast_next(&walk, &row)) {
        const char *x = work->x + row.in[0] * (int64_t)work->in_bytes;
        const char *y = work->y + row.in[1] * (int64_t)work->in_bytes;
        char *out = work->out + row.out * (int64_t)work->out_bytes;
        flags |= work->widen ? narrow_row(work, row.n, x, y, out, mode)
                             : work->row->loop(row.n, x, y, out, mode);
    }
    return flags;
}

static int binary_run(struct kernel_call *call)
{
    const struct binary_state *state = call->state;
    const struct tensor *x = call->in[0], *y = call->in[1];
    struct broadcast own;
    struct tensor *out = result_outputs(call, 0, 0);
    if (!out)
        return call->err->code;
    if (!call->shapes_known)
        broadcast_plan(&own, &out->shape, (const struct shape *const[]){&x->shape, &y->shape}, 2);
    struct binary_work work = {.row = state->row,
                               .broadcast = call->shapes_known ? &state->broadcast : &own,
                               .x = x->data,
                               .y = y->data,
                               .out = out->data,
                               .widen = widened_conversions[x->type].widen,
                               .narrow = widened_conversions[out->type].narrow,
                               .in_bytes = dtype_bytes(x->type),
                               .out_bytes = dtype_bytes(out->type)};
    int flags =
        parallel_for(call->threads, work.broadcast->count, state->row->grain, binary_body, &work);
    if (flags & LOOP_DIVIDED_BY_ZERO)
        return kernel_fault(call, &(struct fault){.code = FAULT_DIVISION});
    if (flags & LOOP_NEGATIVE_POWER)
        return kernel_fault(call, &(struct fault){.code = FAULT_POWER});
    return KERNEL_DONE;
}

const struct kernel_code kernel_binary = {.prepare = binary_prepare, .run = binary_run};
