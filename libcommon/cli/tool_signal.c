/* SPDX-License-Identifier: Apache-2.0
 *
 * The first SIGINT or SIGTERM asks, the second ends. A pipe carries the news to whoever waits in
 * poll(), so that a signal just before the wait is not missed.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/tool_private.h"

int tool_signal_fd = -1;

static int wake_fd;
static volatile sig_atomic_t caught;

static void on_signal(int number)
{
    if (caught) {
        output_unlink_all();
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    caught = number;
    int kept = errno; /* of whatever was interrupted */
    /* a full pipe wakes as well, so the result does not matter */
    if (write(wake_fd, "", 1) < 0)
        errno = kept;
}

void tool_catch_signals(void)
{
    int fds[2];
    if (tool_signal_fd >= 0 || pipe2(fds, O_CLOEXEC | O_NONBLOCK))
        return;
    tool_signal_fd = fds[0];
    wake_fd = fds[1];
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int tool_signal(void)
{
    return caught;
}
