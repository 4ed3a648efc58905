/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/memory.h"
#include "checkpoint/command/command_private.h"
#include "checkpoint/formats/export.h"
#include "checkpoint/store/save.h"

/* `step` -1: the file does not name a step. */
static int save(struct command *c, struct store *store, const struct save_tensor *tensors, size_t n,
                int64_t step, struct error *err)
{
    struct save_request request = {.step = c->step >= 0 ? c->step
                                           : step >= 0  ? step
                                                        : 0,
                                   .over = c->replace ? SAVE_OVER_ANY : SAVE_OVER_NONE,
                                   .producer = c->producer,
                                   .tensors = tensors,
                                   .n_tensors = n,
                                   .progress = c->watch.progress,
                                   .context = c->watch.context};
    if (!n)
        return error_set(err, ERR_DATA, "%s: has no tensors: nothing to import", c->operands[0]);
    if (run_make(&request.run, c->run_name, err))
        return err->code;
    if (!store_save(store, &request, NULL, err))
        return 0;
    if (err->code == ERR_CONFIG && c->step < 0 && step < 0)
        error_append(err, "; --step N says which it is");
    return command_advise(err);
}

/* Returns the value of the variable in which TensorFlow programs count steps, or else the number
 * that its Saver appends to the name: "model.ckpt-1200.index". -1: neither exists. */
static int64_t imported_step(const char *path, const struct archive *archive)
{
    const char *dash = strrchr(path, '-');
    int64_t step = -1;
    for (size_t i = 0; i < archive->tensors.n; i++) {
        const struct named_tensor *t = &archive->tensors.items[i];
        if (!strcmp(t->name, "global_step") && tensor_count(&t->tensor) == 1 &&
            (t->tensor.type == INT64 || t->tensor.type == INT32))
            step = (int64_t)tensor_get_float64(&t->tensor, 0);
    }
    if (step >= 0 || export_form_of(path) != EXPORT_BUNDLE || !dash)
        return step;
    struct str digits = STR_INIT;
    str_append_bytes(&digits, dash + 1, strlen(dash + 1) - strlen(".index"));
    bool is_step = str_to_int64(str_text(&digits), &step) && step >= 0;
    str_release(&digits);
    return is_step ? step : -1;
}

static int import_archive(struct command *c, struct store *store, struct error *err)
{
    struct archive archive;
    if (archive_read(c->operands[0], &archive, err))
        return err->code;
    size_t n = archive.tensors.n;
    struct save_tensor *tensors = mem_array(n + 1, sizeof *tensors);
    for (size_t i = 0; i < n; i++) {
        /* "scratch:W" is W in the container scratch. */
        const char *name = archive.tensors.items[i].name;
        const char *colon = strchr(name, ':');
        tensors[i].container =
            colon ? arena_strndup(&archive.arena, name, (size_t)(colon - name)) : DEFAULT_CONTAINER;
        tensors[i].name = colon ? colon + 1 : name;
        tensors[i].value = archive.tensors.items[i].tensor;
    }
    save(c, store, tensors, n, imported_step(c->operands[0], &archive), err);
    mem_free(tensors);
    archive_release(&archive);
    return err->code;
}

static int import_source(struct command *c, struct store *store, struct error *err)
{
    struct source source;
    if (source_open(c->operands[0], &source, err))
        return err->code;
    if (source_join_slices(&source, err)) {
        source_close(&source);
        return err->code;
    }
    struct save_tensor *tensors = mem_array(source.tensors.n + 1, sizeof *tensors);
    size_t n = 0;
    for (; n < source.tensors.n && !source_read(&source, n, &tensors[n].value, err); n++) {
        const struct source_tensor *t = &source.tensors.items[n];
        tensors[n].container = t->saved.container;
        tensors[n].name = t->saved.name;
        tensors[n].updates = t->saved.updates;
    }
    if (!err->code)
        save(c, store, tensors, n, source.step, err);
    for (size_t i = 0; i < n; i++)
        tensor_release(&tensors[i].value);
    mem_free(tensors);
    source_close(&source);
    return err->code;
}

int command_import(struct command *c, struct error *err)
{
    struct store *store;
    if (command_open_writing(c, c->operands[1], &store, err))
        return err->code;
    if (export_form_of(c->operands[0]) == EXPORT_RECORDS)
        import_source(c, store, err);
    else
        import_archive(c, store, err);
    store_close(store);
    return err->code;
}
