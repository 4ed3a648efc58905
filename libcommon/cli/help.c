/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "cli/options_private.h"

#define HELP_COLUMN_MOST 30 /* a longer synopsis puts its help on the next line */

void option_synopsis(const struct option_row *row, char *text, size_t n)
{
    char letter[8] = "    ";
    if (row->letter)
        snprintf(letter, sizeof letter, "-%c, ", row->letter);
    if (row->type == OPTION_OPTIONAL)
        snprintf(text, n, "%s--%s[=%s]", letter, row->name, row->argument ? row->argument : "");
    else
        snprintf(text, n, "%s--%s%s%s", letter, row->name, row->argument ? " " : "",
                 row->argument ? row->argument : "");
}

static bool is_hidden(const struct option_row *row)
{
    return !strcmp(row->name, "man");
}

static int widest(const struct option_row *rows, int width)
{
    for (; rows->name; rows++) {
        char text[128];
        option_synopsis(rows, text, sizeof text);
        int n = (int)strlen(text);
        if (!is_hidden(rows) && n > width && n <= HELP_COLUMN_MOST)
            width = n;
    }
    return width;
}

static void print_row(const struct option_row *row, int width, FILE *out)
{
    char text[128];
    option_synopsis(row, text, sizeof text);
    fprintf(out, "  %-*s", width, text);
    if ((int)strlen(text) > width)
        fprintf(out, "\n  %*s", width, "");
    for (const char *line = row->help; line;) {
        const char *end = strchrnul(line, '\n');
        fprintf(out, "  %.*s\n", (int)(end - line), line);
        line = *end ? end + 1 : NULL;
        if (line)
            fprintf(out, "  %*s", width, "");
    }
}

static void print_examples(const char *examples, FILE *out)
{
    while (examples && *examples) {
        const char *end = strchrnul(examples, '\n');
        fprintf(out, "  %.*s\n", (int)(end - examples), examples);
        examples = *end ? end + 1 : end;
    }
}

void options_help(const struct option_table *table, FILE *out)
{
    fprintf(out, "%s: %s\n\n", table->tool, table->summary);
    print_examples(table->examples, out);
    const char *operands = table->operands ? table->operands : "";
    fprintf(out, "%susage: %s [OPTION]...%s%s\n\n", table->examples ? "\n" : "", table->tool,
            *operands ? " " : "", operands);
    int width = widest(options_builtin, widest(table->rows, 0));
    for (const struct option_row *row = table->rows; row->name; row++)
        print_row(row, width, out);
    for (const struct option_row *row = options_builtin; row->name; row++)
        if (!is_hidden(row))
            print_row(row, width, out);
}
