/* SPDX-License-Identifier: Apache-2.0
 *
 * The consistency policies, verified by the values that workers read and by the final variables.
 * Worker p pushes gradients that do not depend on what it reads, so that the log of rounds
 * determines everything.
 */
#include "lib/replicas.h"

#include <math.h>
#include <time.h>

#include "resource/clock.h"

#define W 4

/* The gradient of w is x; the value that a worker reads is fetched. */
static const char table[] = "x = Placeholder{dtype = float32, shape = {4}}\n"
                            "w = variable{name = 'w', shape = {4}, init = 0}\n"
                            "read = Identity(w)\n"
                            "loss = Sum(w * x, 0)\n"
                            "entry.train = {minimize(loss, optim.sgd{rate = 1}), read}\n";

typedef void gradient_fn(float *x, int worker, int64_t seq);

struct run {
    struct replica *worker;
    gradient_fn *gradient;
    int64_t from, steps; /* from: filled by join */
    uint64_t seed;       /* of pauses; 0: none */
    float *reads;        /* steps x W; NULL: not kept */
    struct error err;
    pthread_t thread;
};

static int run_step(struct run *run, struct step *step)
{
    float x[W];
    struct shape shape = shape_vector(W);
    struct feed feed = {"x", tensor_borrow(FLOAT32, &shape, x)};
    struct tensor read;
    run->gradient(x, (int)run->worker->rank, step->number);
    int code = worker_run(run->worker, step, "train", &feed, 1, &read, &run->err);
    if (code)
        return code;
    if (run->reads)
        memcpy(&run->reads[(step->number - 1) * W], read.data, W * sizeof(float));
    tensor_release(&read);
    return 0;
}

static void *train(void *argument)
{
    struct run *run = argument;
    run->from = worker_join(run->worker);
    for (int64_t i = run->from; i < run->steps; i++) {
        struct step step = {.number = i + 1};
        if (run->seed)
            pause_at_random(&run->seed);
        if (run_step(run, &step))
            return NULL;
    }
    worker_leave(run->worker);
    return NULL;
}

static void train_all(struct replicas *job, struct run *runs, int64_t steps, gradient_fn *gradient)
{
    for (int i = 0; i < job->n_workers; i++) {
        runs[i].worker = &job->workers[i];
        runs[i].steps = steps;
        runs[i].gradient = gradient;
        assert_int_equal(pthread_create(&runs[i].thread, NULL, train, &runs[i]), 0);
    }
    for (int i = 0; i < job->n_workers; i++) {
        pthread_join(runs[i].thread, NULL);
        if (runs[i].err.code)
            fail_msg("worker %d: %s", i, runs[i].err.text);
    }
}

static struct clock *the_clock(struct replicas *job)
{
    return resource_get(job->store, &clock_kind, "default", "train");
}

static void one_of_mine(float *x, int worker, int64_t seq)
{
    for (int i = 0; i < W; i++)
        x[i] = seq && i == worker ? -1 : 0;
}

/* No two sums of these in different orders are equal. */
static void odd_fractions(float *x, int worker, int64_t seq)
{
    for (int i = 0; i < W; i++)
        x[i] = (float)sin((double)(seq * 31 + worker * 7 + i)) * 1.234567F;
}

/* Computes the variable after the rounds of a log, by the update rule written out. */
static void replay(const struct replicas *job, gradient_fn *gradient, float rate, float *w)
{
    memset(w, 0, W * sizeof *w);
    for (size_t at = 0; at < job->log.n;) {
        int64_t n = job->log.items[at++];
        float sum[W], x[W];
        for (int64_t k = 0; k < n; k++, at += 2) {
            gradient(x, (int)job->log.items[at], job->log.items[at + 1]);
            for (int i = 0; i < W; i++)
                sum[i] = k ? sum[i] + x[i] : x[i];
        }
        for (int i = 0; i < W; i++)
            w[i] -= rate * (n > 1 ? sum[i] / (float)n : sum[i]);
    }
}

static void check_replay(struct replicas *job, gradient_fn *gradient, float rate)
{
    float expected[W];
    const float *w = replicas_variable(job, "w")->data;
    replay(job, gradient, rate, expected);
    if (memcmp(w, expected, sizeof expected) != 0)
        fail_msg("w is %.9g %.9g, not %.9g %.9g", (double)w[0], (double)w[1], (double)expected[0],
                 (double)expected[1]);
}

/* ---- stale synchronous ---- */

#define CLOCKS 1000

static void check_bound(const struct run *run, int64_t bound)
{
    for (int64_t c = 0; c < CLOCKS; c++)
        for (int q = 0; q < W; q++) {
            int64_t seen = (int64_t)run->reads[c * W + q];
            if (seen < c - bound || (q == (int)run->worker->rank && seen != c) ||
                seen > c + bound + 1)
                fail_msg("bound %lld: worker %u read %lld of worker %d at its clock %lld",
                         (long long)bound, run->worker->rank, (long long)seen, q, (long long)c);
        }
}

static void run_bound(int64_t bound, struct run *runs)
{
    struct replicas job;
    char mode[32];
    snprintf(mode, sizeof mode, "ssp,bound=%d", (int)bound);
    replicas_open(&job, scripts_build(table), NULL, mode, W);
    replicas_start(&job);
    for (int i = 0; i < W; i++)
        runs[i].reads = calloc(CLOCKS * W, sizeof(float));
    train_all(&job, runs, CLOCKS, one_of_mine);
    replicas_stop(&job);
    for (int i = 0; i < W; i++) {
        check_bound(&runs[i], bound);
        assert_true(((const float *)replicas_variable(&job, "w")->data)[i] == CLOCKS);
        free(runs[i].reads);
    }
    replicas_close(&job);
}

static void nobody_reads_staler_than_the_bound(void **state)
{
    static const int64_t bounds[] = {0, 1, 3, 10};
    (void)state;
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        struct run runs[W] = {0};
        run_bound(bounds[i], runs);
    }
}

/* Bound 0: in each clock all workers read the same, and pushes are applied by rank. */
static void bound_0_is_bulk_synchronous(void **state)
{
    struct replicas job;
    struct run runs[W] = {0};
    float w[W] = {0}, x[W];
    const int64_t clocks = 100;
    (void)state;
    replicas_open(&job, scripts_build(table), NULL, "ssp,bound=0", W);
    replicas_start(&job);
    for (int i = 0; i < W; i++) {
        runs[i].seed = (uint64_t)i + 1;
        runs[i].reads = calloc((size_t)clocks * W, sizeof(float));
    }
    train_all(&job, runs, clocks, odd_fractions);
    replicas_stop(&job);
    for (int64_t c = 0; c < clocks; c++) {
        for (int p = 0; p < W; p++)
            assert_memory_equal(&runs[p].reads[c * W], w, sizeof w);
        for (int p = 0; p < W; p++) {
            odd_fractions(x, p, c + 1);
            for (int i = 0; i < W; i++)
                w[i] -= 1.0F * x[i];
        }
    }
    assert_memory_equal(replicas_variable(&job, "w")->data, w, sizeof w);
    for (int i = 0; i < W; i++)
        free(runs[i].reads);
    replicas_close(&job);
}

/* ---- synchronous, with backup workers ---- */

static void the_first_ones_count(void **state)
{
    struct replicas job;
    struct run runs[W] = {0};
    struct clock_member workers[W];
    int64_t counted = 0, rounds = 0;
    (void)state;
    replicas_open(&job, scripts_build(table), NULL, "sync,backup=1", W);
    replicas_start(&job);
    for (int i = 0; i < W; i++)
        runs[i].seed = (uint64_t)i + 100;
    train_all(&job, runs, 200, odd_fractions);
    replicas_stop(&job);
    for (size_t at = 0; at < job.log.n; at += 1 + 2 * (size_t)job.log.items[at], rounds++)
        assert_in_range(job.log.items[at], rounds < 150 ? W - 1 : 1, W - 1);
    check_replay(&job, odd_fractions, 1);
    assert_int_equal(clock_workers(the_clock(&job), workers, W), W);
    assert_int_equal(clock_version(the_clock(&job)), rounds);
    for (int i = 0; i < W; i++) {
        assert_int_equal(workers[i].pushed, 200);
        assert_int_equal(workers[i].counted + workers[i].late, 200);
        assert_int_equal(workers[i].duplicate, 0);
        assert_true(workers[i].late > 0);
        counted += workers[i].counted;
    }
    assert_true(counted >= 3 * 150 && counted < 4 * 200);
    replicas_close(&job);
}

/* ---- workers that die ---- */

#define KILLS_MAX 60

struct killer {
    pthread_mutex_t lock; /* guards step (which may be killed now) and ends */
    struct step *step;
    bool ends;
    uint64_t seed;
};

static void *kill_at_random(void *argument)
{
    struct killer *killer = argument;
    struct error reason = ERROR_INIT;
    error_set(&reason, ERR_CANCELLED, "killed");
    for (int ends = 0, kills = 0; !ends;) {
        long us = 50 + (long)(unit_random(&killer->seed) % 3000);
        nanosleep(&(struct timespec){0, us * 1000}, NULL);
        pthread_mutex_lock(&killer->lock);
        if (killer->step && kills++ < KILLS_MAX) /* limited, so that a slow machine finishes, too */
            step_cancel(killer->step, &reason);
        ends = killer->ends;
        pthread_mutex_unlock(&killer->lock);
    }
    return NULL;
}

static void show_victim(struct killer *killer, struct step *step)
{
    pthread_mutex_lock(&killer->lock);
    killer->step = step;
    pthread_mutex_unlock(&killer->lock);
}

/* Runs a worker again each time it was killed: only its pushes survive. */
static int live(struct replica *w, gradient_fn *gradient, int64_t steps)
{
    struct killer killer = {.seed = w->rank + 7};
    pthread_t thread;
    int deaths = 0;
    pthread_mutex_init(&killer.lock, NULL);
    assert_int_equal(pthread_create(&thread, NULL, kill_at_random, &killer), 0);
    struct run run = {.worker = w, .gradient = gradient};
    for (int64_t i = worker_join(w); i < steps; i++) {
        struct step step = {.number = i + 1};
        show_victim(&killer, &step);
        bool lives = !run_step(&run, &step);
        show_victim(&killer, NULL);
        if (lives)
            continue;
        assert_string_equal(run.err.text, "killed");
        struct replica old = *w;
        worker_close(w);
        worker_open(w, old.job, old.rank, old.incarnation + 1);
        i = worker_join(w) - 1;
        deaths++;
    }
    pthread_mutex_lock(&killer.lock);
    killer.ends = true;
    pthread_mutex_unlock(&killer.lock);
    pthread_join(thread, NULL);
    worker_leave(w);
    return deaths;
}

struct life {
    struct replica *worker;
    gradient_fn *gradient;
    int64_t steps;
    int deaths;
    pthread_t thread;
};

static void *live_thread(void *argument)
{
    struct life *life = argument;
    life->deaths = live(life->worker, life->gradient, life->steps);
    return NULL;
}

static int live_all(struct replicas *job, gradient_fn *gradient, int64_t steps)
{
    struct life lives[WORKERS_MAX];
    int deaths = 0;
    for (int i = 0; i < job->n_workers; i++) {
        lives[i] = (struct life){&job->workers[i], gradient, steps, 0, 0};
        assert_int_equal(pthread_create(&lives[i].thread, NULL, live_thread, &lives[i]), 0);
    }
    for (int i = 0; i < job->n_workers; i++) {
        pthread_join(lives[i].thread, NULL);
        deaths += lives[i].deaths;
    }
    return deaths;
}

static void ramp(float *x, int worker, int64_t seq)
{
    for (int i = 0; i < W; i++)
        x[i] = (float)(worker * 3 + i - seq % 5);
}

/* Whichever workers die, each step of each worker is applied once. */
static void async_counts_each_push_once(void **state)
{
    struct replicas job;
    const int64_t steps = 300;
    float expected[W] = {0}, x[W];
    (void)state;
    replicas_open(&job, scripts_build(table), NULL, "async", W);
    replicas_start(&job);
    int deaths = live_all(&job, ramp, steps);
    replicas_stop(&job);
    for (int p = 0; p < W; p++)
        for (int64_t s = 1; s <= steps; s++) {
            ramp(x, p, s);
            for (int i = 0; i < W; i++)
                expected[i] -= x[i];
        }
    assert_memory_equal(replicas_variable(&job, "w")->data, expected, sizeof expected);
    assert_true(deaths > 4);
    replicas_close(&job);
}

/* Whichever workers die, a synchronous run ends with the bits of an undisturbed run. */
static void sync_ends_with_the_same_bits(void **state)
{
    struct replicas job;
    struct run runs[W] = {0};
    float undisturbed[W];
    const int64_t steps = 200;
    (void)state;
    replicas_open(&job, scripts_build(table), NULL, "sync", W);
    replicas_start(&job);
    train_all(&job, runs, steps, odd_fractions);
    replicas_stop(&job);
    check_replay(&job, odd_fractions, 1);
    assert_int_equal(clock_version(the_clock(&job)), steps);
    memcpy(undisturbed, replicas_variable(&job, "w")->data, sizeof undisturbed);
    replicas_close(&job);

    replicas_open(&job, scripts_build(table), NULL, "sync", W);
    replicas_start(&job);
    int deaths = live_all(&job, odd_fractions, steps);
    replicas_stop(&job);
    assert_int_equal(clock_version(the_clock(&job)), steps);
    assert_memory_equal(replicas_variable(&job, "w")->data, undisturbed, sizeof undisturbed);
    assert_true(deaths > 4);
    replicas_close(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_reads_staler_than_the_bound),
        cmocka_unit_test(bound_0_is_bulk_synchronous),
        cmocka_unit_test(the_first_ones_count),
        cmocka_unit_test(async_counts_each_push_once),
        cmocka_unit_test(sync_ends_with_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
