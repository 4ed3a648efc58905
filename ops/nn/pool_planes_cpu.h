/* SPDX-License-Identifier: Apache-2.0
 *
 * Images seen as [batch, blocks, height, width, block]: row-major NHWC has one block of all
 * channels, row-major NCHW blocks of one channel, and a convolution's layouts blocks of 16 or 8.
 * The innermost loop runs over a block.
 */
#ifndef TF_OPS_NN_POOL_PLANES_CPU_H
#define TF_OPS_NN_POOL_PLANES_CPU_H

#include "ops/nn/window.h"

/* Channels processed at a time: for a full set compilers keep a window's values in registers.
 */
#define LANES 16

struct planes {
    struct window window;
    int64_t n, block; /* planes [height, width, block] */
    bool tiled;       /* each cell of an image is in exactly one window */
};

/* One plane: image, output, and gradients of them. */
struct plane {
    const void *image, *output, *gradient;
    void *result;
    uint8_t *place; /* of MaxPoolWithPlace and its gradient: a byte per window */
    bool masked;
};

/* Lanes of the part of a window inside the image: rows x columns cells. */
struct spot {
    int64_t rows, columns;
    int64_t first, line, cell; /* in elements: the first cell, and steps */
    int64_t output;            /* index of the output */
    int64_t number, width;     /* the first cell's number in the window, and its row length */
};

/* Lanes of a cell of the image, and the windows over it. */
struct plane_cell {
    int64_t y, x;
    int64_t top, bottom, left, right; /* windows oy in [top, bottom), ox in [left, right) */
    int64_t image;                    /* index of the cell, in elements */
    int64_t lane;                     /* the first lane within a block */
};

typedef void plane_loop(const struct planes *p, const struct plane *plane);
typedef void spot_loop(const struct plane *plane, const struct spot *spot, int64_t n);
typedef void cell_loop(const struct planes *p, const struct plane *plane,
                       const struct plane_cell *cell, int64_t n);

#define INLINED static inline __attribute__((always_inline))

static inline int64_t first_inside(int64_t start)
{
    return start < 0 ? -start : 0;
}

static inline int64_t end_inside(int64_t start, const struct window_axis *a)
{
    return start + a->size > a->in ? a->in - start : a->size;
}

/* Runs the loop for each slice of lanes of window (oy, ox). */
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
                        .output = (oy * ax->out + ox) * p->block,
                        .number = y0 * ax->size + x0,
                        .width = ax->size};
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

#define EACH_CELL(spot)                                                                            \
    for (int64_t row = 0; row < (spot)->rows; row++)                                               \
        for (int64_t column = 0, at = (spot)->first + row * (spot)->line;                          \
             column < (spot)->columns; column++, at += (spot)->cell)

/* Advances [from, to) to the windows over the cell at `in`; cells come in ascending order. */
INLINED void slide(const struct window_axis *a, int64_t in, int64_t *from, int64_t *to)
{
    while (*from < a->out && *from * a->stride - a->before + a->size <= in)
        ++*from;
    while (*to < a->out && *to * a->stride - a->before <= in)
        ++*to;
}

/* Runs the loop for each cell of an image, which gathers from the windows over it. */
INLINED void each_cell(const struct planes *p, const struct plane *plane, cell_loop *loop)
{
    struct plane_cell cell = {0};
    for (cell.y = 0; cell.y < p->window.y.in; cell.y++) {
        slide(&p->window.y, cell.y, &cell.top, &cell.bottom);
        cell.left = cell.right = 0;
        for (cell.x = 0; cell.x < p->window.x.in; cell.x++) {
            slide(&p->window.x, cell.x, &cell.left, &cell.right);
            for (cell.lane = 0; cell.lane + LANES <= p->block; cell.lane += LANES) {
                loop(p, plane, &cell, LANES);
                cell.image += LANES;
            }
            if (cell.lane < p->block)
                loop(p, plane, &cell, p->block - cell.lane);
            cell.image += p->block - cell.lane;
        }
    }
}

#define EACH_WINDOW(p, cell)                                                                       \
    for (int64_t oy = (cell)->top; oy < (cell)->bottom; oy++)                                      \
        for (int64_t ox = (cell)->left,                                                            \
                     at = (oy * (p)->window.x.out + ox) * (p)->block + (cell)->lane;               \
             ox < (cell)->right; ox++, at += (p)->block)

/* pool_place_cpu.c */
plane_loop max_place_float, max_place_double, max_place_grad_float, max_place_grad_double;

#endif
