/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/session/session.h"

#include <string.h>

#include "base/container_of.h"
#include "base/memory.h"
#include "base/vec.h"
#include "exec/device/arenas.h"
#include "exec/step/step.h"

#define PLANS_MAX 16 /* that are cached */

struct plan_cache_entry {
    struct str key; /* feeds with types and shapes, fetches, targets, as bytes */
    struct plan_set *set;
    uint64_t last_used;
    uint64_t uses;
    /* Steps that run it now, and session_plans, for ever: it stays. Incremented only under the
     * lock. */
    atomic_int users;
};

struct session {
    const struct graph *graph;
    struct session_options options;
    struct variable_store *own_variables;
    pthread_mutex_t making; /* held while a plan is made; taken before `lock` */
    pthread_mutex_t lock;   /* guards the members below */
    VEC(struct plan_cache_entry *) plans;
    struct str key; /* of the call that is looked up */
    uint64_t clock;
    uint64_t last_miss; /* hash of the last key that had no plan while the cache was full */
};

struct session *session_new(const struct graph *graph, const struct session_options *options)
{
    struct session *session = mem_alloc(sizeof *session);
    session->graph = graph;
    session->options = *options;
    session->options.plan.arenas = arenas_new();
    if (!options->plan.variables)
        session->options.plan.variables = session->own_variables = variable_store_new();
    pthread_mutex_init(&session->making, NULL);
    pthread_mutex_init(&session->lock, NULL);
    return session;
}

static void cached_free(struct plan_cache_entry *c)
{
    plan_set_free(c->set);
    str_release(&c->key);
    mem_free(c);
}

void session_free(struct session *session)
{
    if (!session)
        return;
    for (size_t i = 0; i < session->plans.n; i++)
        cached_free(session->plans.items[i]);
    vec_release(&session->plans);
    arenas_free(session->options.plan.arenas);
    str_release(&session->key);
    variable_store_free(session->own_variables);
    pthread_mutex_destroy(&session->making);
    pthread_mutex_destroy(&session->lock);
    mem_free(session);
}

struct variable_store *session_variables(struct session *session)
{
    return session->options.plan.variables;
}

static void make_key(struct str *key, const struct plan_request *call)
{
    int counts[] = {call->n_feeds, call->n_fetches, call->n_targets, call->order != NULL};
    str_clear(key);
    str_append_bytes(key, counts, sizeof counts);
    for (int i = 0; i < call->n_feeds; i++) {
        const struct shape *shape = &call->feed_values[i].shape;
        str_append_bytes(key, &call->feeds[i], sizeof call->feeds[i]);
        str_append_bytes(key, &call->feed_values[i].type, sizeof call->feed_values[i].type);
        str_append_bytes(key, &shape->rank, sizeof shape->rank);
        if (shape->rank > 0)
            str_append_bytes(key, shape->dims, (size_t)shape->rank * sizeof *shape->dims);
    }
    str_append_bytes(key, call->fetches, (size_t)call->n_fetches * sizeof *call->fetches);
    str_append_bytes(key, call->targets, (size_t)call->n_targets * sizeof *call->targets);
    if (call->order)
        str_append_bytes(key, call->order->items, call->order->n * sizeof *call->order->items);
}

static struct plan_cache_entry *hold_plan(struct session *session, struct plan_cache_entry *c)
{
    c->users++;
    c->uses++;
    c->last_used = ++session->clock;
    return c;
}

/* Makes a plan with one user. `making` is held, so that nobody else adds a plan; `lock` is not, so
 * that others can run existing plans meanwhile. */
static struct plan_cache_entry *make(struct session *session, const struct plan_request *call,
                                     const struct step *step, struct error *err)
{
    struct plan_cache_entry *c = mem_alloc(sizeof *c);
    make_key(&c->key, call);
    struct session_options options = session->options;
    /* A step that is cancelled by step_cancel ends alone: the plan is still made, for the next. */
    if (step)
        options.plan.step = step;
    if (plan_set_new(session->graph, &options, call, &c->set, err)) {
        cached_free(c);
        return NULL;
    }
    /* A call that was made once, such as initialization, is seldom made again when something else
     * begins: the memory of its step would stay as long as the session. */
    VEC(struct plan_set *) once = VEC_INIT;
    pthread_mutex_lock(&session->lock);
    vec_each(at, &session->plans) {
        if ((*at)->uses == 1 && !(*at)->users)
            vec_push(&once, (*at)->set);
    }
    pthread_mutex_unlock(&session->lock);
    for (size_t i = 0; i < once.n; i++) /* no plan goes away, as `making` is held */
        plan_set_trim(once.items[i]);
    if (once.n)
        mem_trim();
    vec_release(&once);
    pthread_mutex_lock(&session->lock);
    struct plan_cache_entry **oldest = NULL; /* the least recently used that nobody runs */
    vec_each(at, &session->plans) {
        if (!(*at)->users && (!oldest || (*at)->last_used < (*oldest)->last_used))
            oldest = at;
    }
    if (oldest && session->plans.n >= PLANS_MAX) {
        cached_free(*oldest);
        *oldest = vec_pop(&session->plans);
    }
    vec_push(&session->plans, hold_plan(session, c));
    pthread_mutex_unlock(&session->lock);
    return c;
}

/* Returns the plan with one more user; NULL: it must be made. */
static struct plan_cache_entry *acquire_planned(struct session *session,
                                                const struct plan_request *call)
{
    pthread_mutex_lock(&session->lock);
    make_key(&session->key, call);
    struct plan_cache_entry *c = NULL;
    for (size_t i = 0; i < session->plans.n && !c; i++) {
        const struct str *key = &session->plans.items[i]->key;
        if (key->n == session->key.n && !memcmp(key->data, session->key.data, key->n))
            c = hold_plan(session, session->plans.items[i]);
    }
    pthread_mutex_unlock(&session->lock);
    return c;
}

static void return_plan(struct plan_cache_entry *c)
{
    atomic_fetch_sub(&c->users, 1);
}

/* As acquire, for a plan that serves all shapes: its feeds have the shapes that the graph gives
 * them. NULL: there can be none. */
static struct plan_cache_entry *
acquire_general(struct session *session, const struct plan_request *call, const struct step *step)
{
    struct error ignored = ERROR_INIT;
    struct plan_request general = *call;
    struct tensor *values = mem_array((size_t)call->n_feeds + 1, sizeof *values);
    for (int i = 0; i < call->n_feeds; i++) {
        const struct node_output *output = graph_output(session->graph, call->feeds[i]);
        values[i] = tensor_borrow(call->feed_values[i].type, &output->shape, NULL);
    }
    general.feed_values = values;
    struct plan_cache_entry *c = acquire_planned(session, &general);
    if (!c)
        c = make(session, &general, step, &ignored);
    mem_free(values);
    return c;
}

/* The plan for the call, with one more user. Beyond the limit of plans one serves all shapes. NULL
 * with the error set: ERR_CANCELLED if the step is cancelled while the plan is made. `step` may be
 * NULL. */
static struct plan_cache_entry *acquire(struct session *session, const struct plan_request *call,
                                        struct step *step, struct error *err)
{
    struct plan_cache_entry *c = acquire_planned(session, call);
    if (c)
        return c;
    error_clear(err); /* an earlier step's error is not this plan's */
    pthread_mutex_lock(&session->making);
    c = acquire_planned(session, call); /* another thread may have made it just now */
    /* A plan that serves all shapes is made once the cache is full; shapes that occur twice in a
     * row get a plan of their own. */
    bool general = false;
    pthread_mutex_lock(&session->lock);
    if (!c && session->plans.n >= PLANS_MAX) {
        make_key(&session->key, call);
        uint64_t hash = hash_bytes(session->key.data, session->key.n, 0);
        general = session->last_miss != hash && call->n_feeds > 0;
        session->last_miss = hash;
    }
    pthread_mutex_unlock(&session->lock);
    if (general)
        c = acquire_general(session, call, step);
    if (!c)
        c = make(session, call, step, err);
    pthread_mutex_unlock(&session->making);
    return c;
}

int session_run(struct session *session, const struct plan_request *call, struct step *step,
                struct tensor *fetches, struct error *err)
{
    struct plan_cache_entry *c = acquire(session, call, step, err);
    if (!c)
        return err->code;
    int code = plan_set_run(c->set, step, call->feed_values, fetches, err);
    return_plan(c);
    return code;
}

static void started_over(struct step_done *done, int code, const struct error *err)
{
    struct session_done *d = CONTAINER_OF(done, struct session_done, done);
    return_plan(d->plans);
    d->over(d, code, err);
}

static void start(struct plan_cache_entry *c, const struct plan_request *call, struct step *step,
                  struct tensor *fetches, struct session_done *done)
{
    done->done.done = started_over;
    done->plans = c;
    plan_set_start(c->set, step, call->feed_values, fetches, &done->done);
}

void session_start(struct session *session, const struct plan_request *call, struct step *step,
                   struct tensor *fetches, struct session_done *done)
{
    struct error err = ERROR_INIT;
    struct plan_cache_entry *c = acquire(session, call, step, &err);
    if (c)
        start(c, call, step, fetches, done);
    else
        done->over(done, err.code, &err);
}

bool session_start_planned(struct session *session, const struct plan_request *call,
                           struct step *step, struct tensor *fetches, struct session_done *done)
{
    struct plan_cache_entry *c = acquire_planned(session, call);
    if (c)
        start(c, call, step, fetches, done);
    return c != NULL;
}

int session_plans(struct session *session, const struct plan_request *call,
                  struct plan *const **plans, int *n, struct error *err)
{
    struct plan_cache_entry *c = acquire(session, call, NULL, err);
    if (!c)
        return err->code;
    *n = plan_set_plans(c->set, plans);
    return 0;
}

/* ---- repeated calls: their plan is looked up once ---- */

struct session_handle {
    struct session *session;
    struct plan_request call;
    struct plan_cache_entry *plans; /* of the last step; NULL: none */
    struct tensor *feeds;           /* their types and shapes there */
};

struct session_handle *session_prepare(struct session *session, const struct plan_request *call)
{
    struct session_handle *handle = mem_alloc(sizeof *handle);
    handle->session = session;
    handle->call = *call;
    handle->feeds = mem_array((size_t)call->n_feeds + 1, sizeof *handle->feeds);
    return handle;
}

int session_run_prepared(struct session_handle *handle, const struct tensor *feeds,
                         struct step *step, struct tensor *fetches, struct error *err)
{
    bool is_as_before = handle->plans != NULL;
    for (int i = 0; is_as_before && i < handle->call.n_feeds; i++)
        is_as_before = feeds[i].type == handle->feeds[i].type &&
                       shape_equal(&feeds[i].shape, &handle->feeds[i].shape);
    if (!is_as_before) {
        if (handle->plans)
            return_plan(handle->plans);
        handle->call.feed_values = feeds;
        handle->plans = acquire(handle->session, &handle->call, step, err);
        for (int i = 0; i < handle->call.n_feeds; i++)
            handle->feeds[i] = tensor_borrow(feeds[i].type, &feeds[i].shape, NULL);
    }
    if (!handle->plans)
        return err->code;
    return plan_set_run(handle->plans->set, step, feeds, fetches, err);
}

void session_handle_free(struct session_handle *handle)
{
    if (!handle)
        return;
    if (handle->plans)
        return_plan(handle->plans);
    mem_free(handle->feeds);
    mem_free(handle);
}
