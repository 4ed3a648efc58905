/* SPDX-License-Identifier: Apache-2.0
 *
 * Replicated training in one process: workers are threads with sessions of their own, and so is the
 * task that applies updates.
 */
#include "lib/replicas.h"

#include <math.h>
#include <time.h>

#include "lib/local_collective.h"
#include "resource/clock.h"

#define BATCH 8
#define PIXELS 6
#define CLASSES 3
#define STEPS 100

/* A perceptron; its optimizer has slots, powers and a schedule. */
static const char model[] =
    "x = Placeholder{dtype = float32, shape = {-1, 6}}\n"
    "y = Placeholder{dtype = int32, shape = {-1}}\n"
    "h = nn.dense(x, 5, {name = 'h', activation = Tanh})\n"
    "logits = nn.dense(h, 3, {name = 'o'})\n"
    "loss = nn.cross_entropy(logits, y)\n"
    "n = global_step()\n"
    "rate = schedule.inverse_time{step = n, rate = 0.05, steps = 10, decay = 0.5}\n"
    "entry.train = {minimize(loss, optim.adam{rate = rate}, {global_step = n, clip = 5}), loss}\n";

/* Row r of the data: smooth, and different for each r. */
static void fill(float *x, int32_t *y, int64_t row)
{
    for (int k = 0; k < PIXELS; k++)
        x[k] = (float)sin((double)(row * PIXELS + k) * 0.7);
    *y = (int32_t)((row * 7) % CLASSES);
}

struct batch {
    float x[BATCH * PIXELS];
    int32_t y[BATCH];
    struct feed feeds[2];
};

/* The worker's rows of a step among `n` workers: the total batch does not depend on n. */
static void batch_of(struct batch *b, int64_t step, int rank, int n)
{
    int rows = BATCH / n;
    for (int i = 0; i < rows; i++)
        fill(&b->x[i * PIXELS], &b->y[i], step * BATCH + rank * rows + i);
    struct shape x = {.rank = 2, .dims = {rows, PIXELS}}, y = shape_vector(rows);
    b->feeds[0] = (struct feed){"x", tensor_borrow(FLOAT32, &x, b->x)};
    b->feeds[1] = (struct feed){"y", tensor_borrow(INT32, &y, b->y)};
}

/* ---- one process, without replicas ---- */

struct trained {
    double losses[STEPS];
    struct tensor w, b; /* h/W, o/b */
};

static void trained_release(struct trained *t)
{
    tensor_release(&t->w);
    tensor_release(&t->b);
}

static void copy_variable(struct tensor *to, struct variable_store *store, const char *name)
{
    struct error err = ERROR_INIT;
    const struct variable *variable = variable_store_find(store, "default", name);
    assert_non_null(variable);
    assert_int_equal(tensor_copy(to, &variable->value, &err), 0);
}

static void train_alone(const char *script, struct trained *result)
{
    struct replica w = {.joined = scripts_build(script)};
    struct session_options options = {
        .plan = {.kernels = ops_kernels(), .device = cut_devices()[0], .threads = 1}};
    struct error err = ERROR_INIT;
    struct tensor loss;
    struct batch batch;
    struct step step = {.number = 0};
    w.session = session_new(w.joined, &options);
    assert_int_equal(worker_run(&w, &step, "init", NULL, 0, NULL, &err), 0);
    for (int i = 0; i < STEPS; i++) {
        step.number = i + 1;
        batch_of(&batch, i, 0, 1);
        if (worker_run(&w, &step, "train", batch.feeds, 2, &loss, &err))
            fail_msg("%s", err.text);
        result->losses[i] = tensor_get_float64(&loss, 0);
        tensor_release(&loss);
    }
    copy_variable(&result->w, session_variables(w.session), "h/W");
    copy_variable(&result->b, session_variables(w.session), "o/b");
    worker_close(&w);
}

static double largest_difference(const struct tensor *a, const struct tensor *b)
{
    double largest = 0;
    assert_true(shape_equal(&a->shape, &b->shape));
    for (int64_t i = 0; i < tensor_count(a); i++)
        largest = fmax(largest, fabs(tensor_get_float64(a, i) - tensor_get_float64(b, i)));
    return largest;
}

/* ---- workers as threads ---- */

struct run {
    struct replica *worker;
    int64_t steps;
    double losses[STEPS];
    double pause; /* seconds before each step */
    int64_t counted;
    struct error err;
    pthread_t thread;
};

static void pause_for(double seconds)
{
    struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
}

static void *train(void *argument)
{
    struct run *run = argument;
    struct replica *w = run->worker;
    struct tensor loss;
    struct batch batch;
    for (int64_t i = worker_join(w); i < run->steps; i++) {
        struct step step = {.number = i + 1};
        if (run->pause > 0)
            pause_for(run->pause);
        batch_of(&batch, i, (int)w->rank, w->job->n_workers);
        if (worker_run(w, &step, "train", batch.feeds, 2, &loss, &run->err))
            return NULL;
        run->losses[i] = tensor_get_float64(&loss, 0);
        tensor_release(&loss);
    }
    worker_leave(w);
    return NULL;
}

static void start_run(struct run *run, struct replica *worker, int64_t steps)
{
    *run = (struct run){.worker = worker, .steps = steps};
    assert_int_equal(pthread_create(&run->thread, NULL, train, run), 0);
}

static void end_run(struct run *run)
{
    pthread_join(run->thread, NULL);
    if (run->err.code)
        fail_msg("worker %u: %s", run->worker->rank, run->err.text);
}

static void train_together(struct replicas *job, struct run *runs, int64_t steps)
{
    for (int i = 0; i < job->n_workers; i++)
        start_run(&runs[i], &job->workers[i], steps);
    for (int i = 0; i < job->n_workers; i++)
        end_run(&runs[i]);
}

/* ---- synchronous ---- */

static void check_sync(const char *mode)
{
    struct trained alone = {0};
    train_alone(model, &alone);
    for (int n = 1; n <= 4; n *= 2) {
        struct replicas job;
        struct run runs[4];
        replicas_open(&job, scripts_build(model), NULL, mode, n);
        replicas_start(&job);
        train_together(&job, runs, STEPS);
        replicas_stop(&job);
        for (int i = 0; i < STEPS; i++) {
            double loss = 0; /* the mean over equal shares is that of the batch */
            for (int k = 0; k < n; k++)
                loss += runs[k].losses[i] / n;
            if (fabs(loss - alone.losses[i]) > (i ? 1e-4 : 1e-6))
                fail_msg("%d workers, step %d: %.9g, alone %.9g", n, i, loss, alone.losses[i]);
        }
        assert_true(largest_difference(&alone.w, replicas_variable(&job, "h/W")) < 1e-4);
        assert_true(largest_difference(&alone.b, replicas_variable(&job, "o/b")) < 1e-4);
        assert_int_equal(tensor_get_int64(replicas_variable(&job, "global_step"), 0), STEPS);
        replicas_close(&job);
    }
    trained_release(&alone);
}

static void sync_equals_one_worker(void **state)
{
    (void)state;
    check_sync("sync");
    check_sync("sync,factors=all");
}

/* Four steps with a quarter of the batch equal one with the whole. */
static void check_accumulated(const char *mode)
{
    struct replicas job;
    struct replicate_options options = {.accumulate = 4};
    struct trained alone = {0};
    struct tensor loss;
    struct error err = ERROR_INIT;
    double sum = 0;
    train_alone(model, &alone);
    replicas_open(&job, scripts_build(model), &options, mode, 1);
    replicas_start(&job);
    worker_join(&job.workers[0]);
    for (int i = 0; i < 4 * STEPS; i++) {
        struct step step = {.number = i + 1};
        struct batch batch;
        batch_of(&batch, i / 4, i % 4, 4);
        if (worker_run(&job.workers[0], &step, "train", batch.feeds, 2, &loss, &err))
            fail_msg("step %d: %s", i, err.text);
        sum += tensor_get_float64(&loss, 0) / 4;
        tensor_release(&loss);
        if (i % 4 < 3)
            continue;
        assert_true(fabs(sum - alone.losses[i / 4]) < (i < 4 ? 1e-6 : 1e-4));
        sum = 0;
    }
    replicas_stop(&job);
    assert_true(largest_difference(&alone.w, replicas_variable(&job, "h/W")) < 1e-4);
    assert_int_equal(tensor_get_int64(replicas_variable(&job, "global_step"), 0), STEPS);
    replicas_close(&job);
    trained_release(&alone);
}

static void accumulated_steps_equal_one(void **state)
{
    (void)state;
    check_accumulated("sync");
    check_accumulated("sync,factors=all");
}

/* ---- all-reduce ---- */

static void *train_without_shards(void *argument)
{
    struct run *run = argument;
    struct replica *w = run->worker;
    struct step init = {.number = 0};
    struct tensor loss;
    struct batch batch;
    if (worker_run(w, &init, "init", NULL, 0, NULL, &run->err))
        return NULL;
    for (int64_t i = 0; i < run->steps; i++) {
        struct step step = {.number = i + 1};
        batch_of(&batch, i, (int)w->rank, w->job->n_workers);
        if (worker_run(w, &step, "train", batch.feeds, 2, &loss, &run->err))
            return NULL;
        run->losses[i] = tensor_get_float64(&loss, 0);
        tensor_release(&loss);
    }
    return NULL;
}

/* Each worker has all variables, under names of its own. */
static const struct tensor *own_variable(struct replica *w, const char *name)
{
    const struct node *node = graph_find(w->joined, name);
    return replicas_variable(w->job, node_string(node, "shared_name"));
}

static void check_allreduce(int n, const struct trained *alone)
{
    struct replicas job;
    struct collective *members[WORKERS_MAX];
    struct run runs[WORKERS_MAX];
    replicas_open(&job, scripts_build(model), NULL, "allreduce", n);
    collective_local_new(n, members);
    for (int i = 0; i < n; i++) {
        runs[i] = (struct run){.worker = &job.workers[i], .steps = STEPS};
        job.workers[i].collective = members[i];
        assert_int_equal(pthread_create(&runs[i].thread, NULL, train_without_shards, &runs[i]), 0);
    }
    for (int i = 0; i < n; i++)
        end_run(&runs[i]);
    for (int i = 0; i < STEPS; i++) {
        double loss = 0;
        for (int k = 0; k < n; k++)
            loss += runs[k].losses[i] / n;
        if (fabs(loss - alone->losses[i]) > (i ? 1e-4 : 1e-6))
            fail_msg("%d workers, step %d: %.9g, alone %.9g", n, i, loss, alone->losses[i]);
    }
    for (int i = 0; i < n; i++) {
        const struct tensor *w = own_variable(&job.workers[i], "h/W");
        assert_true(tensor_equal(w, own_variable(&job.workers[0], "h/W")));
        assert_true(largest_difference(&alone->w, w) < 1e-4);
        members[i]->free(members[i]);
    }
    replicas_close(&job);
}

static void allreduce_equals_one_worker(void **state)
{
    struct trained alone = {0};
    (void)state;
    train_alone(model, &alone);
    for (int n = 1; n <= 4; n *= 2)
        check_allreduce(n, &alone);
    trained_release(&alone);
}

/* ---- downpour ---- */

static const char slope[] = "x = Placeholder{dtype = float32, shape = {2}}\n"
                            "w = variable{name = 'w', shape = {2}, init = 0}\n"
                            "loss = Sum(w * x, 0)\n"
                            "used = Identity(w * 1.0)\n"
                            "entry.train = {minimize(loss, optim.sgd{rate = 0.5}), used}\n";

static void check_downpour(const char *mode, int fetch, int push)
{
    struct replicas job;
    struct error err = ERROR_INIT;
    float shared[2] = {0}, local[2] = {0}, owed[2] = {0};
    struct shape shape = shape_vector(2);
    replicas_open(&job, scripts_build(slope), NULL, mode, 1);
    replicas_start(&job);
    worker_join(&job.workers[0]);
    for (int i = 0; i < 60; i++) {
        float x[] = {(float)sin(i * 1.3), (float)cos(i * 0.7)};
        struct feed feed = {"x", tensor_borrow(FLOAT32, &shape, x)};
        struct step step = {.number = i + 1};
        struct tensor used;
        if (worker_run(&job.workers[0], &step, "train", &feed, 1, &used, &err))
            fail_msg("%s: step %d: %s", mode, i, err.text);
        if (i % fetch == 0)
            memcpy(local, shared, sizeof local);
        assert_memory_equal(used.data, local, sizeof local);
        tensor_release(&used);
        for (int k = 0; k < 2; k++) {
            owed[k] = i % push ? owed[k] + x[k] : x[k];
            local[k] -= x[k] * 0.5F;
            if ((i + 1) % push == 0)
                shared[k] -= 0.5F * owed[k];
        }
        assert_memory_equal(replicas_variable(&job, "w")->data, shared, sizeof shared);
    }
    replicas_stop(&job);
    assert_int_equal(clock_version(resource_get(job.store, &clock_kind, "default", "train")),
                     60 / push);
    replicas_close(&job);
}

static void downpour_fetches_and_pushes_every_so_often(void **state)
{
    (void)state;
    check_downpour("downpour", 1, 1); /* plain descent */
    check_downpour("downpour,fetch=5,push=5", 5, 5);
    check_downpour("downpour,push=2,fetch=3", 3, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sync_equals_one_worker),
        cmocka_unit_test(accumulated_steps_equal_one),
        cmocka_unit_test(allreduce_equals_one_worker),
        cmocka_unit_test(downpour_fetches_and_pushes_every_so_often),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
