/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/session/driver.h"

#include <inttypes.h>
#include <poll.h>
#include <sys/eventfd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/serial_queue.h"
#include "base/time.h"
#include "exec/plan/plan_io.h"

static struct prefetched_feeds fed(const struct feeds *feeds)
{
    return (struct prefetched_feeds){feeds->edges.items, feeds->values.items, (int)feeds->edges.n};
}

/* Makes the driver's batch that of its next step, so that devices may ask it for feeds. */
static void begin_prefetched(struct driver *driver)
{
    if (!driver->stage) {
        driver->stage = stage_new(driver->trace);
        driver->feeds.prefetched = stage_batch(driver->stage, 0);
    }
    const struct prefetched_feeds feeds = fed(&driver->feeds);
    prefetched_begin(driver->feeds.prefetched, &feeds);
}

/* ---- the feeds of steps, from records ---- */

/* ERR_NOINPUT naming the first source that is not fed. */
static int lacks(const struct driver *driver, const struct feeds *feeds, struct error *err)
{
    struct str needs = STR_INIT;
    struct node_list all = {0};
    size_t missing = 0;
    while (missing + 1 < driver->needs.n && feeds_has(feeds, driver->needs.items[missing]))
        missing++;
    request_needs(&driver->request, NULL, 0, &all);
    request_print_needs(&needs, driver->graph, &all);
    int code = error_set(err, ERR_NOINPUT, "%s: %s: not fed; %s %s needs %s", driver->name,
                         node_text(graph_node(driver->graph, driver->needs.items[missing])),
                         driver->option, driver->what, str_text(&needs));
    str_release(&needs);
    vec_release(&all);
    return code;
}

/* As driver_next_feeds, for a driver with a reader. Changes nothing but the driver's reader and
 * `feeds`: any thread, one at a time. With `may_end` there may be none for the step, as earlier
 * steps were fed. */
static int read_feeds(const struct driver *driver, struct feeds *feeds, int64_t step, bool may_end,
                      bool *more, struct error *err)
{
    const struct record *record = &feeds->record;
    const char *from = stream_reader_name(driver->feed_reader);
    feeds_clear(feeds);
    do {
        int code = stream_read(driver->feed_reader, &feeds->record, more, err);
        if (code)
            return code;
        bool started = feeds->edges.n > feeds->n_constant;
        if (!*more && !started && (may_end || !driver->needs.n))
            return 0;
        if (!*more) {
            lacks(driver, feeds, err);
            return error_prefix(err, "%s: %s: ", from,
                                started ? "ends in a step" : "no record is left");
        }
        if (record->kind != RECORD_FEED && record->kind != RECORD_FETCH &&
            record->kind != RECORD_TENSOR)
            return error_set(err, ERR_DATA, "%s: a %s record where feeds are expected", from,
                             record_kind_name(record->kind));
        const char *again = started ? feeds_repeated(feeds) : NULL;
        if (again) { /* it seems to be the next step's: report what this step lacks */
            lacks(driver, feeds, err);
            return error_prefix(err, "%s: step %" PRId64 ": '%s' comes again: ", from, step, again);
        }
        if (feeds_add_record(feeds, err))
            return error_prefix(err, "%s: step %" PRId64 ": ", from, step);
    } while (!feeds_complete(feeds, &driver->needs));
    return 0;
}

/* ---- feeds read ahead ---- */

/* Once devices ask for feeds, a thread reads the records of the next step while one runs, and
 * prefetches the feeds that devices need (exec/step/prefetched.h). An error or the end of the
 * records is reported for the step that it is for.
 *
 * One batch goes back and forth between that thread and the one that runs steps. The reading thread
 * owns the batch from the request until it signals `done`; the other waits for that as a reader
 * waits for input, so that signals end the wait. */
struct feed_ahead {
    struct driver *driver;
    struct serial_queue *reading;
    int done, stop;    /* event counters */
    bool is_under_way; /* requested by the thread that runs steps, and not yet taken */

    struct feeds feeds; /* this and the rest are the batch */
    int64_t step;
    bool more;
    struct error err;
};

/* Before the reader blocks: waits until there is input, or nobody wants any. */
static int wait_for_input(void *context, struct error *err)
{
    struct feed_ahead *ahead = context;
    struct pollfd fds[] = {
        {.fd = stream_reader_fd(ahead->driver->feed_reader), .events = POLLIN},
        {.fd = ahead->stop, .events = POLLIN},
    };
    while (fds[0].fd >= 0 && poll(fds, 2, -1) < 0)
        ;
    return fds[1].revents ? error_set(err, ERR_CANCELLED, "no more feeds are wanted") : 0;
}

static void read_ahead(void *context)
{
    struct feed_ahead *ahead = context;
    error_clear(&ahead->err);
    read_feeds(ahead->driver, &ahead->feeds, ahead->step, true, &ahead->more, &ahead->err);
    struct prefetched_feeds feeds = fed(&ahead->feeds);
    if (!ahead->err.code && ahead->more)
        prefetched_fill(ahead->feeds.prefetched, &feeds);
    BUG_ON(eventfd_write(ahead->done, 1));
}

static void release(struct feed_ahead *ahead)
{
    close_if_open(ahead->done);
    close_if_open(ahead->stop);
    feeds_release(&ahead->feeds);
    mem_free(ahead);
}

/* Starts the thread, which owns the reader and the stage while it reads ahead. NULL: there are no
 * descriptors for it. */
static struct feed_ahead *read_on(struct driver *driver)
{
    struct feed_ahead *ahead = mem_alloc(sizeof *ahead);
    ahead->driver = driver;
    ahead->feeds.prefetched = stage_batch(driver->stage, 1);
    feeds_share_constants(&ahead->feeds, &driver->feeds);
    ahead->done = eventfd(0, EFD_CLOEXEC);
    ahead->stop = eventfd(0, EFD_CLOEXEC);
    if (ahead->done >= 0 && ahead->stop >= 0) {
        ahead->reading = serial_queue_new();
        stream_reader_on_wait(driver->feed_reader, wait_for_input, ahead);
        return ahead;
    }
    release(ahead);
    return NULL;
}

/* Requests the feeds of a step; they may be as large as those of the driver. */
static void request_feed(struct feed_ahead *ahead, int64_t step)
{
    struct prefetched_feeds like = fed(&ahead->driver->feeds);
    prefetched_reserve(ahead->feeds.prefetched, &like);
    ahead->step = step;
    ahead->is_under_way = true;
    serial_queue_add(ahead->reading, read_ahead, ahead);
}

/* As driver_next_feeds: the driver gets the feeds of its next step, and their batch. Then those of
 * the following step are requested, if the driver will run it. */
static int take_ahead(struct feed_ahead *ahead, bool *more, struct error *err)
{
    struct driver *driver = ahead->driver;
    struct pollfd done = {.fd = ahead->done, .events = POLLIN};
    eventfd_t told;
    if (!ahead->is_under_way)
        request_feed(ahead, driver->step + 1);
    if (driver->await_feeds && driver->await_feeds(driver->await_context, done.fd, err))
        return err->code;
    while (poll(&done, 1, -1) < 0)
        ;
    BUG_ON(eventfd_read(done.fd, &told));
    ahead->is_under_way = false;
    struct feeds feeds = driver->feeds; /* swaps the batches */
    driver->feeds = ahead->feeds;
    ahead->feeds = feeds;
    *more = ahead->more;
    if (ahead->err.code) {
        *err = ahead->err;
        return err->code;
    }
    begin_prefetched(driver); /* later prefetching waits for this step */
    if (*more && (driver->steps_fed < 0 || driver->step + 1 < driver->steps_fed))
        request_feed(ahead, driver->step + 2);
    return 0;
}

int driver_next_feeds(struct driver *driver, bool *more, struct error *err)
{
    struct feeds *feeds = &driver->feeds;
    *more = true;
    /* There is nothing to prefetch until a device has asked for a feed. */
    if (driver->feed_reader && !driver->ahead && driver->steps_fed &&
        stage_is_wanted(driver->stage))
        driver->ahead = read_on(driver);
    if (driver->feed_reader && driver->ahead)
        return take_ahead(driver->ahead, more, err);
    if (driver->feed_reader)
        return read_feeds(driver, feeds, driver->step + 1, driver->step, more, err);
    return feeds_complete(feeds, &driver->needs) ? 0 : lacks(driver, feeds, err);
}

int driver_pass_over(struct driver *driver, int64_t n, struct error *err)
{
    bool more = true;
    int64_t passed = 0;
    int code = 0;
    driver->step = n;
    while (!code && more && passed < n && driver->feed_reader) {
        code = read_feeds(driver, &driver->feeds, passed + 1, true, &more, err);
        passed += more && !code;
    }
    if (!code)
        driver->step = passed;
    return code;
}

/* ---- the driver ---- */

void driver_init(struct driver *driver, const struct graph *graph, const char *name)
{
    driver->graph = driver->request.graph = driver->feeds.graph = graph;
    driver->name = name;
}

void driver_release(struct driver *driver)
{
    struct feed_ahead *ahead = driver->ahead;
    if (ahead) {
        stage_stop(driver->stage);
        BUG_ON(eventfd_write(ahead->stop, 1));
        serial_queue_free(ahead->reading);
        release(ahead);
    }
    feeds_release(&driver->feeds);
    stage_free(driver->stage);
    request_release(&driver->request);
    mem_free(driver->views);
    vec_release(&driver->needs);
}

int driver_ready(struct driver *driver, struct error *err)
{
    if (!driver->request.fetches.n && !driver->request.targets.n)
        return error_set(err, ERR_USAGE,
                         "nothing to do: name an entry with --run or a tensor with --fetch");
    request_needs(&driver->request, driver->feeds.edges.items, (int)driver->feeds.edges.n,
                  &driver->needs);
    return 0;
}

static int run_call(struct driver *driver, const struct plan_request *call, struct tensor *fetches,
                    struct error *err)
{
    struct step *step = &driver->at_hand;
    return driver->run ? driver->run(driver->run_context, call, step, fetches, err)
                       : session_run(driver->session, call, step, fetches, err);
}

static struct plan_request next_call(const struct driver *driver)
{
    const struct feeds *feeds = &driver->feeds;
    return request_with_feeds(&driver->request, feeds->edges.items, feeds->values.items,
                              feeds->edges.n);
}

int driver_run_entry(struct driver *driver, const char *entry, int64_t number,
                     struct tensor *fetches, int n_max, struct error *err)
{
    struct request request = {.graph = driver->graph};
    int code = request_run(&request, entry, err);
    if (!code && (int)request.fetches.n > n_max)
        code = error_set(err, ERR_DATA, "entry '%s' fetches %zu tensors", entry, request.fetches.n);
    const struct plan_request call = request_with_feeds(&request, NULL, NULL, 0);
    driver->at_hand.number = number;
    if (!code)
        code = run_call(driver, &call, fetches, err);
    /* Events of what belongs to a step are traced; they borrow texts of a plan that may go. */
    if (!code && number && driver->at_hand.trace)
        code = trace_flush(driver->trace, driver->trace_writer, err);
    request_release(&request);
    return code ? error_prefix(err, "%s: %s: ", driver->name, entry) : 0;
}

int driver_initialize(struct driver *driver, struct error *err)
{
    return graph_entry(driver->graph, "init") ? driver_run_entry(driver, "init", 0, NULL, 0, err)
                                              : 0;
}

/* ---- running ---- */

#define FLUSH_SECONDS 0.2 /* limits the wait of readers of fetches when steps take long */

static bool is_written(const struct driver *driver)
{
    int64_t every = driver->write_every > 1 ? driver->write_every : 1;
    return driver->request.fetches.n && driver->writer && driver->step % every == 0;
}

static int64_t version_now(const struct driver *driver)
{
    return driver->version && is_written(driver) ? driver->version(driver->run_context) : -1;
}

/* `before`: the version before the step. */
static int write_fetches(struct driver *driver, struct tensor *values, int64_t before,
                         struct error *err)
{
    int n_kept = (int)driver->feeds.kept.n, n = n_kept + (int)driver->request.fetches.n;
    int64_t after = version_now(driver);
    struct named_tensor *named = mem_array((size_t)n + 1, sizeof *named);
    int64_t *versions = mem_array((size_t)n + 1, sizeof *versions);
    for (int i = 0; i < n_kept; i++) {
        named[i] = driver->feeds.kept.items[i];
        versions[i] = -1;
    }
    for (int i = n_kept; i < n; i++) {
        int at = i - n_kept;
        const struct request_view *view = driver->version ? &driver->views[at] : NULL;
        named[i] = (struct named_tensor){driver->request.names.items[at], values[at]};
        versions[i] = !view || view->of_own ? -1 : view->before ? before : after;
    }
    int code = stream_write_fetches(driver->writer, driver->step, versions, named, n, err);
    mem_free(versions);
    mem_free(named);
    double now = time_now();
    if (code || (!driver->version && now - driver->flushed < FLUSH_SECONDS))
        return code; /* flushed at once if others count versions: they wait for what was measured of
                      * one */
    driver->flushed = now;
    return stream_flush(driver->writer, err);
}

int driver_run_step(struct driver *driver, struct error *err)
{
    driver->at_hand.number = ++driver->step;
    driver->at_hand.trace = driver->trace;
    struct plan_request call = next_call(driver);
    struct tensor *values = mem_array(driver->request.fetches.n + 1, sizeof *values);
    if (!driver->views && (driver->version || driver->fetched))
        driver->views = request_views(&driver->request);
    int64_t version = version_now(driver);
    int64_t start = driver->trace ? time_now_ns() : 0;
    begin_prefetched(driver);
    driver->at_hand.prefetched = driver->feeds.prefetched;
    int code = run_call(driver, &call, values, err);
    driver->at_hand.prefetched = NULL;
    prefetched_end(driver->feeds.prefetched);
    if (code)
        error_prefix(err, "%s: step %" PRId64 ": ", driver->name, driver->step);
    if (!code && driver->trace) {
        const struct trace_run all = {.start = start, .end = time_now_ns()};
        trace_kernel(driver->trace, driver->step, &all);
        code = trace_flush(driver->trace, driver->trace_writer, err);
    }
    if (!code && is_written(driver))
        code = write_fetches(driver, values, version, err);
    for (size_t i = 0; i < driver->request.fetches.n; i++) {
        if (!code && driver->fetched)
            driver->fetched(driver->fetched_context, driver->request.names.items[i], &values[i],
                            &driver->views[i]);
        tensor_release(&values[i]);
    }
    mem_free(values);
    return code;
}

int driver_write_plan(struct driver *driver, struct error *err)
{
    struct plan_request call = next_call(driver);
    struct plan *const *plans;
    int n, code = session_plans(driver->session, &call, &plans, &n, err);
    if (code)
        return error_prefix(err, "%s: ", driver->name);
    for (int i = 0; !code && i < n; i++)
        code = plan_write(driver->writer, plans[i], driver->what, err);
    return code;
}
