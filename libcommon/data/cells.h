/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements that come one by one as text, of one type, in memory that grows.
 */
#ifndef TF_DATA_CELLS_H
#define TF_DATA_CELLS_H

#include "base/error.h"
#include "base/vec.h"
#include "tensor/tensor.h"

struct cells {
    enum dtype type;
    char *data;
    size_t bytes, capacity;
    VEC(size_t) ends; /* STRING: where each text ends in `data` */
};

void cells_release(struct cells *cells);

/* Parses a text, blanks around it not counted. The error's text is the cause alone: "'abc' is not a
 * number". */
int cells_add(struct cells *cells, const char *text, size_t n, struct error *err);

/* All of them as a tensor; the cells are empty afterwards. */
int cells_take(struct cells *cells, const struct shape *shape, struct tensor *tensor,
               struct error *err);

#endif
