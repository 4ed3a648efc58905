/* SPDX-License-Identifier: Apache-2.0
 *
 * Saving a step again. A job that was resumed and told to end before it ran a step knows no loss.
 * As long as the variables are bitwise the same, the scalars fetched earlier still belong to them,
 * and a policy that keeps the best must not forget them.
 */
#include <string.h>

#include "checkpoint/store/save_private.h"
#include "exec/state/resource.h"

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
        const struct manifest_tensor *u = ckpt_manifest_find(b, t->container, t->name);
        same =
            resource_is_part(t->name) ||
            (u && t->type == u->type && shape_equal(&t->shape, &u->shape) && t->bytes == u->bytes &&
             !memcmp(t->chunks, u->chunks, chunk_count(t->bytes) * sizeof *t->chunks));
    }
    return same;
}

void save_again_begin(struct save_again *again, struct store *store, int64_t step)
{
    struct error ignored = ERROR_INIT; /* a damaged one has nothing to keep */
    again->is_same = !store_manifest(store, step, &again->before, &ignored);
}

void save_again_shard(struct save_again *again, struct store *shard, const char *name,
                      const struct ckpt_manifest *now)
{
    struct error ignored = ERROR_INIT;
    struct ckpt_manifest listed;
    MDB_txn *txn;
    size_t i = vec_find(&again->before.shards, name);
    const struct manifest_shard *before =
        i < again->before.shards.n ? &again->before.shards.items[i] : NULL;
    if (!again->is_same)
        return;
    again->n_shards++;
    again->is_same = before && digest_equal(&before->manifest, &now->digest);
    if (!before || again->is_same || store_begin(shard, false, &txn, &ignored))
        return;
    /* When a shard saves the step again, it keeps the listed manifest under its digest.
     */
    bool is_kept = !store_find_replaced(shard, txn, &before->manifest, &listed, &ignored);
    store_abort(shard, txn);
    if (!is_kept)
        return;
    again->is_same = has_same_variables(now, &listed);
    ckpt_manifest_release(&listed);
}

void save_again_keep(struct save_again *again, struct ckpt_manifest *now)
{
    double ignored;
    if (!again->is_same || again->n_shards != again->before.shards.n ||
        !has_same_variables(now, &again->before))
        return;
    for (size_t i = 0; i < again->before.scalars.n; i++) {
        struct manifest_scalar scalar = again->before.scalars.items[i];
        if (ckpt_manifest_find_scalar(now, scalar.name, &ignored))
            continue;
        scalar.name = arena_strdup(&now->arena, scalar.name);
        vec_push(&now->scalars, scalar);
    }
}

void save_again_end(struct save_again *again)
{
    ckpt_manifest_release(&again->before);
}
