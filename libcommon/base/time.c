/* SPDX-License-Identifier: Apache-2.0 */
#include "base/time.h"

#include <math.h>

#define NS_PER_SECOND 1000000000

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double time_now(void)
{
    return seconds_of(CLOCK_MONOTONIC);
}

double time_wall(void)
{
    return seconds_of(CLOCK_REALTIME);
}

int64_t time_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * NS_PER_SECOND + t.tv_nsec;
}

struct timespec time_after(double seconds)
{
    struct timespec t;
    double whole = floor(seconds);
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += (time_t)whole;
    t.tv_nsec += (long)((seconds - whole) * NS_PER_SECOND);
    t.tv_sec += t.tv_nsec / NS_PER_SECOND;
    t.tv_nsec %= NS_PER_SECOND;
    return t;
}

void time_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
}
