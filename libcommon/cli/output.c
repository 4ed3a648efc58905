/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct output {
    int fd;
    bool is_open;
    bool direct;           /* not through a temporary name */
    char path[PATH_MAX];   /* the final name, symbolic links resolved */
    char folder[PATH_MAX]; /* of path */
    char temporary[PATH_MAX];
    volatile sig_atomic_t exists; /* the temporary file is there */
};

static struct output outputs[OUTPUTS_MAX];

/* SIGABRT is what assertions and libraries end with; SIGPIPE may come from another output. */
static const int ending_signals[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                                     SIGPIPE, SIGABRT, SIGXCPU, SIGALRM};

static void remove_temporary(struct output *output)
{
    if (output->exists)
        unlink(output->temporary);
    output->exists = 0;
}

void output_unlink_all(void)
{
    for (int i = 0; i < OUTPUTS_MAX; i++)
        remove_temporary(&outputs[i]);
}

static void on_ending_signal(int number)
{
    output_unlink_all();
    signal(number, SIG_DFL);
    raise(number);
}

/* Leaves alone what is ignored (nohup) and what the tool has taken for itself. */
static void catch_endings(void)
{
    static bool caught;
    if (!caught && !atexit(output_unlink_all)) /* libraries may call exit, too */
        caught = true;
    for (size_t i = 0; i < sizeof ending_signals / sizeof *ending_signals; i++) {
        struct sigaction old, new = {.sa_handler = on_ending_signal, .sa_flags = SA_ONSTACK};
        sigemptyset(&new.sa_mask);
        if (!sigaction(ending_signals[i], NULL, &old) && old.sa_handler == SIG_DFL)
            sigaction(ending_signals[i], &new, NULL);
    }
}

static int cannot_open(const char *path, struct error *err)
{
    int code = errno == EACCES || errno == EPERM || errno == EROFS ? ERR_DENIED : ERR_IO;
    return error_set_errno(err, code, "%s", path);
}

/* Follows a symbolic link, so that the file behind it is replaced and not the link. */
static int resolve(struct output *output, const char *path, bool exists, struct error *err)
{
    char *real = exists ? realpath(path, NULL) : NULL;
    const char *name = real ? real : path;
    size_t n = strlen(name);
    /* room for the temporary name, which is longer */
    if (n + 32 >= PATH_MAX) {
        free(real);
        return error_set(err, ERR_IO, "%s: the name is too long", path);
    }
    memcpy(output->path, name, n + 1);
    free(real);
    char copy[PATH_MAX];
    memcpy(copy, output->path, n + 1);
    snprintf(output->folder, sizeof output->folder, "%s", dirname(copy));
    const char *slash = strrchr(output->path, '/');
    int head = slash ? (int)(slash + 1 - output->path) : 0;
    snprintf(output->temporary, sizeof output->temporary, "%.*s.%.200s.%ld.tmp", head, output->path,
             output->path + head, (long)getpid());
    return 0;
}

/* The name can be guessed: what stands there already, be it a link that somebody laid in a shared
 * folder or the leftover of a process that was killed, is removed and never written to. */
static void open_temporary(struct output *output)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    catch_endings();
    unlink(output->temporary);
    output->exists = 1; /* before it does, so that no signal finds it unmarked */
    output->fd = open(output->temporary, flags, 0666);
    if (output->fd < 0)
        output->exists = 0;
}

int output_open(const char *path, struct output **opened, int *fd, struct error *err)
{
    struct output *output = outputs;
    while (output->is_open)
        BUG_ON(++output == outputs + OUTPUTS_MAX);
    struct stat old;
    bool exists = !stat(path, &old);
    if (exists && S_ISDIR(old.st_mode))
        return error_set(err, ERR_DATA, "%s: is a directory", path);
    output->direct = exists && !S_ISREG(old.st_mode);
    if (resolve(output, path, exists, err))
        return err->code;
    if (output->direct)
        output->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    else
        open_temporary(output);
    if (output->fd < 0)
        return cannot_open(path, err);
    /* a file that is replaced keeps its mode; where that is not allowed, the default will do */
    if (exists && !output->direct && fchmod(output->fd, old.st_mode & 07777))
        errno = 0;
    output->is_open = true;
    *fd = output->fd;
    *opened = output;
    return 0;
}

static void sync_folder(const struct output *output)
{
    int fd = open(output->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    fsync(fd);
    close(fd);
}

int output_commit(struct output *output, struct error *err)
{
    if (!output || !output->is_open)
        return 0;
    output->is_open = false;
    bool failed = !output->direct && fsync(output->fd);
    int cause = errno;
    failed = close(output->fd) || failed;
    if (!failed && !output->direct && rename(output->temporary, output->path)) {
        failed = true;
        cause = errno;
    }
    if (!failed) {
        output->exists = 0;
        if (!output->direct)
            sync_folder(output);
        return 0;
    }
    remove_temporary(output);
    errno = cause;
    return error_set_errno(err, ERR_IO, "%s", output->path);
}

void output_discard(struct output *output)
{
    if (!output || !output->is_open)
        return;
    output->is_open = false;
    close(output->fd);
    remove_temporary(output);
}
