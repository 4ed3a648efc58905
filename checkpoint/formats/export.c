/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/formats/export.h"

#include "base/memory.h"
#include "checkpoint/formats/bundle.h"

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

int source_write_records(struct source *s, int fd, const char *name, const char *producer,
                         struct error *err)
{
    struct stream_writer *writer = stream_writer_new(fd, name, producer, (int64_t)s->tensors.n);
    for (size_t i = 0; i < s->tensors.n && !err->code; i++) {
        struct variable_record record = manifest_tensor_record(&s->tensors.items[i].saved);
        record.step = s->step < 0 ? 0 : s->step;
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

int source_export(struct source *s, enum export_form form, const struct export_files *files,
                  const char *producer, struct error *err)
{
    source_join_slices(s, err); /* slices that cannot be joined are exported as they are */
    error_clear(err);
    if (form == EXPORT_RECORDS)
        return source_write_records(s, fileno(files->file), files->name, producer, err);
    source_drop_resources(s); /* from records a job can resume */
    size_t n = s->tensors.n;
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
