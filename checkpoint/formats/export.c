/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/formats/export.h"

#include <sys/stat.h>

#include "base/memory.h"
#include "checkpoint/formats/bundle.h"
#include "wire/npy.h"
#include "wire/npz.h"

enum export_form export_form_of(const char *path)
{
    return str_ends(path, ".npz")           ? EXPORT_NPZ
           : str_ends(path, ".safetensors") ? EXPORT_SAFETENSORS
           : str_ends(path, ".index")       ? EXPORT_BUNDLE
           : str_ends(path, ".ckpt")        ? EXPORT_RECORDS
                                            : EXPORT_NONE;
}

struct exporter {
    struct source *source;
    bool unread; /* the error is from reading, and names the source; else it is from writing */
};

static int export_entry(void *context, size_t i, struct tensor *value, struct error *err)
{
    struct exporter *exporting = context;
    int code = source_read(exporting->source, i, value, err);
    exporting->unread = code != 0;
    return code;
}

int source_export(struct source *s, enum export_form form, const struct export_files *files,
                  const char *producer, struct error *err)
{
    source_join_slices(s, err); /* slices that cannot be joined are exported as they are */
    if (form != EXPORT_RECORDS) /* a job can resume from records */
        source_drop_resources(s);
    size_t n = s->tensors.n;
    error_clear(err);
    if (form == EXPORT_RECORDS) {
        struct stream_writer *writer =
            stream_writer_new(fileno(files->file), files->name, producer, (int64_t)s->tensors.n);
        for (size_t i = 0; i < s->tensors.n && !err->code; i++) {
            const struct source_tensor *t = &s->tensors.items[i];
            struct variable_record record = {.container = t->saved.container,
                                             .name = t->saved.name,
                                             .updates = t->saved.updates,
                                             .step = s->step,
                                             .slice = t->saved.slice};
            if (!source_read(s, i, &record.value, err)) {
                stream_write_variable(writer, &record, err);
                tensor_release(&record.value);
            }
        }
        if (!err->code)
            stream_finish(writer, err);
        stream_writer_free(writer);
        return err->code;
    }
    struct archive_entry *entries = mem_array(n + 1, sizeof *entries);
    for (size_t i = 0; i < n; i++) {
        const struct source_tensor *t = &s->tensors.items[i];
        entries[i] = (struct archive_entry){source_outer_name(s, i), t->saved.type, t->saved.shape,
                                            t->saved.bytes};
    }
    struct exporter exporting = {s, false};
    const struct archive_input input = {entries, n, export_entry, &exporting};
    if (form == EXPORT_NPZ)
        npz_write(files->file, &input, err);
    else if (form == EXPORT_SAFETENSORS)
        safetensors_write(files->file, &input, err);
    else
        bundle_write(files->file, files->data, &input, err);
    if (err->code && !exporting.unread)
        error_prefix(err, "%s: ", files->name);
    mem_free(entries);
    return err->code;
}

int source_export_npy(struct source *s, const char *name, FILE *file, struct error *err)
{
    struct tensor value;
    int i = source_find_whole(s, name, err);
    if (i < 0 || source_read(s, (size_t)i, &value, err))
        return err->code;
    if (npy_write(file, &value, err))
        error_prefix(err, "%s: '%s': ", s->name, name);
    tensor_release(&value);
    return err->code;
}

int archive_read(const char *path, struct archive *archive, struct error *err)
{
    struct stat status;
    *archive = (struct archive){0};
    if (export_form_of(path) != EXPORT_NONE && !stat(path, &status) && S_ISDIR(status.st_mode))
        return error_set(err, ERR_DATA, "%s: is a directory", path);
    switch (export_form_of(path)) {
    case EXPORT_NPZ: {
        struct npz npz;
        if (npz_open(path, &npz, err))
            return err->code;
        for (int i = 0; i < npz.n && !err->code; i++) {
            struct named_tensor t = {.name = arena_strdup(&archive->arena, npz_name(&npz, i))};
            if (!npz_read(&npz, i, &t.tensor, err))
                vec_push(&archive->tensors, t);
        }
        npz_close(&npz);
        return err->code;
    }
    case EXPORT_SAFETENSORS:
        return safetensors_read(path, archive, err);
    case EXPORT_BUNDLE:
        return bundle_read(path, archive, err);
    default:
        return error_set(err, ERR_USAGE,
                         "%s: its name ends in none of .npz, .safetensors, .index and .ckpt", path);
    }
}
