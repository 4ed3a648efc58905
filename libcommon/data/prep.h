/* SPDX-License-Identifier: Apache-2.0
 *
 * What was fitted to some rows, to be used for others: mean and deviation of each element of what
 * is fed under a name.
 */
#ifndef TF_DATA_PREP_H
#define TF_DATA_PREP_H

#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"

struct fitted {
    const char *name;     /* of the feed */
    const char **columns; /* names, or positions as text; NULL: an array */
    size_t n_columns;
    double *mean, *deviation; /* deviations are above 0 */
    int64_t width;            /* elements of a row; 0: not fitted yet */
    int64_t rows;             /* that were fitted to */
    struct prep *prep;        /* that it belongs to */
};

struct prep {
    const char *path; /* for messages; borrowed */
    struct arena arena;
    const char **header; /* names of the columns of the CSV file; NULL: it had none */
    size_t n_header;
    VEC(struct fitted *) fitted;
};

void prep_release(struct prep *prep);

struct fitted *prep_add(struct prep *prep, const char *name); /* empty */

/* ERR_DATA if nothing was fitted to the name. */
int prep_find(struct prep *prep, const char *name, const struct fitted **fitted, struct error *err);

#endif
