/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps that are started: many in flight on one thread, which threads continue them, how they fail.
 */
#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <unistd.h>

#include "lib/plan_items.h"
#include "lib/started.h"
#include "lib/unit.h"

#define N_STEPS 1000

static int n_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int n = -2; /* without . and .. */
    assert_non_null(tasks);
    while (readdir(tasks))
        n++;
    closedir(tasks);
    return n;
}

static void shuffle(int *order, int n, uint64_t seed)
{
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int k = (int)(unit_random(&seed) % (uint64_t)(i + 1)), swap = order[i];
        order[i] = order[k];
        order[k] = swap;
    }
}

/* ---- many steps ---- */

static const char distance[] =
    RECV("x") RECV("y") RECV("n") "two = Const() {dtype=float32, value=2}\n"
                                  "x2 = Mul(x, x)\n"
                                  "y2 = Mul(y, y)\n"
                                  "sum = Add(x2, y2)\n"
                                  "root = Sqrt(sum)\n"
                                  "halves = Mul(root, two)\n"
                                  "result = Div(halves, n)\n";

struct feeder {
    struct started *steps;
    uint64_t seed;
};

/* x = 3k, y = 4k, n = 10: the result is k. */
static void *feed_all(void *argument)
{
    struct feeder *f = argument;
    static const char *const names[] = {"x", "y", "n"};
    int order[3 * N_STEPS];
    shuffle(order, 3 * N_STEPS, f->seed);
    for (int i = 0; i < 3 * N_STEPS; i++) {
        int k = order[i] / 3, which = order[i] % 3;
        started_send(&f->steps[k], names[which], which == 2 ? 10 : (float)((3 + which) * k));
    }
    return NULL;
}

static void a_thousand_steps_wait_without_a_thread(void **state)
{
    struct planned p;
    pthread_t thread;
    (void)state;
    planned_open(&p, distance);
    struct plan *plan = planned_new(&p, "result");
    struct started *steps = calloc(N_STEPS, sizeof *steps);
    int before = n_threads();
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < N_STEPS; i++) {
            started_open(&steps[i], i);
            plan_start(plan, &steps[i].step, NULL, &steps[i].value, &steps[i].done);
            assert_int_equal(atomic_load(&steps[i].n_ends), 0);
        }
        assert_true(n_threads() < before + N_STEPS / 100); /* a sanitizer may have its own */
        struct feeder feeder = {steps, (uint64_t)round};
        assert_int_equal(pthread_create(&thread, NULL, feed_all, &feeder), 0);
        pthread_join(thread, NULL);
        for (int i = 0; i < N_STEPS; i++) {
            started_wait(&steps[i]);
            assert_int_equal(steps[i].code, 0);
            if (fixture_device()->is_host) /* by the last feeder; else by the device */
                assert_true(pthread_equal(steps[i].ended_by, thread));
            assert_float_equal(tensor_get_float64(&steps[i].value, 0), i, 0);
            started_close(&steps[i]);
        }
    }
    free(steps);
    plan_free(plan);
    planned_close(&p);
}

/* ---- the threads that run kernels ---- */

static pthread_t ran_on;

static int heavy_run(struct kernel_call *call)
{
    ran_on = pthread_self();
    return kernel_alias_output(call, 0, 0, NULL) ? 0 : call->err->code;
}

static const struct kernel_code heavy_code = {.run = heavy_run};

/* StopGradient is here an expensive kernel, if its input is large. */
static void run_heavy(const char *text, bool computes, bool waits)
{
    struct planned p;
    struct started s;
    struct shape large = shape_vector(2048);
    planned_open(&p, text);
    planned_add_kernel(&p, "StopGradient", &heavy_code, 0);
    struct plan *plan = planned_new(&p, "result");
    assert_int_equal(plan_is_whole(plan), !waits);
    started_open(&s, 1);
    s.done.computes = computes;
    plan_start(plan, &s.step, NULL, &s.value, &s.done);
    if (waits)
        started_send_shaped(&s, "x", 5, &large);
    started_wait(&s);
    assert_int_equal(s.code, 0);
    assert_float_equal(tensor_get_float64(&s.value, 0), 5, 0);
    assert_int_equal(pthread_equal(ran_on, pthread_self()) != 0, computes && !waits);
    started_close(&s);
    plan_free(plan);
    planned_close(&p);
}

static void expensive_kernels_run_where_they_may(void **state)
{
    (void)state;
    /* random values are not folded */
    const char *fixed = "x = Const() {dtype=float32, value=5}\n"
                        "seed = RandomUniform(shape) {dtype=float32, seed=1, seed2=1}\n"
                        "shape = Const() {dtype=int32, value=[2048]}\n"
                        "both = Maximum(seed, x)\n"
                        "result = StopGradient(both)\n";
    run_heavy(fixed, true, false);
    run_heavy(fixed, false, false);
    run_heavy(RECV_SHAPED("x", "[2048]") "result = StopGradient(x)\n", true, true);
    run_heavy(RECV_SHAPED("x", "[2048]") "result = StopGradient(x)\n", false, true);
}

/* ---- one after another ---- */

struct chain {
    struct step_done done; /* must be first */
    struct plan *plan;
    struct step *step;
    struct tensor value;
    int left, n_failed;
    atomic_bool is_over;
};

static void next_step(struct step_done *done, int code, const struct error *err)
{
    struct chain *c = (struct chain *)done;
    (void)err;
    c->n_failed += code != 0;
    free(c->step);
    c->step = NULL;
    if (!c->left--) {
        atomic_store(&c->is_over, true);
        return;
    }
    c->step = calloc(1, sizeof *c->step);
    plan_start(c->plan, c->step, NULL, &c->value, &c->done);
}

static void a_step_starts_the_next_without_end(void **state)
{
    /* as nested calls these would overflow the stack; a device takes longer for each */
    const int n = fixture_device()->is_host ? 50000 : 500;
    struct planned p;
    (void)state;
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        planned_open(&p, COUNTERS);
        p.options.cut = dynamic ? CUT_REGIONS : CUT_WHOLE;
        planned_get(&p, "^init");
        struct chain c = {.done = {.done = next_step}, .plan = planned_new(&p, "^both")};
        c.left = n;
        next_step(&c.done, 0, NULL);
        for (int i = 0; i < 60000 && !atomic_load(&c.is_over); i++)
            usleep(1000);
        assert_true(atomic_load(&c.is_over));
        assert_int_equal(c.left, -1);
        assert_int_equal(c.n_failed, 0);
        assert_float_equal(planned_get(&p, "read_w"), n, 0);
        plan_free(c.plan);
        planned_close(&p);
    }
}

/* ---- errors ---- */

static void an_error_ends_a_step_of_which_the_rest_waits(void **state)
{
    struct planned p;
    struct started steps[100];
    struct error reason;
    (void)state;
    planned_open(&p, RECV("x") RECV("y") "checked = CheckNumerics(x) {message=\"x\"}\n"
                                         "result = Add(checked, y)\n");
    struct plan *plan = planned_new(&p, "result");
    for (int i = 0; i < 100; i++) {
        started_open(&steps[i], i);
        plan_start(plan, &steps[i].step, NULL, &steps[i].value, &steps[i].done);
    }
    for (int i = 0; i < 100; i++)
        started_send(&steps[i], "x", i % 2 ? NAN : 1);
    for (int i = 0; i < 100; i++) {
        if (i % 2)
            started_wait(&steps[i]);
        assert_int_equal(atomic_load(&steps[i].n_ends), i % 2);
        assert_int_equal(started_send(&steps[i], "y", 2), !(i % 2));
        started_wait(&steps[i]);
        assert_int_equal(steps[i].code, i % 2 ? ERR_DATA : 0);
        bool aborted = steps[i].step.rendezvous->aborted(steps[i].step.rendezvous, &reason);
        assert_int_equal(aborted, i % 2);
        if (aborted) {
            assert_non_null(strstr(steps[i].err.text, "node 'checked'"));
            assert_string_equal(reason.text, steps[i].err.text);
            assert_null(steps[i].value.data);
        }
        started_close(&steps[i]);
    }
    plan_free(plan);
    planned_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thousand_steps_wait_without_a_thread),
        cmocka_unit_test(expensive_kernels_run_where_they_may),
        cmocka_unit_test(a_step_starts_the_next_without_end),
        cmocka_unit_test(an_error_ends_a_step_of_which_the_rest_waits),
    };
    test_device_path();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
