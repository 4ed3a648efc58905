/* SPDX-License-Identifier: Apache-2.0
 *
 * Emulated CUDA kernels that move elements, compared with the CPU's or a plain loop: arrangements,
 * rows by number, and updates in the order of the indices.
 */
#include <stdio.h>

#include "lib/cuda_beside.h"
#include "ops/array/launchers_cuda.h"

#define ITEM 5
#define SEEDS 3

static uint64_t random_state = 17;

static struct shape parse(const char *text)
{
    struct shape shape;
    assert_true(shape_parse(text, &shape));
    return shape;
}

static struct tensor integers(enum dtype type, const struct shape *shape, const int64_t *values)
{
    struct error err = ERROR_INIT;
    struct tensor t = TENSOR_INIT;
    assert_int_equal(tensor_alloc(&t, type, shape, &err), 0);
    for (int64_t i = 0; i < tensor_count(&t); i++)
        tensor_set_int64(&t, i, values[i]);
    return t;
}

static int64_t below(int64_t n)
{
    return (int64_t)(unit_random(&random_state) % (uint64_t)n);
}

/* ---- Transpose: packs, tiles and single elements ---- */

static const struct {
    const char *shape, *perm;
} transposes[] = {
    {"[]", "[]"},
    {"[0,3]", "[1,0]"},
    {"[33,65]", "[1,0]"},
    {"[64,64]", "[1,0]"},
    {"[3,40,50]", "[0,2,1]"},
    {"[7,5,16]", "[1,0,2]"},
    {"[7,5,17]", "[1,0,2]"},
    {"[2,3,4,5]", "[3,1,0,2]"},
    {"[5,1,33,1,2]", "[4,3,2,1,0]"},
    {"[40,3,2,35]", "[3,1,2,0]"},
    {"[2,2,2,2,2,2,2,3]", "[7,0,6,1,5,2,4,3]"},
};

static void check_transpose(enum dtype type, size_t k, bool at_end)
{
    struct error err = ERROR_INIT;
    struct eager_result expected = {0};
    struct shape shape = parse(transposes[k].shape), perm = parse(transposes[k].perm);
    struct shape of = shape_vector(perm.rank);
    struct tensor in[2] = {beside_random(type, &shape, &random_state),
                           integers(INT32, &of, perm.dims)};
    if (beside_run("Transpose", in, 2, NULL, 0, &expected, &err))
        fail_msg("%s", err.text);
    struct guarded x = beside_place(&in[0], at_end);
    struct guarded y = guarded_new(tensor_bytes(&expected.outputs[0]), at_end);
    struct cuda_strided_copy call = {
        .element_bytes = (int)dtype_bytes(type), .rank = shape.rank, .from = x.data, .to = y.data};
    int64_t from[SHAPE_RANK_MAX];
    shape_strides(&shape, from);
    shape_strides(&expected.outputs[0].shape, call.to_strides);
    for (int d = 0; d < shape.rank; d++) {
        call.dims[d] = expected.outputs[0].shape.dims[d];
        call.from_strides[d] = from[perm.dims[d]];
    }
    beside_launched(transposes[k].shape, cuda_strided(&call, NULL));
    beside_compare(transposes[k].shape, &expected.outputs[0], y.data);
    guarded_free(&x);
    guarded_free(&y);
    for (int i = 0; i < 2; i++)
        tensor_release(&in[i]);
    eager_release(&expected);
}

static void test_transpose(void **state)
{
    static const enum dtype types[] = {INT8, FLOAT16, FLOAT32, FLOAT64};
    (void)state;
    for (int t = 0; t < 4; t++)
        for (size_t k = 0; k < sizeof transposes / sizeof *transposes; k++)
            for (int at_end = 0; at_end < 2; at_end++)
                check_transpose(types[t], k, at_end);
}

/* Copies a part of an array, walked forward, backward or standing still, to a part of another:
 * slices, reversals, tiles, paddings, concatenations and their opposites are all of this form. */
static void check_random_block(int bytes)
{
    int64_t from_dims[4], to_dims[4], from_count = 1, to_count = 1;
    struct cuda_strided_copy call = {.element_bytes = bytes, .rank = (int)below(5)};
    int64_t from_start = 0, to_start = 0;
    for (int d = call.rank - 1; d >= 0; d--) {
        int64_t dim = 1 + below(d == call.rank - 1 ? 40 : 5), step = 1 + below(2);
        int64_t sign = below(4) == 0 ? -1 : 1, still = below(5) != 0;
        from_dims[d] = dim * step + below(3);
        to_dims[d] = dim + below(3);
        call.dims[d] = dim;
        call.from_strides[d] = sign * still * step * from_count;
        call.to_strides[d] = to_count;
        from_start += sign < 0 ? (dim - 1) * still * step * from_count : 0;
        to_start += below(to_dims[d] - dim + 1) * to_count;
        from_count *= from_dims[d];
        to_count *= to_dims[d];
    }
    size_t size = (size_t)bytes;
    unsigned char *values = malloc((size_t)from_count * size);
    unsigned char *expected = malloc((size_t)to_count * size);
    for (size_t i = 0; i < (size_t)from_count * size; i++)
        values[i] = (unsigned char)unit_random(&random_state);
    bool at_end = below(2);
    struct guarded x = guarded_copy(values, (size_t)from_count * size, at_end);
    struct guarded y = guarded_new((size_t)to_count * size, at_end);
    memset(expected, GUARDED_MARK, (size_t)to_count * size);
    int64_t index[4] = {0}, left = 1;
    for (int d = 0; d < call.rank; d++)
        left *= call.dims[d];
    for (; left; left--) {
        int64_t from = from_start, to = to_start;
        for (int d = 0; d < call.rank; d++) {
            from += index[d] * call.from_strides[d];
            to += index[d] * call.to_strides[d];
        }
        memcpy(expected + (size_t)to * size, values + (size_t)from * size, size);
        for (int d = call.rank - 1; d >= 0 && ++index[d] == call.dims[d]; d--)
            index[d] = 0;
    }
    call.from = (char *)x.data + (size_t)from_start * size;
    call.to = (char *)y.data + (size_t)to_start * size;
    beside_launched("block", cuda_strided(&call, NULL));
    assert_memory_equal(y.data, expected, (size_t)to_count * size);
    free(values);
    free(expected);
    guarded_free(&x);
    guarded_free(&y);
}

static void test_blocks(void **state)
{
    (void)state;
    for (int round = 0; round < 400; round++)
        check_random_block(1 << round % 4);
}

/* ---- rows ---- */

static void check_gather(enum dtype type, enum dtype index_type, int64_t columns, bool wrong)
{
    struct error err = ERROR_INIT;
    struct eager_result expected = {0};
    int64_t rows = 9, n = 21, values[21];
    struct shape table = shape_matrix(rows, columns), of = shape_vector(n);
    for (int i = 0; i < n; i++)
        values[i] = wrong && i % 5 == 3 ? rows + i : below(rows);
    struct tensor in[2] = {beside_random(type, &table, &random_state),
                           integers(index_type, &of, values)};
    int result = beside_run("Gather", in, 2, NULL, 0, &expected, &err);
    struct guarded x = beside_place(&in[0], columns % 2), i = beside_place(&in[1], true);
    struct guarded y = guarded_new((size_t)(n * columns) * dtype_bytes(type), columns % 2);
    struct fault fault = {0};
    struct cuda_gather call = {.element_bytes = (int)dtype_bytes(type),
                               .rows = rows,
                               .columns = columns,
                               .indices = {beside_type(index_type), n, i.data},
                               .table = x.data,
                               .out = y.data,
                               .fault = {&fault, ITEM, 1}};
    beside_launched("Gather", cuda_gather(&call, NULL));
    if (wrong) {
        struct fault first = {ITEM, FAULT_INDEX, 1, 3, rows + 3, rows};
        assert_true(result != 0);
        assert_memory_equal(&fault, &first, sizeof first);
    } else {
        assert_int_equal(fault.code, FAULT_NONE);
        beside_compare("Gather", &expected.outputs[0], y.data);
    }
    eager_release(&expected);
    guarded_free(&x);
    guarded_free(&i);
    guarded_free(&y);
    for (int k = 0; k < 2; k++)
        tensor_release(&in[k]);
}

static void test_gather(void **state)
{
    static const int64_t columns[] = {0, 1, 3, 16, 33, 64};
    (void)state;
    for (int type = 1; type < 32; type++)
        for (int k = 0; k < 24; k++)
            if (beside_types("Gather", "Tparams") & DTYPE_BIT(type)) {
                cuda_emulator_seed((uint64_t)k);
                check_gather((enum dtype)type, k & 1 ? INT32 : INT64, columns[k / 4], k & 2);
            }
}

static void check_one_hot(enum dtype type, enum dtype type_of_index, const char *indices,
                          const char *axis)
{
    struct error err = ERROR_INIT;
    struct eager_result expected = {0};
    struct shape shape = parse(indices);
    int64_t values[64], depth = 5;
    for (int i = 0; i < 64; i++)
        values[i] = below(8) - 2;
    struct tensor in[4] = {integers(type_of_index, &shape, values),
                           integers(INT32, &SHAPE_SCALAR, &depth),
                           beside_random(type, &SHAPE_SCALAR, &random_state),
                           beside_random(type, &SHAPE_SCALAR, &random_state)};
    struct eager_attr attr = {"axis", axis};
    if (beside_run("OneHot", in, 4, &attr, 1, &expected, &err))
        fail_msg("%s", err.text);
    struct guarded y = guarded_new(tensor_bytes(&expected.outputs[0]), true);
    struct cuda_one_hot call = {
        .element_bytes = (int)dtype_bytes(type),
        .outer = axis[0] == '0' ? 1 : tensor_count(&in[0]),
        .depth = depth,
        .inner = axis[0] == '0' ? tensor_count(&in[0]) : 1,
        .indices = {beside_type(type_of_index), tensor_count(&in[0]), in[0].data},
        .on = in[2].data,
        .off = in[3].data,
        .out = y.data};
    beside_launched("OneHot", cuda_one_hot(&call, NULL));
    beside_compare("OneHot", &expected.outputs[0], y.data);
    guarded_free(&y);
    for (int i = 0; i < 4; i++)
        tensor_release(&in[i]);
    eager_release(&expected);
}

static void test_one_hot(void **state)
{
    (void)state;
    for (int type = 1; type < 32; type++)
        if (beside_types("OneHot", "T") & DTYPE_BIT(type)) {
            check_one_hot((enum dtype)type, INT64, "[7,9]", "-1");
            check_one_hot((enum dtype)type, INT32, "[7,9]", "0");
            check_one_hot((enum dtype)type, INT8, "[7,9]", "-1");
            check_one_hot((enum dtype)type, UINT8, "[7,9]", "-1");
            check_one_hot((enum dtype)type, INT64, "[0]", "0");
        }
}

/* ---- scatter ---- */

static bool is_near(const struct tensor *a, const struct tensor *b, int64_t i)
{
    static const double unit[32] = {
        [FLOAT32] = 0x1p-20, [FLOAT64] = 1e-11, [FLOAT16] = 0x1p-9, [BFLOAT16] = 0x1p-6};
    double x = tensor_get_float64(a, i), y = tensor_get_float64(b, i);
    return beside_same(a, b, i) || fabs(x - y) <= unit[a->type] * (1 + fabs(x));
}

/* Compares with a segment sum that starts from zero. */
static void check_sums(enum dtype type, int64_t n, int64_t rows, int64_t columns)
{
    struct error err = ERROR_INIT;
    struct eager_result expected = {0};
    int64_t *places = malloc((size_t)n * sizeof *places + 1);
    for (int64_t i = 0; i < n; i++)
        places[i] = below(4) ? below(rows) : 1;
    struct shape of = shape_vector(n), values = shape_matrix(n, columns);
    struct tensor in[3] = {beside_random(type, &values, &random_state),
                           integers(INT32, &of, places), integers(INT32, &SHAPE_SCALAR, &rows)};
    for (int64_t i = 0; dtype_is_floating(type) && i < n * columns; i++)
        tensor_set_float64(&in[0], i, (double)below(1000) / 1000);
    if (beside_run("UnsortedSegmentSum", in, 3, NULL, 0, &expected, &err))
        fail_msg("%s", err.text);
    struct guarded scratch = guarded_new(cuda_scatter_scratch(n), false);
    struct guarded x = beside_place(&in[0], true), i = beside_place(&in[1], true);
    struct guarded y = guarded_new(tensor_bytes(&expected.outputs[0]), true);
    struct fault fault = {0};
    struct cuda_scatter call = {.type = beside_type(type),
                                .rows = rows,
                                .columns = columns,
                                .indices = {CUDA_INT32, n, i.data},
                                .values = x.data,
                                .table = y.data,
                                .scratch = scratch.data,
                                .fault = {&fault, ITEM, 1}};
    struct tensor got = tensor_borrow(type, &expected.outputs[0].shape, y.data);
    void *first = malloc(y.bytes + 1);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        cuda_emulator_seed(seed);
        memset(y.data, 0, y.bytes);
        beside_launched("scatter", cuda_scatter(&call, NULL));
        if (!seed)
            memcpy(first, y.data, y.bytes);
        assert_memory_equal(first, y.data, y.bytes);
    }
    for (int64_t k = 0; k < tensor_count(&got); k++)
        if (!is_near(&expected.outputs[0], &got, k))
            fail_msg("%s: element %d is %.9g, not %.9g", dtype_name(type), (int)k,
                     tensor_get_float64(&got, k), tensor_get_float64(&expected.outputs[0], k));
    free(first);
    free(places);
    guarded_free(&scratch);
    guarded_free(&x);
    guarded_free(&i);
    guarded_free(&y);
    for (int k = 0; k < 3; k++)
        tensor_release(&in[k]);
    eager_release(&expected);
}

static void test_scatter_add(void **state)
{
    (void)state;
    for (int type = 1; type < 32; type++) {
        if (!(beside_types("UnsortedSegmentSum", "T") & DTYPE_BIT(type)))
            continue;
        check_sums((enum dtype)type, 0, 4, 2);
        check_sums((enum dtype)type, 1, 4, 3);
        check_sums((enum dtype)type, 300, 17, 5);
    }
    check_sums(FLOAT32, 3000, 100, 1);
    check_sums(FLOAT32, 2048, 3, 2);
}

/* The last value for a row stays; subtraction; no change if an index is wrong or the step had
 * failed before. */
static void test_scatter_set(void **state)
{
    enum { N = 900, ROWS = 50 };
    int32_t places[N], values[N], table[ROWS], expected[ROWS];
    struct guarded scratch = guarded_new(cuda_scatter_scratch(N), false);
    struct fault fault = {0};
    struct cuda_scatter call = {.op = CUDA_SCATTER_SET,
                                .type = CUDA_INT32,
                                .rows = ROWS,
                                .columns = 1,
                                .indices = {CUDA_INT32, N, places},
                                .values = values,
                                .table = table,
                                .scratch = scratch.data,
                                .fault = {&fault, ITEM, 1}};
    (void)state;
    for (int i = 0; i < ROWS; i++)
        table[i] = expected[i] = -i;
    for (int i = 0; i < N; i++) {
        places[i] = (int32_t)below(ROWS / 2);
        values[i] = (int32_t)below(1000);
        expected[places[i]] = values[i];
    }
    beside_launched("set", cuda_scatter(&call, NULL));
    assert_memory_equal(table, expected, sizeof table);
    call.op = CUDA_SCATTER_SUB;
    for (int i = 0; i < N; i++)
        expected[places[i]] -= values[i];
    beside_launched("sub", cuda_scatter(&call, NULL));
    assert_memory_equal(table, expected, sizeof table);
    places[700] = -1;
    places[30] = ROWS;
    beside_launched("sub", cuda_scatter(&call, NULL));
    assert_memory_equal(table, expected, sizeof table);
    struct fault first = {ITEM, FAULT_INDEX, 1, 30, ROWS, ROWS};
    assert_memory_equal(&fault, &first, sizeof first);
    places[700] = places[30] = 0;
    call.fault.item = ITEM + 1;
    beside_launched("sub", cuda_scatter(&call, NULL));
    assert_memory_equal(table, expected, sizeof table);
    guarded_free(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transpose),   cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_gather),      cmocka_unit_test(test_one_hot),
        cmocka_unit_test(test_scatter_add), cmocka_unit_test(test_scatter_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
