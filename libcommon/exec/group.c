/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/group.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "base/memory.h"
#include "exec/plan_internal.h"
#include "exec/rendezvous.h"
#include "exec/step.h"
#include "graph/device_name.h"
#include "graph/join.h"

struct part {
    struct plan *plan;
    struct device *device;
    VEC(struct plan_feed) feeds;
    VEC(struct edge) fetches;
    VEC(int) targets;
    VEC(int) feed_of; /* by feed, by fetch of the plan: which one of the request */
    VEC(int) fetch_of;
};

struct group {
    struct part *parts;
    struct plan **plans; /* of the parts */
    int n_parts, n_fetches;
};

struct split {
    const struct graph *graph;
    const struct group_options *options;
    const struct plan_request *request;
    struct part *parts; /* by device */
    char *needed;       /* by node */
    VEC(int) todo;
    struct error *err;
};

/* ---- the request, divided ---- */

static struct part *part_of(struct split *s, int id)
{
    const struct node *node = graph_node(s->graph, id);
    struct device_name name;
    if (device_name_parse(&name, node->assigned, s->err))
        return NULL;
    for (int i = 0; i < s->options->n_devices; i++) {
        const struct device *device = s->options->devices[i];
        if (!strcmp(device->type, name.type) && device->index == name.index)
            return &s->parts[i];
    }
    error_set(s->err, ERR_CONFIG, "%s: there is no device '%s' here", node_text(node),
              node->assigned);
    return NULL;
}

static bool is_fed(const struct plan_request *request, struct edge edge)
{
    for (int i = 0; i < request->n_feeds; i++)
        if (request->feeds[i].edge.node == edge.node && request->feeds[i].edge.slot == edge.slot)
            return true;
    return false;
}

static void need(struct split *s, int node)
{
    if (!s->needed[node]) {
        s->needed[node] = 1;
        vec_push(&s->todo, node);
    }
}

/* A Recv that is needed makes its Send a target of the part that has it. */
static int mark(struct split *s)
{
    while (s->todo.n) {
        const struct node *node = graph_node(s->graph, vec_pop(&s->todo));
        const struct node *send = join_send_of(s->graph, node);
        struct part *part = send && !s->needed[send->id] ? part_of(s, send->id) : NULL;
        for (int i = 0; i < node->n_inputs; i++)
            if (!is_fed(s->request, node->inputs[i]))
                need(s, node->inputs[i].node);
        for (int i = 0; i < node->n_controls; i++)
            need(s, node->controls[i]);
        if (s->err->code)
            return s->err->code;
        if (part) {
            vec_push(&part->targets, send->id);
            need(s, send->id);
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
        need(s, request->targets[i]);
    }
    for (int i = 0; i < request->n_fetches; i++) {
        if (!(part = part_of(s, request->fetches[i].node)))
            return s->err->code;
        vec_push(&part->fetches, request->fetches[i]);
        vec_push(&part->fetch_of, i);
        if (!is_fed(request, request->fetches[i]))
            need(s, request->fetches[i].node);
    }
    for (int i = 0; i < request->n_feeds; i++) {
        if (!(part = part_of(s, request->feeds[i].edge.node)))
            return s->err->code;
        vec_push(&part->feeds, request->feeds[i]);
        vec_push(&part->feed_of, i);
    }
    return mark(s);
}

static int make_plan(const struct split *s, struct part *part, struct error *err)
{
    struct plan_options options = s->options->plan;
    struct plan_request request = {part->feeds.items,    (int)part->feeds.n,  part->fetches.items,
                                   (int)part->fetches.n, part->targets.items, (int)part->targets.n};
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
static int make_plans(struct split *s, struct group *group)
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
        group->parts[group->n_parts++] = part;
    }
    for (int i = 0; i < group->n_parts; i++) {
        if (make_plan(s, &group->parts[i], s->err))
            return s->err->code;
        group->plans[i] = group->parts[i].plan;
    }
    return 0;
}

static int group_make(struct group *group, const struct graph *graph,
                      const struct group_options *options, const struct plan_request *request,
                      struct error *err)
{
    struct error first = ERROR_INIT;
    struct split s = {.graph = graph,
                      .options = options,
                      .request = request,
                      .parts = group->parts,
                      .err = &first};
    s.needed = mem_alloc(graph->nodes.n + 1);
    if (divide(&s)) /* only then some of the parts are filled and none is counted */
        for (int i = 0; i < options->n_devices; i++)
            part_release(&group->parts[i]);
    else
        make_plans(&s, group);
    vec_release(&s.todo);
    mem_free(s.needed);
    if (first.code)
        *err = first;
    return first.code;
}

int group_new(const struct graph *graph, const struct group_options *options,
              const struct plan_request *request, struct group **result, struct error *err)
{
    struct group *group = mem_alloc(sizeof *group);
    size_t n = options->n_devices > 0 ? (size_t)options->n_devices : 1;
    group->parts = mem_array(n, sizeof *group->parts);
    group->plans = mem_array(n, sizeof *group->plans);
    group->n_fetches = request->n_fetches;
    int code = 0;
    if (options->n_devices > 0) {
        code = group_make(group, graph, options, request, err);
    } else {
        code = plan_new(graph, &options->plan, request, &group->plans[0], err);
        group->parts[0].plan = group->plans[0];
        group->n_parts = 1;
    }
    if (code) {
        group_free(group);
        group = NULL;
    }
    *result = group;
    return code;
}

void group_free(struct group *group)
{
    if (!group)
        return;
    for (int i = 0; i < group->n_parts; i++)
        part_release(&group->parts[i]);
    mem_free(group->parts);
    mem_free(group->plans);
    mem_free(group);
}

int group_plans(const struct group *group, struct plan *const **plans)
{
    *plans = group->plans;
    return group->n_parts;
}

/* ---- a step ---- */

struct part_run {
    const struct part *part;
    struct step *step;
    struct tensor *feeds, *fetches;
    pthread_t thread;
    bool started;
    int code;
    struct error err;
};

static void run_part(struct part_run *r)
{
    r->code = plan_run_part(r->part->plan, r->step, r->feeds, r->fetches, &r->err);
    if (r->code)
        r->step->rendezvous->abort(r->step->rendezvous, &r->err);
}

static void *run_thread(void *argument)
{
    struct part_run *r = argument;
    struct device *device = r->part->device;
    if (device->enter_thread)
        device->enter_thread(device, device->threads);
    run_part(r);
    return NULL;
}

static void start(struct part_run *r)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are for the thread that waits for them */
    r->started = !pthread_create(&r->thread, NULL, run_thread, r);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (r->started)
        return;
    r->code = error_set(&r->err, ERR_OS, "cannot start a thread for a device");
    r->step->rendezvous->abort(r->step->rendezvous, &r->err);
}

static void prepare(struct part_run *r, const struct part *part, struct step *step,
                    const struct tensor *feeds)
{
    *r = (struct part_run){.part = part, .step = step};
    r->feeds = mem_array(part->feeds.n + 1, sizeof *r->feeds);
    r->fetches = mem_array(part->fetches.n + 1, sizeof *r->fetches);
    for (size_t i = 0; i < part->feeds.n; i++)
        r->feeds[i] = feeds[part->feed_of.items[i]];
}

static void collect(struct part_run *r, struct tensor *fetches, bool failed)
{
    for (size_t i = 0; i < r->part->fetches.n; i++) {
        if (!failed)
            fetches[r->part->fetch_of.items[i]] = r->fetches[i];
        else if (!r->code)
            tensor_release(&r->fetches[i]);
    }
    mem_free(r->feeds);
    mem_free(r->fetches);
}

static int run_parts(struct group *group, struct part_run *runs, struct step *step,
                     struct error *err)
{
    for (int i = 1; i < group->n_parts; i++)
        start(&runs[i]);
    if (group->n_parts)
        run_part(&runs[0]);
    for (int i = 1; i < group->n_parts; i++)
        if (runs[i].started)
            pthread_join(runs[i].thread, NULL);
    step->rendezvous->aborted(step->rendezvous, err);
    return err->code;
}

int group_run(struct group *group, struct step *step, const struct tensor *feeds,
              struct tensor *fetches, struct error *err)
{
    if (group->n_parts == 1)
        return plan_run(group->plans[0], step, feeds, fetches, err);
    struct part_run *runs = mem_array((size_t)group->n_parts + 1, sizeof *runs);
    struct rendezvous *own = step->rendezvous ? NULL : rendezvous_local_new();
    struct error reason = ERROR_INIT;
    if (group->n_fetches)
        memset(fetches, 0, (size_t)group->n_fetches * sizeof *fetches);
    if (own)
        step->rendezvous = own;
    for (int i = 0; i < group->n_parts; i++)
        prepare(&runs[i], &group->parts[i], step, feeds);
    run_parts(group, runs, step, &reason);
    for (int i = 0; i < group->n_parts; i++)
        collect(&runs[i], fetches, reason.code != 0);
    if (own) {
        own->free(own);
        step->rendezvous = NULL;
    }
    step_end(step);
    mem_free(runs);
    if (reason.code)
        *err = reason;
    return reason.code;
}

struct group_step {
    struct group *group;
    struct step *step;
    const struct tensor *feeds;
    struct tensor *fetches;
    struct step_done *done;
};

static void *run_group(void *argument)
{
    struct group_step s = *(struct group_step *)argument;
    struct error err = ERROR_INIT;
    mem_free(argument);
    int code = group_run(s.group, s.step, s.feeds, s.fetches, &err);
    s.done->done(s.done, code, &err);
    return NULL;
}

void group_start(struct group *group, struct step *step, const struct tensor *feeds,
                 struct tensor *fetches, struct step_done *done)
{
    struct group_step *s = mem_alloc(sizeof *s);
    struct error err = ERROR_INIT;
    pthread_t thread;
    sigset_t all, old;
    *s = (struct group_step){group, step, feeds, fetches, done};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool started = !pthread_create(&thread, NULL, run_group, s);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (started) {
        pthread_detach(thread);
        return;
    }
    mem_free(s);
    error_set(&err, ERR_OS, "cannot start a thread for a step");
    done->done(done, err.code, &err);
}
