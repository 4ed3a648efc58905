/* SPDX-License-Identifier: Apache-2.0
 *
 * Dates and times in text, as seconds since 1970-01-01 00:00 UTC in the proleptic Gregorian
 * calendar, without leap seconds.
 *
 * A date is 2024-02-29, 2024/02/29, 20240229 or 29.02.2024. A time may follow behind a blank or T:
 * 13:45, 13:45:30 or 13:45:30.25; and a zone behind that: Z, +02:00, +0200 or +02. Without a zone
 * it is UTC. 02/03/2024 is refused: it is another day on each side of the Atlantic.
 */
#ifndef TF_DATA_DATES_H
#define TF_DATA_DATES_H

#include <stdbool.h>
#include <stddef.h>

enum date_part {
    DATE_SECONDS, /* all of it */
    DATE_YEAR,
    DATE_MONTH, /* 1 to 12 */
    DATE_DAY,   /* 1 to 31 */
    DATE_HOUR,
    DATE_MINUTE,
    DATE_SECOND,  /* whole */
    DATE_WEEKDAY, /* 0: Monday, as pandas counts */
    DATE_YEARDAY, /* 1 to 366 */
};

/* The whole text, years 1 to 9999; false if it is no date, or no such day exists. */
bool date_parse(const char *text, size_t n, double *seconds);

/* "year", "weekday"; false for any other word. "seconds" is a word, too. */
bool date_part_parse(const char *name, enum date_part *part);

const char *date_part_name(enum date_part part);

/* Returns a part of the date in UTC. */
double date_part(double seconds, enum date_part part);

#endif
