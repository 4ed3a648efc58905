/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops of comparisons and of the logic of booleans.
 */
#include <complex.h>

#include "ops/math/elementwise_cpu.h"
#include "ops/math/parallel_cpu.h"

/* X(op, loop, element) */
#define COMPARE_OPS(X)                                                                             \
    X(Less, less, x < y)                                                                           \
    X(LessEqual, less_equal, x <= y)                                                               \
    X(Greater, greater, x > y)                                                                     \
    X(GreaterEqual, greater_equal, x >= y)                                                         \
    X(Equal, equal, x == y)                                                                        \
    X(NotEqual, not_equal, x != y)

#define LOOPS(op, name, ...)                                                                       \
    BINARY_LOOP(name##_float32, float, uint8_t, __VA_ARGS__)                                       \
    BINARY_LOOP(name##_float64, double, uint8_t, __VA_ARGS__)                                      \
    BINARY_LOOP(name##_int32, int32_t, uint8_t, __VA_ARGS__)                                       \
    BINARY_LOOP(name##_int64, int64_t, uint8_t, __VA_ARGS__)                                       \
    BINARY_LOOP(name##_uint64, uint64_t, uint8_t, __VA_ARGS__)
#define ROWS(op, name, ...) REAL_ROWS(op, name, MOVE) ELEMENT_ROW(op, UINT64, name##_uint64, MOVE)

COMPARE_OPS(LOOPS)
BINARY_LOOP(equal_complex64, float complex, uint8_t, x == y)
BINARY_LOOP(not_equal_complex64, float complex, uint8_t, x != y)
BINARY_LOOP(equal_bool, uint8_t, uint8_t, x == y)
BINARY_LOOP(not_equal_bool, uint8_t, uint8_t, x != y)
BINARY_LOOP(logical_and, uint8_t, uint8_t, x &y)
BINARY_LOOP(logical_or, uint8_t, uint8_t, x | y)

/* clang-format off */
const struct binary_row binary_compare[] = {
    COMPARE_OPS(ROWS)
    ELEMENT_ROW(Equal, COMPLEX64, equal_complex64, MOVE)
    ELEMENT_ROW(NotEqual, COMPLEX64, not_equal_complex64, MOVE)
    ELEMENT_ROW(Equal, BOOL, equal_bool, MOVE)
    ELEMENT_ROW(NotEqual, BOOL, not_equal_bool, MOVE)
    ELEMENT_ROW(LogicalAnd, BOOL, logical_and, MOVE)
    ELEMENT_ROW(LogicalOr, BOOL, logical_or, MOVE)
    {0},
};
/* clang-format on */
