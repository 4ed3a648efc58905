/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/run/plan_set.h"

#include <pthread.h>
#include <string.h>

#include "base/memory.h"
#include "exec/device/device_set.h"
#include "exec/run/received.h"
#include "exec/step/deferred.h"
#include "exec/step/rendezvous.h"
#include "exec/step/step.h"
#include "graph/join.h"
#include "graph/walk.h"

struct part {
    struct plan *plan;
    struct device *device;
    VEC(struct plan_feed) feeds;
    VEC(struct edge) fetches;
    VEC(int) targets;
    VEC(int) feed_of; /* by feed, by fetch of the plan: which one of the request */
    VEC(int) fetch_of;
};

struct plan_set {
    struct part *parts;
    struct plan **plans; /* of the parts */
    int n_parts, n_fetches;
};

struct split {
    const struct graph *graph;
    const struct plan_set_options *options;
    const struct plan_request *request;
    struct part *parts;     /* by device */
    struct graph_walk walk; /* to what is needed */
    struct edge_map fed;
    struct error *err;
};

/* ---- the request, divided ---- */

static struct part *part_of(struct split *s, int id)
{
    int i =
        device_find(s->options->devices, s->options->n_devices, graph_node(s->graph, id), s->err);
    return i < 0 ? NULL : &s->parts[i];
}

/* A Recv that is needed makes its Send a target of the part that has it. */
static int mark(struct split *s)
{
    const struct node *node;
    while ((node = graph_walk_next(&s->walk, s->graph))) {
        const struct node *send = join_send_of(s->graph, node);
        struct part *part = send && !s->walk.seen[send->id] ? part_of(s, send->id) : NULL;
        for (int i = 0; i < node->n_inputs; i++)
            if (edge_map_get(&s->fed, node->inputs[i]) < 0)
                graph_walk_to(&s->walk, node->inputs[i].node);
        for (int i = 0; i < node->n_controls; i++)
            graph_walk_to(&s->walk, node->controls[i]);
        if (s->err->code)
            return s->err->code;
        if (part) {
            vec_push(&part->targets, send->id);
            graph_walk_to(&s->walk, send->id);
        }
    }
    return 0;
}

static int divide(struct split *s)
{
    const struct plan_request *request = s->request;
    struct part *part;
    for (int i = 0; i < request->n_targets; i++) {
        if (!(part = part_of(s, request->targets[i])))
            return s->err->code;
        vec_push(&part->targets, request->targets[i]);
        graph_walk_to(&s->walk, request->targets[i]);
    }
    for (int i = 0; i < request->n_fetches; i++) {
        if (!(part = part_of(s, request->fetches[i].node)))
            return s->err->code;
        vec_push(&part->fetches, request->fetches[i]);
        vec_push(&part->fetch_of, i);
        if (edge_map_get(&s->fed, request->fetches[i]) < 0)
            graph_walk_to(&s->walk, request->fetches[i].node);
    }
    for (int i = 0; i < request->n_feeds; i++) {
        if (!(part = part_of(s, request->feeds[i].edge.node)))
            return s->err->code;
        vec_push(&part->feeds, request->feeds[i]);
        vec_push(&part->feed_of, i);
    }
    return mark(s);
}

static int make_plan(const struct split *s, struct part *part, const struct shape *received,
                     struct error *err)
{
    struct plan_options options = s->options->plan;
    struct plan_request request = {.feeds = part->feeds.items,
                                   .n_feeds = (int)part->feeds.n,
                                   .fetches = part->fetches.items,
                                   .n_fetches = (int)part->fetches.n,
                                   .targets = part->targets.items,
                                   .n_targets = (int)part->targets.n,
                                   .received = received};
    options.device = part->device;
    return plan_new(s->graph, &options, &request, &part->plan, err);
}

static void part_release(struct part *part)
{
    plan_free(part->plan);
    vec_release(&part->feeds);
    vec_release(&part->fetches);
    vec_release(&part->targets);
    vec_release(&part->feed_of);
    vec_release(&part->fetch_of);
}

/* The parts that have something to do move to the front. */
static void find_parts(const struct split *s, struct plan_set *set)
{
    for (int i = 0; i < s->options->n_devices; i++) {
        struct part part = s->parts[i];
        if (!part.fetches.n && !part.targets.n) {
            part_release(&part);
            memset(&s->parts[i], 0, sizeof part);
            continue;
        }
        part.device = s->options->devices[i];
        memset(&s->parts[i], 0, sizeof part);
        set->parts[set->n_parts++] = part;
    }
}

static void make_plans(const struct split *s, struct plan_set *set)
{
    bool shares = set->n_parts > 1 && s->request->n_feeds;
    struct shape *received = shares ? received_shapes(s->graph, s->request, s->walk.seen) : NULL;
    for (int i = 0; i < set->n_parts && !make_plan(s, &set->parts[i], received, s->err); i++)
        set->plans[i] = set->parts[i].plan;
    mem_free(received);
}

static int plan_set_make(struct plan_set *set, const struct graph *graph,
                         const struct plan_set_options *options, const struct plan_request *request,
                         struct error *err)
{
    struct error first = ERROR_INIT;
    struct arena memory = ARENA_INIT;
    struct split s = {
        .graph = graph, .options = options, .request = request, .parts = set->parts, .err = &first};
    s.walk = graph_walk_new(&memory, graph);
    s.fed = plan_index_feeds(request);
    if (divide(&s)) { /* only then some of the parts are filled and none is counted */
        for (int i = 0; i < options->n_devices; i++)
            part_release(&set->parts[i]);
    } else {
        find_parts(&s, set);
        make_plans(&s, set);
    }
    edge_map_release(&s.fed);
    arena_release(&memory);
    if (first.code)
        *err = first;
    return first.code;
}

int plan_set_new(const struct graph *graph, const struct plan_set_options *options,
                 const struct plan_request *request, struct plan_set **result, struct error *err)
{
    struct plan_set *set = mem_alloc(sizeof *set);
    size_t n = options->n_devices > 0 ? (size_t)options->n_devices : 1;
    set->parts = mem_array(n, sizeof *set->parts);
    set->plans = mem_array(n, sizeof *set->plans);
    set->n_fetches = request->n_fetches;
    int code = 0;
    if (options->n_devices > 0) {
        code = plan_set_make(set, graph, options, request, err);
    } else {
        code = plan_new(graph, &options->plan, request, &set->plans[0], err);
        set->parts[0].plan = set->plans[0];
        set->n_parts = 1;
    }
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
    for (int i = 0; i < set->n_parts; i++)
        part_release(&set->parts[i]);
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

static void collect(const struct plan_set_run *run, int i, bool failed)
{
    const struct part *part = &run->set->parts[i];
    const struct part_run *r = &run->parts[i];
    for (size_t k = 0; k < part->fetches.n; k++) {
        if (!failed)
            run->fetches[part->fetch_of.items[k]] = r->fetches[k];
        else if (!r->code)
            tensor_release(&r->fetches[k]);
    }
    mem_free(r->feeds);
    mem_free(r->fetches);
}

/* All parts are over. The first reason counts, wherever it came from. */
static void conclude(struct plan_set_run *run)
{
    struct step *step = run->step;
    struct step_done *done = run->done;
    struct error err = ERROR_INIT;
    step->rendezvous->aborted(step->rendezvous, &err);
    for (int i = 0; i < run->set->n_parts; i++)
        collect(run, i, err.code != 0);
    if (run->own) {
        run->own->free(run->own);
        step->rendezvous = NULL;
    }
    mem_free(run);
    step_end(step);
    done->done(done, err.code, &err);
}

static void leave(struct plan_set_run *run)
{
    if (atomic_fetch_sub(&run->left, 1) == 1)
        conclude(run);
}

static void part_over(struct step_done *done, int code, const struct error *err)
{
    struct part_run *r = (struct part_run *)done;
    (void)err; /* the rendezvous knows it */
    r->code = code;
    leave(r->run);
}

static struct plan_set_run *prepare(const struct plan_set *set, struct step *step,
                                    const struct tensor *feeds, struct tensor *fetches)
{
    size_t n = (size_t)set->n_parts;
    struct plan_set_run *run = mem_alloc(sizeof *run + n * sizeof run->parts[0]);
    run->set = set;
    run->step = step;
    run->fetches = fetches;
    atomic_init(&run->left, (int)n + 1);
    for (size_t i = 0; i < n; i++) {
        const struct part *part = &set->parts[i];
        struct part_run *r = &run->parts[i];
        r->done.done = part_over;
        r->run = run;
        r->feeds = mem_array(part->feeds.n + 1, sizeof *r->feeds);
        r->fetches = mem_array(part->fetches.n + 1, sizeof *r->fetches);
        for (size_t k = 0; k < part->feeds.n; k++)
            r->feeds[k] = feeds[part->feed_of.items[k]];
    }
    if (set->n_fetches)
        memset(fetches, 0, (size_t)set->n_fetches * sizeof *fetches);
    if (!step->rendezvous)
        step->rendezvous = run->own = rendezvous_local_new();
    return run;
}

/* The first part, whose expensive kernels this thread may run, comes last: so all work at once. */
void plan_set_start(struct plan_set *set, struct step *step, const struct tensor *feeds,
                    struct tensor *fetches, struct step_done *done)
{
    if (set->n_parts == 1) {
        plan_start(set->plans[0], step, feeds, fetches, done);
        return;
    }
    struct plan_set_run *run = prepare(set, step, feeds, fetches);
    run->done = done;
    for (int i = set->n_parts - 1; i >= 0; i--) {
        run->parts[i].done.computes = i == 0 && done->computes;
        plan_start_part(set->plans[i], step, run->parts[i].feeds, run->parts[i].fetches,
                        &run->parts[i].done);
    }
    leave(run);
}

struct blocked_thread {
    struct step_done done; /* first */
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool is_over;
    struct error err;
};

static void wake(struct step_done *done, int code, const struct error *err)
{
    struct blocked_thread *blocked = (struct blocked_thread *)done;
    pthread_mutex_lock(&blocked->lock);
    if (code)
        blocked->err = *err;
    blocked->is_over = true;
    pthread_cond_signal(&blocked->over);
    pthread_mutex_unlock(&blocked->lock);
}

int plan_set_run(struct plan_set *set, struct step *step, const struct tensor *feeds,
                 struct tensor *fetches, struct error *err)
{
    if (set->n_parts == 1)
        return plan_run(set->plans[0], step, feeds, fetches, err);
    struct blocked_thread blocked = {.done = {.done = wake, .computes = true},
                                     .lock = PTHREAD_MUTEX_INITIALIZER,
                                     .over = PTHREAD_COND_INITIALIZER};
    plan_set_start(set, step, feeds, fetches, &blocked.done);
    deferred_catch_up();
    pthread_mutex_lock(&blocked.lock);
    while (!blocked.is_over)
        pthread_cond_wait(&blocked.over, &blocked.lock);
    pthread_mutex_unlock(&blocked.lock);
    pthread_cond_destroy(&blocked.over);
    pthread_mutex_destroy(&blocked.lock);
    if (blocked.err.code)
        *err = blocked.err;
    return blocked.err.code;
}
