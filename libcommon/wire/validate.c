/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/validate.h"

#include <stdbool.h>

#include "wire/limits.h"

enum content { CONTENT_BYTES, CONTENT_ARRAY, CONTENT_MAP, CONTENT_NONE };

/* A tag is followed by a length of `length` bytes, and by `fixed` bytes. */
struct tag {
    uint8_t length, fixed;
    enum content content;
};

/* The tags 0xc0 to 0xdf, by the msgpack specification. */
static const struct tag tags[32] = {
    {0, 0, CONTENT_BYTES},                                                /* nil */
    {0, 0, CONTENT_NONE},                                                 /* never used */
    {0, 0, CONTENT_BYTES},  {0, 0, CONTENT_BYTES},                        /* false, true */
    {1, 0, CONTENT_BYTES},  {2, 0, CONTENT_BYTES}, {4, 0, CONTENT_BYTES}, /* bin */
    {1, 1, CONTENT_BYTES},  {2, 1, CONTENT_BYTES}, {4, 1, CONTENT_BYTES}, /* ext */
    {0, 4, CONTENT_BYTES},  {0, 8, CONTENT_BYTES},                        /* float */
    {0, 1, CONTENT_BYTES},  {0, 2, CONTENT_BYTES}, {0, 4, CONTENT_BYTES}, /* uint */
    {0, 8, CONTENT_BYTES},  {0, 1, CONTENT_BYTES}, {0, 2, CONTENT_BYTES}, /* uint 64, int */
    {0, 4, CONTENT_BYTES},  {0, 8, CONTENT_BYTES}, {0, 2, CONTENT_BYTES}, /* int, fixext */
    {0, 3, CONTENT_BYTES},  {0, 5, CONTENT_BYTES}, {0, 9, CONTENT_BYTES}, /* fixext */
    {0, 17, CONTENT_BYTES}, {1, 0, CONTENT_BYTES}, {2, 0, CONTENT_BYTES}, /* fixext 16, str */
    {4, 0, CONTENT_BYTES},  {2, 0, CONTENT_ARRAY}, {4, 0, CONTENT_ARRAY},
    {2, 0, CONTENT_MAP},    {4, 0, CONTENT_MAP},
};

/* Measures one object at p: its bytes without its elements, and how many elements follow. */
static inline bool measure(const uint8_t *p, size_t left, size_t *bytes, size_t *elements)
{
    *bytes = 1;
    *elements = 0;
    if (*p < 0x80 || *p >= 0xe0)
        return true;
    if (*p < 0xc0) {
        if (*p >= 0xa0)
            *bytes += *p & 0x1f;
        else
            *elements = *p < 0x90 ? (*p & 0xf) * 2u : *p & 0xf;
    } else {
        const struct tag *tag = &tags[*p - 0xc0];
        size_t length = 0;
        if (tag->content == CONTENT_NONE || left < 1u + tag->length)
            return false;
        for (int i = 1; i <= tag->length; i++)
            length = length << 8 | p[i];
        *bytes += (size_t)tag->length + tag->fixed;
        if (tag->content == CONTENT_BYTES)
            *bytes += length;
        else
            *elements = tag->content == CONTENT_MAP ? length * 2 : length;
    }
    return *bytes <= left && *elements <= left - *bytes;
}

int header_measure(const uint8_t *data, size_t n, size_t *n_objects, struct error *err)
{
    size_t outer[LIMIT_HEADER_DEPTH]; /* elements left in the enclosing containers */
    size_t at = 0, count = 0, left = 1, bytes, elements;
    int depth = 0;
    if (!n || (((*data) & 0xf0) != 0x80 && (*data) != 0xde && (*data) != 0xdf))
        return error_set(err, ERR_DATA, "a header is not a map");
    while (left) {
        if (at >= n || !measure(data + at, n - at, &bytes, &elements))
            return error_set(err, ERR_DATA, "malformed header");
        if (++count > LIMIT_HEADER_OBJECTS)
            return error_set(err, ERR_DATA, "a header of more than %zu objects",
                             LIMIT_HEADER_OBJECTS);
        at += bytes;
        left--;
        if (elements && depth == LIMIT_HEADER_DEPTH)
            return error_set(err, ERR_DATA, "a header is nested deeper than %d",
                             LIMIT_HEADER_DEPTH);
        if (elements) {
            outer[depth++] = left;
            left = elements;
        }
        while (!left && depth)
            left = outer[--depth];
    }
    *n_objects = count;
    if (at != n)
        return error_set(err, ERR_DATA, "a header has %zu bytes too many", n - at);
    return 0;
}

int header_validate(const uint8_t *data, size_t n, struct error *err)
{
    size_t n_objects;
    return header_measure(data, n, &n_objects, err);
}
