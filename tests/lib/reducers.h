/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: the members of a collective in this process, each with a plan of the same graph and
 * variables of its own, on devices that they may share.
 */
#ifndef TF_TESTS_LIB_REDUCERS_H
#define TF_TESTS_LIB_REDUCERS_H

#include "lib/on_device.h"

#include <unistd.h>

#include "base/container_of.h"
#include "exec/plan/plan.h"
#include "exec/step/collective.h"
#include "exec/step/step.h"
#include "lib/local_collective.h"

#define REDUCERS_MAX 4
#define REDUCERS_FETCHES 16
#define REDUCERS_LENGTH 4

struct reduce_member {
    struct graph *graph;
    struct variable_store *variables;
    struct plan *plan;
    struct plan_options options;
    struct collective *collective;
    struct step step;
    struct step_done done;
    struct tensor values[REDUCERS_FETCHES]; /* of the last step: ya, yb, ... */
    atomic_bool is_over;
    int code;
    struct error err;
};

struct reducers {
    struct reduce_member each[REDUCERS_MAX];
    int n, n_fetches;
};

/* Nodes ya, yb, ... */
static inline int reducer_fetches(const struct graph *graph, struct edge *edges)
{
    int n = 0;
    for (; n < REDUCERS_FETCHES; n++) {
        char name[] = {'y', (char)('a' + n), 0};
        const struct node *node = graph_find(graph, name);
        if (!node)
            break;
        edges[n] = (struct edge){node->id, 0};
    }
    return n;
}

static inline struct plan *reducer_plan(struct reduce_member *r, const struct plan_request *request)
{
    struct plan *plan;
    if (plan_new(r->graph, &r->options, request, &plan, &r->err))
        fail_msg("%s", r->err.text);
    return plan;
}

static inline void reducer_initialize(struct reduce_member *r)
{
    const struct node *init = graph_find(r->graph, "init");
    struct step step = {.number = 1};
    if (!init)
        return;
    struct plan *plan =
        reducer_plan(r, &(struct plan_request){.targets = &(int){init->id}, .n_targets = 1});
    if (plan_run(plan, &step, NULL, NULL, &r->err))
        fail_msg("%s", r->err.text);
    plan_free(plan);
}

/* Opens members with a graph that is fed x and fetches ya, yb, ...; runs init first. */
static inline void reducers_open(struct reducers *all, int n, struct device *const *devices,
                                 const char *text)
{
    static const struct shape shape = {.rank = 1, .dims = {REDUCERS_LENGTH}};
    struct collective *members[REDUCERS_MAX];
    memset(all, 0, sizeof *all);
    all->n = n;
    collective_local_new(n, members);
    for (int k = 0; k < n; k++) {
        struct reduce_member *r = &all->each[k];
        struct edge fetches[REDUCERS_FETCHES];
        if (graph_parse_text(text, strlen(text), "test", ops_registry(), &r->graph, &r->err))
            fail_msg("%s", r->err.text);
        r->collective = members[k];
        r->variables = variable_store_new();
        r->options = (struct plan_options){
            .kernels = ops_kernels(), .device = devices[k], .variables = r->variables};
        all->n_fetches = reducer_fetches(r->graph, fetches);
        struct edge feed = {graph_find(r->graph, "x")->id, 0};
        struct tensor value = {.type = FLOAT32, .shape = shape};
        r->plan = reducer_plan(r, &(struct plan_request){.feeds = &feed,
                                                         .feed_values = &value,
                                                         .n_feeds = 1,
                                                         .fetches = fetches,
                                                         .n_fetches = all->n_fetches});
        reducer_initialize(r);
    }
}

static inline void reducers_release_values(struct reducers *all)
{
    for (int k = 0; k < all->n; k++)
        for (int i = 0; i < all->n_fetches; i++)
            tensor_release(&all->each[k].values[i]);
}

static inline void reducers_close(struct reducers *all)
{
    reducers_release_values(all);
    for (int k = 0; k < all->n; k++) {
        struct reduce_member *r = &all->each[k];
        r->collective->free(r->collective);
        plan_free(r->plan);
        variable_store_free(r->variables);
        graph_free(r->graph);
    }
}

static inline void reducer_over(struct step_done *done, int code, const struct error *err)
{
    struct reduce_member *r = CONTAINER_OF(done, struct reduce_member, done);
    r->code = code;
    if (code)
        r->err = *err;
    atomic_store(&r->is_over, true);
}

static inline void reducer_start(struct reduce_member *r, int64_t number, const struct tensor *x)
{
    r->step = (struct step){.number = number, .seed = 3, .collective = r->collective};
    r->done = (struct step_done){.done = reducer_over, .computes = true};
    r->code = 0;
    r->err = error_none();
    atomic_store(&r->is_over, false);
    plan_start(r->plan, &r->step, x, r->values, &r->done);
}

/* Returns a member whose step has failed; NULL: none. */
static inline struct reduce_member *reducers_failed(struct reducers *all)
{
    for (int k = 0; k < all->n; k++)
        if (atomic_load(&all->each[k].is_over) && all->each[k].code)
            return &all->each[k];
    return NULL;
}

/* Waits for all. If one fails the others may wait in vain, and are told. */
static inline void reducers_wait(struct reducers *all)
{
    bool told = false;
    int left = all->n;
    for (int i = 0; i < 300000 && left; i++) {
        const struct reduce_member *failed = reducers_failed(all);
        left = 0;
        for (int k = 0; k < all->n; k++)
            left += !atomic_load(&all->each[k].is_over);
        for (int k = 0; k < all->n && failed && !told && i > 20; k++)
            if (!atomic_load(&all->each[k].is_over)) {
                struct error stop = ERROR_INIT;
                error_set(&stop, ERR_CANCELLED, "another member has failed");
                step_cancel(&all->each[k].step, &stop);
            }
        told |= failed && i > 20;
        if (left)
            usleep(100);
    }
    assert_int_equal(left, 0);
}

/* Runs a step of all, which start in another order each time; x is by member. */
static inline void reducers_step(struct reducers *all, int64_t number, float (*x)[REDUCERS_LENGTH])
{
    static const struct shape shape = {.rank = 1, .dims = {REDUCERS_LENGTH}};
    struct tensor fed[REDUCERS_MAX];
    reducers_release_values(all);
    for (int i = 0; i < all->n; i++) {
        int k = (i + (int)number) % all->n;
        fed[k] = tensor_borrow(FLOAT32, &shape, x[k]);
        reducer_start(&all->each[k], number, &fed[k]);
    }
    reducers_wait(all);
}

#endif
