/* SPDX-License-Identifier: Apache-2.0
 *
 * What most unit tests need: cmocka with the headers it forgets, random numbers that are the same
 * in each run, and the assertion that a call failed as it should.
 */
#ifndef TF_TESTS_LIB_UNIT_H
#define TF_TESTS_LIB_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"

/* splitmix64 (Steele, Lea, Flood 2014). */
static inline uint64_t unit_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* The code that came back, the one that was stored, and the whole message. */
#define unit_assert_error(result, err, wanted, message)                                            \
    do {                                                                                           \
        assert_int_equal((result), (wanted));                                                      \
        assert_int_equal((err).code, (wanted));                                                    \
        assert_string_equal((err).text, (message));                                                \
    } while (0)

#endif
