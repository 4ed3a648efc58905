/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements of one type that arrive one by one as text, collected in growing memory; and the kind of
 * value that a field of a table has.
 */
#ifndef TF_DATA_CELLS_H
#define TF_DATA_CELLS_H

#include <stdbool.h>

#include "base/error.h"
#include "base/vec.h"
#include "tensor/tensor.h"

/* Blanks and tabs around the text are ignored. true and false, in any case, are 1 and 0 for every
 * type except STRING. */
enum cell_kind {
    CELL_MISSING, /* empty, NA, N/A, #N/A, ? or, in any case, null */
    CELL_NUMBER,  /* as number.h defines it, in range or not */
    CELL_BOOL,
    CELL_TEXT,
};

void cell_trim(const char **text, size_t *n);
enum cell_kind cell_kind(const char *text, size_t n);
bool cell_is_missing(const char *text, size_t n); /* faster than cell_kind */
/* Returns whether the text is nan in any case: a number, but missing where that is possible. */
bool cell_is_nan(const char *text, size_t n);
#define CELL_AMOUNT_BYTES 64
/* Writes an amount, "-$1,234.50", as a plain number: without commas between groups of three digits,
 * and $, €, £, ¥ before or after it. Returns its length; 0: the text is no amount. */
size_t cell_amount(const char *text, size_t n, char plain[CELL_AMOUNT_BYTES]);
/* ERR_DATA, "'abc' WHAT"; a long text is cut. */
int cell_refuse(const char *text, size_t n, const char *what, struct error *err);

struct cells {
    enum dtype type;
    bool are_amounts; /* are read also as cell_amount does */
    char *data;
    size_t bytes, capacity;
    VEC(size_t) ends; /* STRING: end of each text in `data` */
};

void cells_release(struct cells *cells);

/* Parses a text. The error has only the cause: "'abc' is not a number". */
int cells_add(struct cells *cells, const char *text, size_t n, struct error *err);

/* Adds an element in binary form, of the cells' type. */
int cells_add_bytes(struct cells *cells, const void *bytes, size_t n, struct error *err);

/* Makes a tensor of all cells, which are empty afterwards. */
int cells_take(struct cells *cells, const struct shape *shape, struct tensor *tensor,
               struct error *err);

#endif
