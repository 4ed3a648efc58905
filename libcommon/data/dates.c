/* SPDX-License-Identifier: Apache-2.0 */
#include "data/dates.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define DAY 86400

static const char *const part_names[] = {"seconds", "year",   "month",   "day",    "hour",
                                         "minute",  "second", "weekday", "yearday"};

bool date_part_parse(const char *name, enum date_part *part)
{
    for (size_t i = 0; i < sizeof part_names / sizeof *part_names; i++)
        if (strcmp(name, part_names[i]) == 0) {
            *part = (enum date_part)i;
            return true;
        }
    return false;
}

const char *date_part_name(enum date_part part)
{
    return part_names[part];
}

/* ---- the calendar ---- */

static int days_of_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0));
}

static int days_before_month(int year, int month)
{
    int days = 0;
    for (int i = 1; i < month; i++)
        days += days_of_month(year, i);
    return days;
}

/* Returns the days from 0001-01-01 to the first day of a year. */
static int64_t days_before_year(int year)
{
    int64_t y = year - 1;
    return y * 365 + y / 4 - y / 100 + y / 400;
}

#define EPOCH (days_before_year(1970))

/* ---- reading ---- */

struct text {
    const char *at, *end;
};

/* Parses exactly n digits. */
static bool take_digits(struct text *text, int n, int *value)
{
    *value = 0;
    for (; n; n--, text->at++) {
        if (text->at == text->end || *text->at < '0' || *text->at > '9')
            return false;
        *value = *value * 10 + (*text->at - '0');
    }
    return true;
}

static bool take(struct text *text, char c)
{
    bool is_there = text->at < text->end && *text->at == c;
    text->at += is_there;
    return is_there;
}

static bool take_date(struct text *text, int *year, int *month, int *day)
{
    const char *begin = text->at;
    if (text->end - begin > 2 && begin[2] == '.')
        return take_digits(text, 2, day) && take(text, '.') && take_digits(text, 2, month) &&
               take(text, '.') && take_digits(text, 4, year);
    if (!take_digits(text, 4, year))
        return false;
    char mark = text->at < text->end && (*text->at == '-' || *text->at == '/') ? *text->at : '\0';
    return (!mark || take(text, mark)) && take_digits(text, 2, month) &&
           (!mark || take(text, mark)) && take_digits(text, 2, day);
}

/* Parses the fraction of the seconds. */
static bool take_fraction(struct text *text, double *seconds)
{
    double unit = 1;
    int digit;
    if (!take(text, '.'))
        return true;
    do {
        if (!take_digits(text, 1, &digit))
            return false;
        *seconds += digit * (unit /= 10);
    } while (text->at < text->end && *text->at >= '0' && *text->at <= '9');
    return true;
}

static bool take_time(struct text *text, double *seconds)
{
    int hour, minute, second = 0;
    if (!take_digits(text, 2, &hour) || !take(text, ':') || !take_digits(text, 2, &minute))
        return false;
    bool has_seconds = take(text, ':');
    if (hour > 23 || minute > 59 || (has_seconds && !take_digits(text, 2, &second)) || second > 59)
        return false;
    *seconds += hour * 3600 + minute * 60 + second;
    return !has_seconds || take_fraction(text, seconds);
}

static bool take_zone(struct text *text, double *seconds)
{
    int hours, minutes = 0;
    if (text->at == text->end || take(text, 'Z'))
        return true;
    int sign = take(text, '-') ? -1 : take(text, '+') ? 1 : 0;
    if (!sign || !take_digits(text, 2, &hours))
        return false;
    if (text->at < text->end && (take(text, ':'), !take_digits(text, 2, &minutes)))
        return false;
    *seconds -= sign * (hours * 3600 + minutes * 60);
    return hours < 24 && minutes < 60;
}

bool date_parse(const char *text, size_t n, double *seconds)
{
    struct text rest = {text, text + n};
    int year, month, day;
    if (!take_date(&rest, &year, &month, &day) || year < 1 || month < 1 || month > 12 || day < 1 ||
        day > days_of_month(year, month))
        return false;
    int64_t days = days_before_year(year) + days_before_month(year, month) + day - 1 - EPOCH;
    *seconds = 0;
    if (rest.at < rest.end && ((!take(&rest, 'T') && !take(&rest, ' ')) ||
                               !take_time(&rest, seconds) || !take_zone(&rest, seconds)))
        return false;
    *seconds += (double)days * DAY;
    return rest.at == rest.end;
}

/* ---- parts ---- */

double date_part(double seconds, enum date_part part)
{
    int64_t whole = (int64_t)floor(seconds), days = whole / DAY - (whole % DAY < 0);
    int64_t of_day = whole - days * DAY, since = days + EPOCH;
    int year = (int)(since / 365.2425) + 1; /* at most one too many or too few */
    year -= days_before_year(year) > since;
    year += days_before_year(year + 1) <= since;
    int year_day = (int)(since - days_before_year(year)) + 1, month = 12;
    while (days_before_month(year, month) >= year_day)
        month--;
    switch (part) {
    case DATE_YEAR:
        return year;
    case DATE_MONTH:
        return month;
    case DATE_DAY:
        return year_day - days_before_month(year, month);
    case DATE_HOUR:
        return (double)(of_day / 3600);
    case DATE_MINUTE:
        return (double)(of_day / 60 % 60);
    case DATE_SECOND:
        return (double)(of_day % 60);
    case DATE_WEEKDAY:
        return (double)(since % 7); /* 0001-01-01 was a Monday */
    case DATE_YEARDAY:
        return year_day;
    default:
        return seconds;
    }
}
