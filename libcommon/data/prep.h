/* SPDX-License-Identifier: Apache-2.0
 *
 * Fitted transforms: what was fitted to some rows, to be applied to others: figures for each
 * element that is fed under a name, and the categories of each of its columns.
 */
#ifndef TF_DATA_PREP_H
#define TF_DATA_PREP_H

#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"
#include "data/categories.h"

enum figure {
    FIGURE_MEAN,
    FIGURE_DEVIATION, /* above 0 */
    FIGURE_MIN,
    FIGURE_MAX,
    FIGURE_FILL, /* substitute for missing values; an id if there are categories */
    N_FIGURES
};

struct fit {
    const char *name;     /* of the feed */
    const char **columns; /* names, or positions as text; NULL: from an array */
    size_t n_columns;
    double *figures[N_FIGURES]; /* each NULL, or with one per element of a row */
    const char *impute;         /* how FIGURE_FILL was found: "mean"; NULL: not fitted */
    const char *of;             /* what the others were fitted to, as a part of a column (column.h):
                                 * "log1p"; NULL: the values themselves */
    struct categories *categories; /* NULL, or one set per column */
    double *weights;               /* NULL, or one per category of the only column */
    int64_t width;                 /* elements of a row; 0: not fitted yet */
    int64_t rows;                  /* number of fitted rows */
    struct prep *prep;             /* that contains it */
};

struct prep {
    const char *path; /* for messages; borrowed */
    struct arena arena;
    const char **header; /* column names of the CSV file; NULL: it had none */
    size_t n_header;
    VEC(struct fit *) fitted;
};

void prep_release(struct prep *prep);

struct fit *prep_add(struct prep *prep, const char *name); /* empty */

/* Adds empty sets of categories for n columns. */
void fit_add_categories(struct fit *fitted, size_t n);

/* Returns NULL if nothing was fitted to the name. */
struct fit *prep_get(const struct prep *prep, const char *name);
/* ERR_DATA if nothing was, naming what may have been meant. */
int prep_find(struct prep *prep, const char *name, struct fit **fitted, struct error *err);

#endif
