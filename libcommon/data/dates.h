/* SPDX-License-Identifier: Apache-2.0
 *
 * Dates and times in text, as seconds since 1970-01-01 00:00 UTC in the proleptic Gregorian
 * calendar, without leap seconds.
 *
 * A date is 2024-02-29, 2024/02/29, 20240229 or 29.02.2024; 2024-2-9 and 9.2.2024 as well. A time
 * may follow after a blank or T: 13:45, 13:45:30 or 13:45:30.25; and then a zone: Z, +02:00, +0200
 * or +02. Without a zone it is UTC. 02/03/2024 is refused, as its meaning differs between Europe
 * and America.
 */
#ifndef TF_DATA_DATES_H
#define TF_DATA_DATES_H

#include <stdbool.h>
#include <stddef.h>

enum date_part {
    DATE_SECONDS, /* the whole time stamp */
    DATE_YEAR,
    DATE_MONTH, /* 1 to 12 */
    DATE_DAY,   /* 1 to 31 */
    DATE_HOUR,
    DATE_MINUTE,
    DATE_SECOND,  /* without its fraction */
    DATE_WEEKDAY, /* 0: Monday, as pandas counts */
    DATE_YEARDAY, /* 1 to 366 */
};

/* Parses the whole text, years 1 to 9999; false if it is no date or the day does not exist. */
bool date_parse(const char *text, size_t n, double *seconds);

/* Parses "year", "weekday", "seconds" and so on; false for any other word. */
bool date_part_parse(const char *name, enum date_part *part);

const char *date_part_name(enum date_part part);

/* Returns a part of the date in UTC. */
double date_part(double seconds, enum date_part part);

#endif
