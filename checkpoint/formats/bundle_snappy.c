/* SPDX-License-Identifier: Apache-2.0
 *
 * Snappy, as its format_description.txt has it: the length as a varint, then elements, whose first
 * byte has the kind in its two lowest bits. This only unpacks, and only in memory. Snappy's library
 * would bring the C++ runtime into every program that reads checkpoints.
 */
#include <string.h>

#include "checkpoint/formats/bundle_private.h"

enum { LITERAL, COPY_NEAR, COPY, COPY_FAR };

bool snappy_length(struct wire_bytes packed, uint64_t *n)
{
    uint64_t bytes = (uint64_t)(packed.end - packed.p);
    *n = wire_varint(&packed);
    return !packed.bad && *n <= SNAPPY_RATIO_MAX * bytes;
}

static uint64_t little_endian(struct wire_bytes *in, int bytes)
{
    struct wire_bytes part = wire_take(in, (uint64_t)bytes);
    uint64_t value = 0;
    for (const uint8_t *p = part.end; p-- > part.p;)
        value = value << 8 | *p;
    return value;
}

bool snappy_unpack(struct wire_bytes packed, uint8_t *bytes, uint64_t n)
{
    uint64_t done = 0;
    wire_varint(&packed);
    while (packed.p < packed.end && !packed.bad) {
        uint8_t tag = *packed.p++;
        if ((tag & 3) == LITERAL) {
            /* Lengths above 60 follow in one to four bytes. */
            int extra = (tag >> 2) - 59;
            struct wire_bytes text =
                wire_take(&packed, 1 + (extra > 0 ? little_endian(&packed, extra) : tag >> 2));
            uint64_t length = (uint64_t)(text.end - text.p);
            if (packed.bad || length > n - done)
                return false;
            memcpy(bytes + done, text.p, length);
            done += length;
            continue;
        }
        uint64_t length = (tag & 3) == COPY_NEAR ? 4 + (tag >> 2 & 7) : 1 + (tag >> 2);
        uint64_t offset = (tag & 3) == COPY_NEAR
                              ? (uint64_t)(tag >> 5) << 8 | little_endian(&packed, 1)
                              : little_endian(&packed, (tag & 3) == COPY ? 2 : 4);
        if (packed.bad || !offset || offset > done || length > n - done)
            return false;
        for (; length; length--, done++) /* they may overlap: this encodes runs */
            bytes[done] = bytes[done - offset];
    }
    return !packed.bad && done == n;
}
