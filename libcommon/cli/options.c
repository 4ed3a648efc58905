/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <ctype.h>
#include <string.h>

#include "base/memory.h"
#include "base/str.h"
#include "cli/options_private.h"
#include "cli/tool.h"

static bool want_help, want_version, want_man;
static struct option_list asked; /* names of the command line's options */

const struct option_row options_builtin[] = {
    {'h', "help", OPTION_FLAG, &want_help, NULL, "show this help"},
    {0, "version", OPTION_FLAG, &want_version, NULL, "show the version"},
    {0, "man", OPTION_FLAG, &want_man, NULL, "print the manual page, in roff"},
    {0},
};

struct option_parser {
    const struct option_table *table;
    struct option_row *rows; /* the table's and, behind them, the builtin ones */
    int argc, next;          /* next: index after the current argument */
    char **argv;
    enum option_source *given; /* by row of the table */
    struct error *err;
};

/* The row that a name on the command line matches. */
struct match {
    const struct option_row *row;   /* NULL: nothing */
    const struct option_row *other; /* a second row with this prefix, or NULL */
    bool off;                       /* "--no-name" */
};

/* Returns 2 for the whole name, 1 for a prefix of it, 0 otherwise. */
static int compare(const char *name, const char *text, size_t n)
{
    if (strncmp(name, text, n) != 0)
        return 0;
    return name[n] ? 1 : 2;
}

/* Adds row to the match if text[0..n) names it. Returns true for a whole name, which ends the
 * search. */
static bool consider(struct match *match, const struct option_row *row, const char *text, size_t n)
{
    bool off = false;
    int fit = compare(row->name, text, n);
    if (!fit && row->type == OPTION_FLAG && n > 3 && !strncmp(text, "no-", 3)) {
        fit = compare(row->name, text + 3, n - 3);
        off = fit > 0;
    }
    if (fit == 2)
        *match = (struct match){.row = row, .off = off};
    else if (fit == 1 && match->row)
        match->other = row;
    else if (fit == 1)
        *match = (struct match){.row = row, .off = off};
    return fit == 2;
}

/* Sets a row, taking the value from the next argument if `value` is NULL and one is needed. */
static int set_option(struct option_parser *parse, const struct option_row *row, const char *shown,
                      const char *value, bool on)
{
    if (!value && option_needs_value(row)) {
        if (parse->next >= parse->argc)
            return error_set(parse->err, ERR_USAGE, "%s needs %s", shown,
                             row->argument ? row->argument : "a value");
        value = parse->argv[parse->next++];
    }
    parse->given[row - parse->rows] = OPTION_COMMAND_LINE;
    vec_push(&asked, row->name);
    return option_set(row, shown, value, on, parse->err);
}

static int parse_long(struct option_parser *parse, const char *text)
{
    size_t n = strcspn(text, "=");
    const char *value = text[n] ? text + n + 1 : NULL;
    const struct option_row *at = parse->rows;
    struct match match = {0};
    while (at->name && !consider(&match, at, text, n))
        at++;
    if (!match.row || !n) {
        VEC(const char *) names = VEC_INIT;
        for (const struct option_row *row = parse->rows; row->name; row++)
            vec_push(&names, row->name);
        vec_push(&names, NULL);
        char *name = mem_strndup(text, n);
        const char *nearest = str_nearest(name, names.items);
        if (nearest)
            error_set(parse->err, ERR_USAGE, "unknown option '--%s'; did you mean --%s?", name,
                      nearest);
        else
            error_set(parse->err, ERR_USAGE, "unknown option '--%s'; see %s --help", name,
                      parse->table->tool);
        mem_free(name);
        vec_release(&names);
        return ERR_USAGE;
    }
    if (match.other)
        return error_set(parse->err, ERR_USAGE, "option '--%.*s' is ambiguous: --%s or --%s",
                         (int)n, text, match.row->name, match.other->name);
    char shown[64];
    snprintf(shown, sizeof shown, "--%s%s", match.off ? "no-" : "", match.row->name);
    if (value && (match.row->type == OPTION_FLAG || match.row->type == OPTION_COUNT))
        return error_set(parse->err, ERR_USAGE, "%s takes no value", shown);
    return set_option(parse, match.row, shown, value, !match.off);
}

static int parse_letters(struct option_parser *parse, const char *text)
{
    while (*text) {
        const struct option_row *row = parse->rows;
        while (row->name && row->letter != *text)
            row++;
        if (!row->name)
            return error_set(parse->err, ERR_USAGE, "unknown option '-%c'; see %s --help", *text,
                             parse->table->tool);
        char shown[3] = {'-', *text++, '\0'};
        bool rest = option_needs_value(row) && *text;
        if (set_option(parse, row, shown, rest ? text : NULL, true))
            return parse->err->code;
        if (rest)
            return 0;
    }
    return 0;
}

static bool is_operand(const char *text)
{
    if (text[0] != '-' || !text[1])
        return true;
    return isdigit((unsigned char)text[1]) || (text[1] == '.' && isdigit((unsigned char)text[2]));
}

/* Handles --help and the like as soon as it is found: it must work whatever else is wrong. */
static bool reply(const struct option_parser *parse, const char *verb)
{
    const struct option_table *table = parse->table;
    bool wanted = want_help || want_version || want_man;
    bool json = false;
    for (int i = 1; wanted && i < parse->argc; i++)
        json = json || !strcmp(parse->argv[i], "--json");
    if (want_help && json)
        options_json(table, stdout);
    else if (want_help)
        options_help(table, verb, stdout);
    else if (want_version && json)
        printf("{\"tool\":\"%s\",\"version\":\"%s\"}\n", table->tool, TOOL_VERSION);
    else if (want_version)
        printf("%s %s\n", table->tool, TOOL_VERSION);
    else if (want_man)
        options_man(table, stdout);
    want_help = want_version = want_man = false;
    return wanted;
}

static int parse_all(struct option_parser *parse, int *n_operands, bool *shown)
{
    bool only_operands = false;
    while (parse->next < parse->argc) {
        char *text = parse->argv[parse->next++];
        int code = 0;
        if (only_operands || is_operand(text)) {
            int most = parse->table->operands_max;
            const char *usage = parse->table->operands ? parse->table->operands : "";
            if (most >= 0 && *n_operands >= most)
                return error_set(parse->err, ERR_USAGE,
                                 "extra operand '%s'; usage: %s [OPTION]...%s%s", text,
                                 parse->table->tool, *usage ? " " : "", usage);
            parse->argv[(*n_operands)++] = text;
        } else if (!strcmp(text, "--") && parse->table->command) {
            *parse->table->command = parse->next;
            break;
        } else if (!strcmp(text, "--")) {
            only_operands = true;
        } else if (text[1] == '-') {
            code = parse_long(parse, text + 2);
        } else {
            code = parse_letters(parse, text + 1);
        }
        if (code)
            return code;
        *shown = reply(parse, *n_operands                 ? parse->argv[0]
                              : parse->next < parse->argc ? parse->argv[parse->next]
                                                          : "");
        if (*shown)
            return 0;
    }
    if (options_from_environment(parse->table, parse->given, parse->err))
        return parse->err->code;
    return options_check_use(parse->table, parse->given, *n_operands ? parse->argv[0] : "",
                             parse->err);
}

int options_parse(const struct option_table *table, int argc, char **argv, int *n_operands,
                  bool *shown, struct error *err)
{
    size_t n_rows = 0, n_builtin = sizeof options_builtin / sizeof *options_builtin;
    while (table->rows[n_rows].name)
        n_rows++;
    struct option_row *rows = mem_array(n_rows + n_builtin, sizeof *rows);
    memcpy(rows, table->rows, n_rows * sizeof *rows);
    memcpy(rows + n_rows, options_builtin, sizeof options_builtin);
    struct option_parser parse = {.table = table,
                                  .rows = rows,
                                  .argc = argc,
                                  .next = 1,
                                  .argv = argv,
                                  .given =
                                      mem_array(n_rows + n_builtin, sizeof(enum option_source)),
                                  .err = err};
    *n_operands = 0;
    *shown = false;
    if (table->command)
        *table->command = argc;
    int code = parse_all(&parse, n_operands, shown);
    mem_free(parse.given);
    mem_free(rows);
    return code;
}

bool options_asked(const char *name)
{
    return vec_find(&asked, name) < asked.n;
}
