/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/new_file.h"
#include "cli/tool.h"

struct output {
    struct new_file file;
    bool is_open;
    FILE *stream; /* of a duplicate descriptor, as `file` closes its own after fsync; or NULL */
    const char *name;
};

static struct output outputs[OUTPUTS_MAX];

/* SIGABRT is raised by assertions and libraries; SIGPIPE may come from another output. */
static const int ending_signals[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                                     SIGPIPE, SIGABRT, SIGXCPU, SIGALRM};

void output_unlink_all(void)
{
    for (int i = 0; i < OUTPUTS_MAX; i++)
        new_file_unlink(&outputs[i].file);
}

void output_end_by(int number)
{
    output_unlink_all();
    signal(number, SIG_DFL);
    raise(number);
}

int output_open(const char *path, struct output **opened, int *fd, struct error *err)
{
    struct output *output = outputs;
    while (output->is_open)
        BUG_ON(++output == outputs + OUTPUTS_MAX);
    /* Leave alone signals that are ignored (nohup) or that the tool handles itself. */
    static bool caught;
    if (!caught && !atexit(output_unlink_all)) /* libraries may call exit, too */
        caught = true;
    for (size_t i = 0; i < sizeof ending_signals / sizeof *ending_signals; i++) {
        struct sigaction old, new = {.sa_handler = output_end_by, .sa_flags = SA_ONSTACK};
        sigemptyset(&new.sa_mask);
        if (!sigaction(ending_signals[i], NULL, &old) && old.sa_handler == SIG_DFL)
            sigaction(ending_signals[i], &new, NULL);
    }
    if (new_file_open(&output->file, path, err))
        return err->code;
    output->is_open = true;
    *fd = output->file.fd;
    *opened = output;
    return 0;
}

int output_open_stream(const char *path, struct output **opened, FILE **stream, struct error *err)
{
    int fd;
    if (output_open(path, opened, &fd, err))
        return err->code;
    int copy = dup(fd);
    *stream = copy < 0 ? NULL : fdopen(copy, "w");
    (*opened)->stream = *stream;
    (*opened)->name = path;
    if (*stream)
        return 0;
    error_set_errno(err, ERR_OS, "%s", path);
    close_if_open(copy);
    output_discard(*opened);
    return err->code;
}

int output_close_stream(FILE *stream, const char *name, struct error *err)
{
    bool failed = ferror(stream);
    errno = 0;
    if (fclose(stream))
        failed = true;
    if (!failed)
        return 0;
    if (tool_signal())
        return error_set(err, ERR_CANCELLED, "%s: interrupted; nobody reads", name);
    if (errno)
        return error_set_errno(err, ERR_IO, "%s", name);
    return error_set(err, ERR_IO, "%s: write error", name);
}

int output_commit(struct output *output, struct error *err)
{
    if (!output || !output->is_open)
        return 0;
    FILE *stream = output->stream;
    output->stream = NULL;
    if (stream && output_close_stream(stream, output->name, err)) {
        output_discard(output);
        return err->code;
    }
    output->is_open = false;
    return new_file_commit(&output->file, err);
}

void output_discard(struct output *output)
{
    if (!output || !output->is_open)
        return;
    if (output->stream)
        fclose(output->stream);
    output->stream = NULL;
    output->is_open = false;
    new_file_discard(&output->file);
}
