/* SPDX-License-Identifier: Apache-2.0
 *
 * Signals that are handled while a kernel computes use a stack of their own: oneDNN's products of
 * more than 8192 terms leave the thread's stack unusable.
 */
#include <signal.h>
#include <sys/time.h>

#include "base/thread.h"
#include "cli/tool.h"
#include "lib/session.h"

#define TERMS 12288
#define LINES 16

/* clang-format off */
static const char graph_text[] =
    "x = Placeholder() {dtype=float32, shape=[16,12288]}\n"
    "product = MatMul(x, x) {transpose_b=true}\n";
/* clang-format on */

static volatile sig_atomic_t handled, elsewhere;

static void handle(int number)
{
    stack_t used;
    (void)number;
    handled++;
    if (sigaltstack(NULL, &used) || !(used.ss_flags & SS_ONSTACK))
        elsewhere++;
}

static void set_timer(int microseconds)
{
    struct itimerval timer = {.it_interval.tv_usec = microseconds,
                              .it_value.tv_usec = microseconds};
    assert_int_equal(setitimer(ITIMER_REAL, &timer, NULL), 0);
}

static float factor(int64_t i)
{
    return (float)(i * 37 % 101 - 50) / 64;
}

static double expected(int64_t line, int64_t column)
{
    double sum = 0;
    for (int64_t i = 0; i < TERMS; i++)
        sum += (double)factor(line * TERMS + i) * (double)factor(column * TERMS + i);
    return sum;
}

static void check_product(const struct tensor *product)
{
    for (int64_t i = 0; i < (int64_t)LINES * LINES; i++) {
        double right = expected(i / LINES, i % LINES);
        double found = tensor_get_float64(product, i);
        if (found < right - 0.01 || found > right + 0.01)
            fail_msg("%g, must be %g", found, right);
    }
}

static void products_are_interrupted(void **state)
{
    static float x[LINES * TERMS];
    const struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK | SA_RESTART};
    struct shape shape = shape_matrix(LINES, TERMS);
    struct tensor feed = tensor_borrow(FLOAT32, &shape, x), product;
    struct sigaction before;
    struct fixture f;
    (void)state;
    for (int64_t i = 0; i < (int64_t)LINES * TERMS; i++)
        x[i] = factor(i);
    fixture_open(&f, graph_text, false);
    assert_int_equal(fixture_run(&f, "product", "x", &feed, &product), 0);
    tensor_release(&product);
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    set_timer(100);
    for (int n = 0; n < 20 || handled < 20; n++) {
        assert_int_equal(fixture_run(&f, "product", "x", &feed, &product), 0);
        check_product(&product);
        tensor_release(&product);
    }
    set_timer(0);
    sigaction(SIGALRM, &before, NULL);
    assert_int_equal(elsewhere, 0);
    fixture_close(&f);
}

/* The tools' handlers ask for that stack. */
static void tools_ask_for_it(void **state)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGALRM};
    static atomic_bool flag;
    struct error err = ERROR_INIT;
    (void)state;
    tool_catch_signals();
    assert_int_equal(tool_cancel_after(100, &flag, &err), 0);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction action;
        assert_int_equal(sigaction(numbers[i], NULL, &action), 0);
        assert_true(action.sa_flags & SA_ONSTACK);
        action.sa_handler = SIG_DFL;
        sigaction(numbers[i], &action, NULL);
    }
}

static void *look_at_mask(void *blocks_all)
{
    sigset_t mask;
    bool *all = blocks_all;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    *all = sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGALRM) == 1 &&
           sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGCHLD) == 1;
    return NULL;
}

/* A signal for the process goes to a thread that waits for signals; the creator's mask stays. */
static void threads_block_all(void **state)
{
    pthread_t thread;
    sigset_t mask;
    bool all = false;
    (void)state;
    assert_int_equal(thread_start(&thread, look_at_mask, &all), 0);
    pthread_join(thread, NULL);
    assert_true(all);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_int_equal(sigismember(&mask, SIGTERM), 0);
}

/* A large graph may take long to plan. A later step plans it instead. */
static void nobody_plans_for_a_step_that_is_cancelled(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f, "y = Const() {dtype=float32, value=2}\nz = Neg(y)\n", false);
    struct edge fetch = {graph_find(f.graph, "z")->id, 0};
    struct plan_request call = {.fetches = &fetch, .n_fetches = 1};
    struct step step = {.number = 1};
    struct tensor result = TENSOR_INIT;
    atomic_store(&step.cancelled, true);
    assert_int_equal(session_run(f.session, &call, &step, &result, &f.err), ERR_CANCELLED);
    assert_non_null(strstr(f.err.text, "while it was planned"));
    error_clear(&f.err);
    atomic_store(&step.cancelled, false);
    assert_int_equal(session_run(f.session, &call, &step, &result, &f.err), 0);
    assert_true(tensor_get_float64(&result, 0) == -2);
    tensor_release(&result);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_interrupted),
        cmocka_unit_test(tools_ask_for_it),
        cmocka_unit_test(threads_block_all),
        cmocka_unit_test(nobody_plans_for_a_step_that_is_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
