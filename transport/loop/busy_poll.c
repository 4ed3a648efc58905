/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides whether polling before sleeping is worthwhile: not if another process needs the core, as
 * that may be the peer, and not if polling found nothing the last times.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cores.h"
#include "transport/loop/loop_private.h"

#define DEFAULT_SECONDS 50e-6
#define CHECK_SECONDS 2e-3 /* for which cores are assumed to stay free */
#define PENALTY_MAX 64u

void busy_poll_init(struct loop_busy_poll *busy_poll)
{
    busy_poll->n_cores = sysconf(_SC_NPROCESSORS_ONLN); /* the cores that /proc/loadavg counts */
    busy_poll->limit = cores_usable() > 1 ? DEFAULT_SECONDS : 0;
    busy_poll->loadavg = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
}

void busy_poll_release(struct loop_busy_poll *busy_poll)
{
    if (busy_poll->loadavg >= 0)
        close(busy_poll->loadavg);
}

/* The fourth field of /proc/loadavg, RUNNING/ALL, counts runnable threads. */
static bool cores_are_busy(const struct loop_busy_poll *busy_poll)
{
    char text[128], *p = text;
    ssize_t n = busy_poll->loadavg < 0 ? -1 : pread(busy_poll->loadavg, text, sizeof text - 1, 0);
    if (n <= 0)
        return false;
    text[n] = '\0';
    for (int field = 0; field < 3; field++)
        strtod(p, &p);
    return strtol(p, NULL, 10) > busy_poll->n_cores;
}

bool busy_poll_is_worth(struct loop_busy_poll *busy_poll, double now)
{
    if (busy_poll->limit <= 0)
        return false;
    if (busy_poll->skip) {
        busy_poll->skip--;
        return false;
    }
    if (now - busy_poll->checked > CHECK_SECONDS) {
        busy_poll->checked = now;
        busy_poll->busy = cores_are_busy(busy_poll);
    }
    return !busy_poll->busy;
}

void busy_poll_ended(struct loop_busy_poll *busy_poll, bool found)
{
    if (found) {
        busy_poll->penalty = 0;
        return;
    }
    busy_poll->skip = busy_poll->penalty;
    busy_poll->penalty = busy_poll->penalty ? busy_poll->penalty * 2 : 1;
    if (busy_poll->penalty > PENALTY_MAX)
        busy_poll->penalty = PENALTY_MAX;
}
