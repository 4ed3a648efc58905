/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: random nests (lib/nest.h) as graphs, and plans of them: on one device, or partitioned
 * over several.
 */
#ifndef TF_TESTS_LIB_NEST_PLAN_H
#define TF_TESTS_LIB_NEST_PLAN_H

#include "lib/session.h"

#include "exec/device/queue.h"
#include "lib/cut.h"
#include "lib/nest_graph.h"

struct nest {
    uint64_t seed;
    struct arena arena;
    struct nest_block program;
    struct nest_state start;
    struct graph *graph;
    struct edge feeds[NEST_SLOTS], results[NEST_SLOTS];
    int target; /* after all effects */
    struct error err;
};

static inline enum dtype nest_slot_type(int slot)
{
    return nest_is_whole(slot) ? INT32 : FLOAT32;
}

static inline struct shape nest_slot_shape(int slot)
{
    return slot < NEST_INTS ? SHAPE_SCALAR : shape_vector(NEST_LENGTH);
}

static inline struct tensor nest_slot_tensor(struct nest_state *s, int slot)
{
    struct shape shape = nest_slot_shape(slot);
    return tensor_borrow(nest_slot_type(slot), &shape,
                         nest_is_whole(slot) ? (void *)&s->whole[slot] : s->number[slot]);
}

static inline void nest_make_start(struct nest_state *s, uint64_t seed)
{
    memset(s, 0, sizeof *s);
    for (int i = 0; i < NEST_SLOTS; i++) {
        for (int e = 0; e < (i < NEST_INTS ? 1 : NEST_LENGTH); e++)
            s->number[i][e] = (float)(unit_random(&seed) % 17) / 4 - 2;
        s->whole[i] = (int32_t)(unit_random(&seed) % 7) - 3;
    }
    for (int i = 0; i < NEST_VARIABLES; i++)
        s->variable[i] = (float)(i + 1);
}

static inline void nest_add_inputs(struct nest *n, struct nest_lowering *l,
                                   struct nest_place *outside)
{
    for (int i = 0; i < NEST_SLOTS; i++) {
        struct shape shape = nest_slot_shape(i);
        struct attr attrs[] = {{"dtype", attr_type(nest_slot_type(i))},
                               {"shape", attr_shape(&shape)}};
        n->feeds[i] = build_op(&l->build, "Placeholder", NULL, 0, attrs, 2);
        nest_bind(l, outside, i, n->feeds[i]);
    }
    nest_bind(l, outside, NEST_TOKEN, nest_constant(l, outside, NEST_TOKEN, 0));
    struct attr attrs[] = {{"dtype", attr_type(FLOAT32)}, {"shape", attr_shape(&SHAPE_SCALAR)}};
    for (int i = 0; i < NEST_VARIABLES; i++)
        l->variables[i] = build_op(&l->build, "Variable", NULL, 0, attrs, 2);
}

static inline void nest_make_graph(struct nest *n, int parallel_iterations, bool loose)
{
    n->graph = graph_new(ops_registry());
    struct nest_lowering l = {.build = {.graph = n->graph, .err = &n->err},
                              .parallel_iterations = parallel_iterations,
                              .loose = loose};
    struct nest_place outside = {.pivot = -1};
    nest_add_inputs(n, &l, &outside);
    nest_lower(&l, &outside, &n->program);
    for (int i = 0; i < NEST_SLOTS; i++)
        n->results[i] = build_unary(&l.build, "Identity", l.slots[i].edge);
    nest_run_after(&l, &l.slots[NEST_TOKEN].edge.node);
    n->target = build_op(&l.build, "NoOp", NULL, 0, NULL, 0).node;
    if (l.build.err->code || graph_infer(n->graph, &n->err) || graph_check(n->graph, &n->err))
        fail_msg("%s", n->err.text);
}

/* Returns a variable: for the plan to find, and afterwards to compare its value. */
static inline struct variable *nest_variable(struct variable_store *store, int i)
{
    struct variable like = {.container = "default",
                            .name = i ? "Variable_1" : "Variable",
                            .type = FLOAT32,
                            .shape = SHAPE_SCALAR,
                            .device = fixture_device()};
    struct variable *variable;
    struct error err;
    assert_int_equal(variable_store_get(store, &like, &variable, &err), 0);
    return variable;
}

static inline void nest_set_variables(struct variable_store *store, const struct nest_state *s)
{
    struct error err;
    for (int i = 0; i < NEST_VARIABLES; i++) {
        struct variable *variable = nest_variable(store, i);
        assert_int_equal(variable_prepare_write(variable, &SHAPE_SCALAR, VARIABLE_UPDATE, &err), 0);
        struct device *device = variable->device;
        assert_int_equal(device_write(device, variable->value.data, &s->variable[i],
                                      sizeof s->variable[i], &err),
                         0);
        variable_written(variable);
    }
}

static inline float nest_get_variable(struct variable_store *store, int i)
{
    struct variable *variable = nest_variable(store, i);
    struct device *device = variable->device;
    struct error err;
    float value;
    assert_int_equal(device_read(device, &value, variable->value.data, sizeof value, &err), 0);
    return value;
}

static inline bool nest_same(float a, float b)
{
    return a == b || (a != a && b != b);
}

/* Compares what a step has fetched, and the variables after it, with the expected state. */
static inline bool nest_agrees(const struct nest_state *wanted, const struct tensor *got,
                               struct variable_store *store)
{
    bool equal = true;
    for (int i = 0; i < NEST_SLOTS; i++) {
        if (nest_is_whole(i))
            equal = equal && *(const int32_t *)got[i].data == wanted->whole[i];
        for (int e = 0; !nest_is_whole(i) && e < (i < NEST_INTS ? 1 : NEST_LENGTH); e++)
            equal = equal && nest_same(((const float *)got[i].data)[e], wanted->number[i][e]);
    }
    for (int i = 0; i < NEST_VARIABLES; i++)
        equal = equal && nest_same(nest_get_variable(store, i), wanted->variable[i]);
    return equal;
}

/* Makes a plan: on all devices if the graph was partitioned, else on one. NULL: n->err is set. */
static inline struct plan_set *nest_plan(struct nest *n, const struct cut_graph *cut,
                                         struct variable_store *store, int threads, bool dynamic)
{
    struct edge feeds[NEST_SLOTS], results[NEST_SLOTS];
    struct tensor values[NEST_SLOTS];
    int target = cut ? cut_edge(cut, n->graph, (struct edge){n->target, 0}).node : n->target;
    for (int i = 0; i < NEST_SLOTS; i++) {
        feeds[i] = cut ? cut_edge(cut, n->graph, n->feeds[i]) : n->feeds[i];
        results[i] = cut ? cut_edge(cut, n->graph, n->results[i]) : n->results[i];
        values[i] = (struct tensor){.type = nest_slot_type(i), .shape = nest_slot_shape(i)};
    }
    struct session_options options = {.plan = {.kernels = ops_kernels(),
                                               .device = fixture_device(),
                                               .variables = store,
                                               .threads = threads,
                                               .cut = dynamic ? CUT_REGIONS : CUT_WHOLE,
                                               .spread = threads > 1},
                                      .devices = cut_devices(),
                                      .n_devices = cut ? CUT_DEVICES : 0};
    struct plan_request request = {.feeds = feeds,
                                   .feed_values = values,
                                   .n_feeds = NEST_SLOTS,
                                   .fetches = results,
                                   .n_fetches = NEST_SLOTS,
                                   .targets = &target,
                                   .n_targets = 1};
    struct plan_set *set = NULL;
    plan_set_new(cut ? cut->joined : n->graph, &options, &request, &set, &n->err);
    return set;
}

#endif
