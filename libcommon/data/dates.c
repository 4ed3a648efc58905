/* SPDX-License-Identifier: Apache-2.0 */
#include "data/dates.h"

#include <math.h>
#include <stdint.h>

#include "base/vec.h"

#define DAY 86400

static const char *const part_names[] = {"seconds", "year",   "month",   "day",    "hour",
                                         "minute",  "second", "weekday", "yearday"};

bool date_part_parse(const char *name, enum date_part *part)
{
    const size_t n = sizeof part_names / sizeof *part_names;
    *part = (enum date_part)names_find(part_names, n, name);
    return *part < n;
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

/* Returns the days from 0001-01-01 to the first day of a year; a zone may make the year 0. */
static int64_t days_before_year(int year)
{
    int64_t y = year + 399; /* 400 years are 146,097 days */
    return y * 365 + y / 4 - y / 100 + y / 400 - 146097;
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

/* Parses one digit or two. */
static bool take_short(struct text *text, int *value)
{
    bool is_one = text->end - text->at < 2 || text->at[1] < '0' || text->at[1] > '9';
    return take_digits(text, is_one ? 1 : 2, value);
}

static bool take_date(struct text *text, int *year, int *month, int *day)
{
    const char *at = text->at;
    if (text->end - at > 2 && (at[1] == '.' || at[2] == '.'))
        return take_short(text, day) && take(text, '.') && take_short(text, month) &&
               take(text, '.') && take_digits(text, 4, year);
    if (!take_digits(text, 4, year))
        return false;
    char mark = text->at < text->end && (*text->at == '-' || *text->at == '/') ? *text->at : '\0';
    if (!mark)
        return take_digits(text, 2, month) && take_digits(text, 2, day);
    return take(text, mark) && take_short(text, month) && take(text, mark) && take_short(text, day);
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
    const double parts[] = {
        [DATE_SECONDS] = seconds,
        [DATE_YEAR] = year,
        [DATE_MONTH] = month,
        [DATE_DAY] = year_day - days_before_month(year, month),
        [DATE_HOUR] = (double)(of_day / 3600),
        [DATE_MINUTE] = (double)(of_day / 60 % 60),
        [DATE_SECOND] = (double)(of_day % 60),
        [DATE_WEEKDAY] = (double)((since + 7) % 7), /* 0001-01-01 was a Monday */
        [DATE_YEARDAY] = year_day,
    };
    return parts[part];
}
