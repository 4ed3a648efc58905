/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides whether polling before sleeping is worthwhile: not if another process needs the core, as
 * that may be the peer, and not if polling found nothing the last times.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cores.h"
#include "transport/loop/loop_private.h"

#define DEFAULT_SECONDS 50e-6
#define CHECK_SECONDS 2e-3 /* for which cores are assumed to stay free */
#define PENALTY_MAX 64u

void spin_init(struct loop_spin *spin)
{
    spin->n_cores = sysconf(_SC_NPROCESSORS_ONLN); /* the cores that /proc/loadavg counts */
    spin->limit = cores_usable() > 1 ? DEFAULT_SECONDS : 0;
    spin->loadavg = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
}

void spin_release(struct loop_spin *spin)
{
    if (spin->loadavg >= 0)
        close(spin->loadavg);
}

/* The fourth field of /proc/loadavg, RUNNING/ALL, counts runnable threads. */
static bool cores_are_busy(const struct loop_spin *spin)
{
    char text[128], *p = text;
    ssize_t n = spin->loadavg < 0 ? -1 : pread(spin->loadavg, text, sizeof text - 1, 0);
    if (n <= 0)
        return false;
    text[n] = '\0';
    for (int field = 0; field < 3; field++)
        strtod(p, &p);
    return strtol(p, NULL, 10) > spin->n_cores;
}

bool spin_is_worth(struct loop_spin *spin, double now)
{
    if (spin->limit <= 0)
        return false;
    if (spin->skip) {
        spin->skip--;
        return false;
    }
    if (now - spin->checked > CHECK_SECONDS) {
        spin->checked = now;
        spin->busy = cores_are_busy(spin);
    }
    return !spin->busy;
}

void spin_ended(struct loop_spin *spin, bool found)
{
    if (found) {
        spin->penalty = 0;
        return;
    }
    spin->skip = spin->penalty;
    spin->penalty = spin->penalty ? spin->penalty * 2 : 1;
    if (spin->penalty > PENALTY_MAX)
        spin->penalty = PENALTY_MAX;
}
