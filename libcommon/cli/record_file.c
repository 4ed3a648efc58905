/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/record_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/str.h"

int record_file_open(struct record_file *file, const struct tool *tool, const char *path,
                     int64_t expected, struct error *err)
{
    *file = (struct record_file){0};
    int fd, code = tool_check_stream_path(path, err);
    if (!code)
        code = output_open(path, &file->output, &fd, err);
    if (!code)
        file->writer = stream_writer_new(fd, path, tool_provenance(tool), expected);
    return code;
}

int record_file_open_in(struct record_file *file, const struct tool *tool, const char *path,
                        struct error *err)
{
    struct stat status;
    struct str own = STR_INIT;
    bool exists = !stat(path, &status), named_folder = str_ends(path, "/");
    if (named_folder && !exists && mkdir(path, 0777))
        return error_set_errno(err, ERR_IO, "%s", path);
    if (!named_folder && !(exists && S_ISDIR(status.st_mode)))
        return record_file_open(file, tool, path, -1, err);
    str_printf(&own, "%s/%s-%ld.rec", path, tool->table->tool, (long)getpid());
    int code = record_file_open(file, tool, own.data, -1, err);
    if (code)
        str_release(&own);
    else
        file->path = own.data;
    return code;
}

int record_file_probe(const char *path, struct error *err)
{
    struct output *output;
    struct stat old;
    int fd;
    /* opening and closing a named pipe would end it for its reader */
    if (!stat(path, &old) && S_ISFIFO(old.st_mode))
        return 0;
    int code = tool_check_stream_path(path, err);
    if (!code)
        code = output_open(path, &output, &fd, err);
    if (!code)
        output_discard(output);
    return code;
}

int record_file_commit(struct record_file *file, struct error *err)
{
    int code = stream_finish(file->writer, err);
    if (code) {
        record_file_discard(file);
        return code;
    }
    stream_writer_free(file->writer);
    code = output_commit(file->output, err);
    mem_free(file->path);
    return code;
}

void record_file_discard(struct record_file *file)
{
    stream_writer_free(file->writer);
    output_discard(file->output);
    mem_free(file->path);
}
