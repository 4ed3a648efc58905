/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that members of a collective bring from devices (lib/device_test.h) meet on the host;
 * garbage of one member ends the step of all.
 */
#include "lib/reducers.h"

#include "exec/device/queue.h"

#define SEEDS 20
#define STEPS 6

/* Member k in a step has [step, k + 2, 3, 4]. */
static void fill(float (*x)[REDUCERS_LENGTH], int64_t number)
{
    for (int k = 0; k < REDUCERS_MAX; k++)
        for (int i = 0; i < REDUCERS_LENGTH; i++)
            x[k][i] = i ? (float)(i + 1 + (i == 1 ? k : 0)) : (float)number;
}

static void step(struct reducers *all, int64_t number)
{
    float x[REDUCERS_MAX][REDUCERS_LENGTH];
    fill(x, number);
    reducers_step(all, number, x);
}

static const char sums[] = "x = Placeholder() {dtype=float32, shape=[4]}\n"
                           "twice = Add(x, x)\n"
                           "r = AllReduce(twice) {reductions=[\"sum\"]}\n"
                           "ya = Neg(r)\n";

/* For two members, expects -2 (x + x'). */
static void expect_sums(struct reducers *all)
{
    for (int64_t number = 1; number <= STEPS; number++) {
        step(all, number);
        for (int k = 0; k < all->n; k++) {
            if (all->each[k].code)
                fail_msg("%s", all->each[k].err.text);
            const float *y = all->each[k].values[0].data;
            assert_float_equal(y[0], -4 * (float)number, 0);
            assert_float_equal(y[1], -10, 0);
            assert_float_equal(y[3], -16, 0);
        }
    }
}

static struct device *open_cpu(void)
{
    struct error err = ERROR_INIT;
    struct device *cpu = device_open("CPU", 0, &(struct device_options){.threads = 1}, &err);
    assert_non_null(cpu);
    return cpu;
}

static void expect_equal(const struct reducers *a, const struct reducers *b)
{
    for (int k = 0; k < a->n; k++) {
        if (a->each[k].code)
            fail_msg("%s", a->each[k].err.text);
        assert_int_equal(b->each[k].code, 0);
        for (int i = 0; i < a->n_fetches; i++)
            assert_true(tensor_equal(&a->each[k].values[i], &b->each[k].values[i]));
    }
}

/* ---- where values meet ---- */

/* For each member on it, the feed, the value, the fault and the block go to or from the host,
 * besides the sum and the fetch. */
static void values_meet_on_the_host(void **state)
{
    struct device *cpu = open_cpu();
    (void)state;
    for (long seed = 0; seed < 3 * SEEDS; seed++) {
        struct reducers all;
        struct device *first = device_open_eager("TF_TEST_DEVICE_SEED", seed);
        struct device *other = device_open_eager("TF_TEST_DEVICE_SEED", seed + 1);
        struct device *second = (struct device *[]){first, other, cpu}[seed % 3];
        int members = 1 + (first == second);
        reducers_open(&all, 2, (struct device *[]){first, second}, sums);
        expect_sums(&all);
        struct device_test_counts counts = device_counts(first);
        assert_int_equal(counts.copies_in, STEPS * members * 3);
        assert_int_equal(counts.copies_out, STEPS * members * 4);
        reducers_close(&all);
        device_free(first);
        device_free(other);
    }
    device_free(cpu);
}

/* Without other members, the worker gets its own value. */
static void a_worker_alone_keeps_its_values(void **state)
{
    struct reducers all;
    struct device *device = device_open_eager(NULL, 0);
    (void)state;
    reducers_open(&all, 1, &device, sums);
    struct collective *alone = all.each[0].collective;
    all.each[0].collective = NULL;
    step(&all, 1);
    assert_int_equal(all.each[0].code, 0);
    assert_float_equal(((float *)all.each[0].values[0].data)[1], -4, 0);
    assert_int_equal(device_counts(device).copies_out, 2);
    all.each[0].collective = alone;
    reducers_close(&all);
    device_free(device);
}

/* ---- captured before and after the sums ---- */

/* Two sums, the second of which leaves when the first is back, and updates: three segments. */
static const char trains[] = "x = Placeholder() {dtype=float32, shape=[4]}\n"
                             "v = Variable() {dtype=float32, shape=[4]}\n"
                             "zero = Const() {dtype=float32, value=[0,0,0,0]}\n"
                             "init = Assign(v, zero)\n"
                             "t = Tanh(x)\n"
                             "g = Sub(t, v)\n"
                             "h = Mul(t, t)\n"
                             "r = AllReduce(g, h) {reductions=[\"mean\", \"sum\"]}\n"
                             "s = Mul(r:0, r:1)\n"
                             "a = AssignAdd(v, s)\n"
                             "k = Sub(s, h)\n"
                             "q = AllReduce(k) {reductions=[\"sum\"]}\n"
                             "n = Neg(q)\n"
                             "b = AssignSub(v, n, ^a)\n"
                             "ya = Add(v, n, ^b)\n"
                             "yb = Sub(n, r:0)\n";

/* The first step is enqueued, the next one captured, and the later ones are launched. */
static void a_step_is_captured_around_its_sums(void **state)
{
    struct device *cpu = open_cpu();
    (void)state;
    for (long seed = 0; seed < SEEDS; seed++) {
        struct device *device = device_open_with("TF_TEST_DEVICE_SEED", seed);
        struct device *eager = device_open_eager("TF_TEST_DEVICE_SEED", seed);
        struct reducers there, here;
        reducers_open(&there, 2, (struct device *[]){device, cpu}, trains);
        reducers_open(&here, 2, (struct device *[]){eager, cpu}, trains);
        for (int64_t number = 1; number <= STEPS; number++) {
            step(&there, number);
            step(&here, number);
            expect_equal(&there, &here);
            for (int k = 0; k < 2; k++)
                assert_int_equal(
                    variable_store_find(there.each[k].variables, "default", "v")->updates,
                    1 + 2 * number);
        }
        assert_int_equal(device_counts(device).captures, 3);
        assert_int_equal(device_counts(device).launches, 3 * (STEPS - 1));
        assert_int_equal(device_counts(eager).launches, 0);
        reducers_close(&there);
        reducers_close(&here);
        device_free(device);
        device_free(eager);
    }
    device_free(cpu);
}

/* ---- kinds ---- */

static const char kinds[] =
    "x = Placeholder() {dtype=float32, shape=[4]}\n"
    "i = Cast(x) {SrcT=float32, DstT=int32}\n"
    "t = Tanh(x)\n"
    "h = Cast(t) {SrcT=float32, DstT=bfloat16}\n"
    "r = AllReduce(t, t, i, t, h, t, h) {reductions=[\"sum\", \"mean\", \"sum\", \"first\", "
    "\"mean\", \"rows\", \"mean_rows\"]}\n"
    "ya = Identity(r:0)\nyb = Identity(r:1)\nyc = Identity(r:2)\nyd = Identity(r:3)\n"
    "ye = Identity(r:4)\nyf = Identity(r:5)\nyg = Identity(r:6)\n";

static void bits_are_those_of_the_cpu(void **state)
{
    struct device *cpu = open_cpu(), *device = device_open_with("TF_TEST_DEVICE_SEED", 5);
    struct reducers there, here;
    (void)state;
    reducers_open(&there, 3, (struct device *[]){device, device, device}, kinds);
    reducers_open(&here, 3, (struct device *[]){cpu, cpu, cpu}, kinds);
    for (int64_t number = 1; number <= STEPS; number++) {
        step(&there, number);
        step(&here, number);
        expect_equal(&there, &here);
    }
    assert_int_equal(there.n_fetches, 7);
    assert_int_equal(there.each[0].values[6].shape.dims[0], 12);
    reducers_close(&there);
    reducers_close(&here);
    device_free(device);
    device_free(cpu);
}

/* Errors of values are reported without reading the values. */
static void what_cannot_be_added_is_refused(void **state)
{
    static const char mask[] = "x = Placeholder() {dtype=float32, shape=[4]}\n"
                               "p = Greater(x, x)\n"
                               "r = AllReduce(p) {reductions=[\"sum\"]}\n"
                               "ya = Identity(r)\n";
    struct device *device = device_open_with(NULL, 0);
    struct reducers all;
    (void)state;
    reducers_open(&all, 2, (struct device *[]){device, device}, mask);
    step(&all, 1);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(all.each[k].code, ERR_DATA);
        assert_string_equal(all.each[k].err.text, "node 'r': AllReduce: there is no sum of bool");
    }
    reducers_close(&all);
    device_free(device);
}

/* ---- garbage ---- */

/* A member's x[0] is 5 in step 5, where its divisor is 0. */
static const char divides[] = "x = Placeholder() {dtype=float32, shape=[4]}\n"
                              "n = Cast(x) {SrcT=float32, DstT=int32}\n"
                              "five = Const() {dtype=int32, value=5}\n"
                              "d = Sub(n, five)\n"
                              "q = Div(n, d)\n"
                              "f = Cast(q) {SrcT=int32, DstT=float32}\n"
                              "r = AllReduce(f) {reductions=[\"sum\"]}\n"
                              "v = Variable() {dtype=float32, shape=[4]}\n"
                              "zero = Const() {dtype=float32, value=[0,0,0,0]}\n"
                              "one = Const() {dtype=float32, value=[1,1,1,1]}\n"
                              "init = Assign(v, zero)\n"
                              "nothing = Mul(r, zero)\n"
                              "some = Add(nothing, one)\n"
                              "add = AssignAdd(v, some)\n"
                              "ya = Identity(v, ^add)\n";

static void garbage_goes_to_nobody(void **state)
{
    struct device *cpu = open_cpu();
    (void)state;
    for (long seed = 0; seed < 2 * SEEDS; seed++) {
        struct reducers all;
        struct device *device = device_open_with("TF_TEST_DEVICE_SEED", seed);
        struct device *other = seed % 2 ? cpu : device;
        reducers_open(&all, 3, (struct device *[]){other, device, other}, divides);
        for (int64_t number = 1; number <= 7; number++) {
            float x[REDUCERS_MAX][REDUCERS_LENGTH];
            fill(x, 1);
            x[1][0] = (float)number;
            reducers_step(&all, number, x);
            for (int k = 0; k < 3; k++) {
                int failure = k == 1 ? ERR_DATA : ERR_CANCELLED;
                assert_int_equal(all.each[k].code, number == 5 ? failure : 0);
                if (number == 5 && k == 1)
                    assert_string_equal(all.each[k].err.text,
                                        "node 'q': Div: integer division by zero");
                else if (number != 5)
                    assert_float_equal(((float *)all.each[k].values[0].data)[3],
                                       (float)(number < 5 ? number : number - 1), 0);
            }
        }
        reducers_close(&all);
        device_free(device);
    }
    device_free(cpu);
}

/* ---- members that do not come ---- */

static const char branches[] = "x = Placeholder() {dtype=float32, shape=[4]}\n"
                               "start = Const() {dtype=int32, value=[0]}\n"
                               "length = Const() {dtype=int32, value=[1]}\n"
                               "first = Slice(x, start, length)\n"
                               "empty = Const() {dtype=int32, value=[]}\n"
                               "scalar = Reshape(first, empty)\n"
                               "three = Const() {dtype=float32, value=3}\n"
                               "p = Greater(scalar, three)\n"
                               "b = Switch(x, p)\n"
                               "r = AllReduce(b:0) {reductions=[\"sum\"]}\n"
                               "ya = Merge(r, b:1)\n";

static void who_has_nothing_to_bring_asks_for_nothing(void **state)
{
    (void)state;
    for (long seed = 0; seed < SEEDS; seed++) {
        struct reducers all;
        struct device *device = device_open_with("TF_TEST_DEVICE_SEED", seed);
        reducers_open(&all, 2, (struct device *[]){device, device}, branches);
        for (int64_t number = 1; number <= STEPS; number++) {
            step(&all, number);
            for (int k = 0; k < 2; k++) {
                assert_int_equal(all.each[k].code, 0);
                assert_float_equal(((float *)all.each[k].values[0].data)[3], number > 3 ? 4 : 8, 0);
            }
        }
        reducers_close(&all);
        device_free(device);
    }
}

/* A step that is stopped takes back what it brought; later ones meet, or one goes on alone. */
static void who_stops_takes_its_values_back(void **state)
{
    static const struct shape shape = {.rank = 1, .dims = {REDUCERS_LENGTH}};
    (void)state;
    for (long seed = 0; seed < SEEDS; seed++) {
        float x[REDUCERS_MAX][REDUCERS_LENGTH];
        struct error stop = ERROR_INIT;
        struct reducers all;
        struct device *device = device_open_with("TF_TEST_DEVICE_SEED", seed);
        reducers_open(&all, 2, (struct device *[]){device, device}, sums);
        fill(x, 9);
        struct tensor fed = tensor_borrow(FLOAT32, &shape, x[0]);
        struct reduce_member *first = &all.each[0], *second = &all.each[1];
        atomic_store(&second->is_over, true);
        reducer_start(first, 9, &fed);
        step_cancel(&first->step, (error_set(&stop, ERR_RETRY, "enough"), &stop));
        reducers_wait(&all);
        assert_int_equal(first->code, ERR_RETRY);
        expect_sums(&all);
        second->collective->leave(second->collective);
        reducers_release_values(&all);
        reducer_start(first, 10, &fed);
        reducers_wait(&all);
        assert_int_equal(first->code, 0);
        assert_float_equal(((float *)first->values[0].data)[1], -4, 0);
        reducers_close(&all);
        device_free(device);
    }
}

/* Who needs it is told so; another may have what it needs before, or has nobody to wait for. */
static void a_device_that_fails_ends_all(void **state)
{
    struct device *cpu = open_cpu();
    (void)state;
    for (long at = 1; at < 60; at++) {
        struct reducers all;
        struct device *device = device_open_with("TF_TEST_DEVICE_FAIL", at);
        reducers_open(&all, 2, (struct device *[]){device, at % 2 ? cpu : device}, sums);
        struct reduce_member *failed = NULL;
        for (int64_t number = 1; !failed && number < 40; number++) {
            step(&all, number);
            failed = reducers_failed(&all);
        }
        assert_non_null(failed);
        assert_true(all.each[0].code == ERR_OS || all.each[1].code == ERR_OS);
        for (int k = 0; k < 2; k++)
            assert_true(!all.each[k].code || all.each[k].code == ERR_OS ||
                        all.each[k].code == ERR_CANCELLED);
        reducers_close(&all);
        device_free(device);
    }
    device_free(cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_meet_on_the_host),
        cmocka_unit_test(a_worker_alone_keeps_its_values),
        cmocka_unit_test(a_step_is_captured_around_its_sums),
        cmocka_unit_test(bits_are_those_of_the_cpu),
        cmocka_unit_test(what_cannot_be_added_is_refused),
        cmocka_unit_test(garbage_goes_to_nobody),
        cmocka_unit_test(who_has_nothing_to_bring_asks_for_nothing),
        cmocka_unit_test(who_stops_takes_its_values_back),
        cmocka_unit_test(a_device_that_fails_ends_all),
    };
    test_device_path();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
