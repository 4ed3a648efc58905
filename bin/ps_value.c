/* SPDX-License-Identifier: Apache-2.0 */
#include "bin/ps_value.h"

#include <string.h>

#include "base/str.h"
#include "bin/show_arrays.h"
#include "wire/npy.h"

int ps_write_value(struct tool *tool, const char *name, const struct tensor *value,
                   struct error *err)
{
    struct named_tensor named = {name, *value};
    FILE *out;
    if (tool_output && str_ends(tool_output, ".npy"))
        return tool_open_text(tool, &out, err) ? err->code : npy_write(out, value, err);
    if (!tool->writer && tool_open_writer(tool, 1, err))
        return err->code;
    stream_begin(tool->writer, RECORD_TENSOR, 0);
    return stream_write(tool->writer, &named, 1, err);
}

struct choice {
    struct tensor value; /* the first of that name, else the first */
    int n, n_named;
};

static void choose(struct choice *choice, const struct record *record, const char *name)
{
    for (int i = 0; i < record->n_tensors; i++) {
        bool is_named = !strcmp(record->tensors[i].name, name);
        if (choice->n++ == 0 || (is_named && !choice->n_named)) {
            tensor_release(&choice->value);
            tensor_share(&choice->value, &record->tensors[i].tensor);
        }
        choice->n_named += is_named;
    }
}

int ps_read_value(struct tool *tool, const char *path, const char *name, struct tensor *value,
                  struct error *err)
{
    struct tensor_source source = {0};
    struct record record = {0};
    struct choice choice = {TENSOR_INIT, 0, 0};
    bool more = true;
    if (tool_open_reader(tool, path, &source.reader, err))
        return err->code;
    while (!tensor_source_read(&source, &record, &more, err) && more)
        choose(&choice, &record, name);
    record_release(&record);
    tool_close_reader(source.reader);
    *value = choice.value;
    if (err->code || choice.n == 1 || choice.n_named == 1)
        return err->code;
    if (!choice.n)
        return error_set(err, ERR_DATA, "%s: no tensor", path);
    return error_set(err, ERR_DATA, "%s: which of its %d tensors? %s is called '%s'", path,
                     choice.n, choice.n_named ? "more than one" : "none", name);
}
