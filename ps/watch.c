/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/container_of.h"
#include "base/memory.h"
#include "base/time.h"
#include "ps/watch_private.h"

#define LEASE_SECONDS 3.0
#define INTERVAL_SECONDS 1.0
#define LOOK_SECONDS 0.1
#define STUCK_LEASES 10 /* for which a loop may stall before it counts as dead */

static void watch_say(const struct watch *watch, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void watch_say(const struct watch *watch, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    if (!watch->options.line)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    watch->options.line(watch->options.context, text);
}

/* ---- links ---- */

static struct watched_task *find(struct watch *watch, const char *name)
{
    for (size_t i = 0; i < watch->tasks.n; i++)
        if (!strcmp(watch->tasks.items[i]->name, name))
            return watch->tasks.items[i];
    return NULL;
}

/* ---- pings ---- */

/* A stalled shard does not reply, but its pings tell that it is alive. Of workers, only pings are
 * expected. */
static void hear_ping(void *context, struct link *link)
{
    struct watch *watch = context;
    struct watched_task *task = find(watch, link_peer(link)->task);
    double heard = time_now() - link_silence(link);
    if (!task)
        return;
    if (task->is_worker && heard > task->heard)
        task->heard = heard;
    if (!task->is_shard)
        return;
    task->still = link_stillness(link);
    if (task->still > 0 && task->still < STUCK_LEASES * watch->options.lease && heard > task->heard)
        task->heard = heard;
}

/* ---- replies ---- */

static void add_workers(struct watched_task *task, const msgpack_object *workers)
{
    task->late = task->stale = 0;
    if (!workers || workers->type != MSGPACK_OBJECT_ARRAY)
        return;
    for (uint32_t i = 0; i < workers->via.array.size; i++) {
        const msgpack_object *worker = &workers->via.array.ptr[i];
        int64_t late = 0, behind = 0;
        bool here = false;
        if (worker->type != MSGPACK_OBJECT_MAP)
            continue;
        record_get_int(worker, "late", &late);
        record_get_int(worker, "behind", &behind);
        record_get_bool(worker, "here", &here);
        task->late += late;
        if (here && behind > task->stale)
            task->stale = behind;
    }
}

/* Reports an automatic checkpoint that failed or, if several did, their number. */
static void hear_of_saves(struct watched_task *task, const msgpack_object *reply)
{
    struct arena arena = ARENA_INIT;
    const char *why = "";
    int64_t failed = 0, step = -1;
    record_get_int(reply, "saves_failed", &failed);
    record_get_int(reply, "failed_step", &step);
    record_get_text(reply, "failed_why", &arena, &why);
    if (failed > task->saves_failed)
        watch_say(task->watch, "unsaved %s failed=%" PRId64 " step=%" PRId64 " why=%s", task->name,
                  failed, step, str_is_printable(why, strlen(why)) ? why : "?");
    task->saves_failed = failed;
    arena_release(&arena);
}

static void replied(struct call *call, const struct record *reply, const struct error *failure)
{
    struct watched_task *task = CONTAINER_OF(call, struct watched_task, call);
    task->asking = false;
    if (failure || task->watch->conns_is_over)
        return;
    task->heard = time_now();
    task->version = -1;
    record_get_int(&reply->header, "version", &task->version);
    hear_of_saves(task, &reply->header);
    /* A shard tells when it last heard from a worker. */
    struct watch *watch = task->watch;
    const msgpack_object *peers = record_field(&reply->header, "peers");
    double now = time_now(), silence;
    for (size_t i = 0; peers && i < watch->tasks.n; i++) {
        struct watched_task *other = watch->tasks.items[i];
        if (other->is_worker && record_get_float(peers, other->name, &silence) &&
            now - silence > other->heard)
            other->heard = now - silence;
    }
    watch->answered = now;
    add_workers(task, record_field(&reply->header, "workers"));
}

void watch_ask(struct watch *watch, struct watched_task *task)
{
    struct peer *peer;
    double pause = watch->options.lease / 6; /* several replies per lease */
    if (task->asking || time_now() - task->asked < pause)
        return;
    if (!(peer = conns_peer(watch->conns, task->name)))
        return;
    task->asked = time_now();
    task->call.replied = replied;
    task->asking = true;
    if (conns_call_begin(watch->conns, peer, "stats", 0, &task->call))
        conns_call(watch->conns, &task->call, NULL, 0);
    peer_release(peer);
}

/* ---- one task ---- */

static void say_of(const struct watch *watch, const char *event, const struct watched_task *task)
{
    watch_say(watch, "%s %s pid=%ld incarnation=%" PRIu64, event, task->name,
              (long)task->process.pid, task->process.incarnation);
}

static int64_t step_of(const struct watch *watch)
{
    return watch->state.step > 0 ? watch->state.step : 0;
}

/* Returns whether the task is on another host: it has no pid file here, and is known only by its
 * links. */
static bool is_elsewhere(const struct watched_task *task)
{
    return !task->process.incarnation && !task->lacks;
}

static void see_process(struct watch *watch, struct watched_task *task)
{
    struct error ignored = ERROR_INIT;
    struct job_process now, before = task->process;
    if (job_look(&watch->job, task->name, &now, &ignored))
        return;
    bool again = before.alive && now.alive && now.incarnation != before.incarnation;
    if (before.alive && (!now.alive || again)) { /* reported once */
        if (now.pid || again)
            watch_say(watch, "died %s pid=%ld incarnation=%" PRIu64 " step=%" PRId64, task->name,
                      (long)before.pid, before.incarnation, step_of(watch));
        else
            watch_say(watch, "left %s step=%" PRId64, task->name, step_of(watch));
        task->ready = task->silent = false;
    }
    task->process = now;
    if (now.listens && !task->ready && !before.listens)
        task->heard = time_now(); /* a reply is due from now on */
    if (!now.alive || (before.alive && !again))
        return;
    task->heard = time_now();
    task->ready = task->silent = false;
    watch->anyone = true;
    say_of(watch, "up", task);
}

/* Shards report on workers, or else workers themselves. Shards are asked a few times in a lease, so
 * a worker is overdue before its lease ends. If no shard replies, the shards are missed first. */
static bool is_overdue(const struct watched_task *task)
{
    const struct watch *watch = task->watch;
    double lease = watch->options.lease, missed = time_now() - task->heard;
    if (!task->is_worker)
        return missed > lease;
    return watch->answered - task->heard > lease * 7 / 8 || missed > 2 * lease;
}

static void see_replies(struct watch *watch, struct watched_task *task)
{
    bool heard = task->heard > task->heard_before;
    bool here = task->process.alive || is_elsewhere(task);
    if (!here || !(task->is_shard || task->is_worker))
        return;
    if (heard && task->still <= 0 && (!task->ready || task->silent)) {
        say_of(watch, "ready", task);
        task->ready = true;
        task->silent = false;
    }
    /* A shard may be missed once it listens, a worker once it was ready: before that they may be
     * reading a checkpoint or a graph. */
    bool is_due = task->ready || (task->is_shard && task->process.listens);
    if (!heard && is_due && !task->silent && is_overdue(task)) {
        watch_say(watch, "silent %s %.1fs pid=%ld incarnation=%" PRIu64 " step=%" PRId64 "%s",
                  task->name, time_now() - task->heard, (long)task->process.pid,
                  task->process.incarnation, step_of(watch), task->still > 0 ? " why=stuck" : "");
        task->silent = true;
    }
}

/* ---- all ---- */

static struct watched_task *watched_of(struct watch *watch, const struct cluster_task *from)
{
    struct watched_task *task = find(watch, from->name);
    if (task)
        return task;
    task = mem_alloc(sizeof *task);
    *task = (struct watched_task){.is_shard = !strcmp(from->job, SHARD_JOB),
                                  .is_worker = !strcmp(from->job, "worker"),
                                  .version = -1,
                                  .watch = watch};
    snprintf(task->name, sizeof task->name, "%s", from->name);
    vec_push(&watch->tasks, task);
    return task;
}

static void watch_tasks(struct watch *watch)
{
    watch->has_shards = cluster_count(&watch->cluster, SHARD_JOB) > 0;
    vec_each(from, &watch->cluster.tasks) {
        struct watched_task *task = watched_of(watch, from);
        struct error ignored = ERROR_INIT;
        see_process(watch, task);
        task->lacks = job_lacks(&watch->job, from);
        bool here = task->process.alive || is_elsewhere(task);
        /* Without shards we ask each worker: those that would miss it may have left. */
        bool speaks = task->is_shard || (task->is_worker && !watch->has_shards);
        if (!here || task->lacks || !speaks)
            continue;
        if (!conns_is_linked(watch->conns, task->name)) /* a dial that fails is repeated */
            peers_connect(conns_peers(watch->conns), task->name, from->address, LOOK_SECONDS,
                          &ignored);
        if (task->is_shard)
            watch_ask(watch, task);
    }
}

static bool never(void *context)
{
    const struct watch *watch = context;
    return watch->options.ends && watch->options.ends(watch->options.context);
}

/* Serves the links, then reports who began or ceased to reply meanwhile. */
static void let_links_move(struct watch *watch)
{
    size_t n = watch->tasks.n;
    double now = time_now(), missed = now - watch->looked;
    if (watch->looked > 0 && missed > 5 * LOOK_SECONDS) {
        /* The watch itself was stalled, which must not count as silence of others. */
        for (size_t i = 0; i < n; i++)
            watch->tasks.items[i]->heard += missed;
        watch->answered += missed;
    }
    watch->looked = now;
    for (size_t i = 0; i < n; i++)
        watch->tasks.items[i]->heard_before = watch->tasks.items[i]->heard;
    loop_run_until(conns_loop(watch->conns), never, watch, LOOK_SECONDS);
    peers_each(conns_peers(watch->conns), hear_ping, watch);
    for (size_t i = 0; i < n; i++)
        see_replies(watch, watch->tasks.items[i]);
}

/* ---- how far it is ---- */

static void update_state(struct watch *watch)
{
    struct watch_state *state = &watch->state;
    tail_read(&watch->tail);
    state->step = watch->tail.step;
    state->total = watch->tail.total;
    state->values = str_text(&watch->tail.values);
    state->workers = state->workers_here = 0;
    state->late = state->stale = 0;
    for (size_t i = 0; i < watch->tasks.n; i++) {
        const struct watched_task *task = watch->tasks.items[i];
        state->workers += task->is_worker;
        bool here = task->process.alive || (is_elsewhere(task) && task->ready);
        state->workers_here += task->is_worker && here && !task->silent;
        if (task->version >= 0) {
            state->late += task->late;
            state->stale = task->stale;
            if (task->version > state->step)
                state->step = task->version;
        }
    }
}

static void say_step(struct watch *watch, double now)
{
    struct watch_state *state = &watch->state;
    if (state->step < 0 || (watch->said_step >= 0 && state->step == watch->said_step))
        return;
    state->rate =
        watch->said_step >= 0 ? (double)(state->step - watch->said_step) / (now - watch->said) : 0;
    watch->said_step = state->step;
    watch_say(watch, "step %" PRId64 "%s%s rate=%.0f workers=%d/%d late=%" PRId64 " stale=%" PRId64,
              state->step, *state->values ? " " : "", state->values,
              state->rate > 0 ? state->rate : 0, state->workers_here, state->workers, state->late,
              state->stale);
}

/* Returns NULL if the task is there, or has ended, which was reported. In a job without shards, a
 * worker may take any time to read its graph, until it listens. If it stalls after that, nobody
 * else would miss it once the others have ended. */
static const char *why_missing(const struct watch *watch, const struct watched_task *task)
{
    bool lives = task->process.incarnation != 0;
    if (task->ready || task->silent || (lives && !task->process.pid))
        return NULL;
    if (!lives)
        return "not started";
    if (task->is_shard && task->lacks)
        return task->lacks;
    return task->is_shard || watch->has_shards || task->process.listens ? WATCH_NO_REPLY : NULL;
}

static void speak(struct watch *watch)
{
    double now = time_now();
    update_state(watch);
    if (now - watch->said >= watch->options.interval) {
        for (size_t i = 0; i < watch->tasks.n; i++) {
            const char *why = why_missing(watch, watch->tasks.items[i]);
            if (why)
                watch_say(watch, "waiting %s why=%s", watch->tasks.items[i]->name, why);
        }
        say_step(watch, now);
        watch->said = now;
    }
    for (size_t i = 0; i < watch->tasks.n && watch->options.task; i++) {
        const struct watched_task *task = watch->tasks.items[i];
        struct watch_task seen = {.name = task->name,
                                  .ready = task->ready,
                                  .silent = task->silent,
                                  .left = task->process.incarnation && !task->process.pid,
                                  .incarnation = task->process.incarnation,
                                  .heard = task->heard,
                                  .missing = why_missing(watch, task)};
        watch->options.task(watch->options.context, &seen);
    }
    if (watch->options.state)
        watch->options.state(watch->options.context, &watch->state);
}

/* ---- the watch ---- */

static int open_watch(struct watch *watch, struct error *err)
{
    const struct watch_options *options = &watch->options;
    char *path;
    int code = job_open(&watch->job, options->job_folder, err);
    if (code)
        return code;
    path = job_path(&watch->job, "worker:0", ".rec");
    tail_init(&watch->tail, path);
    mem_free(path);
    path = job_path(&watch->job, "", "key");
    struct conns_options conns = {.peers = {.producer = options->producer,
                                            .folder = options->job_folder,
                                            .key_file = options->key_file ? options->key_file
                                                        : options->no_key ? NULL
                                                                          : path,
                                            .no_key = options->no_key,
                                            .no_shared_memory = true, /* a few bytes now and then */
                                            .lease = options->lease}};
    watch->conns = conns_new(&conns, err);
    mem_free(path);
    return watch->conns ? 0 : err->code;
}

static void close_watch(struct watch *watch)
{
    if (watch->conns && watch->options.state) { /* includes what the last steps have written */
        update_state(watch);
        watch->options.state(watch->options.context, &watch->state);
    }
    watch->conns_is_over = true;
    conns_free(watch->conns); /* ends calls, whose memory belongs to the tasks */
    for (size_t i = 0; i < watch->tasks.n; i++)
        mem_free(watch->tasks.items[i]);
    vec_release(&watch->tasks);
    cluster_release(&watch->cluster);
    if (watch->tail.path)
        tail_release(&watch->tail);
    job_close(&watch->job);
}

uint64_t watch_incarnation(const char *job_folder, const char *task)
{
    struct job job;
    struct job_process process = {0};
    struct error none = ERROR_INIT;
    if (job_open(&job, job_folder, &none))
        return 0;
    job_look(&job, task, &process, &none);
    job_close(&job);
    return process.incarnation;
}

int watch_job(const struct watch_options *options, struct error *err)
{
    struct watch watch = {.options = *options, .said_step = -1, .said = time_now()};
    if (watch.options.lease <= 0)
        watch.options.lease = LEASE_SECONDS;
    if (watch.options.interval <= 0)
        watch.options.interval = INTERVAL_SECONDS;
    int code = open_watch(&watch, err);
    while (!code && !never(&watch)) {
        struct error ignored = ERROR_INIT;
        cluster_release(&watch.cluster);
        watch.cluster = (struct cluster){0};
        if (job_cluster(&watch.job, &watch.cluster, &ignored))
            break; /* the job's directory no longer has a cluster file */
        watch_tasks(&watch);
        let_links_move(&watch);
        speak(&watch);
        bool is_over = watch.anyone; /* all that were seen have ended well */
        for (size_t i = 0; i < watch.tasks.n && is_over; i++) {
            const struct watched_task *task = watch.tasks.items[i];
            is_over = !task->process.pid && !(is_elsewhere(task) && task->ready && !task->silent);
        }
        if (is_over)
            break;
    }
    close_watch(&watch);
    return code;
}
