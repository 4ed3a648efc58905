/* SPDX-License-Identifier: Apache-2.0
 *
 * Small emulated CUDA kernels, with the bits of the CPU's: progressions and bands of matrices; rows
 * that the host knows; values that are not finite.
 */
#include <stdio.h>

#include "lib/cuda_beside.h"
#include "ops/array/launchers_cuda.h"
#include "ops/matrix/launchers_cuda.h"

#define ITEM 5

static uint64_t random_state = 23;

static int64_t below(int64_t n)
{
    return (int64_t)(unit_random(&random_state) % (uint64_t)n);
}

static struct tensor number(enum dtype type, double value)
{
    struct error err = ERROR_INIT;
    struct tensor t = TENSOR_INIT;
    assert_int_equal(tensor_alloc(&t, type, &SHAPE_SCALAR, &err), 0);
    tensor_set_float64(&t, 0, value);
    return t;
}

static void release(struct tensor *t, int n)
{
    for (int i = 0; i < n; i++)
        tensor_release(&t[i]);
}

/* ---- Range ---- */

static void check_range(enum dtype type, const double numbers[3], bool at_end)
{
    char what[64];
    struct error err = ERROR_INIT;
    struct eager_result expected = {0};
    struct tensor in[3];
    for (int i = 0; i < 3; i++)
        in[i] = number(type, numbers[i]);
    snprintf(what, sizeof what, "%s from %g to %g by %g", dtype_name(type), numbers[0], numbers[1],
             numbers[2]);
    if (beside_run("Range", in, 3, NULL, 0, &expected, &err))
        fail_msg("%s: %s", what, err.text);
    struct guarded out = guarded_new(tensor_bytes(&expected.outputs[0]), at_end);
    struct cuda_range call = {beside_type(type), tensor_count(&expected.outputs[0]), in[0].data,
                              in[2].data, out.data};
    beside_launched(what, cuda_range(&call, NULL));
    beside_compare(what, &expected.outputs[0], out.data);
    eager_release(&expected);
    guarded_free(&out);
    release(in, 3);
}

static void test_range(void **state)
{
    static const double whole[][3] = {{3, 3, 1}, {0, 1, 1}, {2, 100, 3}, {7, 127, 1}};
    static const double falling[] = {100, -100, -7}, broken[] = {-0.5, 30, 0.0625};
    static const double long_one[] = {-5, 40000, 3};
    (void)state;
    for (int type = 1; type < 32; type++) {
        bool floating = dtype_is_floating((enum dtype)type);
        if (!(beside_types("Range", "Tidx") & DTYPE_BIT(type)))
            continue;
        for (int i = 0; i < 8; i++)
            check_range((enum dtype)type, whole[i / 2], i % 2);
        if (floating)
            check_range((enum dtype)type, broken, true);
        if (floating || type == INT8 || type == INT32 || type == INT64)
            check_range((enum dtype)type, falling, false);
        if (type == FLOAT32 || type == FLOAT16 || type == INT32 || type == INT64)
            check_range((enum dtype)type, long_one, true);
    }
}

static void test_no_range(void **state)
{
    int32_t one = 1, out[1];
    struct cuda_range call = {CUDA_BOOL, 1, &one, &one, out};
    (void)state;
    assert_int_equal(cuda_range(&call, NULL), CUDA_INVALID_VALUE);
    call = (struct cuda_range){CUDA_INT32, 0, &one, &one, out};
    assert_int_equal(cuda_range(&call, NULL), 0);
}

/* ---- MatrixBandPart ---- */

static int64_t diagonals(const struct tensor *number, int64_t most)
{
    int64_t n = tensor_get_int64(number, 0);
    return n < 0 || n > most ? most : n;
}

static void check_band(enum dtype type, const struct shape *shape, bool in_place)
{
    struct error err = ERROR_INIT;
    struct eager_result expected = {0};
    int64_t rows = shape->dims[shape->rank - 2], columns = shape->dims[shape->rank - 1];
    struct tensor in[3] = {beside_random(type, shape, &random_state),
                           number(INT64, (double)(below(rows + 4) - 2)),
                           number(INT64, (double)(below(columns + 4) - 2))};
    if (beside_run("MatrixBandPart", in, 3, NULL, 0, &expected, &err))
        fail_msg("%s", err.text);
    struct guarded x = beside_place(&in[0], below(2)), y = guarded_new(x.bytes, below(2));
    struct cuda_band call = {.element_bytes = (int)dtype_bytes(type),
                             .n = tensor_count(&in[0]),
                             .band = {.rows = rows,
                                      .columns = columns,
                                      .lower = diagonals(&in[1], rows),
                                      .upper = diagonals(&in[2], columns)},
                             .x = x.data,
                             .y = in_place ? x.data : y.data};
    beside_launched("MatrixBandPart", cuda_band(&call, NULL));
    beside_compare("MatrixBandPart", &expected.outputs[0], call.y);
    eager_release(&expected);
    guarded_free(&x);
    guarded_free(&y);
    release(in, 3);
}

static void test_band(void **state)
{
    (void)state;
    for (int type = 1; type < 32; type++)
        for (int round = 0; round < 30; round++) {
            struct shape shape = {.rank = 2 + (int)below(2)};
            for (int d = 0; d < shape.rank; d++)
                shape.dims[d] = below(10) ? 1 + below(12) : 0;
            if (round % 3 == 0) /* whole packs */
                shape.dims[shape.rank - 1] = 16 * below(4);
            if (beside_types("MatrixBandPart", "T") & DTYPE_BIT(type))
                check_band((enum dtype)type, &shape, round % 2);
        }
}

/* ---- rows ---- */

/* Moves some rows, in any order, to as many others; the remaining rows stay. */
static void check_moves(int bytes, int64_t columns, int n)
{
    enum { ROWS = 2 * CUDA_ROW_MOVES };
    size_t row = (size_t)(columns * bytes), order[ROWS];
    struct guarded x = guarded_new(ROWS * row, below(2)), y = guarded_new(ROWS * row, below(2));
    unsigned char *from = x.data, *expected = malloc(y.bytes + 1);
    struct cuda_row_moves call = {bytes, n, columns, x.data, y.data, {{0}}};
    for (size_t i = 0; i < x.bytes; i++)
        from[i] = (unsigned char)below(256);
    if (y.bytes)
        memcpy(expected, y.data, y.bytes);
    for (size_t i = 0; i < ROWS; i++)
        order[i] = i;
    for (size_t i = 0; i < (size_t)n; i++) { /* no row twice */
        size_t k = i + (size_t)below((int64_t)(ROWS - i)), to = order[k];
        order[k] = order[i];
        call.rows[i] = (struct cuda_row_move){(int64_t)to, below(ROWS)};
        memcpy(expected + to * row, from + (size_t)call.rows[i].from * row, row);
    }
    beside_launched("rows", cuda_move_rows(&call, NULL));
    if (y.bytes)
        assert_memory_equal(y.data, expected, y.bytes);
    free(expected);
    guarded_free(&x);
    guarded_free(&y);
}

static void test_moves(void **state)
{
    (void)state;
    for (int bytes = 1; bytes <= 8; bytes *= 2)
        for (int round = 0; round < 12; round++)
            check_moves(bytes, round % 2 ? 16 * below(4) : below(20),
                        round % 3 ? (int)below(CUDA_ROW_MOVES) : CUDA_ROW_MOVES);
    check_moves(4, 3, 0);
}

/* ---- CheckNumerics ---- */

static void check_finite(enum dtype type, int64_t n, bool at_end)
{
    static const double odd[] = {NAN, INFINITY, -INFINITY};
    static const int64_t values[] = {0, 1, -1};
    struct shape shape = shape_vector(n);
    struct tensor in = beside_random(type, &shape, &random_state);
    struct fault fault = {0};
    for (int64_t i = 0; i < n; i++)
        tensor_set_float64(&in, i, (double)below(100) - 50);
    struct guarded x = beside_place(&in, at_end);
    struct cuda_check_numerics call = {beside_type(type), n, x.data, {&fault, ITEM, 0}};
    beside_launched("CheckNumerics", cuda_check_numerics(&call, NULL));
    assert_int_equal(fault.code, FAULT_NONE);
    int64_t first = n ? below(n) : 0;
    struct tensor there = tensor_borrow(type, &shape, x.data);
    for (int64_t i = first; i < n; i++)
        if (i == first || !below(3))
            tensor_set_float64(&there, i, odd[i % 3]);
    cuda_emulator_seed(random_state);
    beside_launched("CheckNumerics", cuda_check_numerics(&call, NULL));
    struct fault expected = {ITEM, FAULT_NOT_FINITE, 0, first, values[first % 3], 0};
    if (n)
        assert_memory_equal(&fault, &expected, sizeof fault);
    guarded_free(&x);
    tensor_release(&in);
}

static void test_check_numerics(void **state)
{
    static const enum dtype types[] = {FLOAT32, FLOAT64, FLOAT16, BFLOAT16};
    struct cuda_check_numerics whole = {CUDA_INT32, 1, NULL, {NULL, 0, 0}};
    (void)state;
    for (int i = 0; i < 4 * 24; i++)
        check_finite(types[i % 4], i < 8 ? i / 4 : 1 + below(600), below(2));
    assert_int_equal(cuda_check_numerics(&whole, NULL), CUDA_INVALID_VALUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_range),          cmocka_unit_test(test_no_range),
        cmocka_unit_test(test_band),           cmocka_unit_test(test_moves),
        cmocka_unit_test(test_check_numerics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
