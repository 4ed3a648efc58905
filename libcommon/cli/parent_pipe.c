/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/parent_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"

static int parent_pipe;
static double seconds_left;
static atomic_bool has_ended;

bool parent_pipe_has_ended(void)
{
    return atomic_load(&has_ended);
}

static void *watch_parent_pipe(void *argument)
{
    char bytes[64];
    ssize_t n;
    (void)argument;
    do {
        struct pollfd wait = {.fd = parent_pipe, .events = POLLIN};
        poll(&wait, 1, -1); /* the descriptor may be non-blocking */
        n = read(parent_pipe, bytes, sizeof bytes);
    } while (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)));
    atomic_store(&has_ended, true);
    kill(getpid(), SIGTERM);
    struct timespec grace = {.tv_sec = (time_t)seconds_left,
                             .tv_nsec = (long)(1e9 * (seconds_left - (long)seconds_left))};
    nanosleep(&grace, NULL);
    kill(getpid(), SIGKILL);
    return NULL;
}

int parent_pipe_hold(int fd, double grace, struct error *err)
{
    pthread_t thread;
    int flags = fcntl(fd, F_GETFD);
    if (flags < 0)
        return error_set(err, ERR_USAGE, "--parent-pipe %d: there is no such descriptor", fd);
    fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
    parent_pipe = fd;
    seconds_left = grace;
    int code = thread_start(&thread, watch_parent_pipe, NULL);
    if (code)
        return error_set(err, ERR_OS, "cannot start a thread for the parent-death pipe");
    pthread_detach(thread);
    return 0;
}
