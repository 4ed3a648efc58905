/* SPDX-License-Identifier: Apache-2.0
 *
 * The first SIGINT or SIGTERM asks, the second ends. A pipe carries the news to whoever waits in
 * poll(), so that a signal just before the wait is not missed. A timer that the first one starts
 * cancels what does not end by itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/tool_private.h"

int tool_signal_fd = -1;

static int wake_fd;
static volatile sig_atomic_t caught;
static timer_t grace_timer;
static struct itimerspec grace;
static atomic_bool *grace_flag;          /* NULL: nothing is cancelled */
static bool (*ends_wait)(void *context); /* NULL: a signal does */
static void *ends_wait_context;
static int (*when_idle)(void *context, struct error *err);
static void *when_idle_context;

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
    if (grace_flag)
        timer_settime(grace_timer, 0, &grace, NULL);
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
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static void on_alarm(int number)
{
    (void)number;
    atomic_store(grace_flag, true);
}

int tool_cancel_after(double seconds, atomic_bool *flag, struct error *err)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    grace.it_value.tv_sec = (time_t)seconds;
    grace.it_value.tv_nsec = (long)((seconds - (double)grace.it_value.tv_sec) * 1e9);
    if (sigaction(SIGALRM, &action, NULL) || timer_create(CLOCK_MONOTONIC, &event, &grace_timer))
        return error_set_errno(err, ERR_OS, "cannot set a timer");
    grace_flag = flag;
    return 0;
}

void tool_read_on(bool (*ends)(void *context), void *context)
{
    ends_wait = ends;
    ends_wait_context = context;
}

void tool_when_idle(int (*idle)(void *context, struct error *err), void *context)
{
    when_idle = idle;
    when_idle_context = context;
}

bool tool_has_idle(void)
{
    return when_idle;
}

int tool_idle(struct error *err)
{
    return when_idle(when_idle_context, err);
}

bool tool_ends_wait(void)
{
    if (!caught || !ends_wait)
        return caught;
    return atomic_load(grace_flag) || ends_wait(ends_wait_context);
}

int tool_signal(void)
{
    return caught;
}

int tool_stop_fd(void)
{
    return tool_signal_fd;
}
