/* SPDX-License-Identifier: Apache-2.0
 *
 * Feeds that are prefetched (exec/step/prefetched.h) while the step before runs: outputs, failures
 * and their order are as with a driver that reads nothing ahead.
 */
#include "lib/on_device.h"

#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "exec/session/driver.h"
#include "lib/unit.h"

#define STEPS 8
#define SEEDS 10

static const char training[] = "x = Placeholder() {dtype=float32, shape=[?]}\n"
                               "rate = Placeholder() {dtype=float32, shape=[]}\n"
                               "v = Variable() {dtype=float32, shape=[]}\n"
                               "zero = Const() {dtype=float32, value=0}\n"
                               "init = Assign(v, zero)\n"
                               "axes = Const() {dtype=int32, value=[0]}\n"
                               "squares = Mul(x, x)\n"
                               "s = Sum(squares, axes)\n"
                               "g = Mul(s, rate)\n"
                               "add = AssignAdd(v, g)\n"
                               "now = Identity(v, ^add)\n"
                               "y = Add(now, rate)\n";

/* ---- records ---- */

enum damage {
    NONE,
    WRONG_TYPE, /* of a feed in the third step */
    UNKNOWN,    /* an unknown name there */
    CUT,        /* the stream ends in the middle of its record */
    HALF,       /* and here between the two records of a step */
    N_DAMAGES
};

static int64_t length_of(int step, bool varies)
{
    return varies ? 5 + step % 3 : 6;
}

static void write_tensor(struct stream_writer *writer, int64_t step, const char *name,
                         struct tensor value)
{
    struct named_tensor named = {name, value};
    struct error err = ERROR_INIT;
    if (stream_write_feed(writer, RECORD_FEED, step, NULL, &named, 1, &err))
        fail_msg("%s", err.text);
}

/* Writes two records per step, x and rate. */
static void write_step(struct stream_writer *writer, int step, bool varies, enum damage damage)
{
    float values[8], rate = 1 / (float)step;
    struct shape shape = {.rank = 1, .dims = {length_of(step, varies)}}, scalar = {.rank = 0};
    bool is_third = step == 3;
    for (int i = 0; i < 8; i++)
        values[i] = (float)(i * step) / 7;
    write_tensor(writer, step, is_third && damage == UNKNOWN ? "nobody" : "x",
                 tensor_borrow(is_third && damage == WRONG_TYPE ? INT32 : FLOAT32, &shape, values));
    if (!is_third || damage != HALF)
        write_tensor(writer, step, "rate", tensor_borrow(FLOAT32, &scalar, &rate));
}

static void make_feeds(struct str *bytes, bool varies, enum damage damage)
{
    struct error err = ERROR_INIT;
    struct stream_writer *writer = stream_writer_new_memory("test", -1);
    size_t n, before = 0;
    for (int step = 1; step <= (damage == HALF ? 3 : STEPS); step++) {
        write_step(writer, step, varies, damage);
        if (step == 2)
            stream_writer_bytes(writer, &before);
    }
    assert_int_equal(stream_finish(writer, &err), 0);
    const void *data = stream_writer_bytes(writer, &n);
    str_append_bytes(bytes, data, damage == CUT ? n - 150 : n);
    stream_writer_free(writer);
}

/* ---- a run ---- */

struct how {
    bool is_prefetched, dynamic, varies;
    enum damage damage;
    const char *setting; /* of the device; NULL: none */
    long value;
};

struct outcome {
    int code;
    char text[ERROR_TEXT_BYTES];
    struct str output;
    int64_t steps;
    struct device_test_counts counts;
};

static void outcome_release(struct outcome *outcome)
{
    str_release(&outcome->output);
}

/* The record belongs to the feeds: by it a checkpoint names the place in the data. */
static void check_record(const struct driver *driver)
{
    int64_t step;
    assert_true(record_get_int(&driver->feeds.record.header, "step", &step));
    assert_int_equal(step, driver->step + 1);
}

static int run_all(struct driver *driver, struct fixture *f, struct error *err)
{
    bool more;
    int code = fixture_run(f, "^init", NULL, NULL, NULL);
    if (code)
        *err = f->err;
    while (!code && !(code = driver_next_feeds(driver, &more, err)) && more) {
        check_record(driver);
        code = driver_run_step(driver, err);
    }
    return code;
}

static void open_driver(struct driver *driver, struct fixture *f, const struct how *how)
{
    driver_init(driver, f->graph, "test");
    driver->session = f->session;
    driver->option = "--fetch";
    driver->what = "y";
    driver->steps_fed = how->is_prefetched ? -1 : 0;
    if (request_fetch(&driver->request, "y", &f->err) || driver_ready(driver, &f->err))
        fail_msg("%s", f->err.text);
}

static void run(const struct how *how, struct outcome *outcome)
{
    struct device *device = device_open_with(how->setting, how->value);
    struct fixture f;
    struct driver driver = {0};
    struct str bytes = STR_INIT;
    struct error err = ERROR_INIT;
    size_t n;
    fixture_open_on(&f, training, device, how->dynamic);
    make_feeds(&bytes, how->varies, how->damage);
    open_driver(&driver, &f, how);
    driver.feed_reader = stream_reader_new_memory(bytes.data, bytes.n, "feeds");
    driver.writer = stream_writer_new_memory("test", -1);
    *outcome = (struct outcome){.code = run_all(&driver, &f, &err)};
    memcpy(outcome->text, err.text, sizeof outcome->text);
    const void *written = stream_writer_bytes(driver.writer, &n);
    str_append_bytes(&outcome->output, written, n);
    outcome->steps = driver.step;
    driver_release(&driver);
    outcome->counts = device_counts(device);
    stream_reader_free(driver.feed_reader);
    stream_writer_free(driver.writer);
    str_release(&bytes);
    fixture_close(&f);
    device_free(device);
}

/* Runs with prefetching and without; `prefetched` keeps the outcome of the former. */
static void expect_the_same(const struct how *how, struct outcome *prefetched)
{
    struct how with = *how, without = *how;
    struct outcome plain;
    with.is_prefetched = true;
    run(&with, prefetched);
    run(&without, &plain);
    assert_int_equal(prefetched->code, plain.code);
    assert_string_equal(prefetched->text, plain.text);
    assert_int_equal(prefetched->steps, plain.steps);
    assert_int_equal(prefetched->output.n, plain.output.n);
    assert_memory_equal(prefetched->output.data, plain.output.data, plain.output.n);
    outcome_release(&plain);
}

/* ---- correct feeds ---- */

static void bits_are_those_of_feeds_that_are_not_prefetched(void **state)
{
    (void)state;
    for (long seed = 0; seed < SEEDS; seed++)
        for (int kind = 0; kind < 4; kind++) {
            struct how how = {.dynamic = kind & 1,
                              .varies = kind & 2,
                              .setting = "TF_TEST_DEVICE_SEED",
                              .value = seed};
            struct outcome outcome;
            expect_the_same(&how, &outcome);
            assert_int_equal(outcome.code, 0);
            assert_int_equal(outcome.steps, STEPS);
            outcome_release(&outcome);
        }
}

/* From the second step on, in captured steps, too. */
static void feeds_are_copied_within_the_device(void **state)
{
    struct outcome prefetched, plain;
    (void)state;
    run(&(struct how){.is_prefetched = true}, &prefetched);
    run(&(struct how){.is_prefetched = false}, &plain);
    assert_int_equal(prefetched.counts.copies, plain.counts.copies + 2 * (STEPS - 1));
    assert_int_equal(prefetched.counts.launches, plain.counts.launches);
    assert_int_equal(prefetched.counts.copies_in, plain.counts.copies_in);
    outcome_release(&prefetched);
    outcome_release(&plain);
}

/* ---- when ---- */

struct watch {
    struct driver *driver;
    struct device *device;
};

/* Makes the device, which defers work, do all copies from the host that it has been given. */
static long copies_in(struct device *device)
{
    struct device_event *event = device->queue->record(device, QUEUE_IN, false);
    struct error err = ERROR_INIT;
    assert_int_equal(device->queue->block(device, event, &err), 0);
    device->queue->event_free(device, event);
    return device_counts(device).copies_in;
}

/* Runs a step, and returns to the driver only when the copies for the next step are enqueued: it
 * would hang if they came later. The second step's feeds are not prefetched before the first step
 * has ended, which shows what is needed, and no step follows the last. */
static int run_until_the_next_is_prefetched(void *context, const struct plan_request *call,
                                            struct step *step, struct tensor *fetches,
                                            struct error *err)
{
    struct watch *watch = context;
    long before = copies_in(watch->device);
    int code = session_run(watch->driver->session, call, step, fetches, err);
    long own = 1 + (step->number == 1 ? 2 : 0); /* the step block, and feeds */
    long wanted = before + own + (step->number > 1 && step->number < STEPS ? 2 : 0);
    while (!code && copies_in(watch->device) < wanted)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return code;
}

static void the_next_feeds_are_enqueued_before_a_step_is_over(void **state)
{
    struct device *device = device_open_with(NULL, 0);
    struct fixture f;
    struct driver driver = {0};
    struct watch watch = {&driver, device};
    struct str bytes = STR_INIT;
    struct error err = ERROR_INIT;
    (void)state;
    fixture_open_on(&f, training, device, false);
    make_feeds(&bytes, false, NONE);
    open_driver(&driver, &f, &(struct how){.is_prefetched = true});
    driver.steps_fed = STEPS; /* so that the driver does not look for the end of the stream */
    fixture_do(&f, "^init");
    driver.run = run_until_the_next_is_prefetched;
    driver.run_context = &watch;
    driver.feed_reader = stream_reader_new_memory(bytes.data, bytes.n, "feeds");
    for (int i = 0; i < STEPS; i++) {
        bool more;
        if (driver_next_feeds(&driver, &more, &err) || driver_run_step(&driver, &err))
            fail_msg("%s", err.text);
    }
    driver_release(&driver);
    stream_reader_free(driver.feed_reader);
    str_release(&bytes);
    fixture_close(&f);
    device_free(device);
}

/* ---- errors ---- */

static void what_is_wrong_is_told_when_its_step_comes(void **state)
{
    (void)state;
    for (int damage = NONE + 1; damage < N_DAMAGES; damage++) {
        struct outcome outcome;
        expect_the_same(&(struct how){.damage = (enum damage)damage}, &outcome);
        assert_int_equal(outcome.code, damage == HALF ? ERR_NOINPUT : ERR_DATA);
        assert_true(outcome.steps >= 2);
        outcome_release(&outcome);
    }
}

/* The failing place differs from that of a run without prefetching. */
static void a_device_that_fails_ends_the_run(void **state)
{
    (void)state;
    for (long at = 1; at < 60; at++) {
        struct outcome outcome;
        run(&(struct how){.is_prefetched = true, .setting = "TF_TEST_DEVICE_FAIL", .value = at},
            &outcome);
        assert_int_equal(outcome.code, ERR_OS);
        assert_non_null(strstr(outcome.text, "the TEST device has failed, as it was asked to"));
        outcome_release(&outcome);
    }
}

/* Prefetching never needs more memory than a run without it. */
static void it_needs_no_more_memory(void **state)
{
    int ran = 0, did_without = 0;
    (void)state;
    for (long memory = 100; memory < 4000; memory += 100)
        for (int varies = 0; varies < 2; varies++) {
            struct how how = {
                .varies = varies, .setting = "TF_TEST_DEVICE_MEMORY", .value = memory};
            struct outcome outcome;
            expect_the_same(&how, &outcome);
            ran += !outcome.code;
            did_without += !outcome.code && outcome.counts.copies < 2 * (STEPS - 1);
            outcome_release(&outcome);
        }
    assert_true(ran > 10);
    assert_true(did_without > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_those_of_feeds_that_are_not_prefetched),
        cmocka_unit_test(feeds_are_copied_within_the_device),
        cmocka_unit_test(the_next_feeds_are_enqueued_before_a_step_is_over),
        cmocka_unit_test(what_is_wrong_is_told_when_its_step_comes),
        cmocka_unit_test(a_device_that_fails_ends_the_run),
        cmocka_unit_test(it_needs_no_more_memory),
    };
    test_device_path();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
