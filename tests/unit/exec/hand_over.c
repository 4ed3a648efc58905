/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that go from one plan to another on the same device (lib/device_test.h): they stay in
 * place, the host waits for none of them, and values computed from garbage are garbage in the other
 * plan, too.
 */
#include "lib/on_device.h"

#include "exec/device/queue.h"
#include "lib/two_plans.h"

#define SEEDS 20
#define HERE "\"/job:localhost/task:0/device:TEST:0\""
#define SEND(name, value)                                                                          \
    name " = Send(" value ") {tensor_name=\"" name "\", send_device=" HERE ", recv_device=" HERE   \
         "}\n"
#define RECV(name, send)                                                                           \
    name " = Recv() {tensor_type=float32, shape=[4], tensor_name=\"" send "\", send_device=" HERE  \
         ", recv_device=" HERE "}\n"
#define OTHER "\"/job:localhost/task:0/device:TEST:1\""

static const char doubles[] = "x = Placeholder() {dtype=float32, shape=[4]}\n"
                              "twice = Add(x, x)\n" SEND("s", "twice");
static const char negates[] = RECV("r", "s") "n = Neg(r)\ny = Mul(n, r)\n";

static void expect_squares(struct plan_pair *p, int64_t number, struct rendezvous *rendezvous)
{
    float y[4];
    if (run_pair(p, number, rendezvous, y))
        fail_msg("%s", p->err.text);
    assert_float_equal(y[0], -4 * (float)(number * number), 0);
    assert_float_equal(y[3], -64, 0);
}

/* The only copies to or from the host are of the feed, the fetch, and both parts' blocks. */
static void values_stay_where_they_are(void **state)
{
    (void)state;
    for (long seed = 0; seed < SEEDS; seed++) {
        struct plan_pair p;
        pair_open(&p, device_open_eager("TF_TEST_DEVICE_SEED", seed), doubles, "^s", negates);
        for (int64_t i = 1; i <= 6; i++)
            expect_squares(&p, i, rendezvous_local_new(0));
        assert_int_equal(device_counts(p.device).copies_in, 6 * 3);
        assert_int_equal(device_counts(p.device).copies_out, 6 * 3);
        pair_close(&p);
    }
}

/* ---- a rendezvous that takes no values of devices ---- */

static struct rendezvous *of_the_host(void)
{
    struct rendezvous *rendezvous = rendezvous_local_new(0);
    rendezvous->takes_devices = false;
    return rendezvous;
}

static void others_get_them_in_host_memory(void **state)
{
    (void)state;
    for (long seed = 0; seed < SEEDS; seed++) {
        struct plan_pair p;
        pair_open(&p, device_open_eager("TF_TEST_DEVICE_SEED", seed), doubles, "^s", negates);
        for (int64_t i = 1; i <= 6; i++)
            expect_squares(&p, i, of_the_host());
        assert_int_equal(device_counts(p.device).copies_in, 6 * 4);
        assert_int_equal(device_counts(p.device).copies_out, 6 * 5); /* with the fault found */
        pair_close(&p);
    }
}

/* With the name of another device, the planner copies. */
static void names_of_two_devices_meet_on_the_host(void **state)
{
    static const char from[] =
        "x = Placeholder() {dtype=float32, shape=[4]}\n"
        "twice = Add(x, x)\n"
        "s = Send(twice) {tensor_name=\"s\", send_device=" HERE ", recv_device=" OTHER "}\n";
    static const char to[] = "r = Recv() {tensor_type=float32, shape=[4], tensor_name=\"s\", "
                             "send_device=" HERE ", recv_device=" OTHER "}\n"
                             "n = Neg(r)\ny = Mul(n, r)\n";
    struct plan_pair p;
    (void)state;
    pair_open(&p, device_open_eager(NULL, 0), from, "^s", to);
    for (int64_t i = 1; i <= 6; i++)
        expect_squares(&p, i, rendezvous_local_new(0));
    assert_int_equal(device_counts(p.device).copies_in, 6 * 4);
    pair_close(&p);
}

/* ---- dead ---- */

static void dead_values_are_dead(void **state)
{
    static const char from[] =
        "x = Placeholder() {dtype=float32, shape=[4]}\n"
        "start = Const() {dtype=int32, value=[0]}\n"
        "one = Const() {dtype=int32, value=[1]}\n"
        "first = Slice(x, start, one)\n"
        "empty = Const() {dtype=int32, value=[]}\n"
        "scalar = Reshape(first, empty)\n"
        "three = Const() {dtype=float32, value=3}\n"
        "p = Greater(scalar, three)\n"
        "b = Switch(x, p)\n" SEND("no", "b:0") SEND("yes", "b:1") "end = NoOp(^no, ^yes)\n";
    static const char to[] = RECV("n", "no") RECV("m", "yes") "neg = Neg(n)\ny = Merge(neg, m)\n";
    (void)state;
    for (long seed = 0; seed < SEEDS; seed++) {
        struct plan_pair p;
        pair_open(&p, device_open_with("TF_TEST_DEVICE_SEED", seed), from, "^end", to);
        for (int64_t i = 1; i <= 6; i++) {
            float y[4];
            if (run_pair(&p, i, rendezvous_local_new(0), y))
                fail_msg("%s", p.err.text);
            assert_float_equal(y[0], i > 3 ? (float)i : (float)-i, 0);
        }
        pair_close(&p);
    }
}

/* ---- garbage ---- */

/* The divisor of x is 0 in step 5. The receiver of the quotient changes no variable, and the part
 * that ends first reports the error. */
static const char divides[] = "x = Placeholder() {dtype=float32, shape=[4]}\n"
                              "n = Cast(x) {SrcT=float32, DstT=int32}\n"
                              "five = Const() {dtype=int32, value=5}\n"
                              "d = Sub(n, five)\n"
                              "q = Div(n, d)\n"
                              "f = Cast(q) {SrcT=int32, DstT=float32}\n" SEND("s", "f");
static const char counts[] = RECV("r", "s") "v = Variable() {dtype=float32, shape=[4]}\n"
                                            "one = Const() {dtype=float32, value=[1,1,1,1]}\n"
                                            "zero = Const() {dtype=float32, value=[0,0,0,0]}\n"
                                            "init = Assign(v, zero)\n"
                                            "more = Mul(r, zero)\n"
                                            "some = Add(more, one)\n"
                                            "add = AssignAdd(v, some)\n"
                                            "y = Identity(v, ^add)\n";

static void garbage_is_garbage_there(void **state)
{
    (void)state;
    for (long seed = 0; seed < 3 * SEEDS; seed++) {
        struct plan_pair p;
        pair_open(&p, device_open_with("TF_TEST_DEVICE_SEED", seed), divides, "^s", counts);
        pair_initialize(&p);
        for (int64_t i = 1; i <= 7; i++) {
            bool takes = seed % 3;
            float y[4];
            int code = run_pair(&p, i, takes ? rendezvous_local_new(0) : of_the_host(), y);
            assert_int_equal(code, i == 5 ? ERR_DATA : 0);
            if (i == 5)
                assert_string_equal(p.err.text, "node 'q': Div: integer division by zero");
            else
                assert_float_equal(y[3], (float)(i < 5 ? i : i - 1), 0);
        }
        pair_close(&p);
    }
}

/* A caller that waits for a reply to garbage is told, too: there the host checks for it. */
static void nobody_waits_for_what_garbage_brings(void **state)
{
    static const char asks[] = "x = Placeholder() {dtype=float32, shape=[4]}\n"
                               "n = Cast(x) {SrcT=float32, DstT=int32}\n"
                               "five = Const() {dtype=int32, value=5}\n"
                               "d = Sub(n, five)\n"
                               "q = Div(n, d)\n"
                               "f = Cast(q) {SrcT=int32, DstT=float32}\n" SEND("s", "f")
                                   RECV("back", "t") "end = NoOp(^back, ^s)\n";
    static const char replies[] =
        RECV("r", "s") "start = Const() {dtype=int32, value=[0]}\n"
                       "one = Const() {dtype=int32, value=[1]}\n"
                       "first = Slice(r, start, one)\n"
                       "n = Cast(first) {SrcT=float32, DstT=int32}\n"
                       "z = Mul(n, start)\n"
                       "four = Add(z, length)\n"
                       "length = Const() {dtype=int32, value=[4]}\n"
                       "t = Reshape(r, four)\n" SEND("u", "t") "y = Neg(t, ^u)\n";
    (void)state;
    for (long seed = 0; seed < SEEDS; seed++) {
        struct plan_pair p;
        char text[1024], *name;
        snprintf(text, sizeof text, "%s", replies);
        while ((name = strstr(text, "\"u\"")))
            name[1] = 't';
        pair_open(&p, device_open_with("TF_TEST_DEVICE_SEED", seed), asks, "^end", text);
        for (int64_t i = 3; i <= 7; i++) {
            float y[4];
            assert_int_equal(run_pair(&p, i, rendezvous_local_new(0), y), i == 5 ? ERR_DATA : 0);
            if (i == 5)
                assert_string_equal(p.err.text, "node 'q': Div: integer division by zero");
        }
        pair_close(&p);
    }
}

/* ---- steps that end early ---- */

/* A value that is never taken goes with the rendezvous, after the work that makes it. */
static void what_nobody_takes_is_given_back(void **state)
{
    static const struct shape shape = {.rank = 1, .dims = {4}};
    float elements[4] = {1, 2, 3, 4};
    struct tensor x = tensor_borrow(FLOAT32, &shape, elements);
    (void)state;
    for (int how = 0; how < 2; how++) {
        struct plan_pair p;
        struct error stopped = ERROR_INIT;
        pair_open(&p, device_open_with("TF_TEST_DEVICE_SEED", how), doubles, "^s", negates);
        for (int i = 0; i < 5; i++) {
            struct step step = {.number = 1, .rendezvous = rendezvous_local_new(0)};
            assert_int_equal(plan_run(p.sides[0].plan, &step, &x, NULL, &p.err), 0);
            if (how)
                step.rendezvous->abort(step.rendezvous,
                                       (error_set(&stopped, ERR_CANCELLED, "stopped"), &stopped));
            step.rendezvous->free(step.rendezvous);
        }
        assert_int_equal(device_finish(p.device, &p.err), 0);
        pair_close(&p);
    }
}

static void a_device_that_fails_ends_both(void **state)
{
    (void)state;
    for (long at = 1; at < 40; at++) {
        struct plan_pair p;
        pair_open(&p, device_open_with("TF_TEST_DEVICE_FAIL", at), doubles, "^s", negates);
        int code = 0;
        for (int64_t i = 1; !code && i < 40; i++) {
            float y[4];
            code = run_pair(&p, i, at % 2 ? rendezvous_local_new(0) : of_the_host(), y);
        }
        assert_int_equal(code, ERR_OS);
        assert_non_null(strstr(p.err.text, "the TEST device has failed, as it was asked to"));
        pair_close(&p);
    }
}

/* ---- errors ---- */

/* The name stands for one device of a process. */
static void another_device_of_the_name_is_refused(void **state)
{
    struct plan_pair p, other;
    float y[4];
    (void)state;
    pair_open(&p, device_open_with(NULL, 0), doubles, "^s", negates);
    pair_open(&other, device_open_with(NULL, 0), doubles, "^s", negates);
    struct plan_side own = p.sides[1];
    p.sides[1] = other.sides[1];
    assert_int_equal(run_pair(&p, 1, rendezvous_local_new(0), y), ERR_INTERNAL);
    assert_string_equal(p.err.text, "node 'r': Recv: was sent what is in the memory of another "
                                    "TEST:0");
    p.sides[1] = own;
    pair_close(&p);
    pair_close(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_stay_where_they_are),
        cmocka_unit_test(others_get_them_in_host_memory),
        cmocka_unit_test(names_of_two_devices_meet_on_the_host),
        cmocka_unit_test(dead_values_are_dead),
        cmocka_unit_test(garbage_is_garbage_there),
        cmocka_unit_test(nobody_waits_for_what_garbage_brings),
        cmocka_unit_test(what_nobody_takes_is_given_back),
        cmocka_unit_test(a_device_that_fails_ends_both),
        cmocka_unit_test(another_device_of_the_name_is_refused),
    };
    test_device_path();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
