/* SPDX-License-Identifier: Apache-2.0
 *
 * For fuzz targets of record streams: gives the fuzzer's headers the right length and checksum, so
 * that the reader does not stop at these.
 */
#ifndef TF_TESTS_LIB_FUZZ_STREAM_H
#define TF_TESTS_LIB_FUZZ_STREAM_H

#include "base/map.h"
#include "base/str.h"

static inline void append_header(struct str *stream, const void *header, size_t n)
{
    uint8_t prefix[5] = {0xce}, sum[9] = {0xcf};
    size_t total = n + 4 + sizeof sum;
    struct str whole = STR_INIT;
    str_append_bytes(&whole, header, n);
    str_append_bytes(&whole, "\xa3sum", 4);
    uint64_t hash = hash_bytes(whole.data, whole.n, 0);
    for (int i = 0; i < 4; i++)
        prefix[1 + i] = (uint8_t)(total >> (24 - 8 * i));
    for (int i = 0; i < 8; i++)
        sum[1 + i] = (uint8_t)(hash >> (56 - 8 * i));
    str_append_bytes(stream, prefix, sizeof prefix);
    str_append_bytes(stream, whole.data, whole.n);
    str_append_bytes(stream, sum, sizeof sum);
    str_release(&whole);
}

/* Takes two bytes of length and as many bytes as they say. */
static inline size_t take_part(const uint8_t **data, size_t *size, const uint8_t **part)
{
    size_t n = *size < 2 ? 0 : (size_t)(*data)[0] << 8 | (*data)[1];
    size_t skipped = *size < 2 ? *size : 2;
    n = n < *size - skipped ? n : *size - skipped;
    *part = *data + skipped;
    *data += skipped + n;
    *size -= skipped + n;
    return n;
}

/* Appends records: a header and a body each, both preceded by two bytes with their length. */
static inline void append_records(struct str *stream, const uint8_t *data, size_t size)
{
    while (size) {
        const uint8_t *part;
        size_t n = take_part(&data, &size, &part);
        append_header(stream, part, n);
        n = take_part(&data, &size, &part);
        str_append_bytes(stream, part, n);
    }
}

#endif
