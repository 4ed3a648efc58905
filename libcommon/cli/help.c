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

/* The rows of a table to be shown: those that a verb takes (NULL: all). */
struct help_view {
    const struct option_table *table;
    const struct option_verb *verb;
};

static bool is_shown(const struct help_view *view, const struct option_row *row)
{
    return strcmp(row->name, "man") != 0 && option_is_for(view->table, view->verb, row->name);
}

static int widest(const struct help_view *view, const struct option_row *rows, int width)
{
    for (; rows->name; rows++) {
        char text[128];
        option_synopsis(rows, text, sizeof text);
        int n = (int)strlen(text);
        if (is_shown(view, rows) && n > width && n <= HELP_COLUMN_MOST)
            width = n;
    }
    return width;
}

/* Prints two columns; further lines of the second are aligned. */
static void print_columns(const char *text, const char *help, int width, FILE *out)
{
    fprintf(out, "  %-*s", width, text);
    if ((int)strlen(text) > width)
        fprintf(out, "\n  %*s", width, "");
    for (const char *line = help; line;) {
        const char *end = strchrnul(line, '\n');
        fprintf(out, "  %.*s\n", (int)(end - line), line);
        line = *end ? end + 1 : NULL;
        if (line)
            fprintf(out, "  %*s", width, "");
    }
}

static void print_rows(const struct help_view *view, const struct option_row *rows, int width,
                       FILE *out)
{
    for (; rows->name; rows++) {
        struct str help = STR_INIT;
        char text[128];
        option_synopsis(rows, text, sizeof text);
        if (view->verb)
            str_append(&help, rows->help);
        else
            option_describe(view->table, rows, &help);
        if (is_shown(view, rows))
            print_columns(text, str_text(&help), width, out);
        str_release(&help);
    }
}

/* ---- verbs ---- */

static void verb_synopsis(const struct option_verb *verb, char *text, size_t n)
{
    snprintf(text, n, "%s%s%s", verb->name, *verb->name && *verb->operands ? " " : "",
             verb->operands);
}

static void print_head(const struct option_table *table, FILE *out)
{
    const char *operands = table->operands ? table->operands : "";
    fprintf(out, "%s: %s\n\n", table->tool, table->summary);
    const char *examples = table->examples;
    while (examples && *examples) {
        const char *end = strchrnul(examples, '\n');
        fprintf(out, "  %.*s\n", (int)(end - examples), examples);
        examples = *end ? end + 1 : end;
    }
    fprintf(out, "%susage: %s [OPTION]...%s%s\n\n", table->examples ? "\n" : "", table->tool,
            *operands ? " " : "", operands);
    if (table->verbs) { /* the first line and the usage say what is done without one */
        int width = 0;
        char text[128];
        for (const struct option_verb *verb = table->verbs; verb->name; verb++) {
            verb_synopsis(verb, text, sizeof text);
            int n = *verb->name ? (int)strlen(text) : 0;
            if (n > width && n <= HELP_COLUMN_MOST)
                width = n;
        }
        for (const struct option_verb *verb = table->verbs; verb->name; verb++) {
            verb_synopsis(verb, text, sizeof text);
            if (*verb->name)
                print_columns(text, verb->help, width, out);
        }
        fputc('\n', out);
    }
}

void options_help(const struct option_table *table, const char *name, FILE *out)
{
    for (const char *const *topic = table->topics; topic && *topic; topic += 2)
        if (!strcmp(*topic, name)) {
            fputs(topic[1], out);
            return;
        }
    const struct option_verb *verb = table->verbs && *name ? option_verb_find(table, name) : NULL;
    if (verb && !*verb->name)
        verb = NULL;
    const struct help_view view = {table, verb};
    if (verb) {
        char text[128];
        verb_synopsis(verb, text, sizeof text);
        fprintf(out, "%s %s: %s\n\nusage: %s %s [OPTION]...\n\n", table->tool, verb->name,
                verb->help, table->tool, text);
    } else {
        print_head(table, out);
    }
    int width = widest(&view, options_builtin, widest(&view, table->rows, 0));
    print_rows(&view, table->rows, width, out);
    print_rows(&view, options_builtin, width, out);
    for (const char *const *topic = table->topics; topic && *topic; topic += 2)
        fprintf(out, "%s %s", topic == table->topics ? "\n--help TOPIC, of what there is:" : ",",
                *topic);
    if (table->topics)
        fputc('\n', out);
}

/* ---- JSON ---- */

/* Prints the words of a list, after those that are already printed. */
static void print_words(const char *list, bool is_first, FILE *out)
{
    int n;
    const char *word;
    for (; (word = option_word(&list, &n)); is_first = false)
        fprintf(out, "%s\"%.*s\"", is_first ? "" : ",", n, word);
}

void options_json(const struct option_table *table, FILE *out)
{
    fprintf(out, "{\"tool\":\"%s\",\"verbs\":[", table->tool);
    for (const struct option_verb *verb = table->verbs; verb && verb->name; verb++)
        fprintf(out, "%s{\"name\":\"%s\",\"operands\":\"%s\"}", verb == table->verbs ? "" : ",",
                verb->name, verb->operands);
    fputs("],\"options\":[", out);
    for (const struct option_row *row = table->rows; row->name; row++) {
        fprintf(out, "%s{\"name\":\"%s\",\"argument\":\"%s\"", row == table->rows ? "" : ",",
                row->name, row->argument ? row->argument : "");
        const char *comma = "";
        fputs(",\"verbs\":[", out);
        for (const struct option_verb *verb = table->verbs; verb && verb->name; verb++)
            if (option_is_for(table, verb, row->name)) {
                fprintf(out, "%s\"%s\"", comma, verb->name);
                comma = ",";
            }
        fputc(']', out);
        const struct option_need *need = table->needs;
        while (need && need->options && !option_lists(need->options, row->name))
            need++;
        fputs(",\"needs\":[", out);
        print_words(need && need->options ? need->one_of : "", true, out);
        fputs("],\"clashes\":[", out);
        bool is_first = true;
        for (const struct option_clash *clash = table->clashes; clash && clash->options; clash++)
            if (option_lists(clash->options, row->name)) {
                print_words(clash->beside, is_first, out);
                is_first = false;
            }
        fputs("]}", out);
    }
    fputs("]}\n", out);
}
