/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of fitted transforms (data/prep.h), in JSON. Each section is a transform; it has an
 * object per feed, by name, with the figures of each column:
 *
 *     {"tf-data prep": 2,
 *      "header": ["age", "sex", "bmi"],
 *      "impute": {"x": {"columns": ["age", "bmi"], "rows": 400, "by": "median",
 *                        "value": [47, 25]}},
 *      "standardize": {"x": {"columns": ["age", "bmi"], "rows": 400,
 *                            "mean": [48.5, 26.4], "deviation": [13.1, 4.4]}},
 *      "category": {"s": {"columns": ["sex"], "rows": 400, "categories": [["f", "m"]]}}}
 *
 * `header` has the column names of the fitted CSV file, if it had any; `columns` are the feed's, by
 * name or, without a header, by position. Arrays have neither. `of` names changes made before the
 * fit, if any: "log1p". A file that only standardizes is version 1.
 */
#ifndef TF_BIN_PREP_FILE_H
#define TF_BIN_PREP_FILE_H

#include <stdio.h>

#include "data/prep.h"

/* ERR_NOINPUT, ERR_IO, ERR_DATA. Release `prep` also after a failure. */
int prep_read(struct prep *prep, const char *path, struct error *err);
int prep_write(const struct prep *prep, FILE *out, struct error *err);

#endif
