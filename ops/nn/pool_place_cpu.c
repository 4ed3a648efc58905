/* SPDX-License-Identifier: Apache-2.0
 *
 * The largest value of each window and where it was, and the gradient from that alone. Compilers
 * make no vectors of loops over bytes and floats together, so that these are vectors to begin with;
 * but for bytes that are widened, which they know in loops.
 */
#include <math.h>
#include <string.h>

#include "ops/nn/pool_planes_cpu.h"
#include "ops/nn/pool_shapes.h"

/* A lane of values is as wide as one of places, in which they are compared. */
#define VECTOR(type) __attribute__((vector_size(LANES * sizeof(type)))) type
typedef VECTOR(uint8_t) bytes;
typedef VECTOR(float) floats_float;
typedef VECTOR(int32_t) places_float;
typedef VECTOR(double) floats_double;
typedef VECTOR(int64_t) places_double;

/* All lanes the same: a number of a cell, which fits a byte. */
#define ALL(type, number) ((places_##type){0} + (uint8_t)(number))
#define SELECT(mask, a, b) (((mask) & (a)) | (~(mask) & (b)))

/* A NaN is the largest; the last one is the value, the first one has the place. */
#define PLACE_LOOPS(type)                                                                          \
    INLINED void place_spot_##type(const struct plane *plane, const struct spot *spot, int64_t n)  \
    {                                                                                              \
        bool is_empty = spot->rows < 1 || spot->columns < 1;                                       \
        places_##type none = ALL(type, POOL_NO_PLACE);                                             \
        places_##type where = ALL(type, is_empty ? POOL_NO_PLACE : spot->number);                  \
        floats_##type most = (floats_##type){0} - (type)INFINITY, x = {0};                         \
        EACH_CELL(spot)                                                                            \
        {                                                                                          \
            places_##type here = ALL(type, spot->number + row * spot->width + column);             \
            memcpy(&x, (const type *)plane->image + at, (size_t)n * sizeof(type));                 \
            places_##type is_more = (x > most) | (x != x);                                         \
            where = SELECT(is_more & (most == most), here, where);                                 \
            most = (floats_##type)SELECT(is_more, (places_##type)x, (places_##type)most);          \
        }                                                                                          \
        if (plane->masked)                                                                         \
            where = SELECT(most > 0, where, none);                                                 \
        bytes place = __builtin_convertvector(where, bytes);                                       \
        memcpy((type *)plane->result + spot->output, &most, (size_t)n * sizeof(type));             \
        memcpy(plane->place + spot->output, &place, (size_t)n);                                    \
    }                                                                                              \
    void max_place_##type(const struct planes *p, const struct plane *plane)                       \
    {                                                                                              \
        each_window(p, plane, place_spot_##type);                                                  \
    }                                                                                              \
    INLINED void place_grad_cell_##type(const struct planes *p, const struct plane *plane,         \
                                        const struct plane_cell *cell, int64_t n)                  \
    {                                                                                              \
        const struct window_axis *ay = &p->window.y, *ax = &p->window.x;                           \
        floats_##type sum = {0}, g = {0};                                                          \
        uint8_t place[LANES] = {0};                                                                \
        places_##type its;                                                                         \
        EACH_WINDOW(p, cell)                                                                       \
        {                                                                                          \
            places_##type here = ALL(type, (cell->y + ay->before - oy * ay->stride) * ax->size +   \
                                               cell->x + ax->before - ox * ax->stride);            \
            memcpy(&g, (const type *)plane->gradient + at, (size_t)n * sizeof(type));              \
            memcpy(place, plane->place + at, (size_t)n);                                           \
            for (int i = 0; i < LANES; i++)                                                        \
                its[i] = place[i];                                                                 \
            sum += (floats_##type)((its == here) & (places_##type)g);                              \
        }                                                                                          \
        memcpy((type *)plane->result + cell->image, &sum, (size_t)n * sizeof(type));               \
    }                                                                                              \
    void max_place_grad_##type(const struct planes *p, const struct plane *plane)                  \
    {                                                                                              \
        each_cell(p, plane, place_grad_cell_##type);                                               \
    }

PLACE_LOOPS(float)
PLACE_LOOPS(double)
