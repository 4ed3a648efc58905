/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps whose work a device captures (lib/device_test.h): the second step of a static plan is
 * captured, later ones launch the capture again, and all bits equal those of steps enqueued item by
 * item.
 */
#include "lib/on_device.h"

#include <math.h>
#include <pthread.h>

#include "exec/step/trace.h"
#include "lib/started.h"

#define SEEDS 10

static struct device *open_seed(long seed)
{
    return device_open_with("TF_TEST_DEVICE_SEED", seed);
}

static const char training[] = "x = Placeholder() {dtype=float32, shape=[4]}\n"
                               "v = Variable() {dtype=float32, shape=[4]}\n"
                               "w = Variable() {dtype=float32, shape=[4]}\n"
                               "zero = Const() {dtype=float32, value=[0,0,0,0]}\n"
                               "v0 = Assign(v, zero)\n"
                               "w0 = Assign(w, zero)\n"
                               "init = NoOp(^v0, ^w0)\n"
                               "size = Const() {dtype=int32, value=[4]}\n"
                               "noise = RandomUniform(size) {dtype=float32}\n"
                               "g = Mul(x, noise)\n"
                               "add = AssignAdd(v, g)\n"
                               "now = Identity(v, ^add)\n"
                               "sub = AssignSub(w, now)\n"
                               "end = Identity(w, ^sub)\n"
                               "flat = Reshape(end, size)\n"
                               "y = Add(flat, noise)\n";

static int run_step(struct fixture *f, int64_t number, struct trace *trace, struct tensor *y)
{
    static const struct shape shape = {.rank = 1, .dims = {4}};
    float elements[4] = {(float)number, 2, (float)number / 3, 4};
    struct tensor x = tensor_borrow(FLOAT32, &shape, elements);
    struct edge feed, fetch;
    struct step step = {.number = number, .seed = 7, .trace = trace};
    if (graph_parse_edge(f->graph, "x", &feed, &f->err) ||
        graph_parse_edge(f->graph, "y", &fetch, &f->err))
        fail_msg("%s", f->err.text);
    struct plan_request call = {
        .feeds = &feed, .feed_values = &x, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1};
    return session_run(f->session, &call, &step, y, &f->err);
}

static void expect_step(struct fixture *f, struct fixture *eager, int64_t number,
                        struct trace *trace)
{
    struct tensor y, wanted;
    if (run_step(f, number, trace, &y))
        fail_msg("%s", f->err.text);
    if (run_step(eager, number, NULL, &wanted))
        fail_msg("%s", eager->err.text);
    assert_memory_equal(y.data, wanted.data, tensor_bytes(&wanted));
    tensor_release(&y);
    tensor_release(&wanted);
}

static void open_pair(struct fixture *f, struct fixture *eager, const char *graph, long seed,
                      struct device *devices[2])
{
    devices[0] = open_seed(seed);
    devices[1] = device_open_eager("TF_TEST_DEVICE_SEED", seed);
    fixture_open_on(f, graph, devices[0], false);
    fixture_open_on(eager, graph, devices[1], false);
}

static void close_pair(struct fixture *f, struct fixture *eager, struct device *devices[2])
{
    fixture_close(f);
    fixture_close(eager);
    device_free(devices[0]);
    device_free(devices[1]);
}

static void bits_are_those_of_enqueued_steps(void **state)
{
    (void)state;
    for (long seed = 0; seed < SEEDS; seed++) {
        struct device *devices[2];
        struct fixture f, eager;
        open_pair(&f, &eager, training, seed, devices);
        fixture_do(&f, "^init");
        fixture_do(&eager, "^init");
        for (int64_t i = 1; i <= 8; i++)
            expect_step(&f, &eager, i, NULL);
        assert_int_equal(device_counts(devices[0]).captures, 1);
        assert_int_equal(device_counts(devices[0]).launches, 7);
        assert_int_equal(device_counts(devices[1]).captures, 0);
        close_pair(&f, &eager, devices);
    }
}

static struct variable *variable_of(struct fixture *f, const char *name)
{
    return variable_store_find(session_variables(f->session), "default", name);
}

/* The fetched value is the one from the middle of the step. */
static void a_variable_is_fetched(void **state)
{
    static const char graph[] = "x = Placeholder() {dtype=float32, shape=[4]}\n"
                                "y = Variable() {dtype=float32, shape=[4]}\n"
                                "zero = Const() {dtype=float32, value=[0,0,0,0]}\n"
                                "init = Assign(y, zero)\n"
                                "add = AssignAdd(y, x)\n"
                                "then = NoOp(^add)\n";
    struct device *devices[2];
    struct fixture f, eager;
    (void)state;
    open_pair(&f, &eager, graph, 1, devices);
    fixture_do(&f, "^init");
    fixture_do(&eager, "^init");
    for (int64_t i = 1; i <= 5; i++)
        expect_step(&f, &eager, i, NULL);
    assert_int_equal(device_counts(devices[0]).launches, 4);
    close_pair(&f, &eager, devices);
}

/* Checkpoints depend on how often a variable was written. */
static void updates_are_counted(void **state)
{
    struct device *devices[2];
    struct fixture f, eager;
    (void)state;
    open_pair(&f, &eager, training, 1, devices);
    fixture_do(&f, "^init");
    fixture_do(&eager, "^init");
    for (int64_t i = 1; i <= 5; i++) {
        expect_step(&f, &eager, i, NULL);
        assert_int_equal(variable_of(&f, "v")->updates, i + 1);
        assert_int_equal(variable_of(&f, "w")->updates, i + 1);
    }
    close_pair(&f, &eager, devices);
}

/* A trace shows each item by itself. */
static void traced_steps_are_enqueued(void **state)
{
    struct device *devices[2];
    struct fixture f, eager;
    (void)state;
    open_pair(&f, &eager, training, 2, devices);
    fixture_do(&f, "^init");
    fixture_do(&eager, "^init");
    for (int64_t i = 1; i <= 9; i++) {
        struct trace *trace = i % 3 ? NULL : trace_new();
        expect_step(&f, &eager, i, trace);
        trace_free(trace);
    }
    assert_int_equal(device_counts(devices[0]).captures, 1);
    assert_int_equal(device_counts(devices[0]).launches, 5);
    close_pair(&f, &eager, devices);
}

/* ---- changes between steps ---- */

static void clear(struct fixture *f, const char *name)
{
    struct variable *variable = variable_of(f, name);
    variable_lock_wait(variable, true);
    variable_clear(variable);
    variable_unlock(variable, true);
}

static void variables_that_moved_are_captured_anew(void **state)
{
    struct device *devices[2];
    struct fixture f, eager;
    (void)state;
    open_pair(&f, &eager, training, 3, devices);
    for (int round = 0; round < 3; round++) {
        struct buffer *wall = device_alloc(devices[0], 16); /* takes the variable's old place */
        fixture_do(&f, "^init");
        fixture_do(&eager, "^init");
        for (int64_t i = 1; i <= 4; i++)
            expect_step(&f, &eager, i, NULL);
        clear(&f, "v");
        struct tensor y;
        assert_int_equal(run_step(&f, 5, NULL, &y), ERR_DATA);
        assert_non_null(strstr(f.err.text, "variable 'v' is not initialized"));
        wall->free(wall);
    }
    assert_int_equal(device_counts(devices[0]).captures, 3);
    close_pair(&f, &eager, devices);
}

/* ---- errors ---- */

static const char division[] = "x = Placeholder() {dtype=float32, shape=[4]}\n"
                               "n = Cast(x) {SrcT=float32, DstT=int32}\n"
                               "two = Const() {dtype=int32, value=5}\n"
                               "d = Sub(n, two)\n"
                               "y = Div(n, d)\n"; /* fails in step 5 */

static void steps_that_fail_name_their_node(void **state)
{
    (void)state;
    for (long seed = 0; seed < SEEDS; seed++) {
        struct device *device = open_seed(seed);
        struct fixture f;
        fixture_open_on(&f, division, device, false);
        for (int64_t i = 1; i <= 7; i++) {
            struct tensor y;
            assert_int_equal(run_step(&f, i, NULL, &y), i == 5 ? ERR_DATA : 0);
            if (i == 5)
                assert_string_equal(f.err.text, "node 'y': Div: integer division by zero");
            else
                tensor_release(&y);
        }
        assert_int_equal(device_counts(device).launches, 6);
        fixture_close(&f);
        device_free(device);
    }
}

static void a_device_that_fails_ends_steps(void **state)
{
    (void)state;
    for (long at = 1; at < 40; at++) {
        struct device *device = device_open_with("TF_TEST_DEVICE_FAIL", at);
        struct fixture f;
        fixture_open_on(&f, training, device, false);
        int code = fixture_run(&f, "^init", NULL, NULL, NULL);
        for (int64_t i = 1; !code && i < 40; i++) {
            struct tensor y;
            code = run_step(&f, i, NULL, &y);
            if (!code)
                tensor_release(&y);
        }
        assert_int_equal(code, ERR_OS);
        assert_non_null(strstr(f.err.text, "the TEST device has failed, as it was asked to"));
        fixture_close(&f);
        device_free(device);
    }
}

/* An update whose scalars differ from step to step. If kernels read them on the device, as CUDA's
 * do, the step is captured; the CPU's kernels read them on the host. */
static void scalars_that_change_are_read_anew(void **state)
{
    static const char graph[] =
        "x = Placeholder() {dtype=float32, shape=[4]}\n"
        "v = Variable() {dtype=float32, shape=[4]}\nm = Variable() {dtype=float32, shape=[4]}\n"
        "rate = Variable() {dtype=float32, shape=[]}\nhalf = Const() {dtype=float32, value=0.5}\n"
        "zero = Const() {dtype=float32, value=[0,0,0,0]}\nv0 = Assign(v, zero)\n"
        "m0 = Assign(m, zero)\nrate0 = Assign(rate, half)\ninit = NoOp(^v0, ^m0, ^rate0)\n"
        "now = Identity(rate)\nupdate = ApplyMomentum(v, m, now, x, half)\n"
        "less = Mul(now, half)\nnext = Assign(rate, less, ^update)\ny = Identity(v, ^next)\n";
    const char *kernels = getenv("TF_TEST_DEVICE_KERNELS");
    struct device *devices[2];
    struct fixture f, eager;
    (void)state;
    open_pair(&f, &eager, graph, 1, devices);
    fixture_do(&f, "^init");
    fixture_do(&eager, "^init");
    for (int64_t i = 1; i <= 5; i++)
        expect_step(&f, &eager, i, NULL);
    if (!strcmp(devices[0]->type, "CUDA") && !(kernels && !strcmp(kernels, "cpu")))
        assert_int_equal(device_counts(devices[0]).launches, 4);
    close_pair(&f, &eager, devices);
}

/* ---- steps that are not captured ---- */

/* The host reads an axis that is fed. */
static void what_the_host_reads_anew_is_not(void **state)
{
    static const char graph[] = "z = Const() {dtype=float32, value=[[1,2],[3,4]]}\n"
                                "x = Placeholder() {dtype=bool, shape=[2]}\n"
                                "r = Reverse(z, x)\n"
                                "y = Neg(r)\n";
    static const struct shape shape = {.rank = 1, .dims = {2}};
    struct device *device = open_seed(5);
    struct fixture f;
    (void)state;
    fixture_open_on(&f, graph, device, false);
    for (int i = 0; i < 4; i++) {
        bool dims[2] = {i & 1, i & 2};
        struct tensor x = tensor_borrow(BOOL, &shape, dims), y;
        assert_int_equal(fixture_run(&f, "y", "x", &x, &y), 0);
        assert_float_equal(tensor_get_float64(&y, 0), -1 - (dims[0] ? 2 : 0) - (dims[1] ? 1 : 0),
                           0);
        tensor_release(&y);
    }
    assert_int_equal(device_counts(device).captures, 0);
    fixture_close(&f);
    device_free(device);
}

/* ---- steps at once ---- */

struct stepper {
    struct fixture *f;
    int64_t first;
    int wrong;
};

static void *run_many(void *argument)
{
    struct stepper *stepper = argument;
    struct fixture own = *stepper->f;
    for (int64_t i = stepper->first; i < stepper->first + 20; i++) {
        struct tensor y;
        if (run_step(&own, i, NULL, &y)) {
            stepper->wrong++;
            continue;
        }
        stepper->wrong += tensor_get_float64(&y, 0) != (double)(i / (i - 5));
        tensor_release(&y);
    }
    return NULL;
}

static void steps_at_once_have_their_own(void **state)
{
    struct device *device = open_seed(6);
    struct fixture f;
    struct stepper steppers[3] = {{&f, 100, 0}, {&f, 18, 0}, {&f, 1000, 0}};
    pthread_t threads[3];
    (void)state;
    fixture_open_on(&f, division, device, false);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_many, &steppers[i]), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 3; i++)
        assert_int_equal(steppers[i].wrong, 0);
    assert_true(device_counts(device).launches > 0);
    fixture_close(&f);
    device_free(device);
}

static const char counting[] = "v = Variable() {dtype=float32, shape=[4]}\n"
                               "w = Variable() {dtype=float32, shape=[4]}\n"
                               "one = Const() {dtype=float32, value=[1,1,1,1]}\n"
                               "v0 = Assign(v, one)\n"
                               "w0 = Assign(w, one)\n"
                               "init = NoOp(^v0, ^w0)\n"
                               "add = AssignAdd(v, one)\n"
                               "now = Identity(v, ^add)\n"
                               "sub = AssignSub(w, now)\n";

/* A started step waits for the variables of all its items, and holds no thread. */
static void a_started_step_is_put_aside(void **state)
{
    struct planned p;
    (void)state;
    planned_open(&p, counting);
    struct device *device = p.options.device = open_seed(7);
    struct plan *init = planned_new(&p, "^init"), *plan = planned_new(&p, "^sub");
    struct step first = {.number = 1};
    struct tensor none;
    assert_int_equal(plan_run(init, &first, NULL, &none, &p.err), 0);
    struct variable *w = variable_store_find(p.variables, "default", "w");
    for (int64_t i = 1; i <= 4; i++) {
        struct started s;
        started_open(&s, i);
        variable_lock_wait(w, false);
        plan_start(plan, &s.step, NULL, &s.value, &s.done);
        assert_int_equal(atomic_load(&s.n_ends), 0);
        variable_unlock(w, false);
        started_wait(&s);
        assert_int_equal(s.code, 0);
        assert_int_equal(w->updates, i + 1);
        started_close(&s);
    }
    assert_int_equal(device_counts(device).launches, 3);
    plan_free(init);
    plan_free(plan);
    planned_close(&p);
    device_free(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_those_of_enqueued_steps),
        cmocka_unit_test(a_variable_is_fetched),
        cmocka_unit_test(updates_are_counted),
        cmocka_unit_test(traced_steps_are_enqueued),
        cmocka_unit_test(variables_that_moved_are_captured_anew),
        cmocka_unit_test(steps_that_fail_name_their_node),
        cmocka_unit_test(a_device_that_fails_ends_steps),
        cmocka_unit_test(scalars_that_change_are_read_anew),
        cmocka_unit_test(what_the_host_reads_anew_is_not),
        cmocka_unit_test(steps_at_once_have_their_own),
        cmocka_unit_test(a_started_step_is_put_aside),
    };
    test_device_path();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
