/* SPDX-License-Identifier: Apache-2.0
 *
 * How many ops that compute nothing an executor runs per second, on one thread; and the time of a
 * step of one small op.
 *
 * usage: nullops [OPS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "exec/plan/fuse.h"
#include "exec/session/session.h"
#include "graph/build.h"
#include "lib/random.h"
#include "ops/ops.h"

#define REPEATS 21

/* Seconds of this thread, which does everything: other work of the machine is not counted. */
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void die(const struct error *err)
{
    fprintf(stderr, "nullops: %s\n", err->text);
    exit(err->code);
}

/* Each NoOp waits for up to `fan_in` random ones before it; one: the last. */
static int add_noops(struct build *b, int n, int fan_in)
{
    uint64_t random = 1;
    int controls[3], last = -1;
    for (int i = 0; i < n; i++) {
        b->controls = controls;
        b->n_controls = last < 0 ? 0 : fan_in;
        for (int k = 0; last >= 0 && k < fan_in; k++)
            controls[k] = k ? (int)(unit_random(&random) % (uint64_t)(last + 1)) : last;
        last = build_op(b, "NoOp", NULL, 0, NULL, 0).node;
    }
    b->n_controls = 0;
    return last;
}

static int add_chain(struct build *b, int n, const char *op)
{
    struct attr attrs[] = {{"dtype", attr_type(FLOAT32)}, {"shape", attr_shape(&SHAPE_SCALAR)}};
    struct edge x = build_op(b, "Variable", NULL, 0, attrs, 2);
    struct edge zero = build_scalar(b, FLOAT32, 0);
    x = build_binary(b, "Assign", x, zero);
    for (int i = 0; i < n; i++)
        x = build_unary(b, op, x);
    return x.node;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double seconds(struct plan *plan)
{
    struct error err = ERROR_INIT;
    struct step step = {.number = 1};
    struct tensor none;
    double times[REPEATS];
    for (int i = 0; i < REPEATS; i++) {
        double start = now();
        if (plan_run(plan, &step, NULL, &none, &err))
            die(&err);
        times[i] = now() - start;
    }
    qsort(times, REPEATS, sizeof *times, by_value);
    return times[REPEATS / 2];
}

/* In a static plan, in one region of a dynamic one, and each item separate, as if each had an own
 * input to wait for. Views run as well, so that there is something to measure: NoOps in a region do
 * not run, nor in TensorFlow, but there nodes that wait for them are still notified. */
static void measure(const char *title, const struct graph *graph, int target, int n)
{
    struct error err = ERROR_INIT;
    struct device *device = device_open("CPU", 0, &(struct device_options){.threads = 1}, &err);
    if (!device)
        die(&err);
    struct variable_store *variables = variable_store_new();
    static const char *const ways[] = {"static", "dynamic", "apart"};
    static const enum plan_cut cuts[] = {CUT_WHOLE, CUT_REGIONS, CUT_ITEMS};
    for (int way = 0; way < 3; way++) {
        struct plan_options options = {.kernels = ops_kernels(),
                                       .device = device,
                                       .variables = variables,
                                       .threads = 1,
                                       .without = 1u << DEVICE_PASS_VIEWS,
                                       .cut = cuts[way]};
        struct plan_request request = {.targets = &target, .n_targets = 1};
        struct plan *plan;
        if (plan_new(graph, &options, &request, &plan, &err))
            die(&err);
        printf("%-22s %-8s %7.2f M ops/s\n", title, ways[way], n / seconds(plan) * 1e-6);
        plan_free(plan);
    }
    variable_store_free(variables);
    device_free(device);
}

/* ---- calls ---- */

#define CALLS 20000

struct caller {
    struct session *session;
    struct plan_request call;
    struct session_handle *handle;
};

static int call_session(struct caller *c, struct step *step, struct tensor *y, struct error *err)
{
    return session_run(c->session, &c->call, step, y, err);
}

static int call_prepared(struct caller *c, struct step *step, struct tensor *y, struct error *err)
{
    return session_run_prepared(c->handle, c->call.feed_values, step, y, err);
}

static void measure_calls(const char *title, struct caller *c,
                          int (*call)(struct caller *c, struct step *step, struct tensor *y,
                                      struct error *err))
{
    struct error err = ERROR_INIT;
    double times[REPEATS];
    for (int i = 0; i < REPEATS; i++) {
        double start = now();
        for (int k = 0; k < CALLS; k++) {
            struct step step = {.number = k + 1};
            struct tensor y;
            if (call(c, &step, &y, &err))
                die(&err);
            tensor_release(&y);
        }
        times[i] = now() - start;
    }
    qsort(times, REPEATS, sizeof *times, by_value);
    printf("%-22s %-8s %7.2f us\n", "x + x, one element", title, times[REPEATS / 2] / CALLS * 1e6);
}

/* Measures a step of one small op, fed and fetched. */
static void measure_small(void)
{
    struct error err = ERROR_INIT;
    struct graph *graph = graph_new(ops_registry());
    struct build build = {.graph = graph, .err = &err};
    struct attr attrs[] = {{"dtype", attr_type(FLOAT32)}, {"shape", attr_shape(&SHAPE_SCALAR)}};
    struct edge x = build_op(&build, "Placeholder", NULL, 0, attrs, 2);
    struct edge y = build_binary(&build, "Add", x, x);
    struct device *device = device_open("CPU", 0, &(struct device_options){.threads = 1}, &err);
    if (build.err->code || !device)
        die(&err);
    float one = 1;
    struct tensor value = tensor_borrow(FLOAT32, &SHAPE_SCALAR, &one);
    struct session_options options = {.plan = {.kernels = ops_kernels(), .device = device}};
    struct caller c = {
        .session = session_new(graph, &options),
        .call = {.feeds = &x, .feed_values = &value, .n_feeds = 1, .fetches = &y, .n_fetches = 1}};
    c.handle = session_prepare(c.session, &c.call);
    measure_calls("session", &c, call_session);
    measure_calls("prepared", &c, call_prepared);
    session_handle_free(c.handle);
    session_free(c.session);
    device_free(device);
    graph_free(graph);
}

int main(int argc, char **argv)
{
    static const char *const titles[] = {"NoOp chain", "NoOp random, 3 inputs", "Identity chain",
                                         "Neg chain"};
    int n = argc > 1 ? atoi(argv[1]) : 20000;
    for (int k = 0; k < 4; k++) {
        struct error err = ERROR_INIT;
        struct graph *graph = graph_new(ops_registry());
        struct build build = {.graph = graph, .err = &err};
        int target = k < 2 ? add_noops(&build, n, k ? 3 : 1)
                           : add_chain(&build, n, k == 2 ? "Identity" : "Neg");
        if (build.err->code)
            die(&err);
        measure(titles[k], graph, target, n);
        graph_free(graph);
    }
    measure_small();
    return 0;
}
