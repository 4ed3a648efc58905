/* SPDX-License-Identifier: Apache-2.0
 *
 * Three passes over the chunks. The first compares each chunk with the one at its place in the
 * newest checkpoint, up to the first different byte, and tells how much may be new; space is
 * allocated for that. One thread, as LMDB requires, looks up all places; then several threads
 * compare. The second computes digests, in several threads, and writes chunks that no checkpoint
 * has, in one transaction or, beyond LMDB's limit, in several: chunks without a manifest are not a
 * checkpoint. The last transaction adds the manifest and moves the head.
 *
 * Chunks are written by pwrite to where LMDB has placed them: the map shows the same pages, and a
 * failing disk gives an error with pwrite but a signal with the map.
 */
#include "checkpoint/store/save.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/time.h"
#include "checkpoint/store/best.h"
#include "checkpoint/store/checkpoint.h"
#include "checkpoint/store/pages_private.h"
#include "checkpoint/store/parallel.h"
#include "checkpoint/store/store_private.h"
#include "exec/state/resource.h"

#define TXN_CHUNKS 16384 /* LMDB allows 131,071 dirty pages or runs per transaction */
#define TREE_BYTES(n) ((n)*512 + ((uint64_t)1 << 18)) /* maximum space of n keys in the tree */
#define ATTEMPTS 3
#define COMPARE_BYTES 65536
#define CHUNK_NOWHERE UINT64_MAX

static const struct timespec look_again = {.tv_nsec = 10000000}; /* pause of the rate limit */

struct save_chunk {
    const void *data; /* NULL: request->read has it */
    size_t n;
    size_t tensor;        /* which of the request's, */
    uint64_t index;       /* and which chunk of that */
    struct digest digest; /* of the newest checkpoint's chunk at this place */
    uint64_t offset;      /* of that chunk in the file; CHUNK_NOWHERE: there is none */
    bool reused;          /* that chunk has the same bytes */
};

struct store_save {
    struct store *store;
    const struct save_request *request;
    struct ckpt_manifest *manifest;
    struct ckpt_manifest newest; /* the previous one */
    struct ckpt_manifest there;  /* of the same step */
    bool is_there;
    bool is_same;                     /* and no difference was found yet */
    size_t n_compared;                /* shards */
    VEC(struct save_chunk) chunks;    /* of all tensors, in order */
    struct digest_item *items;        /* of the chunks that are not reused, */
    const struct save_chunk **wanted; /* which are these */
    size_t n_items;
    void *data;          /* of a chunk that had to be read */
    uint64_t done;       /* bytes processed */
    uint64_t shards_new; /* bytes that the shards wrote */
    double started;
};

/* ---- first pass: what may be new ---- */

static int find_newest(struct store_save *s, struct error *err)
{
    struct store_head head;
    struct error ignored = ERROR_INIT;
    MDB_txn *txn;
    if (store_begin(s->store, false, &txn, err))
        return err->code;
    store_read_head(s->store, txn, &head, err);
    store_abort(s->store, txn);
    if (err->code)
        return err->code;
    s->manifest->sequence = head.sequence + 1;
    if (head.step >= 0) /* a damaged one is simply not used */
        store_manifest(s->store, head.step, &s->newest, &ignored);
    return 0;
}

static bool is_equal_at(const struct store *store, const void *data, size_t n, uint64_t place)
{
    uint8_t stored[COMPARE_BYTES];
    struct error ignored = ERROR_INIT;
    for (size_t done = 0; done < n;) {
        size_t part = n - done < sizeof stored ? n - done : sizeof stored;
        if (pages_read(store->fd, stored, part, place + done, &ignored) ||
            memcmp(stored, (const char *)data + done, part) != 0)
            return false;
        done += part;
    }
    return true;
}

static int stopped(const struct store_save *s, struct error *err)
{
    return error_set(err, ERR_CANCELLED, "%s: stopped; step %" PRId64 " was not saved",
                     s->store->name, s->request->step);
}

/* Returns whether the store has exactly this chunk, intact. */
static bool is_stored(struct store *store, MDB_txn *txn, const struct digest_item *item)
{
    struct error ignored = ERROR_INIT;
    uint64_t place;
    return !store_find_chunk(store, txn, &item->digest, item->n, &place, &ignored) &&
           is_equal_at(store, item->data, item->n, place);
}

static int compare_chunk(void *context, uint64_t i, struct error *err)
{
    const struct store_save *s = context;
    struct save_chunk *chunk = &s->chunks.items[i];
    (void)err;
    if (chunk->offset != CHUNK_NOWHERE)
        chunk->reused = is_equal_at(s->store, chunk->data, chunk->n, chunk->offset);
    return 0;
}

/* Looks for chunks that have no data here, in the whole store, by their digests. */
static int find_chunks(struct store_save *s, MDB_txn *txn, struct error *err)
{
    const struct save_request *request = s->request;
    uint64_t total = 0;
    vec_each(chunk, &s->chunks)
        total += chunk->n;
    for (size_t i = 0; i < s->chunks.n && !err->code; i++) {
        struct save_chunk *chunk = &s->chunks.items[i];
        if (chunk->data)
            continue;
        struct digest_item item = {.data = s->data, .n = chunk->n};
        if (request->progress && !request->progress(request->context, 0, total))
            return stopped(s, err);
        if (!request->read(request->source, chunk->tensor, chunk->index, s->data, &item.digest,
                           err)) {
            chunk->digest = item.digest;
            chunk->reused = is_stored(s->store, txn, &item);
        }
    }
    return err->code;
}

/* Lists the chunks of all tensors, and compares each with the chunk at its place in `newest`. */
static int compare_chunks(struct store_save *s, struct ckpt_manifest *newest, struct error *err)
{
    const struct save_request *request = s->request;
    struct error ignored = ERROR_INIT;
    MDB_txn *txn;
    for (size_t i = 0; i < request->n_tensors; i++) {
        const struct variable_record *t = &request->tensors[i];
        const struct manifest_tensor *before = ckpt_manifest_find(newest, t->container, t->name);
        const char *data = t->value.data;
        uint64_t bytes = tensor_bytes(&t->value);
        if (before && (before->bytes != bytes || !data))
            before = NULL;
        for (uint64_t k = 0; k < chunk_count(bytes); k++) {
            struct save_chunk chunk = {.data = data ? data + k * CHUNK_BYTES : NULL,
                                       .n = chunk_size(bytes, k),
                                       .tensor = i,
                                       .index = k,
                                       .offset = CHUNK_NOWHERE};
            if (before) {
                chunk.digest = before->chunks[k];
                chunk.offset = 0;
            }
            vec_push(&s->chunks, chunk);
        }
    }
    if (store_begin(s->store, false, &txn, err))
        return err->code;
    vec_each(chunk, &s->chunks) {
        if (chunk->offset != CHUNK_NOWHERE &&
            store_find_chunk(s->store, txn, &chunk->digest, chunk->n, &chunk->offset, &ignored))
            chunk->offset = CHUNK_NOWHERE; /* it is damaged, and is written again */
    }
    checkpoint_parallel(request->threads, s->chunks.n, compare_chunk, s, err);
    if (request->read && newest->sequence) /* an empty store has none of them */
        find_chunks(s, txn, err);
    store_abort(s->store, txn);
    return err->code;
}

/* ---- what is there of the same step ---- */

/* Finds the checkpoint of that step. Errors are those of reading; a damaged one counts as none. */
static int find_there(struct store *store, int64_t step, bool *is_there,
                      struct ckpt_manifest *there, struct error *err)
{
    int code = store_manifest(store, step, there, err);
    *is_there = !code;
    if (code != ERR_NOINPUT && code != ERR_DATA)
        return code;
    error_clear(err);
    return 0;
}

/* Returns whether the tensors are alike except for their data. `there` NULL: there is none. */
static bool is_like(const struct manifest_tensor *mine, const struct manifest_tensor *there)
{
    return there && there->type == mine->type && shape_equal(&there->shape, &mine->shape) &&
           there->bytes == mine->bytes && variable_slice_equal(&there->slice, &mine->slice);
}

static void print_run(const struct ckpt_run *run, struct str *out)
{
    str_append(out, run_is_known(run) ? "run " : "a run that is not known");
    if (run_is_known(run))
        run_print(run, out);
}

static int refuse(const struct store *store, const struct ckpt_manifest *there, const char *how,
                  struct error *err)
{
    struct str run = STR_INIT;
    print_run(&there->run, &run);
    error_set(err, ERR_CONFIG, "%s@%" PRId64 ": is there already%s, of %s", store->name,
              there->step, how, run.data);
    str_release(&run);
    return err->code;
}

/* An existing checkpoint of the step: ERR_CONFIG if it may not be replaced; *stays: it is equal. */
static int check_over(struct store_save *s, bool *stays, struct error *err)
{
    const struct save_request *request = s->request;
    const struct ckpt_manifest *mine = s->manifest, *there = &s->there;
    if (request->is_part || request->over == SAVE_OVER_ANY ||
        (request->over == SAVE_OVER_OWN && run_equal(&request->run, &there->run)))
        return 0;
    bool same = request->n_tensors == there->tensors.n && mine->shards.n == there->shards.n;
    for (size_t i = 0; same && i < mine->shards.n; i++)
        same = !strcmp(mine->shards.items[i].name, there->shards.items[i].name) &&
               digest_equal(&mine->shards.items[i].manifest, &there->shards.items[i].manifest);
    for (size_t i = 0; same && i < request->n_tensors; i++) {
        const struct manifest_tensor like = manifest_tensor_of(&request->tensors[i]);
        same = is_like(&like, ckpt_manifest_find(&s->there, like.container, like.name));
    }
    for (size_t i = 0; same && i < s->chunks.n; i++)
        same = s->chunks.items[i].reused;
    *stays = same;
    return same ? 0 : refuse(s->store, there, " with other values", err);
}

static bool is_tensor_copy(const struct manifest_tensor *t, struct ckpt_manifest *there)
{
    const struct manifest_tensor *other = ckpt_manifest_find(there, t->container, t->name);
    return is_like(t, other) &&
           !memcmp(t->chunks, other->chunks, chunk_count(t->bytes) * sizeof *t->chunks);
}

/* A second save of a step, at a job's end, has the same variables, but resources as they are then:
 * for example, workers have left. */
static bool is_later_save(const struct checkpoint *from, struct ckpt_manifest *there)
{
    const struct ckpt_manifest *m = &from->manifest;
    bool same = run_is_known(&m->run) && run_equal(&m->run, &there->run) &&
                m->n_tensors == there->n_tensors && !there->shards.n && m->time > there->time;
    for (size_t i = 0; same && i < from->entries.n; i++) {
        const struct manifest_tensor *t = from->entries.items[i].tensor;
        same = resource_is_part(t->name) || is_tensor_copy(t, there);
    }
    return same;
}

int save_check_copy(struct store *store, const struct checkpoint *from, bool *stays,
                    struct error *err)
{
    struct ckpt_manifest there;
    bool is_there;
    *stays = false;
    if (find_there(store, from->manifest.step, &is_there, &there, err) || !is_there)
        return err->code;
    *stays = from->entries.n == there.tensors.n && !there.shards.n;
    for (size_t i = 0; *stays && i < from->entries.n; i++)
        *stays = is_tensor_copy(from->entries.items[i].tensor, &there);
    if (!*stays && !is_later_save(from, &there))
        refuse(store, &there, " with other values", err);
    ckpt_manifest_release(&there);
    return err->code;
}

int store_may_save(struct store *store, int64_t step, const struct ckpt_run *run, struct error *err)
{
    struct ckpt_manifest there;
    bool is_there;
    error_clear(err);
    if (find_there(store, step, &is_there, &there, err) || !is_there)
        return err->code;
    if (!run_equal(run, &there.run))
        refuse(store, &there, "", err);
    ckpt_manifest_release(&there);
    return err->code;
}

int store_check_alone(struct store *store, const struct ckpt_run *run, struct error *err)
{
    manifest_vec all;
    const struct ckpt_manifest *other = NULL;
    error_clear(err);
    if (store_manifests(store, &all, NULL, err))
        return err->code;
    for (size_t i = 0; i < all.n; i++)
        if (!run_equal(run, &all.items[i].run))
            other = &all.items[i];
    if (other) {
        struct str name = STR_INIT;
        print_run(&other->run, &name);
        error_set(err, ERR_CONFIG,
                  "%s: has checkpoints of %s, the newest of step %" PRId64
                  "; --resume goes on from them, or another store is wanted",
                  store->name, name.data, other->step);
        str_release(&name);
    }
    manifests_release(&all);
    return err->code;
}

/* ---- saving a step again ----
 *
 * A job that was resumed and told to end before it ran a step knows no loss. As long as the
 * variables are bitwise the same, the scalars fetched earlier still belong to them, and a policy
 * that keeps the best must not forget them.
 */

static size_t count_variables(const struct ckpt_manifest *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->tensors.n; i++)
        n += !resource_is_part(m->tensors.items[i].name);
    return n;
}

/* Compares variables only: what clocks know about workers is not a value. */
static bool has_same_variables(const struct ckpt_manifest *a, struct ckpt_manifest *b)
{
    bool same = count_variables(a) == count_variables(b);
    for (size_t i = 0; i < a->tensors.n && same; i++) {
        const struct manifest_tensor *t = &a->tensors.items[i];
        same = resource_is_part(t->name) || is_tensor_copy(t, b);
    }
    return same;
}

/* Compares the new manifest of a shard with the listed one. */
static void compare_shard(struct store_save *s, struct store *shard, const char *name,
                          const struct ckpt_manifest *now)
{
    struct error ignored = ERROR_INIT;
    struct ckpt_manifest listed;
    MDB_txn *txn;
    size_t i = vec_find(&s->there.shards, name);
    const struct manifest_shard *before = i < s->there.shards.n ? &s->there.shards.items[i] : NULL;
    if (!s->is_same)
        return;
    s->n_compared++;
    s->is_same = before && digest_equal(&before->manifest, &now->digest);
    if (!before || s->is_same || store_begin(shard, false, &txn, &ignored))
        return;
    /* When a shard saves the step again, it keeps the listed manifest under its digest. */
    bool is_kept = !store_find_replaced(shard, txn, &before->manifest, &listed, &ignored);
    store_abort(shard, txn);
    if (!is_kept)
        return;
    s->is_same = has_same_variables(now, &listed);
    ckpt_manifest_release(&listed);
}

/* Once digests are known: gives the manifest the scalars that it lacks, if its variables are
 * unchanged. */
static void keep_scalars(struct store_save *s)
{
    struct ckpt_manifest *now = s->manifest;
    double ignored;
    if (!s->is_same || s->n_compared != s->there.shards.n || !has_same_variables(now, &s->there))
        return;
    vec_each(scalar, &s->there.scalars) {
        if (!ckpt_manifest_find_scalar(now, scalar->name, &ignored))
            vec_push(&now->scalars, ((struct manifest_scalar){
                                        arena_strdup(&now->arena, scalar->name), scalar->value}));
    }
}

/* ---- second pass: chunks ---- */

/* Returns item i with its data and its digest. */
static int get_item(struct store_save *s, struct digest_pool *pool, size_t i,
                    struct digest_item *item, struct error *err)
{
    const struct save_chunk *chunk = s->wanted[i];
    if (pool)
        digest_pool_wait(pool, i);
    else if (s->items[i].data)
        s->items[i].digest = digest_of(s->items[i].data, s->items[i].n);
    else
        s->request->read(s->request->source, chunk->tensor, chunk->index, s->data,
                         &s->items[i].digest, err);
    *item = s->items[i];
    if (!item->data)
        item->data = s->data;
    return err->code;
}

/* `status` tells MDB_MAP_FULL from other errors. */
static int put_item(struct store_save *s, MDB_txn *txn, const struct digest_item *item, int *status,
                    struct error *err)
{
    uint8_t bytes[CHUNK_KEY_BYTES];
    MDB_val key = store_chunk_key(bytes, &item->digest), value = {item->n, NULL};
    if (is_stored(s->store, txn, item))
        return 0;
    *status = mdb_put(txn, s->store->dbi, &key, &value, MDB_RESERVE);
    if (*status)
        return store_failed(s->store, *status, "writing", err);
    uint64_t offset = store_offset(s->store, value.mv_data);
    s->manifest->new_bytes += item->n;
    if (item->n < s->store->page_bytes) { /* it lies in a page of the tree, which may move: write
                                           * only by the map */
        memcpy(value.mv_data, item->data, item->n);
        return 0;
    }
    if (pages_write(s->store->fd, item->data, item->n, offset, err))
        return error_prefix(err, "%s: ", s->store->name);
    /* starts the disk before the commit waits for it; only a hint: errors show at the commit
     */
    sync_file_range(s->store->fd, (off_t)offset, (off_t)item->n, SYNC_FILE_RANGE_WRITE);
    return 0;
}

/* Writes chunks from `first` on, as many as fit into a transaction; the last transaction stays open
 * for the manifest. */
static int put_some(struct store_save *s, struct digest_pool *pool, size_t first, MDB_txn **txn,
                    int *status, struct error *err)
{
    size_t end = s->n_items - first < TXN_CHUNKS ? s->n_items : first + TXN_CHUNKS;
    if (store_begin(s->store, true, txn, err))
        return err->code;
    for (size_t i = first; i < end; i++) {
        struct digest_item item;
        if (get_item(s, pool, i, &item, err) || put_item(s, *txn, &item, status, err))
            return err->code;
        const struct save_request *request = s->request;
        s->done += item.n;
        if (request->progress && !request->progress(request->context, s->done, s->manifest->bytes))
            return stopped(s, err);
        while (request->bytes_per_second > 0 && !(request->hurry && atomic_load(request->hurry)) &&
               s->started + (double)s->done / request->bytes_per_second > time_now())
            nanosleep(&look_again, NULL);
    }
    if (end == s->n_items)
        return 0;
    MDB_txn *finished = *txn;
    *txn = NULL;
    return store_commit(s->store, finished, err);
}

/* ---- the manifest ---- */

static void list_tensors(struct store_save *s)
{
    struct ckpt_manifest *m = s->manifest;
    struct digest *digests = arena_array(&m->arena, s->chunks.n + 1, sizeof *digests);
    size_t next = 0;
    for (size_t i = 0; i < s->chunks.n; i++)
        digests[i] =
            s->chunks.items[i].reused ? s->chunks.items[i].digest : s->items[next++].digest;
    m->tensors.n = 0;
    for (size_t i = 0; i < s->request->n_tensors; i++) {
        struct manifest_tensor entry = manifest_tensor_of(&s->request->tensors[i]);
        entry.chunks = digests;
        digests += chunk_count(entry.bytes);
        vec_push(&m->tensors, entry);
    }
}

static int put_manifest(struct store_save *s, MDB_txn *txn, int *status, struct error *err)
{
    uint8_t bytes[STEP_KEY_BYTES];
    struct str text = STR_INIT;
    struct store_head head = {.sequence = s->manifest->sequence, .step = s->manifest->step};
    list_tensors(s);
    keep_scalars(s);
    if (s->request->is_part && store_keep_replaced(s->store, txn, s->manifest->step, err))
        return err->code;
    ckpt_manifest_encode(s->manifest, &text);
    MDB_val key = store_step_key(bytes, s->manifest->step), value = {text.n, text.data};
    *status = mdb_put(txn, s->store->dbi, &key, &value, 0);
    str_release(&text);
    if (*status)
        return store_failed(s->store, *status, "writing", err);
    head.manifest = s->manifest->digest;
    return store_write_head(s->store, txn, &head, err);
}

static int put_all(struct store_save *s, struct digest_pool *pool, int *status, struct error *err)
{
    MDB_txn *txn = NULL;
    size_t first = 0;
    int code;
    s->manifest->new_bytes = s->shards_new;
    s->done = 0;
    for (size_t i = 0; i < s->chunks.n; i++)
        s->done += s->chunks.items[i].reused ? s->chunks.items[i].n : 0;
    while (!(code = put_some(s, pool, first, &txn, status, err)) && !txn)
        first += TXN_CHUNKS;
    if (!code)
        put_manifest(s, txn, status, err);
    return store_commit(s->store, txn, err);
}

/* ---- all of it ---- */

static int describe_shards(struct store_save *s, struct error *err)
{
    for (size_t i = 0; i < s->request->n_shards; i++) {
        struct store *store;
        struct ckpt_manifest manifest;
        struct manifest_shard shard = {.name = s->request->shards[i]};
        const struct store_options options = {.shard = shard.name};
        if (store_open(s->store->folder, &options, &store, err))
            return err->code;
        if (!store_manifest(store, s->request->step, &manifest, err)) {
            shard.manifest = manifest.digest;
            s->manifest->bytes += manifest.bytes;
            s->manifest->n_tensors += manifest.n_tensors;
            s->shards_new += manifest.new_bytes;
            vec_push(&s->manifest->shards, shard);
            compare_shard(s, store, shard.name, &manifest);
            ckpt_manifest_release(&manifest);
        }
        store_close(store);
        if (err->code)
            return err->code;
    }
    return 0;
}

static int describe(struct store_save *s, struct error *err)
{
    struct ckpt_manifest *m = s->manifest;
    const struct save_request *request = s->request;
    m->step = request->step;
    s->is_same = s->is_there;
    m->time = request->time ? request->time : (int64_t)(time_wall() * 1e6);
    m->producer = request->producer;
    m->run = request->run;
    for (size_t i = 0; i < request->n_scalars; i++)
        vec_push(&m->scalars, request->scalars[i]);
    for (size_t i = 0; i < request->n_blobs; i++)
        vec_push(&m->blobs, request->blobs[i]);
    if (s->is_there && run_equal(&m->run, &s->there.run))
        ckpt_manifest_add_tags(m, &s->there);
    for (size_t i = 0; i < request->n_tensors; i++) {
        m->n_tensors += !resource_is_part(request->tensors[i].name);
        m->bytes += tensor_bytes(&request->tensors[i].value);
    }
    if (describe_shards(s, err))
        return err->code;
    /* An empty checkpoint would hide all earlier ones, and nobody could resume from it. A shard's
     * part may be empty: a shard has no variables before its first graph. */
    const struct ckpt_manifest *newest = &s->newest;
    if (s->request->is_part || s->manifest->n_tensors)
        return 0;
    error_set(err, ERR_RETRY, "%s: nothing to save: no variable has a value yet", s->store->name);
    if (newest->n_tensors)
        error_append(err, ", and step %lld has %llu", (long long)newest->step,
                     (unsigned long long)newest->n_tensors);
    return err->code;
}

/* An existing checkpoint of the step stays, is replaced, or is an error. */
static int save_all(struct store_save *s, bool *stays, struct error *err)
{
    struct ckpt_manifest *before = s->is_there ? &s->there : &s->newest;
    *stays = false;
    s->data = s->request->read ? mem_array(1, CHUNK_BYTES) : NULL;
    if (compare_chunks(s, before, err) || (s->is_there && check_over(s, stays, err)) || *stays)
        return err->code;
    uint64_t room = 0; /* bytes that may have to be written */
    s->items = mem_array(s->chunks.n + 1, sizeof *s->items);
    s->wanted = mem_array(s->chunks.n + 1, sizeof *s->wanted);
    vec_each(chunk, &s->chunks) {
        if (chunk->reused)
            continue;
        s->wanted[s->n_items] = chunk;
        s->items[s->n_items++] = (struct digest_item){.data = chunk->data, .n = chunk->n};
        size_t page = s->store->page_bytes;
        room += (chunk->n + PAGES_HEADER_BYTES + page - 1) / page * page;
    }
    room += TREE_BYTES(s->n_items + s->request->n_tensors);
    /* Tests the manifest, as it will be but for digests: one that cannot be read back would be
     * damage in the store. */
    struct str text = STR_INIT;
    struct ckpt_manifest back;
    list_tensors(s);
    if (ckpt_manifest_check_names(s->manifest, err))
        return error_prefix(err, "%s: ", s->store->name);
    ckpt_manifest_encode(s->manifest, &text);
    room += (s->request->is_part ? 2 : 1) * text.n;
    if (ckpt_manifest_decode(text.data, text.n, &back, err))
        error_prefix(err, "%s: cannot be saved: ", s->store->name);
    else
        ckpt_manifest_release(&back);
    str_release(&text);
    if (err->code)
        return err->code;
    struct digest_pool *pool =
        s->data ? NULL : digest_pool_new(s->items, s->n_items, s->request->threads);
    int code = ERR_DATA;
    /* Free pages may be too scattered: then tries again with more space. */
    for (int i = 0, status = MDB_MAP_FULL; code && status == MDB_MAP_FULL && i < ATTEMPTS; i++) {
        error_clear(err);
        code = store_reserve(s->store, room, i > 0, err);
        status = 0;
        if (!code)
            code = put_all(s, pool, &status, err);
    }
    if (pool)
        digest_pool_free(pool);
    return code;
}

int store_save(struct store *store, const struct save_request *request, struct ckpt_manifest *saved,
               struct error *err)
{
    struct ckpt_manifest manifest = {0};
    struct store_save s = {
        .store = store, .request = request, .manifest = &manifest, .started = time_now()};
    error_clear(err);
    BUG_ON(!store->writes || request->step < 0);
    bool stays = false;
    if (!find_newest(&s, err) && !find_there(store, request->step, &s.is_there, &s.there, err) &&
        !describe(&s, err))
        save_all(&s, &stays, err);
    if (err->code || !saved) {
        ckpt_manifest_release(&manifest);
    } else {
        /* The caller gets the manifest of what was saved; if the old one stays, nothing is new and
         * this save has no sequence number. */
        *saved = stays ? s.there : *s.manifest;
        if (stays) {
            saved->sequence = 0;
            saved->new_bytes = 0;
            s.there = (struct ckpt_manifest){0};
            ckpt_manifest_release(s.manifest);
        }
    }
    ckpt_manifest_release(&s.newest);
    ckpt_manifest_release(&s.there);
    vec_release(&s.chunks);
    mem_free(s.items);
    mem_free(s.wanted);
    mem_free(s.data);
    return err->code;
}

int store_save_at(const char *path, const struct store_options *options,
                  const struct save_request *request, struct error *err)
{
    struct store *store;
    if (store_open(path, options, &store, err))
        return err->code;
    store_save(store, request, NULL, err);
    store_close(store);
    return err->code;
}
