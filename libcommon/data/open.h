/* SPDX-License-Identifier: Apache-2.0
 *
 * From what a user asks for to a source of batches.
 */
#ifndef TF_DATA_OPEN_H
#define TF_DATA_OPEN_H

#include "data/batches.h"

enum data_format { DATA_CSV, DATA_JSONL, DATA_IDX, DATA_NPY, DATA_NPZ };

bool data_format_parse(const char *name, enum data_format *format);

/* Returns whether it is rows of text, which may be fed as they arrive. */
bool data_format_has_rows(enum data_format format);

/* Returns whether the format has one file for all columns, or one for each. */
bool data_format_has_path(enum data_format format);

struct data_request {
    enum data_format format;
    const char *path; /* "-": stdin; not used where each column has its own file */
    const struct data_column *columns;
    int n_columns;
    struct row_choice rows;
    struct csv_format csv; /* `rows` in it is set by data_open, `prep` and `fit` are the columns' */
    struct batch_options feeding;
    int prefetch;     /* batches made ahead by a thread; 0: none */
    int64_t last_row; /* set by data_open: the last one looked at; 0: they are still to arrive */
    /* Called before a wait for input or for the thread; may be NULL. */
    int (*wait)(void *context, struct error *err);
    void *wait_context;
};

/* Rows of text are fed as they are read from stdin, several files or one of more than 64 MiB,
 * unless the request needs all of it first: a
 * shuffle, several epochs, standardizing by what these rows have. The request must outlive the
 * batches. ERR_USAGE for what does not go together, and the errors of the sources. */
int data_open(struct data_request *request, struct batches **batches, struct error *err);

#endif
