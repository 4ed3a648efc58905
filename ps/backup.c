/* SPDX-License-Identifier: Apache-2.0 */
#include "ps/backup.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "checkpoint/job/commit.h"
#include "ps/shard_private.h"
#include "ps/tail.h"
#include "ps/verbs.h"
#include "wire/slice.h"

#define SCALARS_SECONDS 5.0

struct backup_fetch {
    struct shard_fields fields; /* of requests; its step and run are the snapshot's */
    const struct backup *backup;
    char name[64];    /* of the snapshot */
    uint64_t n, done; /* parts of the shard; bytes received */
    VEC(struct variable_record) tensors;
    VEC(const char *) names; /* of the shard's variables, in their order */
    struct arena arena;
    struct tail tail; /* of the fetches, if there are any */
};

/* ---- the snapshot ---- */

static int cut(struct backup_fetch *f, struct error *err)
{
    struct client *client = f->backup->client;
    int leader;
    f->fields.folder = f->name;
    f->fields.seconds = client->member.options.timeout / 2;
    if (verbs_leader(client, &leader, err))
        return err->code;
    return shard_fields_ask(client, leader, "cut", &f->fields, "a moment between two rounds", err);
}

/* ---- what one shard keeps ---- */

static void take_names(void *context, const char *task, const struct record *reply)
{
    struct backup_fetch *f = context;
    const msgpack_object *all = record_field(&reply->header, "variables");
    (void)task;
    for (uint32_t i = 0; all && all->type == MSGPACK_OBJECT_ARRAY && i < all->via.array.size; i++) {
        bool is_there = false;
        const char *name = "?";
        record_get_text(&all->via.array.ptr[i], "name", &f->arena, &name);
        record_get_bool(&all->via.array.ptr[i], "initialized", &is_there);
        if (is_there)
            vec_push(&f->names, name);
    }
}

static void receive_part(void *context, const char *task, const struct record *reply)
{
    struct backup_fetch *f = context;
    struct variable_record tensor = {.container = DEFAULT_CONTAINER};
    int64_t updates = 0, n = 0;
    (void)task;
    record_get_int(&reply->header, "n", &n);
    record_get_int(&reply->header, "updates", &updates);
    record_get_text(&reply->header, "container", &f->arena, &tensor.container);
    f->n = (uint64_t)n;
    if (reply->n_tensors != 1)
        return;
    tensor.name = arena_strdup(&f->arena, reply->tensors[0].name);
    if (!record_get_slice(&reply->header, &f->arena, &reply->tensors[0].tensor.shape,
                          &tensor.slice))
        return;
    tensor.updates = (uint64_t)updates;
    tensor_share(&tensor.value, &reply->tensors[0].tensor);
    f->done += tensor_bytes(&tensor.value);
    vec_push(&f->tensors, tensor);
}

static int go_on(const struct backup_fetch *f, struct error *err)
{
    const struct maintain_watch *watch = f->backup->watch;
    if (!watch || !watch->progress || watch->progress(watch->context, f->done, 0))
        return 0;
    return error_set(err, ERR_CANCELLED, "%s: stopped; nothing was saved", f->backup->path);
}

static int fetch_all(struct backup_fetch *f, int task, struct error *err)
{
    struct task_request list = {.verb = "list",
                                .answered = take_names,
                                .about = "the names of its variables",
                                .context = f};
    if (client_ask_one(f->backup->client, task, &list, err))
        return err->code;
    f->fields.index = 0;
    do {
        char about[256];
        size_t i = (size_t)f->fields.index;
        struct task_request part = {
            .verb = "part", .about = about, .answered = receive_part, .context = f};
        shard_fields_add(&part, &f->fields);
        snprintf(about, sizeof about, "'%.200s'",
                 i < f->names.n ? f->names.items[i] : "what it aggregates");
        if (client_ask_one(f->backup->client, task, &part, err) || go_on(f, err))
            return err->code;
        if (f->tensors.n != (size_t)f->fields.index + (f->n > 0))
            return error_set(err, ERR_PROTOCOL, "%s: an answer without a value",
                             f->backup->client->tasks.items[task]);
    } while ((uint64_t)++f->fields.index < f->n);
    return 0;
}

/* Saves one shard after the other: only one shard's values are in memory. */
static int save_shard(struct backup_fetch *f, int task, const char *name, struct error *err)
{
    const struct backup *b = f->backup;
    const struct store_options options = {
        .write = true, .lock_wait = b->lock_wait, .owner = b->owner, .shard = name};
    if (!fetch_all(f, task, err)) {
        const struct save_request request = {.step = f->fields.origin.step,
                                             .run = f->fields.origin.run,
                                             .producer = b->producer,
                                             .tensors = f->tensors.items,
                                             .n_tensors = f->tensors.n,
                                             .is_part = true};
        store_save_at(b->path, &options, &request, err);
    }
    for (size_t i = 0; i < f->tensors.n; i++)
        tensor_release(&f->tensors.items[i].value);
    f->tensors.n = f->names.n = 0;
    return err->code;
}

/* ---- all of it ---- */

/* Waits for the scalars. The loss of these variables is in the records of the next step. A slow
 * worker is not waited for long. */
static void await_scalars(struct backup_fetch *f)
{
    const double end = time_now() + SCALARS_SECONDS;
    struct error ignored = ERROR_INIT;
    if (!f->backup->fetches || !f->fields.is_versioned)
        return;
    tail_want(&f->tail, f->fields.origin.step, f->fields.exact);
    for (tail_read(&f->tail); !f->tail.has_all && f->tail.fd >= 0 && time_now() < end;
         tail_read(&f->tail)) {
        if (go_on(f, &ignored))
            return;
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
}

static int collect_shards(void *context, struct store *store, struct save_request *request,
                          struct error *err)
{
    struct backup_fetch *f = context;
    (void)store;
    for (size_t i = 0; i < request->n_shards; i++)
        if (save_shard(f, (int)i, request->shards[i], err))
            return err->code;
    await_scalars(f);
    request->scalars = f->tail.wanted.items;
    request->n_scalars = f->tail.wanted.n;
    return 0;
}

int backup_save(const struct backup *backup, int64_t *step, struct error *err)
{
    struct backup_fetch f = {.backup = backup};
    const struct client *client = backup->client;
    int64_t *at = &f.fields.origin.step;
    const char **names = arena_array(&f.arena, client->tasks.n, sizeof *names);
    for (size_t i = 0; i < client->tasks.n; i++)
        names[i] = shard_name(&f.arena, client->tasks.items[i]);
    struct commit commit = {.collect = collect_shards, .context = &f};
    error_clear(err);
    snprintf(f.name, sizeof f.name, SHARD_CUT_REMOTE "%ld-%lld", (long)getpid(),
             (long long)time(NULL));
    if (backup->fetches)
        tail_init(&f.tail, backup->fetches);
    if (!client_check_holders(client, err) && !store_next_step(backup->store, at, err) &&
        !cut(&f, err)) {
        commit.request = (struct save_request){.step = *at,
                                               .run = f.fields.origin.run,
                                               .producer = backup->producer,
                                               .shards = names,
                                               .n_shards = client->tasks.n};
        if (!commit_checkpoint(backup->store, &commit, err))
            *step = *at;
    }
    if (backup->fetches)
        tail_release(&f.tail);
    vec_release(&f.tensors);
    vec_release(&f.names);
    arena_release(&f.arena);
    return err->code;
}
