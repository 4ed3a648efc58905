/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/verify.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "checkpoint/digest_set.h"
#include "checkpoint/parallel.h"
#include "checkpoint/store_private.h"

enum { CHUNK_GOOD = 1, CHUNK_BAD, CHUNK_THERE }; /* THERE: not read */

struct task { /* a chunk that was not looked at before */
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
    VEC(struct task) tasks;
    VEC(struct store *) shards; /* held open, so that each is walked once */
    struct digest_set known;
    pthread_mutex_t lock;
    struct error first; /* of the checkpoint's problems */
    uint64_t total;
};

static void add_problem(struct verify *v, int64_t step, const char *text)
{
    struct verify_problem problem = {step, mem_strdup(text)};
    vec_push(&v->report->problems, problem);
}

static bool is_sampled(const struct verify *v, const struct digest *digest)
{
    double limit = v->request->fraction * 18446744073709551616.0;
    return v->request->fraction >= 1 ||
           (double)hash_bytes(digest, sizeof *digest, v->request->seed) < limit;
}

static const struct digest *digest_at(const struct verify *v, const struct task *task)
{
    return &v->checkpoint->entries.items[task->entry].tensor->chunks[task->chunk];
}

static void list_tasks(struct verify *v)
{
    struct checkpoint *c = v->checkpoint;
    v->tasks.n = 0;
    for (size_t i = 0; i < c->entries.n; i++) {
        const struct manifest_tensor *t = c->entries.items[i].tensor;
        v->report->tensors++;
        for (uint64_t k = 0; k < chunk_count(t->bytes); k++) {
            struct task task = {.entry = (int)i, .chunk = k};
            if (digest_set_get(&v->known, &t->chunks[k]))
                continue;
            digest_set_put(&v->known, &t->chunks[k], CHUNK_THERE);
            task.read = v->request->fraction > 0 && is_sampled(v, &t->chunks[k]);
            vec_push(&v->tasks, task);
        }
    }
}

static int check_task(void *context, uint64_t i, struct error *err)
{
    struct verify *v = context;
    struct task *task = &v->tasks.items[i];
    const struct manifest_tensor *t = v->checkpoint->entries.items[task->entry].tensor;
    size_t n = chunk_size(t->bytes, task->chunk);
    struct error failed = ERROR_INIT;
    void *scratch = mem_alloc(task->read ? n : 0);
    int code = task->read ? checkpoint_check_chunk(v->checkpoint, task->entry, task->chunk, scratch,
                                                   &failed)
                          : checkpoint_find_chunk(v->checkpoint, task->entry, task->chunk, &failed);
    mem_free(scratch);
    task->result = code ? CHUNK_BAD : task->read ? CHUNK_GOOD : CHUNK_THERE;
    pthread_mutex_lock(&v->lock);
    v->report->chunks++;
    v->report->checked_chunks += task->read;
    v->report->checked_bytes += task->read ? n : 0;
    const struct maintain_watch *watch = v->request->watch;
    bool go_on =
        !watch || !watch->progress || watch->progress(watch->context, v->report->chunks, v->total);
    pthread_mutex_unlock(&v->lock);
    if (code && code != ERR_DATA && code != ERR_IO) {
        *err = failed;
        return code;
    }
    return go_on ? 0 : error_set(err, ERR_CANCELLED, "%s: stopped", v->store->name);
}

/* One line for each tensor: the first of its chunks that is bad, with the error said anew. */
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
    list_tasks(v);
    if (checkpoint_parallel(v->tasks.n, check_task, v, err))
        return err->code;
    for (size_t i = 0; i < v->tasks.n; i++)
        digest_set_put(&v->known, digest_at(v, &v->tasks.items[i]), v->tasks.items[i].result);
    for (size_t i = 0; i < v->checkpoint->entries.n; i++)
        report_tensor(v, (int)i);
    if (v->report->problems.n == before)
        v->report->newest_intact = v->checkpoint->manifest.step;
    return 0;
}

static int verify_step(struct verify *v, int64_t step, struct error *err)
{
    struct error failed = ERROR_INIT;
    if (checkpoint_open(v->store, step, &v->checkpoint, NULL, &failed)) {
        if (failed.code != ERR_DATA && failed.code != ERR_NOINPUT && failed.code != ERR_IO) {
            *err = failed;
            return err->code;
        }
        add_problem(v, step, failed.text);
        return 0;
    }
    verify_open(v, err);
    checkpoint_close(v->checkpoint);
    return err->code;
}

/* Shards that cannot be opened are told by the checkpoints that need them. */
static void hold_shards(struct verify *v, const manifest_vec *all)
{
    const struct ckpt_manifest *m = all->n ? &all->items[all->n - 1] : NULL;
    for (size_t i = 0; m && i < m->shards.n; i++) {
        struct str folder = STR_INIT;
        struct store *shard;
        struct error ignored = ERROR_INIT;
        str_printf(&folder, "%s/shards/%s", v->store->folder, m->shards.items[i].name);
        if (!store_open(folder.data, NULL, &shard, &ignored))
            vec_push(&v->shards, shard);
        str_release(&folder);
    }
}

static void count_chunks(struct verify *v, const manifest_vec *all)
{
    struct digest_set set = {0};
    for (size_t i = 0; i < all->n; i++)
        for (size_t k = 0; k < all->items[i].tensors.n; k++)
            for (uint64_t c = 0; c < chunk_count(all->items[i].tensors.items[k].bytes); c++)
                digest_set_put(&set, &all->items[i].tensors.items[k].chunks[c], 1);
    v->total = set.n;
    digest_set_release(&set);
}

int store_verify(struct store *store, const struct verify_request *request,
                 struct verify_report *report, struct error *err)
{
    manifest_vec all;
    struct verify v = {
        .store = store, .request = request, .report = report, .lock = PTHREAD_MUTEX_INITIALIZER};
    *report = (struct verify_report){.newest_intact = -1};
    if (store_manifests(store, &all, &v.first, err))
        return err->code;
    if (v.first.code)
        add_problem(&v, -1, v.first.text);
    report->checkpoints = all.n;
    hold_shards(&v, &all);
    count_chunks(&v, &all);
    for (size_t i = 0; i < all.n && !err->code; i++)
        verify_step(&v, all.items[i].step, err);
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
