/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/output.h"
#include "cli/tool_private.h"

/* The stream of tool_open_text, or NULL. */
static FILE *text_out;

static struct output *output; /* of -o FILE; NULL: stdout */

static bool to_file(void)
{
    return tool_output && strcmp(tool_output, "-") != 0;
}

/* Returns whether messages go to the same file as stdout. The reader of a pipe is unknown. */
static bool stdout_is_log(void)
{
    struct stat out, err;
    return !fstat(STDOUT_FILENO, &out) && !fstat(STDERR_FILENO, &err) && S_ISREG(out.st_mode) &&
           out.st_dev == err.st_dev && out.st_ino == err.st_ino;
}

int tool_check_stream_path(const char *path, struct error *err)
{
    if (!str_ends(path, ".npy") && !str_ends(path, ".npz"))
        return 0;
    return error_set(err, ERR_USAGE,
                     "%s: this would be a stream of records, not an array: name it .rec, then "
                     "tf-show --npy FILE NAME makes an array of it",
                     path);
}

int tool_open_writer(struct tool *tool, int64_t expected, struct error *err)
{
    BUG_ON(tool->writer || text_out);
    int fd = STDOUT_FILENO;
    if (to_file()) {
        if (tool_check_stream_path(tool_output, err) || output_open(tool_output, &output, &fd, err))
            return err->code;
    } else if (isatty(STDOUT_FILENO)) {
        const char *words = tool_provenance(tool);
        /* the version is between the name and the arguments */
        const char *arguments = strchr(words + strlen(tool->table->tool) + 1, ' ');
        return error_set(err, ERR_USAGE,
                         "will not write a binary stream to a terminal; try: %s%s | tf-show",
                         tool->table->tool, arguments ? arguments : "");
    } else if (stdout_is_log()) {
        tool_say(tool, "stdout is the file that stderr is: what follows in it is a binary stream; "
                       "try: | tf-show");
    }
    tool->writer =
        stream_writer_new(fd, to_file() ? tool_output : "stdout", tool_provenance(tool), expected);
    stream_writer_give_up(tool->writer, tool_is_cancelled);
    return 0;
}

int tool_open_text(struct tool *tool, FILE **out, struct error *err)
{
    BUG_ON(tool->writer);
    if (!text_out && to_file() && output_open_stream(tool_output, &output, &text_out, err))
        return err->code;
    if (!text_out)
        text_out = stdout;
    *out = text_out;
    return 0;
}

int tool_flush_output(struct tool *tool, struct error *err)
{
    if (tool->writer)
        return stream_flush(tool->writer, err);
    if (text_out && fflush(text_out))
        return error_set_errno(err, ERR_IO, "%s", to_file() ? tool_output : "stdout");
    return 0;
}

int tool_finish_output(struct tool *tool, struct error *err)
{
    if (!tool->writer || !stream_finish(tool->writer, err)) {
        stream_writer_free(tool->writer);
        tool->writer = NULL;
        text_out = NULL;
        if (!output_commit(output, err))
            return output_close_stream(stdout, "stdout", err);
    }
    output_discard(output);
    return err->code;
}

/* Returns whether stdout is a pipe or a socket, which a next stage may be reading. */
static bool stdout_is_pipe(void)
{
    struct stat status;
    return !fstat(STDOUT_FILENO, &status) && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
}

void tool_abandon_output(struct tool *tool, const struct error *cause)
{
    struct error ignored = ERROR_INIT;
    if (!tool->writer && !text_out && tool->table->writes_stream && !to_file() && stdout_is_pipe())
        tool->writer = stream_writer_new(STDOUT_FILENO, "stdout", tool_provenance(tool), -1);
    if (tool->writer)
        stream_writer_give_up(tool->writer, tool_is_cancelled);
    if (tool->writer)
        stream_write_error(tool->writer, tool->table->tool, cause);
    stream_writer_free(tool->writer);
    tool->writer = NULL;
    text_out = NULL;
    output_discard(output);
    output_close_stream(stdout, "stdout", &ignored);
}

bool tool_shows_progress(const struct tool *tool)
{
    return !tool->quiet && isatty(STDERR_FILENO) && !stdout_is_pipe();
}
