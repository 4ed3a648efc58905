/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens a source of batches from a user's request.
 */
#ifndef TF_DATA_OPEN_H
#define TF_DATA_OPEN_H

#include "data/batches.h"

enum data_format { DATA_CSV, DATA_JSONL, DATA_IDX, DATA_NPY, DATA_NPZ };

bool data_format_parse(const char *name, enum data_format *format);

/* Returns whether the data is rows of text, which may be fed as they arrive. */
bool data_format_has_rows(enum data_format format);

struct data_request {
    enum data_format format;
    const char *path; /* "-": stdin; unused if each column has its own file */
    const struct data_column *columns;
    int n_columns;
    struct row_choice rows;
    struct csv_format csv; /* data_open sets `rows` in it; `prep` and `fit` apply to the columns */
    struct batch_options feeding;
    int prefetch;     /* batches made ahead by a thread; 0: none */
    int64_t last_row; /* set by data_open: the last row seen; 0: rows are still to come */
    /* Called before waiting for input or for the thread; may be NULL. */
    int (*wait)(void *context, struct error *err);
    void *wait_context;
};

/* Opens the source. Rows of text from stdin, several files or one of more than 64 MiB are fed as
 * they are read, unless the request needs all rows first: to shuffle, for several epochs, or to
 * standardize by these rows. The request must outlive the batches. ERR_USAGE for options that
 * exclude each other, and errors of the sources. */
int data_open(struct data_request *request, struct batches **batches, struct error *err);

#endif
