/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantized gradients on emulated CUDA, compared with the CPU's: the same rows, except that a mean
 * and a deviation come from rounded sums, where each value may be off by one part's width; the same
 * decoded values; the quantization error; and malformed rows.
 */
#include <stdio.h>

#include "lib/cuda_beside.h"
#include "ops/aggregate/gradient_code_cuda.h"

#define ITEM 4
#define MEMBERS 3

static uint64_t random_state = 31;

static const char *const names[] = {"one_bit", "uniform", "threshold", "top"};

struct subject {
    struct gradient_code code;
    int64_t groups;
    char group[24], bits[8], keep[24], threshold[24], shape[40];
};

static struct eager_attr attr_of(const struct subject *s, int i)
{
    const struct eager_attr attrs[] = {
        {"code", names[s->code.kind]}, {"group", s->group}, {"bits", s->bits}, {"keep", s->keep},
        {"threshold", s->threshold},   {"shape", s->shape}};
    return attrs[i];
}

static struct subject subject_of(enum gradient_code_kind kind, int64_t group, int64_t groups)
{
    static const int64_t bits[] = {1, 5, 2, 1};
    struct subject s = {.code = {.kind = kind,
                                 .bits = (int)bits[kind],
                                 .group = group,
                                 .keep = group / 3 + 1,
                                 .threshold = 0.75F},
                        .groups = groups};
    if (kind == CODE_UNIFORM)
        s.code.bits += group % 4;
    if (kind == CODE_THRESHOLD && group % 2)
        s.code.bits = 1;
    int64_t packed = (group * s.code.bits + 7) / 8;
    s.code.row = kind == CODE_TOP ? 8 * s.code.keep : kind == CODE_THRESHOLD ? packed : 8 + packed;
    snprintf(s.group, sizeof s.group, "%lld", (long long)group);
    snprintf(s.bits, sizeof s.bits, "%d", s.code.bits);
    snprintf(s.keep, sizeof s.keep, "%lld", (long long)s.code.keep);
    snprintf(s.threshold, sizeof s.threshold, "%g", (double)s.code.threshold);
    snprintf(s.shape, sizeof s.shape, "[%lld]", (long long)(group * groups));
    return s;
}

/* Multiples of 1/64, many of them equal, so that sums of them are exact. */
static struct tensor values_of(const struct subject *s, int64_t n_groups)
{
    struct shape shape = shape_vector(n_groups * s->code.group);
    struct tensor t = beside_random(FLOAT32, &shape, &random_state);
    for (int64_t i = 0; i < tensor_count(&t); i++)
        ((float *)t.data)[i] = (float)((int)(unit_random(&random_state) % 257) - 128) / 64.0F;
    return t;
}

static struct tensor scalar_of(int64_t value)
{
    struct error err = ERROR_INIT;
    struct tensor t = TENSOR_INIT;
    assert_int_equal(tensor_alloc(&t, INT64, &SHAPE_SCALAR, &err), 0);
    *(int64_t *)t.data = value;
    return t;
}

static void by_cpu(const char *op, const struct subject *s, const struct tensor *in, int n_in,
                   struct eager_result *result)
{
    struct error err = ERROR_INIT;
    struct eager_attr attrs[6];
    bool decodes = !strcmp(op, "DequantizeGradient");
    for (int i = 0; i < 6; i++)
        attrs[i] = attr_of(s, i);
    if (beside_run(op, in, n_in, attrs, decodes ? 6 : 5, result, &err))
        fail_msg("%s, %s: %s", op, names[s->code.kind], err.text);
}

/* Checks the decoded mean of the rows of that many members. */
static void check_decoded(const struct subject *s, const struct tensor *rows, int64_t members)
{
    struct shape shape = shape_vector(members);
    struct eager_result expected = {0};
    struct tensor in[2] = {*rows, beside_random(INT64, &shape, &random_state)};
    struct fault fault = {0};
    by_cpu("DequantizeGradient", s, in, 2, &expected);
    struct guarded from = beside_place(rows, true);
    struct guarded mean = guarded_new(tensor_bytes(&expected.outputs[0]), members % 2);
    struct coded_gradients call = {
        .code = s->code, .groups = s->groups, .n = members, .rows = from.data, .mean = mean.data};
    struct cuda_fault at = {&fault, ITEM, 0};
    beside_launched("decode", cuda_decode(&call, &at, NULL));
    beside_compare("decode", &expected.outputs[0], mean.data);
    assert_int_equal(fault.code, FAULT_NONE);
    guarded_free(&from);
    guarded_free(&mean);
    tensor_release(&in[1]);
    eager_release(&expected);
}

/* Checks the error: residual + gradient - the value of one member's rows. */
static void check_lost(const struct subject *s, const struct tensor in[3],
                       const struct tensor *rows)
{
    struct shape one = shape_vector(1);
    struct eager_result values = {0};
    struct tensor given[2] = {*rows, beside_random(INT64, &one, &random_state)};
    struct fault fault = {0};
    int64_t n = tensor_count(&in[0]), first = *(int64_t *)in[2].data * s->code.group;
    by_cpu("DequantizeGradient", s, given, 2, &values);
    struct guarded from = beside_place(rows, false), g = beside_place(&in[0], true);
    struct guarded r = beside_place(&in[1], true);
    float *lost = (float *)r.data + first, *before = (float *)in[1].data + first;
    struct coded_gradients call = {.code = s->code,
                                   .groups = s->groups,
                                   .rows = from.data,
                                   .gradient = g.data,
                                   .residual = lost};
    struct cuda_fault at = {&fault, ITEM, 2};
    beside_launched("lose", cuda_lose(&call, &at, NULL));
    for (int64_t i = 0; i < n; i++) {
        float sum = ((float *)in[0].data)[i] + before[i];
        assert_true(lost[i] == sum - ((float *)values.outputs[0].data)[i]);
    }
    for (int64_t i = 0; i < first; i++)
        assert_true(((float *)r.data)[i] == ((float *)in[1].data)[i]);
    assert_int_equal(fault.code, FAULT_NONE);
    guarded_free(&from);
    guarded_free(&g);
    guarded_free(&r);
    tensor_release(&given[1]);
    eager_release(&values);
}

/* Each value is in the part that its field names, or beyond the first or last part. */
static void check_parts(const struct subject *s, const struct tensor in[3], const uint8_t *rows)
{
    const float *g = in[0].data, *r = in[1].data;
    r += *(int64_t *)in[2].data * s->code.group;
    for (int64_t i = 0; i < tensor_count(&in[0]); i++) {
        const uint8_t *row = rows + i / s->code.group * s->code.row;
        int64_t bit = i % s->code.group * s->code.bits;
        float range[2];
        memcpy(range, row, sizeof range);
        unsigned field = 0;
        for (int k = 0; k < s->code.bits; k++)
            field |= (row[8 + (bit + k) / 8] >> ((bit + k) % 8) & 1U) << k;
        float low = range[0] + (float)field * range[1];
        assert_true(g[i] + r[i] >= low - 1e-5F || field == 0);
        assert_true(g[i] + r[i] <= low + range[1] + 1e-5F || field == (1U << s->code.bits) - 1);
    }
}

static void check(const struct subject *s)
{
    struct eager_result expected = {0};
    int64_t first = 1 + (int64_t)(unit_random(&random_state) % 2);
    struct tensor in[3] = {values_of(s, s->groups), values_of(s, s->groups + first),
                           scalar_of(first)};
    by_cpu("QuantizeGradient", s, in, 3, &expected);
    const struct tensor *rows = &expected.outputs[0];
    assert_int_equal(rows->shape.dims[1], s->code.row);
    struct guarded g = beside_place(&in[0], true), r = beside_place(&in[1], true);
    struct guarded to = guarded_new(tensor_bytes(rows), s->code.group % 2);
    struct coded_gradients call = {.code = s->code,
                                   .groups = s->groups,
                                   .rows = to.data,
                                   .gradient = g.data,
                                   .residual = (float *)r.data + first * s->code.group};
    beside_launched("encode", cuda_encode(&call, NULL));
    if (s->code.kind == CODE_UNIFORM)
        check_parts(s, in, to.data);
    else
        beside_compare(names[s->code.kind], rows, to.data);
    check_decoded(s, rows, 1);
    check_lost(s, in, rows);
    guarded_free(&g);
    guarded_free(&r);
    guarded_free(&to);
    for (int i = 0; i < 3; i++)
        tensor_release(&in[i]);
    eager_release(&expected);
}

static void rows_are_the_cpus(void **state)
{
    static const int64_t groups[] = {1, 7, 8, 33, 256, 1003};
    (void)state;
    for (enum gradient_code_kind kind = CODE_ONE_BIT; kind <= CODE_TOP; kind++)
        for (uint64_t i = 0; i < 6; i++) {
            struct subject s = subject_of(kind, groups[i], 1 + (int64_t)i % 3);
            cuda_emulator_seed(i);
            check(&s);
        }
}

static void members_are_added_in_their_order(void **state)
{
    (void)state;
    for (enum gradient_code_kind kind = CODE_ONE_BIT; kind <= CODE_TOP; kind++) {
        struct subject s = subject_of(kind, 37, 2 * MEMBERS);
        struct eager_result coded = {0};
        struct tensor in[3] = {values_of(&s, 2 * MEMBERS), values_of(&s, 2 * MEMBERS),
                               scalar_of(0)};
        by_cpu("QuantizeGradient", &s, in, 3, &coded);
        struct subject each = subject_of(kind, 37, 2);
        check_decoded(&each, &coded.outputs[0], MEMBERS);
        for (int i = 0; i < 3; i++)
            tensor_release(&in[i]);
        eager_release(&coded);
    }
}

static void malformed_rows_are_faults(void **state)
{
    struct subject s = subject_of(CODE_TOP, 8, 2);
    uint8_t rows[2 * 24] = {0};
    float mean[16] = {0}, gradient[16] = {0}, residual[16];
    struct fault fault = {0};
    (void)state;
    assert_int_equal(s.code.row, 24);
    rows[24 + 8] = 8; /* the second entry of the second group */
    struct coded_gradients call = {.code = s.code,
                                   .groups = s.groups,
                                   .n = 1,
                                   .rows = rows,
                                   .gradient = gradient,
                                   .residual = residual,
                                   .mean = mean};
    struct cuda_fault at = {&fault, ITEM, 2};
    beside_launched("decode", cuda_decode(&call, &at, NULL));
    assert_int_equal(fault.code, FAULT_GROUP);
    assert_int_equal(fault.item, ITEM);
    assert_int_equal(fault.at, 1);
    for (int i = 0; i < 16; i++)
        residual[i] = (float)i;
    fault = (struct fault){0};
    beside_launched("lose", cuda_lose(&call, &at, NULL));
    assert_int_equal(fault.code, FAULT_GROUP);
    for (int i = 0; i < 16; i++)
        assert_true(residual[i] == (float)i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_the_cpus),
        cmocka_unit_test(members_are_added_in_their_order),
        cmocka_unit_test(malformed_rows_are_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
