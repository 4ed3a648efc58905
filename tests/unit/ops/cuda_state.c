/* SPDX-License-Identifier: Apache-2.0
 *
 * Emulated CUDA kernels that write whole variables: they have the bits of the CPU's Add and Sub,
 * and do nothing in a step that has failed; and the kernel of CountUpTo.
 */
#include <stdio.h>

#include "lib/cuda_beside.h"
#include "ops/state/launchers_cuda.h"

static uint64_t random_state = 41;

static const struct {
    const char *op; /* gives the same from two tensors; NULL: the second tensor */
    enum cuda_assign_op code;
} ops[] = {{NULL, CUDA_ASSIGN}, {"Add", CUDA_ASSIGN_ADD}, {"Sub", CUDA_ASSIGN_SUB}};

static void check(size_t op, enum dtype type, int64_t n, bool at_end)
{
    char what[64];
    struct error err = ERROR_INIT;
    struct eager_result expected = {0};
    struct shape shape = shape_vector(n);
    struct tensor in[2] = {beside_random(type, &shape, &random_state),
                           beside_random(type, &shape, &random_state)};
    snprintf(what, sizeof what, "%d of %s, %d elements", (int)op, dtype_name(type), (int)n);
    if (ops[op].op && beside_run(ops[op].op, in, 2, NULL, 0, &expected, &err))
        fail_msg("%s: %s", what, err.text);
    struct guarded to = beside_place(&in[0], at_end), from = beside_place(&in[1], at_end);
    struct fault fault = {.code = FAULT_INDEX};
    struct cuda_assign call = {ops[op].code, beside_type(type), n, from.data, to.data, &fault};
    beside_launched(what, cuda_assign(&call, NULL));
    assert_memory_equal(to.data, in[0].data, to.bytes);
    fault.code = FAULT_NONE;
    beside_launched(what, cuda_assign(&call, NULL));
    beside_compare(what, ops[op].op ? &expected.outputs[0] : &in[1], to.data);
    if (ops[op].op)
        eager_release(&expected);
    guarded_free(&to);
    guarded_free(&from);
    tensor_release(&in[0]);
    tensor_release(&in[1]);
}

static void test_assign(void **state)
{
    static const int64_t lengths[] = {0, 1, 31, 33, 259, 1030};
    (void)state;
    for (size_t op = 0; op < 3; op++)
        for (int type = 1; type < 32; type++) {
            const char *like = ops[op].op ? ops[op].op : "Assign";
            if (!(beside_types(like, "T") & DTYPE_BIT(type)))
                continue;
            for (int i = 0; i < 12; i++)
                check(op, (enum dtype)type, lengths[i / 2], i % 2);
        }
}

static void test_unknown(void **state)
{
    struct cuda_assign call = {.op = CUDA_ASSIGN_ADD, .type = CUDA_BOOL};
    (void)state;
    assert_int_equal(cuda_assign(&call, NULL), CUDA_INVALID_VALUE);
    call.type = N_CUDA_TYPES;
    call.op = CUDA_ASSIGN;
    assert_int_equal(cuda_assign(&call, NULL), CUDA_INVALID_VALUE);
}

/* Counts until the limit is reached, which then is the step's fault. */
static void check_count(enum cuda_type type, void *value, void *out, int64_t *got)
{
    struct fault fault = {0}, reached = {7, FAULT_LIMIT, 0, 0, 3, 3};
    struct cuda_count_up_to call = {type, 3, value, out, {&fault, 7, 0}};
    for (int i = 0; i < 2; i++, got++) {
        assert_int_equal(cuda_count_up_to(&call, NULL), 0);
        *got = type == CUDA_INT64 ? *(int64_t *)out : *(int32_t *)out;
    }
    assert_int_equal(fault.code, FAULT_NONE);
    call.limit = 4; /* as in a step that has failed */
    fault.code = FAULT_INDEX;
    assert_int_equal(cuda_count_up_to(&call, NULL), 0);
    call.limit = 3;
    fault.code = FAULT_NONE;
    assert_int_equal(cuda_count_up_to(&call, NULL), 0);
    assert_memory_equal(&fault, &reached, sizeof fault);
}

static void test_count(void **state)
{
    int64_t wide = 1, wide_out, got[2];
    int32_t narrow = 1, narrow_out;
    struct cuda_count_up_to none = {.type = CUDA_FLOAT32};
    (void)state;
    check_count(CUDA_INT64, &wide, &wide_out, got);
    assert_true(got[0] == 1 && got[1] == 2 && wide == 3 && wide_out == 2);
    check_count(CUDA_INT32, &narrow, &narrow_out, got);
    assert_true(got[0] == 1 && got[1] == 2 && narrow == 3 && narrow_out == 2);
    assert_int_equal(cuda_count_up_to(&none, NULL), CUDA_INVALID_VALUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_assign),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
