/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/str.h"
#include "cli/options_private.h"

#define TAKERS_MOST 3 /* options of more verbs are listed without them */

const char *option_word(const char **list, int *n)
{
    const char *word = *list;
    *n = word ? (int)strcspn(word, " ") : 0;
    *list = *n ? word + *n + strspn(word + *n, " ") : word;
    return *n ? word : NULL;
}

bool option_lists(const char *list, const char *name)
{
    int n;
    const char *word;
    while ((word = option_word(&list, &n)))
        if (!strncmp(word, name, (size_t)n) && !name[n])
            return true;
    return false;
}

/* ---- choosing the verb ---- */

static int count_verbs(const struct option_table *table)
{
    int n = 0;
    while (table->verbs && table->verbs[n].name)
        n++;
    return n;
}

const struct option_verb *option_verb_find(const struct option_table *table, const char *name)
{
    const struct option_verb *without = NULL;
    for (int i = 0; i < count_verbs(table); i++)
        if (!strcmp(table->verbs[i].name, name))
            return &table->verbs[i];
        else if (!*table->verbs[i].name)
            without = &table->verbs[i];
    return without;
}

/* Returns whether a verb takes n operands, one per word of its usage. */
static bool takes(const char *usage, int n)
{
    int least = 0, most = 0, length;
    const char *word;
    while ((word = option_word(&usage, &length))) {
        bool any = length >= 3 && !strncmp(word + length - 3, "...", 3);
        least += *word != '[';
        most = any ? n : most + 1;
    }
    return n >= least && n <= most;
}

int options_verb(const struct option_table *table, int n_operands, char **operands,
                 struct error *err)
{
    int n = count_verbs(table);
    const char *names[32] = {0};
    if (!n_operands) {
        error_set(err, ERR_USAGE, "which verb? %s --help lists them", table->tool);
        return -1;
    }
    for (int i = 0; i < n; i++) {
        const struct option_verb *verb = &table->verbs[i];
        if (i < 31)
            names[i] = verb->name;
        if (strcmp(operands[0], verb->name))
            continue;
        if (takes(verb->operands, n_operands - 1))
            return i;
        error_set(err, ERR_USAGE, "usage: %s %s%s%s", table->tool, verb->name,
                  *verb->operands ? " " : "", verb->operands);
        return -1;
    }
    const char *nearest = str_nearest(operands[0], names);
    if (nearest)
        error_set(err, ERR_USAGE, "there is no verb '%s'; did you mean %s?", operands[0], nearest);
    else
        error_set(err, ERR_USAGE, "there is no verb '%s'; %s --help lists them", operands[0],
                  table->tool);
    return -1;
}

/* ---- options of verbs ---- */

/* Appends the named verbs that list an option, "list, show and diff"; none if it is for all.
 * Returns their number. */
static int list_takers(struct str *out, const struct option_table *table, const char *option,
                       const char *and)
{
    const char *last = NULL;
    int n = 0;
    for (int i = 0; i < count_verbs(table); i++) {
        const struct option_verb *verb = &table->verbs[i];
        if (!*verb->name || !option_lists(verb->options, option))
            continue;
        if (n++)
            str_printf(out, "%s%s", n > 2 ? ", " : "", last);
        last = verb->name;
    }
    if (last)
        str_printf(out, "%s%s", n > 1 ? and : "", last);
    return n;
}

void option_describe(const struct option_table *table, const struct option_row *row,
                     struct str *out)
{
    struct str takers = STR_INIT;
    int n = list_takers(&takers, table, row->name, ", ");
    const struct option_verb *bare = option_verb_find(table, "");
    if (n && n <= TAKERS_MOST && !(bare && option_lists(bare->options, row->name)))
        str_printf(out, "%s: ", str_text(&takers));
    str_append(out, row->help);
    str_release(&takers);
}

bool option_is_for(const struct option_table *table, const struct option_verb *verb,
                   const char *option)
{
    bool listed = !verb || option_lists(verb->options, option);
    for (int i = 0; !listed && i < count_verbs(table); i++)
        if (option_lists(table->verbs[i].options, option))
            return false;
    return true;
}

static int check_verb(const struct option_table *table, const struct option_verb *verb,
                      const char *option, struct error *err)
{
    struct str takers = STR_INIT;
    if (option_is_for(table, verb, option))
        return 0;
    list_takers(&takers, table, option, " and ");
    if (takers.n && *verb->name)
        error_set(err, ERR_USAGE, "--%s is for %s, not for %s", option, str_text(&takers),
                  verb->name);
    else if (takers.n)
        error_set(err, ERR_USAGE, "--%s is for %s", option, str_text(&takers));
    else
        error_set(err, ERR_USAGE, "--%s is not for %s", option, verb->name);
    str_release(&takers);
    return err->code;
}

static int check_needs(const struct option_table *table, const enum option_source *given,
                       const char *option, struct error *err)
{
    for (const struct option_need *need = table->needs; need && need->options; need++) {
        struct str wanted = STR_INIT;
        bool is_given = false;
        for (int i = 0; table->rows[i].name; i++)
            is_given |= given[i] && option_lists(need->one_of, table->rows[i].name);
        if (!option_lists(need->options, option) || is_given)
            continue;
        /* Turn "a b c" into "--a, --b or --c". */
        int n;
        const char *word, *list = need->one_of;
        while ((word = option_word(&list, &n)))
            str_printf(&wanted, "%s--%.*s", !wanted.n ? "" : *list ? ", " : " or ", n, word);
        error_set(err, ERR_USAGE, "--%s is for %s, which is not given", option, str_text(&wanted));
        str_release(&wanted);
        return ERR_USAGE;
    }
    return 0;
}

/* Returns whether an option is set; a flag that was switched off is not. */
static bool is_said(const struct option_row *row, enum option_source given)
{
    return given && (row->type != OPTION_FLAG || *(const bool *)row->target);
}

static bool gives_way(const struct option_table *table, const char *option, const char *beside)
{
    for (const struct option_clash *clash = table->clashes; clash && clash->options; clash++)
        if (option_lists(clash->options, option) && option_lists(clash->beside, beside))
            return true;
    return false;
}

const struct option_row *options_clash(const struct option_table *table,
                                       const enum option_source *given,
                                       const struct option_row *row, enum option_source source)
{
    for (int i = 0; table->rows[i].name; i++) {
        const struct option_row *other = &table->rows[i];
        if (other != row && given[i] == source && is_said(other, source) &&
            (gives_way(table, row->name, other->name) || gives_way(table, other->name, row->name)))
            return other;
    }
    return NULL;
}

int options_check_use(const struct option_table *table, const enum option_source *given,
                      const char *verb, struct error *err)
{
    for (int i = 0; table->rows[i].name; i++) {
        const struct option_row *row = &table->rows[i];
        bool is_asked = given[i] == OPTION_COMMAND_LINE;
        if (is_asked && check_verb(table, option_verb_find(table, verb), row->name, err))
            return err->code;
        const struct option_row *other =
            is_said(row, given[i]) ? options_clash(table, given, row, given[i]) : NULL;
        if (other) {
            bool is_first = gives_way(table, row->name, other->name);
            return error_set(err, ERR_USAGE, "--%s and --%s do not go together",
                             is_first ? row->name : other->name,
                             is_first ? other->name : row->name);
        }
        if (is_asked && is_said(row, given[i]) && check_needs(table, given, row->name, err))
            return err->code;
    }
    return 0;
}
