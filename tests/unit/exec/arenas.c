/* SPDX-License-Identifier: Apache-2.0
 *
 * The plans of a session share the memory of steps, as long as no two of the plans run at once.
 */
#include "lib/session.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/memory.h"
#include "lib/unit.h"

#define ROUNDS 300

/* The tests' device, which also counts the bytes that it has given out. */
static struct device counting;
static struct device_memory memory;
static atomic_size_t live;

struct metered_function {
    struct buffer buffer; /* must be first */
    struct buffer *own;
};

static void counted_free(struct buffer *buffer)
{
    struct metered_function *counted = (struct metered_function *)buffer;
    atomic_fetch_sub(&live, buffer->bytes);
    counted->own->free(counted->own);
    mem_free(counted);
}

static struct buffer *counted_alloc(struct device *device, size_t bytes)
{
    struct buffer *own = device_alloc(fixture_device(), bytes);
    struct metered_function *counted = mem_alloc(sizeof *counted);
    (void)device;
    counted->own = own;
    counted->buffer = *own;
    counted->buffer.free = counted_free;
    atomic_fetch_add(&live, own->bytes);
    return &counted->buffer;
}

static struct session *open_session(const struct graph *graph)
{
    counting = *fixture_device();
    memory = *counting.memory;
    memory.alloc = counted_alloc;
    counting.memory = &memory;
    struct session_options options = {.plan = {.kernels = ops_kernels(), .device = &counting}};
    atomic_store(&live, 0);
    return session_new(graph, &options);
}

/* Products of n x n ones, each with the sum n to the third: an arena of at least n * n elements. */
static struct graph *make_graph(void)
{
    static const int sizes[] = {10, 40, 80};
    struct graph *graph;
    struct error err = ERROR_INIT;
    struct str text = STR_INIT;
    str_append(&text, "axes = Const() {dtype=int32, value=[0,1]}\n");
    for (int i = 0; i < 3; i++)
        str_printf(&text,
                   "x%d = Placeholder() {dtype=float32, shape=[%d,%d]}\np%d = MatMul(x%d, x%d)\n"
                   "y%d = Sum(p%d, axes)\n",
                   i, sizes[i], sizes[i], i, i, i, i, i);
    if (graph_parse_text(text.data, text.n, "test", ops_registry(), &graph, &err))
        fail_msg("%s", err.text);
    str_release(&text);
    return graph;
}

static double run(struct session *session, const struct graph *graph, int i)
{
    struct error err = ERROR_INIT;
    char name[8];
    struct tensor ones, result;
    snprintf(name, sizeof name, "x%d", i);
    const struct node *x = graph_find(graph, name);
    snprintf(name, sizeof name, "y%d", i);
    struct edge fed = {x->id, 0}, fetch = {graph_find(graph, name)->id, 0};
    if (tensor_alloc(&ones, FLOAT32, &x->outputs[0].shape, &err))
        fail_msg("%s", err.text);
    for (int k = 0; k < tensor_count(&ones); k++)
        ((float *)ones.data)[k] = 1;
    struct plan_request call = {
        .feeds = &fed, .feed_values = &ones, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1};
    struct step step = {.number = 1};
    if (session_run(session, &call, &step, &result, &err))
        fail_msg("%s", err.text);
    double value = tensor_get_float64(&result, 0);
    tensor_release(&result);
    tensor_release(&ones);
    return value;
}

/* Bytes that a session of plan i alone keeps. */
static size_t alone(const struct graph *graph, int i)
{
    struct session *session = open_session(graph);
    run(session, graph, i);
    run(session, graph, i); /* the memory is kept */
    size_t bytes = atomic_load(&live);
    session_free(session);
    assert_int_equal(atomic_load(&live), 0);
    return bytes;
}

static void plans_take_as_much_as_the_largest(void **state)
{
    struct graph *graph = make_graph();
    size_t middle = alone(graph, 1), largest = alone(graph, 2);
    struct session *session = open_session(graph);
    (void)state;
    assert_true(middle >= 40 * 40 * sizeof(float) && largest > 2 * middle);
    run(session, graph, 1); /* a plan gives its memory back when another one is made */
    for (int round = 0; round < 3; round++) {
        assert_float_equal(run(session, graph, 1), 64000, 0);
        assert_int_equal(atomic_load(&live), round ? largest : middle);
        assert_float_equal(run(session, graph, 0), 1000, 0);
        assert_int_equal(atomic_load(&live), round ? largest : middle);
        assert_float_equal(run(session, graph, 2), 512000, 0);
        assert_int_equal(atomic_load(&live), largest);
    }
    session_free(session);
    assert_int_equal(atomic_load(&live), 0);
    graph_free(graph);
}

/* ---- at once ---- */

struct runner_of {
    struct session *session;
    const struct graph *graph;
    int which;
};

static void *run_often(void *argument)
{
    const struct runner_of *r = argument;
    static const double sums[] = {1000, 64000, 512000};
    for (int i = 0; i < ROUNDS; i++)
        assert_float_equal(run(r->session, r->graph, (r->which + i) % 3), sums[(r->which + i) % 3],
                           0);
    return NULL;
}

/* Each step then has memory of its own, but there is never more of it than threads. */
static void steps_at_once_do_not_share(void **state)
{
    struct graph *graph = make_graph();
    size_t largest = alone(graph, 2);
    struct session *session = open_session(graph);
    struct runner_of runners[3];
    pthread_t threads[3];
    (void)state;
    for (int i = 0; i < 3; i++) {
        runners[i] = (struct runner_of){session, graph, i};
        assert_int_equal(pthread_create(&threads[i], NULL, run_often, &runners[i]), 0);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert_true(atomic_load(&live) <= 3 * largest);
    session_free(session);
    assert_int_equal(atomic_load(&live), 0);
    graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_take_as_much_as_the_largest),
        cmocka_unit_test(steps_at_once_do_not_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
