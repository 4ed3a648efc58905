/* SPDX-License-Identifier: Apache-2.0 */
#include "resource/push.h"

#include "base/map.h"

#define COUNT_BITS 40 /* a push per millisecond for 35 years; the other bits hold the sum */

uint64_t push_count_seal(int64_t worker, int64_t count)
{
    const int64_t both[] = {worker, count};
    return (uint64_t)count | hash_bytes(both, sizeof both, 0) >> COUNT_BITS << COUNT_BITS;
}

int64_t push_count_open(int64_t worker, uint64_t sealed)
{
    int64_t count = (int64_t)(sealed & ((UINT64_C(1) << COUNT_BITS) - 1));
    return push_count_seal(worker, count) == sealed ? count : -1;
}
