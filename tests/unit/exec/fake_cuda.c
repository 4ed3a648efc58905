/* SPDX-License-Identifier: Apache-2.0
 *
 * The fake driver detects uses that CUDA does not allow (lib/fake_cuda.h).
 */
#include "lib/on_device.h"

#include "lib/fake_cuda.h"
#include "lib/unit.h"

/* A device of its own, its driver, and two streams on which to make mistakes. */
struct lab {
    struct device *device;
    const struct cuda_driver *driver;
    struct cuda_stream *a, *b;
    struct cuda_event *event;
    void *memory; /* of the device; the first stream orders its use */
};

static void open_lab(struct lab *lab)
{
    lab->device = device_open_with("TF_TEST_DEVICE_SEED", 5);
    lab->driver = dlsym(lab->device->module, "fake_cuda_driver");
    assert_non_null(lab->driver);
    assert_int_equal(lab->driver->set_device(0), 0);
    assert_int_equal(lab->driver->stream_new(&lab->a), 0);
    assert_int_equal(lab->driver->stream_new(&lab->b), 0);
    assert_int_equal(lab->driver->event_new(false, &lab->event), 0);
    assert_int_equal(lab->driver->memory_alloc(lab->a, 64, &lab->memory), 0);
}

static void close_lab(struct lab *lab)
{
    if (lab->memory)
        lab->driver->memory_free(lab->a, lab->memory);
    lab->driver->stream_free(lab->a);
    lab->driver->stream_free(lab->b);
    lab->driver->event_free(lab->event);
    device_free(lab->device);
}

static void expect_failure(const struct lab *lab, int result, const char *text)
{
    assert_int_not_equal(result, 0);
    if (!strstr(lab->driver->error_text(result), text))
        fail_msg("'%s'", lab->driver->error_text(result));
}

static int copy_in(const struct lab *lab, struct cuda_stream *stream, const void *from)
{
    return lab->driver->copy(stream, lab->memory, from, 64, CUDA_TO_DEVICE);
}

static int follow(const struct lab *lab)
{
    int code = lab->driver->event_record(lab->event, lab->a);
    return code ? code : lab->driver->stream_wait(lab->b, lab->event);
}

/* ---- memory ---- */

static void new_memory_is_waited_for(void **state)
{
    char host[64] = "";
    struct lab lab;
    (void)state;
    open_lab(&lab);
    expect_failure(&lab, copy_in(&lab, lab.b, host), "does not wait for a write");
    close_lab(&lab);
    open_lab(&lab);
    assert_int_equal(follow(&lab), 0);
    assert_int_equal(copy_in(&lab, lab.b, host), 0);
    expect_failure(&lab, lab.driver->copy(lab.a, host, lab.memory, 64, CUDA_TO_HOST),
                   "a read of 64 bytes in queue 'another' does not wait for a write");
    close_lab(&lab);
}

static void freed_memory_is_not_used(void **state)
{
    char host[64] = "";
    struct lab lab;
    (void)state;
    open_lab(&lab);
    assert_int_equal(lab.driver->memory_free(lab.a, lab.memory), 0);
    expect_failure(&lab, copy_in(&lab, lab.a, host), "not, or no longer, its memory");
    lab.memory = NULL;
    close_lab(&lab);
}

static void the_hosts_is_kept_until_a_copy_is_over(void **state)
{
    void *host;
    struct lab lab;
    int result = 0;
    (void)state;
    for (int i = 0; i < 50 && !result; i++) { /* the work may happen to be done at once */
        open_lab(&lab);
        assert_int_equal(lab.driver->host_alloc(64, &host), 0);
        memset(host, 0, 64);
        assert_int_equal(copy_in(&lab, lab.a, host), 0);
        if (i % 2)
            assert_int_equal(lab.driver->device_wait(), 0);
        result = lab.driver->host_free(host);
        if (i % 2)
            assert_int_equal(result, 0);
        else if (result)
            expect_failure(&lab, result, "given back before a copy is over");
        close_lab(&lab);
    }
    assert_int_not_equal(result, 0);
}

static void pinned_memory_is_copied_alone(void **state)
{
    static _Alignas(4096) char host[8192];
    struct lab lab;
    (void)state;
    open_lab(&lab);
    expect_failure(&lab, lab.driver->host_register(host + 8, 4096), "not whole pages");
    close_lab(&lab);
    open_lab(&lab);
    assert_int_equal(lab.driver->host_register(host, 4096), 0);
    assert_int_equal(lab.driver->host_register(host, 8192), CUDA_ALREADY_PINNED);
    assert_int_equal(copy_in(&lab, lab.a, host + 4096 - 64), 0);
    expect_failure(&lab, copy_in(&lab, lab.a, host + 4096 - 32), "pinned in part");
    lab.driver->device_wait();
    lab.driver->host_unregister(host);
    close_lab(&lab);
}

/* ---- captured work ---- */

static int allocate(const struct lab *lab)
{
    void *memory = NULL;
    int result = lab->driver->memory_alloc(lab->a, 64, &memory);
    return result ? result : lab->driver->memory_free(lab->a, memory);
}

static int wait_on_the_host(const struct lab *lab)
{
    return lab->driver->event_wait(lab->event);
}

static int wait_for_what_was_before(const struct lab *lab)
{
    return lab->driver->stream_wait(lab->a, lab->event);
}

static int copy_from_anywhere(const struct lab *lab)
{
    static char host[64];
    return copy_in(lab, lab->a, host);
}

static int forget_a_stream(const struct lab *lab)
{
    int result = follow(lab);
    return result ? result
                  : lab->driver->copy(lab->b, lab->memory, (char *)lab->memory + 32, 32,
                                      CUDA_WITHIN_DEVICE);
}

static void what_cannot_be_captured_is_found(void **state)
{
    static const struct {
        int (*mistake)(const struct lab *lab);
        const char *text;
    } rows[] = {{allocate, "memory is asked for"},
                {wait_on_the_host, "the host waits"},
                {wait_for_what_was_before, "an event of before"},
                {copy_from_anywhere, "memory that is not pinned"},
                {forget_a_stream, "is not waited for in the end"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct cuda_graph *graph;
        struct lab lab;
        open_lab(&lab);
        assert_int_equal(lab.driver->event_record(lab.event, lab.a), 0);
        assert_int_equal(lab.driver->capture_begin(lab.a), 0);
        rows[i].mistake(&lab);
        expect_failure(&lab, lab.driver->capture_end(lab.a, &graph), rows[i].text);
        assert_null(graph);
        assert_int_equal(lab.driver->device_wait(), 0); /* the device goes on */
        close_lab(&lab);
    }
}

static void captured_events_are_of_the_graph(void **state)
{
    struct cuda_graph *graph;
    struct lab lab;
    float ms;
    (void)state;
    open_lab(&lab);
    assert_int_equal(lab.driver->capture_begin(lab.a), 0);
    assert_int_equal(lab.driver->event_record(lab.event, lab.a), 0);
    assert_int_equal(lab.driver->capture_end(lab.a, &graph), 0);
    assert_int_equal(lab.driver->event_wait(lab.event), 907);
    assert_int_equal(lab.driver->event_elapsed(&ms, lab.event, lab.event), 400); /* untimed */
    assert_int_equal(lab.driver->graph_launch(graph, lab.a), 0);
    assert_int_equal(lab.driver->device_wait(), 0);
    assert_int_equal(lab.driver->graph_free(graph), 0);
    close_lab(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_memory_is_waited_for),
        cmocka_unit_test(freed_memory_is_not_used),
        cmocka_unit_test(the_hosts_is_kept_until_a_copy_is_over),
        cmocka_unit_test(pinned_memory_is_copied_alone),
        cmocka_unit_test(what_cannot_be_captured_is_found),
        cmocka_unit_test(captured_events_are_of_the_graph),
    };
    setenv("TF_TEST_DEVICE", "CUDA:0", 1);
    test_device_path();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
