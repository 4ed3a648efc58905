/* SPDX-License-Identifier: Apache-2.0
 *
 * Records that consist of tensors: feed, fetch, tensor.
 */
#include <inttypes.h>
#include <string.h>

#include "show/show.h"

#define ELEMENTS_SHOWN 16        /* of a tensor among others */
#define ELEMENTS_SHOWN_ALONE 128 /* of a tensor shown alone */

static void write_line(const struct show *show, struct str *line)
{
    str_append_char(line, '\n');
    fwrite(line->data, 1, line->n, show->out);
    str_release(line);
}

/* Escapes the name, as it may come from a foreign file. */
static void append_name(struct str *line, const char *before, const char *name, const char *behind)
{
    str_append(line, before);
    str_append_escaped(line, name);
    str_append(line, behind);
}

static int64_t step_of(const struct record *record)
{
    int64_t step = 0;
    record_get_int(&record->header, "step", &step);
    return step;
}

/* A record without any tensor that the user wants to see is not shown. */
static bool has_wanted(const struct show *show, const struct record *record)
{
    bool has = !show->n_names;
    for (int i = 0; i < record->n_tensors && !has; i++)
        has = show_wants(show, record->tensors[i].name);
    return has;
}

/* {"step":1,"accuracy":0.97}; `key` NULL: only the tensors. */
static void write_json(const struct show *show, const struct record *record, const char *key)
{
    struct str line = STR_INIT;
    str_append_char(&line, '{');
    if (key)
        str_printf(&line, "\"%s\":%" PRId64, key, step_of(record));
    for (int i = 0; i < record->n_tensors; i++) {
        const struct named_tensor *named = &record->tensors[i];
        if (!show_wants(show, named->name))
            continue;
        if (line.n > 1)
            str_append_char(&line, ',');
        const char *name = *named->name ? named->name : "value";
        show_json_text(&line, name, strlen(name));
        str_append_char(&line, ':');
        show_json_tensor(&line, &named->tensor);
    }
    str_append_char(&line, '}');
    write_line(show, &line);
}

/* Appends the elements if there are few, else a summary. */
static void append_content(const struct show *show, struct str *line, const struct tensor *t,
                           int64_t limit)
{
    if (show->verbose || tensor_count(t) <= limit || t->type == STRING || t->type == COMPLEX64)
        show_elements(line, t, show->verbose ? -1 : limit);
    else
        show_summary(line, t);
}

/* A line of a step: `key`, its number, and the tensors, with their types if `is_typed` or if there
 * are more elements than the limit. */
static int show_step(const struct show *show, const struct record *record, const char *key,
                     bool is_typed, int64_t limit)
{
    bool is_wanted = has_wanted(show, record);
    if (is_wanted && show->json)
        write_json(show, record, key);
    if (!is_wanted || show->json)
        return 0;
    struct str line = STR_INIT;
    str_printf(&line, "%s %" PRId64, key, step_of(record));
    for (int i = 0; i < record->n_tensors; i++) {
        const struct named_tensor *named = &record->tensors[i];
        if (!show_wants(show, named->name))
            continue;
        append_name(&line, "  ", named->name, " ");
        if (is_typed || tensor_count(&named->tensor) > limit) {
            shape_print_typed(&line, named->tensor.type, &named->tensor.shape);
            str_append_char(&line, ' ');
        }
        append_content(show, &line, &named->tensor, limit);
    }
    write_line(show, &line);
    return 0;
}

int show_feed(const struct show *show, const struct record *record, struct error *err)
{
    (void)err;
    return show_step(show, record, "feed", true, 1);
}

int show_fetch(const struct show *show, const struct record *record, struct error *err)
{
    (void)err;
    return show_step(show, record, "step", false, ELEMENTS_SHOWN);
}

int show_tensor(const struct show *show, const struct record *record, struct error *err)
{
    (void)err;
    bool is_wanted = has_wanted(show, record);
    if (is_wanted && show->json)
        write_json(show, record, NULL);
    if (!is_wanted || show->json)
        return 0;
    for (int i = 0; i < record->n_tensors; i++) {
        const struct named_tensor *named = &record->tensors[i];
        if (!show_wants(show, named->name))
            continue;
        struct str line = STR_INIT;
        if (*named->name)
            append_name(&line, "", named->name, "  ");
        shape_print_typed(&line, named->tensor.type, &named->tensor.shape);
        str_append(&line, "  ");
        append_content(show, &line, &named->tensor,
                       *named->name ? ELEMENTS_SHOWN : ELEMENTS_SHOWN_ALONE);
        write_line(show, &line);
    }
    return 0;
}

void show_scalars(const struct show *show, struct str *line, const struct record *record)
{
    for (int i = 0; i < record->n_tensors; i++) {
        const struct named_tensor *named = &record->tensors[i];
        if (tensor_count(&named->tensor) != 1 || !show_wants(show, named->name))
            continue;
        append_name(line, line->n ? "  " : "", named->name, " ");
        show_elements(line, &named->tensor, 1);
    }
}
