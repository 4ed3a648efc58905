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

/* Channels that are worked on at a time: with all of them compilers keep a window's in registers.
 */
#define LANES 16

struct planes {
    struct window window;
    int64_t n, block; /* planes [height, width, block] */
    bool tiled;       /* each cell of an image is in one window */
};

/* One plane: image, output, and gradients of them. */
struct plane {
    const void *image, *output, *gradient;
    void *result;
};

/* Lanes of a window, as far as it is inside the image: rows x columns cells. */
struct spot {
    int64_t rows, columns;
    int64_t first, line, cell; /* elements: where the first cell lies, and from one to the next */
    int64_t output;            /* where the output lies */
};

typedef void plane_loop(const struct planes *p, const struct plane *plane);
typedef void spot_loop(const struct plane *plane, const struct spot *spot, int64_t n);

#define INLINED static inline __attribute__((always_inline))

static int64_t first_inside(int64_t start)
{
    return start < 0 ? -start : 0;
}

static int64_t end_inside(int64_t start, const struct window_axis *a)
{
    return start + a->size > a->in ? a->in - start : a->size;
}

/* The window (oy, ox) of the plane's windows. */
INLINED void each_slice(const struct planes *p, const struct plane *plane, int64_t oy, int64_t ox,
                        spot_loop *loop)
{
    const struct window_axis *ay = &p->window.y, *ax = &p->window.x;
    int64_t y = oy * ay->stride - ay->before, x = ox * ax->stride - ax->before, from = 0;
    int64_t y0 = first_inside(y), x0 = first_inside(x);
    struct spot spot = {.rows = end_inside(y, ay) - y0,
                        .columns = end_inside(x, ax) - x0,
                        .first = ((y + y0) * ax->in + x + x0) * p->block,
                        .line = ax->in * p->block,
                        .cell = p->block,
                        .output = (oy * ax->out + ox) * p->block};
    for (; from + LANES <= p->block; from += LANES, spot.first += LANES, spot.output += LANES)
        loop(plane, &spot, LANES);
    if (from < p->block)
        loop(plane, &spot, p->block - from);
}

INLINED void each_window(const struct planes *p, const struct plane *plane, spot_loop *loop)
{
    for (int64_t oy = 0; oy < p->window.y.out; oy++)
        for (int64_t ox = 0; ox < p->window.x.out; ox++)
            each_slice(p, plane, oy, ox, loop);
}

/* The same where results are of images: sums over the windows, or of one. */
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

#define EACH_CELL(spot)                                                                            \
    for (int64_t row = 0; row < (spot)->rows; row++)                                               \
        for (int64_t column = 0, at = (spot)->first + row * (spot)->line;                          \
             column < (spot)->columns; column++, at += (spot)->cell)

/* `sum` is what gradients are added in: integers wrap around. */
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

#define AVG_LOOPS(type)                                                                            \
    INLINED void avg_spot_##type(const struct plane *plane, const struct spot *spot, int64_t n)    \
    {                                                                                              \
        type *out = (type *)plane->result + spot->output;                                          \
        type count = (type)(spot->rows * spot->columns);                                           \
        double total[LANES] = {0}; /* of the sums of the window's rows */                          \
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
    INLINED void avg_grad_spot_##type(const struct plane *plane, const struct spot *spot,          \
                                      int64_t n, bool adds)                                        \
    {                                                                                              \
        const type *g = (const type *)plane->gradient + spot->output;                              \
        type count = (type)(spot->rows * spot->columns);                                           \
        EACH_CELL(spot)                                                                            \
        {                                                                                          \
            type *d = (type *)plane->result + at;                                                  \
            _Pragma("omp simd") for (int64_t i = 0; i < n; i++) d[i] =                             \
                (adds ? d[i] : 0) + g[i] / count;                                                  \
        }                                                                                          \
    }                                                                                              \
    INLINED void avg_grad_add_##type(const struct plane *plane, const struct spot *s, int64_t n)   \
    {                                                                                              \
        avg_grad_spot_##type(plane, s, n, true);                                                   \
    }                                                                                              \
    INLINED void avg_grad_set_##type(const struct plane *plane, const struct spot *s, int64_t n)   \
    {                                                                                              \
        avg_grad_spot_##type(plane, s, n, false);                                                  \
    }                                                                                              \
    static void avg_grad_##type(const struct planes *p, const struct plane *plane)                 \
    {                                                                                              \
        each_window_back(p, plane, sizeof(type), avg_grad_add_##type, avg_grad_set_##type);        \
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

static bool is_tiled(const struct window_axis *a)
{
    return a->size == a->stride && a->out * a->stride == a->in && !a->before;
}

static void set_planes(struct pool_work *work, const struct shape *image, size_t size)
{
    const struct pool_state *state = work->state;
    struct planes *p = &work->planes;
    int64_t channels = image->dims[p->window.channels];
    p->tiled = is_tiled(&p->window.y) && is_tiled(&p->window.x);
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
