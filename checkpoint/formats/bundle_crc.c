/* SPDX-License-Identifier: Apache-2.0 */
#include <isa-l/crc.h>

#include "checkpoint/formats/bundle_private.h"

#define BLOCK_BYTES ((size_t)1 << 30) /* the library counts in int */

uint32_t bundle_crc(uint32_t crc, const void *data, size_t n)
{
    const unsigned char *p = data;
    crc = ~crc;
    for (size_t done = 0; done < n;) {
        size_t block = n - done < BLOCK_BYTES ? n - done : BLOCK_BYTES;
        crc = crc32_iscsi((unsigned char *)(uintptr_t)p + done, (int)block, crc);
        done += block;
    }
    return ~crc;
}

uint32_t bundle_crc_mask(uint32_t crc)
{
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8;
}
