/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs of few nodes with many edges between them, data and control, too many for arrays sized by
 * nodes: through the text form, all passes, a cut over devices and replication they compute the
 * same. AddressSanitizer detects writes past an array's end. MULTIGRAPHS is how many (default 110),
 * MULTIGRAPHS_SEED the first one's seed.
 */
#include "lib/replicas.h"
#include "lib/scripts.h"

#include "exec/session/evaluate.h"
#include "graph/text.h"
#include "lib/random.h"
#include "pass/half/half.h"
#include "pass/simplify/simplify.h"

/* Values are vectors of two small integers, whose sums are exact in any order. */
static const char script[] =
    "local state = D.seed\n"
    "local function random(n)\n"
    "  state = (state * 1103515245 + 12345) % 2147483648\n"
    "  return state // 65536 % n + 1\n"
    "end\n"
    "local values, nodes, weights = {Const({1.0, 2}), Const({-1.0, 3})}, {NoOp()}, {}\n"
    "local starts = {values[1], values[2]}\n"
    "local function of_few(list)\n"
    "  local few, many = {}, {}\n"
    "  for i = 1, random(3) do few[i] = list[random(#list)] end\n"
    "  for i = 1, random(4) == 1 and 1000 or 1 + random(20) do many[i] = few[random(#few)] end\n"
    "  return many\n"
    "end\n"
    "local function small(x) return Maximum(Minimum(x, 4.0), -4.0) end\n"
    "local function sum() return small(AddN(of_few(values))) end\n"
    "local make = {\n"
    "  sum,\n"
    "  function() return small(Sum(Pack(of_few(values)), 0)) end,\n"
    "  function() return Slice(Concat(0, of_few(values)), {1}, {2}) end,\n"
    "  function() return control(of_few(nodes), function() return Neg(values[#values]) end) end,\n"
    "  function()\n"
    "    local w = variable{name = 'w' .. #weights, shape = {2}, init = AddN(of_few(starts))}\n"
    "    weights[#weights + 1] = w\n"
    "    return w + 0\n"
    "  end,\n"
    "  function()\n"
    "    local v = Variable{dtype = float32, shape = {2}, _trainable = false}\n"
    "    local before = of_few(nodes)\n"
    "    before[#before + 1] = Assign(v, sum())\n"
    "    return control(before, function()\n"
    "      return small(AssignAdd(v, sum()))\n"
    "    end)\n"
    "  end,\n"
    "  function()\n"
    "    local outside = of_few(values)\n"
    "    local _, s = while_loop(function(i) return Less(i, 3) end, function(i, s)\n"
    "      outside[1 + #outside] = s\n"
    "      return i + 1, small(AddN(outside))\n"
    "    end, {0, values[1]})\n"
    "    return s\n"
    "  end,\n"
    "  function()\n"
    "    local one, other = of_few(values), of_few(values)\n"
    "    return cond(Less(Sum(values[#values], 0), 1.0),\n"
    "                function() return small(AddN(one)) end,\n"
    "                function() return small(AddN(other)) end)\n"
    "  end,\n"
    "}\n"
    "for i = 1, D.n do\n"
    "  local x\n"
    "  if D.devices > 0 then\n"
    "    x = device('/device:CPU:' .. i * D.seed % D.devices, make[random(#make)])\n"
    "  else\n"
    "    x = make[random(#make)]()\n"
    "  end\n"
    "  values[#values + 1] = x\n"
    "  nodes[#nodes + 1] = group(of_few{x, nodes[random(#nodes)]})\n"
    "end\n"
    "weights[#weights + 1] = variable{name = 'last', shape = {2}, init = 0.5}\n"
    "values[1] = weights[#weights] + 0\n"
    "entry.go = AddN(values)\n"
    "entry.order = group(of_few(nodes))\n"
    "local losses = of_few(values)\n"
    "for i = 1, #weights do losses[#losses + 1] = weights[i] * 0.25 end\n"
    "loss = Sum(AddN(losses), 0)\n"
    "entry.train = minimize(loss, optim.momentum{rate = 0.5})\n";

static uint64_t current;

static void must(int code, const struct error *err)
{
    if (code)
        fail_msg("MULTIGRAPHS_SEED=%llu: %s", (unsigned long long)current, err->text);
}

static struct graph *build(int n_devices)
{
    struct error err = ERROR_INIT;
    char seed[32], nodes[32], devices[32];
    snprintf(seed, sizeof seed, "seed=%llu", (unsigned long long)current);
    snprintf(nodes, sizeof nodes, "n=%d", 1 + (int)(current % 12));
    snprintf(devices, sizeof devices, "devices=%d", n_devices);
    struct graph *graph =
        scripts_try(script, (const char *const[]){seed, nodes, devices, NULL}, NULL, &err);
    must(err.code, &err);
    return graph;
}

static void run_entry(struct session *session, const struct graph *graph, const char *entry,
                      struct tensor *value)
{
    struct error err = ERROR_INIT;
    struct request request = {.graph = graph};
    struct step step = {.number = 1};
    must(request_run(&request, entry, &err), &err);
    struct plan_request call = {.fetches = request.fetches.items,
                                .n_fetches = (int)request.fetches.n,
                                .targets = request.targets.items,
                                .n_targets = (int)request.targets.n};
    must(session_run(session, &call, &step, value, &err), &err);
    request_release(&request);
}

/* The value of go, now and after two steps of training. */
static void run(const struct graph *graph, int n_devices, struct tensor values[2])
{
    struct session_options options = {
        .plan = {.kernels = ops_kernels(), .device = cut_devices()[0], .threads = 1},
        .devices = cut_devices(),
        .n_devices = n_devices};
    struct session *session = session_new(graph, &options);
    run_entry(session, graph, "init", NULL);
    run_entry(session, graph, "go", &values[0]);
    run_entry(session, graph, "order", NULL);
    for (int i = 0; i < 2; i++)
        run_entry(session, graph, "train", NULL);
    run_entry(session, graph, "go", &values[1]);
    session_free(session);
}

static void compare(const struct graph *graph, int n_devices, const struct tensor wanted[2])
{
    struct tensor values[2];
    run(graph, n_devices, values);
    for (int i = 0; i < 2; i++) {
        if (!same_bits(&wanted[i], &values[i]))
            fail_msg("MULTIGRAPHS_SEED=%llu: other values", (unsigned long long)current);
        tensor_release(&values[i]);
    }
}

static void check_text(const struct graph *graph, const struct tensor wanted[2])
{
    struct str text = STR_INIT;
    struct error err = ERROR_INIT;
    struct graph *again = NULL;
    must(graph_print_text(&text, graph, NULL, &err), &err);
    must(graph_parse_text(str_text(&text), text.n, "test", ops_registry(), &again, &err), &err);
    compare(again, 0, wanted);
    graph_free(again);
    str_release(&text);
}

static void check_passes(struct graph *graph, const struct tensor wanted[2])
{
    struct evaluator evaluator = {.kernels = ops_kernels(), .device = cut_devices()[0]};
    struct fold_evaluator fold = {evaluator_run, &evaluator};
    struct pass_options options = {.evaluator = &fold};
    const struct pass *passes[8];
    struct pass_result result;
    struct error err = ERROR_INIT;
    for (int i = 0; i < pass_count; i++)
        passes[i] = &pass_list[i];
    must(pass_optimize(graph, passes, pass_count, &options, &result, &err), &err);
    must(graph_check(result.graph, &err), &err);
    compare(result.graph, 0, wanted);
    pass_result_release(&result);
}

static void check_half(struct graph *graph)
{
    const struct pass_options pass = {0};
    struct half_options options = {.pass = &pass};
    struct pass_result result;
    struct error err = ERROR_INIT;
    must(half_parse(&options, "bf16", NULL, &err), &err);
    must(half_rewrite(graph, &options, &result, &err), &err);
    must(graph_check(result.graph, &err), &err);
    pass_result_release(&result);
}

static void place_over_devices(struct graph *graph)
{
    struct placement placement = {.arena = ARENA_INIT};
    struct place_options options = {.placement = &placement, .kernels = ops_kernels()};
    struct error err = ERROR_INIT;
    for (int i = 0; i < CUT_DEVICES; i++)
        must(placement_add(&placement, (const char *[]){"CPU:0", "CPU:1", "CPU:2", "CPU:3"}[i],
                           &err),
             &err);
    must(place_graph(graph, &options, &err), &err);
    placement_release(&placement);
}

static void check_cut(const struct tensor wanted[2])
{
    struct graph *graph = build(2 + (int)(current % (CUT_DEVICES - 1)));
    struct cut_graph cut;
    place_over_devices(graph);
    cut_open(&cut, graph);
    compare(cut.joined, CUT_DEVICES, wanted);
    cut_close(&cut);
    graph_free(graph);
}

/* A gradient may come after a write, which no worker can do before the others do. */
static bool can_be_replicated(const char *mode)
{
    struct replicate_options options = {.workers = 2};
    struct graph *graph = build(0), *replicated;
    struct error err = ERROR_INIT;
    must(replicate_parse(&options, mode, &err), &err);
    int code = replicate_graph(graph, &options, &replicated, &err);
    if (code && !strstr(err.text, "an update needs it, but it comes after"))
        must(code, &err);
    if (!code)
        graph_free(replicated);
    graph_free(graph);
    return !code;
}

static void check_replicas(const char *mode)
{
    struct replicas job;
    if (!can_be_replicated(mode))
        return;
    replicas_open(&job, build(0), NULL, mode, 2);
    replicas_close(&job);
}

static void check(uint64_t seed)
{
    struct tensor wanted[2];
    current = seed;
    struct graph *graph = build(0);
    run(graph, 0, wanted);
    check_text(graph, wanted);
    check_passes(graph, wanted);
    check_half(graph);
    check_cut(wanted);
    check_replicas(seed % 2 ? "sync" : "async");
    check_replicas("allreduce");
    for (int i = 0; i < 2; i++)
        tensor_release(&wanted[i]);
    graph_free(graph);
}

static void many_edges_between_few_nodes(void **state)
{
    struct seed_range seeds = seeds_of("MULTIGRAPHS", 110);
    (void)state;
    for (int i = 0; i < seeds.n; i++)
        check(seeds.first + (uint64_t)i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(many_edges_between_few_nodes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
