/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/store/verify.h"

#include <inttypes.h>
#include <pthread.h>

#include "base/map.h"
#include "checkpoint/store/digest_set.h"
#include "checkpoint/store/store_private.h"

enum { CHUNK_GOOD = 1, CHUNK_BAD };

struct verify {
    struct store *store;
    const struct verify_request *request;
    struct verify_report *report;
    struct chunk_check check;   /* of the chunks that were not yet checked */
    VEC(struct store *) shards; /* kept open, so that each is walked only once */
    struct digest_set known;
    pthread_mutex_t lock;
    uint64_t total;
};

static void add_problem(struct verify *v, int64_t step, const struct error *err)
{
    const struct store_damage problem = {step, *err};
    vec_push(&v->report->problems, problem);
}

static int count(void *context, const struct chunk_place *places, size_t n, struct error *err)
{
    struct verify *v = context;
    const struct maintain_watch *watch = v->request->watch;
    pthread_mutex_lock(&v->lock);
    v->report->chunks += n;
    for (size_t i = 0; i < n; i++)
        if (!places[i].is_only_found) {
            v->report->checked_chunks++;
            v->report->checked_bytes += checkpoint_chunk_size(v->check.checkpoint, &places[i]);
        }
    if (watch && watch->progress && !watch->progress(watch->context, v->report->chunks, v->total))
        error_set(err, ERR_CANCELLED, "%s: stopped", v->store->name);
    pthread_mutex_unlock(&v->lock);
    return err->code;
}

static const struct digest *digest_at(const struct verify *v, const struct chunk_place *place)
{
    return &v->check.checkpoint->entries.items[place->entry].tensor->chunks[place->chunk];
}

/* Adds one line for the tensor: its first bad chunk, which is read again for the error. */
static void report_tensor(struct verify *v, int entry)
{
    struct checkpoint *c = v->check.checkpoint;
    struct chunk_place place = {.entry = entry};
    struct chunk_check again = {.checkpoint = c, .places = {.items = &place, .n = 1}};
    uint64_t n = chunk_count(c->entries.items[entry].tensor->bytes);
    struct error failed = ERROR_INIT;
    while (place.chunk < n && digest_set_get(&v->known, digest_at(v, &place)) != CHUNK_BAD)
        place.chunk++;
    if (place.chunk < n && checkpoint_check_places(&again, &failed))
        add_problem(v, c->manifest.step, &failed);
}

static int verify_open(struct verify *v, struct error *err)
{
    size_t before = v->report->problems.n;
    struct checkpoint *c = v->check.checkpoint;
    v->check.places.n = 0;
    for (size_t i = 0; i < c->entries.n; i++) {
        uint64_t n = chunk_count(c->entries.items[i].tensor->bytes);
        v->report->tensors++;
        for (struct chunk_place place = {.entry = (int)i}; place.chunk < n; place.chunk++) {
            const struct digest *digest = digest_at(v, &place);
            if (digest_set_get(&v->known, digest))
                continue;
            digest_set_put(&v->known, digest, CHUNK_GOOD);
            /* Draws the requested fraction, the same chunks in each run. */
            const double fraction = v->request->fraction;
            double drawn = (double)hash_bytes(digest, sizeof *digest, v->request->seed);
            place.is_only_found = fraction < 1 && !(fraction > 0 && drawn < fraction * 0x1p64);
            vec_push(&v->check.places, place);
        }
    }
    if (checkpoint_check_places(&v->check, err))
        return err->code;
    for (size_t i = 0; i < v->check.places.n; i++)
        if (v->check.places.items[i].is_bad)
            digest_set_put(&v->known, digest_at(v, &v->check.places.items[i]), CHUNK_BAD);
    for (size_t i = 0; i < c->entries.n; i++)
        report_tensor(v, (int)i);
    if (v->report->problems.n == before)
        v->report->newest_intact = c->manifest.step;
    return 0;
}

int store_verify(struct store *store, const struct verify_request *request,
                 struct verify_report *report, struct error *err)
{
    manifest_vec all;
    struct verify v = {
        .store = store, .request = request, .report = report, .lock = PTHREAD_MUTEX_INITIALIZER};
    v.check.checked = count;
    v.check.context = &v;
    *report = (struct verify_report){.newest_intact = -1};
    if (store_read_all(store, &all, &report->problems, err))
        return err->code;
    report->checkpoints = all.n;
    /* Shards that cannot be opened are reported with the checkpoints that need them. */
    const struct ckpt_manifest *m = all.n ? &all.items[all.n - 1] : NULL;
    for (size_t i = 0; m && i < m->shards.n; i++) {
        const struct store_options options = {.shard = m->shards.items[i].name};
        struct store *shard;
        struct error ignored = ERROR_INIT;
        if (!store_open(v.store->folder, &options, &shard, &ignored))
            vec_push(&v.shards, shard);
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
        if (checkpoint_open(v.store, step, &v.check.checkpoint, NULL, &failed)) {
            if (failed.code == ERR_NOINPUT) /* it was forgotten meanwhile */
                v.report->checkpoints--;
            else if (checkpoint_is_damaged(&failed))
                add_problem(&v, step, &failed);
            else
                *err = failed;
            continue;
        }
        verify_open(&v, err);
        checkpoint_close(v.check.checkpoint);
    }
    manifests_release(&all);
    digest_set_release(&v.known);
    vec_release(&v.check.places);
    for (size_t i = 0; i < v.shards.n; i++)
        store_close(v.shards.items[i]);
    vec_release(&v.shards);
    return err->code;
}

void verify_report_release(struct verify_report *report)
{
    vec_release(&report->problems);
}
