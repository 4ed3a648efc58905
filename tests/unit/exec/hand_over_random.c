/* SPDX-License-Identifier: Apache-2.0
 *
 * Random graphs with reads and updates of variables, noise, and indices that are out of range now
 * and then, in two parts on the same device (lib/device_test.h), which hand values over to each
 * other in place: bits, errors and variables equal those of the whole graph on the CPU. HAND_OVERS
 * is how many (default 150), HAND_OVERS_SEED the first one's seed.
 */
#include "lib/on_device.h"

#include <unistd.h>

#include "base/container_of.h"
#include "base/memory.h"
#include "exec/step/rendezvous.h"
#include "exec/step/step.h"
#include "lib/cut.h"
#include "lib/random_training.h"

#define N_STEPS 6
#define HERE "/job:localhost/task:0/device:TEST:0"
#define THERE "/job:localhost/task:0/device:TEST:1"

/* ---- cutting ---- */

static void place(struct graph *graph, uint64_t seed)
{
    for (size_t i = 0; i < graph->nodes.n; i++)
        graph_set_assigned(graph, graph_node(graph, (int)i), unit_random(&seed) % 2 ? HERE : THERE);
    while (cut_join(graph))
        ;
}

/* In fact both parts are on one device. */
static int rename_devices(struct graph *graph)
{
    static const char *const names[] = {"send_device", "recv_device"};
    int n = 0;
    for (size_t i = 0; i < graph->nodes.n; i++) {
        struct node *node = graph_node(graph, (int)i);
        struct error err = ERROR_INIT;
        if (!node_is(node, "Send") && !node_is(node, "Recv"))
            continue;
        for (int k = 0; k < 2; k++)
            if (graph_set_attr(graph, node, &(struct attr){names[k], attr_string(HERE)}, &err))
                fail_msg("%s", err.text);
        n++;
    }
    return n;
}

/* ---- plans ---- */

struct side {
    struct plan *plan;
    struct step_done done; /* of a step */
    struct cut_run *run;
    bool has_x, has_y;
    struct tensor y;
};

struct cut_run {
    struct fixture whole; /* on the device, for runs other than the parts' steps */
    struct device *device;
    struct graph *graph; /* the graph that was cut */
    struct parts parts;
    struct side sides[2];
    int n, n_handed_over;
    atomic_int left; /* parts of the step that are not over */
    struct error err;
};

static struct edge find(const struct graph *graph, const char *name)
{
    const struct node *node = graph_find(graph, name);
    return (struct edge){node ? node->id : -1, 0};
}

/* Plans every value of the part, used or not, and all its Sends. */
static void open_side(struct cut_run *run, int i)
{
    static const struct shape shape = {.rank = 1, .dims = {TRAINING_LENGTH}};
    struct side *side = &run->sides[i];
    struct graph *graph = run->parts.parts.items[i].graph;
    struct edge x = find(graph, "x"), y = find(graph, "y");
    VEC(int) targets = {0};
    run->n_handed_over += rename_devices(graph);
    for (size_t k = 0; k < graph->nodes.n; k++)
        if (node_is(graph_node(graph, (int)k), "Send") || graph_node(graph, (int)k)->name[0] == 'n')
            vec_push(&targets, (int)k);
    side->run = run;
    side->has_x = x.node >= 0;
    side->has_y = y.node >= 0;
    struct plan_options options = {.kernels = ops_kernels(),
                                   .device = run->device,
                                   .variables = session_variables(run->whole.session)};
    struct tensor value = {.type = FLOAT32, .shape = shape};
    struct plan_request request = {.feeds = &x,
                                   .feed_values = &value,
                                   .n_feeds = side->has_x,
                                   .fetches = &y,
                                   .n_fetches = side->has_y,
                                   .targets = targets.items,
                                   .n_targets = (int)targets.n};
    if (plan_new(graph, &options, &request, &side->plan, &run->err))
        fail_msg("%s", run->err.text);
    vec_release(&targets);
}

/* The parts run every node, but must not initialize anew in each step. */
static struct graph *graph_without_start(const char *text)
{
    char *without = mem_strdup(text), *line = strstr(without, "init = ");
    struct error err = ERROR_INIT;
    struct graph *graph;
    assert_non_null(line);
    memset(line, ' ', strcspn(line, "\n"));
    if (graph_parse_text(without, strlen(without), "test", ops_registry(), &graph, &err))
        fail_msg("%s", err.text);
    mem_free(without);
    return graph;
}

static void open_cut(struct cut_run *run, const char *text, struct device *device, uint64_t seed)
{
    memset(run, 0, sizeof *run);
    run->device = device;
    fixture_open_on(&run->whole, text, device, false);
    run->graph = graph_without_start(text);
    place(run->graph, seed);
    if (part_graph(run->graph, NULL, &run->parts, &run->err))
        fail_msg("%s", run->err.text);
    run->n = (int)run->parts.parts.n;
    for (int i = 0; i < run->n; i++)
        open_side(run, i);
}

static void close_cut(struct cut_run *run)
{
    for (int i = 0; i < run->n; i++)
        plan_free(run->sides[i].plan);
    parts_release(&run->parts);
    graph_free(run->graph);
    fixture_close(&run->whole);
}

/* ---- steps ---- */

struct outcome {
    int code;
    float y[TRAINING_LENGTH], variables[TRAINING_VARIABLES][TRAINING_LENGTH];
};

static void take(float *to, struct tensor *value)
{
    memcpy(to, value->data, TRAINING_LENGTH * sizeof *to);
    tensor_release(value);
}

static void read_variables(struct fixture *f, struct outcome *outcome)
{
    for (int v = 0; v < TRAINING_VARIABLES; v++) {
        char name[] = {'v', (char)('0' + v), 0};
        struct tensor value;
        if (fixture_run(f, name, NULL, NULL, &value))
            fail_msg("%s", f->err.text);
        take(outcome->variables[v], &value);
    }
}

static void side_over(struct step_done *done, int code, const struct error *err)
{
    struct side *side = CONTAINER_OF(done, struct side, done);
    (void)code, (void)err; /* the rendezvous reports it */
    atomic_fetch_sub(&side->run->left, 1);
}

static void step_of_parts(struct cut_run *run, const struct tensor *x, struct step *step,
                          struct outcome *outcome)
{
    struct error err = ERROR_INIT;
    bool has_failed;
    step->rendezvous = rendezvous_local_new(0);
    atomic_store(&run->left, run->n);
    for (int k = 0; k < run->n; k++) {
        struct side *side = &run->sides[(k + (int)step->number) % run->n];
        side->done = (struct step_done){.done = side_over, .computes = true, .is_part = true};
        plan_start(side->plan, step, x, &side->y, &side->done);
    }
    for (int i = 0; i < 300000 && atomic_load(&run->left); i++)
        usleep(100);
    assert_int_equal(atomic_load(&run->left), 0);
    has_failed = step->rendezvous->aborted(step->rendezvous, &err);
    outcome->code = err.code;
    for (int i = 0; i < run->n; i++) {
        struct side *side = &run->sides[i];
        if (side->has_y && side->y.data && !has_failed)
            memcpy(outcome->y, side->y.data, sizeof outcome->y);
        tensor_release(&side->y);
    }
    step->rendezvous->free(step->rendezvous);
    step_end(step);
}

/* Runs the same nodes as the parts. */
static void step_of_whole(struct fixture *f, const struct tensor *x, struct step *step,
                          struct outcome *outcome)
{
    struct edge feed = find(f->graph, "x"), fetch = find(f->graph, "y");
    VEC(int) targets = {0};
    struct tensor y;
    for (size_t k = 0; k < f->graph->nodes.n; k++)
        if (graph_node(f->graph, (int)k)->name[0] == 'n')
            vec_push(&targets, (int)k);
    struct plan_request call = {.feeds = &feed,
                                .feed_values = x,
                                .n_feeds = 1,
                                .fetches = &fetch,
                                .n_fetches = 1,
                                .targets = targets.items,
                                .n_targets = (int)targets.n};
    outcome->code = session_run(f->session, &call, step, &y, &f->err);
    if (!outcome->code)
        take(outcome->y, &y);
    vec_release(&targets);
}

/* After a failed step the variables are as far as each device had come. */
static int check_steps(struct cut_run *run, struct fixture *cpu, uint64_t seed)
{
    static const struct shape shape = {.rank = 1, .dims = {TRAINING_LENGTH}};
    bool starts = true;
    int failures = 0;
    for (int64_t number = 1; number <= N_STEPS; number++) {
        struct outcome parts = {0}, whole = {0};
        struct step a = {.number = number, .seed = 3}, b = a;
        float elements[TRAINING_LENGTH];
        if (starts) {
            fixture_do(&run->whole, "^init");
            fixture_do(cpu, "^init");
        }
        for (int i = 0; i < TRAINING_LENGTH; i++)
            elements[i] = (float)(unit_random(&seed) % 25 ? unit_random(&seed) % 8 : 8);
        struct tensor x = tensor_borrow(FLOAT32, &shape, elements);
        step_of_parts(run, &x, &a, &parts);
        step_of_whole(cpu, &x, &b, &whole);
        if ((starts = whole.code != 0))
            failures++;
        if (parts.code != whole.code)
            return -1;
        read_variables(&run->whole, &parts);
        read_variables(cpu, &whole);
        if (!whole.code && memcmp(&parts, &whole, sizeof parts) != 0)
            return -1;
    }
    return failures;
}

struct tally {
    int handed_over, failures;
};

static void check(uint64_t seed, struct device *cpu, struct tally *tally)
{
    struct training m = {.text = STR_INIT, .random = seed};
    struct fixture whole;
    struct cut_run run;
    training_make(&m);
    struct device *device = device_open_with("TF_TEST_DEVICE_SEED", (long)seed);
    open_cut(&run, str_text(&m.text), device, seed);
    fixture_open_on(&whole, str_text(&m.text), cpu, false);
    int failures = check_steps(&run, &whole, seed);
    if (failures < 0)
        fail_msg("HAND_OVERS_SEED=%llu: other values or errors\n%s", (unsigned long long)seed,
                 str_text(&m.text));
    tally->failures += failures;
    tally->handed_over += run.n_handed_over / 2;
    fixture_close(&whole);
    close_cut(&run);
    device_free(device);
    str_release(&m.text);
}

static void parts_are_like_the_whole(void **state)
{
    struct seed_range seeds = seeds_of("HAND_OVERS", 150);
    int n = seeds.n;
    struct error err = ERROR_INIT;
    struct device *cpu = device_open("CPU", 0, &(struct device_options){.threads = 1}, &err);
    struct tally tally = {0};
    (void)state;
    for (int i = 0; i < n; i++)
        check(seeds.first + (uint64_t)i, cpu, &tally);
    assert_true(seeds.given || tally.handed_over > 2 * n);
    assert_true(seeds.given || (tally.failures > n / 20 && tally.failures < n * N_STEPS / 2));
    device_free(cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts_are_like_the_whole)};
    test_device_path();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
