/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/life.h"
#include "base/memory.h"
#include "base/time.h"
#include "ps/containers.h"
#include "ps/shard_private.h"

#define LOOK_SECONDS 0.001  /* between a worker's looks for requests, while it runs steps */
#define FORGET_SECONDS 30.0 /* between checks of snapshots being fetched */

struct verb_row {
    const char *name;
    enum { QUICK, SLOW, WRITER } queue;
    bool reads; /* or saves: that is all that workers do for others */
    shard_work *work;
};

static const struct verb_row verbs[] = {
    {"list", QUICK, true, shard_list},
    {"get", QUICK, true, shard_get},
    {"put", QUICK, false, shard_put},
    {"reset", QUICK, false, shard_reset},
    {"snapshot", QUICK, false, shard_snapshot},
    {"keep", WRITER, false, shard_write},
    {"save", SLOW, true, shard_save},
    {"restore", SLOW, false, shard_restore},
    {"cut", SLOW, true, shard_hand_out},
    {"part", QUICK, true, shard_part},
    {"origin", QUICK, false, shard_tell_origin},
};

/* ---- queries ---- */

static struct shard_query *query_new(struct shard *shard, const struct query *from)
{
    struct shard_query *query = mem_alloc(sizeof *query);
    double *seconds = &query->fields.seconds;
    *query = (struct shard_query){.shard = shard,
                                  .peer = peer_retain(from->peer),
                                  .id = from->id,
                                  .fields = {.seconds = SHARD_WAIT_SECONDS, .origin.step = -1}};
    shard_fields_take(&query->fields, &from->record->header, &query->arena);
    if (!(*seconds >= 0 && *seconds <= SHARD_WAIT_MAX))
        *seconds = SHARD_WAIT_SECONDS;
    if (from->record->n_tensors == 1)
        tensor_share(&query->value, &from->record->tensors[0].tensor);
    return query;
}

void shard_query_free(struct shard_query *query)
{
    peer_release(query->peer);
    tensor_release(&query->value);
    arena_release(&query->arena);
    mem_free(query);
}

void shard_reply_failure(struct shard_query *query, const struct error *err)
{
    struct error told = *err;
    if (told.code == ERR_CANCELLED)
        told.code = ERR_UNAVAILABLE;
    reply_error(query->peer, query->id, &told);
}

void shard_query_end(struct shard_query *query, struct shard_fields *fields,
                     const struct error *err)
{
    msgpack_packer *packer;
    if (err->code) {
        shard_reply_failure(query, err);
    } else if ((packer =
                    reply_begin(query->peer, query->id, fields ? shard_fields_count(fields) : 0))) {
        if (fields)
            shard_fields_pack(fields, packer);
        reply_end(query->peer, NULL, 0);
    }
    shard_query_free(query);
}

static void run_query(void *argument)
{
    struct shard_query *query = argument;
    query->work(query);
}

static void refuse(const struct query *query)
{
    struct error err = ERROR_INIT;
    error_set(&err, ERR_CONFIG,
              "a worker lets others read and save its variables, and does nothing else for them");
    reply_error(query->peer, query->id, &err);
}

static void verb(void *context, const struct query *from)
{
    struct shard *shard = context;
    struct serial_queue *const queues[] = {shard->quick, shard->slow, shard->writer};
    const struct verb_row *row = verbs;
    while (strcmp(row->name, from->verb) != 0)
        row++;
    if (shard->steps && !row->reads) {
        refuse(from);
        return;
    }
    struct shard_query *query = query_new(shard, from);
    query->work = row->work;
    if (!serial_queue_add(queues[row->queue], run_query, query))
        shard_query_free(query); /* the links have also ended */
}

static void verb_stop(void *context, const struct query *query)
{
    struct shard *shard = context;
    if (shard->steps) {
        refuse(query);
        return;
    }
    reply_done(query->peer, query->id);
    if (shard->options.stop)
        shard->options.stop(shard->options.context);
    else
        loop_stop(conns_loop(shard->options.conns));
}

/* ---- the shard ---- */

void shard_say(struct shard *shard, const char *line)
{
    if (shard->options.tell)
        shard->options.tell(shard->options.context, line);
}

enum shard_reaction shard_react(struct shard *shard, enum shard_event event)
{
    if (shard->steps) /* a worker has states of its own */
        return SHARD_GO_ON;
    pthread_mutex_lock(&shard->lock);
    enum shard_reaction what = shard_life_react(&shard->life, event);
    pthread_mutex_unlock(&shard->lock);
    return what;
}

/* A new clock has counted nothing; a restored clock gets its counts afterwards. */
static void resource_made(struct variable_watcher *watcher, const struct resource *resource)
{
    struct shard *shard = (struct shard *)watcher;
    if (resource->kind == &clock_kind && shard->pushes.counts) {
        for (int i = 0; i < PUSHES_WORKERS; i++)
            pushes_write(&shard->pushes, i, 0);
        clock_count_in(resource->object, shard->pushes.counts, PUSHES_WORKERS);
    }
    shard_claims_resource(shard, resource);
    if (resource->kind == &clock_kind && shard_react(shard, SHARD_CLOCK) == SHARD_STOP)
        shard_stop_first(shard, resource->object);
}

/* A store that cannot be created is reported by shard_check_store. Without the file of pushes a
 * restore cannot tell what it undoes, which does not prevent serving. */
static void open_files(struct shard *shard)
{
    struct error err = ERROR_INIT;
    const struct shard_options *options = &shard->options;
    if (!options->save_folder || !str_ends(options->task, ":0") || options->is_worker)
        return;
    if (store_ensure(options->save_folder, &shard->no_store))
        return;
    if (pushes_open(&shard->pushes, options->save_folder, &err))
        shard_say(shard, err.text);
}

static void forget_pushes(void *context)
{
    struct shard *shard = context;
    shard_cuts_forget(shard);
    loop_timer_set(shard->forget, FORGET_SECONDS);
}

struct shard *shard_new(const struct shard_options *options)
{
    struct shard *shard = mem_alloc(sizeof *shard);
    shard->options = *options;
    shard->name = shard_name(&shard->arena, options->task);
    if (shard->options.keep <= 0)
        shard->options.keep = SHARD_KEEP;
    shard->saved_step = shard->failed_step = -1;
    shard->saves_as.run = options->run;
    shard->began = time_now();
    if (!options->is_worker)
        LIFE_BEGINS("shard.starts");
    pthread_mutex_init(&shard->lock, NULL);
    pthread_mutex_init(&shard->cuts_lock, NULL);
    pthread_mutex_init(&shard->claims_lock, NULL);
    if (options->fetches)
        tail_init(&shard->measure.fetches, options->fetches);
    open_files(shard);
    shard->watcher = (struct variable_watcher){shard_claims_variable, resource_made};
    variable_watch(options->variables, &shard->watcher);
    if (options->is_worker)
        shard->steps = step_pause_new();
    else
        shard->sums = sum_server_new(
            &(struct sum_server_options){options->conns, options->tell, options->context});
    shard->forget = loop_timer_new(conns_loop(options->conns), forget_pushes, shard);
    loop_timer_set(shard->forget, FORGET_SECONDS);
    shard->quick = serial_queue_new();
    shard->slow = serial_queue_new();
    shard->writer = serial_queue_new();
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        conns_verb(options->conns, verbs[i].name, verb, shard);
    conns_verb(options->conns, "status", shard_status, shard);
    conns_verb(options->conns, "stats", shard_stats, shard);
    conns_verb(options->conns, "stop", verb_stop, shard);
    return shard;
}

void shard_start_saves(struct shard *shard)
{
    const struct shard_options *options = &shard->options;
    shard_react(shard, SHARD_START);
    if (!options->save_folder || (options->save_every <= 0 && options->save_seconds <= 0))
        return;
    shard->due_at = time_now() + options->save_seconds;
    serial_queue_add(shard->slow, shard_auto_save, shard);
}

void shard_free(struct shard *shard)
{
    if (!shard)
        return;
    if (shard->steps) {
        struct error why = ERROR_INIT;
        error_set(&why, ERR_UNAVAILABLE, "%s ends", shard->options.task);
        conns_refuse(shard->options.conns, &why);
        step_pause_close(shard->steps);
    }
    shard_react(shard, SHARD_END);
    atomic_store(&shard->ends, true);
    serial_queue_free(shard->quick);
    serial_queue_free(shard->slow);
    serial_queue_free(shard->writer);
    sum_server_free(shard->sums);
    loop_event_free(shard->forget);
    variable_watch(shard->options.variables, NULL);
    shard_cuts_end(shard);
    shard_measure_forget(shard);
    if (shard->measure.fetches.path)
        tail_release(&shard->measure.fetches);
    shard_claims_end(shard);
    if (containers_clock(shard->options.variables))
        clock_count_in(containers_clock(shard->options.variables), NULL, 0);
    pushes_close(&shard->pushes);
    shard_origin_end(shard);
    step_pause_free(shard->steps);
    arena_release(&shard->arena);
    pthread_mutex_destroy(&shard->lock);
    pthread_mutex_destroy(&shard->cuts_lock);
    pthread_mutex_destroy(&shard->claims_lock);
    mem_free(shard);
}

/* ---- in a worker ---- */

bool shard_is_asked(struct shard *shard)
{
    double now = time_now();
    if (now - shard->looked >= LOOK_SECONDS) { /* a look costs microseconds, as a small step does */
        shard->looked = now;
        loop_run_until(conns_loop(shard->options.conns), NULL, NULL, 0);
    }
    return step_pause_is_wanted(shard->steps);
}

void shard_let_read(struct shard *shard, int64_t step)
{
    step_pause_hold(shard->steps, step);
}

void shard_steps_end(struct shard *shard)
{
    step_pause_close(shard->steps);
}
