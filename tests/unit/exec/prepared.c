/* SPDX-License-Identifier: Apache-2.0
 *
 * Prepared calls that are made many times, and sessions that plan while others run.
 */
#include "lib/session.h"

#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include "base/container_of.h"
#include "exec/state/variable.h"

static const char doubling[] = "x = Placeholder() {dtype=float32, shape=[?]}\n"
                               "two = Const() {dtype=float32, value=2}\n"
                               "y = Mul(x, two)\n"
                               "v = Variable() {dtype=float32, shape=[]}\n"
                               "w = Assign(v, two)\n";

struct made {
    struct session_handle *handle;
    struct edge feed, fetch;
};

static struct plan_request call_of(struct fixture *f, struct made *made)
{
    made->feed = (struct edge){graph_find(f->graph, "x")->id, 0};
    made->fetch = (struct edge){graph_find(f->graph, "y")->id, 0};
    return (struct plan_request){
        .feeds = &made->feed, .n_feeds = 1, .fetches = &made->fetch, .n_fetches = 1};
}

static void prepare(struct fixture *f, struct made *made)
{
    struct plan_request call = call_of(f, made);
    made->handle = session_prepare(f->session, &call);
}

static void run_doubling(struct fixture *f, struct session_handle *handle, int64_t n, float value)
{
    float elements[64];
    struct shape shape = {.rank = 1, .dims = {n}};
    struct tensor x = tensor_borrow(FLOAT32, &shape, elements), y;
    struct step step = {.number = 1};
    for (int i = 0; i < n; i++)
        elements[i] = value + (float)i;
    if (session_run_prepared(handle, &x, &step, &y, &f->err))
        fail_msg("%s", f->err.text);
    assert_int_equal(y.shape.dims[0], n);
    for (int i = 0; i < n; i++)
        assert_float_equal(tensor_get_float64(&y, i), 2 * (value + (float)i), 0);
    tensor_release(&y);
}

static void a_prepared_call_is_run_again_with_any_shape(void **state)
{
    struct fixture f;
    struct made a, b;
    (void)state;
    fixture_open(&f, doubling, false);
    prepare(&f, &a);
    prepare(&f, &b);
    for (int i = 0; i < 200; i++) { /* more shapes than a session keeps plans for */
        run_doubling(&f, a.handle, 1 + i % 40, (float)i);
        run_doubling(&f, b.handle, 3, (float)i);
    }
    session_handle_free(a.handle);
    session_handle_free(b.handle);
    fixture_close(&f);
}

static void what_does_not_fit_is_refused_and_the_call_goes_on(void **state)
{
    static const struct shape matrix = {.rank = 2, .dims = {2, 2}};
    struct fixture f;
    struct made made;
    float elements[4] = {0};
    struct tensor wrong = tensor_borrow(FLOAT32, &matrix, elements), y;
    struct step step = {.number = 1};
    (void)state;
    fixture_open(&f, doubling, false);
    prepare(&f, &made);
    for (int i = 0; i < 3; i++) {
        run_doubling(&f, made.handle, 5, (float)i);
        assert_int_equal(session_run_prepared(made.handle, &wrong, &step, &y, &f.err), ERR_DATA);
        wrong.type = INT32;
        assert_int_equal(session_run_prepared(made.handle, &wrong, &step, &y, &f.err), ERR_DATA);
        wrong.type = FLOAT32;
    }
    session_handle_free(made.handle);
    fixture_close(&f);
}

/* ---- planning ---- */

struct slow {
    struct variable_watcher watcher;
    sem_t begun, go_on;
};

static int wait_in_plan(struct variable_watcher *watcher, struct variable *variable,
                        struct error *err)
{
    struct slow *slow = CONTAINER_OF(watcher, struct slow, watcher);
    (void)variable;
    (void)err;
    sem_post(&slow->begun);
    sem_wait(&slow->go_on);
    return 0;
}

static void *plan_slowly(void *argument)
{
    struct fixture *f = argument;
    struct fixture own = *f;
    fixture_do(&own, "^w");
    return NULL;
}

static void who_runs_does_not_wait_for_who_plans(void **state)
{
    struct slow slow = {.watcher.made = wait_in_plan};
    struct fixture f;
    struct made made, other;
    pthread_t planner;
    (void)state;
    fixture_open(&f, doubling, false);
    prepare(&f, &made);
    prepare(&f, &other);
    run_doubling(&f, made.handle, 4, 1);
    sem_init(&slow.begun, 0, 0);
    sem_init(&slow.go_on, 0, 0);
    variable_watch(session_variables(f.session), &slow.watcher);
    assert_int_equal(pthread_create(&planner, NULL, plan_slowly, &f), 0);
    sem_wait(&slow.begun);
    run_doubling(&f, made.handle, 4, 2);  /* takes no lock */
    run_doubling(&f, other.handle, 4, 3); /* looks for its plan */
    sem_post(&slow.go_on);
    pthread_join(planner, NULL);
    session_handle_free(made.handle);
    session_handle_free(other.handle);
    fixture_close(&f);
}

/* ---- many threads ---- */

static void *run_many(void *argument)
{
    struct fixture own = *(struct fixture *)argument;
    struct made made;
    prepare(&own, &made);
    for (int i = 0; i < 300; i++)
        run_doubling(&own, made.handle, 1 + i / 10 % 30, (float)i);
    session_handle_free(made.handle);
    return NULL;
}

static void threads_share_plans(void **state)
{
    pthread_t threads[4];
    struct fixture f;
    (void)state;
    fixture_open(&f, doubling, false);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_many, &f), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prepared_call_is_run_again_with_any_shape),
        cmocka_unit_test(what_does_not_fit_is_refused_and_the_call_goes_on),
        cmocka_unit_test(who_runs_does_not_wait_for_who_plans),
        cmocka_unit_test(threads_share_plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
