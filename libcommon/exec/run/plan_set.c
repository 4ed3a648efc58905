/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/run/plan_set.h"

#include <semaphore.h>
#include <string.h>

#include "base/memory.h"
#include "exec/device/deferred.h"
#include "exec/device/device_set.h"
#include "exec/run/divide.h"
#include "exec/step/rendezvous.h"
#include "exec/step/step.h"

struct plan_part {
    struct device *device;
    struct share share; /* of the request */
};

struct plan_set {
    struct plan_part *parts;
    struct plan **plans; /* by part */
    int n_parts, n_fetches;
};

/* ---- the request, divided ---- */

static int make_plan(const struct plan_part *part, const struct graph *graph,
                     const struct session_options *set, const struct plan_request *whole,
                     struct plan **plan, struct error *err)
{
    const struct share *share = &part->share;
    plan_order order = VEC_INIT;
    struct plan_options options = set->plan;
    struct edge *feeds = mem_array(share->feeds.n + 1, sizeof *feeds);
    struct tensor *values = mem_array(share->feeds.n + 1, sizeof *values);
    struct edge *fetches = mem_array(share->fetches.n + 1, sizeof *fetches);
    for (size_t i = 0; i < share->feeds.n; i++) {
        feeds[i] = whole->feeds[share->feeds.items[i]];
        values[i] = whole->feed_values[share->feeds.items[i]];
    }
    for (size_t i = 0; i < share->fetches.n; i++)
        fetches[i] = whole->fetches[share->fetches.items[i]];
    struct plan_request request = {.feeds = feeds,
                                   .feed_values = values,
                                   .n_feeds = (int)share->feeds.n,
                                   .fetches = fetches,
                                   .n_fetches = (int)share->fetches.n,
                                   .targets = share->targets.items,
                                   .n_targets = (int)share->targets.n,
                                   .received = whole->received,
                                   .order = &order};
    share_take_order(share, whole->order, &order);
    options.device = part->device;
    int code = plan_new(graph, &options, &request, plan, err);
    mem_free(feeds);
    mem_free(values);
    mem_free(fetches);
    vec_release(&order);
    return code;
}

/* Makes the plans of several parts, which are told what they cannot see of each other. */
static int make_together(struct plan_set *set, const struct graph *graph,
                         const struct session_options *options, struct plan_request *request,
                         struct error *err)
{
    plan_order order = VEC_INIT;
    struct uncut *uncut = uncut_new(graph, request);
    struct shape *shapes = request->n_feeds ? uncut_shapes(uncut) : NULL;
    int code = request->order ? 0 : uncut_order(uncut, &order, err);
    request->received = shapes;
    if (!request->order)
        request->order = &order;
    for (int i = 0; !code && i < set->n_parts; i++)
        code = make_plan(&set->parts[i], graph, options, request, &set->plans[i], err);
    mem_free(shapes);
    vec_release(&order);
    uncut_free(uncut);
    return code;
}

/* By node, the index of its device; nodes on none of the given devices get n_devices. */
static int *find_places(const struct graph *graph, const struct session_options *options)
{
    int *place = mem_array(graph->nodes.n + 1, sizeof *place);
    const char *last = NULL;
    graph_each(node, graph) {
        struct error ignored = ERROR_INIT;
        int at = last && !strcmp(last, node->assigned)
                     ? place[node->id - 1]
                     : device_find(options->devices, options->n_devices, node, &ignored);
        place[node->id] = at < 0 ? options->n_devices : at;
        last = node->assigned;
    }
    return place;
}

/* Divides the request among devices that have something to do. ERR_CONFIG: a node of the request,
 * or one that must send, is on none of the devices. */
static int divide(struct plan_set *set, const struct graph *graph,
                  const struct session_options *options, const struct plan_request *request,
                  struct error *err)
{
    int n = options->n_devices, node = -1;
    struct share *shares = mem_array((size_t)n + 1, sizeof *shares), *lost = &shares[n];
    int *place = find_places(graph, options);
    request_divide(graph, request, place, shares);
    if (lost->feeds.n)
        node = request->feeds[lost->feeds.items[0]].node;
    if (lost->fetches.n)
        node = request->fetches[lost->fetches.items[0]].node;
    if (lost->targets.n)
        node = lost->targets.items[0];
    bool is_lost = node >= 0 && device_find(options->devices, n, graph_node(graph, node), err) < 0;
    share_release(lost);
    for (int i = 0; i < n; i++) {
        if (share_is_idle(&shares[i]))
            share_release(&shares[i]);
        else
            set->parts[set->n_parts++] =
                (struct plan_part){.device = options->devices[i], .share = shares[i]};
    }
    mem_free(place);
    mem_free(shares);
    return is_lost ? err->code : 0;
}

int plan_set_new(const struct graph *graph, const struct session_options *options,
                 const struct plan_request *request, struct plan_set **result, struct error *err)
{
    struct plan_set *set = mem_alloc(sizeof *set);
    size_t n = options->n_devices > 0 ? (size_t)options->n_devices : 1;
    struct plan_request whole = *request;
    struct plan_options own = options->plan;
    set->parts = mem_array(n, sizeof *set->parts);
    set->plans = mem_array(n, sizeof *set->plans);
    set->n_fetches = request->n_fetches;
    int code = options->n_devices > 0 ? divide(set, graph, options, request, err) : 0;
    if (set->n_parts == 1) { /* one plan gets all feeds and makes all fetches */
        own.device = set->parts[0].device;
        whole.targets = set->parts[0].share.targets.items;
        whole.n_targets = (int)set->parts[0].share.targets.n;
    }
    if (options->n_devices <= 0)
        set->n_parts = 1;
    if (!code && set->n_parts > 1)
        code = make_together(set, graph, options, &whole, err);
    else if (!code && set->n_parts)
        code = plan_new(graph, &own, &whole, &set->plans[0], err);
    if (code) {
        plan_set_free(set);
        set = NULL;
    }
    *result = set;
    return code;
}

void plan_set_free(struct plan_set *set)
{
    if (!set)
        return;
    for (int i = 0; i < set->n_parts; i++) {
        plan_free(set->plans[i]);
        share_release(&set->parts[i].share);
    }
    mem_free(set->parts);
    mem_free(set->plans);
    mem_free(set);
}

void plan_set_trim(struct plan_set *set)
{
    for (int i = 0; i < set->n_parts; i++)
        plan_trim(set->plans[i]);
}

int plan_set_plans(const struct plan_set *set, struct plan *const **plans)
{
    *plans = set->plans;
    return set->n_parts;
}

/* ---- a step ---- */

struct part_run {
    struct step_done done; /* first */
    struct plan_set_run *run;
    struct tensor *feeds, *fetches;
    int code;
};

struct plan_set_run {
    const struct plan_set *set;
    struct step *step;
    struct tensor *fetches; /* of the step */
    struct step_done *done;
    struct rendezvous *own;
    atomic_int left; /* parts that are not over */
    struct part_run parts[];
};

/* Called when a part is over, and when all have been started. The last call ends the step with the
 * first error, from whichever part. */
static void drop_user(struct plan_set_run *run)
{
    if (atomic_fetch_sub(&run->left, 1) > 1)
        return;
    struct step *step = run->step;
    struct step_done *done = run->done;
    struct error err = ERROR_INIT;
    step->rendezvous->aborted(step->rendezvous, &err);
    for (int i = 0; i < run->set->n_parts; i++) {
        const struct plan_part *part = &run->set->parts[i];
        const struct part_run *r = &run->parts[i];
        for (size_t k = 0; k < part->share.fetches.n; k++) {
            if (!err.code)
                run->fetches[part->share.fetches.items[k]] = r->fetches[k];
            else if (!r->code)
                tensor_release(&r->fetches[k]);
        }
        mem_free(r->feeds);
        mem_free(r->fetches);
    }
    if (run->own) {
        run->own->free(run->own);
        step->rendezvous = NULL;
    }
    mem_free(run);
    step_end(step);
    done->done(done, err.code, &err);
}

static void part_over(struct step_done *done, int code, const struct error *err)
{
    struct part_run *r = (struct part_run *)done;
    (void)err; /* the rendezvous has it */
    r->code = code;
    drop_user(r->run);
}

/* The first part, whose expensive kernels this thread may run, starts last: so all run at once. */
void plan_set_start(struct plan_set *set, struct step *step, const struct tensor *feeds,
                    struct tensor *fetches, struct step_done *done)
{
    int n = set->n_parts;
    if (n == 1) {
        plan_start(set->plans[0], step, feeds, fetches, done);
        return;
    }
    struct plan_set_run *run = mem_alloc(sizeof *run + (size_t)n * sizeof run->parts[0]);
    run->set = set;
    run->step = step;
    run->fetches = fetches;
    run->done = done;
    atomic_init(&run->left, n + 1);
    if (set->n_fetches)
        memset(fetches, 0, (size_t)set->n_fetches * sizeof *fetches);
    if (!step->rendezvous)
        step->rendezvous = run->own = rendezvous_local_new(0);
    for (int i = n - 1; i >= 0; i--) {
        const struct share *share = &set->parts[i].share;
        struct part_run *r = &run->parts[i];
        r->done = (struct step_done){
            .done = part_over, .computes = i == 0 && done->computes, .is_part = true};
        r->run = run;
        r->feeds = mem_array(share->feeds.n + 1, sizeof *r->feeds);
        r->fetches = mem_array(share->fetches.n + 1, sizeof *r->fetches);
        for (size_t k = 0; k < share->feeds.n; k++)
            r->feeds[k] = feeds[share->feeds.items[k]];
        plan_start(set->plans[i], step, r->feeds, r->fetches, &r->done);
    }
    drop_user(run);
}

struct blocked_thread {
    struct step_done done; /* first */
    sem_t over;
    struct error err;
};

static void step_over(struct step_done *done, int code, const struct error *err)
{
    struct blocked_thread *blocked = (struct blocked_thread *)done;
    if (code)
        blocked->err = *err;
    sem_post(&blocked->over);
}

int plan_set_run(struct plan_set *set, struct step *step, const struct tensor *feeds,
                 struct tensor *fetches, struct error *err)
{
    if (set->n_parts == 1)
        return plan_run(set->plans[0], step, feeds, fetches, err);
    struct blocked_thread blocked = {.done = {.done = step_over, .computes = true}};
    sem_init(&blocked.over, 0, 0);
    plan_set_start(set, step, feeds, fetches, &blocked.done);
    deferred_catch_up();
    while (sem_wait(&blocked.over))
        ;
    sem_destroy(&blocked.over);
    if (blocked.err.code)
        *err = blocked.err;
    return blocked.err.code;
}
