/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/store/checkpoint.h"

#include <inttypes.h>

#include "base/memory.h"
#include "checkpoint/store/best.h"
#include "checkpoint/store/pages_private.h"
#include "checkpoint/store/store_private.h"

/* Holds a read transaction while the checkpoint is open. Lookups are quick, and made by one thread
 * at a time; data is read by several. */
struct checkpoint_part {
    struct store *store;
    bool owns_store;
    struct ckpt_manifest manifest; /* the shard's manifest */
    MDB_txn *txn;
    pthread_mutex_t lock;
};

static struct checkpoint_part *add_part(struct checkpoint *c, struct store *store, bool owns)
{
    struct checkpoint_part *part = mem_alloc(sizeof *part);
    part->store = store;
    part->owns_store = owns;
    pthread_mutex_init(&part->lock, NULL);
    vec_push(&c->parts, part);
    return part;
}

static void add_entries(struct checkpoint *c, struct checkpoint_part *part,
                        const struct ckpt_manifest *manifest, const char *shard)
{
    for (size_t i = 0; i < manifest->tensors.n; i++) {
        struct checkpoint_entry entry = {&manifest->tensors.items[i], part, shard};
        vec_push(&c->entries, entry);
    }
}

void checkpoint_close(struct checkpoint *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->parts.n; i++) {
        struct checkpoint_part *part = c->parts.items[i];
        store_abort(part->store, part->txn);
        if (part->owns_store)
            store_close(part->store);
        ckpt_manifest_release(&part->manifest);
        pthread_mutex_destroy(&part->lock);
        mem_free(part);
    }
    name_index_release(&c->index);
    pthread_mutex_destroy(&c->index_lock);
    vec_release(&c->parts);
    vec_release(&c->entries);
    ckpt_manifest_release(&c->manifest);
    arena_release(&c->arena);
    mem_free(c);
}

/* ---- opening ---- */

/* A shard that cannot be read now may still be complete. */
static int blame_shard(const struct checkpoint *c, struct error *err)
{
    return error_prefix(err, "%s: %s", c->name, checkpoint_is_damaged(err) ? "not complete: " : "");
}

static int open_shard(struct checkpoint *c, struct store *root, const struct manifest_shard *shard,
                      struct error *err)
{
    const struct store_options options = {.shard = shard->name};
    struct store *store;
    if (store_open(root->folder, &options, &store, err) == ERR_NOINPUT)
        err->code = ERR_DATA; /* it is missing though listed */
    if (err->code)
        return blame_shard(c, err);
    struct checkpoint_part *part = add_part(c, store, true);
    if (store_begin(store, false, &part->txn, err))
        return blame_shard(c, err);
    /* Opens the manifest of that digest. The shard may have saved the step again, which is not
     * listed yet, or may have lost it in a prune. */
    struct error missing = ERROR_INIT;
    int code =
        store_manifest_in(part->store, part->txn, c->manifest.step, &part->manifest, &missing);
    if (code || !digest_equal(&part->manifest.digest, &shard->manifest)) {
        ckpt_manifest_release(&part->manifest);
        part->manifest = (struct ckpt_manifest){0};
        store_find_replaced(part->store, part->txn, &shard->manifest, &part->manifest, err);
        if (code && err->code)
            *err = missing;
        if (err->code)
            return blame_shard(c, err);
    }
    add_entries(c, part, &part->manifest, shard->name);
    return 0;
}

/* Returns whether the checkpoint was forgotten or saved again since it was opened. Then its shards
 * may have been pruned, and nothing is damaged. */
static bool has_gone(struct store *store, const struct ckpt_manifest *opened)
{
    struct ckpt_manifest now;
    struct error err = ERROR_INIT;
    if (store_manifest(store, opened->step, &now, &err))
        return err.code == ERR_NOINPUT;
    bool gone = !digest_equal(&now.digest, &opened->digest);
    ckpt_manifest_release(&now);
    return gone;
}

static int open_once(struct store *store, int64_t step, struct checkpoint **result, bool *gone,
                     struct error *err)
{
    struct checkpoint *c = mem_alloc(sizeof *c);
    pthread_mutex_init(&c->index_lock, NULL);
    c->manifest.step = step;
    c->name = arena_printf(&c->arena, "%s@%" PRId64, store->name, step);
    *gone = false;
    struct checkpoint_part *own = add_part(c, store, false);
    /* within the transaction: another process may have forgotten it */
    if (!store_begin(store, false, &own->txn, err) &&
        !store_manifest_in(store, own->txn, c->manifest.step, &c->manifest, err)) {
        add_entries(c, own, &c->manifest, "");
        for (size_t i = 0; i < c->manifest.shards.n && !err->code; i++)
            open_shard(c, store, &c->manifest.shards.items[i], err);
    }
    if (err->code) {
        *gone = c->manifest.shards.n && has_gone(store, &c->manifest);
        checkpoint_close(c);
        return err->code;
    }
    *result = c;
    return 0;
}

static int open_step(struct store *store, int64_t step, struct checkpoint **result,
                     struct error *err)
{
    bool gone;
    do
        error_clear(err);
    while (open_once(store, step, result, &gone, err) && gone);
    return err->code;
}

/* ---- the newest ---- */

bool checkpoint_is_damaged(const struct error *err)
{
    return err->code == ERR_DATA;
}

/* A search for the newest checkpoint that `open` can open. */
struct checkpoint_search {
    struct store *store;
    int (*open)(struct store *store, int64_t step, struct checkpoint **checkpoint,
                struct error *err);
    struct checkpoint_listener *skipped;
    struct checkpoint *found; /* NULL: none */
    bool has_gone;            /* some were forgotten since the list was made */
};

static void pass_over(struct checkpoint_search *search, const struct error *why)
{
    if (!search->skipped->first.code)
        error_set(&search->skipped->first, ERR_DATA, "%s", why->text);
    if (search->skipped->tell)
        search->skipped->tell(search->skipped, why->text);
}

/* Skips checkpoints that are damaged or no longer exist. Any other error says nothing about the
 * checkpoint, so that taking an older one would be a guess. */
static int search_list(struct checkpoint_search *search, const manifest_vec *all, struct error *err)
{
    for (size_t i = all->n; i-- > 0;) {
        error_clear(err);
        if (!search->open(search->store, all->items[i].step, &search->found, err))
            return 0;
        if (checkpoint_is_damaged(err))
            pass_over(search, err);
        else if (err->code != ERR_NOINPUT)
            return err->code;
        search->has_gone |= err->code == ERR_NOINPUT;
    }
    error_clear(err);
    return 0;
}

static int search_newest(struct checkpoint_search *search, struct error *err)
{
    do {
        manifest_vec all;
        struct error damaged = ERROR_INIT;
        search->has_gone = false;
        error_clear(&search->skipped->first);
        if (store_manifests(search->store, &all, &damaged, err))
            return err->code;
        if (damaged.code)
            pass_over(search, &damaged);
        search_list(search, &all, err);
        manifests_release(&all);
    } while (!err->code && !search->found && search->has_gone);
    if (err->code || search->found)
        return err->code;
    *err = search->skipped->first;
    return err->code ? err->code
                     : error_set(err, ERR_NOINPUT, "%s: there is no checkpoint in it",
                                 search->store->name);
}

static int open_which(struct checkpoint_search *search, int64_t step,
                      struct checkpoint **checkpoint, struct error *err)
{
    error_clear(err);
    if (step == CHECKPOINT_BEST && store_named(search->store, "best", &step, err))
        return err->code;
    if (step != CHECKPOINT_NEWEST)
        return search->open(search->store, step, checkpoint, err);
    search_newest(search, err);
    *checkpoint = search->found;
    return err->code;
}

int checkpoint_open(struct store *store, int64_t step, struct checkpoint **checkpoint,
                    struct error *passed_over, struct error *err)
{
    struct checkpoint_listener skipped = {.first = ERROR_INIT};
    struct checkpoint_search search = {.store = store, .open = open_step, .skipped = &skipped};
    open_which(&search, step, checkpoint, err);
    if (passed_over && step == CHECKPOINT_NEWEST)
        *passed_over = skipped.first;
    return err->code;
}

/* ---- chunks ---- */

/* Prefixes an error with what it is about. */
static int blame(const struct checkpoint *c, int i, uint64_t k, struct error *err)
{
    const struct checkpoint_entry *entry = &c->entries.items[i];
    return error_prefix(err, "%s: '%s': chunk %" PRIu64 " of %" PRIu64 "%s%s: ", c->name,
                        entry->tensor->name, k + 1, chunk_count(entry->tensor->bytes),
                        *entry->shard ? " in " : "", entry->shard);
}

static int find_chunk(struct checkpoint *c, int i, uint64_t k, uint64_t *offset, struct error *err)
{
    const struct manifest_tensor *t = c->entries.items[i].tensor;
    struct checkpoint_part *part = c->entries.items[i].part;
    pthread_mutex_lock(&part->lock);
    int code = store_find_chunk(part->store, part->txn, &t->chunks[k], chunk_size(t->bytes, k),
                                offset, err);
    pthread_mutex_unlock(&part->lock);
    return code;
}

int checkpoint_fetch_chunk(struct checkpoint *c, int i, uint64_t k, void *data, struct error *err)
{
    size_t n = chunk_size(c->entries.items[i].tensor->bytes, k);
    uint64_t offset;
    if (!find_chunk(c, i, k, &offset, err) && data)
        pages_read(c->entries.items[i].part->store->fd, data, n, offset, err);
    return err->code ? blame(c, i, k, err) : 0;
}

int checkpoint_check_digest(const struct checkpoint *c, int i, uint64_t k,
                            const struct digest *found, struct error *err)
{
    if (digest_equal(found, &c->entries.items[i].tensor->chunks[k]))
        return 0;
    error_set(err, ERR_DATA, "digest differs");
    return blame(c, i, k, err);
}

/* ---- one that is intact ---- */

static int open_checked(struct store *store, int64_t step, struct checkpoint **checkpoint,
                        struct error *err)
{
    error_clear(err);
    if (!open_step(store, step, checkpoint, err) && checkpoint_check_all(*checkpoint, err)) {
        checkpoint_close(*checkpoint);
        *checkpoint = NULL;
    }
    return err->code;
}

int checkpoint_open_intact(struct store *store, int64_t step, struct checkpoint_listener *skipped,
                           struct checkpoint **checkpoint, struct error *err)
{
    struct checkpoint_search search = {.store = store, .open = open_checked, .skipped = skipped};
    if (open_which(&search, step, checkpoint, err) == ERR_DATA && skipped->first.code)
        error_set(err, ERR_DATA, "%s: no checkpoint is intact", store->name);
    return err->code;
}
