/* SPDX-License-Identifier: Apache-2.0
 *
 * Backup workers (Chen et al. 2016): of 50 + b workers the first 50 make a round, so that its time
 * is an order statistic of the workers' times. Workers sleep by a heavy-tailed law, Pareto's with
 * exponent 3; the clock is the real one. The median round is compared with an event-by-event
 * simulation of the same sleeps. In `make check` the median sleep is 50 ms, and a busy machine may
 * be late; BACKUP_MEDIAN=1 BACKUP_ROUNDS=100 is the paper's scale, for every b from 0 to 5.
 */
#include "lib/unit.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/memory.h"
#include "base/time.h"
#include "exec/state/variable.h"
#include "resource/clock.h"

#define NEEDED 50
#define BACKUP_MAX 5
#define WORKERS (NEEDED + BACKUP_MAX)
#define ROUNDS_MAX 1000

struct waiting {
    struct clock_waiter waiter; /* must be first */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool over, failed;
    int64_t version, members;
};

struct race {
    int backup, rounds;
    double median;
    struct clock *clock;
    struct variable_store *store;
    pthread_barrier_t start;
    double ends[ROUNDS_MAX + 1]; /* of rounds; 0: the start */
    bool wrong;                  /* a round had other than NEEDED members */
    pthread_t thread;
};

struct sleeper {
    struct race *race;
    int64_t worker;
    pthread_t thread;
};

/* Multiples of the generator's own increment would all lie on one sequence. */
static uint64_t seed_of(const struct race *race, int64_t worker)
{
    uint64_t number = (uint64_t)(1000 * (race->backup + 1) + worker);
    return unit_random(&number);
}

/* Pareto's law: a worker's next sleep, in seconds. */
static double draw(const struct race *race, uint64_t *seed)
{
    double u = ((double)(unit_random(seed) >> 11) + 1) * 0x1p-53;
    return race->median * pow(2 * u, -1.0 / 3);
}

/* ---- the race itself ---- */

static void done(struct clock_waiter *waiter, const struct clock_result *result,
                 const struct error *failure)
{
    struct waiting *w = (struct waiting *)waiter;
    pthread_mutex_lock(&w->lock);
    w->failed = failure != NULL;
    w->version = result ? result->version : 0;
    w->members = result ? result->members.n : 0;
    w->over = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static void begin(struct waiting *w)
{
    *w = (struct waiting){.waiter = {.done = done}};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
}

/* Returns whether it ended well. */
static bool end(struct waiting *w)
{
    pthread_mutex_lock(&w->lock);
    while (!w->over)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->changed);
    return !w->failed;
}

static void *work(void *argument)
{
    struct sleeper *sleeper = argument;
    struct race *race = sleeper->race;
    uint64_t seed = seed_of(race, sleeper->worker);
    struct push_id id = {sleeper->worker, 1, 0};
    struct waiting w;
    begin(&w);
    clock_join(race->clock, &id, &w.waiter);
    end(&w);
    pthread_barrier_wait(&race->start);
    while (w.version < race->rounds) {
        double seconds = draw(race, &seed);
        int64_t version = w.version;
        nanosleep(&(struct timespec){(time_t)seconds, (long)(fmod(seconds, 1) * 1e9)}, NULL);
        id.seq++;
        begin(&w);
        clock_push(race->clock, &id, version, &w.waiter);
        if (!end(&w))
            break; /* the race is over */
    }
    return NULL;
}

static void *run_race(void *argument)
{
    struct race *race = argument;
    struct sleeper sleepers[WORKERS];
    struct error err = ERROR_INIT;
    struct waiting w;
    int n = NEEDED + race->backup;
    pthread_barrier_init(&race->start, NULL, (unsigned)n + 1);
    for (int i = 0; i < n; i++) {
        sleepers[i] = (struct sleeper){.race = race, .worker = i};
        if (pthread_create(&sleepers[i].thread, NULL, work, &sleepers[i]))
            abort();
    }
    pthread_barrier_wait(&race->start);
    race->ends[0] = time_now();
    for (int64_t round = 1; round <= race->rounds; round++) {
        begin(&w);
        clock_round(race->clock, &w.waiter);
        race->wrong |= !end(&w) || w.members != NEEDED || w.version != round;
        race->wrong |= clock_advance(race->clock, round, &err) != 0;
        race->ends[round] = time_now();
    }
    error_set(&err, ERR_CANCELLED, "the race is over");
    clock_fail(race->clock, &err);
    for (int i = 0; i < n; i++)
        pthread_join(sleepers[i].thread, NULL);
    pthread_barrier_destroy(&race->start);
    return NULL;
}

/* ---- the expected times ---- */

struct state {
    double at; /* when the sleep ends */
    int64_t version;
    uint64_t seed;
};

static int first_of(const struct state *states, int n)
{
    int first = 0;
    for (int i = 1; i < n; i++)
        if (states[i].at < states[first].at)
            first = i;
    return first;
}

/* A worker that pushed for an older round restarts at once; the others wait for the round. */
static void simulate(const struct race *race, double *ends)
{
    struct state states[WORKERS];
    int n = NEEDED + race->backup, waiting[WORKERS], n_waiting = 0;
    int64_t round = 1;
    ends[0] = 0;
    for (int i = 0; i < n; i++) {
        states[i] = (struct state){.seed = seed_of(race, i)};
        states[i].at = draw(race, &states[i].seed);
    }
    while (round <= race->rounds) {
        int i = first_of(states, n);
        double at = states[i].at;
        if (states[i].version < round - 1) {
            states[i].version = round - 1;
            states[i].at = at + draw(race, &states[i].seed);
            continue;
        }
        waiting[n_waiting++] = i;
        states[i].at = INFINITY;
        if (n_waiting < NEEDED)
            continue;
        for (int k = 0; k < n_waiting; k++) {
            struct state *state = &states[waiting[k]];
            state->version = round;
            state->at = at + draw(race, &state->seed);
        }
        n_waiting = 0;
        ends[round++] = at;
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_round(const double *ends, int rounds)
{
    double *lengths = mem_array((size_t)rounds, sizeof *lengths);
    for (int i = 0; i < rounds; i++)
        lengths[i] = ends[i + 1] - ends[i];
    qsort(lengths, (size_t)rounds, sizeof *lengths, compare);
    double median = lengths[rounds / 2];
    mem_free(lengths);
    return median;
}

/* ---- both ---- */

static void start_race(struct race *race, int backup, int rounds, double median)
{
    char policy[32];
    struct error err = ERROR_INIT;
    *race = (struct race){.backup = backup, .rounds = rounds, .median = median};
    snprintf(policy, sizeof policy, "sync,backup=%d", backup);
    race->store = variable_store_new();
    race->clock = resource_get(race->store, &clock_kind, "default", "race");
    assert_int_equal(clock_configure(race->clock, policy, NEEDED + backup, &err), 0);
    assert_int_equal(pthread_create(&race->thread, NULL, run_race, race), 0);
}

static int64_t count_late(struct clock *clock)
{
    struct clock_member workers[WORKERS];
    int64_t late = 0;
    for (int i = 0, n = clock_workers(clock, workers, WORKERS); i < n; i++)
        late += workers[i].late;
    return late;
}

static double check_race(struct race *race, double late)
{
    static double ends[ROUNDS_MAX + 1];
    pthread_join(race->thread, NULL);
    simulate(race, ends);
    double is = median_round(race->ends, race->rounds), should = median_round(ends, race->rounds);
    print_message("b=%d: median round %.4f s, simulated %.4f s, %lld late\n", race->backup, is,
                  should, (long long)count_late(race->clock));
    assert_false(race->wrong);
    assert_true(fabs(is - should) <= 0.05 * should + late);
    assert_true((count_late(race->clock) > 0) == (race->backup > 0));
    variable_store_free(race->store);
    return is;
}

/* Without backup a round is the longest of NEEDED sleeps, each below t with 1 - (median / t)^3 / 2:
 * its median is where the NEEDEDth power of that is one half. */
static void the_simulation_has_the_law_of_the_longest_sleep(void **state)
{
    static struct race race = {.rounds = ROUNDS_MAX, .median = 1};
    static double ends[ROUNDS_MAX + 1];
    double law = cbrt(0.5 / (1 - pow(0.5, 1.0 / NEEDED)));
    (void)state;
    simulate(&race, ends);
    assert_true(fabs(median_round(ends, ROUNDS_MAX) / law - 1) < 0.03);
}

static void the_median_round_is_the_order_statistic(void **state)
{
    static struct race races[BACKUP_MAX + 1];
    const char *text = getenv("BACKUP_MEDIAN"), *count = getenv("BACKUP_ROUNDS");
    double median = text ? atof(text) : 0.05, late = text ? 0 : 0.02, before = INFINITY;
    int rounds = count ? atoi(count) : 25, by = text ? 1 : BACKUP_MAX;
    (void)state;
    assert_true(rounds > 0 && rounds <= ROUNDS_MAX && median > 0);
    for (int b = 0; b <= BACKUP_MAX; b += by)
        start_race(&races[b], b, rounds, median);
    for (int b = 0; b <= BACKUP_MAX; b += by) {
        double length = check_race(&races[b], late);
        assert_true(length < before);
        before = length;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_simulation_has_the_law_of_the_longest_sleep),
        cmocka_unit_test(the_median_round_is_the_order_statistic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
