/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/store/verify.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "checkpoint/store/digest_set.h"
#include "checkpoint/store/parallel.h"
#include "checkpoint/store/store_private.h"

enum { CHUNK_GOOD = 1, CHUNK_BAD, CHUNK_THERE }; /* THERE: not read */

struct chunk_task { /* a chunk that was not yet checked */
    int entry;
    uint64_t chunk;
    bool read;
    int result;
};

struct verify {
    struct store *store;
    const struct verify_request *request;
    struct verify_report *report;
    struct checkpoint *checkpoint;
    VEC(struct chunk_task) tasks;
    VEC(struct store *) shards; /* kept open, so that each is walked only once */
    struct digest_set known;
    pthread_mutex_t lock;
    uint64_t total;
};

static void add_problem(struct verify *v, int64_t step, const char *text)
{
    struct verify_problem problem = {step, mem_strdup(text)};
    vec_push(&v->report->problems, problem);
}

/* Records whether the digest was right or, before it is checked, whether the chunk was read. */
static void take_result(struct chunk_task *task, const struct error *failed)
{
    task->result = failed->code ? CHUNK_BAD : task->read ? CHUNK_GOOD : CHUNK_THERE;
}

/* Counts a group; returns false to stop the verification. */
static bool count(struct verify *v, const struct chunk_task *tasks, const struct digest_item *items,
                  size_t m)
{
    const struct maintain_watch *watch = v->request->watch;
    pthread_mutex_lock(&v->lock);
    v->report->chunks += m;
    for (size_t i = 0; i < m; i++) {
        v->report->checked_chunks += tasks[i].read;
        v->report->checked_bytes += tasks[i].read ? items[i].n : 0;
    }
    bool go_on =
        !watch || !watch->progress || watch->progress(watch->context, v->report->chunks, v->total);
    pthread_mutex_unlock(&v->lock);
    return go_on;
}

static int check_tasks(struct verify *v, struct chunk_task *tasks, size_t m, char *scratch,
                       struct error *err)
{
    struct digest_item items[DIGEST_GROUP], read[DIGEST_GROUP];
    size_t n_read = 0, at = 0;
    for (size_t i = 0; i < m; i++) {
        const struct manifest_tensor *t = v->checkpoint->entries.items[tasks[i].entry].tensor;
        items[i] = (struct digest_item){.data = scratch + i * CHUNK_BYTES,
                                        .n = chunk_size(t->bytes, tasks[i].chunk)};
        struct error failed = ERROR_INIT;
        if (tasks[i].read)
            checkpoint_fetch_chunk(v->checkpoint, tasks[i].entry, tasks[i].chunk,
                                   (void *)(uintptr_t)items[i].data, &failed);
        else
            checkpoint_find_chunk(v->checkpoint, tasks[i].entry, tasks[i].chunk, &failed);
        take_result(&tasks[i], &failed);
        if (failed.code && !checkpoint_is_damaged(&failed)) {
            *err = failed;
            return err->code;
        }
        if (tasks[i].result == CHUNK_GOOD)
            read[n_read++] = items[i];
    }
    digest_many(read, n_read);
    for (size_t i = 0; i < m; i++) {
        struct error failed = ERROR_INIT;
        if (tasks[i].result != CHUNK_GOOD)
            continue;
        checkpoint_check_digest(v->checkpoint, tasks[i].entry, tasks[i].chunk, &read[at++].digest,
                                &failed);
        take_result(&tasks[i], &failed);
    }
    if (!count(v, tasks, items, m))
        error_set(err, ERR_CANCELLED, "%s: stopped", v->store->name);
    return err->code;
}

static int check_group(void *context, uint64_t group, struct error *err)
{
    struct verify *v = context;
    size_t first = group * DIGEST_GROUP, left = v->tasks.n - first;
    size_t m = left < DIGEST_GROUP ? left : DIGEST_GROUP;
    char *scratch = mem_try(m * CHUNK_BYTES);
    if (!scratch)
        return error_set(err, ERR_OS, "%s: no memory for %zu chunks", v->store->name, m);
    check_tasks(v, v->tasks.items + first, m, scratch, err);
    mem_free(scratch);
    return err->code;
}

/* Adds one line for the tensor: its first bad chunk, which is read again for the error. */
static void report_tensor(struct verify *v, int entry)
{
    struct checkpoint *c = v->checkpoint;
    const struct manifest_tensor *t = c->entries.items[entry].tensor;
    for (uint64_t k = 0; k < chunk_count(t->bytes); k++) {
        struct error failed = ERROR_INIT;
        if (digest_set_get(&v->known, &t->chunks[k]) != CHUNK_BAD)
            continue;
        void *scratch = mem_alloc(chunk_size(t->bytes, k));
        if (checkpoint_check_chunk(c, entry, k, scratch, &failed))
            add_problem(v, c->manifest.step, failed.text);
        mem_free(scratch);
        return;
    }
}

static int verify_open(struct verify *v, struct error *err)
{
    size_t before = v->report->problems.n;
    struct checkpoint *c = v->checkpoint;
    v->tasks.n = 0;
    for (size_t i = 0; i < c->entries.n; i++) {
        const struct manifest_tensor *t = c->entries.items[i].tensor;
        v->report->tensors++;
        for (uint64_t k = 0; k < chunk_count(t->bytes); k++) {
            struct chunk_task task = {.entry = (int)i, .chunk = k};
            if (digest_set_get(&v->known, &t->chunks[k]))
                continue;
            digest_set_put(&v->known, &t->chunks[k], CHUNK_THERE);
            /* Draws the requested fraction, the same chunks in each run. */
            const double fraction = v->request->fraction;
            double drawn = (double)hash_bytes(&t->chunks[k], sizeof t->chunks[k], v->request->seed);
            task.read = fraction >= 1 || (fraction > 0 && drawn < fraction * 0x1p64);
            vec_push(&v->tasks, task);
        }
    }
    if (checkpoint_parallel(0, (v->tasks.n + DIGEST_GROUP - 1) / DIGEST_GROUP, check_group, v, err))
        return err->code;
    for (size_t i = 0; i < v->tasks.n; i++)
        digest_set_put(&v->known,
                       &v->checkpoint->entries.items[v->tasks.items[i].entry]
                            .tensor->chunks[v->tasks.items[i].chunk],
                       v->tasks.items[i].result);
    for (size_t i = 0; i < v->checkpoint->entries.n; i++)
        report_tensor(v, (int)i);
    if (v->report->problems.n == before)
        v->report->newest_intact = v->checkpoint->manifest.step;
    return 0;
}

int store_verify(struct store *store, const struct verify_request *request,
                 struct verify_report *report, struct error *err)
{
    manifest_vec all;
    damage_vec damages;
    struct verify v = {
        .store = store, .request = request, .report = report, .lock = PTHREAD_MUTEX_INITIALIZER};
    *report = (struct verify_report){.newest_intact = -1};
    if (store_read_all(store, &all, &damages, err))
        return err->code;
    for (size_t i = 0; i < damages.n; i++)
        add_problem(&v, damages.items[i].step, damages.items[i].err.text);
    vec_release(&damages);
    report->checkpoints = all.n;
    /* Shards that cannot be opened are reported with the checkpoints that need them. */
    const struct ckpt_manifest *m = all.n ? &all.items[all.n - 1] : NULL;
    for (size_t i = 0; m && i < m->shards.n; i++) {
        struct str folder = STR_INIT;
        struct store *shard;
        struct error ignored = ERROR_INIT;
        str_printf(&folder, "%s/shards/%s", v.store->folder, m->shards.items[i].name);
        if (!store_open(folder.data, NULL, &shard, &ignored))
            vec_push(&v.shards, shard);
        str_release(&folder);
    }
    struct digest_set set = {0};
    for (size_t i = 0; i < all.n; i++)
        for (size_t k = 0; k < all.items[i].tensors.n; k++)
            for (uint64_t c = 0; c < chunk_count(all.items[i].tensors.items[k].bytes); c++)
                digest_set_put(&set, &all.items[i].tensors.items[k].chunks[c], 1);
    v.total = set.n;
    digest_set_release(&set);
    for (size_t i = 0; i < all.n && !err->code; i++) {
        int64_t step = all.items[i].step;
        struct error failed = ERROR_INIT;
        if (checkpoint_open(v.store, step, &v.checkpoint, NULL, &failed)) {
            if (failed.code == ERR_NOINPUT) /* it was forgotten meanwhile */
                v.report->checkpoints--;
            else if (checkpoint_is_damaged(&failed))
                add_problem(&v, step, failed.text);
            else
                *err = failed;
            continue;
        }
        verify_open(&v, err);
        checkpoint_close(v.checkpoint);
    }
    manifests_release(&all);
    digest_set_release(&v.known);
    vec_release(&v.tasks);
    for (size_t i = 0; i < v.shards.n; i++)
        store_close(v.shards.items[i]);
    vec_release(&v.shards);
    return err->code;
}

void verify_report_release(struct verify_report *report)
{
    for (size_t i = 0; i < report->problems.n; i++)
        mem_free(report->problems.items[i].text);
    vec_release(&report->problems);
}
