/* SPDX-License-Identifier: Apache-2.0
 *
 * Workers' own states, here the errors of their quantized gradients: the state in a checkpoint at
 * any moment, and the state after a dropped push. Gradients do not depend on values read, so that a
 * log of rounds determines all values, bit for bit; codes are recomputed from their definitions. In
 * some runs workers die, and come back with their journals. STATES is how many runs of each kind
 * there are (1), STATES_SEED the first one's seed.
 */
#include "lib/gradient_codes.h"
#include "lib/lives.h"
#include "resource/worker_value.h"

#define W 4
#define CUTS_MAX 400
#define STEPS 60

/* The gradient of w is x. */
static const char model[] = "x = Placeholder{dtype = float32, shape = {1024}}\n"
                            "w = variable{name = 'w', shape = {1024}, init = 0}\n"
                            "loss = CheckNumerics(Sum(w * x, 0), {message = 'loss'})\n"
                            "entry.train = minimize(loss, optim.sgd{rate = 1})\n";

static void gradient_of(float *x, int worker, int64_t seq)
{
    for (int i = 0; i < N; i++)
        x[i] = (float)sin((double)(seq * 31 + worker * 7 + i * 3)) * 1.234567F;
}

typedef void code_fn(const float *v, float *decoded);

/* ---- a job, and its cuts ---- */

struct cut {
    int64_t version, decided[W];
    float w[N], residuals[W][N];
};

struct trial {
    struct replicas job;
    const char *mode;
    code_fn *code;
    bool is_exact; /* the snapshot has exactly the version at which the clock must stop */
    bool kills;    /* kills workers */
    uint64_t seed;
    struct lifetime lives[W];
    int deaths;
    struct cut *cuts;
    int n_cuts;
    atomic_int running;
    /* The expected values: */
    int64_t round_of[W][STEPS + 1]; /* by worker and step: its round, from 1 on; 0: dropped */
    float *decoded;                 /* by worker and step */
};

static struct clock *the_clock(struct trial *t)
{
    return resource_get(t->job.store, &clock_kind, "default", "train");
}

struct worker_thread {
    struct trial *trial;
    struct lifetime *life;
    pthread_t thread;
};

static int one_step(struct lifetime *life, int64_t number)
{
    float x[N];
    struct shape shape = shape_vector(N);
    struct feed feed = {"x", tensor_borrow(FLOAT32, &shape, x)};
    struct tensor asked;
    gradient_of(x, (int)life->worker->rank, number);
    int code = life_run(life, "train", number, "clock/push:2", &feed, &asked);
    return code ? code : life_rest_if(life, number, &asked);
}

static void *train(void *argument)
{
    const struct worker_thread *own = argument;
    struct lifetime *life = own->life;
    uint64_t seed = own->trial->seed + life->worker->rank;
    int64_t seq = 0, code = life_join(life, &seq);
    while (seq < STEPS || code) {
        pause_at_random(&seed);
        if (!code)
            code = one_step(life, ++seq);
        if (life_has_ended(life)) {
            code = life_begin_again(life, &seq);
        } else if (code) { /* else the others would wait for ever */
            fprintf(stderr, "%s, worker %d: %s\n", own->trial->mode, (int)life->worker->rank,
                    life->err.text);
            abort();
        }
    }
    worker_leave(life->worker);
    atomic_fetch_sub(&own->trial->running, 1);
    return NULL;
}

struct pause {
    struct clock_waiter waiter; /* must be first */
    atomic_int replies;
    bool failed;
    int64_t version;
};

static void paused(struct clock_waiter *waiter, const struct clock_result *result,
                   const struct error *failure)
{
    struct pause *pause = (struct pause *)waiter;
    pause->failed = failure;
    pause->version = failure ? 0 : result->version;
    atomic_fetch_add(&pause->replies, 1);
}

static struct worker_values *values_of(struct trial *t)
{
    return resource_get(t->job.store, &worker_value_kind, "default", "w/gradient/residual");
}

struct decided {
    struct resource_sink sink; /* must be first */
    int64_t *of;               /* by worker */
};

static int take_members(struct resource_sink *sink, const char *container, const char *name,
                        const struct tensor *value, struct error *err)
{
    const struct decided *decided = (struct decided *)sink;
    bool is_it = !strcmp(name, "clock:train/members");
    (void)container;
    (void)err;
    for (int64_t p = 0; is_it && p < value->shape.dims[0]; p++) {
        const int64_t *row = (const int64_t *)value->data + p * value->shape.dims[1];
        decided->of[row[0]] = row[5];
        assert_int_equal(row[7], 0); /* no push waits */
    }
    return 0;
}

/* As a checkpoint takes it. */
static void take_cut(struct trial *t, int64_t version)
{
    struct cut *cut = &t->cuts[t->n_cuts++];
    static const struct resource train = {
        .kind = &clock_kind, .container = "default", .name = "train"};
    struct decided decided = {{take_members, &train}, cut->decided};
    struct error err = ERROR_INIT;
    memset(cut, 0, sizeof *cut);
    cut->version = version;
    memcpy(cut->w, replicas_variable(&t->job, "w")->data, sizeof cut->w);
    void *snapshot = clock_kind.snapshot(the_clock(t));
    assert_int_equal(clock_kind.save(snapshot, &decided.sink, &err), 0);
    clock_kind.free(snapshot);
    for (int p = 0; p < W; p++) {
        struct tensor value;
        assert_int_equal(worker_value_take(values_of(t), p, 0, &value, &err), 0);
        if (value.type != DTYPE_INVALID)
            memcpy(cut->residuals[p], value.data, sizeof cut->residuals[p]);
        tensor_release(&value);
    }
}

/* As a shard makes one: at once, or at a version. */
static void make_cut(struct trial *t, bool at_once)
{
    struct clock *clock = the_clock(t);
    int64_t from = at_once ? 0 : clock_version(clock) + 3;
    struct pause pause = {.waiter = {.done = paused, .timeout = at_once ? 0 : 0.02}};
    if (at_once)
        clock_ask(clock);
    else
        clock_stop_at(clock, from);
    do {
        pause.replies = 0;
        clock_pause(clock, from, &pause.waiter);
        while (!pause.replies)
            nanosleep(&(struct timespec){0, 100000}, NULL);
    } while (pause.failed && atomic_load(&t->running));
    if (at_once)
        clock_end_ask(clock);
    clock_stop_at(clock, 0);
    if (pause.failed)
        return;
    assert_true(!t->is_exact || at_once || pause.version == from);
    take_cut(t, pause.version);
    clock_resume(clock);
}

static void run_trial(struct trial *t)
{
    struct worker_thread threads[W];
    uint64_t seed = t->seed;
    replicas_open(&t->job, scripts_build(model), NULL, t->mode, W);
    replicas_start(&t->job);
    t->cuts = calloc(CUTS_MAX, sizeof *t->cuts);
    t->running = W;
    for (int i = 0; i < W; i++) {
        life_init(&t->lives[i], &t->job.workers[i], t->kills);
        threads[i] = (struct worker_thread){.trial = t, .life = &t->lives[i]};
        assert_int_equal(pthread_create(&threads[i].thread, NULL, train, &threads[i]), 0);
    }
    while (atomic_load(&t->running) && t->n_cuts < CUTS_MAX - 1) {
        pause_at_random(&seed);
        if (t->kills && unit_random(&seed) % 2)
            life_end(&t->lives[unit_random(&seed) % W]);
        else
            make_cut(t, unit_random(&seed) % 2);
    }
    for (int i = 0; i < W; i++) {
        pthread_join(threads[i].thread, NULL);
        if (t->lives[i].err.code)
            fail_msg("%s, worker %d: %s", t->mode, i, t->lives[i].err.text);
        t->deaths += t->lives[i].deaths;
        life_release(&t->lives[i]);
    }
    make_cut(t, true); /* all have left */
    replicas_stop(&t->job);
}

/* ---- the expected values ---- */

static void read_log(struct trial *t)
{
    int64_t round = 1;
    for (size_t at = 0; at < t->job.log.n; round++)
        for (int64_t n = t->job.log.items[at++]; n > 0; n--, at += 2)
            t->round_of[t->job.log.items[at]][t->job.log.items[at + 1]] = round;
}

static float *decoded_of(struct trial *t, int worker, int64_t step)
{
    return &t->decoded[((int64_t)worker * (STEPS + 1) + step) * N];
}

static void check_state(const struct trial *t, int worker, int64_t step, const float *residual)
{
    for (int c = 0; c < t->n_cuts; c++) {
        const struct cut *cut = &t->cuts[c];
        if (cut->decided[worker] == step &&
            memcmp(cut->residuals[worker], residual, N * sizeof *residual) != 0)
            fail_msg("%s, version %lld: what worker %d has lost is not that of its step %lld",
                     t->mode, (long long)cut->version, worker, (long long)step);
    }
}

/* A worker's codes and errors: with the applied codes, they add up to all gradients. */
static void follow_worker(struct trial *t, int worker)
{
    float residual[N] = {0}, x[N], v[N];
    double sum[N] = {0};
    check_state(t, worker, 0, residual);
    for (int64_t s = 1; s <= STEPS; s++) {
        float *decoded = decoded_of(t, worker, s);
        gradient_of(x, worker, s);
        for (int i = 0; i < N; i++)
            v[i] = x[i] + residual[i];
        t->code(v, decoded);
        for (int i = 0; i < N; i++) {
            bool counted = t->round_of[worker][s];
            residual[i] = counted ? v[i] - decoded[i] : v[i];
            sum[i] += (double)x[i] - (counted ? (double)decoded[i] : 0);
        }
        check_state(t, worker, s, residual);
    }
    for (int i = 0; i < N; i++)
        assert_true(fabs(sum[i] - (double)residual[i]) < 1e-3);
}

/* Applies the members of the round that begins at `at` of the log, as the shard adds them. */
static size_t apply_round(struct trial *t, size_t at, float *w)
{
    int64_t n = t->job.log.items[at++];
    float mean[N];
    for (int64_t k = 0; k < n; k++, at += 2) {
        const float *d = decoded_of(t, (int)t->job.log.items[at], t->job.log.items[at + 1]);
        for (int i = 0; i < N; i++)
            mean[i] = k ? mean[i] + d[i] : 0 + d[i];
    }
    for (int i = 0; i < N; i++)
        w[i] -= n > 1 ? mean[i] / (float)n : mean[i];
    return at;
}

static void check_variable(struct trial *t)
{
    float w[N] = {0};
    int64_t version = 0;
    size_t at = 0;
    for (int c = 0; c < t->n_cuts; c++) {
        while (version < t->cuts[c].version) {
            at = apply_round(t, at, w);
            version++;
        }
        for (int i = 0; i < N; i++)
            if (w[i] != t->cuts[c].w[i])
                fail_msg("%s, version %lld: w[%d] is %.9g, not %.9g", t->mode, (long long)version,
                         i, (double)t->cuts[c].w[i], (double)w[i]);
    }
    assert_int_equal(at, t->job.log.n);
}

/* Returns how often workers died; -1: the job ended before there were enough snapshots. */
static int check_trial(const char *mode, code_fn *code, uint64_t seed, bool kills)
{
    struct trial t = {.mode = mode,
                      .code = code,
                      .is_exact = !strncmp(mode, "sync", 4),
                      .kills = kills,
                      .seed = seed};
    run_trial(&t);
    t.decoded = calloc((size_t)(W * (STEPS + 1) * N), sizeof *t.decoded);
    read_log(&t);
    for (int p = 0; p < W; p++)
        follow_worker(&t, p);
    check_variable(&t);
    replicas_close(&t.job);
    free(t.decoded);
    free(t.cuts);
    return t.n_cuts > 1 && t.n_cuts + t.deaths > 3 ? t.deaths : -1;
}

/* Runs a trial, on a busy machine once more. */
static int deaths_in(const char *mode, code_fn *code, uint64_t seed, bool kills)
{
    int deaths = -1;
    for (int i = 0; i < 5 && deaths < 0; i++)
        deaths = check_trial(mode, code, seed, kills);
    assert_true(deaths >= 0);
    return deaths;
}

static void check_trials(bool kills)
{
    static const char *const policies[] = {"sync", "sync,backup=1", "async", "ssp,bound=0",
                                           "ssp,bound=2"};
    struct seed_range seeds = seeds_of("STATES", 1);
    size_t n = sizeof policies / sizeof *policies;
    int deaths = 0;
    char mode[64];
    for (size_t i = 0; i < n * (size_t)seeds.n; i++) {
        uint64_t seed = seeds.first + i / n;
        snprintf(mode, sizeof mode, "%s,top=0.01", policies[i % n]);
        deaths += deaths_in(mode, top, seed, kills);
        snprintf(mode, sizeof mode, "%s,bits=2,threshold=%g", policies[i % n], (double)THRESHOLD);
        deaths += deaths_in(mode, threshold, seed, kills);
    }
    assert_true(!kills || deaths > 6 * (int)n * seeds.n);
}

static void cuts_have_what_all_have_lost(void **state)
{
    (void)state;
    check_trials(false);
}

static void so_they_have_when_workers_die(void **state)
{
    (void)state;
    check_trials(true);
}

static void a_check_that_fails_changes_nothing(void **state)
{
    struct trial t = {.mode = "sync,top=0.01"};
    struct lifetime life;
    struct error err = ERROR_INIT;
    float x[N] = {NAN};
    struct shape shape = shape_vector(N);
    struct feed feed = {"x", tensor_borrow(FLOAT32, &shape, x)};
    struct step step = {.number = 3};
    struct tensor before, after;
    (void)state;
    replicas_open(&t.job, scripts_build(model), NULL, t.mode, 1);
    replicas_start(&t.job);
    life_init(&life, &t.job.workers[0], false);
    worker_join(life.worker);
    assert_int_equal(one_step(&life, 1), 0);
    assert_int_equal(one_step(&life, 2), 0);
    struct step rest = {.number = 2};
    assert_int_equal(worker_run(life.worker, &rest, "rest", NULL, 0, NULL, &err), 0);
    assert_int_equal(worker_value_take(values_of(&t), 0, 1, &before, &err), 0);
    assert_int_equal(worker_run(life.worker, &step, "train", &feed, 1, NULL, &err), ERR_DATA);
    err = ERROR_INIT;
    worker_leave(life.worker); /* gives its state */
    assert_int_equal(worker_value_take(values_of(&t), 0, 1, &after, &err), 0);
    assert_memory_equal(before.data, after.data, sizeof x);
    tensor_release(&before);
    tensor_release(&after);
    life_release(&life);
    replicas_stop(&t.job);
    replicas_close(&t.job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_have_what_all_have_lost),
        cmocka_unit_test(so_they_have_when_workers_die),
        cmocka_unit_test(a_check_that_fails_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
