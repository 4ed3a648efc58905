/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements that come one by one as text, of one type, in memory that grows; and what a field of a
 * table says at all.
 */
#ifndef TF_DATA_CELLS_H
#define TF_DATA_CELLS_H

#include <stdbool.h>

#include "base/error.h"
#include "base/vec.h"
#include "tensor/tensor.h"

/* Blanks and tabs around the text never count. true and false, in any case, are 1 and 0 of every
 * type but STRING. */
enum cell_kind {
    CELL_MISSING, /* nothing, NA, N/A, ? or, in any case, null */
    CELL_NUMBER,  /* as number.h has it, in the range of a type or not */
    CELL_BOOL,
    CELL_TEXT,
};

void cell_trim(const char **text, size_t *n);
enum cell_kind cell_kind(const char *text, size_t n);
bool cell_is_missing(const char *text, size_t n); /* quicker */
/* nan in any case, which is a number, but says nothing where that can be told. */
bool cell_is_nan(const char *text, size_t n);

struct cells {
    enum dtype type;
    char *data;
    size_t bytes, capacity;
    VEC(size_t) ends; /* STRING: where each text ends in `data` */
};

void cells_release(struct cells *cells);

/* Parses a text. The error's text is the cause alone: "'abc' is not a number". */
int cells_add(struct cells *cells, const char *text, size_t n, struct error *err);

/* An element that is known already, of the cells' type. */
int cells_add_bytes(struct cells *cells, const void *bytes, size_t n, struct error *err);

/* Makes a tensor of all of them; the cells are empty afterwards. */
int cells_take(struct cells *cells, const struct shape *shape, struct tensor *tensor,
               struct error *err);

#endif
