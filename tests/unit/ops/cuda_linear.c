/* SPDX-License-Identifier: Apache-2.0
 *
 * Linear algebra on emulated CUDA: its own kernels compared with plain loops, and whole ops, with
 * libraries that are loops too, compared with the CPU's.
 */
#include <float.h>
#include <stdio.h>

#include "lib/cuda_beside.h"
#include "lib/test_device.h"
#include "ops/matrix/launchers_cuda.h"

#define ITEM 4

static uint64_t random_state = 67;

static double unit_value(void)
{
    return (double)(unit_random(&random_state) >> 11) * 0x1p-52 - 1;
}

static struct tensor numbers(enum dtype type, int64_t n)
{
    struct error err = ERROR_INIT;
    struct tensor t = TENSOR_INIT;
    struct shape shape = shape_vector(n);
    assert_int_equal(tensor_alloc(&t, type, &shape, &err), 0);
    for (int64_t i = 0; i < n; i++)
        tensor_set_float64(&t, i, unit_value());
    return t;
}

/* ---- squares ---- */

static double expected_element(enum cuda_square_form form, const struct tensor *x, int64_t n,
                               int64_t at)
{
    int64_t i = at / n % n, j = at % n;
    double value = tensor_get_float64(x, at);
    double other = tensor_get_float64(x, at - i * n - j + j * n + i);
    bool is_float = x->type == FLOAT32;
    switch (form) {
    case CUDA_LOWER:
        return j > i ? 0 : value;
    case CUDA_LOWER_HALVED:
        return j > i ? 0 : j == i ? value / 2 : value;
    case CUDA_SYMMETRIC:
        return is_float ? (double)(((float)value + (float)other) / 2) : (value + other) / 2;
    default:
        return i == j;
    }
}

static void check_square(enum cuda_square_form form, enum dtype type, int64_t n, int64_t matrices,
                         bool at_end)
{
    char what[64];
    bool in_place = unit_random(&random_state) % 2 && form != CUDA_SYMMETRIC;
    struct tensor x = numbers(type, n * n * matrices);
    struct guarded from = beside_place(&x, at_end), to = beside_place(&x, at_end);
    struct cuda_square call = {form,
                               beside_type(type),
                               n,
                               matrices,
                               form == CUDA_IDENTITY ? NULL
                               : in_place            ? to.data
                                                     : from.data,
                               to.data};
    snprintf(what, sizeof what, "form %d, %d of n %d", (int)form, (int)matrices, (int)n);
    beside_launched(what, cuda_square(&call, NULL));
    struct tensor got = tensor_borrow(type, &x.shape, to.data);
    for (int64_t i = 0; i < tensor_count(&x); i++)
        if (tensor_get_float64(&got, i) != expected_element(form, &x, n, i))
            fail_msg("%s: element %d", what, (int)i);
    guarded_free(&from);
    guarded_free(&to);
    tensor_release(&x);
}

static void test_squares(void **state)
{
    static const int64_t sizes[] = {0, 1, 2, 3, 17, 40};
    (void)state;
    for (int form = CUDA_LOWER; form <= CUDA_IDENTITY; form++)
        for (int i = 0; i < 24; i++)
            check_square((enum cuda_square_form)form, i % 2 ? FLOAT32 : FLOAT64, sizes[i % 6],
                         i / 6, unit_random(&random_state) % 2);
}

/* ---- determinants ---- */

/* Random factors of one matrix; returns their determinant. After a zero pivot they are garbage. */
static double random_factors(struct tensor *lu, int32_t *pivots, int32_t *info, int64_t n,
                             int64_t matrix)
{
    bool is_float = lu->type == FLOAT32;
    double product = 1;
    *info = n && unit_random(&random_state) % 3 == 0
                ? (int32_t)(unit_random(&random_state) % (uint64_t)n) + 1
                : 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = (matrix * n + i) * n + i;
        bool is_behind = *info && i >= *info;
        pivots[i] = unit_random(&random_state) % 2 ? (int32_t)i + 1 : (int32_t)n;
        if (*info && i == *info - 1)
            tensor_set_float64(lu, at, 0);
        else
            tensor_set_float64(lu, at, is_behind ? NAN : 3 * unit_value());
        if (is_behind)
            continue;
        double factor = tensor_get_float64(lu, at) * (pivots[i] == i + 1 ? 1 : -1);
        product = is_float ? (double)((float)product * (float)factor) : product * factor;
    }
    return product;
}

static void check_determinant(enum dtype type, int64_t n, int64_t matrices, bool at_end)
{
    double expected[8];
    struct tensor lu = numbers(type, n * n * matrices), out = numbers(type, matrices);
    struct guarded pivots = guarded_new((size_t)(n * matrices) * 4, at_end);
    struct guarded infos = guarded_new((size_t)matrices * 4, at_end);
    for (int64_t m = 0; m < matrices; m++)
        expected[m] =
            random_factors(&lu, (int32_t *)pivots.data + m * n, (int32_t *)infos.data + m, n, m);
    struct guarded from = beside_place(&lu, at_end), to = beside_place(&out, at_end);
    struct cuda_determinant call = {beside_type(type), n,          matrices, from.data,
                                    pivots.data,       infos.data, to.data};
    beside_launched("determinants", cuda_determinant(&call, NULL));
    struct tensor got = tensor_borrow(type, &out.shape, to.data);
    for (int64_t m = 0; m < matrices; m++)
        if (tensor_get_float64(&got, m) != expected[m])
            fail_msg("determinant %d of n %d: %g, not %g", (int)m, (int)n,
                     tensor_get_float64(&got, m), expected[m]);
    guarded_free(&from);
    guarded_free(&to);
    guarded_free(&pivots);
    guarded_free(&infos);
    tensor_release(&lu);
    tensor_release(&out);
}

static void test_determinants(void **state)
{
    static const int64_t sizes[] = {0, 1, 2, 31, 32, 33, 70};
    (void)state;
    for (int i = 0; i < 56; i++)
        check_determinant(i % 2 ? FLOAT32 : FLOAT64, sizes[i % 7], i / 7 % 5, i / 2 % 2);
}

/* ---- faults ---- */

static void expect_fault(const struct fault *fault, uint16_t code, int64_t at, int64_t value)
{
    assert_int_equal(fault->code, code);
    assert_int_equal(fault->item, code ? ITEM : 0);
    assert_int_equal(fault->at, code ? at : 0);
    assert_int_equal(fault->value, code ? value : 0);
}

static void test_infos(void **state)
{
    (void)state;
    for (int64_t n = 0; n < 600; n += 299) {
        struct guarded infos = guarded_new((size_t)n * 4, true);
        struct fault fault = {.code = FAULT_NONE};
        struct cuda_infos call = {n, infos.data, FAULT_MINOR, {&fault, ITEM, 0}};
        memset(infos.data, 0, infos.bytes);
        beside_launched("infos", cuda_check_infos(&call, NULL));
        expect_fault(&fault, FAULT_NONE, 0, 0);
        for (int64_t i = n / 3; n && i < n; i += 2)
            ((int32_t *)infos.data)[i] = (int32_t)i + 7;
        beside_launched("infos", cuda_check_infos(&call, NULL));
        expect_fault(&fault, n ? FAULT_MINOR : FAULT_NONE, n / 3, n / 3 + 7);
        guarded_free(&infos);
    }
}

/* From `zero` on, matrix 2 has zeros on its diagonal, and matrix 3 has one; < 0: none has. */
static void check_diagonal(enum dtype type, int64_t n, int64_t zero)
{
    struct tensor x = numbers(type, 4 * n * n);
    for (int64_t i = zero; zero >= 0 && i < n; i += 5)
        tensor_set_float64(&x, (2 * n + i) * n + i, i % 2 ? -0.0 : 0);
    if (zero >= 0)
        tensor_set_float64(&x, 3 * n * n, 0);
    if (n > 1) { /* off the diagonals, or no zero */
        tensor_set_float64(&x, 1, 0);
        tensor_set_float64(&x, 0, NAN);
    }
    struct guarded a = beside_place(&x, true);
    struct fault fault = {.code = FAULT_NONE};
    struct cuda_diagonal call = {beside_type(type), n, 4, a.data, {&fault, ITEM, 0}};
    beside_launched("diagonals", cuda_check_diagonal(&call, NULL));
    expect_fault(&fault, zero < 0 ? FAULT_NONE : FAULT_DIAGONAL, 2, zero + 1);
    guarded_free(&a);
    tensor_release(&x);
}

static void test_diagonals(void **state)
{
    static const int64_t sizes[] = {1, 2, 32, 33, 70};
    (void)state;
    for (int i = 0; i < 5; i++)
        for (int64_t zero = -1; zero < sizes[i]; zero += 1 + zero / 4)
            check_diagonal(zero % 2 ? FLOAT32 : FLOAT64, sizes[i], zero);
}

static void test_unknown(void **state)
{
    int64_t word = 0;
    struct cuda_square square = {CUDA_LOWER, CUDA_FLOAT16, 1, 1, &word, &word};
    struct cuda_determinant determinant = {.type = CUDA_INT32, .matrices = 1};
    struct cuda_diagonal diagonal = {.type = CUDA_BFLOAT16, .matrices = 1};
    (void)state;
    assert_int_equal(cuda_square(&square, NULL), CUDA_INVALID_VALUE);
    assert_int_equal(cuda_determinant(&determinant, NULL), CUDA_INVALID_VALUE);
    assert_int_equal(cuda_check_diagonal(&diagonal, NULL), CUDA_INVALID_VALUE);
}

/* ---- ops ---- */

static const struct {
    const char *op;
    bool has_rhs, has_adjoint, has_lower;
} ops[] = {
    {"Cholesky", false, false, false},         {"CholeskyGrad", true, false, false},
    {"MatrixDeterminant", false, true, false}, {"MatrixInverse", false, true, false},
    {"MatrixSolve", true, true, false},        {"MatrixTriangularSolve", true, true, true},
};

struct matrix_case {
    size_t op;
    enum dtype type;
    int64_t n, columns;
    bool adjoint, lower;
    int64_t spoilt; /* row and column of the second matrix that are zero; < 0: none */
};

static struct tensor batch(enum dtype type, int64_t matrices, int64_t rows, int64_t columns)
{
    struct tensor t = numbers(type, matrices * rows * columns);
    t.shape = (struct shape){.rank = 3, .dims = {matrices, rows, columns}};
    return t;
}

/* Regular matrices: large on the diagonal; symmetric if the op needs it. */
static struct tensor operand(const struct matrix_case *c)
{
    struct tensor a = batch(c->type, 3, c->n, c->n);
    for (int64_t m = 0; m < 3; m++)
        for (int64_t i = 0; i < c->n; i++)
            for (int64_t j = 0; j < c->n; j++) {
                int64_t at = (m * c->n + i) * c->n + j;
                bool is_spoilt = m == 1 && c->spoilt >= 0 && (i == c->spoilt || j == c->spoilt);
                double value = tensor_get_float64(&a, at) / (double)c->n;
                if (c->op == 0 && j > i)
                    value = 1e4; /* never read */
                tensor_set_float64(&a, at, is_spoilt ? 0 : i == j ? value + 1.25 : value);
            }
    return a;
}

static struct device *emulated_device(void)
{
    static struct device *device;
    struct error err = ERROR_INIT;
    test_device_path();
    if (!device && !(device = device_open("CUDA", 0, &(struct device_options){.threads = 1}, &err)))
        fail_msg("%s", err.text);
    return device;
}

static int run_on(struct device *device, const struct matrix_case *c, const struct tensor *in,
                  struct eager_result *result, struct error *err)
{
    struct eager_attr attrs[2] = {{"adjoint", c->adjoint ? "true" : "false"},
                                  {"lower", c->lower ? "true" : "false"}};
    struct eager_input inputs[2] = {{in[0], NULL}, {in[1], NULL}};
    bool determines = !strcmp(ops[c->op].op, "MatrixDeterminant");
    struct eager_call call = {.op = ops[c->op].op,
                              .inputs = inputs,
                              .n_inputs = ops[c->op].has_rhs ? 2 : 1,
                              .attrs = attrs,
                              .n_attrs = determines             ? 0
                                         : ops[c->op].has_lower ? 2
                                                                : ops[c->op].has_adjoint,
                              .device = device,
                              .seed = 1};
    return eager_run(&call, result, err);
}

static void compare(const struct matrix_case *c, const struct tensor *expected,
                    const struct tensor *got)
{
    double most = c->type == FLOAT64    ? 1e-11
                  : c->type == FLOAT32  ? 1e-4
                  : c->type == BFLOAT16 ? 0x1p-6
                                        : 0x1p-9;
    assert_true(shape_equal(&expected->shape, &got->shape));
    for (int64_t i = 0; i < tensor_count(expected); i++) {
        double x = tensor_get_float64(expected, i), y = tensor_get_float64(got, i);
        if (!(fabs(x - y) <= most * (1 + fabs(x))))
            fail_msg("%s, n %d, %d columns: element %d is %g, not %g", ops[c->op].op, (int)c->n,
                     (int)c->columns, (int)i, y, x);
    }
}

static void check_op(const struct matrix_case *c)
{
    struct error errors[2] = {ERROR_INIT, ERROR_INIT};
    struct eager_result expected = {0}, got = {0};
    bool is_square = !strcmp(ops[c->op].op, "CholeskyGrad");
    struct tensor in[2] = {operand(c), batch(c->type, 3, c->n, is_square ? c->n : c->columns)};
    int code = run_on(beside_device(), c, in, &expected, &errors[0]);
    assert_int_equal(run_on(emulated_device(), c, in, &got, &errors[1]), code);
    assert_string_equal(errors[0].text, errors[1].text);
    if (!code)
        compare(c, &expected.outputs[0], &got.outputs[0]);
    eager_release(&expected);
    eager_release(&got);
    tensor_release(&in[0]);
    tensor_release(&in[1]);
}

static void test_ops(void **state)
{
    static const enum dtype types[] = {FLOAT32, FLOAT64, FLOAT16, BFLOAT16};
    static const int64_t sizes[] = {1, 2, 5, 16, 37}, columns[] = {1, 3, 40};
    (void)state;
    for (size_t op = 0; op < sizeof ops / sizeof *ops; op++)
        for (int i = 0; i < 60; i++)
            check_op(&(struct matrix_case){op, types[i % 4], sizes[i / 4 % 5], columns[i / 20],
                                           i % 3 == 0, i % 5 < 2, -1});
}

static void test_singular(void **state)
{
    (void)state;
    for (size_t op = 0; op < sizeof ops / sizeof *ops; op++)
        for (int64_t at = 0; at < 9; at += 4)
            if (strcmp(ops[op].op, "CholeskyGrad") != 0)
                check_op(&(struct matrix_case){op, at ? FLOAT32 : FLOAT16, 9, 2, false, true, at});
}

static int close_devices(void **state)
{
    (void)state;
    device_free(emulated_device());
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_squares),  cmocka_unit_test(test_determinants),
        cmocka_unit_test(test_infos),    cmocka_unit_test(test_diagonals),
        cmocka_unit_test(test_unknown),  cmocka_unit_test(test_ops),
        cmocka_unit_test(test_singular),
    };
    return cmocka_run_group_tests(tests, NULL, close_devices);
}
