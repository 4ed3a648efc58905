/* SPDX-License-Identifier: Apache-2.0
 *
 * Queues and events of a device with memory of its own (lib/device_test.h): enqueued steps are
 * ordered, whatever order the device chooses, and the TEST device detects missing waits.
 */
#include "lib/on_device.h"

#include "base/container_of.h"
#include "base/memory.h"
#include "exec/device/pool.h"
#include "exec/device/queue.h"
#include "exec/state/variable.h"
#include "lib/unit.h"

/* ---- errors that the device detects ---- */

static void what_does_not_wait_is_found(void **state)
{
    struct device *device = device_open_with("TF_TEST_DEVICE_SEED", 7);
    struct buffer *a = device_alloc(device, 64), *b = device_alloc(device, 64);
    char host[64] = "";
    struct error err = ERROR_INIT;
    (void)state;
    assert_int_equal(device->memory->copy(device, QUEUE_IN, a->data, host, 64, &err), 0);
    assert_int_equal(device->memory->copy(device, QUEUE_COMPUTE, b->data, a->data, 64, &err),
                     ERR_INTERNAL);
    assert_non_null(strstr(err.text, "a read of 64 bytes in queue 'compute' does not wait for a "
                                     "write of them in queue 'in'"));
    assert_int_equal(device_finish(device, &err), ERR_INTERNAL); /* the error is permanent */
    a->free(a);
    b->free(b);
    device_free(device);
}

static void what_waits_is_not(void **state)
{
    (void)state;
    for (long seed = 0; seed < 50; seed++) {
        struct device *device = device_open_with("TF_TEST_DEVICE_SEED", seed);
        struct buffer *a = device_alloc(device, 64), *b = device_alloc(device, 64);
        char host[64] = "before", back[64];
        struct error err = ERROR_INIT;
        assert_int_equal(device->memory->copy(device, QUEUE_IN, a->data, host, 64, &err), 0);
        queue_follow(device, QUEUE_COMPUTE, QUEUE_IN);
        assert_int_equal(device->memory->copy(device, QUEUE_COMPUTE, b->data, a->data, 64, &err),
                         0);
        a->free(a);
        queue_follow(device, QUEUE_OUT, QUEUE_COMPUTE);
        assert_int_equal(device->memory->copy(device, QUEUE_OUT, back, b->data, 64, &err), 0);
        assert_int_equal(device_finish(device, &err), 0);
        assert_string_equal(back, "before");
        b->free(b);
        device_free(device);
    }
}

static void the_hosts_memory_is_the_copys_until_it_is_over(void **state)
{
    struct device *device = device_open_with("TF_TEST_DEVICE_SEED", 3);
    struct buffer *a = device_alloc(device, 64);
    struct buffer *wall = device_alloc(device, 64);
    char host[64] = "before";
    struct error err = ERROR_INIT;
    (void)state;
    for (int i = 0; i < 100 && !err.code; i++) { /* a copy done at once is right by chance */
        host[0] = (char)i;
        device->memory->copy(device, QUEUE_IN, a->data, host, 64, &err);
        host[0] = (char)(i + 1);
    }
    assert_int_equal(device_finish(device, &err), ERR_INTERNAL);
    assert_non_null(strstr(err.text, "of the host changed before they were copied"));
    a->free(a);
    wall->free(wall);
    device_free(device);
}

static void memory_that_is_used_elsewhere_is_not_given_back(void **state)
{
    struct device *device = device_open_with("TF_TEST_DEVICE_SEED", 3);
    struct buffer *a = device_alloc(device, 64);
    char host[64];
    struct error err = ERROR_INIT;
    (void)state;
    assert_int_equal(device->memory->copy(device, QUEUE_OUT, host, a->data, 64, &err), 0);
    a->free(a);
    assert_int_equal(device_finish(device, &err), ERR_INTERNAL);
    assert_non_null(strstr(err.text, "a write of 64 bytes in queue 'compute' does not wait for a "
                                     "read of them in queue 'out'"));
    device_free(device);
}

struct two_copies {
    struct device *device;
    struct buffer *a, *b;
    char *host, *back;
    bool waits, joins;
};

static int enqueue_copies(void *context)
{
    struct two_copies *c = context;
    struct device *device = c->device;
    struct error err = ERROR_INIT;
    queue_follow(device, QUEUE_IN, QUEUE_COMPUTE);
    int code = device->memory->copy(device, QUEUE_IN, c->a->data, c->host, 16, &err);
    if (c->waits)
        queue_follow(device, QUEUE_COMPUTE, QUEUE_IN);
    if (!code)
        code = device->memory->copy(device, QUEUE_COMPUTE, c->b->data, c->a->data, 16, &err);
    queue_follow(device, QUEUE_OUT, QUEUE_COMPUTE);
    if (!code)
        code = device->memory->copy(device, QUEUE_OUT, c->back, c->b->data, 16, &err);
    if (c->joins)
        queue_follow(device, QUEUE_COMPUTE, QUEUE_OUT);
    return code;
}

static void so_it_is_when_work_is_captured(void **state)
{
    (void)state;
    for (int how = 0; how < 4; how++) {
        struct device *device = device_open_with("TF_TEST_DEVICE_SEED", how);
        char host[16], back[16];
        struct two_copies c = {.device = device,
                               .a = device_alloc(device, 16),
                               .b = device_alloc(device, 16),
                               .host = host,
                               .back = back,
                               .waits = how & 1,
                               .joins = how & 2};
        struct device_graph *graph = NULL;
        struct error err = ERROR_INIT;
        int code = device->capture->capture(device, enqueue_copies, &c, &graph, &err);
        assert_int_equal(code, how == 3 ? 0 : ERR_INTERNAL);
        for (int i = 0; !code && i < 5; i++) {
            memset(host, 'a' + i, sizeof host);
            assert_int_equal(device->capture->launch(device, graph, &err), 0);
            assert_int_equal(device_finish(device, &err), 0);
            assert_memory_equal(host, back, sizeof host);
        }
        if (graph)
            device->capture->free(device, graph);
        assert_int_equal(device_finish(device, &err), 0);
        c.a->free(c.a);
        c.b->free(c.b);
        device_free(device);
    }
}

/* ---- events ---- */

struct told {
    struct event_waiter waiter;
    atomic_int times;
};

static void tell(struct event_waiter *waiter, const struct error *failure)
{
    struct told *told = CONTAINER_OF(waiter, struct told, waiter);
    atomic_fetch_add(&told->times, failure ? 100 : 1);
}

static void events_are_waited_for_and_tell(void **state)
{
    struct device *device = device_open_with("TF_TEST_DEVICE_SEED", 3);
    struct buffer *a = device_alloc(device, 64);
    struct told told = {.waiter.done = tell};
    char host[64] = "x", back[64];
    struct error err = ERROR_INIT;
    (void)state;
    assert_int_equal(device_write(device, a->data, host, 64, &err), 0);
    assert_int_equal(device->memory->copy(device, QUEUE_OUT, back, a->data, 64, &err), 0);
    queue_notify_end(device, QUEUE_OUT, &told.waiter);
    struct device_event *event = device->queue->record(device, QUEUE_OUT, false);
    assert_int_equal(device->queue->block(device, event, &err), 0);
    assert_string_equal(back, "x");
    device->queue->event_free(device, event);
    assert_int_equal(device_finish(device, &err), 0);
    a->free(a);
    device_free(device); /* tells every waiter */
    assert_int_equal(atomic_load(&told.times), 1);
}

/* ---- steps ---- */

static const char training[] = "x = Placeholder() {dtype=float32, shape=[4]}\n"
                               "v = Variable() {dtype=float32, shape=[4]}\n"
                               "zero = Const() {dtype=float32, value=[0,0,0,0]}\n"
                               "init = Assign(v, zero)\n"
                               "half = Const() {dtype=float32, value=0.5}\n"
                               "g = Mul(x, half)\n"
                               "add = AssignAdd(v, g)\n"
                               "now = Identity(v, ^add)\n"
                               "y = Mul(now, x)\n";

static float train(struct fixture *f, float x0)
{
    static const struct shape shape = {.rank = 1, .dims = {4}};
    float elements[4] = {x0, 2, 3, 4};
    struct tensor x = tensor_borrow(FLOAT32, &shape, elements), result;
    if (fixture_run(f, "y", "x", &x, &result))
        fail_msg("%s", f->err.text);
    float y = (float)tensor_get_float64(&result, 0);
    tensor_release(&result);
    return y;
}

static void updates_of_variables_are_enqueued(void **state)
{
    (void)state;
    for (long seed = 0; seed < 20; seed++) {
        struct device *device = device_open_with("TF_TEST_DEVICE_SEED", seed);
        struct fixture f;
        float sum = 0;
        fixture_open_on(&f, training, device, seed % 2);
        fixture_do(&f, "^init");
        for (int i = 1; i <= 10; i++) {
            sum += (float)i / 2;
            assert_float_equal(train(&f, (float)i), sum * (float)i, 0);
        }
        assert_true(device_counts(device).updates + device_counts(device).launches >= 10);
        fixture_close(&f);
        device_free(device);
    }
}

/* Whichever piece of work fails: one line, now and ever after. */
static void a_device_that_fails_ends_its_steps(void **state)
{
    static const struct shape shape = {.rank = 1, .dims = {4}};
    float elements[4] = {1, 2, 3, 4};
    (void)state;
    for (long at = 1; at <= 12; at++) {
        struct device *device = device_open_with("TF_TEST_DEVICE_FAIL", at);
        struct fixture f;
        struct tensor x = tensor_borrow(FLOAT32, &shape, elements), result;
        fixture_open_on(&f, training, device, at % 2);
        int code = fixture_run(&f, "^init", NULL, NULL, NULL);
        for (int i = 0; !code && i < 20; i++) {
            code = fixture_run(&f, "y", "x", &x, &result);
            if (!code)
                tensor_release(&result);
        }
        assert_int_equal(code, ERR_OS);
        assert_non_null(strstr(f.err.text, "the TEST device has failed, as it was asked to"));
        assert_int_equal(fixture_run(&f, "y", "x", &x, &result), ERR_OS);
        fixture_close(&f);
        device_free(device);
    }
}

/* ---- memory ---- */

static void idle_memory_is_given_back_when_there_is_no_other(void **state)
{
    struct device *device = device_open_with("TF_TEST_DEVICE_MEMORY", 3000);
    struct pool *small = pool_new(device, true), *large = pool_new(device, true);
    struct buffer *a = pool_alloc(small, 1024), *b = pool_alloc(small, 1024);
    (void)state;
    assert_non_null(a);
    assert_non_null(b);
    assert_null(pool_alloc(large, 2048));
    a->free(a);
    b->free(b);
    struct buffer *c = pool_alloc(large, 2048);
    assert_non_null(c);
    c->free(c);
    pool_free(small);
    pool_free(large);
    device_free(device);
}

static void a_step_without_memory_says_so(void **state)
{
    static const struct shape shape = {.rank = 1, .dims = {4}};
    float elements[4] = {1, 2, 3, 4};
    struct device *device = device_open_with("TF_TEST_DEVICE_MEMORY", 40);
    struct fixture f;
    struct tensor x = tensor_borrow(FLOAT32, &shape, elements), result;
    (void)state;
    fixture_open_on(&f, training, device, true);
    assert_int_equal(fixture_run(&f, "g", "x", &x, &result), ERR_OS);
    assert_non_null(strstr(f.err.text, "no memory for"));
    fixture_close(&f);
    device_free(device);
}

/* The fetches came through the device's memory. */
static void fetches_outlive_the_device(void **state)
{
    static const struct shape shape = {.rank = 1, .dims = {4}};
    (void)state;
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        struct device *device = device_open_with("TF_TEST_DEVICE_SEED", dynamic);
        struct fixture f;
        float elements[4] = {1, 2, 3, 4};
        struct tensor x = tensor_borrow(FLOAT32, &shape, elements), results[2];
        fixture_open_on(&f, training, device, dynamic);
        fixture_do(&f, "^init");
        for (int i = 0; i < 2; i++)
            assert_int_equal(fixture_run(&f, "y", "x", &x, &results[i]), 0);
        fixture_close(&f);
        device_free(device);
        for (int i = 0; i < 2; i++) /* x (i + 1) x / 2 */
            for (int k = 0; k < 4; k++)
                assert_float_equal(tensor_get_float64(&results[i], k),
                                   elements[k] * elements[k] * (float)(i + 1) / 2, 0);
        tensor_release(&results[0]);
        tensor_release(&results[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_not_wait_is_found),
        cmocka_unit_test(what_waits_is_not),
        cmocka_unit_test(the_hosts_memory_is_the_copys_until_it_is_over),
        cmocka_unit_test(memory_that_is_used_elsewhere_is_not_given_back),
        cmocka_unit_test(so_it_is_when_work_is_captured),
        cmocka_unit_test(events_are_waited_for_and_tell),
        cmocka_unit_test(updates_of_variables_are_enqueued),
        cmocka_unit_test(a_device_that_fails_ends_its_steps),
        cmocka_unit_test(idle_memory_is_given_back_when_there_is_no_other),
        cmocka_unit_test(a_step_without_memory_says_so),
        cmocka_unit_test(fetches_outlive_the_device),
    };
    setenv("TF_TEST_DEVICE", "TEST:0", 1);
    fixture_device(); /* finds the module */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
