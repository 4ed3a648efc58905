/* SPDX-License-Identifier: Apache-2.0
 *
 * Cumsum and Cumprod. The input is seen as [outer, n, inner]; a tile of inner indices is carried
 * along the axis side by side. float32 is carried in double.
 */
#include "exec/kernel.h"
#include "ops/math/parallel_cpu.h"

#define SCAN_TILE 256

/* n rows of m <= SCAN_TILE elements; `step` elements from one to the next, negative in reverse. */
typedef void scan_loop(int64_t n, int64_t step, int64_t m, const void *x, bool exclusive,
                       void *out);

#define SCAN_LOOP(name, type, wide, start, operator)                                               \
    static void name(int64_t n, int64_t step, int64_t m, const void *px, bool exclusive, void *po) \
    {                                                                                              \
        const type *x = px;                                                                        \
        type *out = po;                                                                            \
        wide sum[SCAN_TILE];                                                                       \
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

static scan_loop *find_loop(bool sum, enum dtype type)
{
    switch (type) {
    case FLOAT32:
        return sum ? sum_float32 : prod_float32;
    case FLOAT64:
        return sum ? sum_float64 : prod_float64;
    case INT32:
        return sum ? sum_int32 : prod_int32;
    default:
        return sum ? sum_int64 : prod_int64;
    }
}

struct scan_work {
    scan_loop *loop;
    const char *x;
    char *out;
    bool exclusive, reverse;
    int64_t bytes, n, inner, tiles;
};

/* A task is a tile of one outer index. */
static int scan_body(void *context, int64_t begin, int64_t end)
{
    const struct scan_work *work = context;
    for (int64_t task = begin; task < end; task++) {
        int64_t outer = task / work->tiles, c = task % work->tiles * SCAN_TILE;
        int64_t m = work->inner - c < SCAN_TILE ? work->inner - c : SCAN_TILE;
        int64_t first = work->reverse ? work->n - 1 : 0;
        int64_t offset = ((outer * work->n + first) * work->inner + c) * work->bytes;
        work->loop(work->n, work->reverse ? -work->inner : work->inner, m, work->x + offset,
                   work->exclusive, work->out + offset);
    }
    return 0;
}

static int scan_prepare(struct kernel_setup *setup)
{
    setup->out[0].forward = FORWARD_REUSE;
    return 0;
}

static int scan_run(struct kernel_call *call)
{
    const struct tensor *x = call->in[0];
    int64_t value, outer = 1;
    int axis;
    if (call->in[1]->shape.rank)
        return kernel_fail(call, "axis must be a scalar, not %s", shape_text(&call->in[1]->shape));
    value = tensor_get_int64(call->in[1], 0);
    if (!shape_axis(value, x->shape.rank, &axis))
        return kernel_fail(call, "axis %lld is outside [%d, %d)", (long long)value, -x->shape.rank,
                           x->shape.rank);
    struct tensor *out = kernel_alloc_output(call, 0, &x->shape);
    if (!out)
        return call->err->code;
    struct scan_work work = {.loop = find_loop(node_is(call->node, "Cumsum"), x->type),
                             .x = x->data,
                             .out = out->data,
                             .exclusive = node_bool(call->node, "exclusive"),
                             .reverse = node_bool(call->node, "reverse"),
                             .bytes = (int64_t)dtype_bytes(x->type),
                             .n = x->shape.dims[axis],
                             .inner = 1};
    for (int i = 0; i < x->shape.rank; i++) {
        outer *= i < axis ? x->shape.dims[i] : 1;
        work.inner *= i > axis ? x->shape.dims[i] : 1;
    }
    work.tiles = (work.inner + SCAN_TILE - 1) / SCAN_TILE;
    if (tensor_count(x))
        parallel_for(call->threads, outer * work.tiles,
                     PARALLEL_GRAIN_MOVE / (work.n * (work.inner / work.tiles)) + 1, scan_body,
                     &work);
    return KERNEL_DONE;
}

const struct kernel_code kernel_scan = {.prepare = scan_prepare, .run = scan_run};
