/* SPDX-License-Identifier: Apache-2.0
 *
 * The gradient of the filter for an image with few channels, as in a net's first convolution. With
 * AVX2 oneDNN pads the channels of such an image to a whole vector and computes with the zeros: for
 * one channel, eight times the necessary work.
 *
 * Here vectors hold channels of the output. For each row of the output, and each image row that a
 * filter row meets there, the sums of a few filter cells at a time stay in registers along the row.
 * Each sum is computed by one thread, in the order of the batch, for any team.
 */
#include "ops/nn/conv_cpu.h"

#if defined(__FMA__) && !defined(__AVX512F__)

#include <immintrin.h>
#include <string.h>

#include "ops/math/parallel_cpu.h"

#define LANES 8
#define PAIR (2 * LANES)    /* channels of the output that are summed at once */
#define CELLS 6             /* of the filter, summed at once */
#define CELLS_MAX 512       /* of a filter row, with its channels */
#define ROW_FLOATS_MAX 4096 /* of an image row with its padding */

struct conv_few {
    struct arrivals arrivals; /* first */
    struct conv conv;
    struct channels channels; /* of the output's gradient, as it arrives */
    int64_t row_cells, pairs; /* cells of a filter row, with its channels */
};

/* The sums of one thread. */
struct sums {
    const struct conv_few *few;
    int64_t begin, end, pair; /* rows of the filter */
    int halves;               /* number of halves of PAIR that exist */
    float of[CELLS_MAX][PAIR];
    float (*at)[PAIR]; /* of the current filter row */
    float row[ROW_FLOATS_MAX];
};

/* A row of the output's gradient: PAIR channels of each cell, in two separate halves. */
struct gradient_row {
    const float *first, *second;
    int64_t step, n;
};

/* Adds to the sums of `cells` cells from `cell` on; callers pass constant cells and halves. */
static inline __attribute__((always_inline)) void
add_cells(struct sums *sums, const struct gradient_row *d, int64_t cell, int cells, int halves)
{
    float *to = sums->at[cell];
    const struct conv *conv = &sums->few->conv;
    int64_t stride = conv->window.x.stride * conv->in_channels;
    const float *image = sums->row + cell, *first = d->first, *second = d->second;
    __m256 low[CELLS], high[CELLS];
    for (int i = 0; i < cells; i++)
        low[i] = high[i] = _mm256_setzero_ps();
    for (int64_t x = 0; x < d->n; x++, image += stride, first += d->step, second += d->step) {
        __m256 a = _mm256_loadu_ps(first), b = halves == 2 ? _mm256_loadu_ps(second) : a;
        for (int i = 0; i < cells; i++) {
            __m256 value = _mm256_broadcast_ss(image + i);
            low[i] = _mm256_fmadd_ps(value, a, low[i]);
            if (halves == 2)
                high[i] = _mm256_fmadd_ps(value, b, high[i]);
        }
    }
    for (int i = 0; i < cells; i++, to += PAIR) {
        _mm256_storeu_ps(to, _mm256_add_ps(_mm256_loadu_ps(to), low[i]));
        if (halves == 2)
            _mm256_storeu_ps(to + LANES, _mm256_add_ps(_mm256_loadu_ps(to + LANES), high[i]));
    }
}

#define REST(cells)                                                                                \
    case cells:                                                                                    \
        add_cells(sums, d, cell, cells, halves);                                                   \
        break;

static inline __attribute__((always_inline)) void add_row(struct sums *sums,
                                                          const struct gradient_row *d, int halves)
{
    int64_t cell = 0, n = sums->few->row_cells;
    for (; n - cell >= CELLS; cell += CELLS)
        add_cells(sums, d, cell, CELLS, halves);
    switch (n - cell) {
        REST(1)
        REST(2)
        REST(3)
        REST(4)
        REST(5)
    }
}

/* Copies row y of an image into sums->row, whose padding stays 0. */
static void take_row(struct sums *sums, const float *image, int64_t y)
{
    const struct conv *c = &sums->few->conv;
    const struct window *w = &c->window;
    int64_t channels = c->in_channels, n = w->x.in;
    float *row = sums->row + w->x.before * channels;
    if (!w->nchw || channels == 1) {
        memcpy(row, image + y * n * channels, (size_t)(n * channels) * sizeof *row);
        return;
    }
    for (int64_t channel = 0; channel < channels; channel++)
        for (int64_t x = 0; x < n; x++)
            row[x * channels + channel] = image[(channel * w->y.in + y) * n + x];
}

/* Finds the channels from `channel` on in a row of the output's gradient. */
static const float *gradient_at(const struct channels *c, const float *data, int64_t outer,
                                int64_t cell, int64_t channel)
{
    int64_t block = outer * c->blocks + channel / c->block;
    return data + (block * c->inner + cell) * c->block + channel % c->block;
}

/* Combines a row of the output's gradient with all image rows that it meets. */
static void add_meetings(struct sums *sums, const float *image, const struct gradient_row *d,
                         int64_t row)
{
    const struct window_axis *y = &sums->few->conv.window.y;
    for (int64_t ky = sums->begin; ky < sums->end; ky++) {
        int64_t from = row * y->stride - y->before + ky * y->dilation;
        if (from < 0 || from >= y->in)
            continue;
        take_row(sums, image, from);
        sums->at = sums->of + (ky - sums->begin) * sums->few->row_cells;
        if (sums->halves == 2)
            add_row(sums, d, 2);
        else
            add_row(sums, d, 1);
    }
}

static void add_image(struct sums *sums, const float *image, const float *gradient, int64_t i)
{
    const struct conv *c = &sums->few->conv;
    const struct channels *channels = &sums->few->channels;
    const struct window_axis *y = &c->window.y, *x = &c->window.x;
    bool by_cell = channels->outer != c->batch; /* row-major: a cell's channels are adjacent */
    int64_t channel = sums->pair * PAIR, cells = y->out * x->out;
    struct gradient_row d = {.step = channels->block, .n = x->out};
    for (int64_t row = 0; row < y->out; row++) {
        int64_t outer = by_cell ? i * cells + row * x->out : i, cell = by_cell ? 0 : row * x->out;
        d.first = d.second = gradient_at(channels, gradient, outer, cell, channel);
        if (sums->halves == 2)
            d.second = gradient_at(channels, gradient, outer, cell, channel + LANES);
        add_meetings(sums, image, &d, row);
    }
}

struct filter_work {
    const struct conv_few *few;
    const float *image, *gradient;
    float *filter;
    int64_t cuts; /* parts of the filter's rows */
};

static int filter_part(void *context, int64_t begin, int64_t end)
{
    const struct filter_work *work = context;
    const struct conv *c = &work->few->conv;
    int64_t size = c->window.y.in * c->window.x.in * c->in_channels;
    for (int64_t item = begin; item < end; item++) {
        int64_t cut = item % work->cuts;
        struct sums sums = {.few = work->few, .pair = item / work->cuts};
        sums.begin = c->window.y.size * cut / work->cuts;
        sums.end = c->window.y.size * (cut + 1) / work->cuts;
        sums.halves = c->out_channels - sums.pair * PAIR > LANES ? 2 : 1;
        for (int64_t i = 0; i < c->batch; i++)
            add_image(&sums, work->image + i * size, work->gradient, i);
        int64_t n = c->out_channels, first = sums.pair * PAIR;
        int64_t here = n - first < PAIR ? n - first : PAIR, row_cells = work->few->row_cells;
        float *to = work->filter + sums.begin * row_cells * n + first;
        for (int64_t cell = 0; cell < (sums.end - sums.begin) * row_cells; cell++, to += n)
            memcpy(to, sums.of[cell], (size_t)here * sizeof *to);
    }
    return 0;
}

int conv_few_run(const struct conv_few *few, struct kernel_call *call)
{
    const void *data[3];
    struct tensor *out = kernel_alloc_output(call, 0, &few->conv.filter);
    if (!out || arrivals_run(&few->arrivals, call, data))
        return call->err->code;
    /* The filter's rows are split only as far as needed to give each thread work. */
    int64_t rows = few->conv.window.y.size, wanted = (call->threads + few->pairs - 1) / few->pairs;
    struct filter_work work = {few, data[0], data[2], out->data, wanted < rows ? wanted : rows};
    parallel_for(call->threads, work.cuts * few->pairs, 1, filter_part, &work);
    return KERNEL_DONE;
}

void conv_few_free(struct conv_few *few)
{
    if (few)
        arrivals_release(few);
}

struct conv_few *conv_few_prepare(const struct conv *c, struct kernel_setup *setup)
{
    const struct layout *layout = setup->in_layouts ? setup->in_layouts[2] : NULL;
    const struct layout *wanted[3] = {NULL, NULL, layout};
    const struct window_axis *x = &c->window.x;
    /* Requires that channels fill at most half a vector, and that rows fit the buffers. */
    bool is_few = c->direction == CONV_FILTER && c->groups == 1 && c->in_channels <= LANES / 2 &&
                  x->dilation == 1 && c->window.y.size * x->size * c->in_channels <= CELLS_MAX &&
                  (x->in + x->before + x->after) * c->in_channels <= ROW_FLOATS_MAX;
    if (!is_few || (layout && layout->axis != c->window.channels))
        return NULL;
    struct channels channels =
        layout ? layout->channels : cpu_channels(&c->output, c->window.channels);
    if (channels.block % LANES || (channels.outer != c->batch && channels.blocks > 1))
        return NULL;
    struct conv_few *few = mem_alloc(sizeof *few);
    few->conv = *c;
    few->channels = channels;
    few->row_cells = c->window.x.size * c->in_channels;
    few->pairs = (c->out_channels + PAIR - 1) / PAIR;
    arrivals_prepare(&few->arrivals, setup, wanted);
    setup->name = "conv.few";
    return few;
}

#else

struct conv_few *conv_few_prepare(const struct conv *c, struct kernel_setup *setup)
{
    (void)c;
    (void)setup;
    return NULL;
}

int conv_few_run(const struct conv_few *few, struct kernel_call *call)
{
    (void)few;
    return kernel_fail(call, "it was not prepared");
}

void conv_few_free(struct conv_few *few)
{
    (void)few;
}

#endif
