/* SPDX-License-Identifier: Apache-2.0
 *
 * Random orders and classes, and the largest elements of rows, on emulated CUDA: the draws are the
 * CPU's, and of equal elements the same ones are taken.
 */
#include <stdio.h>

#include "lib/cuda_beside.h"
#include "ops/nn/launchers_cuda.h"
#include "ops/random/launchers_cuda.h"

#define SEEDS 3
#define ITEM 4

static uint64_t random_state = 43;

static int64_t below(int64_t n)
{
    return (int64_t)(unit_random(&random_state) % (uint64_t)n);
}

static const struct step_block step = {.number = 1, .seed = 1}; /* as in beside_run */

static struct cuda_random_place place(void)
{
    return (struct cuda_random_place){{.seed = 77, .seed2 = 12345678901}, 0, &step};
}

static const struct eager_attr seeds[] = {{"seed", "77"}, {"seed2", "12345678901"}};

static void run_cpu(const char *op, const struct tensor *in, int n, struct eager_result *result)
{
    struct error err = ERROR_INIT;
    if (beside_run(op, in, n, seeds, 2, result, &err))
        fail_msg("%s: %s", op, err.text);
}

static struct tensor new_tensor(enum dtype type, const struct shape *shape)
{
    struct error err = ERROR_INIT;
    struct tensor t = TENSOR_INIT;
    assert_int_equal(tensor_alloc(&t, type, shape, &err), 0);
    return t;
}

/* ---- orders ---- */

static void check_shuffle(int64_t n)
{
    struct shape vector = shape_vector(n);
    struct tensor numbers = new_tensor(INT64, &vector);
    struct eager_result expected = {0};
    for (int64_t i = 0; i < n; i++)
        tensor_set_int64(&numbers, i, i);
    run_cpu("RandomShuffle", &numbers, 1, &expected);
    struct guarded order = guarded_new((size_t)n * 8, n % 2);
    struct guarded scratch = guarded_new((size_t)n * 8, true);
    struct cuda_shuffle call = {place(), n, order.data, scratch.data};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        cuda_emulator_seed(seed);
        beside_launched("order", cuda_shuffle(&call, NULL));
        beside_compare("order", &expected.outputs[0], order.data);
    }
    guarded_free(&order);
    guarded_free(&scratch);
    tensor_release(&numbers);
    eager_release(&expected);
}

static void orders_are_the_cpus(void **state)
{
    static const int64_t lengths[] = {1, 2, 3, 31, 257, 1000};
    (void)state;
    for (int i = 0; i < 6; i++)
        check_shuffle(lengths[i]);
}

/* ---- classes ---- */

static struct tensor logits_of(enum dtype type, int64_t rows, int64_t classes)
{
    struct shape shape = shape_matrix(rows, classes);
    struct tensor t = new_tensor(type, &shape);
    for (int64_t i = 0; i < tensor_count(&t); i++)
        tensor_set_float64(&t, i, (double)below(64) / 8 - 4);
    if (classes > 3 && dtype_is_floating(type)) /* a class that is impossible */
        for (int64_t row = 0; row < rows; row++)
            tensor_set_float64(&t, row * classes + 2, -INFINITY);
    return t;
}

static void check_classes(enum dtype type, int64_t classes)
{
    int64_t rows = 1 + below(4), samples = 1 + below(60);
    struct tensor in[2] = {logits_of(type, rows, classes), new_tensor(INT32, &SHAPE_SCALAR)};
    struct eager_result expected = {0};
    struct fault fault = {0};
    tensor_set_int64(&in[1], 0, samples);
    run_cpu("Multinomial", in, 2, &expected);
    struct guarded logits = beside_place(&in[0], classes % 2);
    struct guarded out = guarded_new(tensor_bytes(&expected.outputs[0]), true);
    struct guarded scratch = guarded_new((size_t)(rows * classes) * 8, true);
    struct cuda_multinomial call = {.place = place(),
                                    .type = beside_type(type),
                                    .rows = rows,
                                    .classes = classes,
                                    .samples = samples,
                                    .logits = logits.data,
                                    .out = out.data,
                                    .scratch = scratch.data,
                                    .fault = {&fault, ITEM, 0}};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        cuda_emulator_seed(seed);
        beside_launched("classes", cuda_multinomial(&call, NULL));
        beside_compare("classes", &expected.outputs[0], out.data);
        assert_int_equal(fault.code, FAULT_NONE);
    }
    guarded_free(&logits);
    guarded_free(&out);
    guarded_free(&scratch);
    tensor_release(&in[0]);
    tensor_release(&in[1]);
    eager_release(&expected);
}

static void classes_are_the_cpus(void **state)
{
    static const enum dtype types[] = {FLOAT32, FLOAT64, FLOAT16, BFLOAT16, INT32, UINT8};
    static const int64_t classes[] = {1, 2, 10, 256, 300, 1025};
    (void)state;
    for (int t = 0; t < 6; t++)
        for (int i = 0; i < 6; i++)
            check_classes(types[t], classes[i]);
}

/* The first row without a possible class is reported. */
static void impossible_rows_are_told(void **state)
{
    float logits[5 * 3] = {0};
    double scratch[5 * 3];
    int64_t out[5 * 2];
    struct fault fault = {0};
    struct cuda_multinomial call = {.place = place(),
                                    .type = CUDA_FLOAT32,
                                    .rows = 5,
                                    .classes = 3,
                                    .samples = 2,
                                    .logits = logits,
                                    .out = out,
                                    .scratch = scratch,
                                    .fault = {&fault, ITEM, 0}};
    (void)state;
    logits[3] = logits[4] = logits[5] = -INFINITY;
    logits[10] = INFINITY;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        cuda_emulator_seed(seed);
        fault = (struct fault){0};
        beside_launched("classes", cuda_multinomial(&call, NULL));
        assert_int_equal(fault.code, FAULT_CLASSES);
        assert_int_equal(fault.at, 1);
    }
}

/* ---- the largest ---- */

static void check_top_k(enum dtype type)
{
    struct shape shape = shape_matrix(1 + below(4), 1 + below(600));
    int64_t n = shape.dims[1], k = below(n + 1);
    struct tensor in[2] = {beside_random(type, &shape, &random_state),
                           new_tensor(INT32, &SHAPE_SCALAR)};
    struct eager_result expected = {0};
    struct error err = ERROR_INIT;
    if (k > 20)
        k = 20;
    tensor_set_int64(&in[1], 0, k);
    for (int64_t i = 0; i < tensor_count(&in[0]); i += 3) /* many equal elements */
        tensor_set_int64(&in[0], i, below(4));
    if (beside_run("TopKV2", in, 2, NULL, 0, &expected, &err))
        fail_msg("%s", err.text);
    struct guarded x = beside_place(&in[0], k % 2);
    struct guarded values = guarded_new(tensor_bytes(&expected.outputs[0]), true);
    struct guarded indices = guarded_new(tensor_bytes(&expected.outputs[1]), true);
    struct cuda_top_k call = {beside_type(type), shape.dims[0], n, k, x.data,
                              values.data,       indices.data};
    cuda_emulator_seed((uint64_t)k);
    beside_launched("TopKV2", cuda_top_k(&call, NULL));
    beside_compare("values", &expected.outputs[0], values.data);
    beside_compare("indices", &expected.outputs[1], indices.data);
    guarded_free(&x);
    guarded_free(&values);
    guarded_free(&indices);
    tensor_release(&in[0]);
    tensor_release(&in[1]);
    eager_release(&expected);
}

static void the_largest_are_the_cpus(void **state)
{
    (void)state;
    for (int type = 1; type < 32; type++)
        for (int i = 0; beside_types("TopKV2", "T") & DTYPE_BIT(type) && i < 12; i++)
            check_top_k((enum dtype)type);
}

static void check_in_top_k(bool wide)
{
    enum dtype type = below(2) ? FLOAT64 : FLOAT32;
    struct shape shape = shape_matrix(1 + below(9), 1 + below(90));
    struct shape vector = shape_vector(shape.dims[0]);
    char k[8];
    struct eager_attr attr = {"k", k};
    struct tensor in[2] = {new_tensor(type, &shape), new_tensor(wide ? INT64 : INT32, &vector)};
    struct eager_result expected = {0};
    struct error err = ERROR_INIT;
    snprintf(k, sizeof k, "%d", (int)below(8));
    for (int64_t i = 0; i < tensor_count(&in[0]); i++)
        tensor_set_float64(&in[0], i, below(200) ? (double)below(20) : NAN);
    for (int64_t i = 0; i < tensor_count(&in[1]); i++)
        tensor_set_int64(&in[1], i, below(shape.dims[1] + 2) - 1);
    if (beside_run("InTopK", in, 2, &attr, 1, &expected, &err))
        fail_msg("%s", err.text);
    struct guarded x = beside_place(&in[0], true), targets = beside_place(&in[1], true);
    struct guarded out = guarded_new((size_t)shape.dims[0], true);
    struct cuda_in_top_k call = {.type = type == FLOAT64 ? CUDA_FLOAT64 : CUDA_FLOAT32,
                                 .rows = shape.dims[0],
                                 .n = shape.dims[1],
                                 .k = atoi(k),
                                 .predictions = x.data,
                                 .targets = targets.data,
                                 .wide_targets = wide,
                                 .out = out.data};
    cuda_emulator_seed((uint64_t)shape.dims[1]);
    beside_launched("InTopK", cuda_in_top_k(&call, NULL));
    beside_compare("InTopK", &expected.outputs[0], out.data);
    guarded_free(&x);
    guarded_free(&targets);
    guarded_free(&out);
    tensor_release(&in[0]);
    tensor_release(&in[1]);
    eager_release(&expected);
}

static void targets_are_the_cpus(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++)
        check_in_top_k(i % 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_are_the_cpus),      cmocka_unit_test(classes_are_the_cpus),
        cmocka_unit_test(impossible_rows_are_told), cmocka_unit_test(the_largest_are_the_cpus),
        cmocka_unit_test(targets_are_the_cpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
