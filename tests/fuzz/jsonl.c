/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON lines. Every row has as many fields as there are columns, and what is read of each can be
 * looked at; rows that are numbers are numbers to the reader of fields, too.
 */
#include <stdlib.h>

#include "data/cells.h"
#include "data/jsonl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct jsonl_columns columns = {0};
    struct error err = ERROR_INIT;
    struct csv_row row;
    size_t n_columns = 0, kinds = 0;
    bool more;
    struct gzfile *file = gzfile_open_memory(data, size, "fuzz");
    struct jsonl_reader *reader = jsonl_reader_new(file, &columns);
    while (!jsonl_read(reader, &row, &more, &err) && more) {
        n_columns = n_columns ? n_columns : row.n_fields;
        if (!row.n_fields || row.n_fields != n_columns || row.n_fields != columns.names.n)
            abort();
        for (size_t i = 0; i < row.n_fields; i++)
            kinds += cell_kind(row.fields[i].text, row.fields[i].n) == CELL_NUMBER;
    }
    jsonl_reader_free(reader);
    jsonl_columns_release(&columns);
    gzfile_close(file);
    if (kinds > size) /* a number has a digit */
        abort();
    return 0;
}
