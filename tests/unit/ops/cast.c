/* SPDX-License-Identifier: Apache-2.0
 *
 * Casts to and from 16 bits, compared with conversions of single values: all 16-bit values, the
 * places where rounding changes, and a sample of all float32 and float64.
 */
#include <math.h>
#include <string.h>

#include "lib/unit.h"
#include "ops/eager.h"

#define ALL 65536
#define ROUNDS 24

static struct device *device;

static uint64_t next(void)
{
    static uint64_t state = 7;
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static void check(const struct tensor *x, enum dtype to)
{
    struct error err = ERROR_INIT;
    struct eager_input input = {TENSOR_INIT, NULL};
    struct eager_attr attr = {"DstT", dtype_name(to)};
    struct eager_call call = {.op = "Cast",
                              .inputs = &input,
                              .n_inputs = 1,
                              .attrs = &attr,
                              .n_attrs = 1,
                              .device = device};
    struct eager_result result = {0};
    struct tensor expected = TENSOR_INIT;
    assert_int_equal(tensor_copy(&input.tensor, x, &err), 0);
    assert_int_equal(eager_run(&call, &result, &err), 0);
    assert_int_equal(tensor_alloc(&expected, to, &x->shape, &err), 0);
    for (int64_t i = 0; i < tensor_count(x); i++)
        tensor_set_float64(&expected, i, tensor_get_float64(x, i));
    assert_memory_equal(result.outputs[0].data, expected.data, tensor_bytes(&expected));
    tensor_release(&expected);
    tensor_release(&input.tensor);
    eager_release(&result);
}

static const enum dtype others[] = {FLOAT32, FLOAT64, FLOAT16, BFLOAT16, INT8,   INT16,
                                    INT32,   INT64,   UINT8,   UINT16,   UINT32, UINT64};

/* These include NaNs, infinities and subnormals. */
static void test_all_from_16_bits(void **state)
{
    static uint16_t all[ALL];
    const struct shape shape = shape_vector(ALL);
    (void)state;
    for (int i = 0; i < ALL; i++)
        all[i] = (uint16_t)i;
    for (enum dtype from = FLOAT16;; from = BFLOAT16) {
        struct tensor x = tensor_borrow(from, &shape, all);
        for (size_t k = 0; k < sizeof others / sizeof *others; k++)
            if (others[k] != from)
                check(&x, others[k]);
        if (from == BFLOAT16)
            return;
    }
}

static void check_both(enum dtype from, void *values, int64_t n)
{
    const struct shape shape = shape_vector(n);
    struct tensor x = tensor_borrow(from, &shape, values);
    check(&x, FLOAT16);
    check(&x, BFLOAT16);
}

/* Odd counts: whole vectors and a rest. */
static void test_any_bits(void **state)
{
    static uint32_t singles[ALL];
    static uint64_t doubles[ALL];
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < ALL; i++) {
            doubles[i] = next();
            singles[i] = (uint32_t)next();
        }
        check_both(FLOAT32, singles, ALL - round);
        check_both(FLOAT64, doubles, ALL - round);
    }
}

/* A double just beside the middle of two 16-bit values is a tie in float32: rounding twice goes to
 * the wrong side. */
static void test_rounds_once(void **state)
{
    static double values[4 * ALL];
    (void)state;
    for (int t = 0; t < 2; t++) {
        int64_t n = 0;
        for (int i = 0; i < ALL - 1; i++) {
            double a = t ? bfloat16_to_float32((uint16_t)i) : float16_to_float32((uint16_t)i);
            double b =
                t ? bfloat16_to_float32((uint16_t)(i + 1)) : float16_to_float32((uint16_t)(i + 1));
            double middle = (a + b) / 2;
            if (!isfinite(middle))
                continue;
            values[n++] = middle;
            values[n++] = nextafter(middle, INFINITY);
            values[n++] = nextafter(middle, -INFINITY);
        }
        check_both(FLOAT64, values, n);
    }
}

static void test_around_rounding_of_float32(void **state)
{
    static uint32_t values[6 * ALL];
    int64_t n = 0;
    (void)state;
    for (uint32_t i = 0; i < ALL; i++) {
        const float half = float16_to_float32((uint16_t)i);
        uint32_t bits;
        memcpy(&bits, &half, sizeof bits);
        for (uint32_t k = 0; k < 3; k++) {
            values[n++] = bits + (1u << 12) - 1 + k;
            values[n++] = (i << 16) + (1u << 15) - 1 + k;
        }
    }
    check_both(FLOAT32, values, n);
}

static int open_device(void **state)
{
    struct device_options options = {.threads = 3};
    struct error err = ERROR_INIT;
    (void)state;
    device = device_open("CPU", 0, &options, &err);
    return !device;
}

static int close_device(void **state)
{
    (void)state;
    device_free(device);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_from_16_bits),
        cmocka_unit_test(test_any_bits),
        cmocka_unit_test(test_rounds_once),
        cmocka_unit_test(test_around_rounding_of_float32),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
