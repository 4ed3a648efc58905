/* SPDX-License-Identifier: Apache-2.0
 *
 * Both ops see memory as [outer, blocks, inner, block] (struct channels), which covers row-major
 * NHWC and NCHW and the blocked layouts of convolutions.
 */
#include "ops/nn/bias_cpu.h"

#include "ops/math/outputs.h"
#include "ops/math/parallel_cpu.h"
#include "ops/nn/format.h"

/* The minimum of channels per thread of BiasAddGrad, and the channels summed at a time; results
 * depend on neither. */
#define SLICE 16
#define SIDE_BY_SIDE 1024
/* Elements, and rows, that are added in their own type before they are added to a wide sum. */
#define RUN 512
#define ROWS 32

typedef void sum_loop(const struct channels *c, int64_t begin, int64_t end, const void *x,
                      void *sums);

struct bias {
    struct arrivals arrivals; /* first */
    bool nchw;
    const struct layout *layout;
    bias_loop *add;
    sum_loop *sum;
};

#define EACH(begin, end) _Pragma("omp simd") for (int64_t j = begin; j < (end); j++)

#define ADD_LOOP(type)                                                                             \
    static void add_##type(const struct channels *c, int64_t row, const void *px,                  \
                           const void *pbias, void *pout)                                          \
    {                                                                                              \
        const int64_t inner = c->inner, block = c->block, first = row % c->blocks * block;         \
        const int64_t n = c->n - first < block ? c->n - first : block;                             \
        const type *bias = (const type *)pbias + first,                                            \
                   *x = (const type *)px + row * inner * block;                                    \
        type *out = (type *)pout + row * inner * block, all = bias[0];                             \
        if (block == 1)                                                                            \
            EACH(0, inner) out[j] = x[j] + all;                                                    \
        else                                                                                       \
            for (int64_t i = 0; i < inner; i++, x += block, out += block) {                        \
                EACH(0, n) out[j] = x[j] + bias[j];                                                \
                EACH(n, block) out[j] = 0;                                                         \
            }                                                                                      \
    }

ADD_LOOP(float)
ADD_LOOP(double)
ADD_LOOP(uint32_t)
ADD_LOOP(uint64_t)

/* Sums channels [begin, end), at most SIDE_BY_SIDE, in a fixed order. Short runs are added in their
 * own type: along the row in eight lanes if blocks have one channel, else row by row. The runs'
 * sums are added in a wide type. */
#define SUM_LOOP(type, wide)                                                                       \
    static type sum_run_##type(const type *x, int64_t n)                                           \
    {                                                                                              \
        type lanes[8] = {0}, rest = 0;                                                             \
        int64_t i = 0;                                                                             \
        for (; i + 8 <= n; i += 8)                                                                 \
            for (int j = 0; j < 8; j++)                                                            \
                lanes[j] += x[i + j];                                                              \
        for (; i < n; i++)                                                                         \
            rest += x[i];                                                                          \
        for (int j = 0; j < 8; j++)                                                                \
            rest += lanes[j];                                                                      \
        return rest;                                                                               \
    }                                                                                              \
    /* Of channel b, where a block is one. */                                                      \
    static type sum_channel_##type(const struct channels *c, int64_t b, const type *x)             \
    {                                                                                              \
        wide sum = 0;                                                                              \
        for (int64_t o = 0; o < c->outer; o++) {                                                   \
            const type *row = x + (o * c->blocks + b) * c->inner;                                  \
            for (int64_t i = 0; i < c->inner; i += RUN)                                            \
                sum += sum_run_##type(row + i, c->inner - i < RUN ? c->inner - i : RUN);           \
        }                                                                                          \
        return (type)sum;                                                                          \
    }                                                                                              \
    /* Of n <= SIDE_BY_SIDE channels of block b, from one of them on. */                           \
    static void sum_block_##type(const struct channels *c, int64_t b, int64_t from, int64_t n,     \
                                 const type *x, type *sums)                                        \
    {                                                                                              \
        wide total[SIDE_BY_SIDE] = {0};                                                            \
        type part[SIDE_BY_SIDE] = {0};                                                             \
        int64_t rows = 0;                                                                          \
        for (int64_t o = 0; o < c->outer; o++) {                                                   \
            const type *row = x + (o * c->blocks + b) * c->inner * c->block + from;                \
            for (int64_t i = 0; i < c->inner; i++, row += c->block) {                              \
                for (int64_t j = 0; j < n; j++)                                                    \
                    part[j] += row[j];                                                             \
                if (++rows % ROWS)                                                                 \
                    continue;                                                                      \
                for (int64_t j = 0; j < n; j++) {                                                  \
                    total[j] += part[j];                                                           \
                    part[j] = 0;                                                                   \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        for (int64_t j = 0; j < n; j++)                                                            \
            sums[j] = (type)(total[j] + part[j]);                                                  \
    }                                                                                              \
    static void sum_##type(const struct channels *c, int64_t begin, int64_t end, const void *x,    \
                           void *sums)                                                             \
    {                                                                                              \
        for (int64_t b = begin / c->block; b * c->block < end; b++) {                              \
            int64_t first = b * c->block, from = first > begin ? first : begin;                    \
            int64_t to = first + c->block < end ? first + c->block : end;                          \
            type *out = (type *)sums + from;                                                       \
            if (c->block == 1)                                                                     \
                *out = sum_channel_##type(c, b, x);                                                \
            else                                                                                   \
                sum_block_##type(c, b, from - first, to - from, x, out);                           \
        }                                                                                          \
    }

SUM_LOOP(float, double)
SUM_LOOP(double, double)
SUM_LOOP(uint32_t, uint32_t)
SUM_LOOP(uint64_t, uint64_t)

bias_loop *bias_add_loop(enum dtype type)
{
    return type == FLOAT32   ? add_float
           : type == FLOAT64 ? add_double
           : type == INT32   ? add_uint32_t
                             : add_uint64_t;
}

/* Keeps the layout of input 0 if it counts the same channels. */
static int prepare(struct kernel_setup *setup)
{
    struct bias *state = setup->state = mem_alloc(sizeof *state);
    const struct layout *layout = setup->in_layouts ? setup->in_layouts[0] : NULL;
    const struct layout *wanted[2] = {NULL, NULL};
    state->nchw = format_is_nchw(setup->node);
    enum dtype type = setup->in_types[0].type;
    state->add = bias_add_loop(type);
    state->sum = type == FLOAT32   ? sum_float
                 : type == FLOAT64 ? sum_double
                 : type == INT32   ? sum_uint32_t
                                   : sum_uint64_t;
    if (layout && layout->axis == format_channel_axis(setup->node, setup->in_types[0].shape.rank))
        wanted[0] = state->layout = layout;
    return arrivals_prepare(&state->arrivals, setup, wanted);
}

static int add_prepare(struct kernel_setup *setup)
{
    if (prepare(setup))
        return setup->err->code;
    const struct bias *state = setup->state;
    setup->out[0].layout = state->layout;
    setup->out[0].forward = state->arrivals.moved[0] < 0 ? FORWARD_REUSE : FORWARD_NONE;
    return 0;
}

/* Describes the memory of input 0, whose shape was checked, by channels. */
static struct channels see_channels(const struct kernel_call *call)
{
    const struct bias *state = call->state;
    const struct shape *shape = &call->in[0]->shape;
    return state->layout ? state->layout->channels
                         : cpu_channels(shape, state->nchw ? 1 : shape->rank - 1);
}

struct bias_work {
    const struct bias *state;
    const struct channels *channels;
    const void *x, *bias;
    void *out;
};

static int add_part(void *context, int64_t begin, int64_t end)
{
    const struct bias_work *part = context;
    for (int64_t row = begin; row < end; row++)
        part->state->add(part->channels, row, part->x, part->bias, part->out);
    return 0;
}

static int add_run(struct kernel_call *call)
{
    const struct bias *state = call->state;
    const void *data[2];
    struct tensor *out = result_outputs(call, 0, 0);
    if (!out || arrivals_run(&state->arrivals, call, data))
        return call->err->code;
    struct channels c = see_channels(call);
    struct bias_work part = {state, &c, data[0], data[1], out->data};
    int64_t row = c.inner * c.block, grain = PARALLEL_GRAIN_MOVE / (row > 0 ? row : 1) + 1;
    parallel_for(call->threads, row ? c.outer * c.blocks : 0, grain, add_part, &part);
    return KERNEL_DONE;
}

static int sum_part(void *context, int64_t begin, int64_t end)
{
    const struct bias_work *part = context;
    int64_t last = end * SLICE < part->channels->n ? end * SLICE : part->channels->n;
    for (int64_t i = begin * SLICE; i < last; i += SIDE_BY_SIDE)
        part->state->sum(part->channels, i, i + SIDE_BY_SIDE < last ? i + SIDE_BY_SIDE : last,
                         part->x, part->out);
    return 0;
}

static int sum_run(struct kernel_call *call)
{
    const struct bias *state = call->state;
    const void *data[1];
    struct tensor *out = result_outputs(call, 0, 0);
    if (!out || arrivals_run(&state->arrivals, call, data))
        return call->err->code;
    struct channels c = see_channels(call);
    struct bias_work part = {state, &c, data[0], NULL, out->data};
    int64_t column = c.outer * c.inner, slices = (c.n + SLICE - 1) / SLICE;
    int64_t grain = PARALLEL_GRAIN_MOVE / ((column > 0 ? column : 1) * SLICE) + 1;
    parallel_for(call->threads, slices, grain, sum_part, &part);
    return KERNEL_DONE;
}

const struct kernel_code kernel_bias_add = {
    .prepare = add_prepare, .run = add_run, .release = arrivals_release};
const struct kernel_code kernel_bias_add_grad = {
    .prepare = prepare, .run = sum_run, .release = arrivals_release};
