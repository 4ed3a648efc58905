/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces of steps on a device with memory of its own: they give the times at which the device
 * worked, by its clock, not those of enqueuing. On the TEST device (lib/device_test.h) each piece
 * of work takes a microsecond.
 */
#include "lib/on_device.h"

#include "exec/step/trace.h"

#define WORK 1000

struct event {
    char node[32], queue[16]; /* "": of a thread */
    int64_t start, ns;
};

struct events {
    struct event items[64];
    int n;
};

static void copy_text(const msgpack_object *map, const char *key, char *text, size_t bytes)
{
    const msgpack_object *value = record_field(map, key);
    snprintf(text, bytes, "%.*s", value ? (int)value->via.str.size : 0,
             value ? value->via.str.ptr : "");
}

static void read_events(struct trace *trace, struct events *events)
{
    struct error err = ERROR_INIT;
    size_t n;
    struct stream_writer *writer = stream_writer_new_memory("test", 1);
    assert_int_equal(trace_flush(trace, writer, &err), 0);
    assert_int_equal(stream_finish(writer, &err), 0);
    const void *bytes = stream_writer_bytes(writer, &n);
    struct stream_reader *reader = stream_reader_new_memory(bytes, n, "test");
    struct record record = {0};
    bool more = true;
    events->n = 0;
    while (!stream_read(reader, &record, &more, &err) && more) {
        const msgpack_object *list = record_field(&record.header, "events");
        for (uint32_t i = 0; list && i < list->via.array.size; i++) {
            const msgpack_object *map = &list->via.array.ptr[i];
            struct event *event = &events->items[events->n++];
            assert_true(events->n < 64);
            copy_text(map, "node", event->node, sizeof event->node);
            copy_text(map, "queue", event->queue, sizeof event->queue);
            record_get_int(map, "start", &event->start);
            record_get_int(map, "ns", &event->ns);
        }
    }
    record_release(&record);
    stream_reader_free(reader);
    stream_writer_free(writer);
}

/* Runs and traces a step that fetches y and feeds x. */
static int run_traced(struct fixture *f, float x0, struct events *events)
{
    static const struct shape shape = {.rank = 1, .dims = {2}};
    float elements[2] = {x0, 1};
    struct tensor x = tensor_borrow(FLOAT32, &shape, elements), y;
    struct edge feed, fetch;
    struct step step = {.number = 1, .trace = trace_new()};
    if (graph_parse_edge(f->graph, "x", &feed, &f->err) ||
        graph_parse_edge(f->graph, "y", &fetch, &f->err))
        fail_msg("%s", f->err.text);
    struct plan_request call = {
        .feeds = &feed, .feed_values = &x, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1};
    int code = session_run(f->session, &call, &step, &y, &f->err);
    if (!code)
        tensor_release(&y);
    read_events(step.trace, events);
    trace_free(step.trace);
    return code;
}

static const struct event *find(const struct events *events, const char *node)
{
    for (int i = 0; i < events->n; i++)
        if (!strcmp(events->items[i].node, node))
            return &events->items[i];
    fail_msg("nothing is told of '%s'", node);
    return NULL;
}

static const char chain[] = "x = Placeholder() {dtype=float32, shape=[2]}\n"
                            "a = Neg(x)\n"
                            "b = Exp(a)\n"
                            "c = Log(b)\n"
                            "y = Abs(c)\n";

/* The step block is copied in, then x; the kernels follow one after the other, then y leaves. */
static void what_is_told_is_when_the_device_did_it(void **state)
{
    static const struct event wanted[] = {
        {"copy_in", "in", 1, 0}, {"a", "compute", 2, 0}, {"b", "compute", 3, 0},
        {"c", "compute", 4, 0},  {"y", "compute", 5, 0}, {"fetch", "out", 6, 0},
    };
    (void)state;
    for (long seed = 0; seed < 10; seed++) {
        struct device *device = device_open_with("TF_TEST_DEVICE_SEED", seed);
        struct fixture f;
        struct events events;
        fixture_open_on(&f, chain, device, seed % 2);
        assert_int_equal(run_traced(&f, 1, &events), 0);
        for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
            const struct event *event = find(&events, wanted[i].node);
            assert_string_equal(event->queue, wanted[i].queue);
            assert_int_equal(event->start, wanted[i].start * WORK);
            assert_int_equal(event->ns, WORK);
        }
        fixture_close(&f);
        device_free(device);
    }
}

/* Values that the host needs meanwhile, and its own work. */
static void what_the_host_does_is_a_threads(void **state)
{
    static const char graph[] = "x = Placeholder() {dtype=float32, shape=[2]}\n"
                                "two = Const() {dtype=float32, value=2}\n"
                                "n = Mul(x, two)\n"
                                "i = Cast(n) {SrcT=float32, DstT=int32}\n"
                                "ones = Fill(i, two)\n"
                                "y = Neg(ones)\n";
    struct device *device = device_open_with("TF_TEST_DEVICE_SEED", 3);
    struct fixture f;
    struct events events;
    (void)state;
    fixture_open_on(&f, graph, device, false);
    assert_int_equal(run_traced(&f, 1, &events), 0);
    assert_string_equal(find(&events, "i")->queue, "compute");
    assert_string_equal(find(&events, "copy_out")->queue, "out");
    assert_true(find(&events, "copy_out")->start >= find(&events, "i")->start + WORK);
    assert_string_equal(find(&events, "ones")->queue, "");
    fixture_close(&f);
    device_free(device);
}

/* A failed step is traced, too; a device that has failed gives no times. */
static void steps_that_fail_are_told(void **state)
{
    static const char graph[] = "x = Placeholder() {dtype=float32, shape=[2]}\n"
                                "n = Cast(x) {SrcT=float32, DstT=int32}\n"
                                "q = Div(n, n)\n"
                                "y = Neg(q)\n";
    (void)state;
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        struct device *device = device_open_with("TF_TEST_DEVICE_FAIL", 9);
        struct fixture f;
        struct events events;
        fixture_open_on(&f, graph, device, dynamic);
        assert_int_equal(run_traced(&f, 0, &events), ERR_DATA);
        assert_int_equal(find(&events, "q")->ns, WORK);
        assert_int_equal(run_traced(&f, 1, &events), ERR_OS);
        assert_true(events.n == 0 || !*events.items[0].queue);
        fixture_close(&f);
        device_free(device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_told_is_when_the_device_did_it),
        cmocka_unit_test(what_the_host_does_is_a_threads),
        cmocka_unit_test(steps_that_fail_are_told),
    };
    test_device_path();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
