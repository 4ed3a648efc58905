/* SPDX-License-Identifier: Apache-2.0 */
#include "base/failpoint.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/vec.h"

#define POINTS_MAX 16

enum action { ACTION_KILL, ACTION_STOP, ACTION_ERROR, ACTION_DELAY };

struct point {
    const char *name;
    long nth; /* 0: each time */
    enum action action;
    long milliseconds;
    atomic_long reached;
};

static struct point points[POINTS_MAX];
static int n_points;
bool failpoints_armed;

static bool parse_number(const char *text, long least, long *value)
{
    char *end;
    *value = strtol(text, &end, 10);
    return end != text && !*end && *value >= least;
}

/* Parses "NAME:NTH:ACTION", splitting the text in place. */
static bool parse_point(char *text, struct point *point)
{
    char *nth = strchr(text, ':'), *action = nth ? strchr(nth + 1, ':') : NULL;
    if (!action || nth == text)
        return false;
    *nth++ = *action++ = '\0';
    point->name = text;
    if (!(!strcmp(nth, "*") || parse_number(nth, 1, &point->nth)))
        return false;
    static const char *const names[] = {"kill", "stop", "error"};
    point->action = (enum action)names_find(names, ACTION_DELAY, action);
    return point->action != ACTION_DELAY ||
           (!strncmp(action, "delay=", 6) && parse_number(action + 6, 0, &point->milliseconds));
}

__attribute__((constructor)) static void read_list(void)
{
    const char *list = getenv("TF_FAILPOINTS");
    if (!list || !*list)
        return;
    char *copy = mem_strdup(list), *rest = copy; /* the points' names point into it */
    for (char *item; (item = strsep(&rest, ","));) {
        if (n_points < POINTS_MAX && parse_point(item, &points[n_points])) {
            n_points++;
            continue;
        }
        dprintf(STDERR_FILENO, "TF_FAILPOINTS: '%s' is not NAME:NTH:ACTION\n", item);
        _exit(ERR_CONFIG);
    }
    failpoints_armed = true;
}

bool failpoint_reached(const char *name)
{
    bool failed = false;
    for (int i = 0; i < n_points; i++) {
        struct point *point = &points[i];
        if (strcmp(point->name, name))
            continue;
        long reached = atomic_fetch_add(&point->reached, 1) + 1;
        if (point->nth && reached != point->nth)
            continue;
        if (point->action == ACTION_DELAY)
            nanosleep(&(struct timespec){point->milliseconds / 1000,
                                         point->milliseconds % 1000 * 1000000},
                      NULL);
        else if (point->action == ACTION_ERROR)
            failed = true;
        else
            kill(getpid(), point->action == ACTION_KILL ? SIGKILL : SIGSTOP);
    }
    return failed;
}
