/* SPDX-License-Identifier: Apache-2.0
 *
 * Started steps, and the variables that they lock.
 */
#include <pthread.h>

#include "lib/plan_items.h"
#include "lib/started.h"
#include "lib/unit.h"

static void steps_are_put_aside_until_a_variable_is_free(void **state)
{
    struct planned p;
    struct started steps[64];
    (void)state;
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        planned_open(&p, COUNTERS);
        p.options.cut = dynamic ? CUT_REGIONS : CUT_WHOLE;
        planned_get(&p, "^init");
        struct plan *adds = planned_new(&p, "^both"), *reads = planned_new(&p, "sum");
        assert_int_equal(plan_is_whole(adds), !dynamic);
        struct variable *w = variable_store_find(p.variables, "default", "w");
        variable_lock_wait(w, true);
        for (int i = 0; i < 64; i++) {
            started_open(&steps[i], i);
            plan_start(i == 32 ? reads : adds, &steps[i].step, NULL, &steps[i].value,
                       &steps[i].done);
            assert_int_equal(atomic_load(&steps[i].n_ends), 0);
        }
        variable_unlock(w, true); /* this thread continues them all */
        for (int i = 0; i < 64; i++) {
            if (!fixture_device()->is_host) /* its own thread reports the end */
                started_wait(&steps[i]);
            assert_int_equal(steps[i].code, 0);
            started_close(&steps[i]);
        }
        assert_float_equal(planned_get(&p, "read_v"), 63, 0);
        assert_float_equal(planned_get(&p, "read_w"), 63, 0);
        plan_free(adds);
        plan_free(reads);
        planned_close(&p);
    }
}

/* A step that failed does not run, but it got the lock that it was waiting for. */
static void a_step_that_fails_while_it_waits_gives_its_lock_back(void **state)
{
    struct planned p;
    struct started s;
    struct error reason = ERROR_INIT;
    struct variable_waiter nobody = {.resume = NULL};
    (void)state;
    planned_open(&p, COUNTERS "waits = NoOp(^x, ^both)\n");
    planned_get(&p, "^init");
    struct plan *plan = planned_new(&p, "^waits");
    struct variable *v = variable_store_find(p.variables, "default", "v");
    struct variable *w = variable_store_find(p.variables, "default", "w");
    error_set(&reason, ERR_CANCELLED, "enough");
    variable_lock_wait(v, true);
    variable_lock_wait(w, true);
    started_open(&s, 1);
    plan_start(plan, &s.step, NULL, &s.value, &s.done);
    step_cancel(&s.step, &reason); /* the Recv fails */
    assert_int_equal(atomic_load(&s.n_ends), 0);
    variable_unlock(v, true);
    variable_unlock(w, true);
    started_wait(&s);
    assert_int_equal(s.code, ERR_CANCELLED);
    assert_true(variable_lock(v, true, &nobody));
    variable_unlock(v, true);
    assert_true(variable_lock(w, true, &nobody));
    variable_unlock(w, true);
    assert_float_equal(planned_get(&p, "sum"), 0, 0);
    started_close(&s);
    plan_free(plan);
    planned_close(&p);
}

#define N_STARTERS 4
#define EACH 250

struct starter {
    pthread_t thread;
    struct plan *adds, *receives;
    struct started *steps; /* of all starters; every other step receives */
    int first;
};

static void *start_some(void *argument)
{
    struct starter *s = argument;
    for (int i = s->first; i < N_STARTERS * EACH; i += N_STARTERS) {
        struct started *step = &s->steps[i];
        bool receives = i / N_STARTERS % 2;
        plan_start(receives ? s->receives : s->adds, &step->step, NULL, &step->value, &step->done);
        int other = i - i % N_STARTERS + (i + 1) % N_STARTERS;
        if (receives) {
            started_send(step, "x", 1);
            started_send(&s->steps[other], "y", 1);
        }
    }
    return NULL;
}

static void steps_of_many_threads_contend_for_variables(void **state)
{
    struct planned p;
    struct starter starters[N_STARTERS];
    (void)state;
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        planned_open(&p, COUNTERS);
        p.options.cut = dynamic ? CUT_REGIONS : CUT_WHOLE;
        planned_get(&p, "^init");
        struct started *steps = calloc(N_STARTERS * EACH, sizeof *steps);
        for (int i = 0; i < N_STARTERS * EACH; i++)
            started_open(&steps[i], i);
        struct plan *adds = planned_new(&p, "^both"), *receives = planned_new(&p, "^add_y");
        for (int i = 0; i < N_STARTERS; i++) {
            starters[i] = (struct starter){.adds = adds, .receives = receives};
            starters[i].steps = steps;
            starters[i].first = i;
            assert_int_equal(pthread_create(&starters[i].thread, NULL, start_some, &starters[i]),
                             0);
        }
        for (int i = 0; i < N_STARTERS; i++)
            pthread_join(starters[i].thread, NULL);
        for (int i = 0; i < N_STARTERS * EACH; i++) {
            started_wait(&steps[i]);
            assert_int_equal(steps[i].code, 0);
            started_close(&steps[i]);
        }
        assert_float_equal(planned_get(&p, "read_v"), N_STARTERS * EACH, 0);
        assert_float_equal(planned_get(&p, "read_w"), N_STARTERS * EACH, 0);
        plan_free(adds);
        plan_free(receives);
        planned_close(&p);
        free(steps);
    }
}

/* ---- kernels that may take long without computing ---- */

static int copy(struct kernel_call *call)
{
    return kernel_alias_output(call, 0, 0, NULL) ? 0 : call->err->code;
}

static const struct kernel_code copy_code = {.run = copy};

struct eraser {
    struct variable_waiter waiter; /* must be first */
    struct variable *variable;
};

static void erase(struct variable_waiter *waiter)
{
    const struct eraser *eraser = (struct eraser *)waiter;
    variable_clear(eraser->variable);
    variable_unlock(eraser->variable, true);
}

/* The kernel has a copy of its input, and the variable is free before it has run. */
static void an_asynchronous_kernel_runs_with_what_it_has_read(void **state)
{
    struct planned p;
    struct started s;
    (void)state;
    planned_open(&p, "v = Variable() {dtype=float32, shape=[]}\n"
                     "three = Const() {dtype=float32, value=3}\n"
                     "init = Assign(v, three)\n"
                     "result = StopGradient(v)\n");
    planned_add_kernel(&p, "StopGradient", &copy_code, KERNEL_CHEAP | KERNEL_ASYNC);
    struct plan *plan = planned_new(&p, "result");
    planned_get(&p, "^init");
    struct variable *v = variable_store_find(p.variables, "default", "v");
    struct eraser eraser = {{.resume = erase}, v};
    variable_lock_wait(v, true);
    started_open(&s, 1);
    plan_start(plan, &s.step, NULL, &s.value, &s.done);
    assert_false(variable_lock(v, true, &eraser.waiter)); /* the kernel comes first */
    variable_unlock(v, true);
    started_wait(&s);
    if (s.code)
        fail_msg("%s", s.err.text);
    assert_float_equal(tensor_get_float64(&s.value, 0), 3, 0);
    assert_false(v->initialized);
    started_close(&s);
    plan_free(plan);
    planned_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_put_aside_until_a_variable_is_free),
        cmocka_unit_test(a_step_that_fails_while_it_waits_gives_its_lock_back),
        cmocka_unit_test(steps_of_many_threads_contend_for_variables),
        cmocka_unit_test(an_asynchronous_kernel_runs_with_what_it_has_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
