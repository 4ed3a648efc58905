/* SPDX-License-Identifier: Apache-2.0
 *
 * A watchdog: a thread that sleeps until the time is over. Whichever is first, the watchdog or the
 * end of the watched work, decides how the tool continues.
 */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"

#include "cli/tool_private.h"

enum { WATCHING, ENDED, EXPIRED };

static struct limit_watch {
    clockid_t clock;
    struct timespec time;
    void (*expire)(void *context);
    void *context;
    atomic_int state;
} watch;

static struct error out_of_time; /* of a tool that has computed for too long */

static bool set_outcome(int outcome)
{
    int expected = WATCHING;
    return atomic_compare_exchange_strong(&watch.state, &expected, outcome);
}

static void *watch_thread(void *unused)
{
    (void)unused;
    if (!clock_nanosleep(watch.clock, 0, &watch.time, NULL) && set_outcome(EXPIRED))
        watch.expire(watch.context);
    return NULL;
}

static int start_limit(clockid_t clock, double seconds, struct error *err)
{
    pthread_t thread;
    watch.clock = clock;
    watch.time.tv_sec = (time_t)seconds;
    watch.time.tv_nsec = (long)((seconds - (double)watch.time.tv_sec) * 1e9);
    atomic_store(&watch.state, WATCHING);
    bool failed = thread_start(&thread, watch_thread, NULL);
    if (!failed)
        pthread_detach(thread); /* it may sleep on, without effect */
    return failed ? error_set(err, ERR_OS, "cannot start a thread") : 0;
}

static void finish_late(void *tool)
{
    _exit(tool_finish(tool, out_of_time.code, &out_of_time));
}

int tool_limit_time(struct tool *tool, double seconds, const struct error *reason,
                    struct error *err)
{
    out_of_time = *reason;
    watch.expire = finish_late;
    watch.context = tool;
    return start_limit(CLOCK_PROCESS_CPUTIME_ID, seconds, err);
}

int tool_limit_elapsed(double seconds, void (*expire)(void *context), void *context,
                       struct error *err)
{
    watch.expire = expire;
    watch.context = context;
    return start_limit(CLOCK_MONOTONIC, seconds, err);
}

void tool_end_limit(void)
{
    while (!set_outcome(ENDED)) /* the watchdog is ending the process */
        pause();
}
