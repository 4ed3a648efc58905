/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors that a device with memory of its own (lib/device_test.h) finds in the data: in whatever
 * order it works, a step ends as it does on the CPU, and changes nothing more.
 */
#include "lib/on_device.h"

#include <math.h>
#include <pthread.h>

#include "base/memory.h"
#include "lib/cut.h"

#define SEEDS 10

static struct device *open_seed(long seed)
{
    return device_open_with("TF_TEST_DEVICE_SEED", seed);
}

/* Fetches y of a graph whose x is fed [x0,0]. */
static int fetch_y(struct fixture *f, float x0, struct tensor *y)
{
    static const struct shape shape = {.rank = 1, .dims = {2}};
    float elements[2] = {x0, 0};
    struct tensor x = tensor_borrow(FLOAT32, &shape, elements);
    return fixture_run(f, "y", "x", &x, y);
}

static void expect_failure(struct fixture *f, const char *text)
{
    struct tensor y;
    f->err = error_none();
    unit_assert_error(fetch_y(f, 1, &y), f->err, ERR_DATA, text);
}

/* ---- as on the CPU ---- */

struct faulty {
    const char *graph, *text;
};

/* n is [1,0] as whole numbers; t has three rows. */
#define X "x = Placeholder() {dtype=float32, shape=[2]}\n"
#define N X "n = Cast(x) {SrcT=float32, DstT=int32}\n"
#define TABLE N "t = Const() {dtype=float32, value=[[1,2],[3,4],[5,6]]}\n"
#define NOT_FINITE "a = Log(x)\n" /* [0,-inf] */

static const struct faulty faults[] = {
    {TABLE "more = Const() {dtype=int32, value=[[0,1],[1,3]]}\n"
           "i = Add(n, more)\n" /* [[1,1],[2,3]] */
           "y = Gather(t, i)\n",
     "node 'y': Gather: index 3 at [1,1] is outside [0, 3)"},
    {TABLE "less = Const() {dtype=int64, value=[1,1]}\n"
           "wide = Cast(x) {SrcT=float32, DstT=int64}\n"
           "i = Sub(wide, less)\n"
           "y = Gather(t, i)\n",
     "node 'y': Gather: index -1 at [1] is outside [0, 3)"},
    {N "logits = Const() {dtype=float32, value=[[1,2],[3,4]]}\n"
       "five = Const() {dtype=int32, value=5}\n"
       "labels = Mul(n, five)\n"
       "y = SparseSoftmaxCrossEntropyWithLogits(logits, labels)\n",
     "node 'y': SparseSoftmaxCrossEntropyWithLogits: label 5 at [0] is outside [0, 2)"},
    {N "y = Div(n, n)\n", "node 'y': Div: integer division by zero"},
    {N "y = Mod(n, n)\n", "node 'y': Mod: integer division by zero"},
    {N "one = Const() {dtype=int32, value=1}\n"
       "p = Sub(n, one)\n"
       "y = Pow(p, p)\n",
     "node 'y': Pow: an integer to a negative power"},
    {X NOT_FINITE "y = CheckNumerics(a) {message=\"the log\"}\n",
     "node 'y': CheckNumerics: the log is -Inf at [1] of float32[2]"},
    /* errors of the device's own: */
    {X NOT_FINITE "shape = Const() {dtype=int32, value=[1,2]}\n"
                  "m = Reshape(a, shape)\n"
                  "b = Div(m, m)\n"
                  "count = Const() {dtype=int32, value=2}\n"
                  "y = Multinomial(b, count)\n",
     "node 'y': Multinomial: no class of row 0 is possible: its logits are not finite"},
};

static void say_what_they_do_on_the_cpu(struct device *device, bool dynamic)
{
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct fixture f;
        fixture_open_on(&f, faults[i].graph, device, dynamic);
        expect_failure(&f, faults[i].text);
        expect_failure(&f, faults[i].text); /* a failed step leaves no trace */
        if (!device->is_host)
            assert_true(device_counts(device).enqueued > 0);
        fixture_close(&f);
    }
}

static void texts_are_the_cpus(void **state)
{
    struct error err = ERROR_INIT;
    struct device *cpu = device_open("CPU", 0, &(struct device_options){.threads = 1}, &err);
    (void)state;
    for (int dynamic = 0; dynamic < 2; dynamic++)
        say_what_they_do_on_the_cpu(cpu, dynamic);
    device_free(cpu);
    for (long seed = 0; seed < 2 * SEEDS; seed++) {
        struct device *device = open_seed(seed);
        say_what_they_do_on_the_cpu(device, seed % 2);
        device_free(device);
    }
}

/* ---- updates of steps that fail ---- */

static const char updates[] = N "zero = Const() {dtype=float32, value=[0,0]}\n"
                                "a = Variable() {dtype=float32, shape=[2]}\n"
                                "b = Variable() {dtype=float32, shape=[2]}\n"
                                "a0 = Assign(a, zero)\n"
                                "b0 = Assign(b, zero)\n"
                                "init = NoOp(^a0, ^b0)\n"
                                "before = AssignAdd(a, x)\n"
                                "q = Div(n, n, ^before)\n"
                                "z = Cast(q) {SrcT=int32, DstT=float32}\n"
                                "after = AssignAdd(b, z)\n"
                                "more = AssignAdd(b, x, ^after)\n"
                                "y = Identity(z, ^more)\n";

static double first_of(struct fixture *f, const char *variable)
{
    return fixture_get(f, variable, NAN);
}

static void what_comes_after_changes_nothing(void **state)
{
    (void)state;
    for (long seed = 0; seed < 2 * SEEDS; seed++) {
        struct device *device = open_seed(seed);
        struct fixture f;
        fixture_open_on(&f, updates, device, seed % 2);
        fixture_do(&f, "^init");
        for (int i = 1; i <= 3; i++) {
            expect_failure(&f, "node 'q': Div: integer division by zero");
            assert_float_equal(first_of(&f, "a"), i, 0);
            assert_float_equal(first_of(&f, "b"), 0, 0);
        }
        fixture_close(&f);
        device_free(device);
    }
}

/* A first value is never garbage, either. */
static void a_variable_stays_without_a_value(void **state)
{
    static const char graph[] = N "v = Variable() {dtype=int32, shape=[2]}\n"
                                  "q = Div(n, n)\n"
                                  "set = Assign(v, q)\n"
                                  "y = Identity(q, ^set)\n"
                                  "is = IsVariableInitialized(v)\n";
    (void)state;
    for (long seed = 0; seed < 2 * SEEDS; seed++) {
        struct device *device = open_seed(seed);
        struct fixture f;
        fixture_open_on(&f, graph, device, seed % 2);
        expect_failure(&f, "node 'q': Div: integer division by zero");
        assert_float_equal(fixture_get(&f, "is", NAN), 0, 0);
        fixture_close(&f);
        device_free(device);
    }
}

/* ---- garbage ---- */

/* Consumers of garbage on the device, and on the host, where it would cause another error. */
static const char *const consumers[] = {
    TABLE "q = Div(n, n)\n"
          "i = Add(q, n)\n"
          "g = Gather(t, i)\n"
          "y = Div(i, q)\n",
    TABLE "q = Div(n, n)\n"
          "g = Gather(t, q)\n"
          "y = Reshape(g, q)\n",
    TABLE "q = Div(n, n)\n"
          "y = Reshape(t, q)\n",
    TABLE "q = Div(n, n)\n"
          "w = Equal(q, n)\n"
          "axes = Const() {dtype=int32, value=[0]}\n"
          "all = All(w, axes)\n"
          "ok = Assert(all, q) {T=[int32]}\n"
          "y = Identity(n, ^ok)\n",
};

static void who_was_first_is_named(void **state)
{
    (void)state;
    for (long seed = 0; seed < 2 * SEEDS; seed++) {
        struct device *device = open_seed(seed);
        for (size_t i = 0; i < sizeof consumers / sizeof *consumers; i++) {
            struct fixture f;
            fixture_open_on(&f, consumers[i], device, seed % 2);
            expect_failure(&f, "node 'q': Div: integer division by zero");
            fixture_close(&f);
        }
        device_free(device);
    }
}

/* ---- another device ---- */

#define HERE " @/job:localhost/task:0/device:CPU:0\n"
#define THERE " @/job:localhost/task:0/device:TEST:0\n"

#define PARTS                                                                                      \
    "x = Placeholder() {dtype=float32, shape=[2]}" HERE                                            \
    "zero = Const() {dtype=float32, value=[0,0]}" HERE                                             \
    "v = Variable() {dtype=float32, shape=[2]}" HERE "init = Assign(v, zero)" HERE                 \
    "now = Identity(v)" HERE "n = Cast(x) {SrcT=float32, DstT=int32}" THERE "q = Div(n, n)" THERE

/* The second part has a kernel that waits for enqueued work, as it makes a shape. */
static const char *const parts[] = {
    PARTS "z = Cast(q) {SrcT=int32, DstT=float32}" THERE "add = AssignAdd(v, z)" HERE
          "y = Identity(z, ^add)" HERE,
    PARTS "e = Equal(q, q)" THERE "w = Where(e)" THERE
          "c = Cast(w) {SrcT=int64, DstT=float32}" THERE
          "two = Const() {dtype=int32, value=[2]}" THERE "z = Reshape(c, two)" THERE
          "add = AssignAdd(v, z)" HERE "y = Identity(z, ^add)" HERE,
};

/* A value sent to another device is never garbage. */
static void other_devices_are_not_given_garbage(void **state)
{
    struct error err = ERROR_INIT;
    struct device *cpu = device_open("CPU", 0, &(struct device_options){.threads = 1}, &err);
    (void)state;
    for (long seed = 0; seed < SEEDS; seed++) {
        struct device *devices[] = {cpu, open_seed(seed)};
        struct graph *whole;
        struct cut_graph cut;
        struct session_options options = {
            .plan = {.kernels = ops_kernels(), .device = cpu}, .devices = devices, .n_devices = 2};
        struct fixture f = {.graph = cut_parse(&cut, &whole, parts[seed % 2]), .err = ERROR_INIT};
        f.session = session_new(f.graph, &options);
        fixture_do(&f, "^init");
        expect_failure(&f, "node 'q': Div: integer division by zero");
        assert_float_equal(fixture_get(&f, "now", NAN), 0, 0);
        session_free(f.session);
        cut_close(&cut);
        graph_free(whole);
        device_free(devices[1]);
    }
    device_free(cpu);
}

/* ---- steps at once ---- */

struct stepper {
    struct fixture *f;
    float x0;
    int failures;
};

static void *run_steps(void *argument)
{
    struct stepper *stepper = argument;
    struct fixture own = *stepper->f;
    for (int i = 0; i < 20; i++) {
        struct tensor y;
        if (fetch_y(&own, stepper->x0, &y))
            stepper->failures++;
        else
            tensor_release(&y);
    }
    return NULL;
}

static void a_fault_is_of_its_step(void **state)
{
    static const char graph[] = N "two = Const() {dtype=int32, value=[2,2]}\n"
                                  "d = Sub(n, two)\n"
                                  "y = Div(n, d)\n"; /* fails if x0 is 2 */
    (void)state;
    for (long seed = 0; seed < 4; seed++) {
        struct device *device = open_seed(seed);
        struct fixture f;
        struct stepper steppers[3] = {{&f, 1, 0}, {&f, 2, 0}, {&f, 3, 0}};
        pthread_t threads[3];
        fixture_open_on(&f, graph, device, seed % 2);
        for (int i = 0; i < 3; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, run_steps, &steppers[i]), 0);
        for (int i = 0; i < 3; i++)
            pthread_join(threads[i], NULL);
        assert_int_equal(steppers[0].failures, 0);
        assert_int_equal(steppers[1].failures, 20);
        assert_int_equal(steppers[2].failures, 0);
        fixture_close(&f);
        device_free(device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_the_cpus),
        cmocka_unit_test(what_comes_after_changes_nothing),
        cmocka_unit_test(a_variable_stays_without_a_value),
        cmocka_unit_test(who_was_first_is_named),
        cmocka_unit_test(other_devices_are_not_given_garbage),
        cmocka_unit_test(a_fault_is_of_its_step),
    };
    test_device_path();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
