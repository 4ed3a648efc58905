/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of a running job. The shard that is asked for one, or has the clock, leads. It holds
 * back the next round of updates, makes every shard snapshot what it keeps, itself first, and lets
 * the rounds continue. Then each shard writes its part into its own environment in the store. When
 * all have reported theirs on disk, the leader commits the manifest that lists them. Updates pause
 * only for the marking.
 *
 * Without a clock each shard's snapshot is between two of its steps, but these differ among shards.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/memory.h"
#include "base/time.h"
#include "checkpoint/job/commit.h"
#include "checkpoint/store/best.h"
#include "ps/containers.h"
#include "ps/shard_private.h"
#include "transport/value/inquiry.h"

const char *shard_name(struct arena *arena, const char *task)
{
    int n = (int)strcspn(task, ":");
    return arena_printf(arena, "%.*s-%s", n, task, task[n] ? task + n + 1 : "0");
}

/* ---- the other shards ---- */

/* The waiter may give up before the loop gets to the dial: the last of the two frees it. */
struct awaited_dial {
    struct conns *conns;
    char *task, *address;
    double seconds;
    atomic_int holders;
    atomic_bool given_up; /* the connection manager may be ending: do not dial */
    struct error err;     /* valid once done */
    atomic_bool done;
};

static void dial_release(struct awaited_dial *d)
{
    if (atomic_fetch_sub(&d->holders, 1) > 1)
        return;
    mem_free(d->task);
    mem_free(d->address);
    mem_free(d);
}

static void dial(void *argument)
{
    struct awaited_dial *d = argument;
    if (!atomic_load(&d->given_up))
        peers_connect(conns_peers(d->conns), d->task, d->address, d->seconds, &d->err);
    atomic_store(&d->done, true);
    dial_release(d);
}

/* Gives up early only if the shard ends, whose loop then runs on for a while, or not at all. */
static int link_to(struct shard *shard, const char *task, const char *address, double seconds,
                   struct error *err)
{
    const struct timespec pause = {0, 2000000};
    struct conns *conns = shard->options.conns;
    double end = time_now() + seconds;
    if (conns_is_linked(conns, task))
        return 0;
    struct awaited_dial *d = mem_alloc(sizeof *d);
    d->conns = conns;
    d->task = mem_strdup(task);
    d->address = mem_strdup(address);
    d->seconds = seconds;
    atomic_init(&d->holders, 2);
    loop_post(conns_loop(conns), dial, d);
    while (!atomic_load(&shard->ends) &&
           (!atomic_load(&d->done) ||
            (!d->err.code && !conns_is_linked(conns, task) && time_now() < end)))
        nanosleep(&pause, NULL);
    atomic_store(&d->given_up, true);
    if (atomic_load(&d->done) && d->err.code)
        *err = d->err;
    else if (!conns_is_linked(conns, task))
        error_set(err, ERR_UNAVAILABLE, "%s at %s: cannot be reached in %g s", task, address,
                  seconds);
    dial_release(d);
    return err->code;
}

bool shard_is_of_job(const struct shard *shard, const struct cluster_task *task)
{
    const char *own = shard->options.task; /* "ps:0" */
    return !strncmp(task->name, own, strcspn(own, ":") + 1);
}

int shard_find_others(struct shard *shard, struct shard_others *others, double seconds,
                      struct error *err)
{
    const struct shard_options *options = &shard->options;
    if (!options->find_cluster)
        return 0;
    int code = options->find_cluster(options->context, &others->cluster, err);
    for (size_t i = 0; !code && i < others->cluster.tasks.n; i++) {
        const struct cluster_task *task = &others->cluster.tasks.items[i];
        if (!shard_is_of_job(shard, task) || !strcmp(task->name, options->task))
            continue;
        vec_push(&others->tasks, task->name);
        code = link_to(shard, task->name, task->address, seconds, err);
    }
    return code;
}

void shard_others_release(struct shard_others *others)
{
    cluster_release(&others->cluster);
    vec_release(&others->tasks);
}

/* ---- one shard's part ---- */

static int write_part(struct shard *shard, const char *folder, double seconds, struct error *err)
{
    struct shard_cut cut;
    if (shard_cut_get(shard, folder, &cut, err))
        return error_prefix(err, "%s: ", folder);
    const struct store_options options = {.write = true,
                                          .lock_wait = seconds,
                                          .cancelled = &shard->ends,
                                          .owner = "tf-ps",
                                          .shard = shard->name};
    const struct save_request request = {.step = cut.step,
                                         .run = shard_saves_as(shard).run,
                                         .producer = shard->options.producer,
                                         .tensors = cut.cut.tensors.items,
                                         .n_tensors = cut.cut.tensors.n,
                                         .is_part = true,
                                         .threads = 1};
    struct store *store;
    if (!shard_open_store(shard, folder, &options, &store, err)) {
        store_save(store, &request, NULL, err);
        shard_close_store(shard, store);
    }
    shard_cut_release(&cut);
    return err->code;
}

void shard_write(struct shard_query *query)
{
    struct error err = ERROR_INIT;
    const struct shard_fields *fields = &query->fields;
    const struct store_writer writer = {.run = fields->origin.run, .goes_on = true};
    if (!fields->folder)
        error_set(&err, ERR_PROTOCOL, "a request to write needs a folder");
    else
        write_part(query->shard, fields->folder, fields->seconds, &err);
    if (!err.code && shard_is_own_folder(query->shard, fields->folder))
        shard_go_on_with(query->shard, &writer);
    shard_query_end(query, NULL, &err);
}

/* ---- leading: the snapshot ---- */

struct leading_save {
    struct shard *shard;
    struct shard_others others;
    const char *name; /* of the snapshots: the folder, or who fetches them */
    int64_t step;
    double seconds;
    struct str pushes; /* accepted pushes of each worker */
    struct store_writer writer;
    struct arena arena;
    bool finds_successor; /* another job has taken the store over */
};

/* Sends a request about the snapshots of that name. */
static struct inquiry *ask_others(const struct leading_save *save, const char *verb,
                                  const struct shard_origin *origin, const char *about)
{
    struct shard_fields fields = {
        .folder = save->name, .seconds = save->seconds, .origin = *origin};
    struct task_request request = {.verb = verb, .about = about};
    shard_fields_add(&request, &fields);
    struct inquiry *inquiry = inquiry_new(save->shard->options.conns);
    inquiry_ask_all(inquiry, save->others.tasks.items, save->others.tasks.n, &request);
    return inquiry;
}

static bool is_ending(void *context)
{
    return atomic_load(&((struct shard *)context)->ends);
}

static int await_others(const struct leading_save *save, struct inquiry *inquiry, double seconds,
                        struct error *err)
{
    return inquiry_finish(inquiry, &(struct inquiry_wait){false, seconds, is_ending, save->shard},
                          err);
}

/* ---- leading: writing ---- */

static int collect_parts(void *context, struct store *store, struct save_request *request,
                         struct error *err)
{
    struct leading_save *save = context;
    const struct shard_origin run = {.step = -1, .run = save->writer.run};
    struct inquiry *inquiry = ask_others(save, "keep", &run, "its part of a checkpoint");
    struct error other = ERROR_INIT;
    (void)store;
    int code = write_part(save->shard, save->name, save->seconds, err);
    if (await_others(save, inquiry, SHARD_WAIT_MAX, &other) && !code)
        *err = other;
    if (err->code)
        return err->code;
    const scalar_vec *scalars = shard_measured(save->shard);
    request->scalars = scalars->items;
    request->n_scalars = scalars->n;
    return 0;
}

/* The asker may name any folder, so only one folder is created, in an existing one. */
static int make_store(const char *path, struct error *err)
{
    bool exists = store_exists(path);
    if (!exists && store_check_place(path, err))
        return err->code;
    if (!exists && mkdir(path, 0777) && errno != EEXIST)
        return error_set_errno(err, errno == EACCES ? ERR_DENIED : ERR_IO, "%s", path);
    return store_ensure(path, err);
}

static int write_all(struct leading_save *save, int keep, struct error *err)
{
    const struct store_options options = {.write = true,
                                          .lock_wait = save->seconds,
                                          .cancelled = &save->shard->ends,
                                          .owner = "tf-ps"};
    struct store *store;
    if (make_store(save->name, err) ||
        shard_open_store(save->shard, save->name, &options, &store, err))
        return err->code;
    struct shard *shard = save->shard;
    bool is_own = shard_is_own_folder(shard, save->name);
    size_t n = save->others.tasks.n + 1, n_blobs = 0;
    const char *best = shard->options.best, **names = arena_array(&save->arena, n, sizeof *names);
    struct manifest_blob blobs[2];
    if (save->pushes.n)
        blobs[n_blobs++] = (struct manifest_blob){"pushes", save->pushes.data, save->pushes.n};
    if (best)
        blobs[n_blobs++] = (struct manifest_blob){BEST_BLOB, best, strlen(best)};
    for (size_t i = 0; i < n; i++)
        names[i] = i ? shard_name(&save->arena, save->others.tasks.items[i - 1]) : shard->name;
    struct commit commit = {.request = {.step = save->step,
                                        .run = save->writer.run,
                                        .producer = shard->options.producer,
                                        .blobs = blobs,
                                        .n_blobs = n_blobs,
                                        .shards = names,
                                        .n_shards = n,
                                        .threads = 1},
                            .writer = is_own ? &save->writer : NULL,
                            .keep = (size_t)keep,
                            .collect = collect_parts,
                            .context = save};
    if (!commit_checkpoint(store, &commit, err))
        shard_measure_later(shard, save->name, save->step, &save->writer.run);
    if (commit.left.code)
        shard_say(shard, commit.left.text);
    if (is_own)
        shard_go_on_with(shard, &save->writer);
    save->finds_successor = commit.is_succeeded;
    shard_close_store(shard, store);
    return err->code;
}

/* ---- requests ---- */

/* Without a clock: one more than the newest step there. */
static int next_step(const char *folder, int64_t *step, struct error *err)
{
    struct store *store;
    *step = 1;
    if (store_open(folder, NULL, &store, err)) {
        if (err->code == ERR_NOINPUT)
            error_clear(err);
        return err->code;
    }
    store_next_step(store, step, err);
    store_close(store);
    return err->code;
}

/* Shards that restore from other shards' parts get variables one by one, when a graph comes. Until
 * all are there, a checkpoint would lack some, or mix values of different steps.
 */
static int check_complete(struct shard *shard, struct clock *clock, struct error *err)
{
    if (clock && clock_was_joined(clock))
        shard_react(shard, SHARD_JOINED);
    enum shard_reaction what = shard_react(shard, SHARD_SAVE);
    if (what == SHARD_CHECK)
        error_set(err, ERR_RETRY,
                  "nothing to save: no worker has come since a checkpoint was restored");
    else if (what == SHARD_REFUSE)
        error_set(err, ERR_UNAVAILABLE, "%s ends", shard->options.task);
    return err->code;
}

static int cut_for(struct leading_save *save, const struct shard_save_request *wanted,
                   struct error *err)
{
    int code = check_complete(save->shard, wanted->clock, err);
    if (!code)
        code = shard_find_others(save->shard, &save->others, wanted->seconds, err);
    /* The shard with the clock comes first: what its clock knows, the other shards still have. The
     * clock was held for this, until here. */
    struct clock_member workers[SHARD_WORKERS_MAX];
    int n = !code && wanted->clock ? clock_workers(wanted->clock, workers, SHARD_WORKERS_MAX) : 0;
    for (int i = 0; i < n && i < SHARD_WORKERS_MAX; i++)
        str_printf(&save->pushes, "worker:%d %lld\n", (int)workers[i].worker,
                   (long long)workers[i].counted);
    struct shard_origin origin = shard_origin(save->shard);
    origin.step = save->step;
    if (!code)
        code = shard_cut_take(save->shard, save->name, save->step, save->seconds, err);
    if (!code)
        code = await_others(save, ask_others(save, "snapshot", &origin, "a copy of what it keeps"),
                            save->seconds + 1, err);
    if (wanted->clock)
        clock_resume(wanted->clock);
    else if (save->shard->steps)
        step_pause_end(save->shard->steps);
    return code;
}

static void save_release(struct leading_save *save)
{
    shard_others_release(&save->others);
    str_release(&save->pushes);
    arena_release(&save->arena);
}

int shard_save_all(struct shard *shard, const struct shard_save_request *wanted, int64_t *step,
                   struct error *err)
{
    struct leading_save save = {
        .shard = shard, .name = wanted->folder, .step = wanted->step, .seconds = wanted->seconds};
    save.writer = shard_saves_as(shard);
    shard_measure_want(shard, wanted);
    if ((wanted->step >= 0 || !next_step(wanted->folder, &save.step, err)) &&
        !cut_for(&save, wanted, err)) {
        save.seconds = wanted->lock_wait;
        write_all(&save, wanted->keep, err);
    }
    *step = save.step;
    pthread_mutex_lock(&shard->lock); /* the result, for status */
    if (!err->code) {
        shard->saved_step = *step;
        shard->saves++;
    }
    snprintf(shard->save_text, sizeof shard->save_text, "%.250s", err->code ? err->text : "");
    pthread_mutex_unlock(&shard->lock);
    if (save.finds_successor) {
        shard_react(shard, SHARD_LOST);
        if (shard->options.fail)
            shard->options.fail(shard->options.context, err);
    }
    save_release(&save);
    return err->code;
}

static int pause_for(struct shard_query *query, struct shard_save_request *wanted,
                     struct error *err)
{
    const struct shard_fields *fields = &query->fields;
    struct step_pause *steps = query->shard->steps;
    *wanted = (struct shard_save_request){
        .folder = fields->folder ? fields->folder : query->shard->options.save_folder,
        .step = fields->origin.step,
        .keep = query->shard->options.keep,
        .seconds = fields->seconds,
        .lock_wait = fields->seconds,
        .clock = containers_clock(query->shard->options.variables)};
    if (!wanted->folder)
        return error_set(err, ERR_USAGE, "no folder to save to");
    if (steps && (fields->last || shard_is_own_folder(query->shard, wanted->folder)))
        return error_set(err, ERR_CONFIG, "it saves to %s by itself, and goes on with that",
                         query->shard->options.save_folder);
    return wanted->clock ? shard_pause(query->shard, 0, fields->seconds, &wanted->step, err)
           : steps       ? step_pause_begin(steps, fields->seconds, &wanted->step, err)
                         : 0;
}

void shard_save(struct shard_query *query)
{
    struct error err = ERROR_INIT;
    struct shard_save_request wanted;
    struct shard_fields reply = {.origin.step = -1};
    int64_t *step = &reply.origin.step;
    if (!pause_for(query, &wanted, &err) && !shard_save_all(query->shard, &wanted, step, &err)) {
        shard_was_saved(query->shard, wanted.folder, *step);
        if (query->fields.last)
            shard_react(query->shard, SHARD_LAST);
    }
    shard_query_end(query, &reply, &err);
}

void shard_hand_out(struct shard_query *query)
{
    struct error err = ERROR_INIT;
    struct shard_save_request wanted;
    struct leading_save save = {
        .shard = query->shard, .name = query->fields.folder, .seconds = query->fields.seconds};
    if (!save.name || !str_starts(save.name, SHARD_CUT_REMOTE)) {
        error_set(&err, ERR_PROTOCOL, "a request for a cut needs a name of its own");
    } else if (!pause_for(query, &wanted, &err)) {
        save.step = wanted.step;
        cut_for(&save, &wanted, &err);
    }
    /* The fetching process saves the values as a checkpoint of the job's run. */
    struct clock *clock = containers_clock(query->shard->options.variables);
    struct shard_fields reply = {
        .is_versioned = clock != NULL,
        .exact = clock && clock_has_one_version(clock),
        .origin = {.step = save.step, .run = shard_saves_as(query->shard).run}};
    save_release(&save);
    shard_query_end(query, &reply, &err);
}
