/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of a running job. The shard that is asked for one, or has the clock, leads: it holds
 * back the next round of updates, has every shard copy what it keeps, its own first, lets the
 * rounds go on, has the copies written, and writes the manifest when all have said that theirs is
 * on the disk. Updates stand still as long as the copying takes.
 *
 * Without a clock each shard's copy is between two of its steps, but not all shards' between the
 * same two.
 */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "ps/asking.h"
#include "ps/saves.h"
#include "ps/shard_private.h"

void shard_file_name(const char *task, char *name, size_t n)
{
    const char *colon = strchr(task, ':');
    snprintf(name, n, "%.*s-%s.ckpt", colon ? (int)(colon - task) : (int)strlen(task), task,
             colon ? colon + 1 : "0");
}

/* ---- one shard's part ---- */

/* Of two that lead a save at once the later one has the copies. */
static int take(struct shard *shard, const char *folder, int64_t step, double seconds,
                struct error *err)
{
    struct snapshot *snapshot;
    int code = snapshot_take(shard->options.variables, step, seconds, &snapshot, err);
    if (code)
        return code;
    pthread_mutex_lock(&shard->lock);
    struct snapshot *old = shard->snapshot;
    mem_free(shard->snapshot_for);
    shard->snapshot = snapshot;
    shard->snapshot_for = mem_strdup(folder);
    pthread_mutex_unlock(&shard->lock);
    snapshot_free(old);
    return 0;
}

static int write_part(struct shard *shard, const char *folder, struct manifest_file *file,
                      char name[80], struct error *err)
{
    struct snapshot *snapshot = NULL;
    pthread_mutex_lock(&shard->lock);
    if (shard->snapshot && !strcmp(shard->snapshot_for, folder)) {
        snapshot = shard->snapshot;
        shard->snapshot = NULL;
    }
    pthread_mutex_unlock(&shard->lock);
    if (!snapshot)
        return error_set(err, ERR_RETRY, "%s: another save began meanwhile", folder);
    shard_file_name(shard->options.task, name, 80);
    int code = snapshot_write(snapshot, folder, name, file, err);
    snapshot_free(snapshot);
    return code;
}

void shard_snapshot(struct shard_query *query)
{
    struct error err = ERROR_INIT;
    if (!query->folder)
        error_set(&err, ERR_PROTOCOL, "a request for a snapshot needs a folder");
    else
        take(query->shard, query->folder, query->step, query->seconds, &err);
    shard_query_end(query, &err);
}

void shard_write(struct shard_query *query)
{
    struct error err = ERROR_INIT;
    struct manifest_file file;
    char name[80];
    msgpack_packer *packer;
    if (!query->folder)
        error_set(&err, ERR_PROTOCOL, "a request to write needs a folder");
    else
        write_part(query->shard, query->folder, &file, name, &err);
    if (err.code) {
        shard_query_end(query, &err);
        return;
    }
    if ((packer = answer_begin(query->peer, query->id, 3))) {
        pack_key(packer, "name");
        pack_text(packer, file.name);
        pack_key(packer, "bytes");
        msgpack_pack_int64(packer, file.bytes);
        pack_key(packer, "digest");
        pack_text(packer, file.digest);
        answer_end(query->peer, NULL, 0);
    }
    shard_query_free(query);
}

/* ---- leading ---- */

struct save {
    struct shard *shard;
    struct shard_others others;
    struct saves saves;
    struct manifest manifest;
    char *part;
    double seconds;
    struct error bad_reply;
};

static void pack_snapshot(void *context, msgpack_packer *packer)
{
    const struct save *save = context;
    pack_key(packer, "folder");
    pack_text(packer, save->part);
    pack_key(packer, "step");
    msgpack_pack_int64(packer, save->manifest.step);
    pack_key(packer, "seconds");
    msgpack_pack_double(packer, save->seconds);
}

static void pack_write(void *context, msgpack_packer *packer)
{
    const struct save *save = context;
    pack_key(packer, "folder");
    pack_text(packer, save->part);
}

static void take_written(void *context, const char *task, const struct record *reply)
{
    struct save *save = context;
    struct arena arena = ARENA_INIT;
    const char *name, *digest;
    int64_t bytes;
    if (record_get_text(&reply->header, "name", &arena, &name) &&
        record_get_text(&reply->header, "digest", &arena, &digest) &&
        record_get_int(&reply->header, "bytes", &bytes))
        manifest_add_file(&save->manifest, name, bytes, digest);
    else
        error_set(&save->bad_reply, ERR_PROTOCOL, "%s: an answer without name and digest", task);
    arena_release(&arena);
}

static int ask(struct save *save, const struct request *request, double seconds, struct error *err)
{
    struct asking *asking = asking_start(save->shard->options.hub, save->others.tasks.items,
                                         (int)save->others.tasks.n, request);
    int code = asking_finish(asking, false, seconds, err);
    if (!code && save->bad_reply.code)
        *err = save->bad_reply;
    return code ? code : err->code;
}

/* The shard with the clock first: what its clock knows of, the others still have. */
static int copy_all(struct save *save, struct error *err)
{
    struct request request = {.verb = "snapshot",
                              .n_fields = 3,
                              .pack = pack_snapshot,
                              .cancelled = &save->shard->ends,
                              .about = "a copy of what it keeps",
                              .context = save};
    int code = take(save->shard, save->part, save->manifest.step, save->seconds, err);
    return code ? code : ask(save, &request, save->seconds + 1, err);
}

static int write_all(struct save *save, struct error *err)
{
    struct request request = {.verb = "keep",
                              .n_fields = 1,
                              .pack = pack_write,
                              .cancelled = &save->shard->ends,
                              .about = "its part of a checkpoint",
                              .answered = take_written,
                              .context = save};
    struct manifest_file own;
    char name[80];
    struct asking *asking = asking_start(save->shard->options.hub, save->others.tasks.items,
                                         (int)save->others.tasks.n, &request);
    struct error other = ERROR_INIT;
    int code = write_part(save->shard, save->part, &own, name, err);
    int failed = asking_finish(asking, false, SHARD_WAIT_MAX, &other);
    if (!failed && save->bad_reply.code)
        other = save->bad_reply;
    if (!code && other.code)
        *err = other;
    if (!err->code)
        manifest_add_file(&save->manifest, own.name, own.bytes, own.digest);
    return err->code;
}

/* The newest there plus one, where no clock counts. */
static int64_t next_step(const char *folder)
{
    struct manifest newest = {0};
    struct error none = ERROR_INIT;
    char *path;
    int64_t step = saves_find(folder, -1, NULL, &newest, &path, &none) ? 1 : newest.step + 1;
    manifest_release(&newest);
    mem_free(path);
    return step;
}

static void count_pushes(struct save *save, struct clock *clock)
{
    struct clock_worker workers[SHARD_WORKERS_MAX];
    int n = clock_workers(clock, workers, SHARD_WORKERS_MAX);
    char name[32];
    for (int i = 0; i < n && i < SHARD_WORKERS_MAX; i++) {
        snprintf(name, sizeof name, "worker:%d", (int)workers[i].worker);
        manifest_add_pushes(&save->manifest, name, workers[i].counted);
    }
}

/* Copies; where the clock was held for it, that ends here. */
static int copy_between_rounds(struct save *save, const struct shard_save_request *wanted,
                               struct error *err)
{
    save->manifest.step = wanted->step >= 0 ? wanted->step : next_step(save->saves.folder);
    if (wanted->clock)
        count_pushes(save, wanted->clock);
    int code = saves_begin(&save->saves, save->manifest.step, &save->part, err);
    return code ? code : copy_all(save, err);
}

static int copy_and_write(struct save *save, const struct shard_save_request *wanted,
                          struct error *err)
{
    int code = copy_between_rounds(save, wanted, err);
    if (wanted->clock)
        clock_resume(wanted->clock);
    if (!code)
        code = write_all(save, err);
    if (!code)
        code = saves_commit(&save->saves, save->part, &save->manifest, wanted->keep, err);
    if (code && save->part)
        saves_abandon(save->part);
    return code;
}

/* How it went, for status. */
static void note(struct shard *shard, int64_t step, const struct error *err)
{
    pthread_mutex_lock(&shard->lock);
    if (!err->code)
        shard->saved_step = step;
    snprintf(shard->save_text, sizeof shard->save_text, "%.250s", err->code ? err->text : "");
    pthread_mutex_unlock(&shard->lock);
}

int shard_save_all(struct shard *shard, const struct shard_save_request *wanted, int64_t *step,
                   struct error *err)
{
    struct save save = {.shard = shard, .seconds = wanted->seconds};
    int code = shard_find_others(shard, &save.others, wanted->seconds, err);
    if (!code)
        code = saves_open(&save.saves, wanted->folder, err);
    if (!code)
        code = copy_and_write(&save, wanted, err);
    else if (wanted->clock)
        clock_resume(wanted->clock);
    *step = save.manifest.step;
    note(shard, *step, err);
    saves_close(&save.saves);
    shard_others_release(&save.others);
    manifest_release(&save.manifest);
    mem_free(save.part);
    return code;
}

static int save_asked(struct shard_query *query, int64_t *step, struct error *err)
{
    const struct shard_options *options = &query->shard->options;
    struct shard_save_request wanted = {.folder =
                                            query->folder ? query->folder : options->save_folder,
                                        .step = query->step,
                                        .keep = options->keep,
                                        .seconds = query->seconds,
                                        .clock = shard_clock(query->shard)};
    if (!wanted.folder)
        return error_set(err, ERR_USAGE, "no folder to save to");
    if (wanted.clock && shard_pause(query->shard, 0, query->seconds, &wanted.step, err))
        return err->code;
    return shard_save_all(query->shard, &wanted, step, err);
}

void shard_save(struct shard_query *query)
{
    struct error err = ERROR_INIT;
    msgpack_packer *packer;
    int64_t step;
    if (save_asked(query, &step, &err)) {
        answer_error(query->peer, query->id, &err);
    } else if ((packer = answer_begin(query->peer, query->id, 1))) {
        pack_key(packer, "step");
        msgpack_pack_int64(packer, step);
        answer_end(query->peer, NULL, 0);
    }
    shard_query_free(query);
}
