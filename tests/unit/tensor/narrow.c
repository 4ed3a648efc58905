/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversions of arrays compared with those of single values, for all 16-bit values and around
 * every place where rounding changes.
 */
#include "tensor/narrow.h"

#include <stdlib.h>
#include <string.h>

#include "lib/unit.h"

#define ALL 65536

static const enum dtype types[] = {FLOAT16, BFLOAT16};

static void test_all_values_widen(void **state)
{
    static uint16_t from[ALL];
    static float to[ALL];
    (void)state;
    for (int i = 0; i < ALL; i++)
        from[i] = (uint16_t)i;
    for (int t = 0; t < 2; t++) {
        widen_floats(types[t], from, to, ALL);
        for (int i = 0; i < ALL; i++) {
            float expected =
                types[t] == FLOAT16 ? float16_to_float32(from[i]) : bfloat16_to_float32(from[i]);
            assert_memory_equal(&to[i], &expected, sizeof expected);
        }
    }
}

static void check_narrow(enum dtype type, const float *from, int64_t n)
{
    static uint16_t to[ALL];
    narrow_floats(type, from, to, n);
    for (int64_t i = 0; i < n; i++)
        assert_int_equal(to[i], type == FLOAT16 ? float32_to_float16(from[i])
                                                : float32_to_bfloat16(from[i]));
}

/* Each value, the middle between it and the next, and a bit to either side of that. */
static void test_rounding(void **state)
{
    static uint16_t all[ALL];
    static float wide[ALL];
    (void)state;
    for (int i = 0; i < ALL; i++)
        all[i] = (uint16_t)i;
    for (int t = 0; t < 2; t++) {
        uint32_t middle = types[t] == FLOAT16 ? 1u << 12 : 1u << 15;
        for (int around = -2; around <= 2; around++) {
            widen_floats(types[t], all, wide, ALL);
            for (int i = 0; i < ALL && around; i++) {
                uint32_t bits;
                memcpy(&bits, &wide[i], sizeof bits);
                bits += middle + (uint32_t)around - (around > 0);
                memcpy(&wide[i], &bits, sizeof bits);
            }
            check_narrow(types[t], wide, ALL);
        }
    }
}

static void test_any_bits(void **state)
{
    static float from[ALL];
    uint32_t bits = 1;
    (void)state;
    for (int round = 0; round < 16; round++) {
        for (int i = 0; i < ALL; i++) {
            bits = bits * 1664525 + 1013904223;
            memcpy(&from[i], &bits, sizeof bits);
        }
        for (int t = 0; t < 2; t++)
            check_narrow(types[t], from, ALL - round); /* with a rest after whole vectors */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_values_widen),
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_any_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
