/* SPDX-License-Identifier: Apache-2.0
 *
 * LocallyConnected2D and its gradients: a small matrix product for each position, of the windows of
 * a block of images, [images, cells], and the position's filter, [cells, out channels]. Windows
 * overlap, so the gradient of the image is computed in stripes of a few rows: from each filter that
 * reaches the stripe, with its rows that do. Positions, stripes and blocks are items that a team
 * shares. The partition, and so the bits, depend only on the shapes.
 */
#include <string.h>

#include "ops/array/strided.h"
#include "ops/device/blas_cpu.h"
#include "ops/math/parallel_cpu.h"
#include "ops/nn/conv_shapes.h"

#define BLOCK_BYTES (1 << 20) /* of a member's data of a block of images */
#define GRAIN (1 << 18)       /* minimum multiplications per thread */
#define STRIPES 16            /* minimum, if there are as many rows */
#define LOOP_WORK 512         /* multiplications that a loop does before a library call is set up */

/* ---- boxes and small products ---- */

/* Cells [n, width, channels] of a tensor, with strides in elements; a matrix holds the same in n
 * dense rows, `line` elements apart. */
struct local_box {
    int64_t n, width, channels;
    int64_t image, column, channel, line;
    enum dtype type; /* float32 or float64 */
};

#define LOOPS(type)                                                                                \
    static void add_##type(int64_t n, const type *from, type *to)                                  \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i] += from[i];                                                                      \
    }                                                                                              \
    static void loop_##type(const struct gemm *g, const type *a, const type *b, type *c)           \
    {                                                                                              \
        for (int64_t i = 0; i < g->m; i++, c += g->n) {                                            \
            if (!g->accumulate)                                                                    \
                memset(c, 0, (size_t)g->n * sizeof *c);                                            \
            for (int64_t p = 0; p < g->k; p++) {                                                   \
                type x = g->transpose_a ? a[p * g->m + i] : a[i * g->k + p];                       \
                if (g->transpose_b)                                                                \
                    for (int64_t j = 0; j < g->n; j++)                                             \
                        c[j] += x * b[j * g->k + p];                                               \
                else                                                                               \
                    for (int64_t j = 0; j < g->n; j++)                                             \
                        c[j] += x * b[p * g->n + j];                                               \
            }                                                                                      \
        }                                                                                          \
    }

LOOPS(float)
LOOPS(double)

static void move(const struct local_box *box, const void *from, void *to, bool take)
{
    int64_t size = (int64_t)dtype_bytes(box->type);
    const int64_t dims[] = {box->n, box->width, box->channels};
    const int64_t there[] = {box->image, box->column, box->channel};
    const int64_t here[] = {box->line, box->channels, 1};
    struct strided s = {.item_bytes = (size_t)size};
    for (int i = 0; i < 3; i++)
        strided_add(&s, dims[i], (take ? here : there)[i] * size, (take ? there : here)[i] * size);
    strided_copy(&s, to, from, 1);
}

static void take_box(const struct local_box *box, const void *tensor, void *matrix)
{
    move(box, tensor, matrix, true);
}

static void leave_box(const struct local_box *box, const void *matrix, void *tensor)
{
    move(box, matrix, tensor, false);
}

/* Adds another matrix, whose rows are `step` elements apart. */
static void add_box(const struct local_box *box, int64_t step, const void *rows, void *matrix)
{
    int64_t run = box->width * box->channels;
    for (int64_t i = 0; i < box->n; i++)
        if (box->type == FLOAT32)
            add_float(run, (const float *)rows + i * step, (float *)matrix + i * box->line);
        else
            add_double(run, (const double *)rows + i * step, (double *)matrix + i * box->line);
}

/* Multiplies in one thread: by gemm_run, or by loops if too small for a library call. The choice
 * depends only on the sizes. */
static int small_product(const struct gemm *g, const void *a, const void *b, void *c,
                         struct error *err)
{
    if ((double)g->m * (double)g->n * (double)g->k > LOOP_WORK)
        return gemm_run(g, a, b, c, 1, err);
    if (g->type == FLOAT32)
        loop_float(g, a, b, c);
    else
        loop_double(g, a, b, c);
    return 0;
}

/* ---- the work ---- */

struct local_work {
    const struct conv *conv;
    int64_t size;                        /* of an element */
    int64_t cells, row_cells, image_row; /* of a window, of its row, of an image row */
    int64_t images, blocks, items;       /* images of a block */
    int64_t stripe;                      /* rows */
    struct local_box in, out;            /* steps of the tensors */
    int64_t in_row, out_position;        /* further steps */
    char *image, *filter, *output, *scratch;
    size_t scratch_bytes; /* of a member */
    struct error *err;    /* of the first member to fail */
    int code;
};

/* The work of a member: images [first, first + n), or rows [top, bottom) of them; their windows, or
 * rows of windows, their outputs, and the stripe. */
struct local_block {
    const struct local_work *work;
    int64_t first, n, top, bottom;
    char *windows, *outputs, *stripe;
    struct error err;
};

static void enter_block(struct local_block *b, int64_t index)
{
    int64_t left = b->work->conv->batch - index * b->work->images;
    b->first = index * b->work->images;
    b->n = left < b->work->images ? left : b->work->images;
}

static struct gemm product_of(const struct local_work *w, int64_t m, int64_t n, int64_t k)
{
    return (struct gemm){.type = w->conv->type, .deterministic = true, .m = m, .n = n, .k = k};
}

/* ---- a block at a position ---- */

static char *output_at(const struct local_block *b, int64_t position, struct local_box *box)
{
    const struct local_work *w = b->work;
    *box = w->out;
    box->n = b->n;
    return w->output + (b->first * box->image + position * w->out_position) * w->size;
}

static void take_outputs(const struct local_block *b, int64_t position)
{
    struct local_box box;
    const char *from = output_at(b, position, &box);
    take_box(&box, from, b->outputs);
}

/* Finds the cells inside the image of a window that begins at `first`, in or before the image. */
static void clip(const struct window_axis *a, int64_t first, int64_t *begin, int64_t *end)
{
    *begin = first < 0 ? -first : 0;
    *end = a->in - first < a->size ? a->in - first : a->size;
    if (*end < *begin)
        *end = *begin;
}

static void take_windows(const struct local_block *b, int64_t position)
{
    const struct local_work *w = b->work;
    const struct window_axis *y = &w->conv->window.y, *x = &w->conv->window.x;
    int64_t y0 = position / x->out * y->stride - y->before, ky, end_y;
    int64_t x0 = position % x->out * x->stride - x->before, kx, end_x;
    struct local_box box = w->in;
    clip(y, y0, &ky, &end_y);
    clip(x, x0, &kx, &end_x);
    box.n = b->n;
    box.width = end_x - kx;
    box.line = w->cells;
    if ((end_y - ky) * box.width < y->size * x->size)
        memset(b->windows, 0, (size_t)(b->n * w->cells * w->size));
    const char *from = w->image + b->first * box.image * w->size;
    for (; ky < end_y; ky++)
        take_box(&box, from + ((y0 + ky) * w->in_row + (x0 + kx) * box.column) * w->size,
                 b->windows + (ky * w->row_cells + kx * box.channels) * w->size);
}

static char *filter_at(const struct local_work *w, int64_t position)
{
    return w->filter + position * w->cells * w->conv->out_channels * w->size;
}

/* ---- the three directions ---- */

static int forward_item(struct local_block *b, int64_t item)
{
    const struct local_work *w = b->work;
    int64_t position = item / w->blocks;
    struct local_box box;
    enter_block(b, item % w->blocks);
    take_windows(b, position);
    struct gemm g = product_of(w, b->n, w->conv->out_channels, w->cells);
    int code = small_product(&g, b->windows, filter_at(w, position), b->outputs, &b->err);
    char *to = output_at(b, position, &box);
    leave_box(&box, b->outputs, to);
    return code;
}

static int filter_item(struct local_block *b, int64_t position)
{
    const struct local_work *w = b->work;
    int code = 0;
    for (int64_t i = 0; i < w->blocks && !code; i++) {
        enter_block(b, i);
        take_windows(b, position);
        take_outputs(b, position);
        struct gemm g = product_of(w, w->cells, w->conv->out_channels, b->n);
        g.transpose_a = true;
        g.accumulate = i > 0;
        code = small_product(&g, b->windows, b->outputs, filter_at(w, position), &b->err);
    }
    return code;
}

/* Adds rows [ky, end_y) of windows, `step` cells per image, at their place in the stripe. */
static void add_windows(const struct local_block *b, int64_t position, int64_t ky, int64_t end_y)
{
    const struct local_work *w = b->work;
    const struct window_axis *y = &w->conv->window.y, *x = &w->conv->window.x;
    int64_t row = position / x->out * y->stride - y->before - b->top;
    int64_t x0 = position % x->out * x->stride - x->before, kx, end_x;
    struct local_box box = w->in;
    clip(x, x0, &kx, &end_x);
    box.n = b->n;
    box.width = end_x - kx;
    box.line = (b->bottom - b->top) * w->image_row;
    for (int64_t k = ky; k < end_y; k++)
        add_box(&box, (end_y - ky) * w->row_cells,
                b->windows + ((k - ky) * w->row_cells + kx * box.channels) * w->size,
                b->stripe + ((row + k) * w->image_row + (x0 + kx) * box.channels) * w->size);
}

/* Adds the part of a position to the stripe. */
static int add_position(struct local_block *b, int64_t position)
{
    const struct local_work *w = b->work;
    const struct window_axis *y = &w->conv->window.y;
    int64_t y0 = position / w->conv->window.x.out * y->stride - y->before;
    int64_t depth = w->conv->out_channels, ky = b->top > y0 ? b->top - y0 : 0;
    int64_t end = b->bottom - y0 < y->size ? b->bottom - y0 : y->size;
    if (ky >= end)
        return 0;
    struct gemm g = product_of(w, b->n, (end - ky) * w->row_cells, depth);
    g.transpose_b = true;
    take_outputs(b, position);
    const char *filter = filter_at(w, position) + ky * w->row_cells * depth * w->size;
    int code = small_product(&g, b->outputs, filter, b->windows, &b->err);
    add_windows(b, position, ky, end);
    return code;
}

static int image_item(struct local_block *b, int64_t item)
{
    const struct local_work *w = b->work;
    const struct window_axis *y = &w->conv->window.y, *x = &w->conv->window.x;
    int64_t left, i = 0;
    int code = 0;
    enter_block(b, item % w->blocks);
    b->top = item / w->blocks * w->stripe;
    left = y->in - b->top;
    b->bottom = b->top + (left < w->stripe ? left : w->stripe);
    struct local_box box = w->in;
    box.n = b->n;
    box.width = x->in;
    box.line = (b->bottom - b->top) * w->image_row;
    memset(b->stripe, 0, (size_t)(b->n * box.line * w->size));
    if (b->top + y->before >= y->size) /* earlier windows end above the stripe */
        i = (b->top + y->before - y->size) / y->stride + 1;
    for (int64_t p = i * x->out; p < y->out * x->out && !code; p++) {
        if (p / x->out * y->stride - y->before >= b->bottom)
            break;
        code = add_position(b, p);
    }
    char *to = w->image + (b->first * box.image + b->top * w->in_row) * w->size;
    for (int64_t row = 0; row < b->bottom - b->top; row++)
        leave_box(&box, b->stripe + row * w->image_row * w->size, to + row * w->in_row * w->size);
    return code;
}

/* ---- all of it ---- */

static void run_member(void *context, int member, int members)
{
    struct local_work *w = context;
    struct local_block block = {.work = w, .err = ERROR_INIT};
    block.windows = w->scratch + (size_t)member * w->scratch_bytes;
    block.outputs = block.windows + w->images * w->cells * w->size;
    block.stripe = block.outputs + w->images * w->conv->out_channels * w->size;
    static int (*const run_item[])(struct local_block *, int64_t item) = {
        [CONV_FORWARD] = forward_item, [CONV_IMAGE] = image_item, [CONV_FILTER] = filter_item};
    int64_t end = w->items * (member + 1) / members;
    for (int64_t i = w->items * member / members; i < end; i++)
        if (run_item[w->conv->direction](&block, i)) {
            if (!__atomic_exchange_n(&w->code, block.err.code, __ATOMIC_RELAXED))
                *w->err = block.err;
            return;
        }
}

/* The strides of images of that shape; no cells are chosen yet. */
static struct local_box box_of(const struct conv *c, const struct shape *shape, int64_t *row)
{
    int64_t steps[SHAPE_RANK_MAX];
    const struct window *w = &c->window;
    shape_strides(shape, steps);
    *row = steps[w->height];
    return (struct local_box){.channels = shape->dims[w->channels],
                              .image = steps[0],
                              .column = steps[w->width],
                              .channel = steps[w->channels],
                              .type = c->type};
}

static int prepare(struct kernel_setup *setup)
{
    struct conv *form = setup->state = mem_alloc(sizeof *form);
    return conv_init(form, setup->node, setup->err);
}

static int run(struct kernel_call *call)
{
    const struct conv *form = call->state;
    enum conv_direction direction = form->direction;
    struct conv conv;
    struct local_work work = {.code = 0};
    struct tensor *out = conv_output(call, form, &conv);
    if (!out)
        return call->err->code;
    if (conv_is_empty(&conv)) { /* empty sums */
        if (tensor_count(out))
            memset(out->data, 0, tensor_bytes(out));
        return KERNEL_DONE;
    }
    work.image = direction == CONV_IMAGE ? out->data : call->in[0]->data;
    work.filter = direction == CONV_FILTER ? out->data : call->in[1]->data;
    work.output = direction == CONV_FORWARD ? out->data : call->in[2]->data;
    int64_t ignored;
    work.conv = &conv;
    work.size = (int64_t)dtype_bytes(conv.type);
    work.row_cells = conv.window.x.size * conv.in_channels;
    work.cells = conv.window.y.size * work.row_cells;
    work.image_row = conv.window.x.in * conv.in_channels;
    work.in = box_of(&conv, &conv.image, &work.in_row);
    work.out = box_of(&conv, &conv.output, &ignored);
    work.out_position = work.out.column;
    work.out.width = 1;
    work.out.line = conv.out_channels;
    /* The number of images per block bounds a member's data. */
    bool by_stripes = direction == CONV_IMAGE;
    int64_t height = conv.window.y.in, least = (height + STRIPES - 1) / STRIPES;
    work.stripe = conv.window.y.size < least ? conv.window.y.size : least;
    int64_t each = work.cells + conv.out_channels + (by_stripes ? work.stripe * work.image_row : 0);
    each *= work.size;
    work.images = each < BLOCK_BYTES ? BLOCK_BYTES / each : 1;
    if (work.images > conv.batch)
        work.images = conv.batch;
    work.blocks = (conv.batch + work.images - 1) / work.images;
    work.items = by_stripes ? (height + work.stripe - 1) / work.stripe
                            : conv.window.y.out * conv.window.x.out;
    if (direction != CONV_FILTER)
        work.items *= work.blocks;
    work.scratch_bytes = ALIGN_UP((size_t)(work.images * each));
    double useful = (double)shape_count(&conv.filter) * (double)conv.batch / PARALLEL_WORTH(GRAIN);
    int threads = call->threads <= useful ? call->threads : useful < 1 ? 1 : (int)useful;
    if (threads > work.items)
        threads = (int)work.items;
    work.scratch = kernel_temporary(call, (size_t)threads * work.scratch_bytes);
    if (!work.scratch)
        return call->err->code;
    work.err = call->err;
    if (threads > 1)
        team_run(threads, run_member, &work);
    else
        run_member(&work, 0, 1);
    return work.code;
}

const struct kernel_code kernel_local = {.prepare = prepare, .run = run};
