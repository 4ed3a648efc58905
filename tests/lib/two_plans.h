/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: two plans that run together, each a part of a step, on one device or on two.
 */
#ifndef TF_TESTS_LIB_TWO_PLANS_H
#define TF_TESTS_LIB_TWO_PLANS_H

#include <unistd.h>

#include "base/container_of.h"
#include "exec/device/queue.h"
#include "exec/plan/plan.h"
#include "exec/step/rendezvous.h"
#include "exec/step/step.h"
#include "lib/on_device.h"

struct plan_side {
    struct device *device;
    struct graph *graph;
    struct plan *plan;
    struct step_done done; /* of a step */
    atomic_int *left;
    int code;
    struct tensor value;
};

struct plan_pair {
    struct device *device; /* of the first */
    struct variable_store *variables;
    struct plan_side sides[2]; /* the first is fed x, the second fetches y */
    struct error err;
};

static inline void side_open(struct plan_pair *p, int i, const char *text, const char *target)
{
    static const struct shape shape = {.rank = 1, .dims = {4}};
    struct plan_side *side = &p->sides[i];
    struct edge fetch;
    if (graph_parse_text(text, strlen(text), "test", ops_registry(), &side->graph, &p->err) ||
        graph_parse_edge(side->graph, target, &fetch, &p->err))
        fail_msg("%s", p->err.text);
    const struct node *x = graph_find(side->graph, "x");
    struct edge feed = {x ? x->id : 0, 0};
    struct tensor value = {.type = FLOAT32, .shape = shape};
    struct plan_options options = {
        .kernels = ops_kernels(), .device = side->device, .variables = p->variables};
    struct plan_request request = {.feeds = &feed,
                                   .feed_values = &value,
                                   .n_feeds = x != NULL,
                                   .fetches = &fetch,
                                   .n_fetches = i,
                                   .targets = &fetch.node,
                                   .n_targets = !i};
    if (plan_new(side->graph, &options, &request, &side->plan, &p->err))
        fail_msg("%s", p->err.text);
}

/* `other`: of the second. */
static inline void pair_open_on(struct plan_pair *p, struct device *device, struct device *other,
                                const char *const texts[2], const char *target)
{
    memset(p, 0, sizeof *p);
    p->device = p->sides[0].device = device;
    p->sides[1].device = other;
    p->variables = variable_store_new();
    side_open(p, 0, texts[0], target);
    side_open(p, 1, texts[1], "y");
}

static inline void pair_open(struct plan_pair *p, struct device *device, const char *first,
                             const char *target, const char *second)
{
    pair_open_on(p, device, device, (const char *const[]){first, second}, target);
}

static inline void pair_close(struct plan_pair *p)
{
    for (int i = 0; i < 2; i++) {
        plan_free(p->sides[i].plan);
        graph_free(p->sides[i].graph);
    }
    variable_store_free(p->variables);
    device_settle(p->device);
    device_settle(p->sides[1].device);
    device_free(p->device);
    if (p->sides[1].device != p->device)
        device_free(p->sides[1].device);
}

static inline void pair_over(struct step_done *done, int code, const struct error *err)
{
    struct plan_side *side = CONTAINER_OF(done, struct plan_side, done);
    (void)err;
    side->code = code;
    atomic_fetch_sub(side->left, 1);
}

/* Runs both as a plan set would. The second one starts first in every other step. */
static inline int run_pair(struct plan_pair *p, int64_t number, struct rendezvous *rendezvous,
                           float y[4])
{
    static const struct shape shape = {.rank = 1, .dims = {4}};
    float elements[4] = {(float)number, 2, 3, 4};
    struct tensor x = tensor_borrow(FLOAT32, &shape, elements);
    struct step step = {.number = number, .rendezvous = rendezvous};
    atomic_int left = 2;
    p->err = error_none();
    for (int k = 0; k < 2; k++) {
        struct plan_side *side = &p->sides[(k + (int)number) % 2];
        side->done = (struct step_done){.done = pair_over, .computes = true, .is_part = true};
        side->left = &left;
        plan_start(side->plan, &step, &x, &side->value, &side->done);
    }
    for (int i = 0; i < 30000 && atomic_load(&left); i++)
        usleep(1000);
    assert_int_equal(atomic_load(&left), 0);
    if (rendezvous->aborted(rendezvous, &p->err))
        assert_true(p->sides[0].code || p->sides[1].code);
    if (!p->sides[1].code)
        memcpy(y, p->sides[1].value.data, 4 * sizeof *y);
    tensor_release(&p->sides[1].value);
    rendezvous->free(rendezvous);
    step_end(&step);
    return p->err.code;
}

/* Runs "init" of the second. */
static inline void pair_initialize(struct plan_pair *p)
{
    struct plan_options options = {
        .kernels = ops_kernels(), .device = p->sides[1].device, .variables = p->variables};
    int target = graph_find(p->sides[1].graph, "init")->id;
    struct plan *plan;
    struct step step = {.number = 1};
    if (plan_new(p->sides[1].graph, &options,
                 &(struct plan_request){.targets = &target, .n_targets = 1}, &plan, &p->err) ||
        plan_run(plan, &step, NULL, NULL, &p->err))
        fail_msg("%s", p->err.text);
    plan_free(plan);
}

#endif
