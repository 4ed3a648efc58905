/* SPDX-License-Identifier: Apache-2.0
 *
 * Emulated element-wise CUDA kernels, compared with the CPU's: every op and type that the CPU has,
 * shapes that broadcast, packs and their rest, addresses too unaligned for a pack.
 */
#include <stdio.h>

#include "exec/device/fault.h"
#include "lib/cuda_beside.h"
#include "ops/math/launchers_cuda.h"

#define ITEM 7

static const int64_t lengths[] = {0, 1, 31, 33, 259, 4099};
#define N_LENGTHS (sizeof lengths / sizeof *lengths)

/* Shapes of x, y and the result: equal, with a scalar, with rows, with columns, with both, and with
 * many dimensions. */
static const struct pair {
    const char *x, *y;
} pairs[] = {
    {"[0]", "[0]"},        {"[]", "[]"},          {"[33]", "[33]"},
    {"[259]", "[]"},       {"[1]", "[1031]"},     {"[5,7,9]", "[5,7,9]"},
    {"[17,31]", "[31]"},   {"[17,31]", "[17,1]"}, {"[13,1]", "[1,19]"},
    {"[3,0]", "[1]"},      {"[2,3,5]", "[3,1]"},  {"[2,1,3,1,5,1]", "[4,1,2,1,3]"},
    {"[1,64]", "[16,64]"}, {"[16,64]", "[16,1]"}, {"[2,2,2,2,2,2,2,2]", "[2,1,2,1,2,1,2]"},
};
#define N_PAIRS (sizeof pairs / sizeof *pairs)

static uint64_t random_state = 3;

static struct shape parse(const char *text)
{
    struct shape shape;
    assert_true(shape_parse(text, &shape));
    return shape;
}

static const char *label(const char *op, enum dtype type, const char *shape, bool at_end)
{
    static char text[128];
    snprintf(text, sizeof text, "%s of %s %s%s", op, dtype_name(type), shape,
             at_end ? ", crooked" : "");
    return text;
}

/* ---- one array ---- */

static void check_unary(const char *op, enum dtype type, int64_t n, bool at_end)
{
    const char *what = label(op, type, shape_text(&(struct shape){1, {n}}), at_end);
    struct error err = ERROR_INIT;
    struct eager_result expected = {0};
    struct shape shape = shape_vector(n);
    struct tensor x = beside_random(type, &shape, &random_state);
    if (beside_run(op, &x, 1, NULL, 0, &expected, &err))
        fail_msg("%s: %s", what, err.text);
    struct guarded in = beside_place(&x, at_end);
    struct guarded out = guarded_new(tensor_bytes(&expected.outputs[0]), at_end);
    struct cuda_unary call = {n, in.data, out.data};
    cuda_unary_launcher *launch = cuda_unary(op, beside_type(type));
    beside_launched(what, launch(&call, NULL));
    beside_compare(what, &expected.outputs[0], out.data);
    if (dtype_bytes(type) == dtype_bytes(expected.outputs[0].type)) { /* in place */
        call.y = in.data;
        beside_launched(what, launch(&call, NULL));
        beside_compare(what, &expected.outputs[0], in.data);
    }
    guarded_free(&in);
    guarded_free(&out);
    tensor_release(&x);
    eager_release(&expected);
}

/* ---- two arrays ---- */

static bool is_fault_of(const char *op, const struct tensor *x, const struct tensor *y, int64_t i)
{
    (void)x;
    if (!strcmp(op, "Pow"))
        return tensor_get_int64(y, i) < 0;
    return tensor_get_int64(y, i) == 0;
}

/* Compares the fault with the CPU's error, and checks that it names the first element. */
static void check_fault(const char *what, const char *op, const struct tensor in[2],
                        const struct fault *fault, const struct error *wanted)
{
    struct error err = ERROR_INIT;
    if (!fault->code)
        fail_msg("%s: no fault, but %s", what, wanted->text);
    assert_int_equal(fault->item, ITEM);
    assert_int_equal(fault_explain(NULL, fault, &(struct fault_origin){0}, &err), wanted->code);
    if (!strstr(wanted->text, err.text))
        fail_msg("%s: '%s', not '%s'", what, err.text, wanted->text);
    if (!shape_equal(&in[0].shape, &in[1].shape))
        return;
    for (int64_t i = 0; i < fault->at; i++)
        if (is_fault_of(op, &in[0], &in[1], i))
            fail_msg("%s: element %d is at fault, and not first %d", what, (int)fault->at, (int)i);
    assert_true(is_fault_of(op, &in[0], &in[1], fault->at));
}

static void check_binary(const char *op, enum dtype type, const struct pair *pair, bool at_end)
{
    char text[64];
    snprintf(text, sizeof text, "%s and %s", pair->x, pair->y);
    const char *what = label(op, type, text, at_end);
    struct error err = ERROR_INIT;
    struct eager_result expected = {0};
    struct shape x = parse(pair->x), y = parse(pair->y), shape;
    struct tensor in[2] = {beside_random(type, &x, &random_state),
                           beside_random(type, &y, &random_state)};
    assert_true(shape_broadcast(&x, &y, &shape));
    int result = beside_run(op, in, 2, NULL, 0, &expected, &err);
    enum dtype out_type = result ? type : expected.outputs[0].type;
    struct guarded places[2] = {beside_place(&in[0], at_end), beside_place(&in[1], at_end)};
    struct guarded out = guarded_new((size_t)shape_bytes(&shape, out_type), at_end);
    struct fault fault = {0};
    struct cuda_binary call = {
        .x = places[0].data, .y = places[1].data, .out = out.data, .fault = {&fault, ITEM, 0}};
    broadcast_plan(&call.walk, &shape, (const struct shape *const[]){&x, &y}, 2);
    beside_launched(what, cuda_binary(op, beside_type(type))(&call, NULL));
    if (result) {
        check_fault(what, op, in, &fault, &err);
    } else {
        assert_int_equal(fault.code, FAULT_NONE);
        beside_compare(what, &expected.outputs[0], out.data);
    }
    eager_release(&expected);
    guarded_free(&out);
    for (int i = 0; i < 2; i++) {
        guarded_free(&places[i]);
        tensor_release(&in[i]);
    }
}

/* A check that is called for each op of the code and each of its types. */
typedef void op_check(const char *op, enum dtype type);

static void for_each_row(const char *code, op_check *check)
{
    const struct kernel_table *table = ops_kernels();
    int n = 0;
    for (size_t r = 0; r < table->n; r++) {
        const struct kernel_row *row = &table->rows[r];
        if (strcmp(row->code, code) || strcmp(row->device, "CPU"))
            continue;
        for (int type = 1; type < 32; type++)
            if (beside_types(row->op, "T") & DTYPE_BIT(type)) {
                cuda_emulator_seed((uint64_t)++n);
                check(row->op, (enum dtype)type);
            }
    }
    assert_true(n > 60);
}

static void check_unary_op(const char *op, enum dtype type)
{
    for (size_t i = 0; i < N_LENGTHS; i++)
        check_unary(op, type, lengths[i], i % 2);
    check_unary(op, type, 259, true);
    check_unary(op, type, 259, false);
}

static void check_binary_op(const char *op, enum dtype type)
{
    for (size_t i = 0; i < N_PAIRS; i++) /* gradients are not broadcast */
        if (!strstr(op, "Grad") || !strcmp(pairs[i].x, pairs[i].y))
            check_binary(op, type, &pairs[i], unit_random(&random_state) & 1);
    check_binary(op, type, &(struct pair){"[259]", "[259]"}, true);
    check_binary(op, type, &(struct pair){"[259]", "[259]"}, false);
}

static void test_unary(void **state)
{
    (void)state;
    for_each_row("unary", check_unary_op);
}

static void test_binary(void **state)
{
    (void)state;
    for_each_row("binary", check_binary_op);
}

static void check_activation_op(const char *op, enum dtype type)
{
    (strstr(op, "Grad") ? check_binary_op : check_unary_op)(op, type);
}

static void test_activations(void **state)
{
    (void)state;
    for_each_row("activation", check_activation_op);
}

/* An earlier fault stays, whatever this kernel finds. */
static void test_earlier_fault(void **state)
{
    int32_t x[40] = {0}, out[40];
    struct fault fault = {.item = 3, .code = FAULT_INDEX, .input = 1, .at = 50, .value = 9};
    struct fault before = fault;
    struct cuda_binary call = {.walk = {1, 2, {40}, {{1}, {1}}, 40},
                               .x = x,
                               .y = x,
                               .out = out,
                               .fault = {&fault, ITEM, 2}};
    cuda_binary_launcher *divide = cuda_binary("Div", CUDA_INT32);
    (void)state;
    beside_launched("Div", divide(&call, NULL));
    assert_memory_equal(&fault, &before, sizeof fault);
    fault = (struct fault){0};
    beside_launched("Div", divide(&call, NULL));
    assert_int_equal(fault.code, FAULT_DIVISION);
    assert_int_equal(fault.input, 2);
    assert_int_equal(fault.at, 0);
    assert_int_equal(cuda_binary("Nand", CUDA_INT32)(&call, NULL), CUDA_INVALID_VALUE);
}

/* ---- Cast, Select, Fill ---- */

static void check_cast(enum dtype from, enum dtype to, int64_t n, bool at_end)
{
    char name[64];
    snprintf(name, sizeof name, "Cast to %s", dtype_name(to));
    const char *what = label(name, from, shape_text(&(struct shape){1, {n}}), at_end);
    struct error err = ERROR_INIT;
    struct eager_result expected = {0};
    struct shape shape = shape_vector(n);
    struct tensor x = beside_random(from, &shape, &random_state);
    struct eager_attr attr = {"DstT", dtype_name(to)};
    if (beside_run("Cast", &x, 1, &attr, 1, &expected, &err))
        fail_msg("%s: %s", what, err.text);
    struct guarded in = beside_place(&x, at_end);
    struct guarded out = guarded_new(tensor_bytes(&expected.outputs[0]), at_end);
    struct cuda_cast call = {beside_type(from), beside_type(to), n, in.data, out.data};
    beside_launched(what, cuda_cast(&call, NULL));
    beside_compare(what, &expected.outputs[0], out.data);
    guarded_free(&in);
    guarded_free(&out);
    tensor_release(&x);
    eager_release(&expected);
}

static void test_cast(void **state)
{
    dtype_set from = beside_types("Cast", "SrcT"), to = beside_types("Cast", "DstT");
    int n = 0;
    (void)state;
    for (int pair = 0; pair < 32 * 32; pair++) {
        if (!(from >> pair / 32 & 1) || !(to >> pair % 32 & 1))
            continue;
        for (size_t i = 0; i < N_LENGTHS; i++, n++)
            check_cast((enum dtype)(pair / 32), (enum dtype)(pair % 32), lengths[i], n % 2);
    }
    assert_int_equal(n, 13 * 13 * (int)N_LENGTHS);
}

static void check_select(enum dtype type, const char *condition_shape, const char *values,
                         bool at_end)
{
    const char *what = label("Select", type, condition_shape, at_end);
    struct error err = ERROR_INIT;
    struct eager_result expected = {0};
    struct shape shapes[3] = {parse(condition_shape), parse(values), parse(values)};
    struct tensor in[3];
    struct guarded places[3];
    for (int i = 0; i < 3; i++) {
        in[i] = beside_random(i ? type : BOOL, &shapes[i], &random_state);
        places[i] = beside_place(&in[i], at_end);
    }
    if (beside_run("Select", in, 3, NULL, 0, &expected, &err))
        fail_msg("%s: %s", what, err.text);
    struct guarded out = guarded_new(tensor_bytes(&expected.outputs[0]), at_end);
    struct cuda_select call = {.element_bytes = (int)dtype_bytes(type),
                               .condition = places[0].data,
                               .t = places[1].data,
                               .e = places[2].data,
                               .out = out.data};
    struct shape condition = shapes[0]; /* a vector chooses rows */
    for (; condition.rank && condition.rank < shapes[1].rank; condition.rank++)
        condition.dims[condition.rank] = 1;
    broadcast_plan(&call.walk, &shapes[1],
                   (const struct shape *const[]){&condition, &shapes[1], &shapes[2]}, 3);
    beside_launched(what, cuda_select(&call, NULL));
    beside_compare(what, &expected.outputs[0], out.data);
    for (int i = 0; i < 3; i++) {
        guarded_free(&places[i]);
        tensor_release(&in[i]);
    }
    guarded_free(&out);
    eager_release(&expected);
}

static void test_select(void **state)
{
    (void)state;
    for (int type = 1; type < 32; type++) {
        if (!(beside_types("Select", "T") & DTYPE_BIT(type)))
            continue;
        for (int at_end = 0; at_end < 2; at_end++) {
            check_select((enum dtype)type, "[]", "[261]", at_end);
            check_select((enum dtype)type, "[261]", "[261]", at_end);
            check_select((enum dtype)type, "[7]", "[7,5,3]", at_end);
            check_select((enum dtype)type, "[0]", "[0,5]", at_end);
        }
    }
}

static void check_fill(int bytes, size_t n, bool at_end, bool by_bits)
{
    uint64_t value = unit_random(&random_state);
    struct guarded from = guarded_copy(&value, (size_t)bytes, true);
    struct guarded out = guarded_new(n * (size_t)bytes, at_end);
    struct cuda_fill call = {.element_bytes = bytes,
                             .n = (int64_t)n,
                             .value = by_bits ? NULL : from.data,
                             .out = out.data,
                             .bits = value};
    beside_launched("Fill", cuda_fill(&call, NULL));
    for (size_t k = 0; k < n; k++)
        assert_memory_equal((char *)out.data + k * (size_t)bytes, &value, (size_t)bytes);
    guarded_free(&from);
    guarded_free(&out);
}

static void test_fill(void **state)
{
    (void)state;
    for (int bytes = 1; bytes <= 8; bytes *= 2)
        for (size_t i = 0; i < 4 * N_LENGTHS; i++)
            check_fill(bytes, (size_t)lengths[i / 4], i & 1, i & 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unary),         cmocka_unit_test(test_binary),
        cmocka_unit_test(test_activations),   cmocka_unit_test(test_cast),
        cmocka_unit_test(test_earlier_fault), cmocka_unit_test(test_select),
        cmocka_unit_test(test_fill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
