/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions, ArgMax and Cumsum on emulated CUDA, compared with the CPU's: every op and type, axes,
 * odd shapes. Integers and extremes are equal; sums of floats are added in another order, but have
 * the same bits under each seed.
 */
#include <stdio.h>

#include "lib/cuda_beside.h"
#include "ops/math/launchers_cuda.h"

#define SEEDS 2

static uint64_t random_state = 11;

static const struct {
    const char *shape, *axes; /* the last ones are long, and for some types only */
} cases[] = {
    {"[0]", "[0]"},
    {"[0,3]", "[1]"},
    {"[1]", "[0]"},
    {"[31]", "[0]"},
    {"[33]", "[0]"},
    {"[3,33]", "[1]"},
    {"[33,7]", "[0]"},
    {"[3,4,5]", "[0,2]"},
    {"[3,4,5]", "[1]"},
    {"[5,1,9]", "[1]"},
    {"[3,0]", "[0]"},
    {"[2,3,4,2,3]", "[1,3]"},
    {"[2,3,2,5,3]", "[0,2,4]"},
    {"[4099]", "[0]"},
    {"[20011]", "[0]"},
    {"[65,70]", "[0]"},
    {"[6000,3]", "[0]"},
};
#define N_CASES (sizeof cases / sizeof *cases)
#define N_LONG 4
#define LONG_TYPES (DTYPE_BIT(FLOAT32) | DTYPE_BIT(BFLOAT16) | DTYPE_BIT(INT32) | DTYPE_BIT(BOOL))

static struct shape parse(const char *text)
{
    struct shape shape;
    assert_true(shape_parse(text, &shape));
    return shape;
}

/* Small values, so that a product of many of them is finite. */
static struct tensor input(enum dtype type, const struct shape *shape, const char *op)
{
    struct tensor x = beside_random(type, shape, &random_state);
    for (int64_t i = 0; dtype_is_floating(type) && i < tensor_count(&x); i++) {
        double value = (double)(unit_random(&random_state) >> 11) * 0x1p-53;
        tensor_set_float64(&x, i, !strcmp(op, "Prod") ? 0.99 + 0.02 * value : value - 0.25);
    }
    if (dtype_is_floating(type) && (!strcmp(op, "Max") || !strcmp(op, "Min")))
        for (int64_t i = 5; i < tensor_count(&x); i += 17)
            tensor_set_float64(&x, i, i % 2 ? NAN : i % 4 ? INFINITY : -1e30);
    return x;
}

/* Relative to the addends, about 1, plus half a unit of the type. */
static bool is_near(const struct tensor *expected, const struct tensor *got, int64_t i)
{
    static const double unit[32] = {
        [FLOAT32] = 0x1p-22, [FLOAT64] = 1e-12, [FLOAT16] = 0x1p-10, [BFLOAT16] = 0x1p-7};
    double a = tensor_get_float64(expected, i), b = tensor_get_float64(got, i);
    return a == b || beside_same(expected, got, i) ||
           fabs(a - b) <= unit[expected->type] * (1 + fabs(a));
}

static void compare(const char *what, const struct tensor *expected, void *data)
{
    struct tensor got = tensor_borrow(expected->type, &expected->shape, data);
    for (int64_t i = 0; i < tensor_count(expected); i++)
        if (!is_near(expected, &got, i))
            fail_msg("%s: element %d of %s is %.17g, not %.17g", what, (int)i,
                     shape_text_typed(expected->type, &expected->shape),
                     tensor_get_float64(&got, i), tensor_get_float64(expected, i));
}

/* Makes a scalar or a vector. */
static struct tensor integers(const struct shape *shape, const int32_t *values)
{
    struct error err = ERROR_INIT;
    struct tensor t = TENSOR_INIT;
    assert_int_equal(tensor_alloc(&t, INT32, shape, &err), 0);
    memcpy(t.data, values, tensor_bytes(&t));
    return t;
}

static struct tensor axes_of(const char *text, int32_t *axes)
{
    struct shape shape = parse(text); /* a list of numbers looks like a shape */
    struct shape of = shape_vector(shape.rank);
    for (int i = 0; i < shape.rank; i++)
        axes[i] = (int32_t)shape.dims[i];
    return integers(&of, axes);
}

/* A launcher that runs under several seeds; the bits must be equal. */
struct launching {
    const char *what;
    int (*launch)(const void *call, struct CUstream_st *stream);
    const void *call;
    struct guarded *out;
};

static void run(const struct launching *l, const struct tensor *expected)
{
    void *first = malloc(l->out->bytes + 1);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        cuda_emulator_seed(seed);
        memset(l->out->data, 0x5a, l->out->bytes);
        beside_launched(l->what, l->launch(l->call, NULL));
        if (!seed)
            memcpy(first, l->out->data, l->out->bytes);
        if (memcmp(first, l->out->data, l->out->bytes))
            fail_msg("%s: other bits under seed %d", l->what, (int)seed);
    }
    free(first);
    compare(l->what, expected, l->out->data);
}

static int launch_reduce(const void *call, struct CUstream_st *stream)
{
    return cuda_reduce(call, stream);
}

static void check_reduce(const char *op, enum dtype type, size_t k)
{
    char what[96];
    struct error err = ERROR_INIT;
    struct eager_result expected = {0};
    struct shape shape = parse(cases[k].shape);
    int32_t axes[SHAPE_RANK_MAX];
    struct tensor in[2] = {input(type, &shape, op), axes_of(cases[k].axes, axes)};
    struct cuda_reduce call = {
        .op = cuda_reduction_of(op), .type = beside_type(type), .rank = shape.rank};
    snprintf(what, sizeof what, "%s of %s %s by %s", op, dtype_name(type), cases[k].shape,
             cases[k].axes);
    memcpy(call.dims, shape.dims, sizeof shape.dims);
    for (int64_t i = 0; i < tensor_count(&in[1]); i++)
        call.reduced[axes[i]] = true;
    if (beside_run(op, in, 2, NULL, 0, &expected, &err)) { /* the mean of nothing is an error */
        assert_int_equal(cuda_reduce(&call, NULL), CUDA_INVALID_VALUE);
        tensor_release(&in[0]);
        tensor_release(&in[1]);
        eager_release(&expected);
        return;
    }
    struct guarded x = beside_place(&in[0], k % 2);
    struct guarded y = guarded_new(tensor_bytes(&expected.outputs[0]), k % 2);
    struct guarded scratch = guarded_new(cuda_reduce_scratch(&call), true);
    call.x = x.data;
    call.y = y.data;
    call.scratch = scratch.data;
    run(&(struct launching){what, launch_reduce, &call, &y}, &expected.outputs[0]);
    guarded_free(&x);
    guarded_free(&y);
    guarded_free(&scratch);
    tensor_release(&in[0]);
    tensor_release(&in[1]);
    eager_release(&expected);
}

static void test_reductions(void **state)
{
    static const char *const ops[] = {"Sum", "Prod", "Max", "Min", "Mean", "All", "Any"};
    int n = 0;
    (void)state;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        for (int type = 1; type < 32; type++)
            for (size_t k = 0; k < N_CASES; k++)
                if (beside_types(ops[i], "T") & DTYPE_BIT(type) &&
                    (k < N_CASES - N_LONG || LONG_TYPES & DTYPE_BIT(type))) {
                    check_reduce(ops[i], (enum dtype)type, k);
                    n++;
                }
    assert_int_equal(n, (5 * 12 + 2) * (N_CASES - N_LONG) + (5 * 3 + 2) * N_LONG);
}

static const struct {
    const char *shape;
    int32_t axis;
} lines[] = {{"[1]", 0},     {"[33]", 0},   {"[1025]", 0},    {"[5,31]", 1},
             {"[9,300]", 1}, {"[31,5]", 0}, {"[3,17,40]", 1}, {"[3,2,1]", 2}};
#define N_LINES (sizeof lines / sizeof *lines)

static struct cuda_lines lines_of(const struct shape *shape, int axis)
{
    struct cuda_lines all = {1, shape->dims[axis], 1};
    for (int d = 0; d < shape->rank; d++)
        *(d < axis ? &all.outer : d > axis ? &all.inner : &(int64_t){0}) *= shape->dims[d];
    return all;
}

static int launch_arg(const void *call, struct CUstream_st *stream)
{
    return cuda_arg(call, stream);
}

static void check_arg(enum dtype type, size_t k, bool max)
{
    struct error err = ERROR_INIT;
    struct eager_result expected = {0};
    struct shape shape = parse(lines[k].shape);
    int32_t axis = lines[k].axis;
    struct tensor in[2] = {beside_random(type, &shape, &random_state),
                           integers(&SHAPE_SCALAR, &axis)};
    if (beside_run(max ? "ArgMax" : "ArgMin", in, 2, NULL, 0, &expected, &err))
        fail_msg("%s", err.text);
    struct guarded x = beside_place(&in[0], k % 2);
    struct guarded y = guarded_new(tensor_bytes(&expected.outputs[0]), k % 2);
    struct cuda_arg call = {.max = max,
                            .narrow = expected.outputs[0].type == INT32,
                            .type = beside_type(type),
                            .lines = lines_of(&shape, axis),
                            .x = x.data,
                            .y = y.data};
    run(&(struct launching){lines[k].shape, launch_arg, &call, &y}, &expected.outputs[0]);
    guarded_free(&x);
    guarded_free(&y);
    tensor_release(&in[0]);
    tensor_release(&in[1]);
    eager_release(&expected);
}

static void test_arg(void **state)
{
    (void)state;
    for (int type = 1; type < 32; type++)
        for (size_t k = 0; k < 2 * N_LINES; k++)
            if (beside_types("ArgMax", "T") & DTYPE_BIT(type))
                check_arg((enum dtype)type, k / 2, k % 2);
}

static int launch_scan(const void *call, struct CUstream_st *stream)
{
    return cuda_scan(call, stream);
}

static void check_scan(enum dtype type, size_t k, const struct cuda_scan *how)
{
    char what[96];
    const char *op = how->product ? "Cumprod" : "Cumsum";
    struct error err = ERROR_INIT;
    struct eager_result expected = {0};
    struct shape shape = parse(lines[k].shape);
    int32_t axis = lines[k].axis;
    struct tensor in[2] = {input(type, &shape, how->product ? "Prod" : op),
                           integers(&SHAPE_SCALAR, &axis)};
    struct eager_attr attrs[2] = {{"exclusive", how->exclusive ? "true" : "false"},
                                  {"reverse", how->reverse ? "true" : "false"}};
    snprintf(what, sizeof what, "%s of %s %s%s%s", op, dtype_name(type), lines[k].shape,
             how->exclusive ? " exclusive" : "", how->reverse ? " reverse" : "");
    if (beside_run(op, in, 2, attrs, 2, &expected, &err))
        fail_msg("%s: %s", what, err.text);
    struct guarded x = beside_place(&in[0], k % 2);
    struct guarded y = guarded_new(tensor_bytes(&expected.outputs[0]), k % 2);
    struct cuda_scan call = *how;
    call.type = beside_type(type);
    call.lines = lines_of(&shape, axis);
    call.x = x.data;
    call.y = y.data;
    run(&(struct launching){what, launch_scan, &call, &y}, &expected.outputs[0]);
    guarded_free(&x);
    guarded_free(&y);
    tensor_release(&in[0]);
    tensor_release(&in[1]);
    eager_release(&expected);
}

static void test_scan(void **state)
{
    (void)state;
    for (int type = 1; type < 32; type++)
        for (size_t k = 0; k < 8 * N_LINES; k++)
            if (beside_types("Cumsum", "T") & DTYPE_BIT(type))
                check_scan(
                    (enum dtype)type, k / 8,
                    &(struct cuda_scan){.product = k & 1, .exclusive = k & 2, .reverse = k & 4});
}

/* ---- AddN, L2Loss ---- */

static int launch_addn(const void *call, struct CUstream_st *stream)
{
    return cuda_addn(call, stream);
}

/* Expects the CPU's bits, in place too. */
static void check_addn(enum dtype type, int n_in, int64_t n, bool at_end)
{
    struct error err = ERROR_INIT;
    struct eager_result expected = {0};
    struct shape shape = shape_vector(n);
    struct tensor in[BESIDE_INPUTS];
    struct guarded places[BESIDE_INPUTS],
        out = guarded_new((size_t)shape_bytes(&shape, type), at_end);
    struct cuda_addn call = {.type = beside_type(type), .n = n, .out = out.data, .n_in = n_in};
    for (int i = 0; i < n_in; i++) {
        in[i] = beside_random(type, &shape, &random_state);
        places[i] = beside_place(&in[i], at_end);
        call.in[i] = places[i].data;
    }
    if (beside_run("AddN", in, n_in, NULL, 0, &expected, &err))
        fail_msg("%s", err.text);
    run(&(struct launching){"AddN", launch_addn, &call, &out}, &expected.outputs[0]);
    beside_compare("AddN", &expected.outputs[0], out.data);
    call.out = places[1].data;
    beside_launched("AddN", cuda_addn(&call, NULL));
    beside_compare("AddN", &expected.outputs[0], call.out);
    for (int i = 0; i < n_in; i++) {
        guarded_free(&places[i]);
        tensor_release(&in[i]);
    }
    guarded_free(&out);
    eager_release(&expected);
}

static void test_addn(void **state)
{
    (void)state;
    for (int type = 1; type < 32; type++)
        for (int at_end = 0; (beside_types("AddN", "T") & DTYPE_BIT(type)) && at_end < 2;
             at_end++) {
            check_addn((enum dtype)type, 2, 0, at_end);
            check_addn((enum dtype)type, 3, 33, at_end);
            check_addn((enum dtype)type, 4, 4099, at_end);
        }
}

static void check_loss(enum dtype type, int64_t n)
{
    struct error err = ERROR_INIT;
    struct eager_result expected = {0};
    struct shape shape = shape_vector(n);
    struct tensor in = input(type, &shape, "L2Loss");
    struct cuda_reduce call = {
        .op = CUDA_L2_LOSS, .type = beside_type(type), .rank = 1, .dims = {n}, .reduced = {true}};
    if (beside_run("L2Loss", &in, 1, NULL, 0, &expected, &err))
        fail_msg("%s", err.text);
    struct guarded x = beside_place(&in, true), out = guarded_new(dtype_bytes(type), true);
    struct guarded scratch = guarded_new(cuda_reduce_scratch(&call), true);
    call.x = x.data;
    call.y = out.data;
    call.scratch = scratch.data;
    run(&(struct launching){"L2Loss", launch_reduce, &call, &out}, &expected.outputs[0]);
    guarded_free(&x);
    guarded_free(&out);
    guarded_free(&scratch);
    tensor_release(&in);
    eager_release(&expected);
}

static void test_loss(void **state)
{
    static const int64_t counts[] = {0, 1, 33, 4099, 20011};
    struct cuda_reduce integers_have_none = {.op = CUDA_L2_LOSS, .type = CUDA_INT32};
    (void)state;
    for (int type = 1; type < 32; type++)
        for (int i = 0; (beside_types("L2Loss", "T") & DTYPE_BIT(type)) && i < 5; i++)
            check_loss((enum dtype)type, counts[i]);
    assert_int_equal(cuda_reduce(&integers_have_none, NULL), CUDA_INVALID_VALUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addn), cmocka_unit_test(test_loss), cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_arg),  cmocka_unit_test(test_scan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
