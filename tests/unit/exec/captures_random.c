/* SPDX-License-Identifier: Apache-2.0
 *
 * Random graphs with reads and updates of variables, noise, and indices that are out of range now
 * and then: steps that a device captures (lib/device_test.h) give the bits, errors and variables of
 * steps that it does not capture, and until one has failed also those of the CPU. CAPTURES is how
 * many (default 150), CAPTURES_SEED the first one's seed.
 */
#include "lib/on_device.h"

#include <math.h>

#include "lib/random_training.h"

#define N_STEPS 6

/* ---- one step on one device ---- */

struct outcome {
    int code;
    char text[256];
    float y[TRAINING_LENGTH], variables[TRAINING_VARIABLES][TRAINING_LENGTH];
};

static void fetch(struct fixture *f, const char *what, float *values)
{
    struct tensor t;
    if (fixture_run(f, what, NULL, NULL, &t))
        fail_msg("%s", f->err.text);
    memcpy(values, t.data, TRAINING_LENGTH * sizeof *values);
    tensor_release(&t);
}

static void run(struct fixture *f, int64_t number, uint64_t seed, struct outcome *outcome)
{
    static const struct shape shape = {.rank = 1, .dims = {TRAINING_LENGTH}};
    float elements[TRAINING_LENGTH];
    for (int i = 0; i < TRAINING_LENGTH; i++)
        elements[i] = (float)(unit_random(&seed) % 25 ? unit_random(&seed) % 8 : 8);
    struct tensor x = tensor_borrow(FLOAT32, &shape, elements), y;
    struct edge feed, fetched;
    struct step step = {.number = number, .seed = 3};
    memset(outcome, 0, sizeof *outcome);
    if (graph_parse_edge(f->graph, "x", &feed, &f->err) ||
        graph_parse_edge(f->graph, "y", &fetched, &f->err))
        fail_msg("%s", f->err.text);
    struct plan_request call = {
        .feeds = &feed, .feed_values = &x, .n_feeds = 1, .fetches = &fetched, .n_fetches = 1};
    outcome->code = session_run(f->session, &call, &step, &y, &f->err);
    if (outcome->code) {
        snprintf(outcome->text, sizeof outcome->text, "%s", f->err.text);
    } else {
        memcpy(outcome->y, y.data, sizeof outcome->y);
        tensor_release(&y);
    }
    fetch(f, "v0", outcome->variables[0]);
    fetch(f, "v1", outcome->variables[1]);
    fetch(f, "v2", outcome->variables[2]);
}

/* ---- a graph on all ---- */

struct tally {
    int launches, failures, refused;
};

static bool check_steps(struct fixture f[3], uint64_t seed, struct tally *tally)
{
    bool failed = false;
    for (int k = 0; k < 3; k++)
        fixture_do(&f[k], "^init");
    for (int64_t i = 1; i <= N_STEPS; i++) {
        struct outcome outcomes[3];
        for (int k = 0; k < 3; k++)
            run(&f[k], i, seed + (uint64_t)i, &outcomes[k]);
        if (memcmp(&outcomes[0], &outcomes[1], sizeof outcomes[0]) != 0)
            return false;
        failed |= outcomes[0].code != 0;
        tally->failures += outcomes[0].code != 0;
        if (outcomes[0].code != outcomes[2].code ||
            (!failed && memcmp(&outcomes[0], &outcomes[2], sizeof outcomes[0]) != 0))
            return false;
    }
    return true;
}

static void check(uint64_t seed, struct device *cpu, struct tally *tally)
{
    struct training m = {.text = STR_INIT, .random = seed};
    struct fixture f[3];
    training_make(&m);
    struct device *devices[] = {NULL, NULL, cpu};
    devices[0] = device_open_with("TF_TEST_DEVICE_SEED", (long)seed);
    devices[1] = device_open_eager("TF_TEST_DEVICE_SEED", (long)seed);
    for (int k = 0; k < 3; k++)
        fixture_open_on(&f[k], str_text(&m.text), devices[k], false);
    if (!check_steps(f, seed, tally))
        fail_msg("CAPTURES_SEED=%llu: other values or errors\n%s", (unsigned long long)seed,
                 str_text(&m.text));
    tally->launches += (int)device_counts(devices[0]).launches;
    for (int k = 0; k < 3; k++)
        fixture_close(&f[k]);
    device_free(devices[0]);
    device_free(devices[1]);
    str_release(&m.text);
}

static void captured_steps_are_like_others(void **state)
{
    struct seed_range seeds = seeds_of("CAPTURES", 150);
    int n = seeds.n;
    struct error err = ERROR_INIT;
    struct device *cpu = device_open("CPU", 0, &(struct device_options){.threads = 1}, &err);
    struct tally tally = {0};
    (void)state;
    for (int i = 0; i < n; i++)
        check(seeds.first + (uint64_t)i, cpu, &tally);
    assert_true(seeds.given || tally.launches > n * N_STEPS / 2);
    assert_true(seeds.given || (tally.failures > n / 20 && tally.failures < n * N_STEPS / 2));
    device_free(cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(captured_steps_are_like_others)};
    test_device_path();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
