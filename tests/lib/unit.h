/* SPDX-License-Identifier: Apache-2.0
 *
 * What most unit tests need: cmocka with the headers that it omits, random numbers, and the
 * assertion that a call failed as expected.
 */
#ifndef TF_TESTS_LIB_UNIT_H
#define TF_TESTS_LIB_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/error.h"
#include "lib/random.h"

/* Output is not lost if the program is killed. */
__attribute__((constructor)) static void unit_print_by_line(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
}

/* Asserts the returned code, the stored code, and the whole message. */
#define unit_assert_error(result, err, wanted, message)                                            \
    do {                                                                                           \
        assert_int_equal((result), (wanted));                                                      \
        assert_int_equal((err).code, (wanted));                                                    \
        assert_string_equal((err).text, (message));                                                \
    } while (0)

#endif
