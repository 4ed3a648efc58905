/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tensor/box.h"

/* A tensor of 2 by 3 by 4, whose element [i, j, k] is 100 i + 10 j + k. */
static const struct box whole = {.rank = 3, .size = {2, 3, 4}};

static void fill(int whole_values[24])
{
    for (int n = 0; n < 24; n++)
        whole_values[n] = 100 * (n / 12) + 10 * (n / 4 % 3) + n % 4;
}

static bool is_inside(const struct box *part, int n)
{
    const int at[3] = {n / 12, n / 4 % 3, n % 4};
    bool inside = true;
    for (int i = 0; i < 3; i++)
        inside &= at[i] >= part->first[i] && at[i] < part->first[i] + part->size[i];
    return inside;
}

/* The part is copied out as `expected`, and back to its place. */
static void check_part(const struct box *part, const int *expected)
{
    int values[24], copy[24] = {0}, again[24];
    fill(values);
    box_copy(copy, part, values, &whole, sizeof *copy);
    assert_memory_equal(copy, expected, (size_t)box_count(part) * sizeof *copy);
    for (int n = 0; n < 24; n++)
        again[n] = is_inside(part, n) ? -1 : values[n];
    box_copy(again, &whole, copy, part, sizeof *copy);
    assert_memory_equal(again, values, sizeof values);
}

static void test_parts(void **state)
{
    (void)state;
    const struct box columns = {3, {0, 0, 1}, {2, 3, 2}};
    const struct box middle = {3, {0, 1, 0}, {2, 2, 4}};
    const struct box last = {3, {1, 0, 0}, {1, 3, 4}};
    const struct box cell = {3, {1, 2, 3}, {1, 1, 1}};
    check_part(&columns, (const int[]){1, 2, 11, 12, 21, 22, 101, 102, 111, 112, 121, 122});
    check_part(&middle, (const int[]){10, 11, 12, 13, 20, 21, 22, 23, 110, 111, 112, 113, 120, 121,
                                      122, 123});
    check_part(&last, (const int[]){100, 101, 102, 103, 110, 111, 112, 113, 120, 121, 122, 123});
    check_part(&cell, (const int[]){123});
}

/* The intersection of two parts, neither of which contains the other. */
static void test_overlap(void **state)
{
    (void)state;
    const struct box from = {2, {0, 1}, {2, 3}}, to = {2, {1, 0}, {2, 3}};
    const int values[6] = {1, 2, 3, 11, 12, 13};
    int result[6] = {-1, -1, -1, -1, -1, -1};
    box_copy(result, &to, values, &from, sizeof *values);
    assert_memory_equal(result, ((const int[]){-1, 11, 12, -1, -1, -1}), sizeof result);
}

static void test_ends(void **state)
{
    (void)state;
    const struct box scalar = {.rank = 0}, none = {2, {0, 0}, {0, 3}}, some = {2, {0, 0}, {2, 3}};
    const int one = 7, six[6] = {1, 2, 3, 4, 5, 6};
    int result = 0;
    box_copy(&result, &scalar, &one, &scalar, sizeof one);
    assert_int_equal(result, 7);
    box_copy(NULL, &none, six, &some, sizeof *six);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts), cmocka_unit_test(test_overlap),
                                       cmocka_unit_test(test_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
