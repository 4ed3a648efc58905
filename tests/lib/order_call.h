/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: steps of graphs whose placeholders are fed as models are, and such graphs over several
 * devices.
 */
#ifndef TF_TESTS_LIB_ORDER_CALL_H
#define TF_TESTS_LIB_ORDER_CALL_H

#include "exec/session/session.h"
#include "lib/cut.h"
#include "lib/order_model.h"

#define CALLS_MAX 8

struct order_wanted {
    struct edge fetches[CALLS_MAX], targets[CALLS_MAX];
    int n_fetches, n_targets;
};

/* What placeholders are fed. */
struct order_fed {
    struct edge edges[CALLS_MAX];
    struct tensor values[CALLS_MAX];
    int n;
};

static inline void order_find_fed(const struct graph *graph, const struct model *m,
                                  struct order_fed *fed)
{
    static double x = MODEL_FED;
    struct shape one = shape_vector(1);
    fed->n = 0;
    for (size_t i = 0; i < graph->nodes.n; i++) {
        const struct node *node = graph_node(graph, (int)i);
        if (!node_is(node, "Placeholder"))
            continue;
        bool is_predicate = node->outputs[0].type == BOOL;
        void *value = is_predicate ? (void *)(uintptr_t)&m->predicates[node->name[1] - '0'] : &x;
        const struct shape *shape = node->outputs[0].shape.rank ? &one : &SHAPE_SCALAR;
        fed->edges[fed->n] = (struct edge){(int)i, 0};
        fed->values[fed->n++] = tensor_borrow(is_predicate ? BOOL : FLOAT64, shape, value);
    }
}

static inline int order_call(struct session *session, const struct graph *graph,
                             const struct model *m, const struct order_wanted *wanted,
                             double *values, struct error *err)
{
    int ids[CALLS_MAX];
    struct tensor results[CALLS_MAX];
    struct step step = {.number = 2};
    struct order_fed fed;
    order_find_fed(graph, m, &fed);
    for (int i = 0; i < wanted->n_targets; i++)
        ids[i] = wanted->targets[i].node;
    struct plan_request call = {.feeds = fed.edges,
                                .feed_values = fed.values,
                                .n_feeds = fed.n,
                                .fetches = wanted->fetches,
                                .n_fetches = wanted->n_fetches,
                                .targets = ids,
                                .n_targets = wanted->n_targets};
    int code = session_run(session, &call, &step, results, err);
    for (int i = 0; !code && i < wanted->n_fetches; i++) {
        values[i] = tensor_get_float64(&results[i], 0);
        tensor_release(&results[i]);
    }
    return code;
}

/* Places nodes by name, so that their order does not matter; users of one variable are together. */
static inline void order_place(struct graph *graph, uint64_t seed)
{
    uint64_t n_devices = 2 + seed % (CUT_DEVICES - 1);
    for (size_t i = 0; i < graph->nodes.n; i++) {
        struct node *node = graph_node(graph, (int)i);
        cut_assign(graph, node,
                   (int)(hash_bytes(node->name, strlen(node->name), seed) % n_devices));
    }
    while (cut_join(graph))
        ;
}

#endif
