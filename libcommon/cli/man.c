/* SPDX-License-Identifier: Apache-2.0
 *
 * Manual pages in roff's man macros. Text is escaped: backslashes, hyphens that must stay hyphens,
 * and dots or quotes that would start a request at the beginning of a line.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cli/options_private.h"
#include "cli/tool.h"

static void print_escaped(const char *text, size_t n, FILE *out)
{
    bool line_start = true;
    for (size_t i = 0; i < n; i++) {
        if (line_start && (text[i] == '.' || text[i] == '\''))
            fputs("\\&", out);
        if (text[i] == '\\')
            fputs("\\e", out);
        else if (text[i] == '-')
            fputs("\\-", out);
        else
            fputc(text[i], out);
        line_start = text[i] == '\n';
    }
}

static void print_text(const char *text, FILE *out)
{
    print_escaped(text, strlen(text), out);
}

/* Prints the lines of help for `text`. */
static void print_entry(const char *text, const char *help, FILE *out)
{
    fputs(".TP\n.B ", out);
    print_text(text + strspn(text, " "), out);
    fputc('\n', out);
    for (const char *line = help; line;) {
        const char *end = strchrnul(line, '\n');
        print_escaped(line, (size_t)(end - line), out);
        fputs(*end ? "\n.br\n" : "\n", out);
        line = *end ? end + 1 : NULL;
    }
}

static void print_option(const struct option_table *table, const struct option_row *row, FILE *out)
{
    struct str help = STR_INIT;
    char text[128];
    option_synopsis(row, text, sizeof text);
    option_describe(table, row, &help);
    print_entry(text, str_text(&help), out);
    str_release(&help);
}

void options_man(const struct option_table *table, FILE *out)
{
    fputs(".TH ", out);
    for (const char *c = table->tool; *c; c++)
        fputc(toupper((unsigned char)*c), out);
    fprintf(out, " 1 \"\" \"tf-tools %s\" \"User Commands\"\n.SH NAME\n", TOOL_VERSION);
    print_text(table->tool, out);
    fputs(" \\- ", out);
    print_text(table->summary, out);
    fputs("\n.SH SYNOPSIS\n.B ", out);
    print_text(table->tool, out);
    fputs("\n[OPTION]...", out);
    if (table->operands && *table->operands) {
        fputc(' ', out);
        print_text(table->operands, out);
    }
    fputc('\n', out);
    fputs(".SH DESCRIPTION\n", out);
    /* Paragraphs are separated by an empty line. */
    const char *text = table->description ? table->description : table->summary;
    while (text && *text) {
        const char *end = strstr(text, "\n\n");
        size_t n = end ? (size_t)(end - text) : strlen(text);
        fputs(".PP\n", out);
        print_escaped(text, n, out);
        fputc('\n', out);
        text = end ? end + 2 : NULL;
    }
    if (table->verbs)
        fputs(".SH VERBS\n", out);
    for (const struct option_verb *verb = table->verbs; verb && verb->name; verb++) {
        char usage[128];
        snprintf(usage, sizeof usage, "%s%s%s", verb->name, *verb->name ? " " : "", verb->operands);
        print_entry(usage, verb->help, out);
    }
    fputs(".SH OPTIONS\n", out);
    for (const struct option_row *row = table->rows; row->name; row++)
        print_option(table, row, out);
    for (const struct option_row *row = options_builtin; row->name; row++)
        print_option(table, row, out);
    if (table->examples) {
        fputs(".SH EXAMPLES\n.nf\n", out);
        print_text(table->examples, out);
        fputs("\n.fi\n", out);
    }
    fputs(".SH ENVIRONMENT\n"
          "Each long option may be given as a variable, TF_NAME for \\-\\-name, with _ for \\-. "
          "The command line wins.\n",
          out);
    static const struct {
        const char *code, *meaning;
    } rows[] = {
        {"0", "done"},
        {"1", "a negative answer: a difference or damage was found"},
        {"64", "wrong usage"},
        {"65", "bad input: malformed, truncated, inconsistent"},
        {"66", "an input is missing"},
        {"69", "a peer cannot be reached"},
        {"70", "a bug of tf-tools"},
        {"71, 74", "the system refused, reading or writing failed"},
        {"75", "locked or timed out: trying again may help"},
        {"76", "the other side speaks another version"},
        {"77", "not permitted"},
        {"78", "the configuration is wrong"},
        {"128+n", "stopped by signal n"},
    };
    fputs(
        ".SH EXIT STATUS\nOf a pipeline, a stage that is stopped by the stage before it ends with "
        "that stage's status.\n",
        out);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        fprintf(out, ".TP\n.B %s\n%s\n", rows[i].code, rows[i].meaning);
}
