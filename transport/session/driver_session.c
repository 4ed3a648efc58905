/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/session/driver_session.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/random.h>

#include "base/container_of.h"
#include "base/failpoint.h"
#include "base/memory.h"
#include "base/time.h"
#include "exec/run/divide.h"
#include "exec/step/step.h"
#include "graph/graph_io.h"
#include "graph/task.h"
#include "transport/job/member.h"
#include "transport/value/inquiry.h"

#define LOOK_SECONDS 0.5 /* between checks whether to give up */
/* Seconds until a stalled task is disconnected after a step was cancelled, as leases are long; and
 * until all replies must be there when the session is closed. */
#define PATIENCE 5.0

/* Another task of the session. */
struct remote_task {
    const char *name; /* first */
    struct driver_session *session;
    int task;          /* index in the table */
    struct peer *peer; /* held; NULL: not linked yet */
    bool is_open;      /* the task has opened the session */
    uint64_t origin;   /* of its variables (conns_origin) */
};

/* A request that was divided and registered. */
struct program {
    struct str key;                  /* feeds, fetches, targets, as bytes */
    struct share *shares;            /* by task of the table */
    uint64_t *handles;               /* by remote task, if its share is not idle */
    VEC(struct edge) feeds, fetches; /* of the part that runs here, in its own graph */
    VEC(int) targets;
    plan_order order, own_order; /* of the whole graph; of the part that runs here */
};

struct driver_session {
    struct driver_session_options options;
    uint64_t id, incarnation;
    struct task_table table;
    int own; /* index of the own task; -1: nothing runs here */
    struct graph *own_graph;
    struct session *local;
    struct value_exchange *exchange;
    VEC(struct remote_task) tasks;
    VEC(struct program *) programs;
    struct str key; /* of the request that is being looked up */
    uint64_t last_step;
    const struct step *step; /* whose program is being registered; NULL: none */
    struct conns_watcher watcher;

    pthread_mutex_t lock; /* guards the members below */
    pthread_cond_t changed;
    struct driver_step *running;
    bool is_unwatched;       /* no event of links comes any more */
    struct error dial_error; /* a task cannot be reached */
    struct error cancelled;  /* set: all steps fail with it */
};

struct remote_run {
    struct call call; /* first */
    struct driver_step *step;
    const struct remote_task *task;
    const struct share *share;
};

struct driver_step {
    struct session_done local; /* first */
    struct driver_session *session;
    const struct plan_request *call;
    struct step *step;
    struct rendezvous *rendezvous;
    const struct share *own;
    struct tensor *feeds, *own_fetches, *fetches; /* of the part that runs here; of all */
    struct remote_run *runs;                      /* by remote task; `step` NULL: not started */
    double cancelled_at;                          /* when the waiting thread saw step->cancelled */

    atomic_int waiting; /* parts, and other holders; the last one ends the step */
    bool local_runs;    /* from here on guarded by session->lock */
    bool begun;         /* all parts were started */
    struct error first;
};

/* ---- waiting ---- */

/* Returns whether the caller gives up before the session is open. */
static bool is_given_up(void *context)
{
    const struct driver_session *session = context;
    return session->options.given_up && session->options.given_up(session->options.context);
}

/* Closes the links to the session's tasks, and so ends all waits for a stalled task. Does so only
 * if the session pumps, as otherwise the links are not its own. */
static void cut_off(struct driver_session *session)
{
    struct error why = ERROR_INIT;
    struct link *link;
    error_set(&why, ERR_UNAVAILABLE, "%s has given up", session->options.task);
    for (size_t i = 0; session->options.pumps && i < session->tasks.n; i++)
        if ((link =
                 peers_find(conns_peers(session->options.conns), session->tasks.items[i].name))) {
            link_close(link, &why);
            link_release(link);
        }
}

static void nothing(void *argument)
{
    (void)argument;
}

/* Waits until the condition holds, which changes under the session's lock. `until` is called with
 * that lock, but without it if the caller pumps. */
static void wait_until(struct driver_session *session, bool (*until)(void *context), void *context)
{
    if (session->options.pumps)
        while (!loop_run_until(conns_loop(session->options.conns), until, context, LOOK_SECONDS))
            ;
    /* the thread that made it true holds the lock until it has released the session */
    pthread_mutex_lock(&session->lock);
    while (!session->options.pumps && !until(context)) {
        struct timespec soon = time_after(1); /* polls for giving up; other changes are signalled */
        pthread_cond_timedwait(&session->changed, &session->lock, &soon);
    }
    pthread_mutex_unlock(&session->lock);
}

/* Must be called after a change that wait_until waits for, with the lock held. */
static void changed(struct driver_session *session)
{
    struct loop *loop = conns_loop(session->options.conns);
    if (!session->options.pumps)
        pthread_cond_signal(&session->changed);
    else if (loop_is_elsewhere(loop))
        loop_post(loop, nothing, NULL);
}

/* ---- requests ---- */

/* Waits for all replies, as struct inquiry_wait says. Tasks that let it wait in vain may be
 * stalled: their links are closed. */
static int await_replies(struct driver_session *session, struct inquiry *inquiry, double seconds,
                         bool (*given_up)(void *session), struct error *err)
{
    const struct inquiry_wait wait = {session->options.pumps, seconds, given_up, session};
    double end = time_now() + seconds;
    int code = inquiry_finish(inquiry, &wait, err);
    if (code && ((given_up && given_up(session)) || (seconds > 0 && time_now() >= end)))
        cut_off(session);
    return code;
}

/* Tasks read the cluster as they would its file (server_private.h). */
static void pack_cluster(void *context, msgpack_packer *packer)
{
    const struct remote_task *task = context;
    struct str text = STR_INIT;
    vec_each(other, &task->session->options.cluster->tasks)
        str_printf(&text, "task %s %s\n", other->name, other->address);
    pack_key_text(packer, "cluster", str_text(&text));
    str_release(&text);
}

static void task_is_open(void *context, const char *name, const struct record *record)
{
    struct remote_task *task = context;
    (void)name;
    task->is_open = true;
    record_get_uint(&record->header, "origin", &task->origin);
}

/* Asks the task to take a graph, and the cluster. */
static int ask_with_graph(struct inquiry *inquiry, struct remote_task *task, const char *verb,
                          const struct graph *graph, struct error *err)
{
    struct stream_writer *writer = stream_writer_new_memory("tf-exec", 1);
    size_t n;
    int code = graph_write(writer, graph, err);
    if (!code)
        code = stream_finish(writer, err);
    if (!code) {
        void *data = (void *)(uintptr_t)stream_writer_bytes(writer, &n);
        struct shape shape = shape_vector((int64_t)n);
        const struct named_tensor bytes = {"graph", tensor_borrow(UINT8, &shape, data)};
        const struct task_request request = {.verb = verb,
                                             .session = task->session->id,
                                             .n_fields = 1,
                                             .pack = pack_cluster,
                                             .fields = task,
                                             .tensors = &bytes,
                                             .n_tensors = 1,
                                             .answered = task_is_open,
                                             .context = task};
        inquiry_ask(inquiry, task->peer, &request);
    }
    stream_writer_free(writer);
    return code;
}

int driver_session_ask(struct driver_session *session, int i, const struct task_request *request,
                       struct error *err)
{
    struct inquiry *inquiry = inquiry_new(session->options.conns);
    struct task_request own = *request;
    own.session = session->id;
    inquiry_ask(inquiry, session->tasks.items[i].peer, &own);
    return await_replies(session, inquiry, 0, NULL, err);
}

int driver_session_update(struct driver_session *session, int i, const struct graph *graph,
                          struct error *err)
{
    struct inquiry *inquiry = inquiry_new(session->options.conns);
    struct error own = ERROR_INIT;
    ask_with_graph(inquiry, &session->tasks.items[i], "update", graph, &own);
    int code = await_replies(session, inquiry, 0, NULL, err); /* which frees it in any case */
    if (own.code)
        *err = own;
    return own.code ? own.code : code;
}

int driver_session_tasks(const struct driver_session *session)
{
    return (int)session->tasks.n;
}

int driver_session_find(const struct driver_session *session, const char *name)
{
    size_t i = vec_find(&session->tasks, name);
    return i < session->tasks.n ? (int)i : -1;
}

/* ---- failure of a step ---- */

static void cancel_replied(struct call *call, const struct record *reply,
                           const struct error *failure)
{
    (void)reply, (void)failure; /* the step's own reply has the result */
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
            /* also parts that are over: they may have announced values that nobody takes now */
            struct call *call = mem_alloc(sizeof *call);
            struct conns *conns = session->options.conns;
            struct peer *peer = peer_retain(step->runs[i].task->peer);
            call->replied = cancel_replied;
            msgpack_packer *packer = conns_call_begin(conns, peer, "cancel", 4, call);
            if (!packer)
                continue;
            pack_key_uint(packer, "session", session->id);
            pack_key_uint(packer, "step", session->last_step);
            pack_key_int(packer, "code", step->first.code);
            pack_key_text(packer, "text", step->first.text);
            conns_call(conns, call, NULL, 0);
        }
}

/* The first failure ends the other parts; until all were started this is left to `begin`. The
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

/* With the lock: one part, or one holder, is done. The step may be gone when the lock is released:
 * after the last one nobody finds it any more. */
static void part_is_over(struct driver_step *step)
{
    if (!--step->waiting)
        step->session->running = NULL;
    changed(step->session);
}

static void count_down(struct driver_step *step)
{
    struct driver_session *session = step->session;
    pthread_mutex_lock(&session->lock);
    part_is_over(step);
    pthread_mutex_unlock(&session->lock);
}

/* Returns the current step, counted; NULL: none. */
static struct driver_step *running(struct driver_session *session)
{
    pthread_mutex_lock(&session->lock);
    struct driver_step *step = session->running;
    if (step)
        step->waiting++;
    pthread_mutex_unlock(&session->lock);
    return step;
}

/* Fails the current step. */
static void fail_running(struct driver_session *session, const struct error *why)
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
    fail_running(session, why);
}

/* ---- links: dialing, and their events; watchers run in the loop's thread ---- */

static struct driver_session *session_of(struct conns_watcher *watcher)
{
    return CONTAINER_OF(watcher, struct driver_session, watcher);
}

static struct remote_task *find_task(struct driver_session *session, const char *name)
{
    int i = driver_session_find(session, name);
    return i < 0 ? NULL : &session->tasks.items[i];
}

static void opened(struct conns_watcher *watcher, struct peer *peer)
{
    struct driver_session *session = session_of(watcher);
    struct remote_task *task = find_task(session, peer_task(peer));
    if (!task || task->peer)
        return;
    exchange_route(session->exchange, task->name, peer);
    pthread_mutex_lock(&session->lock);
    task->peer = peer_retain(peer);
    changed(session);
    pthread_mutex_unlock(&session->lock);
}

static void lost(struct conns_watcher *watcher, struct peer *peer, const struct error *why)
{
    struct driver_session *session = session_of(watcher);
    const struct remote_task *task = find_task(session, peer_task(peer));
    if (task && task->peer == peer)
        fail_running(session, why);
}

static void failed(struct conns_watcher *watcher, const char *name, const struct error *why)
{
    struct driver_session *session = session_of(watcher);
    const struct remote_task *task = find_task(session, name);
    if (!task || task->peer) /* the other side's connection is used */
        return;
    pthread_mutex_lock(&session->lock);
    if (!session->dial_error.code)
        session->dial_error = *why;
    changed(session);
    pthread_mutex_unlock(&session->lock);
}

/* Returns the address from the cluster; NULL: the cluster does not have the task. */
static const char *find_address(const struct driver_session *session, const char *name,
                                struct error *err)
{
    const struct cluster_task *task = member_find_task(session->options.cluster, name);
    if (!task)
        error_set(err, ERR_CONFIG, "the graph needs %s, which is not in the cluster", name);
    return task ? task->address : NULL;
}

/* Runs in the loop's thread, or while the loop does not run. */
static void dial_all(void *argument)
{
    struct driver_session *session = argument;
    session->watcher = (struct conns_watcher){.opened = opened, .lost = lost, .failed = failed};
    conns_watch(session->options.conns, &session->watcher);
    vec_each(task, &session->tasks) {
        struct error err = ERROR_INIT;
        struct peer *peer = conns_peer(session->options.conns, task->name);
        const char *address = find_address(session, task->name, &err);
        if (peer)
            opened(&session->watcher, peer);
        else if (!address || peers_connect(conns_peers(session->options.conns), task->name, address,
                                           session->options.timeout, &err))
            failed(&session->watcher, task->name, &err);
        peer_release(peer);
    }
}

static bool is_linked(void *context)
{
    struct driver_session *session = context;
    bool all = true;
    for (size_t i = 0; i < session->tasks.n; i++)
        all = all && session->tasks.items[i].peer;
    return all || session->dial_error.code || is_given_up(session);
}

static int dial(struct driver_session *session, struct error *err)
{
    if (session->options.pumps)
        dial_all(session);
    else
        loop_post(conns_loop(session->options.conns), dial_all, session);
    wait_until(session, is_linked, session);
    pthread_mutex_lock(&session->lock); /* the loop may just be setting dial_error */
    if (session->dial_error.code)
        *err = session->dial_error;
    else if (is_given_up(session))
        error_set(err, ERR_CANCELLED, "the session was given up");
    pthread_mutex_unlock(&session->lock);
    return err->code;
}

static void unwatch(void *argument)
{
    struct driver_session *session = argument;
    conns_unwatch(session->options.conns, &session->watcher);
    pthread_mutex_lock(&session->lock);
    session->is_unwatched = true;
    changed(session);
    pthread_mutex_unlock(&session->lock);
}

static bool is_unwatched(void *context)
{
    return ((struct driver_session *)context)->is_unwatched;
}

/* ---- opening ---- */

/* Opens all tasks at once, as tasks that exchange values wait for each other. */
static int open_tasks(struct driver_session *session, struct error *err)
{
    struct inquiry *inquiry = inquiry_new(session->options.conns);
    struct error own = ERROR_INIT;
    for (size_t i = 0; i < session->tasks.n && !own.code; i++) {
        struct remote_task *task = &session->tasks.items[i];
        struct graph *part = NULL;
        if (!task_graph(session->options.graph, &session->table, task->task, &part, &own))
            ask_with_graph(inquiry, task, "open", part, &own);
        graph_free(part);
    }
    int code = await_replies(session, inquiry, 0, is_given_up, err);
    if (own.code)
        *err = own;
    else if (code && is_given_up(session)) /* it closed the links itself */
        code = error_set(err, ERR_CANCELLED, "the session was given up");
    return own.code ? own.code : code;
}

/* Tasks that were not restored together would train on a mixture. */
static int check_origins(const struct driver_session *session, struct error *err)
{
    const struct remote_task *tasks = session->tasks.items;
    for (size_t i = 0; i < session->tasks.n; i++) {
        size_t first = 0, n = strcspn(tasks[i].name, ":") + 1; /* tasks of a job have the same
                                                                * prefix */
        while (strncmp(tasks[first].name, tasks[i].name, n) != 0)
            first++;
        if (tasks[first].origin != tasks[i].origin)
            return error_set(err, ERR_UNAVAILABLE,
                             "%s and %s were not restored together: all of them are to be started "
                             "again",
                             tasks[first].name, tasks[i].name);
    }
    return 0;
}

static int make_session(struct driver_session *session, struct error *err)
{
    const struct driver_session_options *options = &session->options;
    if (task_table_fill(&session->table, options->graph, err))
        return err->code;
    for (size_t i = 0; i < session->table.names.n; i++) {
        const char *name = session->table.names.items[i];
        if (!strcmp(name, options->task))
            session->own = (int)i;
        else if (!find_address(session, name, err))
            return err->code;
        else
            vec_push(&session->tasks, ((struct remote_task){name, session, (int)i, .peer = NULL}));
    }
    int code = session->own < 0 ? 0
                                : task_graph(options->graph, &session->table, session->own,
                                             &session->own_graph, err);
    if (code)
        return code;
    if (!session->own_graph)
        session->own_graph = graph_new(options->graph->registry);
    session->local = session_new(session->own_graph, &options->local);
    while (!session->exchange) {
        if (getrandom(&session->id, sizeof session->id, 0) != sizeof session->id)
            return error_set_errno(err, ERR_OS, "no random number for the session");
        session->exchange = exchange_open(conns_exchanges(options->conns), session->id,
                                          options->task, session->own_graph);
    }
    return 0;
}

int driver_session_open(const struct driver_session_options *options,
                        struct driver_session **result, struct error *err)
{
    struct driver_session *session = mem_alloc(sizeof *session);
    session->options = *options;
    session->own = -1;
    session->incarnation = peers_self(conns_peers(options->conns))->incarnation;
    pthread_mutex_init(&session->lock, NULL);
    time_cond_init(&session->changed);
    int code = make_session(session, err);
    if (!code)
        code = dial(session, err);
    if (!code)
        code = open_tasks(session, err);
    if (!code)
        code = check_origins(session, err);
    if (code) {
        driver_session_close(session);
        session = NULL;
    }
    *result = session;
    return code;
}

/* ---- programs: a request, divided among the tasks once and kept ---- */

static void program_free(struct program *program, size_t n_tasks)
{
    for (size_t i = 0; i < n_tasks; i++)
        share_release(&program->shares[i]);
    str_release(&program->key);
    vec_release(&program->feeds);
    vec_release(&program->fetches);
    vec_release(&program->targets);
    vec_release(&program->order);
    vec_release(&program->own_order);
    mem_free(program->shares);
    mem_free(program->handles);
    mem_free(program);
}

static plan_order order_of(const struct driver_session *session, const struct program *program,
                           int task)
{
    plan_order all = VEC_INIT;
    size_t n = 0;
    share_take_order(&program->shares[task], &program->order, &all);
    vec_each(place, &all)
        if (place->node < 0 || session->table.of_node[place->node] == task)
            all.items[n++] = *place;
    all.n = n;
    return all;
}

/* Returns the id, in the graph of what runs here, of a node of the whole graph. */
static int own_node(const struct driver_session *session, int node)
{
    return graph_find(session->own_graph, graph_node(session->options.graph, node)->name)->id;
}

static struct edge own_edge(const struct driver_session *session, struct edge edge)
{
    return (struct edge){own_node(session, edge.node), edge.slot};
}

/* Packs the edges with the indices `which`; with `edges` NULL, nodes. */
static void pack_edges(msgpack_packer *packer, const char *key, const struct graph *graph,
                       const struct edge *edges, const int *which, size_t n)
{
    pack_key_array(packer, key, n);
    for (size_t i = 0; i < n; i++) {
        struct str text = STR_INIT;
        graph_print_edge(&text, graph,
                         edges ? edges[which[i]] : (struct edge){which[i], CONTROL_SLOT});
        pack_text(packer, str_text(&text));
        str_release(&text);
    }
}

/* The registration of a program with a remote task. */
struct program_request {
    const struct remote_task *task;
    const struct plan_request *call;
    const struct program *program;
    uint64_t *handle;
};

static void pack_program(void *context, msgpack_packer *packer)
{
    const struct program_request *r = context;
    const struct plan_request *call = r->call;
    const struct graph *graph = r->task->session->options.graph;
    const struct share *share = &r->program->shares[r->task->task];
    plan_order order = order_of(r->task->session, r->program, r->task->task);
    pack_edges(packer, "feeds", graph, call->feeds, share->feeds.items, share->feeds.n);
    pack_edges(packer, "fetches", graph, call->fetches, share->fetches.items, share->fetches.n);
    pack_edges(packer, "targets", graph, NULL, share->targets.items, share->targets.n);
    pack_key_array(packer, "order", 5 * order.n); /* five fields each, in sequence */
    vec_each(place, &order) {
        pack_text(packer, place->node < 0 ? "" : graph_node(graph, place->node)->name);
        msgpack_pack_int(packer, place->input);
        msgpack_pack_int(packer, place->depth);
        msgpack_pack_int(packer, place->place);
        msgpack_pack_int(packer, place->is_copied);
    }
    vec_release(&order);
}

static void take_handle(void *context, const char *name, const struct record *record)
{
    const struct program_request *r = context;
    (void)name;
    if (!record_get_uint(&record->header, "handle", r->handle))
        *r->handle = UINT64_MAX; /* the task will refuse it */
}

static bool is_cancelled(void *context)
{
    const struct step *step = ((const struct driver_session *)context)->step;
    return step && atomic_load(&step->cancelled);
}

static int register_all(struct driver_session *session, const struct plan_request *call,
                        struct program *program, struct error *err)
{
    struct inquiry *inquiry = inquiry_new(session->options.conns);
    struct program_request *all = mem_array(session->tasks.n + 1, sizeof *all);
    for (size_t i = 0; i < session->tasks.n; i++) {
        const struct remote_task *task = &session->tasks.items[i];
        all[i] = (struct program_request){task, call, program, &program->handles[i]};
        const struct task_request request = {.verb = "register",
                                             .session = session->id,
                                             .n_fields = 4,
                                             .pack = pack_program,
                                             .fields = &all[i],
                                             .answered = take_handle,
                                             .context = &all[i]};
        if (!share_is_idle(&program->shares[task->task]))
            inquiry_ask(inquiry, task->peer, &request);
    }
    bool fails = FAILPOINT("driver.register");
    int code = await_replies(session, inquiry, 0, is_cancelled, err);
    if (fails && !code)
        code = error_set(err, ERR_UNAVAILABLE, "failpoint driver.register");
    mem_free(all);
    return code;
}

static struct program *make_program(struct driver_session *session, const struct plan_request *call,
                                    struct error *err)
{
    struct program *program = mem_alloc(sizeof *program);
    size_t n = session->table.names.n;
    program->shares = mem_array(n + 1, sizeof *program->shares);
    program->handles = mem_array(session->tasks.n + 1, sizeof *program->handles);
    request_divide(session->options.graph, call, session->table.of_node, program->shares);
    struct uncut *uncut = uncut_new(session->options.graph, call);
    int code = uncut_order(uncut, &program->order, err);
    uncut_free(uncut);
    if (session->own >= 0) {
        const struct share *share = &program->shares[session->own];
        vec_each(i, &share->feeds)
            vec_push(&program->feeds, own_edge(session, call->feeds[*i]));
        vec_each(i, &share->fetches)
            vec_push(&program->fetches, own_edge(session, call->fetches[*i]));
        vec_each(node, &share->targets)
            vec_push(&program->targets, own_node(session, *node));
        program->own_order = order_of(session, program, session->own);
        vec_each(place, &program->own_order)
            place->node = place->node < 0 ? -1 : own_node(session, place->node);
    }
    if (!code && !register_all(session, call, program, err))
        return program;
    program_free(program, n);
    return NULL;
}

/* Finds the program of a call, or makes and registers it. NULL: failed. */
static struct program *get_program(struct driver_session *session, const struct plan_request *call,
                                   struct error *err)
{
    struct str *key = &session->key;
    int counts[] = {call->n_feeds, call->n_fetches, call->n_targets};
    str_clear(key);
    str_append_bytes(key, counts, sizeof counts);
    str_append_bytes(key, call->feeds, (size_t)call->n_feeds * sizeof *call->feeds);
    str_append_bytes(key, call->fetches, (size_t)call->n_fetches * sizeof *call->fetches);
    str_append_bytes(key, call->targets, (size_t)call->n_targets * sizeof *call->targets);
    for (size_t i = 0; i < session->programs.n; i++) {
        struct program *program = session->programs.items[i];
        if (program->key.n == key->n && !memcmp(program->key.data, key->data, key->n))
            return program;
    }
    struct program *program = make_program(session, call, err);
    if (program) {
        str_append_bytes(&program->key, key->data, key->n);
        vec_push(&session->programs, program);
    }
    return program;
}

/* ---- a step: it is not over before all its parts are, in any case ---- */

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
    size_t n = run->share->feeds.n;
    struct named_tensor *feeds = mem_array(n + 1, sizeof *feeds);
    for (size_t i = 0; i < n; i++)
        feeds[i] = (struct named_tensor){"", step->call->feed_values[run->share->feeds.items[i]]};
    run->call.replied = remote_over;
    msgpack_packer *packer = conns_call_begin(conns, run->task->peer, "step", 7, &run->call);
    if (packer) {
        const struct driver_session *session = step->session;
        pack_key_uint(packer, "session", session->id);
        pack_key_uint(packer, "handle", handle);
        pack_key_uint(packer, "step", session->last_step);
        pack_key_int(packer, "number", step->step->number);
        pack_key_uint(packer, "seed", step->step->seed);
        pack_key_uint(packer, "replica", step->step->replica);
        pack_key_uint(packer, "incarnation", step->step->incarnation);
        conns_call(conns, &run->call, feeds, (int)n);
    }
    mem_free(feeds);
}

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

/* Counts all parts before the first is started, so that parts that end at once do not end the
 * step. */
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
    step->first = session->cancelled; /* perhaps between two steps */
    pthread_mutex_unlock(&session->lock);
    for (size_t i = 0; i < session->tasks.n; i++)
        if (step->runs[i].step)
            start_remote(&step->runs[i], program->handles[i]);
    if (local) {
        for (size_t i = 0; i < step->own->feeds.n; i++)
            step->feeds[i] = step->call->feed_values[step->own->feeds.items[i]];
        struct plan_request call = {.feeds = program->feeds.items,
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

/* Called after every event, of which there are some a second: pings, at least. */
static bool step_is_answered(void *context)
{
    struct driver_step *step = context;
    struct error why = ERROR_INIT;
    if (step->cancelled_at > 0 && time_now() > step->cancelled_at + PATIENCE)
        cut_off(step->session);
    if (step->cancelled_at <= 0 && step->session->options.pumps &&
        atomic_load(&step->step->cancelled)) {
        step->cancelled_at = time_now();
        error_set(&why, ERR_CANCELLED, "the step was cancelled");
        fail(step, &why);
    }
    return !atomic_load(&step->waiting);
}

int driver_session_run(struct driver_session *session, const struct plan_request *call,
                       struct step *step, struct tensor *fetches, struct error *err)
{
    session->step = step;
    const struct program *program = get_program(session, call, err);
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
    wait_until(session, step_is_answered, &s);
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

/* ---- closing ---- */

void driver_session_close(struct driver_session *session)
{
    if (!session)
        return;
    const struct task_request request = {.verb = "close", .session = session->id};
    struct inquiry *inquiry = inquiry_new(session->options.conns);
    struct error ignored = ERROR_INIT;
    for (size_t i = 0; i < session->tasks.n; i++)
        if (session->tasks.items[i].is_open)
            inquiry_ask(inquiry, session->tasks.items[i].peer, &request);
    await_replies(session, inquiry, PATIENCE, NULL,
                  &ignored); /* a task that is gone has closed it */
    if (session->options.pumps)
        unwatch(session);
    else
        loop_post(conns_loop(session->options.conns), unwatch, session);
    wait_until(session, is_unwatched, session);
    exchange_close(session->exchange);
    for (size_t i = 0; i < session->programs.n; i++)
        program_free(session->programs.items[i], session->table.names.n);
    vec_release(&session->programs);
    str_release(&session->key);
    session_free(session->local);
    graph_free(session->own_graph);
    for (size_t i = 0; i < session->tasks.n; i++)
        peer_release(session->tasks.items[i].peer);
    vec_release(&session->tasks);
    task_table_release(&session->table);
    pthread_cond_destroy(&session->changed);
    pthread_mutex_destroy(&session->lock);
    mem_free(session);
}
