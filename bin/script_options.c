/* SPDX-License-Identifier: Apache-2.0 */
#include "bin/script_options.h"

#include <inttypes.h>
#include <stdio.h>

static void print_value(struct str *out, const struct option_row *row)
{
    const struct option_list *list = row->target;
    switch (row->type) {
    case OPTION_FLAG:
        str_append(out, *(const bool *)row->target ? "1" : "");
        break;
    case OPTION_COUNT:
        str_printf(out, "%d", *(const int *)row->target);
        break;
    case OPTION_INT:
    case OPTION_NATURAL:
    case OPTION_BYTES:
        if (*(const int64_t *)row->target != SCRIPT_UNSET)
            str_printf(out, "%" PRId64, *(const int64_t *)row->target);
        break;
    case OPTION_FLOAT:
        str_printf(out, "%.15g", *(const double *)row->target);
        break;
    case OPTION_SECONDS:
        str_printf(out, "%.15gs", *(const double *)row->target);
        break;
    case OPTION_LIST:
        for (size_t i = 0; i < list->n; i++)
            str_printf(out, "%s%s", i ? "," : "", list->items[i]);
        break;
    default:
        BUG_ON(row->type != OPTION_TEXT);
        if (*(const char *const *)row->target)
            str_append(out, *(const char *const *)row->target);
    }
}

void script_assign(struct str *out, const char *name, const char *text)
{
    str_printf(out, "%s=", name);
    str_append_quoted(out, text ? text : "");
    str_append_char(out, '\n');
}

void script_assign_options(struct str *out, const struct option_row *rows)
{
    for (const struct option_row *row = rows; row->name; row++) {
        struct str name = STR_INIT, value = STR_INIT;
        str_printf(&name, "opt_%s", row->name);
        for (char *c = name.data; *c; c++)
            *c = *c == '-' ? '_' : *c;
        print_value(&value, row);
        script_assign(out, name.data, str_text(&value));
        str_release(&name);
        str_release(&value);
    }
}

void script_assign_words(struct str *out, char *const *words, int n)
{
    str_append(out, "set --");
    for (int i = 0; i < n; i++) {
        str_append_char(out, ' ');
        str_append_quoted(out, words[i]);
    }
    str_append_char(out, '\n');
}

int script_write(struct str *out, struct error *err)
{
    if (dprintf(SCRIPT_FD, "%s", out->data) < 0)
        error_set_errno(err, ERR_IO, "descriptor %d", SCRIPT_FD);
    str_release(out);
    return err->code;
}
