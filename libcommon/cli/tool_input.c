/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/time.h"
#include "base/vec.h"
#include "cli/tool_private.h"

#define LOOK_MILLISECONDS 50    /* between two checks whether a wait is over */
#define IDLE_MILLISECONDS 100   /* between two calls of `idle` */
#define FOLLOW_MILLISECONDS 100 /* between two checks whether a file has grown */
#define STILL_LOOKS 10          /* checks after which a replaced file is taken to grow no more */

struct tool_input {
    struct stream_reader *reader;
    struct tool *tool;
    int fd;
    char *path;                  /* of a followed file */
    void (*idle)(void *context); /* called while it does not grow */
    void *idle_context;
    int still; /* consecutive checks without growth while another file had its name */
};

/* The open readers; a tool has one to three. */
static VEC(struct tool_input *) inputs;
static char stopped_text[512];

static struct error output_failure; /* of a flush before a wait for input */

const struct error *tool_output_failure(void)
{
    return output_failure.code ? &output_failure : NULL;
}

/* Returns the index of a reader's input; inputs.n: it has none. */
static size_t place_of_reader(const struct stream_reader *reader)
{
    size_t i = 0;
    while (i < inputs.n && inputs.items[i]->reader != reader)
        i++;
    return i;
}

static void note_stopped(const struct stream_reader *reader)
{
    const char *tool = stream_reader_stopped_by(reader);
    if (tool)
        snprintf(stopped_text, sizeof stopped_text, "%.255s: stopped by %.200s",
                 stream_reader_name(reader), tool);
}

const char *tool_stopped_text(void)
{
    for (size_t i = inputs.n; i > 0; i--)
        note_stopped(inputs.items[i - 1]->reader);
    return *stopped_text ? stopped_text : NULL;
}

/* A store of checkpoints, or one in it as STORE@STEP, is no stream. */
static const char *hint_of(const char *path)
{
    char data[PATH_MAX];
    int n = snprintf(data, sizeof data, "%.*s/data.mdb", (int)strcspn(path, "@"), path);
    return n < PATH_MAX && !access(data, F_OK) ? " (tf-ckpt shows and exports checkpoints)" : "";
}

static int open_file(const char *path, int *fd, struct error *err)
{
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (*fd < 0) {
        error_set_errno(err, file_error_code(), "%s", path);
        error_append(err, "%s", hint_of(path));
        return err->code;
    }
    struct stat status;
    if (!fstat(*fd, &status) && S_ISDIR(status.st_mode)) {
        close(*fd);
        return error_set(err, ERR_DATA, "%s: is a directory%s", path, hint_of(path));
    }
    return 0;
}

static int open_stdin(const struct tool *tool, int *fd, struct error *err)
{
    for (size_t i = 0; i < inputs.n; i++)
        if (inputs.items[i]->fd == STDIN_FILENO)
            return error_set(err, ERR_USAGE, "stdin is asked for twice");
    if (isatty(STDIN_FILENO))
        return error_set(err, ERR_USAGE,
                         "stdin is a terminal: name a file or pipe a stream in; see %s --help",
                         tool->table->tool);
    struct stat status;
    if (!fstat(STDIN_FILENO, &status) && S_ISDIR(status.st_mode))
        return error_set(err, ERR_DATA, "stdin: is a directory");
    *fd = STDIN_FILENO;
    return 0;
}

static int flush_output(struct tool *tool, struct error *err)
{
    if (tool_flush_output(tool, &output_failure))
        *err = output_failure;
    return err->code;
}

/* Waits for input; a signal caught by tool_catch_signals ends the wait. */
static int until_readable(int fd, struct error *err)
{
    struct pollfd fds[] = {{.fd = fd, .events = POLLIN}, {.fd = tool_signal_fd, .events = POLLIN}};
    int patience = tool_has_idle() ? IDLE_MILLISECONDS : -1;
    double began = time_now();
    for (;;) {
        bool asked = tool_signal();
        if (tool_ends_wait())
            return error_set(err, ERR_CANCELLED, "interrupted while waiting for input");
        int n = poll(fds, asked ? 1 : 2, asked ? LOOK_MILLISECONDS : patience);
        if (n < 0 && errno != EINTR)
            return 0;
        if (!n && !asked && tool_idle(time_now() - began, err))
            return err->code;
        if (fds[0].revents)
            return 0;
    }
}

int tool_await_input(struct tool *tool, int fd, struct error *err)
{
    return flush_output(tool, err) ? err->code : until_readable(fd, err);
}

/* Before a wait for input, flushes output for the next stage. */
static int before_wait(void *context, struct error *err)
{
    struct tool_input *input = context;
    if (flush_output(input->tool, err))
        return err->code;
    return tool_signal_fd < 0 ? 0 : until_readable(input->fd, err);
}

int tool_open_reader(struct tool *tool, const char *path, struct stream_reader **reader,
                     struct error *err)
{
    int fd = -1;
    bool standard = !path || !strcmp(path, "-");
    if (standard ? open_stdin(tool, &fd, err) : open_file(path, &fd, err))
        return err->code;
    struct tool_input *input = mem_alloc(sizeof *input);
    input->reader = stream_reader_new(fd, standard ? "stdin" : path);
    input->tool = tool;
    input->fd = fd;
    stream_reader_on_wait(input->reader, before_wait, input);
    vec_push(&inputs, input);
    *reader = input->reader;
    return 0;
}

/* Returns whether another file has taken the name. */
static bool is_begun_anew(const struct tool_input *input)
{
    struct stat own, there;
    return input->path && !fstat(input->fd, &own) && !stat(input->path, &there) &&
           (own.st_dev != there.st_dev || own.st_ino != there.st_ino);
}

static int until_it_grows(void *context, struct error *err)
{
    struct tool_input *input = context;
    struct pollfd fd = {.fd = tool_signal_fd, .events = POLLIN};
    struct stat status;
    if (!is_begun_anew(input) || fstat(input->fd, &status) ||
        status.st_size > lseek(input->fd, 0, SEEK_CUR))
        input->still = 0;
    else if (++input->still > STILL_LOOKS)
        return error_set(err, ERR_RETRY, "%s was begun anew", input->path);
    if (flush_output(input->tool, err))
        return err->code;
    input->idle(input->idle_context);
    poll(&fd, 1, FOLLOW_MILLISECONDS);
    return tool_signal() ? error_set(err, ERR_CANCELLED, "interrupted while following a file") : 0;
}

void tool_follow(struct stream_reader *reader, void (*idle)(void *context), void *context)
{
    struct tool_input *input = inputs.items[place_of_reader(reader)];
    struct stat status;
    if (fstat(input->fd, &status) || !S_ISREG(status.st_mode))
        return;
    input->path = mem_strdup(stream_reader_name(reader));
    input->idle = idle;
    input->idle_context = context;
    stream_reader_on_end(reader, until_it_grows, input);
}

bool tool_follow_on(struct stream_reader *reader)
{
    struct tool_input *input = inputs.items[place_of_reader(reader)];
    struct error ignored = ERROR_INIT;
    int fd;
    if (!is_begun_anew(input) || open_file(input->path, &fd, &ignored))
        return false;
    close(input->fd);
    input->fd = fd;
    input->still = 0;
    stream_reader_go_on(reader, fd);
    return true;
}

void tool_close_reader(struct stream_reader *reader)
{
    size_t i = place_of_reader(reader);
    if (i == inputs.n)
        return;
    struct tool_input *input = inputs.items[i];
    inputs.items[i] = vec_pop(&inputs);
    note_stopped(reader);
    stream_reader_free(reader);
    if (input->fd != STDIN_FILENO)
        close(input->fd);
    mem_free(input->path);
    mem_free(input);
}

void tool_close_readers(void)
{
    while (inputs.n)
        tool_close_reader(inputs.items[inputs.n - 1]->reader);
    vec_release(&inputs);
}
