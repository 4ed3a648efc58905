/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/memory.h"
#include "checkpoint/command/command.h"
#include "checkpoint/formats/export.h"
#include "checkpoint/store/save.h"

/* "scratch:W" is W in the container scratch. */
static void take_name(struct archive *archive, const char *name, struct save_tensor *tensor)
{
    const char *colon = strchr(name, ':');
    tensor->container =
        colon ? arena_strndup(&archive->arena, name, (size_t)(colon - name)) : DEFAULT_CONTAINER;
    tensor->name = colon ? colon + 1 : name;
}

static int save(struct command *c, struct store *store, const struct save_tensor *tensors, size_t n,
                int64_t step, struct error *err)
{
    struct save_request request = {.step = c->step >= 0 ? c->step : step,
                                   .producer = c->producer,
                                   .tensors = tensors,
                                   .n_tensors = n,
                                   .progress = c->watch.progress,
                                   .context = c->watch.context};
    return store_save(store, &request, NULL, err);
}

static int import_archive(struct command *c, struct store *store, struct error *err)
{
    struct archive archive;
    if (archive_read(c->operands[0], &archive, err))
        return err->code;
    size_t n = archive.tensors.n;
    struct save_tensor *tensors = mem_array(n + 1, sizeof *tensors);
    for (size_t i = 0; i < n; i++) {
        take_name(&archive, archive.tensors.items[i].name, &tensors[i]);
        tensors[i].value = archive.tensors.items[i].tensor;
    }
    save(c, store, tensors, n, 0, err);
    mem_free(tensors);
    archive_release(&archive);
    return err->code;
}

static int import_source(struct command *c, struct store *store, struct error *err)
{
    struct source source;
    if (source_open(c->operands[0], &source, err))
        return err->code;
    struct save_tensor *tensors = mem_array(source.tensors.n + 1, sizeof *tensors);
    size_t n = 0;
    for (; n < source.tensors.n && !source_read(&source, n, &tensors[n].value, err); n++) {
        const struct source_tensor *t = &source.tensors.items[n];
        tensors[n].container = t->container;
        tensors[n].name = t->name;
        tensors[n].updates = t->updates;
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
    const struct store_options options = {
        .write = true, .lock_wait = c->lock_wait, .owner = c->owner};
    struct store *store;
    if (store_open(c->operands[1], &options, &store, err))
        return err->code;
    if (export_form_of(c->operands[0]) == EXPORT_RECORDS)
        import_source(c, store, err);
    else
        import_archive(c, store, err);
    store_close(store);
    return err->code;
}
