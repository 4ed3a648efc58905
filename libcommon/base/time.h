/* SPDX-License-Identifier: Apache-2.0
 *
 * Times in seconds. Intervals and deadlines go by CLOCK_MONOTONIC; what is shown to people, or kept
 * beyond a restart of the machine, goes by the wall clock.
 */
#ifndef TF_BASE_TIME_H
#define TF_BASE_TIME_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* Monotonic. */
double time_now(void);
int64_t time_now_ns(void);

/* Since 1970. */
double time_wall(void);

/* The monotonic time in so many seconds, for pthread_cond_timedwait on a condition of time_cond. */
struct timespec time_after(double seconds);

/* A condition whose waits end by the monotonic clock. */
void time_cond_init(pthread_cond_t *cond);

#endif
