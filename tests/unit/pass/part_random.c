/* SPDX-License-Identifier: Apache-2.0
 *
 * Random graphs that are cut compute the same as before, bit for bit, in whatever order values
 * arrive, and none hangs; half of them are cut over several tasks, between which small values cross
 * in groups. PARTS is how many (default 2000), PARTS_SEED the first one's seed.
 */
#include "lib/session.h"

#include "base/container_of.h"
#include "graph/device_name.h"
#include "lib/cut.h"
#include "lib/random_graph.h"
#include "lib/shuffled.h"

#define NODES_MAX 40

struct cut_step {
    struct session_done done;
    atomic_bool is_over;
    int code;
    struct error *err;
};

static void note_end(struct session_done *done, int code, const struct error *err)
{
    struct cut_step *step = CONTAINER_OF(done, struct cut_step, done);
    step->code = code;
    if (code)
        *step->err = *err;
    atomic_store(&step->is_over, true);
}

static struct session *open_session(const struct graph *graph, bool is_cut)
{
    struct session_options options = {.plan = {.kernels = ops_kernels(),
                                               .device = cut_devices()[0],
                                               .threads = 1,
                                               .cut = CUT_REGIONS},
                                      .devices = cut_devices(),
                                      .n_devices = is_cut ? CUT_DEVICES : 0};
    return session_new(graph, &options);
}

static int run_whole(const struct graph *graph, struct edge fetch, struct tensor *value,
                     struct error *err)
{
    struct session *session = open_session(graph, false);
    struct step step = {.number = 1};
    struct plan_request call = {.fetches = &fetch, .n_fetches = 1};
    int code = session_run(session, &call, &step, value, err);
    session_free(session);
    return code;
}

/* Values arrive in an order that the seed determines. */
static int run_cut(const struct graph *joined, struct edge fetch, uint64_t seed,
                   struct tensor *value, struct error *err)
{
    struct session *session = open_session(joined, true);
    struct step step = {.number = 1, .rendezvous = shuffled_new(seed)};
    struct plan_request call = {.fetches = &fetch, .n_fetches = 1};
    struct cut_step cut = {.done = {.over = note_end}, .err = err};
    cut.done.done.computes = seed % 4 != 0;
    session_start(session, &call, &step, value, &cut.done);
    if (!shuffled_finish(step.rendezvous, &cut.is_over))
        fail_msg("PARTS_SEED=%llu: hangs", (unsigned long long)seed);
    step.rendezvous->free(step.rendezvous);
    session_free(session);
    return cut.code;
}

static bool check_fetch(const struct graph *graph, const struct cut_graph *cut, struct edge edge,
                        uint64_t seed)
{
    struct error err = ERROR_INIT, cut_err = ERROR_INIT;
    struct tensor whole = TENSOR_INIT, parts = TENSOR_INIT;
    int code = run_whole(graph, edge, &whole, &err);
    int cut_code = run_cut(cut->joined, cut_edge(cut, graph, edge), seed, &parts, &cut_err);
    const char *name = graph_node(graph, edge.node)->name;
    if (code != cut_code)
        fail_msg("PARTS_SEED=%llu: %s: %s / %s", (unsigned long long)seed, name, err.text,
                 cut_err.text);
    if (!code && !same_bits(&whole, &parts))
        fail_msg("PARTS_SEED=%llu: %s: other values", (unsigned long long)seed, name);
    tensor_release(&whole);
    tensor_release(&parts);
    return !code;
}

static void spread_over_tasks(struct graph *graph)
{
    for (size_t i = 0; i < graph->nodes.n; i++) {
        struct node *node = graph_node(graph, (int)i);
        struct error err = ERROR_INIT;
        struct device_name name;
        assert_int_equal(device_name_parse(&name, node->assigned, &err), 0);
        name.task = name.index;
        graph_set_assigned(graph, node, device_name_text(&graph->arena, &name));
    }
}

/* State other than variables has no order but the graph's: a node waits for the previous one of the
 * same name. */
static void order_state(struct graph *graph)
{
    for (size_t i = 0; i < graph->nodes.n; i++) {
        struct node *node = graph_node(graph, (int)i);
        const struct attr_value *name = node_attr(node, "of"), *other = NULL;
        for (int before = (int)i - 1; name && !other && before >= 0; before--) {
            other = node_attr(graph_node(graph, before), "of");
            if (other && attr_equal(name, other))
                graph_add_control(graph, node, before);
            else
                other = NULL;
        }
    }
}

/* Counts the nodes whose value crosses in a group. */
static int count_grouped(const struct graph *joined)
{
    int n = 0;
    for (size_t i = 0; i < joined->nodes.n; i++)
        n += node_group(graph_node(joined, (int)i)) != NULL;
    return n;
}

static int check_random(uint64_t seed, int *n_grouped)
{
    struct graph *graph =
        random_graph(ops_registry(), seed, 2 + (int)(seed % NODES_MAX), OP_SOURCE, true);
    struct cut_graph cut;
    int n = 0, n_values = 0;
    if (random_graph_may_wait(graph)) {
        graph_free(graph);
        return 0;
    }
    random_graph_add_controls(graph, seed);
    order_state(graph);
    cut_place(graph, seed, 2 + (int)(seed % (CUT_DEVICES - 1)));
    if (seed / 2 % 2)
        spread_over_tasks(graph);
    cut_open(&cut, graph);
    *n_grouped += count_grouped(cut.joined);
    for (size_t i = 0; i < graph->nodes.n && n < 3; i++) {
        const struct node *node = graph_node(graph, (int)(graph->nodes.n - 1 - i));
        if (node->n_outputs && !node->outputs[0].is_ref && node->n_inputs) {
            n_values += check_fetch(graph, &cut, (struct edge){node->id, 0}, seed);
            n++;
        }
    }
    cut_close(&cut);
    graph_free(graph);
    return n_values;
}

static void random_graphs_compute_the_same(void **state)
{
    struct seed_range seeds = seeds_of("PARTS", 2000);
    int n = 0, n_grouped = 0;
    (void)state;
    for (int i = 0; i < seeds.n; i++)
        n += check_random(seeds.first + (uint64_t)i, &n_grouped);
    /* groups are between CPUs, of which there are fewer when every other device is another */
    int least = getenv("TF_TEST_DEVICE") ? 1 : 500;
    print_message("%d values, %d in groups\n", n, n_grouped);
    assert_true(seeds.given || (n > 500 && n_grouped > least));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_graphs_compute_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
