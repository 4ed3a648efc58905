/* SPDX-License-Identifier: Apache-2.0
 *
 * The largest value of each window and its place, and the gradient from the place alone. Compilers
 * do not vectorize loops over bytes and floats together, so these use explicit vectors, except for
 * widening bytes, which compilers vectorize.
 */
#include <math.h>
#include <string.h>

#include "ops/nn/pool_planes_cpu.h"
#include "ops/nn/pool_shapes.h"

/* Lanes of places, used in comparisons, are as wide as lanes of values. */
#define VECTOR(type) __attribute__((vector_size(LANES * sizeof(type)))) type
typedef VECTOR(uint8_t) bytes;
typedef VECTOR(float) floats_float;
typedef VECTOR(int32_t) places_float;
typedef VECTOR(double) floats_double;
typedef VECTOR(int64_t) places_double;

/* Sets all lanes to a cell's number, which fits in a byte. */
#define ALL(type, number) ((places_##type){0} + (uint8_t)(number))
#define SELECT(mask, a, b) (((mask) & (a)) | (~(mask) & (b)))

/* A NaN is the largest; of several, the last gives the value, the first the place. */
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
