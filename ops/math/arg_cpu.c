/* SPDX-License-Identifier: Apache-2.0
 *
 * ArgMax and ArgMin: the lines of a tile are searched along the axis together, row after row. A
 * line by itself is searched as LANES columns, whose best elements compete.
 */
#include "base/memory.h"
#include "ops/math/lines.h"
#include "ops/math/results.h"

#define LANES 64

/* Finds the best of n rows of m <= LINES_TILE elements, `stride` apart; the first of equal ones. */
typedef void arg_loop(int64_t n, int64_t stride, int64_t m, const void *x, int64_t *position);

#define ARG_LOOP(name, type, better)                                                               \
    static inline bool name##_wins(type value, type best)                                          \
    {                                                                                              \
        return better;                                                                             \
    }                                                                                              \
    static void name(int64_t n, int64_t stride, int64_t m, const void *px, int64_t *position)      \
    {                                                                                              \
        const type *x = px;                                                                        \
        const bool is_line = stride == 1 && n >= 8 * LANES;                                        \
        const int64_t rows = is_line ? n / LANES : n;                                              \
        type best[LINES_TILE];                                                                     \
        if (is_line)                                                                               \
            stride = m = LANES;                                                                    \
        for (int64_t c = 0; c < m; c++) {                                                          \
            best[c] = x[c];                                                                        \
            position[c] = 0;                                                                       \
        }                                                                                          \
        for (int64_t r = 1; r < rows; r++) {                                                       \
            for (int64_t c = 0; c < m; c++) {                                                      \
                type value = x[r * stride + c];                                                    \
                bool wins = name##_wins(value, best[c]);                                           \
                best[c] = wins ? value : best[c];                                                  \
                position[c] = wins ? r : position[c];                                              \
            }                                                                                      \
        }                                                                                          \
        if (!is_line)                                                                              \
            return;                                                                                \
        int64_t found = position[0] * LANES;                                                       \
        for (int64_t c = 1; c < LANES; c++) {                                                      \
            int64_t i = position[c] * LANES + c;                                                   \
            bool loses = name##_wins(x[found], x[i]);                                              \
            found = name##_wins(x[i], x[found]) || (!loses && i < found) ? i : found;              \
        }                                                                                          \
        for (int64_t i = rows * LANES; i < n; i++)                                                 \
            found = name##_wins(x[i], x[found]) ? i : found;                                       \
        *position = found;                                                                         \
    }

/* A NaN wins over numbers. */
ARG_LOOP(max_float32, float, value > best || (value != value && best == best))
ARG_LOOP(max_float64, double, value > best || (value != value && best == best))
ARG_LOOP(max_int32, int32_t, value > best)
ARG_LOOP(max_int64, int64_t, value > best)
ARG_LOOP(min_float32, float, value < best || (value != value && best == best))
ARG_LOOP(min_float64, double, value < best || (value != value && best == best))
ARG_LOOP(min_int32, int32_t, value < best)
ARG_LOOP(min_int64, int64_t, value < best)
ARG_LOOP(max_bool, uint8_t, value > best)
ARG_LOOP(min_bool, uint8_t, value < best)
ARG_LOOP(max_uint64, uint64_t, value > best)
ARG_LOOP(min_uint64, uint64_t, value < best)

struct arg_work {
    struct lines lines;
    arg_loop *loop;
    const char *x;
    void *out;
    bool narrow; /* int32 positions */
    int64_t bytes;
};

static int arg_body(void *context, int64_t begin, int64_t end)
{
    const struct arg_work *work = context;
    const struct lines *lines = &work->lines;
    int64_t position[LINES_TILE];
    for (int64_t task = begin; task < end; task++) {
        struct tile tile = lines_tile(lines, task);
        int64_t first = tile.outer * lines->n * lines->inner + tile.inner;
        int64_t result = tile.outer * lines->inner + tile.inner;
        work->loop(lines->n, lines->inner, tile.m, work->x + first * work->bytes, position);
        for (int64_t i = 0; i < tile.m; i++) {
            if (work->narrow)
                ((int32_t *)work->out)[result + i] = (int32_t)position[i];
            else
                ((int64_t *)work->out)[result + i] = position[i];
        }
    }
    return 0;
}

static int arg_prepare(struct kernel_setup *setup)
{
    enum dtype type = setup->in_types[0].type;
    struct arg_work *of_all = setup->state = mem_alloc(sizeof *of_all);
    static arg_loop *const loops[][2] = {
        [FLOAT32] = {min_float32, max_float32}, [FLOAT64] = {min_float64, max_float64},
        [INT32] = {min_int32, max_int32},       [INT64] = {min_int64, max_int64},
        [UINT64] = {min_uint64, max_uint64},    [BOOL] = {min_bool, max_bool}};
    *of_all = (struct arg_work){.loop = loops[type][node_is(setup->node, "ArgMax")],
                                .narrow = setup->out_types[0].type == INT32,
                                .bytes = (int64_t)dtype_bytes(type)};
    return 0;
}

static int arg_run(struct kernel_call *call)
{
    const struct tensor *x = call->in[0];
    int axis;
    struct tensor *out = arg_output(call, &axis);
    if (!out)
        return call->err->code;
    struct arg_work work = *(const struct arg_work *)call->state;
    work.lines = lines_along(&x->shape, axis);
    work.x = x->data;
    work.out = out->data;
    lines_run(&work.lines, call->threads, arg_body, &work);
    return KERNEL_DONE;
}

const struct kernel_code kernel_arg = {.prepare = arg_prepare, .run = arg_run};
