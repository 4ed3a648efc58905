/* SPDX-License-Identifier: Apache-2.0
 *
 * Collectives between processes, played by threads that share nothing but links.
 */
#include "lib/combine.h"
#include "lib/random.h"
#include "lib/reductions.h"

#include <time.h>

static void check_sums(struct members *all)
{
    static const int64_t sizes[] = {0, 1, 3, 1000, 16384, 16385, 100003, 700001};
    static const enum collective_kind kinds[1] = {COLLECTIVE_SUM};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        struct tensor values[MEMBERS_MAX][8];
        struct shape shape = shape_vector(sizes[s]);
        struct collective_key key = {"gradients", (int64_t)s, 0};
        for (int k = 0; k < all->n; k++)
            fill(&values[k][0], FLOAT32, &shape, k);
        check_call(all, &key, values, kinds, 1);
        release_all(all, values, 1);
    }
}

static void test_sums_of_all_sizes(void **state)
{
    (void)state;
    for (int n = 1; n <= 5; n++) {
        struct members all;
        members_start(&all, n);
        check_sums(&all);
        members_stop(&all);
    }
}

static void test_sums_when_some_share_memory(void **state)
{
    (void)state;
    for (int n_shared = 0; n_shared < 4; n_shared++) {
        struct members all;
        members_start_some_shared(&all, 4, n_shared);
        check_sums(&all);
        members_stop(&all);
    }
}

static void test_all_types(void **state)
{
    static const enum dtype types[] = {FLOAT64, BFLOAT16, FLOAT16, INT8,   INT16, INT32,
                                       INT64,   UINT8,    UINT16,  UINT32, UINT64};
    struct members all;
    (void)state;
    members_start(&all, 3);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        enum collective_kind last = dtype_is_floating(types[t]) ? COLLECTIVE_MEAN : COLLECTIVE_SUM;
        const enum collective_kind kinds[4] = {COLLECTIVE_SUM, COLLECTIVE_SUM, last, last};
        struct tensor values[MEMBERS_MAX][8];
        struct shape small = shape_matrix(3, 5), large = shape_matrix(300, 401);
        struct collective_key key = {"a/b", 1, t};
        for (int k = 0; k < 3; k++)
            for (int i = 0; i < 4; i++)
                fill(&values[k][i], types[t], i % 2 ? &large : &small, k);
        check_call(&all, &key, values, kinds, 4);
        release_all(&all, values, 4);
    }
    members_stop(&all);
}

/* This holds also for values large enough to be added in chunks: integers are never divided as if
 * they were floats. */
static void test_no_mean_of_integers(void **state)
{
    static const enum collective_kind mean = COLLECTIVE_MEAN;
    struct members all;
    (void)state;
    members_start(&all, 2);
    for (int64_t count = 3; count < 300000; count *= 300) {
        struct tensor values[MEMBERS_MAX][8];
        struct reply replies[2];
        struct shape shape = shape_vector(count);
        for (int k = 0; k < 2; k++) {
            fill(&values[k][0], INT16, &shape, k);
            struct collective_call call = {{"n", count, 0}, values[k], &mean, 1, .yields = false};
            member_call(&all, k, &call, &replies[k]);
        }
        for (int k = 0; k < 2; k++) {
            reply_wait(&replies[k]);
            assert_int_equal(replies[k].err.code, ERR_DATA);
            assert_non_null(strstr(replies[k].err.text, "there is no mean of int16"));
            reply_release(&replies[k]);
        }
        release_all(&all, values, 1);
    }
    members_stop(&all);
}

/* Floats of random bits, so some are tiny and lose bits when they are halved. */
static void any_floats(struct tensor *t, enum dtype type, uint64_t *seed)
{
    struct error err = ERROR_INIT;
    struct shape shape = shape_vector(1000);
    must(tensor_alloc(t, type, &shape, &err), &err);
    for (int64_t i = 0; i < 1000; i++) {
        uint64_t bits = unit_random(seed);
        if (i % 2) /* sums of these are tiny, too */
            bits &= type == FLOAT64 ? ~(UINT64_C(0x7ff) << 52) : ~(UINT64_C(0x7f8) << 20);
        memcpy((char *)t->data + (size_t)i * dtype_bytes(type), &bits, dtype_bytes(type));
    }
}

static bool is_quotient(const struct tensor *mean, const struct tensor *const *each, int n,
                        int64_t i)
{
    if (mean->type == FLOAT64) {
        double total = ((const double *)each[0]->data)[i];
        for (int k = 1; k < n; k++)
            total += ((const double *)each[k]->data)[i];
        double got = ((const double *)mean->data)[i], expected = total / n;
        return !memcmp(&got, &expected, sizeof got) || (isnan(got) && isnan(expected));
    }
    float total = ((const float *)each[0]->data)[i];
    for (int k = 1; k < n; k++)
        total += ((const float *)each[k]->data)[i];
    float got = ((const float *)mean->data)[i], expected = total / (float)n;
    return !memcmp(&got, &expected, sizeof got) || (isnan(got) && isnan(expected));
}

static void test_means_are_quotients(void **state)
{
    static const enum dtype types[] = {FLOAT32, FLOAT64};
    uint64_t seed = 1;
    (void)state;
    for (int t = 0; t < 2; t++) {
        struct tensor values[8], mean = TENSOR_INIT;
        const struct tensor *each[8];
        struct error err = ERROR_INIT;
        for (int k = 0; k < 8; k++) {
            any_floats(&values[k], types[t], &seed);
            each[k] = &values[k];
        }
        for (int n = 1; n <= 8; n++) {
            must(collective_combine(COLLECTIVE_MEAN, each, n, &mean, &err), &err);
            for (int64_t i = 0; i < 1000; i++)
                assert_true(is_quotient(&mean, each, n, i));
            tensor_release(&mean);
        }
        for (int k = 0; k < 8; k++)
            tensor_release(&values[k]);
    }
}

/* Checks against arithmetic, not our own function: 1 + 2 + 3 + 4, in bfloat16 256 + 1 + 1 + 1
 * (added in float32, 259 is rounded once, to 260; added in bfloat16 it would stay 256). The mean is
 * a quarter of each. Also for values that fill chunks and end within a vector. */
static void test_values(void **state)
{
    struct members all;
    (void)state;
    members_start(&all, 4);
    struct tensor values[MEMBERS_MAX][8];
    struct reply replies[4];
    const enum collective_kind kinds[4] = {COLLECTIVE_SUM, COLLECTIVE_SUM, COLLECTIVE_MEAN,
                                           COLLECTIVE_MEAN};
    static const double expected[4] = {10, 260, 2.5, 65};
    struct error err = ERROR_INIT;
    for (int64_t count = 1; count < 200000; count = count * 50 + 7) {
        struct shape shape = shape_vector(count);
        for (int k = 0; k < 4; k++) {
            for (int i = 0; i < 4; i++) {
                must(tensor_alloc(&values[k][i], i % 2 ? BFLOAT16 : FLOAT32, &shape, &err), &err);
                for (int64_t j = 0; j < count; j++)
                    tensor_set_float64(&values[k][i], j, i % 2 == 0 ? k + 1 : k ? 1 : 256);
            }
            struct collective_call call = {{"n", count, 0}, values[k], kinds, 4, .yields = false};
            member_call(&all, k, &call, &replies[k]);
        }
        for (int k = 0; k < 4; k++) {
            reply_wait(&replies[k]);
            for (int i = 0; i < 4; i++)
                for (int64_t j = 0; j < count; j++)
                    assert_true(tensor_get_float64(&replies[k].results[i], j) == expected[i]);
            reply_release(&replies[k]);
        }
        release_all(&all, values, 4);
    }
    members_stop(&all);
}

/* All members yield a value of that type; the last one also keeps it. */
static void check_yielded(struct members *all, enum dtype type)
{
    static const enum collective_kind sum = COLLECTIVE_SUM;
    struct tensor values[MEMBERS_MAX][8], kept = TENSOR_INIT, before = TENSOR_INIT;
    const struct tensor *each[MEMBERS_MAX];
    struct reply replies[MEMBERS_MAX];
    struct tensor expected = TENSOR_INIT;
    struct error err = ERROR_INIT;
    struct shape shape = shape_matrix(300, 2001);
    for (int k = 0; k < all->n; k++) {
        fill(&values[k][0], type, &shape, k);
        each[k] = &values[k][0];
    }
    must(collective_combine(sum, each, all->n, &expected, &err), &err);
    tensor_share(&kept, each[all->n - 1]);
    must(tensor_copy(&before, &kept, &err), &err);
    for (int k = 0; k < all->n; k++) {
        struct collective_call call = {{"g", 1, type}, values[k], &sum, 1, .yields = true};
        member_call(all, k, &call, &replies[k]);
    }
    for (int k = 0; k < all->n; k++) {
        reply_wait(&replies[k]);
        must(replies[k].err.code, &replies[k].err);
        assert_true(tensor_equal(&replies[k].results[0], &expected));
        assert_int_equal(replies[k].results[0].data == values[k][0].data, k != all->n - 1);
        reply_release(&replies[k]);
    }
    assert_true(tensor_equal(&kept, &before));
    tensor_release(&before);
    tensor_release(&kept);
    tensor_release(&expected);
    release_all(all, values, 1);
}

/* The sum takes the memory of a yielded value, whatever the member's place among the addends,
 * unless the value has another holder. */
static void test_values_that_are_yielded(void **state)
{
    static const enum dtype types[] = {FLOAT32, FLOAT64, BFLOAT16, UINT8, INT16, INT64};
    (void)state;
    for (int n = 2; n <= 5; n += 3)
        for (int n_shared = 0; n_shared <= n; n_shared += n) {
            struct members all;
            members_start_some_shared(&all, n, n_shared);
            for (size_t t = 0; t < sizeof types / sizeof *types; t++)
                check_yielded(&all, types[t]);
            members_stop(&all);
        }
}

static void test_other_kinds(void **state)
{
    static const enum collective_kind kinds[5] = {COLLECTIVE_FIRST, COLLECTIVE_ROWS, COLLECTIVE_SUM,
                                                  COLLECTIVE_FIRST, COLLECTIVE_FIRST};
    static const char *const texts[MEMBERS_MAX] = {"none", "one", "", "three"};
    struct members all;
    struct error err = ERROR_INIT;
    (void)state;
    members_start(&all, 4);
    for (int round = 0; round < 3; round++) {
        struct tensor values[MEMBERS_MAX][8];
        struct collective_key key = {"mixed", round, 0};
        struct shape large = shape_matrix(700, 1001), text = shape_vector(1);
        for (int k = 0; k < 4; k++) {
            struct shape rows = shape_matrix(k * round, 5);
            fill(&values[k][0], FLOAT32, &large, k);
            fill(&values[k][1], INT64, &rows, k);
            fill(&values[k][2], FLOAT64, &large, k);
            fill(&values[k][3], INT32, &SHAPE_SCALAR, k);
            must(tensor_from_strings(&values[k][4], &text, &texts[k], NULL, &err), &err);
        }
        check_call(&all, &key, values, kinds, 5);
        release_all(&all, values, 5);
    }
    members_stop(&all);
}

/* Many calls at once, which each member begins in another order. */
static void test_several_in_flight(void **state)
{
    enum { CALLS = 24, N = 3 };
    static struct reply replies[N][CALLS];
    static struct tensor values[N][CALLS];
    static const enum collective_kind kind = COLLECTIVE_SUM;
    struct members all;
    (void)state;
    members_start(&all, N);
    for (int c = 0; c < CALLS; c++)
        for (int k = 0; k < N; k++) {
            int which = (c * 7 + k * 5) % CALLS;
            struct shape shape = shape_vector(which % 2 ? 10 : 200000);
            struct collective_call call = {{which % 3 ? "a" : "b", which / 3, 0},
                                           &values[k][which],
                                           &kind,
                                           1,
                                           .yields = false};
            call.key.iteration = (uint64_t)which % 3;
            fill(&values[k][which], FLOAT32, &shape, k + which);
            member_call(&all, k, &call, &replies[k][which]);
        }
    for (int c = 0; c < CALLS; c++) {
        const struct tensor *each[N] = {&values[0][c], &values[1][c], &values[2][c]};
        struct tensor expected = TENSOR_INIT;
        struct error err = ERROR_INIT;
        must(collective_combine(kind, each, N, &expected, &err), &err);
        for (int k = 0; k < N; k++) {
            reply_wait(&replies[k][c]);
            must(replies[k][c].err.code, &replies[k][c].err);
            assert_true(tensor_equal(&replies[k][c].results[0], &expected));
            reply_release(&replies[k][c]);
        }
        tensor_release(&expected);
        for (int k = 0; k < N; k++)
            tensor_release(&values[k][c]);
    }
    members_stop(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_of_all_sizes),
        cmocka_unit_test(test_sums_when_some_share_memory),
        cmocka_unit_test(test_all_types),
        cmocka_unit_test(test_no_mean_of_integers),
        cmocka_unit_test(test_means_are_quotients),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_values_that_are_yielded),
        cmocka_unit_test(test_other_kinds),
        cmocka_unit_test(test_several_in_flight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
