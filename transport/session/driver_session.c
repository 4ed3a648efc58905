/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/session/driver_session.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/memory.h"
#include "base/time.h"
#include "exec/step/step.h"
#include "graph/graph_io.h"
#include "transport/session/driver_private.h"

#define LOOK_SECONDS 0.5 /* whether to give up */

/* ---- waiting ---- */

static void nothing(void *argument)
{
    (void)argument;
}

void driver_wait(struct driver_session *session, bool (*until)(void *context), void *context)
{
    if (session->options.pumps)
        while (!loop_run_until(conns_loop(session->options.conns), until, context, LOOK_SECONDS))
            ;
    /* who made it true holds the lock until it has let go of the session */
    pthread_mutex_lock(&session->lock);
    while (!session->options.pumps && !until(context)) {
        struct timespec soon;
        clock_gettime(CLOCK_REALTIME, &soon);
        soon.tv_sec++; /* to ask whether it was given up; whatever else changes is told */
        pthread_cond_timedwait(&session->changed, &session->lock, &soon);
    }
    pthread_mutex_unlock(&session->lock);
}

void driver_changed(struct driver_session *session)
{
    struct loop *loop = conns_loop(session->options.conns);
    if (!session->options.pumps)
        pthread_cond_signal(&session->changed);
    else if (loop_is_elsewhere(loop))
        loop_post(loop, nothing, NULL);
}

/* ---- asking ---- */

static void session_replied(struct call *call, const struct record *reply,
                            const struct error *failure)
{
    struct task_call *asked = (struct task_call *)call;
    struct task_calls *all = asked->all;
    struct driver_session *session = all->session;
    if (reply && asked->reply)
        asked->reply(asked->context, reply);
    pthread_mutex_lock(&session->lock);
    if (failure && !all->first.code)
        all->first = *failure;
    all->waiting--;
    driver_changed(session);
    pthread_mutex_unlock(&session->lock);
}

msgpack_packer *asked_begin(struct task_call *asked, struct task_calls *all,
                            const struct remote_task *task, const char *verb, int n_fields)
{
    struct driver_session *session = all->session;
    struct error err = ERROR_INIT;
    asked->call.replied = session_replied;
    asked->all = all;
    pthread_mutex_lock(&session->lock);
    all->waiting++;
    pthread_mutex_unlock(&session->lock);
    msgpack_packer *packer = conns_call_begin(session->options.conns, task->peer, verb,
                                              n_fields + 1, &asked->call, &err);
    if (!packer) {
        session_replied(&asked->call, NULL, &err);
        return NULL;
    }
    pack_key_uint(packer, "session", session->id);
    return packer;
}

void asked_send(struct task_call *asked, const struct named_tensor *tensors, int n)
{
    struct error err = ERROR_INIT;
    if (conns_call(asked->all->session->options.conns, &asked->call, tensors, n, &err))
        session_replied(&asked->call, NULL, &err);
}

static bool has_no_more(void *context)
{
    const struct task_calls *all = context;
    const struct step *step = all->session->step;
    bool late =
        (all->until > 0 && time_now() > all->until) || (step && atomic_load(&step->cancelled));
    if (all->waiting && (late || (all->gives_up && driver_is_given_up(all->session))))
        driver_cut_off(all->session);
    return !all->waiting;
}

int asking_wait(struct task_calls *all, struct error *err)
{
    driver_wait(all->session, has_no_more, all);
    if (all->first.code)
        *err = all->first;
    return all->first.code;
}

int driver_session_ask(struct driver_session *session, int i, const struct driver_ask *ask,
                       void (*reply)(void *context, const struct record *record), struct error *err)
{
    struct task_calls all = {.session = session};
    struct task_call asked = {.reply = reply, .context = ask->context};
    msgpack_packer *packer =
        asked_begin(&asked, &all, &session->tasks.items[i], ask->verb, ask->n_fields);
    if (packer) {
        if (ask->pack)
            ask->pack(ask->context, packer);
        asked_send(&asked, ask->tensors, ask->n_tensors);
    }
    return asking_wait(&all, err);
}

struct variable_store *driver_session_variables(struct driver_session *session)
{
    return session_variables(session->local);
}

int driver_session_tasks(const struct driver_session *session)
{
    return (int)session->tasks.n;
}

const char *driver_session_task(const struct driver_session *session, int i)
{
    return session->tasks.items[i].name;
}

/* ---- opening ---- */

static void pack_addresses(const struct driver_session *session, msgpack_packer *packer)
{
    const struct cluster *cluster = session->options.cluster;
    pack_key_map(packer, "addresses", cluster->tasks.n);
    for (size_t i = 0; i < cluster->tasks.n; i++) {
        const struct cluster_task *task = &cluster->tasks.items[i];
        char name[TASK_TEXT_BYTES];
        snprintf(name, sizeof name, "%s:%d", task->job, task->index);
        pack_text(packer, name);
        pack_text(packer, task->address);
    }
}

/* The nodes of the task, as the bytes of a stream. */
static int write_graph(const struct driver_session *session, int task,
                       struct stream_writer **writer, struct error *err)
{
    struct graph *graph;
    int code = task_graph(session->options.graph, &session->table, task, &graph, err);
    if (code)
        return code;
    *writer = stream_writer_new_memory("tf-exec", 1);
    code = graph_write(*writer, graph, err);
    if (!code)
        code = stream_finish(*writer, err);
    graph_free(graph);
    if (code)
        stream_writer_free(*writer);
    return code;
}

static void task_is_open(void *context, const struct record *record)
{
    struct remote_task *task = context;
    task->is_open = true;
    record_get_uint(&record->header, "origin", &task->origin);
}

/* All at once: tasks that talk to each other wait for one another. */
static int open_tasks(struct driver_session *session, struct error *err)
{
    struct task_calls all = {.session = session, .gives_up = true};
    struct error own = ERROR_INIT;
    struct task_call *asked = mem_array(session->tasks.n + 1, sizeof *asked);
    for (size_t i = 0; i < session->tasks.n && !own.code; i++) {
        struct remote_task *task = &session->tasks.items[i];
        struct stream_writer *writer;
        size_t n;
        if (!write_graph(session, task->task, &writer, &own)) {
            const void *bytes = stream_writer_bytes(writer, &n);
            struct shape shape = shape_vector((int64_t)n);
            struct named_tensor graph = {"graph",
                                         tensor_borrow(UINT8, &shape, (void *)(uintptr_t)bytes)};
            asked[i] = (struct task_call){.reply = task_is_open, .context = task};
            msgpack_packer *packer = asked_begin(&asked[i], &all, task, "open", 1);
            if (packer) {
                pack_addresses(session, packer);
                asked_send(&asked[i], &graph, 1);
            }
            stream_writer_free(writer);
        }
    }
    int code = asking_wait(&all, err);
    mem_free(asked);
    if (own.code)
        *err = own;
    else if (code && driver_is_given_up(session)) /* links that it cut off itself */
        code = error_set(err, ERR_CANCELLED, "the session was given up");
    return own.code ? own.code : code;
}

/* Training over tasks that were restored apart would be on a mixture. */
static int check_origins(const struct driver_session *session, struct error *err)
{
    const struct remote_task *tasks = session->tasks.items;
    for (size_t i = 0; i < session->tasks.n; i++) {
        size_t first = 0, n = strcspn(tasks[i].name, ":") + 1; /* a job's tasks begin alike */
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

static int make(struct driver_session *session, struct error *err)
{
    const struct driver_session_options *options = &session->options;
    if (task_table_fill(&session->table, options->graph, err))
        return err->code;
    for (size_t i = 0; i < session->table.names.n; i++) {
        const char *name = session->table.names.items[i];
        if (!strcmp(name, options->task))
            session->own = (int)i;
        else if (!driver_address(session, name, err))
            return err->code;
        else
            vec_push(&session->tasks, ((struct remote_task){.name = name, .task = (int)i}));
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
    pthread_cond_init(&session->changed, NULL);
    int code = make(session, err);
    if (!code)
        code = driver_dial(session, err);
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

/* ---- closing ---- */

void driver_session_close(struct driver_session *session)
{
    if (!session)
        return;
    struct task_calls all = {.session = session, .until = time_now() + DRIVER_PATIENCE};
    struct error ignored = ERROR_INIT;
    struct task_call *asked = mem_array(session->tasks.n + 1, sizeof *asked);
    for (size_t i = 0; i < session->tasks.n; i++)
        if (session->tasks.items[i].is_open &&
            asked_begin(&asked[i], &all, &session->tasks.items[i], "close", 0))
            asked_send(&asked[i], NULL, 0);
    asking_wait(&all, &ignored); /* who is gone has closed it */
    mem_free(asked);
    driver_let_go(session);
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
