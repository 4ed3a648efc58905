/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that go from one CUDA device of a process to another (lib/fake_cuda.h): directly if the
 * driver says that the first reaches the second's memory, even if it then refuses access, and
 * otherwise through the host.
 */
#include "lib/two_plans.h"

#define SEEDS 12
#define STEPS 6

#define FIRST "\"/job:localhost/task:0/device:CUDA:0\""
#define SECOND "\"/job:localhost/task:0/device:CUDA:1\""
#define BETWEEN ", send_device=" FIRST ", recv_device=" SECOND "}\n"
#define SEND(name, value) name " = Send(" value ") {tensor_name=\"" name "\"" BETWEEN
#define RECV(name, send)                                                                           \
    name " = Recv() {tensor_type=float32, shape=[4], tensor_name=\"" send "\"" BETWEEN

/* What the machine lacks. */
enum { NOTHING, PEERS, ACCESS, N_REPLIES };
static const char *const replies[] = {"nothing", "peers", "access"};

static struct device *open_device(int index)
{
    struct error err = ERROR_INIT;
    struct device *device =
        device_open("CUDA", index, &(struct device_options){.threads = 1}, &err);
    if (!device)
        fail_msg("%s", err.text);
    return device;
}

/* The setting is in the environment while the devices are opened. */
static void open_two(struct plan_pair *p, const char *const texts[2], const char *target,
                     const char *setting, long value, int reply)
{
    char text[32];
    snprintf(text, sizeof text, "%ld", value);
    setenv(setting, text, 1);
    setenv("TF_TEST_DEVICE_LACKS", replies[reply], 1);
    struct device *first = open_device(0);
    pair_open_on(p, first, open_device(1), texts, target);
    unsetenv(setting);
}

static void close_two(struct plan_pair *p)
{
    pair_close(p);
    unsetenv("TF_TEST_DEVICE_LACKS");
}

static const char *const squares[] = {
    "x = Placeholder() {dtype=float32, shape=[4]}\n"
    "twice = Add(x, x)\n" SEND("s", "twice") SEND("t", "x") "end = NoOp(^s, ^t)\n",
    RECV("r", "s") RECV("q", "t") "n = Neg(r)\nm = Add(q, q)\ny = Mul(n, m)\n"};

/* The only copies to or from the host are of the feed, the fetch, and both parts' blocks. */
static void check_copies(const struct plan_pair *p, bool by_host)
{
    struct device_test_counts first = device_counts(p->sides[0].device);
    struct device_test_counts second = device_counts(p->sides[1].device);
    assert_int_equal(first.copies_in, STEPS * 2);
    assert_int_equal(second.copies_out, STEPS * 2);
    if (by_host) {
        assert_true(first.copies_out >= STEPS * 3);
        assert_int_equal(second.copies_in, STEPS * 3);
    } else {
        assert_int_equal(first.copies_out, STEPS);
        assert_int_equal(second.copies_in, STEPS);
    }
}

static void values_go_from_one_to_the_other(void **state)
{
    (void)state;
    for (long seed = 0; seed < SEEDS * N_REPLIES; seed++) {
        struct plan_pair p;
        int reply = (int)(seed % N_REPLIES);
        bool captures = seed & 1;
        if (!captures)
            setenv("TF_TEST_DEVICE_CAPTURE", "0", 1);
        open_two(&p, squares, "^end", "TF_TEST_DEVICE_SEED", seed, reply);
        unsetenv("TF_TEST_DEVICE_CAPTURE");
        for (int64_t i = 1; i <= STEPS; i++) {
            float y[4];
            if (run_pair(&p, i, rendezvous_local_new(0), y))
                fail_msg("%s", p.err.text);
            assert_float_equal(y[0], -4 * (float)(i * i), 0);
            assert_float_equal(y[3], -64, 0);
        }
        if (!captures)
            check_copies(&p, reply == PEERS);
        close_two(&p);
    }
}

static void dead_values_are_dead(void **state)
{
    static const char *const texts[] = {
        "x = Placeholder() {dtype=float32, shape=[4]}\n"
        "start = Const() {dtype=int32, value=[0]}\n"
        "one = Const() {dtype=int32, value=[1]}\n"
        "first = Slice(x, start, one)\n"
        "empty = Const() {dtype=int32, value=[]}\n"
        "scalar = Reshape(first, empty)\n"
        "three = Const() {dtype=float32, value=3}\n"
        "p = Greater(scalar, three)\n"
        "b = Switch(x, p)\n" SEND("no", "b:0") SEND("yes", "b:1") "end = NoOp(^no, ^yes)\n",
        RECV("n", "no") RECV("m", "yes") "neg = Neg(n)\ny = Merge(neg, m)\n"};
    (void)state;
    for (long seed = 0; seed < SEEDS; seed++) {
        struct plan_pair p;
        open_two(&p, texts, "^end", "TF_TEST_DEVICE_SEED", seed, (int)(seed % N_REPLIES));
        for (int64_t i = 1; i <= STEPS; i++) {
            float y[4];
            if (run_pair(&p, i, rendezvous_local_new(0), y))
                fail_msg("%s", p.err.text);
            assert_float_equal(y[0], i > 3 ? (float)i : (float)-i, 0);
        }
        close_two(&p);
    }
}

/* The divisor of x is 0 in step 5: the receiver of the quotient changes no variable. */
static void garbage_is_garbage_there(void **state)
{
    static const char *const texts[] = {
        "x = Placeholder() {dtype=float32, shape=[4]}\n"
        "n = Cast(x) {SrcT=float32, DstT=int32}\n"
        "five = Const() {dtype=int32, value=5}\n"
        "d = Sub(n, five)\n"
        "q = Div(n, d)\n"
        "f = Cast(q) {SrcT=int32, DstT=float32}\n" SEND("s", "f"),
        RECV("r", "s") "v = Variable() {dtype=float32, shape=[4]}\n"
                       "one = Const() {dtype=float32, value=[1,1,1,1]}\n"
                       "zero = Const() {dtype=float32, value=[0,0,0,0]}\n"
                       "init = Assign(v, zero)\n"
                       "more = Mul(r, zero)\n"
                       "some = Add(more, one)\n"
                       "add = AssignAdd(v, some)\n"
                       "y = Identity(v, ^add)\n"};
    (void)state;
    for (long seed = 0; seed < 3 * SEEDS; seed++) {
        struct plan_pair p;
        open_two(&p, texts, "^s", "TF_TEST_DEVICE_SEED", seed, (int)(seed % N_REPLIES));
        pair_initialize(&p);
        for (int64_t i = 1; i <= 7; i++) {
            float y[4];
            assert_int_equal(run_pair(&p, i, rendezvous_local_new(0), y), i == 5 ? ERR_DATA : 0);
            if (i == 5)
                assert_string_equal(p.err.text, "node 'q': Div: integer division by zero");
            else
                assert_float_equal(y[3], (float)(i < 5 ? i : i - 1), 0);
        }
        close_two(&p);
    }
}

static void a_device_that_fails_ends_both(void **state)
{
    (void)state;
    for (long at = 1; at < 40; at++) {
        struct plan_pair p;
        int code = 0;
        open_two(&p, squares, "^end", "TF_TEST_DEVICE_FAIL", at, (int)(at % N_REPLIES));
        for (int64_t i = 1; !code && i < 40; i++) {
            float y[4];
            code = run_pair(&p, i, rendezvous_local_new(0), y);
        }
        assert_int_equal(code, ERR_OS);
        assert_non_null(strstr(p.err.text, "the TEST device has failed, as it was asked to"));
        close_two(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_go_from_one_to_the_other),
        cmocka_unit_test(dead_values_are_dead),
        cmocka_unit_test(garbage_is_garbage_there),
        cmocka_unit_test(a_device_that_fails_ends_both),
    };
    test_device_path();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
