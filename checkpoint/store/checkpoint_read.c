/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a checkpoint's data, as many chunks at once as digests are computed together.
 */
#include "base/memory.h"
#include "checkpoint/store/checkpoint.h"
#include "checkpoint/store/parallel.h"

size_t checkpoint_chunk_size(const struct checkpoint *c, const struct chunk_place *place)
{
    return chunk_size(c->entries.items[place->entry].tensor->bytes, place->chunk);
}

/* Reads at most DIGEST_GROUP chunks into `data`, CHUNK_BYTES apart, and checks them. */
static int read_places(struct checkpoint *c, struct chunk_place *places, size_t m, char *data,
                       bool marks, struct error *err)
{
    struct digest_item items[DIGEST_GROUP];
    size_t n = 0, at = 0;
    for (size_t i = 0; i < m; i++) {
        struct chunk_place *place = &places[i];
        struct error failed = ERROR_INIT;
        void *chunk = data + i * CHUNK_BYTES;
        if (!checkpoint_fetch_chunk(c, place->entry, place->chunk,
                                    place->is_only_found ? NULL : chunk, &failed) &&
            !place->is_only_found)
            items[n++] = (struct digest_item){.data = chunk, .n = checkpoint_chunk_size(c, place)};
        place->is_bad = failed.code != 0;
        if (failed.code && !(marks && checkpoint_is_damaged(&failed))) {
            *err = failed;
            return err->code;
        }
    }
    digest_many(items, n);
    for (size_t i = 0; i < m && !err->code; i++) {
        struct chunk_place *place = &places[i];
        struct error failed = ERROR_INIT;
        if (place->is_only_found || place->is_bad)
            continue;
        checkpoint_check_digest(c, place->entry, place->chunk, &items[at++].digest, &failed);
        place->is_bad = failed.code != 0;
        if (!marks)
            *err = failed;
    }
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

/* ---- checking ---- */

static int check_group(void *context, uint64_t group, struct error *err)
{
    struct chunk_check *checking = context;
    struct chunk_place *places = checking->places.items + group * DIGEST_GROUP;
    size_t m = group_size(checking->places.n, group);
    char *scratch = mem_try(m * CHUNK_BYTES);
    if (!scratch)
        return error_set(err, ERR_OS, "%s: no memory for %zu chunks", checking->checkpoint->name,
                         m);
    if (!read_places(checking->checkpoint, places, m, scratch, checking->checked, err) &&
        checking->checked)
        checking->checked(checking->context, places, m, err);
    mem_free(scratch);
    return err->code;
}

int checkpoint_check_places(struct chunk_check *checking, struct error *err)
{
    return checkpoint_parallel(0, group_count(checking->places.n), check_group, checking, err);
}

int checkpoint_check_all(struct checkpoint *c, struct error *err)
{
    struct chunk_check checking = {.checkpoint = c};
    for (size_t i = 0; i < c->entries.n; i++) {
        uint64_t n = chunk_count(c->entries.items[i].tensor->bytes);
        for (uint64_t k = 0; k < n; k++) {
            struct chunk_place place = {.entry = (int)i, .chunk = k};
            vec_push(&checking.places, place);
        }
    }
    checkpoint_check_places(&checking, err);
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
        places[i] = (struct chunk_place){.entry = r->entry, .chunk = first + i};
    return read_places(r->checkpoint, places, m, r->data + first * CHUNK_BYTES, false, err);
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
