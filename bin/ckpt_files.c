/* SPDX-License-Identifier: Apache-2.0
 *
 * Verbs of tf-ckpt that write files.
 */
#include <stdio.h>
#include <unistd.h>

#include "bin/ckpt_verbs.h"
#include "bin/ps_value.h"
#include "checkpoint/formats/bundle.h"
#include "checkpoint/formats/export.h"
#include "cli/output.h"

int ckpt_cat(struct ckpt_work *job, struct error *err)
{
    struct source source;
    struct tensor value;
    const char *name = job->command.operands[1];
    bool npy = tool_output && str_ends(tool_output, ".npy");
    if (!npy && tool_open_writer(job->tool, 1, err)) /* in which a failure is told */
        return err->code;
    if (command_open(&job->command, job->command.operands[0], &source, err))
        return err->code;
    int i = source_find_whole(&source, name, err);
    if (i >= 0 && !source_read(&source, (size_t)i, &value, err)) {
        if (ps_write_value(job->tool, name, &value, err) == ERR_DATA) /* .npy lacks its type */
            error_prefix(err, "%s: '%s': ", source.name, name);
        tensor_release(&value);
    }
    source_close(&source);
    return err->code;
}

/* Opens one file of an export; *file duplicates the descriptor, which output_commit needs. */
static int open_file(const char *path, struct output **output, FILE **file, struct error *err)
{
    int fd;
    if (output_open(path, output, &fd, err))
        return err->code;
    *file = fdopen(dup(fd), "wb");
    return *file ? 0 : error_set_errno(err, ERR_OS, "%s", path);
}

static int close_file(const char *path, FILE *file, struct error *err)
{
    if (file && fclose(file) && !err->code)
        error_set_errno(err, ERR_IO, "%s", path);
    return err->code;
}

/* Writes an export. A bundle's data gets its name before the index that refers to it. */
static int write_file(struct ckpt_work *job, struct source *source, const char *path,
                      struct error *err)
{
    struct arena arena = ARENA_INIT;
    struct output *output = NULL, *data_output = NULL;
    struct export_files files = {.name = path};
    enum export_form form;
    if (export_form_find(path, &form, err))
        return err->code;
    if (form == EXPORT_NPZ || form == EXPORT_SAFETENSORS)
        source_drop_texts(source, tool_say_line, job->tool);
    const char *data_path = form == EXPORT_BUNDLE ? bundle_data_path(path, 0, 1, &arena) : NULL;
    if (!open_file(path, &output, &files.file, err) &&
        !(data_path && open_file(data_path, &data_output, &files.data, err)))
        source_export(source, form, &files, tool_provenance(job->tool), err);
    close_file(path, files.file, err);
    if (data_path)
        close_file(data_path, files.data, err);
    if (!err->code && !output_commit(data_output, err))
        output_commit(output, err);
    output_discard(data_output);
    output_discard(output);
    arena_release(&arena);
    return err->code;
}

int ckpt_export(struct ckpt_work *job, struct error *err)
{
    struct source source;
    const char *path = job->command.operands[1];
    enum export_form form;
    if (export_form_find(path, &form, err) ||
        command_open(&job->command, job->command.operands[0], &source, err))
        return err->code;
    /* Files for other programs need whole variables: missing slices are an error. */
    if (form == EXPORT_RECORDS || !source_join_slices(&source, err))
        write_file(job, &source, path, err);
    source_close(&source);
    return err->code;
}

int ckpt_salvage(struct ckpt_work *job, struct error *err)
{
    struct source source;
    size_t lost;
    if (source_salvage(job->command.operands[0], &source, &lost, job->command.say,
                       job->command.context, err))
        return err->code;
    size_t saved = source.tensors.n;
    if (!write_file(job, &source, job->command.operands[1], err) && lost)
        error_set(err, ERR_NEGATIVE, "%s: %zu of %zu tensors are intact, and in %s", source.name,
                  saved, saved + lost, job->command.operands[1]);
    source_close(&source);
    return err->code;
}
