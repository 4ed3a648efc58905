/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tensor/tensor.h"

static const enum dtype all_types[] = {
#define X(constant, name, number, bytes, npy) constant,
    DTYPE_LIST(X)
#undef X
};
#define N_TYPES (sizeof all_types / sizeof all_types[0])

static void check_literal(const char *text, enum dtype type, const char *typed, const char *printed)
{
    struct error err = ERROR_INIT;
    struct tensor t = TENSOR_INIT;
    struct str out = STR_INIT;
    const char *end = tensor_parse(&t, text, type, &err);
    if (!end)
        fail_msg("%s: %s", text, err.text);
    assert_string_equal(end, "");
    assert_string_equal(shape_text_typed(t.type, &t.shape), typed);
    tensor_print(&out, &t, -1);
    assert_string_equal(str_text(&out), printed);
    str_release(&out);
    tensor_release(&t);
}

static void test_literals(void **state)
{
    (void)state;
    check_literal("1", DTYPE_INVALID, "int32[]", "1");
    check_literal("[1, 2.5]", DTYPE_INVALID, "float32[2]", "[1,2.5]");
    check_literal("[[1,2],\n [3,4]]", DTYPE_INVALID, "int32[2,2]", "[[1,2],[3,4]]");
    check_literal("[true,false]", DTYPE_INVALID, "bool[2]", "[true,false]");
    check_literal("[\"a\\n\\xff\\\"\",\"\xc3\xa4\"]", DTYPE_INVALID, "string[2]",
                  "[\"a\\n\\xff\\\"\",\"\xc3\xa4\"]");
    check_literal("[]", DTYPE_INVALID, "float32[0]", "[]");
    check_literal("[[],[]]", INT8, "int8[2,0]", "[[],[]]");
    check_literal("[nan,-inf,-0.0,1e-8]", FLOAT64, "float64[4]", "[nan,-inf,-0,1e-08]");
    check_literal("[1-2j,3j,4]", DTYPE_INVALID, "complex64[3]", "[1-2j,0+3j,4+0j]");
    check_literal("[-9223372036854775808]", INT64, "int64[1]", "[-9223372036854775808]");
    check_literal("18446744073709551615", UINT64, "uint64[]", "18446744073709551615");
    check_literal("[2.0,1e3]", INT32, "int32[2]", "[2,1000]");
    check_literal("[1e17,2]", INT64, "int64[2]", "[100000000000000000,2]");
    check_literal("[[[[[[[[7]]]]]]]]", INT16, "int16[1,1,1,1,1,1,1,1]", "[[[[[[[[7]]]]]]]]");
}

static void check_refused(const char *text, enum dtype type, const char *message)
{
    struct error err = ERROR_INIT;
    struct tensor t = TENSOR_INIT;
    assert_null(tensor_parse(&t, text, type, &err));
    assert_int_equal(err.code, ERR_DATA);
    assert_string_equal(err.text, message);
}

static void test_bad_literals(void **state)
{
    (void)state;
    check_refused("", FLOAT32, "expected a value but the text ends");
    check_refused("[1,", FLOAT32, "expected a value but the text ends");
    check_refused("[1,]", FLOAT32, "expected a value at ']'");
    check_refused("[1 2]", FLOAT32, "expected ',' or ']' at '2]'");
    check_refused("[[1],2]", FLOAT32, "elements at different depths (2 and 1)");
    check_refused("[[1],[[2]]]", FLOAT32, "elements at different depths (2 and 3)");
    check_refused("[[1],[2,3]]", FLOAT32, "lists of different lengths (1 and 2)");
    check_refused("[[1],[]]", FLOAT32, "lists of different lengths (1 and 0)");
    check_refused("[[[[[[[[[1]]]]]]]]]", FLOAT32, "more than 8 nested lists");
    check_refused("256", UINT8, "256 does not fit in uint8");
    check_refused("-129", INT8, "-129 does not fit in int8");
    check_refused("-1", UINT32, "-1 does not fit in uint32");
    check_refused("9223372036854775808", INT64, "9223372036854775808 does not fit in int64");
    check_refused("1.5", INT32, "1.5 does not fit in int32");
    check_refused("\"x\"", FLOAT32, "strings where float32 is expected");
    check_refused("\"x", STRING, "expected a well-formed string at '\"x'");
    check_refused("[1,true]", DTYPE_INVALID, "expected elements of one kind at 'true]'");
    check_refused("1x", FLOAT32, "expected a value at '1x'");
}

/* Random bit patterns are printed and read back; the C library defines the values of decimals. */
static void test_floats_round_trip(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct str out = STR_INIT;
    unsigned seed = 1;
    for (int i = 0; i < 20000; i++) {
        uint32_t bits = (uint32_t)rand_r(&seed) << 16 ^ (uint32_t)rand_r(&seed);
        float value;
        memcpy(&value, &bits, sizeof value);
        if (isnan(value))
            continue;
        struct tensor t = tensor_borrow(FLOAT32, &SHAPE_SCALAR, &value), back;
        str_clear(&out);
        tensor_print(&out, &t, -1);
        assert_true(strtof(str_text(&out), NULL) == value);
        assert_non_null(tensor_parse(&back, str_text(&out), FLOAT32, &err));
        assert_true(tensor_equal(&t, &back));
        tensor_release(&back);
    }
    str_release(&out);
}

static void test_decimals(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    unsigned seed = 2;
    for (int i = 0; i < 20000; i++) {
        char text[64];
        struct tensor t;
        snprintf(text, sizeof text, "%d.%de%d", rand_r(&seed) % 100, rand_r(&seed),
                 rand_r(&seed) % 90 - 45);
        assert_non_null(tensor_parse(&t, text, FLOAT32, &err));
        assert_true(*(float *)t.data == strtof(text, NULL));
        tensor_release(&t);
        assert_non_null(tensor_parse(&t, text, FLOAT64, &err));
        assert_true(*(double *)t.data == strtod(text, NULL));
        tensor_release(&t);
    }
}

static void test_print_limit(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct tensor t;
    struct str out = STR_INIT;
    assert_non_null(tensor_parse(&t, "[[1,2],[3,4],[5,6]]", INT32, &err));
    tensor_print(&out, &t, 3);
    assert_string_equal(str_text(&out), "[[1,2],[3,...],...]");
    tensor_release(&t);
    int64_t dims[] = {1000000000, 0};
    struct shape shape = shape_of(2, dims);
    assert_int_equal(tensor_alloc(&t, FLOAT32, &shape, &err), 0);
    str_clear(&out);
    tensor_print(&out, &t, 2);
    assert_string_equal(str_text(&out), "[[],[],...]");
    tensor_release(&t);
    str_release(&out);
}

/* Every 16-bit pattern: its value comes from the definition, and the nearest even pattern from a
 * search among neighbours. */
static void check_16_bits(float (*widen)(uint16_t), uint16_t (*narrow)(float), int fraction_bits,
                          int bias)
{
    for (uint32_t i = 0; i < 0x10000; i++) {
        int exponent = (int)(i & 0x7fff) >> fraction_bits, top = (0x7fff >> fraction_bits);
        uint32_t fraction = i & ((1u << fraction_bits) - 1);
        float value = widen((uint16_t)i);
        if (exponent == top && fraction) {
            assert_true(isnan(value) && isnan(widen(narrow(value))));
            continue;
        }
        double expected = exponent ? ldexp(1 + ldexp(fraction, -fraction_bits), exponent - bias)
                                   : ldexp(fraction, 1 - bias - fraction_bits);
        expected = exponent == top ? INFINITY : expected;
        assert_true(fabs((double)value) == expected && !signbit(value) == !(i & 0x8000));
        assert_int_equal(narrow(value), i);
        if (exponent == top)
            continue;
        /* Halfway to the next pattern goes to the even one; beyond it, to the next. */
        float next = exponent == top - 1 && fraction == (1u << fraction_bits) - 1
                         ? (float)ldexp(1, top - bias)
                         : fabsf(widen((uint16_t)(i + 1)));
        if (isinf(next))
            continue; /* the largest float lies below it */
        float middle = (float)(((double)fabsf(value) + (double)next) / 2);
        uint32_t sign = i & 0x8000, up = (i & 0x7fff) + 1;
        float s = sign ? -1.f : 1.f;
        assert_int_equal(narrow(s * middle), sign | (i & 1 ? up : i & 0x7fff));
        assert_int_equal(narrow(s * nextafterf(middle, INFINITY)), sign | up);
        assert_int_equal(narrow(s * nextafterf(middle, 0)), i);
    }
}

static void test_16_bit_floats(void **state)
{
    (void)state;
    check_16_bits(float16_to_float32, float32_to_float16, 10, 15);
    check_16_bits(bfloat16_to_float32, float32_to_bfloat16, 7, 127);
}

/* Every numeric type holds small whole numbers, set as integers or as floats. */
static void test_elements(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    for (size_t i = 0; i < N_TYPES; i++) {
        struct tensor t, copy;
        if (all_types[i] == STRING)
            continue;
        int64_t seven = all_types[i] == BOOL ? 1 : 7;
        struct shape shape = shape_vector(3);
        assert_int_equal(tensor_alloc(&t, all_types[i], &shape, &err), 0);
        tensor_set_float64(&t, 0, (double)seven);
        tensor_set_int64(&t, 1, seven);
        tensor_set_int64(&t, 2, 0);
        if (all_types[i] == COMPLEX64)
            assert_true(((float *)t.data)[3] == 0);
        assert_true(tensor_get_float64(&t, 1) == (double)seven && !tensor_get_float64(&t, 2));
        assert_int_equal(tensor_get_int64(&t, 0), seven);
        assert_int_equal(tensor_copy(&copy, &t, &err), 0);
        assert_true(tensor_equal(&t, &copy));
        tensor_set_int64(&copy, 2, 1);
        assert_false(tensor_equal(&t, &copy));
        tensor_release(&copy);
        tensor_release(&t);
    }
}

static void test_conversion_ends(void **state)
{
    (void)state;
    uint8_t byte;
    struct tensor t = tensor_borrow(UINT8, &SHAPE_SCALAR, &byte);
    tensor_set_float64(&t, 0, 300);
    assert_int_equal(byte, 255);
    tensor_set_float64(&t, 0, -1);
    assert_int_equal(byte, 0);
    tensor_set_float64(&t, 0, (double)NAN);
    assert_int_equal(byte, 0);
    uint16_t half;
    t = tensor_borrow(FLOAT16, &SHAPE_SCALAR, &half);
    tensor_set_float64(&t, 0, 1 + 0x1p-11 + 0x1p-40); /* rounded to float first, it would be 1 */
    assert_int_equal(half, 0x3c01);
    double infinite = (double)INFINITY;
    t = tensor_borrow(FLOAT64, &SHAPE_SCALAR, &infinite);
    assert_true(tensor_get_int64(&t, 0) == INT64_MAX);
}

static void test_shared_memory(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct tensor a, b;
    const char *texts[] = {"one", "", "three"};
    struct shape shape = shape_vector(3);
    assert_int_equal(tensor_from_strings(&a, &shape, texts, NULL, &err), 0);
    assert_int_equal(tensor_bytes(&a), 4 * 8 + 8);
    tensor_share(&b, &a);
    tensor_release(&a);
    assert_null(a.data);
    const char *text;
    size_t n;
    tensor_string(&b, 2, &text, &n);
    assert_int_equal(n, 5);
    assert_memory_equal(text, "three", 5);
    tensor_release(&b);
    tensor_release(&b);
    shape = shape_matrix((int64_t)1 << 40, (int64_t)1 << 40);
    assert_int_equal(tensor_alloc(&a, FLOAT64, &shape, &err), ERR_DATA);
}

static struct shape parsed(const char *text)
{
    struct shape shape;
    if (!shape_parse(text, &shape))
        fail_msg("%s", text);
    assert_string_equal(shape_text(&shape), text);
    return shape;
}

/* Each row: two shapes, and the results of merge, join and broadcast; NULL: a contradiction. */
static void test_shapes(void **state)
{
    (void)state;
    static const char *const rows[][5] = {
        {"[2,3]", "[2,3]", "[2,3]", "[2,3]", "[2,3]"},
        {"[?,3]", "[2,?]", "[2,3]", "[?,?]", "[2,3]"},
        {"?", "[2,3]", "[2,3]", "?", "?"},
        {"[1,3]", "[2,3]", NULL, "[?,3]", "[2,3]"},
        {"[3]", "[2,1]", NULL, "?", "[2,3]"},
        {"[?]", "[1]", "[1]", "[?]", "[?]"},
        {"[0]", "[1]", NULL, "[?]", "[0]"},
        {"[2]", "[3]", NULL, "[?]", NULL},
        {"[]", "[4,5]", NULL, "?", "[4,5]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int swap = 0; swap < 2; swap++) {
            struct shape a = parsed(rows[i][swap]), b = parsed(rows[i][1 - swap]), result;
            assert_int_equal(shape_merge(&a, &b, &result), rows[i][2] != NULL);
            if (rows[i][2])
                assert_string_equal(shape_text(&result), rows[i][2]);
            assert_int_equal(shape_compatible(&a, &b), rows[i][2] != NULL);
            result = shape_join(&a, &b);
            assert_string_equal(shape_text(&result), rows[i][3]);
            assert_int_equal(shape_broadcast(&a, &b, &result), rows[i][4] != NULL);
            if (rows[i][4])
                assert_string_equal(shape_text(&result), rows[i][4]);
        }
    }
}

static void test_shape_sizes(void **state)
{
    (void)state;
    struct shape shape = parsed("[2,3,4]");
    int64_t strides[SHAPE_RANK_MAX];
    int axis;
    shape_strides(&shape, strides);
    assert_true(strides[0] == 12 && strides[1] == 4 && strides[2] == 1);
    assert_int_equal(shape_bytes(&shape, COMPLEX64), 192);
    assert_int_equal(shape_bytes(&shape, STRING), -1);
    assert_true(shape_axis(-1, 3, &axis) && axis == 2);
    assert_false(shape_axis(3, 3, &axis) || shape_axis(-4, 3, &axis));
    shape = parsed("[4611686018427387904,4]");
    assert_int_equal(shape_count(&shape), -1);
    shape = parsed("[0,4611686018427387904,4611686018427387904]");
    assert_int_equal(shape_count(&shape), -1);
    shape = parsed("[5,0]");
    assert_int_equal(shape_count(&shape), 0);
    shape = parsed("[5,?]");
    assert_int_equal(shape_count(&shape), -1);
}

static void test_bad_shapes(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "[",
                                      "]",
                                      "[1",
                                      "[1,]",
                                      "[,1]",
                                      "[-1]",
                                      "[1]x",
                                      "??",
                                      "[1 2]",
                                      "[1,1,1,1,1,1,1,1,1]",
                                      "[9223372036854775808]"};
    struct shape shape;
    enum dtype type;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(shape_parse(bad[i], &shape));
    assert_true(shape_parse("[ 1, ? ]", &shape) && shape.rank == 2);
    assert_true(shape_parse_typed("float32", &type, &shape) && shape.rank == SHAPE_UNKNOWN);
    assert_true(shape_parse_typed("int8[?,64]", &type, &shape) && type == INT8);
    assert_string_equal(shape_text_typed(type, &shape), "int8[?,64]");
    assert_false(shape_parse_typed("float33[1]", &type, &shape));
    assert_false(shape_parse_typed("a_very_long_type_name[1]", &type, &shape));
}

static void test_dtypes(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_TYPES; i++) {
        enum dtype type;
        assert_true(dtype_parse(dtype_name(all_types[i]), &type) && type == all_types[i]);
        const char *npy = dtype_npy(type);
        if (npy)
            assert_int_equal(npy[2] - '0', dtype_bytes(type));
    }
    assert_string_equal(dtype_name(DTYPE_INVALID), "invalid");
    assert_string_equal(dtype_name((enum dtype)77), "invalid");
    assert_true(dtype_is_floating(BFLOAT16) && !dtype_is_floating(COMPLEX64));
    assert_true(dtype_is_integer(UINT64) && !dtype_is_integer(BOOL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_literals),
        cmocka_unit_test(test_bad_literals),
        cmocka_unit_test(test_floats_round_trip),
        cmocka_unit_test(test_decimals),
        cmocka_unit_test(test_print_limit),
        cmocka_unit_test(test_16_bit_floats),
        cmocka_unit_test(test_elements),
        cmocka_unit_test(test_conversion_ends),
        cmocka_unit_test(test_shared_memory),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_shape_sizes),
        cmocka_unit_test(test_bad_shapes),
        cmocka_unit_test(test_dtypes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
