/* SPDX-License-Identifier: Apache-2.0
 *
 * A tensor along one axis, seen as [outer, n, inner]; a task is a tile of inner indices of one
 * outer index. Only files whose names end in _cpu.c use this.
 */
#ifndef TF_OPS_MATH_LINES_H
#define TF_OPS_MATH_LINES_H

#include "ops/math/parallel_cpu.h"
#include "tensor/shape.h"

#define LINES_TILE 256

struct lines {
    int64_t outer, n, inner, tiles; /* tiles of each outer index */
};

static inline struct lines lines_along(const struct shape *shape, int axis)
{
    struct lines lines = {.outer = shape_count_of(shape, 0, axis),
                          .n = shape->dims[axis],
                          .inner = shape_count_of(shape, axis + 1, shape->rank)};
    lines.tiles = (lines.inner + LINES_TILE - 1) / LINES_TILE;
    return lines;
}

/* One task: m inner indices from `inner` on. */
struct tile {
    int64_t outer, inner, m;
};

static inline struct tile lines_tile(const struct lines *lines, int64_t task)
{
    struct tile tile = {task / lines->tiles, task % lines->tiles * LINES_TILE, LINES_TILE};
    if (lines->inner - tile.inner < LINES_TILE)
        tile.m = lines->inner - tile.inner;
    return tile;
}

/* Calls the body for all tasks, if there are any elements. */
static inline void lines_run(const struct lines *lines, int threads, parallel_body *body,
                             void *context)
{
    if (!lines->outer || !lines->n || !lines->inner)
        return;
    int64_t elements = lines->n * (lines->inner / lines->tiles);
    parallel_for(threads, lines->outer * lines->tiles, PARALLEL_GRAIN_MOVE / elements + 1, body,
                 context);
}

#endif
