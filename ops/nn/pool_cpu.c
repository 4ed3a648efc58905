/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling over images seen as planes (ops/nn/pool_planes_cpu.h).
 */
#include <math.h>
#include <string.h>

#include "ops/device/chain_cpu.h"
#include "ops/math/parallel_cpu.h"
#include "ops/nn/pool_planes_cpu.h"
#include "ops/nn/pool_shapes.h"

/* The same for results that are images: sums over the windows or, if tiled, from one window. */
INLINED void each_window_back(const struct planes *p, const struct plane *plane, size_t bytes,
                              spot_loop *add, spot_loop *set)
{
    if (p->tiled) {
        each_window(p, plane, set);
        return;
    }
    memset(plane->result, 0, (size_t)(p->window.y.in * p->window.x.in * p->block) * bytes);
    each_window(p, plane, add);
}

/* `sum` is the type in which gradients are added: integers wrap around. */
#define MAX_LOOPS(type, low, sum)                                                                  \
    INLINED void max_spot_##type(const struct plane *plane, const struct spot *spot, int64_t n)    \
    {                                                                                              \
        type *out = (type *)plane->result + spot->output, most[LANES];                             \
        for (int64_t i = 0; i < n; i++)                                                            \
            most[i] = low;                                                                         \
        EACH_CELL(spot)                                                                            \
        {                                                                                          \
            const type *x = (const type *)plane->image + at;                                       \
            _Pragma("omp simd") for (int64_t i = 0; i < n; i++) most[i] =                          \
                x[i] > most[i] || x[i] != x[i] ? x[i] : most[i];                                   \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            out[i] = most[i];                                                                      \
    }                                                                                              \
    static void max_##type(const struct planes *p, const struct plane *plane)                      \
    {                                                                                              \
        each_window(p, plane, max_spot_##type);                                                    \
    }                                                                                              \
    INLINED void max_grad_spot_##type(const struct plane *plane, const struct spot *spot,          \
                                      int64_t n, bool adds)                                        \
    {                                                                                              \
        const type *y = (const type *)plane->output + spot->output;                                \
        const type *g = (const type *)plane->gradient + spot->output;                              \
        type left[LANES]; /* what no cell has taken yet */                                         \
        for (int64_t i = 0; i < n; i++)                                                            \
            left[i] = g[i];                                                                        \
        EACH_CELL(spot)                                                                            \
        {                                                                                          \
            const type *x = (const type *)plane->image + at;                                       \
            type *d = (type *)plane->result + at;                                                  \
            _Pragma("omp simd") for (int64_t i = 0; i < n; i++)                                    \
            {                                                                                      \
                bool found = x[i] == y[i] || (x[i] != x[i] && y[i] != y[i]);                       \
                type taken = found ? left[i] : 0;                                                  \
                left[i] = found ? 0 : left[i];                                                     \
                d[i] = (type)((adds ? (sum)d[i] : 0) + (sum)taken);                                \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    INLINED void max_grad_add_##type(const struct plane *plane, const struct spot *s, int64_t n)   \
    {                                                                                              \
        max_grad_spot_##type(plane, s, n, true);                                                   \
    }                                                                                              \
    INLINED void max_grad_set_##type(const struct plane *plane, const struct spot *s, int64_t n)   \
    {                                                                                              \
        max_grad_spot_##type(plane, s, n, false);                                                  \
    }                                                                                              \
    static void max_grad_##type(const struct planes *p, const struct plane *plane)                 \
    {                                                                                              \
        each_window_back(p, plane, sizeof(type), max_grad_add_##type, max_grad_set_##type);        \
    }                                                                                              \
    INLINED void max_grad_grad_spot_##type(const struct plane *plane, const struct spot *spot,     \
                                           int64_t n)                                              \
    {                                                                                              \
        const type *y = (const type *)plane->output + spot->output;                                \
        type *out = (type *)plane->result + spot->output;                                          \
        bool found[LANES] = {false};                                                               \
        for (int64_t i = 0; i < n; i++)                                                            \
            out[i] = 0;                                                                            \
        EACH_CELL(spot)                                                                            \
        {                                                                                          \
            const type *x = (const type *)plane->image + at;                                       \
            const type *g = (const type *)plane->gradient + at;                                    \
            _Pragma("omp simd") for (int64_t i = 0; i < n; i++)                                    \
            {                                                                                      \
                bool here = !found[i] && (x[i] == y[i] || (x[i] != x[i] && y[i] != y[i]));         \
                out[i] = here ? g[i] : out[i];                                                     \
                found[i] |= here;                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void max_grad_grad_##type(const struct planes *p, const struct plane *plane)            \
    {                                                                                              \
        each_window(p, plane, max_grad_grad_spot_##type);                                          \
    }

/* Returns the number of cells of window `out` that are in the image. */
static inline int64_t inside(const struct window_axis *a, int64_t out)
{
    int64_t start = out * a->stride - a->before;
    return end_inside(start, a) - first_inside(start);
}

#define AVG_LOOPS(type)                                                                            \
    INLINED void avg_spot_##type(const struct plane *plane, const struct spot *spot, int64_t n)    \
    {                                                                                              \
        type *out = (type *)plane->result + spot->output;                                          \
        type count = (type)(spot->rows * spot->columns);                                           \
        double total[LANES] = {0}; /* of the row sums of the window */                             \
        for (int64_t row = 0; row < spot->rows; row++) {                                           \
            const type *x = (const type *)plane->image + spot->first + row * spot->line;           \
            type part[LANES] = {0};                                                                \
            for (int64_t column = 0; column < spot->columns; column++, x += spot->cell)            \
                _Pragma("omp simd") for (int64_t i = 0; i < n; i++) part[i] += x[i];               \
            _Pragma("omp simd") for (int64_t i = 0; i < n; i++) total[i] += part[i];               \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            out[i] = (type)total[i] / count;                                                       \
    }                                                                                              \
    static void avg_##type(const struct planes *p, const struct plane *plane)                      \
    {                                                                                              \
        each_window(p, plane, avg_spot_##type);                                                    \
    }                                                                                              \
    INLINED void avg_grad_cell_##type(const struct planes *p, const struct plane *plane,           \
                                      const struct plane_cell *cell, int64_t n)                    \
    {                                                                                              \
        type *d = (type *)plane->result + cell->image, sum[LANES] = {0};                           \
        EACH_WINDOW(p, cell)                                                                       \
        {                                                                                          \
            const type *g = (const type *)plane->gradient + at;                                    \
            type count = (type)(inside(&p->window.y, oy) * inside(&p->window.x, ox));              \
            _Pragma("omp simd") for (int64_t i = 0; i < n; i++) sum[i] += g[i] / count;            \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            d[i] = sum[i];                                                                         \
    }                                                                                              \
    static void avg_grad_##type(const struct planes *p, const struct plane *plane)                 \
    {                                                                                              \
        each_cell(p, plane, avg_grad_cell_##type);                                                 \
    }

MAX_LOOPS(float, -INFINITY, float)
MAX_LOOPS(double, -INFINITY, double)
MAX_LOOPS(int32_t, INT32_MIN, uint32_t)
MAX_LOOPS(int64_t, INT64_MIN, uint64_t)
MAX_LOOPS(uint64_t, 0, uint64_t)
AVG_LOOPS(float)
AVG_LOOPS(double)

#define FLOATS(name)                                                                               \
    {                                                                                              \
        [FLOAT32] = name##_float, [FLOAT64] = name##_double                                        \
    }
#define REALS(name)                                                                                \
    {                                                                                              \
        [FLOAT32] = name##_float, [FLOAT64] = name##_double, [INT32] = name##_int32_t,             \
        [INT64] = name##_int64_t, [UINT64] = name##_uint64_t                                       \
    }

static plane_loop *const loops[N_POOL_KINDS][UINT64 + 1] = {
    /* by type */
    [POOL_MAX] = REALS(max),
    [POOL_MAX_GRAD] = REALS(max_grad),
    [POOL_MAX_GRAD_GRAD] = REALS(max_grad_grad),
    [POOL_AVG] = FLOATS(avg),
    [POOL_AVG_GRAD] = FLOATS(avg_grad),
    [POOL_WITH_PLACE] = FLOATS(max_place),
    [POOL_PLACE_GRAD] = FLOATS(max_place_grad),
};

struct pool_state {
    struct arrivals arrivals; /* first */
    struct pooling pool;
    plane_loop *loop;
    const struct layout *layout; /* of all images, at their sizes; NULL: row-major */
};

static int prepare(struct kernel_setup *setup)
{
    struct pool_state *state = setup->state = mem_alloc(sizeof *state);
    if (pool_init(&state->pool, setup))
        return setup->err->code;
    state->loop = loops[state->pool.kind][node_type(setup->node, "T")];
    /* The layout is that of the first image that arrives with one, if it counts the channels of
     * data_format. */
    const struct layout *wanted[3] = {NULL, NULL, NULL};
    int first = setup->n_in - state->pool.form->n_images;
    for (int i = first; setup->layouts && i < setup->n_in && !state->layout; i++)
        if (setup->in_layouts[i] && setup->in_layouts[i]->axis == state->pool.window.channels)
            state->layout = setup->in_layouts[i];
    for (int i = first; state->layout && i < setup->n_in; i++)
        wanted[i] = cpu_layout_like(setup->device, state->layout, &setup->in_types[i]);
    for (int i = 0; state->layout && i < setup->n_out; i++)
        setup->out[i].layout = cpu_layout_like(setup->device, state->layout, &setup->out_types[i]);
    return arrivals_prepare(&state->arrivals, setup, wanted);
}

/* ---- run ---- */

struct pool_work {
    const struct pool_state *state;
    struct planes planes;
    struct plane first;
    size_t image_bytes, output_bytes, places; /* of a plane */
};

static int run_planes(void *context, int64_t begin, int64_t end)
{
    const struct pool_work *work = context;
    enum pool_kind kind = work->state->pool.kind;
    for (int64_t i = begin; i < end; i++) {
        size_t image = (size_t)i * work->image_bytes, output = (size_t)i * work->output_bytes;
        size_t gradient = kind == POOL_MAX_GRAD_GRAD ? image : output;
        struct plane plane = work->first;
        plane.image = plane.image ? (const char *)plane.image + image : NULL;
        plane.output = plane.output ? (const char *)plane.output + output : NULL;
        plane.gradient = plane.gradient ? (const char *)plane.gradient + gradient : NULL;
        plane.result = (char *)plane.result + (work->state->pool.form->to_image ? image : output);
        plane.place = plane.place ? plane.place + (size_t)i * work->places : NULL;
        work->state->loop(&work->planes, &plane);
    }
    return 0;
}

static bool is_tiled(const struct window_axis *a)
{
    return a->size == a->stride && a->out * a->stride == a->in && !a->before;
}

static int run(struct kernel_call *call)
{
    const struct pool_state *state = call->state;
    const void *data[3];
    struct pool_work work = {.state = state};
    struct planes *p = &work.planes;
    const struct shape *image = pool_outputs(call, &state->pool, &p->window);
    const struct tensor *out = call->out[0];
    if (!image || arrivals_run(&state->arrivals, call, data))
        return call->err->code;
    int64_t channels = image->dims[p->window.channels];
    p->tiled = is_tiled(&p->window.y) && is_tiled(&p->window.x);
    p->n = image->dims[0] * (p->window.nchw ? channels : 1);
    p->block = p->window.nchw ? 1 : channels;
    if (state->layout) {
        p->block = state->layout->channels.block;
        p->n = image->dims[0] * state->layout->channels.blocks;
    }
    int64_t cells = p->window.y.in * p->window.x.in * p->block;
    work.image_bytes = (size_t)cells * dtype_bytes(out->type);
    work.places = (size_t)(p->window.y.out * p->window.x.out * p->block);
    work.output_bytes = work.places * dtype_bytes(out->type);
    work.first = (struct plane){.image = call->n_in == 2 ? NULL : data[0],
                                .output = call->n_in == 3 ? data[1] : NULL,
                                .gradient = call->n_in > 1 ? data[call->n_in - 1] : NULL,
                                .result = out->data,
                                .masked = state->pool.masked};
    if (state->pool.kind >= POOL_WITH_PLACE)
        work.first.place = call->n_out == 2 ? call->out[1]->data : (uint8_t *)(uintptr_t)data[0];
    if (tensor_count(out))
        parallel_for(call->threads, p->n, PARALLEL_GRAIN_MOVE / 4 / (cells + 1) + 1, run_planes,
                     &work);
    return KERNEL_DONE;
}

const struct kernel_code kernel_pool = {
    .prepare = prepare, .run = run, .release = arrivals_release};
