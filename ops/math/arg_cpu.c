/* SPDX-License-Identifier: Apache-2.0
 *
 * ArgMax and ArgMin. The input is seen as [outer, n, inner]; for each outer index the best of a
 * tile of inner ones are searched side by side, row after row.
 */
#include "exec/kernel.h"
#include "ops/math/parallel_cpu.h"

#define ARG_TILE 256

/* The best of n rows of m <= ARG_TILE elements, `stride` apart. */
typedef void arg_loop(int64_t n, int64_t stride, int64_t m, const void *x, int64_t *position);

#define ARG_LOOP(name, type, better)                                                               \
    static void name(int64_t n, int64_t stride, int64_t m, const void *px, int64_t *position)      \
    {                                                                                              \
        const type *x = px;                                                                        \
        type best[ARG_TILE];                                                                       \
        for (int64_t c = 0; c < m; c++) {                                                          \
            best[c] = x[c];                                                                        \
            position[c] = 0;                                                                       \
        }                                                                                          \
        for (int64_t r = 1; r < n; r++) {                                                          \
            for (int64_t c = 0; c < m; c++) {                                                      \
                type value = x[r * stride + c];                                                    \
                bool wins = better;                                                                \
                best[c] = wins ? value : best[c];                                                  \
                position[c] = wins ? r : position[c];                                              \
            }                                                                                      \
        }                                                                                          \
    }

/* A NaN wins over what is none. */
ARG_LOOP(max_float32, float, value > best[c] || (value != value && best[c] == best[c]))
ARG_LOOP(max_float64, double, value > best[c] || (value != value && best[c] == best[c]))
ARG_LOOP(max_int32, int32_t, value > best[c])
ARG_LOOP(max_int64, int64_t, value > best[c])
ARG_LOOP(min_float32, float, value < best[c] || (value != value && best[c] == best[c]))
ARG_LOOP(min_float64, double, value < best[c] || (value != value && best[c] == best[c]))
ARG_LOOP(min_int32, int32_t, value < best[c])
ARG_LOOP(min_int64, int64_t, value < best[c])

static arg_loop *find_loop(bool max, enum dtype type)
{
    switch (type) {
    case FLOAT32:
        return max ? max_float32 : min_float32;
    case FLOAT64:
        return max ? max_float64 : min_float64;
    case INT32:
        return max ? max_int32 : min_int32;
    default:
        return max ? max_int64 : min_int64;
    }
}

struct arg_work {
    arg_loop *loop;
    const char *x;
    void *out;
    bool narrow; /* int32 positions */
    int64_t bytes, n, inner, tiles;
};

/* A task is a tile of one outer index. */
static int arg_body(void *context, int64_t begin, int64_t end)
{
    const struct arg_work *work = context;
    int64_t position[ARG_TILE];
    for (int64_t task = begin; task < end; task++) {
        int64_t outer = task / work->tiles, c = task % work->tiles * ARG_TILE;
        int64_t m = work->inner - c < ARG_TILE ? work->inner - c : ARG_TILE;
        int64_t offset = outer * work->n * work->inner + c, result = outer * work->inner + c;
        work->loop(work->n, work->inner, m, work->x + offset * work->bytes, position);
        for (int64_t i = 0; i < m; i++) {
            if (work->narrow)
                ((int32_t *)work->out)[result + i] = (int32_t)position[i];
            else
                ((int64_t *)work->out)[result + i] = position[i];
        }
    }
    return 0;
}

static int arg_run(struct kernel_call *call)
{
    const struct tensor *x = call->in[0];
    int64_t dimension, outer = 1;
    int axis;
    if (call->in[1]->shape.rank)
        return kernel_fail(call, "dimension must be a scalar, not %s",
                           shape_text(&call->in[1]->shape));
    dimension = tensor_get_int64(call->in[1], 0);
    if (!shape_axis(dimension, x->shape.rank, &axis))
        return kernel_fail(call, "dimension %lld is outside [%d, %d)", (long long)dimension,
                           -x->shape.rank, x->shape.rank);
    struct shape shape = {.rank = 0};
    struct arg_work work = {.inner = 1, .n = x->shape.dims[axis], .x = x->data};
    for (int i = 0; i < x->shape.rank; i++) {
        if (i != axis)
            shape.dims[shape.rank++] = x->shape.dims[i];
        outer *= i < axis ? x->shape.dims[i] : 1;
        work.inner *= i > axis ? x->shape.dims[i] : 1;
    }
    if (!work.n && outer * work.inner > 0)
        return kernel_fail(call, "dimension %lld of %s has no elements", (long long)dimension,
                           shape_text(&x->shape));
    struct tensor *out = kernel_alloc_output(call, 0, &shape);
    if (!out)
        return call->err->code;
    work.loop = find_loop(node_is(call->node, "ArgMax"), x->type);
    work.out = out->data;
    work.narrow = out->type == INT32;
    work.bytes = (int64_t)dtype_bytes(x->type);
    work.tiles = (work.inner + ARG_TILE - 1) / ARG_TILE;
    if (tensor_count(out))
        parallel_for(call->threads, outer * work.tiles,
                     PARALLEL_GRAIN_MOVE / (work.n * (work.inner / work.tiles)) + 1, arg_body,
                     &work);
    return KERNEL_DONE;
}

const struct kernel_code kernel_arg = {.run = arg_run};
