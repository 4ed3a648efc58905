/* SPDX-License-Identifier: Apache-2.0
 *
 * Times in seconds. Intervals and deadlines use CLOCK_MONOTONIC; times that are shown to people, or
 * kept beyond a restart of the machine, use the wall clock.
 */
#ifndef TF_BASE_TIME_H
#define TF_BASE_TIME_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* Monotonic. */
double time_now(void);
int64_t time_now_ns(void);

/* Seconds since 1970. */
double time_wall(void);

/* "2026-11-28T11:05:12.345Z ", the start of a log line: RFC 3339, UTC. */
#define TIME_STAMP_BYTES 26
void time_stamp(char text[TIME_STAMP_BYTES]);
void time_stamp_of(int64_t since_1970, int milliseconds, char text[TIME_STAMP_BYTES]);
/* Returns the length of a line's time stamp: TIME_STAMP_BYTES - 1, or 0 if it has none. */
size_t time_stamp_length(const char *line);

/* The monotonic time `seconds` from now, for pthread_cond_timedwait (see time_cond_init). */
struct timespec time_after(double seconds);

/* Initialises a condition whose waits time out by the monotonic clock. */
void time_cond_init(pthread_cond_t *cond);

#endif
