/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops of comparisons and of the logic of booleans.
 */
#include <complex.h>

#include "ops/math/elementwise_cpu.h"
#include "ops/math/parallel_cpu.h"

#define COMPARE_LOOPS(op, ...)                                                                     \
    BINARY_LOOP(op##_float32, float, uint8_t, __VA_ARGS__)                                         \
    BINARY_LOOP(op##_float64, double, uint8_t, __VA_ARGS__)                                        \
    BINARY_LOOP(op##_int32, int32_t, uint8_t, __VA_ARGS__)                                         \
    BINARY_LOOP(op##_int64, int64_t, uint8_t, __VA_ARGS__)

COMPARE_LOOPS(less, x < y)
COMPARE_LOOPS(less_equal, x <= y)
COMPARE_LOOPS(greater, x > y)
COMPARE_LOOPS(greater_equal, x >= y)
BINARY_LOOP(less_uint64, uint64_t, uint8_t, x < y)
BINARY_LOOP(less_equal_uint64, uint64_t, uint8_t, x <= y)
BINARY_LOOP(greater_uint64, uint64_t, uint8_t, x > y)
BINARY_LOOP(greater_equal_uint64, uint64_t, uint8_t, x >= y)
COMPARE_LOOPS(equal, x == y)
COMPARE_LOOPS(not_equal, x != y)
BINARY_LOOP(equal_complex64, float complex, uint8_t, x == y)
BINARY_LOOP(not_equal_complex64, float complex, uint8_t, x != y)
BINARY_LOOP(equal_bool, uint8_t, uint8_t, x == y)
BINARY_LOOP(not_equal_bool, uint8_t, uint8_t, x != y)
BINARY_LOOP(logical_and, uint8_t, uint8_t, x &y)
BINARY_LOOP(logical_or, uint8_t, uint8_t, x | y)

#define ROWS(op, loop)                                                                             \
    {#op, FLOAT32, loop##_float32, #loop "_float32", PARALLEL_GRAIN_MOVE},                         \
        {#op, FLOAT64, loop##_float64, #loop "_float64", PARALLEL_GRAIN_MOVE},                     \
        {#op, INT32, loop##_int32, #loop "_int32", PARALLEL_GRAIN_MOVE},                           \
    {                                                                                              \
#op, INT64, loop##_int64, #loop "_int64", PARALLEL_GRAIN_MOVE                              \
    }

const struct binary_row binary_compare[] = {
    ROWS(Less, less),
    ROWS(LessEqual, less_equal),
    ROWS(Greater, greater),
    ROWS(GreaterEqual, greater_equal),
    ROWS(Equal, equal),
    ROWS(NotEqual, not_equal),
    {"Less", UINT64, less_uint64, "less_uint64", PARALLEL_GRAIN_MOVE},
    {"LessEqual", UINT64, less_equal_uint64, "less_equal_uint64", PARALLEL_GRAIN_MOVE},
    {"Greater", UINT64, greater_uint64, "greater_uint64", PARALLEL_GRAIN_MOVE},
    {"GreaterEqual", UINT64, greater_equal_uint64, "greater_equal_uint64", PARALLEL_GRAIN_MOVE},
    {"Equal", UINT64, equal_int64, "equal_int64", PARALLEL_GRAIN_MOVE},
    {"NotEqual", UINT64, not_equal_int64, "not_equal_int64", PARALLEL_GRAIN_MOVE},
    {"Equal", COMPLEX64, equal_complex64, "equal_complex64", PARALLEL_GRAIN_MOVE},
    {"NotEqual", COMPLEX64, not_equal_complex64, "not_equal_complex64", PARALLEL_GRAIN_MOVE},
    {"Equal", BOOL, equal_bool, "equal_bool", PARALLEL_GRAIN_MOVE},
    {"NotEqual", BOOL, not_equal_bool, "not_equal_bool", PARALLEL_GRAIN_MOVE},
    {"LogicalAnd", BOOL, logical_and, "logical_and", PARALLEL_GRAIN_MOVE},
    {"LogicalOr", BOOL, logical_or, "logical_or", PARALLEL_GRAIN_MOVE},
    {0},
};
