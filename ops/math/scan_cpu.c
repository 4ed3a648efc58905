/* SPDX-License-Identifier: Apache-2.0
 *
 * Cumsum and Cumprod: the lines of a tile are accumulated along the axis together. float32 is
 * accumulated in double.
 */
#include "base/memory.h"
#include "ops/array/args.h"
#include "ops/math/lines.h"
#include "ops/math/outputs.h"

/* Scans n rows of m <= LINES_TILE elements, `step` elements apart, negative in reverse. */
typedef void scan_loop(int64_t n, int64_t step, int64_t m, const void *x, bool exclusive,
                       void *out);

#define SCAN_LOOP(name, type, wide, start, operator)                                               \
    static void name(int64_t n, int64_t step, int64_t m, const void *px, bool exclusive, void *po) \
    {                                                                                              \
        const type *x = px;                                                                        \
        type *out = po;                                                                            \
        wide sum[LINES_TILE], line = start;                                                        \
        if (m == 1) { /* the sum stays in a register */                                            \
            for (int64_t r = 0; r < n; r++) {                                                      \
                wide before = line;                                                                \
                line = before operator(wide) x[r * step];                                          \
                out[r * step] = (type)(exclusive ? before : line);                                 \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t c = 0; c < m; c++)                                                            \
            sum[c] = start;                                                                        \
        for (int64_t r = 0; r < n; r++) {                                                          \
            for (int64_t c = 0; c < m; c++) {                                                      \
                wide before = sum[c];                                                              \
                sum[c] = before operator(wide) x[r * step + c];                                    \
                out[r * step + c] = (type)(exclusive ? before : sum[c]);                           \
            }                                                                                      \
        }                                                                                          \
    }

SCAN_LOOP(sum_float32, float, double, 0, +)
SCAN_LOOP(sum_float64, double, double, 0, +)
SCAN_LOOP(sum_int32, int32_t, uint32_t, 0, +)
SCAN_LOOP(sum_int64, int64_t, uint64_t, 0, +)
SCAN_LOOP(prod_float32, float, double, 1, *)
SCAN_LOOP(prod_float64, double, double, 1, *)
SCAN_LOOP(prod_int32, int32_t, uint32_t, 1, *)
SCAN_LOOP(prod_int64, int64_t, uint64_t, 1, *)

struct scan_work {
    struct lines lines;
    scan_loop *loop;
    const char *x;
    char *out;
    bool exclusive, reverse;
    int64_t bytes;
};

static int scan_body(void *context, int64_t begin, int64_t end)
{
    const struct scan_work *work = context;
    const struct lines *lines = &work->lines;
    int64_t row = work->reverse ? lines->n - 1 : 0;
    for (int64_t task = begin; task < end; task++) {
        struct tile tile = lines_tile(lines, task);
        int64_t first = ((tile.outer * lines->n + row) * lines->inner + tile.inner) * work->bytes;
        work->loop(lines->n, work->reverse ? -lines->inner : lines->inner, tile.m, work->x + first,
                   work->exclusive, work->out + first);
    }
    return 0;
}

static int scan_prepare(struct kernel_setup *setup)
{
    enum dtype type = setup->in_types[0].type;
    struct scan_work *of_all = setup->state = mem_alloc(sizeof *of_all);
    static scan_loop *const loops[][2] = {[FLOAT32] = {prod_float32, sum_float32},
                                          [FLOAT64] = {prod_float64, sum_float64},
                                          [INT32] = {prod_int32, sum_int32},
                                          [INT64] = {prod_int64, sum_int64},
                                          [UINT64] = {prod_int64, sum_int64}};
    *of_all = (struct scan_work){.loop = loops[type][node_is(setup->node, "Cumsum")],
                                 .exclusive = node_bool(setup->node, "exclusive"),
                                 .reverse = node_bool(setup->node, "reverse"),
                                 .bytes = (int64_t)dtype_bytes(type)};
    setup->out[0].forward = FORWARD_REUSE;
    return 0;
}

static int scan_run(struct kernel_call *call)
{
    const struct tensor *x = call->in[0];
    struct tensor *out = result_outputs(call, 1, 2);
    if (!out)
        return call->err->code;
    struct scan_work work = *(const struct scan_work *)call->state;
    work.lines = lines_along(&x->shape, args_axis(call, 1, x->shape.rank));
    work.x = x->data;
    work.out = out->data;
    lines_run(&work.lines, call->threads, scan_body, &work);
    return KERNEL_DONE;
}

const struct kernel_code kernel_scan = {.prepare = scan_prepare, .run = scan_run};
