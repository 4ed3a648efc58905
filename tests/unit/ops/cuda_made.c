/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA kernels that make values by their place, emulated, with the bits of the CPU's: progressions
 * and bands of matrices.
 */
#include <stdio.h>

#include "lib/cuda_beside.h"
#include "ops/array/range_cuda.h"
#include "ops/matrix/band_cuda.h"

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
    call.n = 0;
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
                             .rows = rows,
                             .columns = columns,
                             .lower = diagonals(&in[1], rows),
                             .upper = diagonals(&in[2], columns),
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
            if (round % 3 == 0) /* packs */
                shape.dims[shape.rank - 1] = 16 * below(4);
            if (beside_types("MatrixBandPart", "T") & DTYPE_BIT(type))
                check_band((enum dtype)type, &shape, round % 2);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_range),
        cmocka_unit_test(test_no_range),
        cmocka_unit_test(test_band),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
