/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of positions in the syntax of cut(1): "1-64", "1,3-5", "1438-". Positions count from 1.
 */
#ifndef TF_DATA_RANGES_H
#define TF_DATA_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"

#define RANGE_OPEN INT64_MAX /* "1438-": to the end */

struct range {
    int64_t first, last; /* inclusive */
};

struct ranges {
    struct range *items;
    size_t n, capacity;
};

/* Parses one item, "7", "3-5", "3-" or "-5"; false for any other text. */
bool range_parse(const char *text, size_t n, struct range *range);

/* Parses a whole list; sorts it and merges overlaps. ERR_USAGE. Release it also after a failure. */
int ranges_parse(const char *text, struct ranges *ranges, struct error *err);
void ranges_release(struct ranges *ranges);

/* An empty list contains everything. */
bool ranges_contain(const struct ranges *ranges, int64_t position);
int64_t ranges_last(const struct ranges *ranges); /* RANGE_OPEN: no last one */

#endif
