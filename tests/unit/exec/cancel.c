/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps that are stopped while kernels wait: each waiter is told once, and everything ends in
 * order.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/started.h"
#include "lib/unit.h"

/* ---- waiters of a step ---- */

struct told {
    struct step_waiter waiter; /* must be first */
    atomic_int n;
    atomic_bool lingers;
    char reason[64];
};

static void tell(struct step_waiter *waiter, const struct error *reason)
{
    struct told *told = (struct told *)waiter;
    snprintf(told->reason, sizeof told->reason, "%.63s", reason->text);
    atomic_fetch_add(&told->n, 1);
    while (atomic_load(&told->lingers))
        usleep(100);
}

static void waiters_are_told_the_first_reason(void **state)
{
    struct step step = {.number = 1};
    struct told a = {.waiter.cancelled = tell}, b = a, c = a;
    struct error err = ERROR_INIT, first = ERROR_INIT, second = ERROR_INIT;
    (void)state;
    error_set(&first, ERR_UNAVAILABLE, "the first");
    error_set(&second, ERR_IO, "the second");
    assert_int_equal(step_on_cancel(&step, &a.waiter, &err), 0);
    assert_int_equal(step_on_cancel(&step, &b.waiter, &err), 0);
    assert_int_equal(step_on_cancel(&step, &c.waiter, &err), 0);
    assert_false(step_off_cancel(&step, &b.waiter)); /* from the middle of the list */
    assert_int_equal(step_stopped(&step, &err), 0);
    step_cancel(&step, &first);
    step_cancel(&step, &second);
    assert_int_equal(a.n, 1);
    assert_int_equal(b.n, 0);
    assert_int_equal(c.n, 1);
    assert_string_equal(a.reason, "the first");
    assert_true(step_off_cancel(&step, &a.waiter));
    assert_true(step_off_cancel(&step, &c.waiter));
    unit_assert_error(step_on_cancel(&step, &b.waiter, &err), err, ERR_UNAVAILABLE, "the first");
    unit_assert_error(step_stopped(&step, &err), err, ERR_UNAVAILABLE, "the first");
    assert_true(step.cancelled);
    assert_int_equal(b.n, 0);
    step_end(&step);
}

static void a_step_that_failed_can_be_used_again(void **state)
{
    struct step step = {.number = 1};
    struct error err = ERROR_INIT, reason = ERROR_INIT;
    (void)state;
    error_set(&reason, ERR_DATA, "of its own");
    step_stop(&step, &reason);
    assert_int_equal(step_stopped(&step, &err), ERR_DATA);
    step_end(&step);
    assert_int_equal(step_stopped(&step, &err), 0);
}

struct cancelling {
    struct step *step;
    struct error reason;
};

static void *cancel(void *argument)
{
    struct cancelling *c = argument;
    step_cancel(c->step, &c->reason);
    return NULL;
}

static void *stop_lingering(void *argument)
{
    struct told *told = argument;
    usleep(20000);
    atomic_store(&told->lingers, false);
    return NULL;
}

static void taking_a_waiter_back_waits_until_it_was_told(void **state)
{
    struct step step = {.number = 1};
    struct told told = {.waiter.cancelled = tell, .lingers = true};
    struct cancelling c = {.step = &step};
    struct error err;
    pthread_t thread, other;
    (void)state;
    error_set(&c.reason, ERR_RETRY, "enough");
    assert_int_equal(step_on_cancel(&step, &told.waiter, &err), 0);
    assert_int_equal(pthread_create(&thread, NULL, cancel, &c), 0);
    while (!atomic_load(&told.n))
        usleep(100);
    assert_int_equal(pthread_create(&other, NULL, stop_lingering, &told), 0);
    assert_true(step_off_cancel(&step, &told.waiter));
    assert_false(atomic_load(&told.lingers));
    pthread_join(thread, NULL);
    pthread_join(other, NULL);
}

/* ---- a kernel that waits until somebody lets it go on, or its step stops ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct segment_hold {
    struct step_waiter waiter; /* must be first */
    struct kernel_call *call;
    struct segment_hold *next, **at;
} * all_held; /* a stack */

/* The caller that takes it off the list calls kernel_done. */
static bool take_off(struct segment_hold *held)
{
    pthread_mutex_lock(&lock);
    bool was_on = held->at != NULL;
    if (was_on) {
        *held->at = held->next;
        if (held->next)
            held->next->at = held->at;
        held->at = NULL;
    }
    pthread_mutex_unlock(&lock);
    return was_on;
}

static void give_up(struct step_waiter *waiter, const struct error *reason)
{
    struct segment_hold *held = (struct segment_hold *)waiter;
    if (!take_off(held))
        return;
    *held->call->err = *reason;
    kernel_done(held->call, reason->code);
}

static int hold_run(struct kernel_call *call)
{
    struct segment_hold *held = kernel_temporary(call, sizeof *held);
    if (!held)
        return call->err->code;
    *held = (struct segment_hold){.waiter.cancelled = give_up, .call = call};
    pthread_mutex_lock(&lock); /* so that it is neither let go nor given a reason in between */
    int code = step_on_cancel(call->step, &held->waiter, call->err);
    if (!code) {
        held->next = all_held;
        held->at = &all_held;
        if (all_held)
            all_held->at = &held->next;
        all_held = held;
    }
    pthread_mutex_unlock(&lock);
    return code ? code : KERNEL_PENDING;
}

static const struct kernel_code hold_code = {.run = hold_run};

/* Lets a random one go. Returns false if none waits. */
static bool let_go(uint64_t *random)
{
    pthread_mutex_lock(&lock);
    struct segment_hold *held = all_held;
    for (uint64_t skip = unit_random(random) % 16; held && held->next && skip; skip--)
        held = held->next;
    if (held) {
        *held->at = held->next;
        if (held->next)
            held->next->at = held->at;
        held->at = NULL;
    }
    pthread_mutex_unlock(&lock);
    if (!held)
        return false;
    step_off_cancel(held->call->step, &held->waiter);
    kernel_done(held->call, 0);
    return true;
}

/* Opens a graph whose NoOps wait. */
static void open_with_holds(struct planned *p, const char *text)
{
    planned_open(p, text);
    planned_add_kernel(p, "NoOp", &hold_code, KERNEL_ASYNC | KERNEL_CHEAP);
}

static void pending_kernels_end_with_the_reason(void **state)
{
    struct planned p;
    struct started s;
    struct error reason = ERROR_INIT;
    (void)state;
    open_with_holds(&p, RECV("x") "a = NoOp()\nb = NoOp()\nresult = Identity(x, ^a, ^b)\n");
    struct plan *plan = planned_new(&p, "result");
    started_open(&s, 1);
    plan_start(plan, &s.step, NULL, &s.value, &s.done);
    error_set(&reason, ERR_UNAVAILABLE, "the peer is gone");
    step_cancel(&s.step, &reason);
    started_wait(&s);
    assert_int_equal(s.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(s.err.text, "the peer is gone"));
    assert_null(all_held);
    started_close(&s);

    started_open(&s, 2); /* cancelled before it began */
    step_cancel(&s.step, &reason);
    plan_start(plan, &s.step, NULL, &s.value, &s.done);
    started_wait(&s);
    unit_assert_error(s.code, s.err, ERR_UNAVAILABLE, "the peer is gone");
    started_close(&s);
    plan_free(plan);
    planned_close(&p);
}

static void an_abort_from_outside_and_a_failure_free_all_who_wait(void **state)
{
    struct planned p;
    struct started s;
    struct error reason = ERROR_INIT;
    (void)state;
    open_with_holds(&p, RECV("x") "checked = CheckNumerics(x) {message=\"x\"}\n"
                                  "a = NoOp()\nresult = Identity(checked, ^a)\n");
    struct plan *plan = planned_new(&p, "result");
    for (int fails = 0; fails < 2; fails++) {
        started_open(&s, 1);
        plan_start(plan, &s.step, NULL, &s.value, &s.done);
        assert_int_equal(s.n_ends, 0);
        error_set(&reason, ERR_UNAVAILABLE, "the other side stopped");
        if (fails)
            started_send(&s, "x", (float)(1e30 * 1e30));
        else
            s.step.rendezvous->abort(s.step.rendezvous, &reason);
        started_wait(&s);
        assert_int_equal(s.code, fails ? ERR_DATA : ERR_UNAVAILABLE);
        started_close(&s);
    }
    plan_free(plan);
    planned_close(&p);
}

/* ---- at random moments ---- */

#define N_STEPS 400

struct chaos {
    struct started steps[N_STEPS];
    struct plan *plan;
    atomic_int n_started;
    atomic_bool ends;
};

static void *let_some_go(void *argument)
{
    struct chaos *c = argument;
    uint64_t random = 7;
    while (!atomic_load(&c->ends))
        if (!let_go(&random))
            usleep(50);
    return NULL;
}

static void *send_some(void *argument)
{
    struct chaos *c = argument;
    for (int i = 0; i < N_STEPS; i++) {
        while (i >= atomic_load(&c->n_started))
            usleep(20);
        started_send(&c->steps[i], "x", i % 7 == 0 ? (float)(1e30 * 1e30) : 10);
    }
    return NULL;
}

static void *cancel_some(void *argument)
{
    struct chaos *c = argument;
    uint64_t random = 3;
    struct error reason = ERROR_INIT;
    error_set(&reason, ERR_RETRY, "at random");
    for (int i = 0; i < N_STEPS; i++) {
        int k = (int)(unit_random(&random) % (uint64_t)(atomic_load(&c->n_started) + 1));
        if (k < atomic_load(&c->n_started) || i % 5 == 0)
            step_cancel(&c->steps[k].step, &reason);
        usleep((useconds_t)(unit_random(&random) % 100));
    }
    return NULL;
}

/* Waits ten times in a loop for another kernel, with a variable that all steps share in between. */
static const char chaos_text[] =
    RECV("x") "checked = CheckNumerics(x) {message=\"x\"}\n"
              "v = Variable() {dtype=float32, shape=[]}\n"
              "zero = Const() {dtype=float32, value=0}\n"
              "one = Const() {dtype=float32, value=1}\n"
              "init = Assign(v, zero)\n"
              "first = NoOp(^checked)\n"
              "add = AssignAdd(v, one, ^first)\n"
              "e = Enter(zero, ^add) {frame_name=\"w\", is_constant=false}\n"
              "n = Enter(checked) {frame_name=\"w\", is_constant=true}\n"
              "m = Merge(e, next)\n"
              "less = Less(m, n)\n"
              "cond = LoopCond(less)\n"
              "s = Switch(m, cond)\n"
              "body = Identity(s:1)\n"
              "wait = NoOp(^body)\n"
              "step = Const(^body, ^wait) {dtype=float32, value=1}\n"
              "sum = Add(body, step)\n"
              "next = NextIteration(sum)\n"
              "result = Exit(s)\n";

static void steps_are_cancelled_at_random_moments(void **state)
{
    static struct chaos c;
    struct planned p, starts;
    pthread_t threads[3];
    int n_ok = 0, n_cancelled = 0;
    (void)state;
    planned_open(&starts, chaos_text);
    open_with_holds(&p, chaos_text);
    variable_store_free(p.variables);
    p.variables = starts.variables;
    p.options.variables = starts.variables;
    planned_get(&starts, "^init");
    c.plan = planned_new(&p, "result");
    for (int i = 0; i < N_STEPS; i++)
        started_open(&c.steps[i], i);
    assert_int_equal(pthread_create(&threads[0], NULL, let_some_go, &c), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, send_some, &c), 0);
    assert_int_equal(pthread_create(&threads[2], NULL, cancel_some, &c), 0);
    for (int i = 0; i < N_STEPS; i++) {
        plan_start(c.plan, &c.steps[i].step, NULL, &c.steps[i].value, &c.steps[i].done);
        atomic_store(&c.n_started, i + 1);
        usleep(50);
    }
    pthread_join(threads[1], NULL);
    pthread_join(threads[2], NULL);
    for (int i = 0; i < N_STEPS; i++) {
        struct started *s = &c.steps[i];
        started_wait(s);
        assert_true(s->code == 0 || s->code == ERR_DATA || s->code == ERR_RETRY);
        if (!s->code)
            assert_float_equal(tensor_get_float64(&s->value, 0), 10, 0);
        if (s->code == ERR_RETRY)
            assert_non_null(strstr(s->err.text, "at random"));
        n_ok += s->code == 0;
        n_cancelled += s->code == ERR_RETRY;
        started_close(s);
    }
    atomic_store(&c.ends, true);
    pthread_join(threads[0], NULL);
    assert_true(n_ok > 0 && n_cancelled > 0);
    assert_null(all_held);
    plan_free(c.plan);
    graph_free(p.graph);
    planned_close(&starts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiters_are_told_the_first_reason),
        cmocka_unit_test(a_step_that_failed_can_be_used_again),
        cmocka_unit_test(taking_a_waiter_back_waits_until_it_was_told),
        cmocka_unit_test(pending_kernels_end_with_the_reason),
        cmocka_unit_test(an_abort_from_outside_and_a_failure_free_all_who_wait),
        cmocka_unit_test(steps_are_cancelled_at_random_moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
