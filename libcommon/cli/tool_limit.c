/* SPDX-License-Identifier: Apache-2.0
 *
 * A watchdog: a thread that sleeps until the process has used its computing time. Whichever is
 * first, the watchdog or the end of the watched work, decides how the tool continues.
 */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"

#include "cli/tool_private.h"

enum { WATCHING, ENDED, EXPIRED };

static struct limit_watch {
    struct tool *tool;
    struct timespec time;
    struct error reason;
    atomic_int state;
} watch;

static bool set_outcome(int outcome)
{
    int expected = WATCHING;
    return atomic_compare_exchange_strong(&watch.state, &expected, outcome);
}

static void *watch_thread(void *unused)
{
    (void)unused;
    if (!clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, 0, &watch.time, NULL) && set_outcome(EXPIRED))
        _exit(tool_finish(watch.tool, watch.reason.code, &watch.reason));
    return NULL;
}

int tool_limit_time(struct tool *tool, double seconds, const struct error *reason,
                    struct error *err)
{
    pthread_t thread;
    watch.tool = tool;
    watch.reason = *reason;
    watch.time.tv_sec = (time_t)seconds;
    watch.time.tv_nsec = (long)((seconds - (double)watch.time.tv_sec) * 1e9);
    atomic_store(&watch.state, WATCHING);
    bool failed = thread_start(&thread, watch_thread, NULL);
    if (!failed)
        pthread_detach(thread); /* it may sleep on, without effect */
    return failed ? error_set(err, ERR_OS, "cannot start a thread") : 0;
}

void tool_end_limit(void)
{
    while (!set_outcome(ENDED)) /* the watchdog is ending the process */
        pause();
}
