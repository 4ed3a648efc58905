/* SPDX-License-Identifier: Apache-2.0
 *
 * Dates. Of what is one, the parts are in their ranges, and make up the same second again.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "data/dates.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int part(double seconds, enum date_part which, int least, int most)
{
    double value = date_part(seconds, which);
    if (value < least || value > most || value != floor(value))
        abort();
    return (int)value;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    double seconds, again;
    char text[64];
    if (!date_parse((const char *)data, size, &seconds))
        return 0;
    int year = part(seconds, DATE_YEAR, 0, 10000), month = part(seconds, DATE_MONTH, 1, 12);
    int day = part(seconds, DATE_DAY, 1, 31), hour = part(seconds, DATE_HOUR, 0, 23);
    int minute = part(seconds, DATE_MINUTE, 0, 59), second = part(seconds, DATE_SECOND, 0, 59);
    part(seconds, DATE_WEEKDAY, 0, 6);
    part(seconds, DATE_YEARDAY, 1, 366);
    int n = snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d", year, month, day, hour,
                     minute, second);
    /* A zone may put the first and the last day of all outside. */
    if (year >= 1 && year <= 9999 &&
        (!date_parse(text, (size_t)n, &again) || again != floor(seconds)))
        abort();
    return 0;
}
