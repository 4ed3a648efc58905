/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling over images seen as [batch, blocks, height, width, block]: row-major NHWC has one block
 * of all channels, row-major NCHW blocks of one channel, and a convolution's layouts blocks of 16
 * or 8. The innermost loop runs over a block.
 */
#include <math.h>
#include <string.h>

#include "ops/device/chain_cpu.h"
#include "ops/device/form_cpu.h"
#include "ops/math/parallel_cpu.h"
#include "ops/nn/pool_shapes.h"

/* Channels that are worked on at a time. */
#define SLICE 64

struct planes {
    struct window window;
    int64_t n, block; /* planes [height, width, block] */
};

/* One plane: image, output, and gradients of them. */
struct plane {
    const void *image, *output, *gradient;
    void *result;
};

typedef void plane_loop(const struct planes *p, const struct plane *plane);

static int64_t first_inside(int64_t start)
{
    return start < 0 ? -start : 0;
}

static int64_t end_inside(int64_t start, const struct window_axis *a)
{
    return start + a->size > a->in ? a->in - start : a->size;
}

/* Walks the windows of a plane: for each (oy, ox) the part of the window inside the image is
 * [ky0, ky1) x [kx0, kx1), and its first cell lies at (y0, x0). */
#define EACH_WINDOW(p)                                                                             \
    const struct window_axis *ay = &(p)->window.y, *ax = &(p)->window.x;                           \
    const int64_t block = (p)->block;                                                              \
    for (int64_t oy = 0, y0 = -ay->before; oy < ay->out; oy++, y0 += ay->stride)                   \
        for (int64_t ox = 0, x0 = -ax->before, ky0 = first_inside(y0), ky1 = end_inside(y0, ay);   \
             ox < ax->out; ox++, x0 += ax->stride)                                                 \
            for (int64_t kx0 = first_inside(x0), kx1 = end_inside(x0, ax), from = 0; from < block; \
                 from += SLICE)
#define SLICE_END (block - from < SLICE ? block - from : SLICE)
#define OUTPUT_AT ((oy * ax->out + ox) * block + from)
#define EACH_CELL                                                                                  \
    for (int64_t ky = ky0; ky < ky1; ky++)                                                         \
        for (int64_t kx = kx0; kx < kx1; kx++)
#define CELL_AT (((y0 + ky) * ax->in + x0 + kx) * block + from)

/* `sum` is what gradients are added in: integers wrap around. */
#define MAX_LOOPS(type, low, sum)                                                                  \
    static void max_##type(const struct planes *p, const struct plane *plane)                      \
    {                                                                                              \
        EACH_WINDOW(p)                                                                             \
        {                                                                                          \
            type *out = (type *)plane->result + OUTPUT_AT;                                         \
            int64_t n = SLICE_END;                                                                 \
            for (int64_t i = 0; i < n; i++)                                                        \
                out[i] = low;                                                                      \
            EACH_CELL                                                                              \
            {                                                                                      \
                const type *x = (const type *)plane->image + CELL_AT;                              \
                _Pragma("omp simd") for (int64_t i = 0; i < n; i++) out[i] =                       \
                    x[i] > out[i] || x[i] != x[i] ? x[i] : out[i];                                 \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void max_grad_##type(const struct planes *p, const struct plane *plane)                 \
    {                                                                                              \
        memset(plane->result, 0,                                                                   \
               (size_t)(p->window.y.in * p->window.x.in * p->block) * sizeof(type));               \
        EACH_WINDOW(p)                                                                             \
        {                                                                                          \
            const type *y = (const type *)plane->output + OUTPUT_AT;                               \
            const type *g = (const type *)plane->gradient + OUTPUT_AT;                             \
            int64_t n = SLICE_END;                                                                 \
            type left[SLICE]; /* what no cell has taken yet */                                     \
            for (int64_t i = 0; i < n; i++)                                                        \
                left[i] = g[i];                                                                    \
            EACH_CELL                                                                              \
            {                                                                                      \
                const type *x = (const type *)plane->image + CELL_AT;                              \
                type *d = (type *)plane->result + CELL_AT;                                         \
                _Pragma("omp simd") for (int64_t i = 0; i < n; i++)                                \
                {                                                                                  \
                    bool found = x[i] == y[i] || (x[i] != x[i] && y[i] != y[i]);                   \
                    type taken = found ? left[i] : 0;                                              \
                    left[i] = found ? 0 : left[i];                                                 \
                    d[i] = (type)((sum)d[i] + (sum)taken);                                         \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void max_grad_grad_##type(const struct planes *p, const struct plane *plane)            \
    {                                                                                              \
        EACH_WINDOW(p)                                                                             \
        {                                                                                          \
            const type *y = (const type *)plane->output + OUTPUT_AT;                               \
            type *out = (type *)plane->result + OUTPUT_AT;                                         \
            int64_t n = SLICE_END;                                                                 \
            bool found[SLICE] = {false};                                                           \
            for (int64_t i = 0; i < n; i++)                                                        \
                out[i] = 0;                                                                        \
            EACH_CELL                                                                              \
            {                                                                                      \
                const type *x = (const type *)plane->image + CELL_AT;                              \
                const type *g = (const type *)plane->gradient + CELL_AT;                           \
                _Pragma("omp simd") for (int64_t i = 0; i < n; i++)                                \
                {                                                                                  \
                    bool here = !found[i] && (x[i] == y[i] || (x[i] != x[i] && y[i] != y[i]));     \
                    out[i] = here ? g[i] : out[i];                                                 \
                    found[i] |= here;                                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

#define AVG_LOOPS(type)                                                                            \
    static void avg_##type(const struct planes *p, const struct plane *plane)                      \
    {                                                                                              \
        EACH_WINDOW(p)                                                                             \
        {                                                                                          \
            type *out = (type *)plane->result + OUTPUT_AT;                                         \
            type count = (type)((ky1 - ky0) * (kx1 - kx0));                                        \
            int64_t n = SLICE_END;                                                                 \
            double sum[SLICE] = {0}; /* of the sums of the window's rows */                        \
            for (int64_t ky = ky0; ky < ky1; ky++) {                                               \
                type row[SLICE] = {0};                                                             \
                for (int64_t kx = kx0; kx < kx1; kx++) {                                           \
                    const type *x = (const type *)plane->image + CELL_AT;                          \
                    _Pragma("omp simd") for (int64_t i = 0; i < n; i++) row[i] += x[i];            \
                }                                                                                  \
                _Pragma("omp simd") for (int64_t i = 0; i < n; i++) sum[i] += row[i];              \
            }                                                                                      \
            for (int64_t i = 0; i < n; i++)                                                        \
                out[i] = (type)sum[i] / count;                                                     \
        }                                                                                          \
    }                                                                                              \
    static void avg_grad_##type(const struct planes *p, const struct plane *plane)                 \
    {                                                                                              \
        memset(plane->result, 0,                                                                   \
               (size_t)(p->window.y.in * p->window.x.in * p->block) * sizeof(type));               \
        EACH_WINDOW(p)                                                                             \
        {                                                                                          \
            const type *g = (const type *)plane->gradient + OUTPUT_AT;                             \
            type count = (type)((ky1 - ky0) * (kx1 - kx0));                                        \
            int64_t n = SLICE_END;                                                                 \
            EACH_CELL                                                                              \
            {                                                                                      \
                type *d = (type *)plane->result + CELL_AT;                                         \
                _Pragma("omp simd") for (int64_t i = 0; i < n; i++) d[i] += g[i] / count;          \
            }                                                                                      \
        }                                                                                          \
    }

MAX_LOOPS(float, -INFINITY, float)
MAX_LOOPS(double, -INFINITY, double)
MAX_LOOPS(int32_t, INT32_MIN, uint32_t)
MAX_LOOPS(int64_t, INT64_MIN, uint64_t)
MAX_LOOPS(uint64_t, 0, uint64_t)
AVG_LOOPS(float)
AVG_LOOPS(double)

struct pool_row {
    const char *op;
    plane_loop *float32, *float64, *int32, *int64, *uint64;
};

#define FLOATS(name) name##_float, name##_double, NULL, NULL, NULL
#define REALS(name) name##_float, name##_double, name##_int32_t, name##_int64_t, name##_uint64_t

static const struct pool_row rows[] = {
    {"MaxPool", REALS(max)},
    {"MaxPoolGrad", REALS(max_grad)},
    {"MaxPoolGradGrad", REALS(max_grad_grad)},
    {"AvgPool", FLOATS(avg)},
    {"AvgPoolGrad", FLOATS(avg_grad)},
};

struct pool_state {
    const struct pool_form *form;
    plane_loop *loop;
    struct window window;
    const struct layout *layout; /* of all images, each in its size; NULL: row-major */
    struct arrivals arrivals;
};

static void release(void *pointer)
{
    struct pool_state *state = pointer;
    arrivals_release(&state->arrivals);
    mem_free(state);
}

/* The layout of the first image that arrives with one, if it counts the channels of data_format. */
static int prepare_layouts(struct kernel_setup *setup, struct pool_state *state)
{
    const struct layout *wanted[3] = {NULL, NULL, NULL};
    int first = setup->n_in - state->form->n_images;
    for (int i = first; setup->layouts && i < setup->n_in && !state->layout; i++)
        if (setup->in_layouts[i] && setup->in_layouts[i]->axis == state->window.channels)
            state->layout = setup->in_layouts[i];
    for (int i = first; state->layout && i < setup->n_in; i++)
        wanted[i] = cpu_layout_like(setup->device, state->layout, &setup->in_types[i].shape);
    if (state->layout)
        setup->out[0].layout =
            cpu_layout_like(setup->device, state->layout, &setup->out_types[0].shape);
    return arrivals_prepare(&state->arrivals, setup, wanted);
}

static plane_loop *find_loop(const struct pool_row *row, enum dtype type)
{
    switch (type) {
    case FLOAT32:
        return row->float32;
    case FLOAT64:
        return row->float64;
    case INT32:
        return row->int32;
    case UINT64:
        return row->uint64;
    default:
        return row->int64;
    }
}

static int prepare(struct kernel_setup *setup)
{
    const struct pool_row *row = FORM_FIND(setup, rows);
    if (!row)
        return setup->err->code;
    struct pool_state *state = mem_alloc(sizeof *state);
    state->form = pool_form_of(setup->node);
    state->loop = find_loop(row, node_type(setup->node, "T"));
    if (window_init(&state->window, setup->node, setup->err) ||
        window_from_ksize(&state->window, setup->node, setup->err) ||
        prepare_layouts(setup, state)) {
        release(state);
        return setup->err->code;
    }
    setup->state = state;
    return 0;
}

/* ---- run ---- */

struct pool_work {
    const struct pool_state *state;
    struct planes planes;
    struct plane first;
    size_t image_bytes, output_bytes; /* of a plane */
};

static int run_planes(void *context, int64_t begin, int64_t end)
{
    const struct pool_work *work = context;
    const struct pool_form *form = work->state->form;
    for (int64_t i = begin; i < end; i++) {
        size_t image = (size_t)i * work->image_bytes, output = (size_t)i * work->output_bytes;
        size_t gradient = form->of_image ? image : output;
        struct plane plane = work->first;
        plane.image = plane.image ? (const char *)plane.image + image : NULL;
        plane.output = plane.output ? (const char *)plane.output + output : NULL;
        plane.gradient = plane.gradient ? (const char *)plane.gradient + gradient : NULL;
        plane.result = (char *)plane.result + (form->to_image ? image : output);
        work->state->loop(&work->planes, &plane);
    }
    return 0;
}

static void set_planes(struct pool_work *work, const struct shape *image, size_t size)
{
    const struct pool_state *state = work->state;
    struct planes *p = &work->planes;
    int64_t channels = image->dims[p->window.channels];
    p->n = image->dims[0] * (p->window.nchw ? channels : 1);
    p->block = p->window.nchw ? 1 : channels;
    if (state->layout) {
        const struct channels *c = &state->layout->channels;
        p->block = c->block;
        p->n = image->dims[0] * c->blocks;
    }
    work->image_bytes = (size_t)(p->window.y.in * p->window.x.in * p->block) * size;
    work->output_bytes = (size_t)(p->window.y.out * p->window.x.out * p->block) * size;
}

static int run(struct kernel_call *call)
{
    const struct pool_state *state = call->state;
    struct pool_shapes shapes;
    const void *data[3];
    if (pool_solve(call, state->form, &state->window, &shapes))
        return call->err->code;
    struct pool_work work = {.state = state, .planes = {.window = shapes.window}};
    const struct shape *image = &shapes.image;
    struct tensor *out =
        kernel_alloc_output(call, 0, state->form->to_image ? image : &shapes.output);
    if (!out || arrivals_run(&state->arrivals, call, data))
        return call->err->code;
    set_planes(&work, image, dtype_bytes(out->type));
    work.first = (struct plane){.image = call->n_in == 2 ? NULL : data[0],
                                .output = call->n_in == 3 ? data[1] : NULL,
                                .gradient = call->n_in > 1 ? data[call->n_in - 1] : NULL,
                                .result = out->data};
    int64_t cells = shapes.window.y.in * shapes.window.x.in * work.planes.block;
    if (tensor_count(out))
        parallel_for(call->threads, work.planes.n, PARALLEL_GRAIN_MOVE / 4 / (cells + 1) + 1,
                     run_planes, &work);
    return KERNEL_DONE;
}

const struct kernel_code kernel_pool = {prepare, run, release};
