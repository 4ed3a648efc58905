/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/checkpoint.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "checkpoint/pages_private.h"
#include "checkpoint/parallel.h"
#include "checkpoint/store_private.h"

/* Holds a read transaction for as long as the checkpoint is open; looking up is quick and done by
 * one thread at a time, reading by all. */
struct checkpoint_part {
    struct store *store;
    bool owns_store;
    struct ckpt_manifest manifest; /* of a shard */
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
    vec_release(&c->parts);
    vec_release(&c->entries);
    ckpt_manifest_release(&c->manifest);
    arena_release(&c->arena);
    mem_free(c);
}

/* ---- opening ---- */

static int open_shard(struct checkpoint *c, struct store *root, const struct manifest_shard *shard,
                      struct error *err)
{
    struct str folder = STR_INIT;
    struct store *store;
    str_printf(&folder, "%s/shards/%s", root->folder, shard->name);
    store_open(folder.data, NULL, &store, err);
    str_release(&folder);
    if (err->code)
        return error_prefix(err, "%s: not complete: ", c->name);
    struct checkpoint_part *part = add_part(c, store, true);
    if (store_begin(store, false, &part->txn, err))
        return err->code;
    if (store_manifest_in(store, part->txn, c->manifest.step, &part->manifest, err))
        return error_prefix(err, "%s: not complete: ", c->name);
    if (!digest_equal(&part->manifest.digest, &shard->manifest))
        return error_set(err, ERR_DATA, "%s: not complete: %s has saved this step once more",
                         c->name, shard->name);
    add_entries(c, part, &part->manifest, shard->name);
    return 0;
}

static int open_parts(struct checkpoint *c, struct store *store, struct error *err)
{
    struct checkpoint_part *own = add_part(c, store, false);
    if (store_begin(store, false, &own->txn, err))
        return err->code;
    /* within the transaction: it may have been forgotten meanwhile */
    if (store_manifest_in(store, own->txn, c->manifest.step, &c->manifest, err))
        return err->code;
    add_entries(c, own, &c->manifest, "");
    for (size_t i = 0; i < c->manifest.shards.n; i++)
        if (open_shard(c, store, &c->manifest.shards.items[i], err))
            return err->code;
    return 0;
}

static int open_step(struct store *store, int64_t step, struct checkpoint **result,
                     struct error *err)
{
    struct checkpoint *c = mem_alloc(sizeof *c);
    c->manifest.step = step;
    c->name = arena_printf(&c->arena, "%s@%" PRId64, store->name, step);
    if (open_parts(c, store, err)) {
        checkpoint_close(c);
        return err->code;
    }
    *result = c;
    return 0;
}

int checkpoint_open(struct store *store, int64_t step, struct checkpoint **checkpoint,
                    struct error *passed_over, struct error *err)
{
    manifest_vec all;
    struct error first = ERROR_INIT;
    error_clear(err);
    if (step != CHECKPOINT_NEWEST)
        return open_step(store, step, checkpoint, err);
    if (store_manifests(store, &all, &first, err))
        return err->code;
    bool found = false;
    for (size_t i = all.n; i-- > 0 && !found;) {
        struct error failed = ERROR_INIT;
        found = !open_step(store, all.items[i].step, checkpoint, &failed);
        if (!found && !first.code)
            first = failed;
    }
    manifests_release(&all);
    if (passed_over)
        *passed_over = first;
    if (found)
        return 0;
    if (first.code)
        *err = first;
    else
        error_set(err, ERR_NOINPUT, "%s: there is no checkpoint in it", store->name);
    return err->code;
}

/* ---- reading ---- */

int checkpoint_find(const struct checkpoint *c, const char *container, const char *name)
{
    for (size_t i = 0; i < c->entries.n; i++) {
        const struct manifest_tensor *t = c->entries.items[i].tensor;
        if (!strcmp(t->name, name) && !strcmp(t->container, container))
            return (int)i;
    }
    return -1;
}

/* Puts in front of an error what it is about. */
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

static int read_chunk(struct checkpoint *c, int i, uint64_t k, void *data, struct error *err)
{
    const struct manifest_tensor *t = c->entries.items[i].tensor;
    size_t n = chunk_size(t->bytes, k);
    uint64_t offset;
    if (!find_chunk(c, i, k, &offset, err) &&
        !pages_read(c->entries.items[i].part->store->fd, data, n, offset, err)) {
        struct digest found = digest_of(data, n);
        if (!digest_equal(&found, &t->chunks[k]))
            error_set(err, ERR_DATA, "digest differs");
    }
    return err->code ? blame(c, i, k, err) : 0;
}

int checkpoint_find_chunk(struct checkpoint *c, int i, uint64_t k, struct error *err)
{
    uint64_t offset;
    return find_chunk(c, i, k, &offset, err) ? blame(c, i, k, err) : 0;
}

int checkpoint_check_chunk(struct checkpoint *c, int i, uint64_t k, void *scratch,
                           struct error *err)
{
    return read_chunk(c, i, k, scratch, err);
}

struct reading {
    struct checkpoint *checkpoint;
    int entry;
    char *data;
};

static int read_one(void *context, uint64_t k, struct error *err)
{
    struct reading *r = context;
    return read_chunk(r->checkpoint, r->entry, k, r->data + k * CHUNK_BYTES, err);
}

/* The digests are right, but a manifest may have been written by anybody. */
static bool strings_fit(const struct tensor *t, uint64_t bytes)
{
    const uint64_t *offsets = t->data;
    int64_t count = tensor_count(t);
    for (int64_t i = 0; i < count; i++)
        if (offsets[i] > offsets[i + 1])
            return false;
    return !offsets[0] && offsets[count] == bytes - (uint64_t)(count + 1) * 8;
}

int checkpoint_read(struct checkpoint *c, int i, struct tensor *value, struct error *err)
{
    const struct manifest_tensor *t = c->entries.items[i].tensor;
    struct tensor result;
    error_clear(err);
    if (t->type == STRING)
        tensor_alloc_strings(&result, &t->shape,
                             (size_t)(t->bytes - (uint64_t)(shape_count(&t->shape) + 1) * 8), err);
    else
        tensor_alloc(&result, t->type, &t->shape, err);
    if (err->code)
        return error_prefix(err, "%s: '%s': ", c->name, t->name);
    struct reading reading = {c, i, result.data};
    int code = checkpoint_parallel(chunk_count(t->bytes), read_one, &reading, err);
    if (!code && t->type == STRING && !strings_fit(&result, t->bytes))
        code = error_set(err, ERR_DATA, "%s: '%s': data that is no string", c->name, t->name);
    if (code && t->type == STRING) /* nobody may look at offsets that were not read */
        memset(result.data, 0, (size_t)(tensor_count(&result) + 1) * 8);
    if (code) {
        tensor_release(&result);
        return code;
    }
    *value = result;
    return 0;
}
