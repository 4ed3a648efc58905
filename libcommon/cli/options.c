/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <ctype.h>
#include <stdlib.h>
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

/* ---- values ---- */

/* Returns true for rows that take the next argument as value unless "=" gives one. */
static bool needs_value(const struct option_row *row)
{
    return row->type != OPTION_FLAG && row->type != OPTION_COUNT && row->type != OPTION_OPTIONAL;
}

static int wrong(const char *name, const char *value, const char *wanted, struct error *err)
{
    return error_set(err, ERR_USAGE, "%s: '%s' is not %s", name, value, wanted);
}

/* Reports a bad value, and whether it is a number, maybe with one of `units`, but too large. */
static int wrong_number(const char *name, const char *value, const char *units, const char *wanted,
                        struct error *err)
{
    const char *digits = value + (*value == '+' || (!*units && *value == '-'));
    size_t n = strspn(digits, "0123456789");
    if (n && (!digits[n] || (strchr(units, digits[n]) && !digits[n + 1])))
        return error_set(err, ERR_USAGE, "%s: %s is too large", name, value);
    return wrong(name, value, wanted, err);
}

/* Writes one value through the row's target. `name` ("--threads", "TF_THREADS") is for the message;
 * `value` is NULL if none was given; `on` is false for "--no-name". Lists grow. */
static int set_row(const struct option_row *row, const char *name, const char *value, bool on,
                   struct error *err)
{
    struct option_list *list = row->target;
    bool ok;
    switch (row->type) {
    case OPTION_FLAG:
        *(bool *)row->target = on;
        return 0;
    case OPTION_COUNT:
        ++*(int *)row->target;
        return 0;
    case OPTION_INT:
    case OPTION_NATURAL:
        ok = str_to_int64(value, row->target);
        if (ok && row->type == OPTION_NATURAL && *(int64_t *)row->target < 0)
            return error_set(err, ERR_USAGE, "%s: %s is negative", name, value);
        return ok ? 0 : wrong_number(name, value, "", "a whole number", err);
    case OPTION_FLOAT:
        ok = str_to_float64(value, row->target);
        return ok ? 0 : wrong(name, value, "a number", err);
    case OPTION_TEXT:
        *(const char **)row->target = value;
        return 0;
    case OPTION_OPTIONAL:
        *(const char **)row->target = value ? value : "";
        return 0;
    case OPTION_LIST:
        /* Empty items are refused: "a,,b" is probably a mistake, and an empty name would fail later
         * and less clearly. */
        for (const char *start = value;;) {
            const char *end = strchrnul(start, ',');
            if (end == start)
                return error_set(err, ERR_USAGE, "%s: empty item in '%s'", name, value);
            vec_push(list, mem_strndup(start, (size_t)(end - start)));
            if (!*end)
                return 0;
            start = end + 1;
        }
    case OPTION_REPEAT:
        vec_push(list, value);
        return 0;
    case OPTION_BYTES:
        ok = str_to_bytes(value, row->target);
        return ok ? 0
                  : wrong_number(name, value, "kKmMgGtT", "a size in bytes, as 4096, 64k or 1.5G",
                                 err);
    case OPTION_SECONDS:
        ok = str_to_seconds(value, row->target);
        return ok ? 0 : wrong(name, value, "a time, as 250ms, 30s or 2m", err);
    }
    error_bug(__FILE__, __LINE__, "an option type without a case");
}

static int set_from_variable(const struct option_row *row, const char *variable, const char *value,
                             struct error *err)
{
    if (row->type == OPTION_FLAG) {
        /* The words for false and true that are usual in environment variables. */
        static const char *const words[] = {"0", "1", "false", "true", "no", "yes", "off", "on"};
        int truth = -1;
        for (int i = 0; i < (int)(sizeof words / sizeof *words); i++)
            truth = strcasecmp(value, words[i]) ? truth : i % 2;
        if (truth < 0)
            return wrong(variable, value, "0 or 1", err);
        return set_row(row, variable, NULL, truth, err);
    }
    if (row->type == OPTION_COUNT) {
        int64_t count;
        if (!str_to_int64(value, &count) || count < 0 || count > 9)
            return wrong(variable, value, "a number from 0 to 9", err);
        *(int *)row->target = (int)count;
        return 0;
    }
    return set_row(row, variable, value, true, err);
}

/* Sets the rows that the command line has not set from TF_NAME. */
static int set_from_environment(const struct option_table *table, enum option_source *given,
                                struct error *err)
{
    for (int i = 0; table->rows[i].name; i++) {
        if (given[i])
            continue;
        char variable[64] = "TF_";
        size_t n = 3;
        for (const char *c = table->rows[i].name; *c && n + 1 < sizeof variable; c++)
            variable[n++] = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
        variable[n] = '\0';
        const char *value = getenv(variable);
        if (!value || !*value || options_clash(table, given, &table->rows[i], OPTION_COMMAND_LINE))
            continue;
        given[i] = OPTION_ENVIRONMENT;
        if (set_from_variable(&table->rows[i], variable, value, err))
            return err->code;
    }
    return 0;
}

/* ---- the command line ---- */

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
    if (!value && needs_value(row)) {
        if (parse->next >= parse->argc)
            return error_set(parse->err, ERR_USAGE, "%s needs %s", shown,
                             row->argument ? row->argument : "a value");
        value = parse->argv[parse->next++];
    }
    parse->given[row - parse->rows] = OPTION_COMMAND_LINE;
    vec_push(&asked, row->name);
    return set_row(row, shown, value, on, parse->err);
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
        bool rest = needs_value(row) && *text;
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
    if (set_from_environment(parse->table, parse->given, parse->err))
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
