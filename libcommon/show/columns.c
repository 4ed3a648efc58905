/* SPDX-License-Identifier: Apache-2.0 */
#include "show/columns.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

#define CELL_BYTES 4096 /* a longer cell is cut */

void columns_add(struct columns *columns, const char *format, ...)
{
    char text[CELL_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    str_append_bytes(&columns->cells, text, strlen(text) + 1);
}

void columns_print(struct columns *columns, struct str *out)
{
    const char *end = columns->cells.data + columns->cells.n;
    int *widths = mem_array((size_t)columns->n, sizeof *widths), column = 0;
    for (const char *cell = columns->cells.data; cell < end; cell += strlen(cell) + 1) {
        int width = (int)strlen(cell);
        widths[column] = width > widths[column] ? width : widths[column];
        column = (column + 1) % columns->n;
    }
    for (const char *cell = columns->cells.data; cell < end; cell += strlen(cell) + 1) {
        bool last = ++column == columns->n;
        if (last)
            str_printf(out, "%s\n", cell);
        else
            str_printf(out, "%-*s  ", widths[column - 1], cell);
        column = last ? 0 : column;
    }
    mem_free(widths);
    str_release(&columns->cells);
}
