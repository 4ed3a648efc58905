/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps over several tasks that are cancelled: between two of them, while they end, and while their
 * driver waits.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "lib/cluster.h"

#include "lib/cut.h"
#include "transport/session/driver_session.h"

#define CANCELLED 2000 /* steps */

static struct test_cluster cluster;

static int start(void **state)
{
    (void)state;
    test_cluster_start(&cluster, 1, 0);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    test_cluster_stop(&cluster);
    return 0;
}

/* Otherwise a cancellation between two steps would wait for the next step for ever. */
static void what_is_cancelled_between_two_steps_stays_cancelled(void **state)
{
    static const char text[] =
        "x = Const() {dtype=float32, value=3}" ON("ps/task:0") "y = Neg(x)" ON("worker/task:0");
    struct cut_graph cut;
    struct graph *whole;
    struct error err = ERROR_INIT, why = ERROR_INIT;
    (void)state;
    const struct graph *graph = cut_parse(&cut, &whole, text);
    struct driver_session *session = test_session(&cluster, graph);
    struct edge fetch = {graph_find(graph, "y")->id, 0};
    struct plan_request call = {.fetches = &fetch, .n_fetches = 1};
    struct step first = {.number = 1}, second = {.number = 2};
    struct tensor value = TENSOR_INIT;
    assert_int_equal(driver_session_run(session, &call, &first, &value, &err), 0);
    tensor_release(&value);
    error_set(&why, ERR_CANCELLED, "that was all");
    driver_session_cancel(session, &why);
    assert_int_equal(driver_session_run(session, &call, &second, &value, &err), ERR_CANCELLED);
    assert_string_equal(err.text, "that was all");
    driver_session_close(session);
    cut_close(&cut);
    graph_free(whole);
}

static void *run_loop(void *loop)
{
    struct error err = ERROR_INIT;
    return loop_run(loop, &err) ? "failed" : NULL;
}

struct canceller {
    struct driver_session *session;
    atomic_bool has_cancelled, ends;
};

static void *cancel_often(void *argument)
{
    struct canceller *c = argument;
    struct error why = ERROR_INIT;
    error_set(&why, ERR_CANCELLED, "that was all");
    while (!atomic_load(&c->ends)) {
        driver_session_cancel(c->session, &why);
        atomic_store(&c->has_cancelled, true);
    }
    return NULL;
}

/* A step that starts after a cancellation is cancelled, and one that succeeds has its value; only
 * the step during which the first cancellation comes may do either. */
static bool run_cancelled(struct canceller *c, const struct plan_request *call, int number)
{
    struct step step = {.number = number};
    struct tensor value = TENSOR_INIT;
    struct error err = ERROR_INIT;
    bool was_cancelled = atomic_load(&c->has_cancelled);
    int code = driver_session_run(c->session, call, &step, &value, &err);
    if (code) {
        assert_int_equal(code, ERR_CANCELLED);
        assert_string_equal(err.text, "that was all");
    } else {
        assert_false(was_cancelled);
        assert_true(tensor_get_float64(&value, 0) == -3);
        tensor_release(&value);
    }
    return code != 0;
}

/* Each step ends while another thread looks for one to cancel. */
static void who_cancels_finds_no_step_that_is_over(void **state)
{
    static const char text[] =
        "x = Const() {dtype=float32, value=3}" ON("ps/task:0") "y = Neg(x)" ON("worker/task:0");
    struct cut_graph cut;
    struct graph *whole;
    pthread_t runs, cancels;
    (void)state;
    const struct graph *graph = cut_parse(&cut, &whole, text);
    struct loop *loop = conns_loop(cluster.conns);
    assert_int_equal(pthread_create(&runs, NULL, run_loop, loop), 0);
    struct canceller canceller = {.session = test_session_of(&cluster, graph, false)};
    struct edge fetch = {graph_find(graph, "y")->id, 0};
    struct plan_request call = {.fetches = &fetch, .n_fetches = 1};
    assert_false(run_cancelled(&canceller, &call, 0));
    assert_int_equal(pthread_create(&cancels, NULL, cancel_often, &canceller), 0);
    int n_cancelled = 0;
    for (int i = 1; i <= CANCELLED || !n_cancelled; i++) {
        bool is_cancelled = run_cancelled(&canceller, &call, i);
        assert_true(is_cancelled || !n_cancelled); /* later steps are cancelled, too */
        n_cancelled += is_cancelled;
    }
    assert_true(run_cancelled(&canceller, &call, CANCELLED + 1));
    atomic_store(&canceller.ends, true);
    pthread_join(cancels, NULL);
    driver_session_close(canceller.session);
    loop_stop(loop);
    pthread_join(runs, NULL);
    cut_close(&cut);
    graph_free(whole);
}

/* Failing a step takes the session's lock, so its state is read without it. */
static void who_pumps_ends_a_step_that_is_cancelled(void **state)
{
    static const char text[] =
        "x = Const() {dtype=float32, value=3}" ON("ps/task:0") "y = Neg(x)" ON("worker/task:0");
    struct cut_graph cut;
    struct graph *whole;
    struct error err = ERROR_INIT;
    struct tensor value = TENSOR_INIT;
    (void)state;
    const struct graph *graph = cut_parse(&cut, &whole, text);
    struct driver_session *session = test_session(&cluster, graph);
    struct edge fetch = {graph_find(graph, "y")->id, 0};
    struct plan_request call = {.fetches = &fetch, .n_fetches = 1};
    struct step first = {.number = 1}, second = {.number = 2};
    assert_int_equal(driver_session_run(session, &call, &first, &value, &err), 0);
    tensor_release(&value);
    atomic_store(&second.cancelled, true);
    assert_int_equal(driver_session_run(session, &call, &second, &value, &err), ERR_CANCELLED);
    driver_session_close(session);
    cut_close(&cut);
    graph_free(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_cancelled_between_two_steps_stays_cancelled, start,
                                        stop),
        cmocka_unit_test_setup_teardown(who_cancels_finds_no_step_that_is_over, start, stop),
        cmocka_unit_test_setup_teardown(who_pumps_ends_a_step_that_is_cancelled, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
