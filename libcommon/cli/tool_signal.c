/* SPDX-License-Identifier: Apache-2.0
 *
 * The first SIGINT, SIGTERM or SIGHUP asks the tool to end, the second ends it. A pipe wakes
 * threads in poll(), so that a signal just before the wait is not missed. The first signal starts a
 * timer, which cancels work that does not end and later, if nothing can be lost, ends the process.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/tool_private.h"

#define SAME_SENDER_SECONDS 1.0 /* timeout(1) sends to the process and to its group */
#define LATE_SECONDS 10         /* from cancelling to ending */

int tool_signal_fd = -1;

static int wake_fd;
static volatile sig_atomic_t caught, ends_late;
static pid_t caught_from; /* 0: the terminal */
static double caught_at;
static timer_t grace_timer;
static struct itimerspec grace;
static atomic_bool *grace_flag;          /* NULL: no cancellation */
static bool (*ends_wait)(void *context); /* NULL: any signal ends the wait */
static void *ends_wait_context;
static int (*when_idle)(void *context, double seconds, struct error *err);
static void *when_idle_context;

static void on_signal(int number, siginfo_t *info, void *context)
{
    pid_t from = info->si_code == SI_USER ? info->si_pid : 0;
    (void)context;
    if (caught && from && from == caught_from && time_now() < caught_at + SAME_SENDER_SECONDS)
        return;
    if (caught) {
        output_end_by(number);
        return;
    }
    caught = number;
    caught_from = from;
    caught_at = time_now();
    int kept = errno; /* of the interrupted code */
    if (grace_flag)
        timer_settime(grace_timer, 0, &grace, NULL);
    /* a full pipe also wakes, so the result does not matter */
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
    struct sigaction before,
        action = {.sa_sigaction = on_signal, .sa_flags = SA_ONSTACK | SA_SIGINFO};
    sigfillset(&action.sa_mask); /* a handler of another signal must see this one complete */
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (!sigaction(SIGHUP, NULL, &before) && before.sa_handler != SIG_IGN) /* nohup(1) */
        sigaction(SIGHUP, &action, NULL);
}

/* The first time cancels; the next time ends the process if that had no effect. */
static void on_alarm(int number)
{
    static const char line[] = ": was cancelled, and did not end: killed\n";
    const char *name = tool_own_name();
    (void)number;
    if (!atomic_exchange(grace_flag, true) || !ends_late)
        return;
    ssize_t told = write(STDERR_FILENO, name, strlen(name));
    if (told < 0 || write(STDERR_FILENO, line, sizeof line - 1) < 0)
        told = 0; /* nobody is left to tell */
    output_end_by(caught);
}

bool tool_is_cancelled(void)
{
    return grace_flag && atomic_load(grace_flag);
}

void tool_end_late(bool ends)
{
    ends_late = ends;
}

int tool_cancel_after(double seconds, atomic_bool *flag, struct error *err)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_ONSTACK}; /* ends writes */
    sigemptyset(&action.sa_mask);
    grace.it_value.tv_sec = (time_t)seconds;
    grace.it_value.tv_nsec = (long)((seconds - (double)grace.it_value.tv_sec) * 1e9);
    grace.it_interval.tv_sec = LATE_SECONDS;
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

void tool_when_idle(int (*idle)(void *context, double seconds, struct error *err), void *context)
{
    when_idle = idle;
    when_idle_context = context;
}

bool tool_has_idle(void)
{
    return when_idle;
}

int tool_idle(double seconds, struct error *err)
{
    return when_idle(when_idle_context, seconds, err);
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
