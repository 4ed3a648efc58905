/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a checkpoint's data, as many chunks at once as digests are computed together.
 */
#include "base/memory.h"
#include "checkpoint/store/checkpoint.h"
#include "checkpoint/store/parallel.h"

struct chunk_place {
    int entry;
    uint64_t chunk;
};

/* Reads at most DIGEST_GROUP chunks into `data`, CHUNK_BYTES apart, and checks them. */
static int read_places(struct checkpoint *c, const struct chunk_place *places, size_t m, char *data,
                       struct error *err)
{
    struct digest_item items[DIGEST_GROUP];
    for (size_t i = 0; i < m; i++) {
        uint64_t bytes = c->entries.items[places[i].entry].tensor->bytes;
        void *chunk = data + i * CHUNK_BYTES;
        items[i] = (struct digest_item){.data = chunk, .n = chunk_size(bytes, places[i].chunk)};
        if (checkpoint_fetch_chunk(c, places[i].entry, places[i].chunk, chunk, err))
            return err->code;
    }
    digest_many(items, m);
    for (size_t i = 0; i < m && !err->code; i++)
        checkpoint_check_digest(c, places[i].entry, places[i].chunk, &items[i].digest, err);
    return err->code;
}

static size_t group_size(uint64_t n, uint64_t group)
{
    uint64_t left = n - group * DIGEST_GROUP;
    return left < DIGEST_GROUP ? (size_t)left : DIGEST_GROUP;
}

static uint64_t group_count(uint64_t n)
{
    return (n + DIGEST_GROUP - 1) / DIGEST_GROUP;
}

/* ---- checking all of it ---- */

struct chunk_check {
    struct checkpoint *checkpoint;
    VEC(struct chunk_place) places;
};

static int check_group(void *context, uint64_t group, struct error *err)
{
    struct chunk_check *checking = context;
    size_t m = group_size(checking->places.n, group);
    char *scratch = mem_try(m * CHUNK_BYTES);
    if (!scratch)
        return error_set(err, ERR_OS, "%s: no memory for %zu chunks", checking->checkpoint->name,
                         m);
    read_places(checking->checkpoint, checking->places.items + group * DIGEST_GROUP, m, scratch,
                err);
    mem_free(scratch);
    return err->code;
}

int checkpoint_check_all(struct checkpoint *c, struct error *err)
{
    struct chunk_check checking = {.checkpoint = c};
    for (size_t i = 0; i < c->entries.n; i++) {
        uint64_t n = chunk_count(c->entries.items[i].tensor->bytes);
        for (uint64_t k = 0; k < n; k++) {
            struct chunk_place place = {(int)i, k};
            vec_push(&checking.places, place);
        }
    }
    checkpoint_parallel(0, group_count(checking.places.n), check_group, &checking, err);
    vec_release(&checking.places);
    return err->code;
}

/* ---- reading ---- */

struct entry_reader {
    struct checkpoint *checkpoint;
    int entry;
    char *data;
};

static int read_group(void *context, uint64_t group, struct error *err)
{
    const struct entry_reader *r = context;
    uint64_t first = group * DIGEST_GROUP;
    size_t m = group_size(chunk_count(r->checkpoint->entries.items[r->entry].tensor->bytes), group);
    struct chunk_place places[DIGEST_GROUP];
    for (size_t i = 0; i < m; i++)
        places[i] = (struct chunk_place){r->entry, first + i};
    return read_places(r->checkpoint, places, m, r->data + first * CHUNK_BYTES, err);
}

int checkpoint_read(struct checkpoint *c, int i, struct tensor *value, struct error *err)
{
    const struct manifest_tensor *t = c->entries.items[i].tensor;
    struct tensor result;
    error_clear(err);
    if (manifest_tensor_alloc(t, &result, err))
        return error_prefix(err, "%s: '%s': ", c->name, t->name);
    struct entry_reader reading = {c, i, result.data};
    int code =
        checkpoint_parallel(0, group_count(chunk_count(t->bytes)), read_group, &reading, err);
    if (!code && (code = manifest_tensor_check(t, &result, err)))
        error_prefix(err, "%s: '%s': ", c->name, t->name);
    if (code)
        manifest_tensor_discard(&result);
    else
        *value = result;
    return code;
}
