/* SPDX-License-Identifier: Apache-2.0 */
#include "base/time.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

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

#define DAY_SECONDS 86400
#define ERA_DAYS 146097 /* 400 years */

/* Converts a day, counted from 1970-01-01, to a date by arithmetic alone: gmtime_r may lock, and
 * signal handlers log, too (H. Hinnant, chrono-Compatible Low-Level Date Algorithms,
 * civil_from_days; years begin in March there). */
static void date_of(int64_t day, int *year, int *month, int *of_month)
{
    int64_t from_march = day + 719468, era = from_march / ERA_DAYS;
    int of_era = (int)(from_march - era * ERA_DAYS);
    int year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / (ERA_DAYS - 1)) / 365;
    int of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int shifted = (5 * of_year + 2) / 153; /* 0: March */
    *of_month = of_year - (153 * shifted + 2) / 5 + 1;
    *month = shifted < 10 ? shifted + 3 : shifted - 9;
    *year = (int)(era * 400) + year_of_era + (*month <= 2);
}

void time_stamp_of(int64_t seconds, int milliseconds, char text[TIME_STAMP_BYTES])
{
    int year, month, day, of_day = (int)(seconds % DAY_SECONDS);
    date_of(seconds / DAY_SECONDS, &year, &month, &day);
    char line[96]; /* larger than needed: the compiler assumes longer numbers */
    snprintf(line, sizeof line, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ ", year, month, day,
             of_day / 3600, of_day / 60 % 60, of_day % 60, milliseconds);
    memcpy(text, line, TIME_STAMP_BYTES - 1);
    text[TIME_STAMP_BYTES - 1] = '\0';
}

void time_stamp(char text[TIME_STAMP_BYTES])
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    time_stamp_of(t.tv_sec, (int)(t.tv_nsec / 1000000), text);
}

size_t time_stamp_length(const char *line)
{
    static const char form[] = "dddd-dd-ddTdd:dd:dd.dddZ ";
    size_t i = 0;
    while (form[i] && (form[i] == 'd' ? isdigit((unsigned char)line[i]) : line[i] == form[i]))
        i++;
    return form[i] ? 0 : i;
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
