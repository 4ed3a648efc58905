/* SPDX-License-Identifier: Apache-2.0
 *
 * CSV files, plain and gzip. The first byte chooses the separator. Every number is parsed, too, and
 * must agree with the C library's.
 */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "wire/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse(const struct csv_field *field)
{
    char text[512];
    double value, expected;
    if (field->n >= sizeof text || number_float64(field->text, field->n, &value) != NUMBER_OK)
        return;
    memcpy(text, field->text, field->n);
    text[field->n] = '\0';
    expected = strtod(text, NULL);
    if (memcmp(&value, &expected, sizeof value) && value == value)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char separators[] = {CSV_DETECT, ',', CSV_BLANKS, '\t', ';'};
    struct error err = ERROR_INIT;
    struct csv_row row;
    bool more;
    if (size == 0)
        return 0;
    struct gzfile *file = gzfile_open_memory(data + 1, size - 1, "fuzz");
    struct csv_reader *reader = csv_reader_new(file, separators[*data % sizeof separators], '#');
    while (!csv_read(reader, &row, &more, &err) && more)
        for (size_t i = 0; i < row.n_fields; i++)
            parse(&row.fields[i]);
    csv_reader_free(reader);
    gzfile_close(file);
    return 0;
}
