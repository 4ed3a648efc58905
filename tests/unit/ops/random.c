/* SPDX-License-Identifier: Apache-2.0
 *
 * The generator against the known answers of its authors' Random123 1.14, the example of
 * docs/randomness.md, and the distributions against their moments and distribution functions.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/unit.h"
#include "ops/random/distribution.h"
#include "ops/random/philox.h"

static void known_replies(void **unused)
{
    (void)unused;
    static const struct {
        uint32_t key[2], counter[4], out[4];
    } replies[] = {
        {{0, 0}, {0, 0, 0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0xa4093822, 0x299f31d0},
         {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
        uint32_t out[4];
        philox(replies[i].key, replies[i].counter, out);
        assert_memory_equal(out, replies[i].out, sizeof out);
    }
}

static const struct philox_place example = {
    .seed = 42, .op_seed = 7, .op_seed2 = 12345678901, .step = 1000, .replica = 3};

static void worked_example(void **unused)
{
    (void)unused;
    static const uint32_t block0[] = {0x89655701, 0x097a2bdb, 0x48cc0a7f, 0x0f12038a};
    struct philox_stream stream = philox_stream_at(&example);
    uint32_t words[4];
    float pair[2];
    assert_int_equal(stream.key[0], 0x132af707);
    assert_int_equal(stream.key[1], 0x59a64635);
    assert_int_equal(stream.high[0], 0x776c0abd);
    assert_int_equal(stream.high[1], 0xddd37815);
    philox_block(&stream, 0, words);
    assert_memory_equal(words, block0, sizeof words);
    assert_true(uniform_float32(words[0]) == 0.536702573299408f);
    assert_true(uniform_float64(words) == 0.03702043638022201);
    normal_pair_float32(words, pair);
    assert_true(fabsf(pair[0] - 1.08558144f) < 2e-7f);
    assert_true(fabsf(pair[1] - 0.257167938f) < 1e-7f);
}

static void lanes_are_blocks(void **unused)
{
    (void)unused;
    struct philox_stream stream = philox_stream_at(&example);
    static const uint64_t starts[] = {0, 5, UINT32_MAX - 3, UINT64_C(1) << 48};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        uint32_t lanes[PHILOX_WORDS], block[4];
        philox_blocks(&stream, starts[i], lanes);
        for (uint64_t j = 0; j < PHILOX_LANES; j++) {
            philox_block(&stream, starts[i] + j, block);
            assert_memory_equal(block, lanes + 4 * j, sizeof block);
        }
    }
}

/* Each component of the place counts. */
static void places_differ(void **unused)
{
    (void)unused;
    struct philox_place at[7] = {example, example, example, example, example, example, example};
    at[1].seed ^= UINT64_C(1) << 40;
    at[2].op_seed++;
    at[3].op_seed2 ^= UINT64_C(1) << 63;
    at[4].step++;
    at[5].iteration++;
    at[6].replica++;
    for (int i = 0; i < 7; i++) {
        for (int k = 0; k < i; k++) {
            struct philox_stream a = philox_stream_at(&at[i]), b = philox_stream_at(&at[k]);
            assert_memory_not_equal(&a, &b, sizeof a);
        }
    }
}

static void own_functions(void **unused)
{
    (void)unused;
    uint64_t state = 1;
    for (int i = 0; i < 200000; i++) {
        uint32_t words[2] = {(uint32_t)unit_random(&state), (uint32_t)unit_random(&state)};
        double u = uniform_float64(words), sine, cosine;
        double x = i % 2 ? 1.0 - u : ldexp(1.0 - u, -(i % 60));
        double ln = log(x);
        assert_true(fabs(random_log(x) - ln) <= 4e-16 * fabs(ln) + 3e-17);
        random_sincos(u, true, &sine, &cosine);
        assert_true(fabs(sine - sin(2 * M_PI * u)) < 8e-16);
        assert_true(fabs(cosine - cos(2 * M_PI * u)) < 8e-16);
    }
    assert_true(random_log(1.0) == 0.0);
}

/* Without divisions the bits are the same, or doubtful, which they are rarely. */
static void quick_normals(void **unused)
{
    (void)unused;
    uint64_t state = 3, doubtful = 0;
    for (int i = 0; i < 1000000; i++) {
        uint32_t words[2] = {(uint32_t)unit_random(&state), (uint32_t)unit_random(&state)};
        float exact[2], quick[2];
        words[1] &= i % 4 ? UINT32_MAX : 0xe000000fu; /* near a quarter or an eighth of a turn */
        normal_pair_float32(words, exact);
        uint64_t is_doubtful = normal_pair_rounded(words, false, quick);
        doubtful += is_doubtful;
        assert_true(is_doubtful || !memcmp(exact, quick, sizeof exact));
    }
    assert_true(doubtful < 100);
    assert_int_equal(random_is_middle(1.0 + 0x1p-24), 1);
    assert_int_equal(random_is_middle(1.0 + 0x1p-24 - 0x1p-46), 1);
    assert_int_equal(random_is_middle(1.0 + 0x1p-24 + 0x1p-45), 0);
}

#define N 400000

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The Kolmogorov-Smirnov statistic: sqrt(N) times the largest distance; it exceeds 1.95 once in a
 * thousand. */
static double distance(double *x, double (*cdf)(double))
{
    double largest = 0;
    qsort(x, N, sizeof *x, by_value);
    for (int i = 0; i < N; i++) {
        double p = cdf(x[i]), above = p - (double)i / N, below = (double)(i + 1) / N - p;
        double more = above > below ? above : below;
        largest = more > largest ? more : largest;
    }
    return largest * sqrt(N);
}

static double uniform_cdf(double x)
{
    return x;
}

static double normal_cdf(double x)
{
    return 0.5 * erfc(-x / sqrt(2.0));
}

/* Checks the first four moments, within five standard errors. */
static void check_moments(const double *x, const double mean[4], const double error[4])
{
    double sum[4] = {0};
    for (int i = 0; i < N; i++) {
        double power = 1;
        for (int k = 0; k < 4; k++)
            sum[k] += power *= x[i];
    }
    for (int k = 0; k < 4; k++)
        assert_true(fabs(sum[k] / N - mean[k]) < 5 * error[k] / sqrt(N));
}

static void distributions(void **unused)
{
    (void)unused;
    struct philox_stream stream = philox_stream_at(&example);
    double *x = malloc(N * sizeof *x);
    uint32_t words[4];
    static const double u_mean[] = {1.0 / 2, 1.0 / 3, 1.0 / 4, 1.0 / 5}, u_error[] = {1, 1, 1, 1};
    static const double n_mean[] = {0, 1, 0, 3}, n_error[] = {1, 1.4143, 3.873, 9.798};
    for (int i = 0; i < N; i += 4) {
        philox_block(&stream, (uint64_t)i / 4, words);
        for (int k = 0; k < 4; k++)
            x[i + k] = (double)uniform_float32(words[k]);
    }
    check_moments(x, u_mean, u_error);
    assert_true(distance(x, uniform_cdf) < 1.95);
    for (int i = 0; i < N; i += 2) {
        philox_block(&stream, (uint64_t)i / 2, words);
        normal_pair_float64(words, x + i);
    }
    check_moments(x, n_mean, n_error);
    assert_true(distance(x, normal_cdf) < 1.95);
    for (int i = 0; i < N; i += 2) {
        float pair[2];
        philox_block(&stream, (uint64_t)i / 2, words);
        normal_pair_float32(words, pair);
        x[i] = (double)pair[0];
        x[i + 1] = (double)pair[1];
    }
    check_moments(x, n_mean, n_error);
    assert_true(distance(x, normal_cdf) < 1.95);
    free(x);
}

static void extremes(void **unused)
{
    (void)unused;
    static const uint32_t zeros[4] = {0},
                          ones[4] = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
    float pair32[2];
    double pair[2];
    assert_true(uniform_float32(UINT32_MAX) < 1.0f && uniform_float64(ones) < 1.0);
    assert_true(uniform_float32(0) == 0.0f && uniform_float64(zeros) == 0.0);
    normal_pair_float32(zeros, pair32);
    assert_true(pair32[0] > 6.6f && pair32[0] < 6.7f && pair32[1] == 0.0f);
    normal_pair_float64(ones, pair);
    assert_true(pair[0] > 8.5 && pair[0] < 8.6);
    normal_pair_float64(zeros, pair);
    assert_true(pair[0] == 0.0 && pair[1] == 0.0);
    assert_true(uniform_integer(ones, 10) == 9 && uniform_integer(zeros, 10) == 0);
    assert_true(uniform_integer(ones, UINT64_MAX) == UINT64_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_replies),    cmocka_unit_test(worked_example),
        cmocka_unit_test(lanes_are_blocks), cmocka_unit_test(places_differ),
        cmocka_unit_test(own_functions),    cmocka_unit_test(distributions),
        cmocka_unit_test(extremes),         cmocka_unit_test(quick_normals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
