/* SPDX-License-Identifier: Apache-2.0
 *
 * The emulator of CUDA: correct kernels give correct results under every seed, and each mistake is
 * found and reported in one line.
 */
#include "lib/cuda_emulator.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/cuda/lessons.h"
#include "lib/cuda_memory.h"
#include "lib/unit.h"
#include "tensor/dtype.h"

#define N 640
#define SEEDS 20

typedef int cuda_lesson_run(const struct cuda_lesson *lesson, struct CUstream_st *stream);

static int x[N + 4], y[N + 4];

static void fill(void)
{
    uint64_t state = 5;
    for (int i = 0; i < N + 4; i++)
        x[i] = (int)(unit_random(&state) % 1000);
    memset(y, 0, sizeof y);
}

static int run(cuda_lesson_run *lesson, int n, int block, uint64_t seed)
{
    fill();
    cuda_emulator_seed(seed);
    return lesson(&(struct cuda_lesson){n, block, x, y}, NULL);
}

/* Runs a correct kernel; `expected` returns the value of y[i]. */
static void check(cuda_lesson_run *lesson, int n, int block, int (*expected)(int n, int i))
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        int result = run(lesson, n, block, seed);
        if (result)
            fail_msg("%s", cuda_emulator_fault());
        assert_null(cuda_emulator_fault());
        for (int i = 0; i < n; i++)
            if (y[i] != expected(n, i))
                fail_msg("seed %d: element %d is %d, not %d", (int)seed, i, y[i], expected(n, i));
    }
}

static int reversed(int n, int i)
{
    (void)n;
    return x[i / 128 * 128 + 127 - i % 128];
}

static int next_lane(int n, int i)
{
    int other = i / 32 * 32 + (i + 1) % 32;
    return other < n ? x[other] : 0;
}

static int value_at(int n, int i)
{
    return i < n ? x[i] : 0;
}

static int neighbours(int n, int i)
{
    int up = i % 32 ? i - 1 : i, down = i % 16 == 15 ? i : i + 1;
    return value_at(n, up) + 3 * value_at(n, down) + 5 * x[i / 32 * 32] + 7 * value_at(n, i ^ 1);
}

static int block_sum(int n, int i)
{
    int sum = 0;
    for (int k = i; k < i + 256 && i % 256 == 0; k++)
        sum += value_at(n, k);
    return sum;
}

static int votes(int n, int i)
{
    unsigned lanes = 0;
    for (int lane = 0; lane < 32; lane++)
        lanes |= (unsigned)(value_at(n, i / 32 * 32 + lane) & 1) << lane;
    return (int)(lanes ^ (lanes ? 2u : 0) ^ (lanes == 0xffffffffu ? 4u : 0));
}

static int counted(int n, int i)
{
    int odd = 0, largest = 0, sum = 0;
    for (int k = 0; k < n; k++) {
        odd += x[k] & 1;
        largest = x[k] > largest ? x[k] : largest;
        sum += x[k];
    }
    return i == 0 ? odd : i == 1 ? largest : i == 2 ? sum : 0;
}

static void test_what_is_right(void **state)
{
    (void)state;
    check(cuda_lesson_reverse, 640, 128, reversed);
    check(cuda_lesson_lanes_in_turn, 600, 64, next_lane);
    check(cuda_lesson_neighbours, 637, 96, neighbours);
    check(cuda_lesson_sum, 637, 256, block_sum);
    check(cuda_lesson_votes, 637, 160, votes);
    check(cuda_lesson_count, 637, 64, counted);
}

/* Threads and blocks come in another order under another seed, and in the same under the same. */
static void test_orders(void **state)
{
    int first[N];
    int same_block = 0;
    (void)state;
    assert_int_equal(run(cuda_lesson_order, N, 64, 1), 0);
    memcpy(first, y, sizeof first);
    assert_int_equal(run(cuda_lesson_order, N, 64, 1), 0);
    assert_memory_equal(first, y, sizeof first);
    assert_int_equal(run(cuda_lesson_order, N, 64, 2), 0);
    assert_memory_not_equal(first, y, sizeof first);
    for (int i = 0; i + 1 < N; i++)
        same_block += y[i] + 1 == y[i + 1];
    assert_true(same_block < N / 4);
}

/* Returns under how many seeds the mistake is found. The report contains the line. */
static int found(cuda_lesson_run *lesson, int n, int block, const char *line)
{
    int times = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        if (!run(lesson, n, block, seed))
            continue;
        assert_non_null(cuda_emulator_fault());
        assert_null(strchr(cuda_emulator_fault(), '\n'));
        if (!strstr(cuda_emulator_fault(), line))
            fail_msg("'%s' and not '%s'", cuda_emulator_fault(), line);
        times++;
    }
    return times;
}

static void test_races(void **state)
{
    (void)state;
    assert_int_equal(found(cuda_lesson_no_barrier, 640, 128, "tile["), SEEDS);
    assert_int_equal(
        found(cuda_lesson_no_barrier_after_read, 640, 128, "without a barrier between"), SEEDS);
    assert_int_equal(found(cuda_lesson_no_barrier_in_warp, 640, 64, "tile["), SEEDS);
    int wrong = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        assert_int_equal(run(cuda_lesson_global_order, 64, 32, seed), 0);
        wrong += y[63] != block_sum(64, 0);
    }
    assert_true(wrong > SEEDS / 2);
}

static void test_divergence(void **state)
{
    (void)state;
    assert_int_equal(found(cuda_lesson_early_leaver, 600, 64, "has left"), SEEDS);
    assert_int_equal(found(cuda_lesson_two_barriers, 64, 64, "is at the barrier of line"), SEEDS);
    assert_int_equal(found(cuda_lesson_barrier_and_shuffle, 64, 64, "waits at __"), SEEDS);
    assert_int_equal(found(cuda_lesson_absent_lane, 32, 32, "thread 7 has left"), SEEDS);
    assert_int_equal(found(cuda_lesson_neighbours, 16, 16, "lanes that do not exist"), SEEDS);
    assert_int_equal(found(cuda_lesson_wrong_mask, 32, 32, "which it is not one of"), SEEDS);
    assert_int_equal(found(cuda_lesson_other_mask, 32, 32, "of lanes ffff"), SEEDS);
    assert_int_equal(found(cuda_lesson_foreign_lane, 20, 32, "for the value of lane 20"), SEEDS);
    assert_int_equal(run(cuda_lesson_early_leaver, 3, 4, 0), CUDA_EMULATOR_FAILED);
    assert_non_null(strstr(cuda_emulator_fault(), "early_leaver: block (0,0,0): thread ("));
    assert_int_equal(run(cuda_lesson_early_leaver, 4, 4, 0), 0); /* other launches still work */
}

static void test_shared_memory(void **state)
{
    (void)state;
    assert_int_equal(
        found(cuda_lesson_shared_beyond, 32, 32, "writes tile[32], which has 32 elements"), SEEDS);
    assert_int_equal(found(cuda_lesson_shared_before, 32, 32, "writes tile[-1]"), SEEDS);
    assert_int_equal(found(cuda_lesson_shared_unwritten, 128, 64, "which nobody has written"),
                     SEEDS);
    assert_int_equal(
        found(cuda_lesson_shared_too_large, 32, 32, "has 49156 bytes of shared memory"), SEEDS);
    assert_int_equal(found(cuda_lesson_dynamic_beyond, 32, 32, "which has 28 elements"), SEEDS);
    assert_int_equal(found(cuda_lesson_crooked_pack, 640, 32, "16 bytes at once that lie"), SEEDS);
}

/* One element too many is accessed, in an array that ends where a page does. */
static void test_global_memory(void **state)
{
    (void)state;
    fill();
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct guarded from = guarded_copy(x, 100 * sizeof *x, true);
        struct guarded to = guarded_new(128 * sizeof *y, false);
        cuda_emulator_seed(seed);
        assert_int_equal(
            cuda_lesson_global_beyond(&(struct cuda_lesson){100, 64, from.data, to.data}, NULL),
            CUDA_EMULATOR_FAILED);
        if (!strstr(cuda_emulator_fault(), "block (1,0,0): thread (36,0,0) touches memory"))
            fail_msg("%s", cuda_emulator_fault());
        guarded_free(&from);
        guarded_free(&to);
    }
}

static void test_launches(void **state)
{
    (void)state;
    assert_int_equal(run(cuda_lesson_order, 1, 1025, 0), CUDA_EMULATOR_REFUSED);
    assert_string_equal(cuda_emulator_fault(), "order: grid (1,1,1) of blocks (1025,1,1) with "
                                               "4084 bytes");
    assert_int_equal(run(cuda_lesson_order, 0, 64, 0), CUDA_EMULATOR_REFUSED);
    uint64_t before = cuda_emulator_launches();
    assert_int_equal(run(cuda_lesson_order, 64, 1024, 0), 0);
    assert_int_equal(cuda_emulator_launches(), before + 1);
}

/* Bits equal those of the project's own conversions; any NaN equals any other. */
static void test_16_bits(void **state)
{
    static uint16_t bits[65536], half[65536], brain[65536];
    static float wide[2][65536];
    uint64_t random = 9;
    (void)state;
    for (int i = 0; i < 65536; i++)
        bits[i] = (uint16_t)i;
    cuda_lesson_widen(bits, 65536, wide[0], wide[1]);
    for (int i = 0; i < 65536; i++) {
        float expected[2] = {float16_to_float32(bits[i]), bfloat16_to_float32(bits[i])};
        for (int k = 0; k < 2; k++)
            if (!isnan(expected[k]) || !isnan(wide[k][i]))
                assert_memory_equal(&wide[k][i], &expected[k], sizeof *expected);
    }
    for (int round = 0; round < 8; round++) {
        for (int i = 0; i < 65536; i++) { /* every upper half, with various lower ones */
            uint32_t value = (uint32_t)i << 16 | (round ? (uint32_t)unit_random(&random) & 0xffff
                                                        : (uint32_t)(i & 1) << 15);
            memcpy(&wide[0][i], &value, sizeof value);
        }
        cuda_lesson_narrow(wide[0], 65536, half, brain);
        for (int i = 0; i < 65536; i++) {
            bool is_nan = isnan(wide[0][i]);
            assert_int_equal(half[i], is_nan ? 0x7fff : float32_to_float16(wide[0][i]));
            assert_int_equal(brain[i], is_nan ? 0x7fff : float32_to_bfloat16(wide[0][i]));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_right), cmocka_unit_test(test_orders),
        cmocka_unit_test(test_races),         cmocka_unit_test(test_divergence),
        cmocka_unit_test(test_shared_memory), cmocka_unit_test(test_launches),
        cmocka_unit_test(test_global_memory), cmocka_unit_test(test_16_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
