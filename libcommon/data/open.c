/* SPDX-License-Identifier: Apache-2.0 */
#include "data/open.h"

#include <string.h>
#include <sys/stat.h>

#include "data/fit.h"

#define SMALL_FILE ((off_t)64 << 20) /* bytes */

static const char *const format_names[] = {"csv", "jsonl", "idx", "npy", "npz"};

bool data_format_parse(const char *name, enum data_format *format)
{
    const size_t n = sizeof format_names / sizeof *format_names;
    *format = (enum data_format)names_find(format_names, n, name);
    return *format < n;
}

bool data_format_has_rows(enum data_format format)
{
    return format == DATA_CSV || format == DATA_JSONL;
}

static int load(const struct data_request *r, struct table *table, struct error *err)
{
    if (r->format == DATA_NPZ)
        return table_from_npz(r->path, r->columns, r->n_columns, &r->rows, table, err);
    if (!data_format_has_rows(r->format))
        return table_from_files(r->format == DATA_IDX ? TABLE_IDX : TABLE_NPY, r->columns,
                                r->n_columns, &r->rows, table, err);
    struct csv_columns *columns;
    int code = csv_columns_open(r->path, r->columns, r->n_columns, &r->csv, &columns, err);
    if (code)
        return code;
    code = table_from_csv(columns, r->n_columns, table, err);
    csv_columns_free(columns);
    return code;
}

/* Opens rows that are fed as they arrive. */
static int open_live(const struct data_request *r, struct batches **batches, struct error *err)
{
    struct csv_columns *columns;
    if (csv_columns_open(r->path, r->columns, r->n_columns, &r->csv, &columns, err))
        return err->code;
    if (r->wait && r->prefetch == 0) /* with a prefetch thread, its consumer calls it */
        row_source_on_wait(csv_columns_source(columns), r->wait, r->wait_context);
    *batches = batches_of_rows(columns, r->n_columns, &r->feeding);
    return 0;
}

static bool needs_all(const struct data_request *r)
{
    bool fits = r->csv.fit != NULL;
    for (int i = 0; i < r->n_columns; i++)
        fits |= fit_needs_rows(&r->columns[i]);
    return fits || r->feeding.shuffle || r->feeding.epochs != 1;
}

/* Returns whether rows are fed as they are read: from stdin, and if they might not fit into memory.
 * A small file is checked and its records are counted before the first one is fed. */
static bool arrives(const char *path)
{
    struct stat status;
    return strcmp(path, "-") == 0 || stat(path, &status) != 0 ||
           (S_ISREG(status.st_mode) && status.st_size > SMALL_FILE);
}

int data_open(struct data_request *r, struct batches **batches, struct error *err)
{
    bool window = r->feeding.shuffle_window > 0;
    if (window && (!data_format_has_rows(r->format) || needs_all(r)))
        return error_set(err, ERR_USAGE,
                         "--shuffle-buffer is for csv, jsonl and one epoch, without --shuffle and "
                         "standardize");
    r->csv.rows = r->rows;
    r->csv.rows_of = r->format == DATA_JSONL ? ROWS_JSONL : ROWS_CSV;
    bool live = window || (data_format_has_rows(r->format) && !needs_all(r) && arrives(r->path));
    struct batches *made;
    struct table table = {0};
    if (live ? open_live(r, &made, err) : load(r, &table, err))
        return err->code;
    r->last_row = table.last_row;
    if (!live && batches_of_table(&table, &r->feeding, &made, err))
        return err->code;
    if (r->prefetch > 0 &&
        batches_prefetch(made, r->prefetch, r->wait, r->wait_context, &made, err))
        return err->code;
    *batches = made;
    return 0;
}
