/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps run in whichever thread can: what is cheap in the loop's, the rest, and making a plan, in
 * helpers. The thread that ends a step answers.
 */
#include "base/failpoint.h"
#include "base/memory.h"
#include "exec/step/step.h"
#include "exec/step/workers.h"
#include "transport/session/server_private.h"

/* ---- holding the session ---- */

static void last_is_over(void *argument)
{
    served_free(argument);
}

void served_retain(struct served_session *served)
{
    pthread_mutex_lock(&served->lock);
    served->n_holders++;
    pthread_mutex_unlock(&served->lock);
}

/* One holder less: a step (NULL: another), whose memory the next one takes. */
static void let_go(struct served_session *served, struct served_step *step)
{
    struct loop *loop = conns_loop(served->server->options.conns);
    pthread_mutex_lock(&served->lock);
    if (step) {
        step->next = served->spare;
        served->spare = step;
    }
    bool is_last = !--served->n_holders && served->life == SERVED_CLOSING;
    pthread_mutex_unlock(&served->lock);
    if (is_last) /* others may be about to look at it in the loop's thread */
        loop_post(loop, last_is_over, served);
}

void served_drop(struct served_session *served)
{
    let_go(served, NULL);
}

/* ---- a step ---- */

/* Steps hold the session, and their memory is used again: it is more than malloc's caches keep. */
static int reuse_step(struct served_session *served, struct served_step **step, struct error *err)
{
    pthread_mutex_lock(&served->lock);
    int n = served->n_holders;
    *step = n < SERVER_STEPS_MAX ? served->spare : NULL;
    if (*step)
        served->spare = (*step)->next;
    served->n_holders += n < SERVER_STEPS_MAX;
    pthread_mutex_unlock(&served->lock);
    if (n >= SERVER_STEPS_MAX)
        return error_set(err, ERR_RETRY, "step: %d run already", n);
    if (!*step)
        *step = mem_alloc(sizeof **step);
    **step = (struct served_step){.served = served};
    return 0;
}

static void step_release(struct served_step *step)
{
    if (atomic_fetch_sub(&step->holders, 1) > 1)
        return;
    for (size_t i = 0; i < step->n_feeds; i++)
        tensor_release(&step->feeds[i]);
    peer_release(step->asker);
    mem_free(step->feeds);
    mem_free(step->fetches);
    let_go(step->served, step);
}

static void release_step(struct served_step *step)
{
    struct served_session *served = step->served;
    pthread_mutex_lock(&served->lock);
    struct served_step **at = &served->steps;
    while (*at != step)
        at = &(*at)->next;
    *at = step->next;
    pthread_mutex_unlock(&served->lock);
}

static void reply_step(struct served_step *step)
{
    size_t n = step->handle->fetches.n;
    struct named_tensor *named = mem_array(n + 1, sizeof *named);
    for (size_t i = 0; i < n; i++)
        named[i] = (struct named_tensor){
            graph_node(step->served->graph, step->handle->fetches.items[i].node)->name,
            step->fetches[i]};
    reply_tensors(step->asker, step->query, named, (int)n);
    for (size_t i = 0; i < n; i++)
        tensor_release(&step->fetches[i]);
    mem_free(named);
}

/* The first cause is the rendezvous', if it was aborted from outside. */
static void step_over(struct session_done *done, int code, const struct error *err)
{
    struct served_step *step = (struct served_step *)done;
    struct error reason = ERROR_INIT;
    struct rendezvous *rendezvous = step->rendezvous;
    atomic_fetch_add(&step->served->server->steps, 1);
    if (!code)
        reply_step(step);
    else
        reply_error(step->asker, step->query,
                    rendezvous->aborted(rendezvous, &reason) ? &reason : err);
    rendezvous->free(rendezvous);
    release_step(step);
    step_release(step);
}

static int take_feeds(struct served_step *step, const struct query *query, struct error *err)
{
    size_t n = step->handle->feeds.n;
    if ((size_t)query->record->n_tensors != n)
        return error_set(err, ERR_PROTOCOL, "step: %d feeds instead of %zu",
                         query->record->n_tensors, n);
    step->feeds = mem_array(n + 1, sizeof *step->feeds);
    for (size_t i = 0; i < n; i++) {
        const struct tensor *value = &query->record->tensors[i].tensor;
        struct edge edge = step->handle->feeds.items[i];
        const struct node *node = graph_node(step->served->graph, edge.node);
        if (plan_check_fed(node, &node->outputs[edge.slot], value->type, &value->shape, err))
            return err->code;
        tensor_share(&step->feeds[step->n_feeds++], value);
    }
    return 0;
}

static int read_step(struct served_step *step, const struct query *query, struct error *err)
{
    const msgpack_object *header = &query->record->header;
    struct served_session *served = step->served;
    uint64_t handle, replica;
    if (!record_get_uint(header, "handle", &handle) || handle >= served->handles.n ||
        !record_get_uint(header, "step", &step->id) ||
        !record_get_int(header, "number", &step->step.number) ||
        !record_get_uint(header, "seed", &step->step.seed) ||
        !record_get_uint(header, "replica", &replica) || replica > UINT32_MAX ||
        !record_get_uint(header, "incarnation", &step->step.incarnation))
        return error_set(err, ERR_PROTOCOL, "step: a field is missing or wrong");
    step->handle = served->handles.items[handle];
    step->step.replica = (uint32_t)replica;
    step->step.session = served->id;
    if (take_feeds(step, query, err))
        return err->code;
    return exchange_begin(served->exchange, step->id, &step->rendezvous, err);
}

static struct session_call call_of(const struct served_step *step)
{
    const struct handle *handle = step->handle;
    return (struct session_call){.feeds = handle->feeds.items,
                                 .feed_values = step->feeds,
                                 .n_feeds = (int)handle->feeds.n,
                                 .fetches = handle->fetches.items,
                                 .n_fetches = (int)handle->fetches.n,
                                 .targets = handle->targets.items,
                                 .n_targets = (int)handle->targets.n,
                                 .order = &handle->order};
}

static void plan_and_start(void *argument)
{
    struct served_step *step = argument;
    struct session_call call = call_of(step);
    session_start(step->served->session, &call, &step->step, step->fetches, &step->done);
}

/* A plan is not made in the loop's thread. */
static void run(struct served_step *step)
{
    struct served_session *served = step->served;
    struct session_call call = call_of(step);
    step->step.rendezvous = step->rendezvous;
    step->fetches = mem_array(step->handle->fetches.n + 1, sizeof *step->fetches);
    pthread_mutex_lock(&served->lock);
    step->next = served->steps;
    served->steps = step;
    pthread_mutex_unlock(&served->lock);
    step->done.over = step_over;
    if (!session_start_planned(served->session, &call, &step->step, step->fetches, &step->done) &&
        !workers_submit(1, plan_and_start, step))
        plan_and_start(step);
}

void server_verb_step(void *context, const struct query *query)
{
    struct served_session *served = server_find(context, query, SERVED_ASKED);
    struct error err = ERROR_INIT;
    if (!served)
        return;
    struct served_step *step;
    if (reuse_step(served, &step, &err)) {
        reply_error(query->peer, query->id, &err);
        return;
    }
    step->query = query->id;
    step->asker = peer_retain(query->peer);
    atomic_init(&step->holders, 1);
    int code = read_step(step, query, &err);
    if (!code && step->step.number && FAILPOINT("server.step"))
        code = error_set(&err, ERR_RETRY, "failpoint server.step");
    if (!code) {
        run(step);
        return;
    }
    reply_error(query->peer, query->id, &err);
    step_release(step);
}

/* ---- cancel ---- */

/* Held; NULL: it is over. */
static struct served_step *hold_step(struct served_session *served, uint64_t id)
{
    pthread_mutex_lock(&served->lock);
    struct served_step *step = served->steps;
    while (step && step->id != id)
        step = step->next;
    if (step)
        atomic_fetch_add(&step->holders, 1);
    pthread_mutex_unlock(&served->lock);
    return step;
}

void server_verb_cancel(void *context, const struct query *query)
{
    struct served_session *served = server_find(context, query, SERVED_ASKED);
    struct error why = ERROR_INIT;
    const char *text = record_text(&query->record->header, "text");
    int64_t code = ERR_CANCELLED;
    uint64_t id = 0;
    if (!served)
        return;
    record_get_uint(&query->record->header, "step", &id);
    record_get_int(&query->record->header, "code", &code);
    error_set(&why, code > 0 && code < 256 ? (int)code : ERR_CANCELLED, "%s",
              text ? text : "cancelled");
    struct served_step *step = hold_step(served, id);
    if (step) {
        step_cancel(&step->step, &why);
        step_release(step);
    } else {
        exchange_forget(served->exchange, id); /* its part is over, but others wanted its values */
    }
    reply_done(query->peer, query->id);
}

void served_cancel_all(struct served_session *served, const struct error *why)
{
    VEC(struct served_step *) all = VEC_INIT;
    pthread_mutex_lock(&served->lock);
    for (struct served_step *step = served->steps; step; step = step->next) {
        atomic_fetch_add(&step->holders, 1);
        vec_push(&all, step);
    }
    pthread_mutex_unlock(&served->lock);
    for (size_t i = 0; i < all.n; i++) {
        step_cancel(&all.items[i]->step, why);
        step_release(all.items[i]);
    }
    vec_release(&all);
}
