/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/str.h"
#include "cli/options_private.h"

bool option_needs_value(const struct option_row *row)
{
    return row->type != OPTION_FLAG && row->type != OPTION_COUNT && row->type != OPTION_OPTIONAL;
}

static void list_add(struct option_list *list, const char *item)
{
    vec_push(list, item);
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

int option_set(const struct option_row *row, const char *name, const char *value, bool on,
               struct error *err)
{
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
            list_add(row->target, mem_strndup(start, (size_t)(end - start)));
            if (!*end)
                return 0;
            start = end + 1;
        }
    case OPTION_REPEAT:
        list_add(row->target, value);
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
        return option_set(row, variable, NULL, truth, err);
    }
    if (row->type == OPTION_COUNT) {
        int64_t count;
        if (!str_to_int64(value, &count) || count < 0 || count > 9)
            return wrong(variable, value, "a number from 0 to 9", err);
        *(int *)row->target = (int)count;
        return 0;
    }
    return option_set(row, variable, value, true, err);
}

int options_from_environment(const struct option_table *table, enum option_source *given,
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
