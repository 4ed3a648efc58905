/* SPDX-License-Identifier: Apache-2.0
 *
 * The rest of a training step besides products, on emulated CUDA: random numbers with the CPU's
 * bits, softmax and cross entropies compared with the CPU's, updates compared with their rules in
 * float64.
 */
#include <stdio.h>

#include "lib/cuda_beside.h"
#include "ops/nn/launchers_cuda.h"
#include "ops/random/launchers_cuda.h"
#include "ops/train/apply_cuda.h"

#define ITEM 4

static uint64_t random_state = 23;

static double unit_value(void)
{
    return (double)(unit_random(&random_state) >> 11) * 0x1p-53;
}

/* ---- random numbers ---- */

static const struct {
    const char *op;
    enum random_form form;
    enum dtype type;
} draws[] = {
    {"RandomUniform", RANDOM_UNIFORM, FLOAT32},
    {"RandomUniform", RANDOM_UNIFORM, FLOAT64},
    {"RandomUniform", RANDOM_UNIFORM, FLOAT16},
    {"RandomUniform", RANDOM_UNIFORM, BFLOAT16},
    {"RandomStandardNormal", RANDOM_NORMAL, FLOAT32},
    {"RandomStandardNormal", RANDOM_NORMAL, FLOAT64},
    {"RandomStandardNormal", RANDOM_NORMAL, FLOAT16},
    {"RandomStandardNormal", RANDOM_NORMAL, BFLOAT16},
    {"TruncatedNormal", RANDOM_TRUNCATED_NORMAL, FLOAT32},
    {"TruncatedNormal", RANDOM_TRUNCATED_NORMAL, FLOAT64},
    {"TruncatedNormal", RANDOM_TRUNCATED_NORMAL, FLOAT16},
    {"RandomUniformInt", RANDOM_UNIFORM_INT, INT32},
    {"RandomUniformInt", RANDOM_UNIFORM_INT, INT64},
};

static struct tensor one(enum dtype type, const struct shape *shape, int64_t value)
{
    struct error err = ERROR_INIT;
    struct tensor t = TENSOR_INIT;
    assert_int_equal(tensor_alloc(&t, type, shape, &err), 0);
    tensor_set_int64(&t, 0, value);
    return t;
}

/* Compares numbers drawn from `offset` on with those that the CPU draws from element 0 on. */
static void check_draw(size_t k, int64_t n, int64_t offset)
{
    struct error err = ERROR_INIT;
    struct eager_result expected = {0};
    enum dtype type = draws[k].type;
    bool whole = draws[k].form == RANDOM_UNIFORM_INT;
    struct shape vector = shape_vector(1);
    struct tensor in[3] = {one(INT32, &vector, n + offset), one(type, &SHAPE_SCALAR, -3),
                           one(type, &SHAPE_SCALAR, 1000)};
    struct eager_attr attrs[3] = {
        {"seed", "77"}, {"seed2", "12345678901"}, {"dtype", dtype_name(type)}};
    if (beside_run(draws[k].op, in, whole ? 3 : 1, attrs, whole ? 2 : 3, &expected, &err))
        fail_msg("%s", err.text);
    size_t bytes = dtype_bytes(type);
    struct guarded out = guarded_new((size_t)n * bytes, n % 2);
    struct step_block step = {.number = 1, .seed = 1}; /* as in beside_run */
    struct cuda_random call = {.form = draws[k].form,
                               .type = beside_type(type),
                               .n = n,
                               .low = -3,
                               .size = 1003,
                               .place = {{77, 12345678901, offset, false}, 0, &step},
                               .out = out.data};
    beside_launched(draws[k].op, cuda_random(&call, NULL));
    if (memcmp(out.data, (char *)expected.outputs[0].data + (size_t)offset * bytes, out.bytes))
        fail_msg("%s of %s: %d elements from %d", draws[k].op, dtype_name(type), (int)n,
                 (int)offset);
    guarded_free(&out);
    for (int i = 0; i < 3; i++)
        tensor_release(&in[i]);
    eager_release(&expected);
}

static void test_random(void **state)
{
    static const int64_t lengths[] = {1, 3, 31, 33, 1025};
    (void)state;
    for (size_t k = 0; k < sizeof draws / sizeof *draws; k++)
        for (int i = 0; i < 5; i++)
            for (int64_t offset = 0; offset < 7; offset += 3)
                check_draw(k, lengths[i], offset);
}

/* ---- softmax ---- */

static bool is_near(const struct tensor *a, const struct tensor *b, int64_t i)
{
    static const double unit[32] = {
        [FLOAT32] = 0x1p-20, [FLOAT64] = 1e-12, [FLOAT16] = 0x1p-10, [BFLOAT16] = 0x1p-7};
    double x = tensor_get_float64(a, i), y = tensor_get_float64(b, i);
    return beside_same(a, b, i) || fabs(x - y) <= unit[a->type] * (1 + fabs(x));
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

static const struct {
    const char *op;
    int n_in;
} forms[] = {[CUDA_SOFTMAX] = {"Softmax", 1},
             [CUDA_LOG_SOFTMAX] = {"LogSoftmax", 1},
             [CUDA_CROSS_ENTROPY] = {"SoftmaxCrossEntropyWithLogits", 2},
             [CUDA_SPARSE_CROSS_ENTROPY] = {"SparseSoftmaxCrossEntropyWithLogits", 2}};

static struct tensor logits(enum dtype type, const struct shape *shape, double scale)
{
    struct tensor x = beside_random(type, shape, &random_state);
    for (int64_t i = 0; i < tensor_count(&x); i++)
        tensor_set_float64(&x, i, scale * (unit_value() - 0.3));
    return x;
}

static void check_softmax(enum cuda_softmax_form form, enum dtype type, int64_t rows, int64_t n)
{
    const char *what = forms[form].op;
    struct error err = ERROR_INIT;
    struct eager_result expected = {0};
    struct shape shape = shape_matrix(rows, n), vector = shape_vector(rows);
    bool sparse = form == CUDA_SPARSE_CROSS_ENTROPY, wide = n % 2;
    struct tensor in[2] = {logits(type, &shape, 20),
                           sparse ? beside_random(wide ? INT64 : INT32, &vector, &random_state)
                                  : logits(type, &shape, 1)};
    for (int64_t i = 0; i < tensor_count(&in[1]); i++) {
        if (sparse)
            tensor_set_int64(&in[1], i, (int64_t)(unit_random(&random_state) % (uint64_t)n));
        else if (i % 3 == 0)
            tensor_set_float64(&in[1], i, 0);
    }
    if (n > 5 && rows) /* -infinity, and one far above the others */
        tensor_set_float64(&in[0], 3, -INFINITY);
    if (beside_run(what, in, forms[form].n_in, NULL, 0, &expected, &err))
        fail_msg("%s: %s", what, err.text);
    bool entropy = form >= CUDA_CROSS_ENTROPY;
    const struct tensor *y = &expected.outputs[entropy ? 1 : 0];
    struct guarded x = beside_place(&in[0], n % 2), labels = beside_place(&in[1], true);
    struct guarded loss = guarded_new((size_t)rows * dtype_bytes(type), true);
    struct fault fault = {0};
    struct cuda_softmax call = {.form = form,
                                .type = beside_type(type),
                                .rows = rows,
                                .n = n,
                                .x = x.data,
                                .labels = labels.data,
                                .wide_classes = wide,
                                .y = x.data, /* in place */
                                .loss = loss.data,
                                .fault = {&fault, ITEM, 1}};
    cuda_emulator_seed((uint64_t)n);
    beside_launched(what, cuda_softmax(&call, NULL));
    compare(what, y, x.data);
    if (entropy)
        compare(what, &expected.outputs[0], loss.data);
    assert_int_equal(fault.code, FAULT_NONE);
    guarded_free(&x);
    guarded_free(&labels);
    guarded_free(&loss);
    for (int i = 0; i < 2; i++)
        tensor_release(&in[i]);
    eager_release(&expected);
}

static void test_softmax(void **state)
{
    static const int64_t lengths[] = {1, 10, 31, 33, 300};
    (void)state;
    for (enum cuda_softmax_form form = CUDA_SOFTMAX; form <= CUDA_SPARSE_CROSS_ENTROPY; form++)
        for (int type = 1; type < 32; type++) {
            if (!(beside_types(forms[form].op, "T") & DTYPE_BIT(type)))
                continue;
            for (int i = 0; i < 5; i++)
                check_softmax(form, (enum dtype)type, 9, lengths[i]);
            check_softmax(form, (enum dtype)type, 3, 2501); /* one block per row */
            check_softmax(form, (enum dtype)type, 0, 4);
        }
}

/* The first label that is not a class is reported. */
static void test_labels(void **state)
{
    float x[40 * 3] = {0}, loss[40];
    int32_t labels[40];
    struct fault fault = {0}, first = {ITEM, FAULT_LABEL, 1, 17, 3, 3};
    struct cuda_softmax call = {.form = CUDA_SPARSE_CROSS_ENTROPY,
                                .type = CUDA_FLOAT32,
                                .rows = 40,
                                .n = 3,
                                .x = x,
                                .labels = labels,
                                .y = x,
                                .loss = loss,
                                .fault = {&fault, ITEM, 1}};
    (void)state;
    for (int i = 0; i < 40; i++)
        labels[i] = i < 17 ? i % 3 : i % 2 ? 3 : -1;
    for (uint64_t seed = 0; seed < 5; seed++) {
        cuda_emulator_seed(seed);
        fault = (struct fault){0};
        beside_launched("labels", cuda_softmax(&call, NULL));
        assert_memory_equal(&fault, &first, sizeof fault);
    }
}

/* ---- updates ---- */

struct element {
    double w, a, b, g;
};

/* The documented update rules, in float64. */
static void expect(const char *op, const double *s, bool nesterov, struct element *e)
{
    double g = e->g;
    if (!strcmp(op, "ApplyGradientDescent")) {
        e->w -= s[0] * g;
    } else if (!strcmp(op, "ApplyMomentum")) {
        e->a = s[1] * e->a + g;
        e->w -= nesterov ? s[0] * (g + s[1] * e->a) : s[0] * e->a;
    } else if (!strcmp(op, "ApplyAdagrad")) {
        e->a += g * g;
        e->w -= s[0] * g / sqrt(e->a);
    } else if (!strcmp(op, "ApplyAdadelta")) {
        e->a = s[1] * e->a + (1 - s[1]) * g * g;
        double d = sqrt(e->b + s[2]) / sqrt(e->a + s[2]) * g;
        e->b = s[1] * e->b + (1 - s[1]) * d * d;
        e->w -= s[0] * d;
    } else if (!strcmp(op, "ApplyRMSProp")) {
        e->a = s[1] * e->a + (1 - s[1]) * g * g;
        e->b = s[2] * e->b + s[0] * g / sqrt(e->a + s[3]);
        e->w -= e->b;
    } else if (!strcmp(op, "ApplyAdam")) {
        e->a = s[3] * e->a + (1 - s[3]) * g;
        e->b = s[4] * e->b + (1 - s[4]) * g * g;
        e->w -= s[2] * sqrt(1 - s[1]) / (1 - s[0]) * e->a / (sqrt(e->b) + s[5]);
    } else {
        double n = e->a + g * g, now = pow(n, -s[3]);
        e->b += g - (now - pow(e->a, -s[3])) / s[0] * e->w;
        e->w = fabs(e->b) > s[1] ? ((e->b < 0 ? -s[1] : s[1]) - e->b) / (now / s[0] + 2 * s[2]) : 0;
        e->a = n;
    }
}

static const struct {
    const char *op;
    int slots;
    double scalars[APPLY_SCALARS_MAX];
} rules[] = {
    {"ApplyGradientDescent", 0, {0.1}},
    {"ApplyMomentum", 1, {0.1, 0.9}},
    {"ApplyAdagrad", 1, {0.1}},
    {"ApplyAdadelta", 2, {0.5, 0.9, 0.01}},
    {"ApplyRMSProp", 2, {0.1, 0.9, 0.5, 0.01}},
    {"ApplyAdam", 2, {0.9, 0.999, 0.01, 0.9, 0.999, 1e-4}},
    {"ApplyFtrl", 2, {0.1, 0.05, 0.1, -0.5}},
    {"ApplyFtrl", 2, {0.1, 0.05, 0.1, -0.4}},
};

#define PARTS APPLY_BATCH_MAX

struct updated {
    struct guarded w, slots[2], g;
    struct tensor before[4];
};

static void new_part(struct updated *u, enum dtype type, int64_t n, int slots, bool at_end)
{
    struct shape shape = shape_vector(n);
    for (int k = 0; k < 4; k++) {
        u->before[k] = beside_random(type, &shape, &random_state);
        for (int64_t i = 0; i < n; i++)
            tensor_set_float64(&u->before[k], i, unit_value() + (k == 1 || k == 2 ? 0.1 : -0.5));
    }
    u->w = beside_place(&u->before[0], at_end);
    for (int k = 0; k < slots; k++)
        u->slots[k] = beside_place(&u->before[1 + k], at_end);
    u->g = beside_place(&u->before[3], at_end);
}

static void check_part(const char *what, struct updated *u, const struct tensor *scalars,
                       size_t rule, bool nesterov)
{
    double s[APPLY_SCALARS_MAX];
    for (int i = 0; i < APPLY_SCALARS_MAX; i++)
        s[i] = tensor_get_float64(scalars, i);
    struct error err = ERROR_INIT;
    struct tensor expected[3];
    for (int k = 0; k < 3; k++) {
        expected[k] = (struct tensor)TENSOR_INIT;
        assert_int_equal(tensor_copy(&expected[k], &u->before[k], &err), 0);
    }
    for (int64_t i = 0; i < tensor_count(&u->before[0]); i++) {
        struct element e = {
            tensor_get_float64(&u->before[0], i), tensor_get_float64(&u->before[1], i),
            tensor_get_float64(&u->before[2], i), tensor_get_float64(&u->before[3], i)};
        expect(rules[rule].op, s, nesterov, &e);
        tensor_set_float64(&expected[0], i, e.w);
        tensor_set_float64(&expected[1], i, e.a);
        tensor_set_float64(&expected[2], i, e.b);
    }
    compare(what, &expected[0], u->w.data);
    for (int k = 0; k < rules[rule].slots; k++)
        compare(what, &expected[1 + k], u->slots[k].data);
    for (int k = 0; k < 3; k++)
        tensor_release(&expected[k]);
}

static void free_part(struct updated *u, int slots)
{
    guarded_free(&u->w);
    guarded_free(&u->g);
    for (int k = 0; k < slots; k++)
        guarded_free(&u->slots[k]);
    for (int k = 0; k < 4; k++)
        tensor_release(&u->before[k]);
}

static void check_apply(size_t rule, enum dtype type, bool nesterov)
{
    static const int64_t lengths[] = {0, 1, 31, 33, 64, 259, 1030};
    char what[64];
    struct updated parts[PARTS];
    struct apply_arguments all = {.nesterov = nesterov}, arguments[PARTS];
    struct fault fault = {.code = FAULT_INDEX};
    struct cuda_apply call = {.type = beside_type(type),
                              .gradient = beside_type(type),
                              .n_parts = PARTS,
                              .parts = arguments,
                              .fault = &fault};
    cuda_apply_launcher *launch = cuda_apply(rules[rule].op);
    snprintf(what, sizeof what, "%s of %s", rules[rule].op, dtype_name(type));
    struct shape vector = shape_vector(APPLY_SCALARS_MAX);
    struct tensor scalars = beside_random(type, &vector, &random_state);
    for (int i = 0; i < APPLY_SCALARS_MAX; i++) {
        tensor_set_float64(&scalars, i, rules[rule].scalars[i]);
        all.scalars[i] = (char *)scalars.data + (size_t)i * dtype_bytes(type);
    }
    for (int i = 0; i < PARTS; i++) {
        struct updated *u = &parts[i];
        new_part(u, type, lengths[i % 7], rules[rule].slots, i % 2);
        arguments[i] = all;
        arguments[i].w = u->w.data;
        arguments[i].g = u->g.data;
        arguments[i].n = lengths[i % 7];
        for (int k = 0; k < rules[rule].slots; k++)
            arguments[i].slots[k] = u->slots[k].data;
    }
    beside_launched(what, launch(&call, NULL)); /* the step has failed: no effect */
    for (int i = 0; i < PARTS; i++)
        assert_memory_equal(parts[i].w.data, parts[i].before[0].data, parts[i].w.bytes);
    fault.code = FAULT_NONE;
    beside_launched(what, launch(&call, NULL));
    for (int i = 0; i < PARTS; i++) {
        check_part(what, &parts[i], &scalars, rule, nesterov);
        free_part(&parts[i], rules[rule].slots);
    }
    tensor_release(&scalars);
}

static void test_apply(void **state)
{
    static const enum dtype types[] = {FLOAT32, FLOAT64, FLOAT16, BFLOAT16};
    (void)state;
    for (size_t rule = 0; rule < sizeof rules / sizeof *rules; rule++)
        for (int t = 0; t < 4; t++)
            for (int nesterov = 0; nesterov < (rules[rule].slots == 1 ? 2 : 1); nesterov++)
                check_apply(rule, types[t], nesterov);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_apply),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
