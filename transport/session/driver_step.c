/* SPDX-License-Identifier: Apache-2.0
 *
 * A step of a driver session. All parts are over before it is, whatever happens.
 */
#include <stdatomic.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/memory.h"
#include "base/time.h"
#include "exec/step/step.h"
#include "transport/session/driver_private.h"

struct remote_run {
    struct call call; /* first */
    struct driver_step *step;
    const struct remote_task *task;
    const struct share *share;
};

struct driver_step {
    struct session_done local; /* first */
    struct driver_session *session;
    const struct session_call *call;
    struct step *step;
    struct rendezvous *rendezvous;
    const struct share *own;
    struct tensor *feeds, *own_fetches, *fetches; /* of what runs here; of all */
    struct remote_run *runs;                      /* by remote task; without a step: not asked */
    double cancelled_at;                          /* by step->cancelled; seen by who waits */

    atomic_int waiting; /* parts, and others who look at it; the last one ends it */
    bool local_runs;    /* session->lock guards this and what follows */
    bool begun;         /* all parts were started */
    struct error first;
};

/* ---- failing ---- */

static void cancel_replied(struct call *call, const struct record *reply,
                           const struct error *failure)
{
    (void)reply, (void)failure; /* the step's own reply tells how it went */
    peer_release(call->peer);
    mem_free(call);
}

static void cancel_all(struct driver_step *step, bool local_runs)
{
    struct driver_session *session = step->session;
    step->rendezvous->abort(step->rendezvous, &step->first);
    if (local_runs)
        step_cancel(step->step, &step->first);
    for (size_t i = 0; i < session->tasks.n; i++)
        if (step->runs[i].step) {
            /* parts that are over, too: they may have announced what nobody takes now */
            struct call *call = mem_alloc(sizeof *call);
            struct error ignored = ERROR_INIT;
            call->replied = cancel_replied;
            call->peer = peer_retain(step->runs[i].task->peer);
            msgpack_packer *packer = conns_call_begin(
                session->options.conns, step->runs[i].task->peer, "cancel", 4, call, &ignored);
            if (packer) {
                pack_key_uint(packer, "session", session->id);
                pack_key_uint(packer, "step", session->last_step);
                pack_key_int(packer, "code", step->first.code);
                pack_key_text(packer, "text", step->first.text);
            }
            if (!packer || conns_call(session->options.conns, call, NULL, 0, &ignored))
                cancel_replied(call, NULL, &ignored);
        }
}

/* The first failure ends the other parts; before all were started this is left to `begin`. The
 * caller is counted in step->waiting. */
static void fail(struct driver_step *step, const struct error *err)
{
    struct driver_session *session = step->session;
    pthread_mutex_lock(&session->lock);
    bool is_first = !step->first.code, begun = step->begun, local_runs = step->local_runs;
    if (is_first)
        step->first = *err;
    pthread_mutex_unlock(&session->lock);
    if (is_first && begun)
        cancel_all(step, local_runs);
}

/* With the lock: one part, or one who looked on, is over. The step may be gone when the lock is
 * released: after the last one nobody finds it any more. */
static void part_is_over(struct driver_step *step)
{
    if (!--step->waiting)
        step->session->running = NULL;
    driver_changed(step->session);
}

static void count_down(struct driver_step *step)
{
    struct driver_session *session = step->session;
    pthread_mutex_lock(&session->lock);
    part_is_over(step);
    pthread_mutex_unlock(&session->lock);
}

/* The step that runs now, counted; NULL: none. */
static struct driver_step *running(struct driver_session *session)
{
    pthread_mutex_lock(&session->lock);
    struct driver_step *step = session->running;
    if (step)
        step->waiting++;
    pthread_mutex_unlock(&session->lock);
    return step;
}

void driver_step_lost(struct driver_session *session, const struct error *why)
{
    struct driver_step *step = running(session);
    if (!step)
        return;
    fail(step, why);
    count_down(step);
}

void driver_session_cancel(struct driver_session *session, const struct error *why)
{
    pthread_mutex_lock(&session->lock);
    if (!session->cancelled.code)
        session->cancelled = *why;
    pthread_mutex_unlock(&session->lock);
    driver_step_lost(session, why);
}

/* ---- what runs elsewhere ---- */

static int take_fetches(const struct remote_run *run, const struct record *reply, struct error *err)
{
    const struct driver_step *step = run->step;
    const struct graph *graph = step->session->options.graph;
    if ((size_t)reply->n_tensors != run->share->fetches.n)
        return error_set(err, ERR_PROTOCOL, "%s: sends %d tensors instead of %zu", run->task->name,
                         reply->n_tensors, run->share->fetches.n);
    for (int i = 0; i < reply->n_tensors; i++) {
        int which = run->share->fetches.items[i];
        struct edge edge = step->call->fetches[which];
        const struct tensor *value = &reply->tensors[i].tensor;
        enum dtype type = graph_node(graph, edge.node)->outputs[edge.slot].type;
        if (value->type != type)
            return error_set(err, ERR_PROTOCOL, "%s: sends %s for '%s'", run->task->name,
                             dtype_name(value->type), graph_node(graph, edge.node)->name);
        tensor_share(&step->fetches[which], value);
    }
    return 0;
}

static void remote_over(struct call *call, const struct record *reply, const struct error *failure)
{
    struct remote_run *run = (struct remote_run *)call;
    struct driver_step *step = run->step;
    struct error err = ERROR_INIT;
    bool fails = step->step->number && FAILPOINT("driver.reply");
    if (failure)
        err = *failure;
    else if (fails)
        error_set(&err, ERR_UNAVAILABLE, "failpoint driver.reply");
    else
        take_fetches(run, reply, &err);
    if (err.code)
        fail(step, &err);
    count_down(step);
}

static void start_remote(struct remote_run *run, uint64_t handle)
{
    struct driver_step *step = run->step;
    struct conns *conns = step->session->options.conns;
    struct error err = ERROR_INIT;
    size_t n = run->share->feeds.n;
    struct named_tensor *feeds = mem_array(n + 1, sizeof *feeds);
    for (size_t i = 0; i < n; i++)
        feeds[i] = (struct named_tensor){"", step->call->feed_values[run->share->feeds.items[i]]};
    run->call.replied = remote_over;
    msgpack_packer *packer = conns_call_begin(conns, run->task->peer, "step", 7, &run->call, &err);
    if (packer) {
        const struct driver_session *session = step->session;
        pack_key_uint(packer, "session", session->id);
        pack_key_uint(packer, "handle", handle);
        pack_key_uint(packer, "step", session->last_step);
        pack_key_int(packer, "number", step->step->number);
        pack_key_uint(packer, "seed", step->step->seed);
        pack_key_uint(packer, "replica", step->step->replica);
        pack_key_uint(packer, "incarnation", step->step->incarnation);
        conns_call(conns, &run->call, feeds, (int)n, &err);
    }
    mem_free(feeds);
    if (err.code)
        remote_over(&run->call, NULL, &err);
}

/* ---- what runs here ---- */

static void local_over(struct session_done *done, int code, const struct error *err)
{
    struct driver_step *step = (struct driver_step *)done;
    struct driver_session *session = step->session;
    struct error reason = ERROR_INIT;
    for (size_t i = 0; !code && i < step->own->fetches.n; i++)
        step->fetches[step->own->fetches.items[i]] = step->own_fetches[i];
    pthread_mutex_lock(&session->lock);
    step->local_runs = false;
    if (!code)
        part_is_over(step);
    pthread_mutex_unlock(&session->lock);
    if (!code)
        return;
    fail(step, step->rendezvous->aborted(step->rendezvous, &reason) ? &reason : err);
    count_down(step);
}

/* ---- all of it ---- */

/* Counts all parts before the first is started: those that are over at once end nothing. */
static void begin(struct driver_step *step, const struct program *program)
{
    struct driver_session *session = step->session;
    atomic_init(&step->waiting, 1);
    for (size_t i = 0; i < session->tasks.n; i++) {
        const struct remote_task *task = &session->tasks.items[i];
        const struct share *share = &program->shares[task->task];
        if (share_is_idle(share))
            continue;
        step->runs[i].step = step;
        step->runs[i].task = task;
        step->runs[i].share = share;
        step->waiting++;
    }
    step->local_runs = step->own && !share_is_idle(step->own);
    step->waiting += step->local_runs;
    bool local = step->local_runs;
    pthread_mutex_lock(&session->lock);
    session->running = step;
    step->first = session->cancelled; /* between two steps, perhaps */
    pthread_mutex_unlock(&session->lock);
    for (size_t i = 0; i < session->tasks.n; i++)
        if (step->runs[i].step)
            start_remote(&step->runs[i], program->handles[i]);
    if (local) {
        for (size_t i = 0; i < step->own->feeds.n; i++)
            step->feeds[i] = step->call->feed_values[step->own->feeds.items[i]];
        struct session_call call = {.feeds = program->feeds.items,
                                    .feed_values = step->feeds,
                                    .n_feeds = (int)program->feeds.n,
                                    .fetches = program->fetches.items,
                                    .n_fetches = (int)program->fetches.n,
                                    .targets = program->targets.items,
                                    .n_targets = (int)program->targets.n,
                                    .order = &program->own_order};
        step->step->rendezvous = step->rendezvous;
        step->local.over = local_over;
        session_start(session->local, &call, step->step, step->own_fetches, &step->local);
    }
    pthread_mutex_lock(&session->lock);
    step->begun = true;
    bool failed = step->first.code != 0;
    local = step->local_runs;
    if (!failed)
        part_is_over(step);
    pthread_mutex_unlock(&session->lock);
    if (!failed)
        return;
    cancel_all(step, local);
    count_down(step);
}

/* Asked after every event, of which there are some a second: pings, at least. */
static bool step_is_answered(void *context)
{
    struct driver_step *step = context;
    struct error why = ERROR_INIT;
    if (step->cancelled_at > 0 && time_now() > step->cancelled_at + DRIVER_PATIENCE)
        driver_cut_off(step->session);
    if (step->cancelled_at <= 0 && step->session->options.pumps &&
        atomic_load(&step->step->cancelled)) {
        step->cancelled_at = time_now();
        error_set(&why, ERR_CANCELLED, "the step was cancelled");
        fail(step, &why);
    }
    return !atomic_load(&step->waiting);
}

int driver_session_run(struct driver_session *session, const struct session_call *call,
                       struct step *step, struct tensor *fetches, struct error *err)
{
    session->step = step;
    const struct program *program = driver_program(session, call, err);
    session->step = NULL;
    struct driver_step s = {.session = session, .call = call, .step = step, .fetches = fetches};
    if (!program)
        return atomic_load(&step->cancelled)
                   ? error_set(err, ERR_CANCELLED, "cancelled before all tasks had answered")
                   : err->code;
    if (step->number && FAILPOINT("driver.step"))
        return error_set(err, ERR_UNAVAILABLE, "failpoint driver.step");
    int code = exchange_begin(session->exchange, ++session->last_step, &s.rendezvous, err);
    if (code)
        return code;
    if (call->n_fetches)
        memset(fetches, 0, (size_t)call->n_fetches * sizeof *fetches);
    step->session = session->id;
    step->incarnation = session->incarnation;
    step->replica = session->options.replica;
    s.own = session->own >= 0 ? &program->shares[session->own] : NULL;
    s.feeds = mem_array((s.own ? s.own->feeds.n : 0) + 1, sizeof *s.feeds);
    s.own_fetches = mem_array((s.own ? s.own->fetches.n : 0) + 1, sizeof *s.own_fetches);
    s.runs = mem_array(session->tasks.n + 1, sizeof *s.runs);
    begin(&s, program);
    driver_wait(session, step_is_answered, &s);
    s.rendezvous->free(s.rendezvous);
    step->rendezvous = NULL;
    for (int i = 0; s.first.code && i < call->n_fetches; i++)
        tensor_release(&fetches[i]);
    mem_free(s.feeds);
    mem_free(s.own_fetches);
    mem_free(s.runs);
    if (s.first.code)
        *err = s.first;
    return s.first.code;
}
