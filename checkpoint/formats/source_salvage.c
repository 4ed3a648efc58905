/* SPDX-License-Identifier: Apache-2.0
 *
 * A damaged store as a source of its intact tensors.
 */
#include <inttypes.h>

#include "base/log.h"
#include "checkpoint/formats/source.h"
#include "checkpoint/store/best.h"
#include "checkpoint/store/salvage.h"

struct rescue {
    struct source *source;
    void (*lost)(void *context, const char *line);
    void *context;
    size_t n_lost;
};

static void say_lost(struct rescue *r, const char *shard, const struct error *err)
{
    log_tell(r->lost, r->context, "%s%s%s: %s", r->source->name, *shard ? ": " : "", shard,
             err->text);
    r->n_lost++;
}

static void take_tensors(struct rescue *r, struct salvage *salvage, const char *shard,
                         const struct ckpt_manifest *m)
{
    struct source *s = r->source;
    vec_each(t, &m->tensors) {
        struct source_tensor tensor = {.saved = *t, .entry = -1};
        tensor.saved.container = arena_strdup(&s->arena, t->container);
        tensor.saved.name = arena_strdup(&s->arena, t->name);
        struct error err = ERROR_INIT;
        if (t->slice.of)
            tensor.saved.slice.of = arena_strdup(&s->arena, t->slice.of);
        if (salvage_read(salvage, t, &tensor.value, &err))
            say_lost(r, shard, &err);
        else
            vec_push(&s->tensors, tensor);
    }
}

static const struct ckpt_manifest *choose(const struct salvage *salvage, int64_t step,
                                          const struct digest *digest)
{
    const manifest_vec *all = salvage_manifests(salvage);
    size_t i = all->n;
    while (i > 0 && !(digest ? digest_equal(&all->items[i - 1].digest, digest)
                             : step == CHECKPOINT_NEWEST || all->items[i - 1].step == step))
        i--;
    return i ? &all->items[i - 1] : NULL;
}

/* Finds another step that has, or once had, the tag; -1: there is none. */
static int64_t other_named(const manifest_vec *all, const char *tag, int64_t step)
{
    for (size_t i = 0; i < all->n; i++) {
        const manifest_vec one = {.items = all->items + i, .n = 1};
        if (all->items[i].step != step && ckpt_manifest_named(&one, tag))
            return all->items[i].step;
    }
    return -1;
}

static void take_shard(struct rescue *r, const char *path, const struct manifest_shard *shard)
{
    struct str folder = STR_INIT;
    struct salvage *salvage;
    struct error err = ERROR_INIT;
    str_printf(&folder, "%s/shards/%s", path, shard->name);
    if (salvage_open(folder.data, &salvage, &err)) {
        say_lost(r, shard->name, &err);
    } else {
        const struct ckpt_manifest *m = choose(salvage, 0, &shard->manifest);
        if (m) {
            take_tensors(r, salvage, shard->name, m);
        } else {
            error_set(&err, ERR_DATA, "its manifest is lost");
            say_lost(r, shard->name, &err);
        }
        salvage_close(salvage);
    }
    str_release(&folder);
}

int source_salvage(const char *name, struct source *s, size_t *n_lost,
                   void (*lost)(void *context, const char *line), void *context, struct error *err)
{
    struct rescue rescue = {.source = s, .lost = lost, .context = context};
    struct salvage *salvage;
    const char *path;
    int64_t step;
    *s = (struct source){0};
    error_clear(err);
    /* If the store can no longer resolve the name, the salvaged manifests do. */
    const char *which = source_which(name, &s->arena, &path, &step);
    bool is_lost = source_split(name, &s->arena, &path, &step, err) == ERR_DATA;
    if ((err->code && !is_lost) || salvage_open(path, &salvage, err)) {
        source_close(s);
        return err->code;
    }
    error_clear(err);
    const manifest_vec *all = salvage_manifests(salvage);
    const struct ckpt_manifest *m =
        is_lost ? ckpt_manifest_named(all, which) : choose(salvage, step, NULL);
    int64_t other = m && is_lost && step != CHECKPOINT_BEST ? other_named(all, which, m->step) : -1;
    if (other >= 0) { /* replaced manifests may still be in the file */
        error_set(err, ERR_USAGE,
                  "%s: steps %" PRId64 " and %" PRId64 " have had this tag; name one", name,
                  m->step, other);
    } else if (m) {
        s->step = m->step;
        s->name = arena_printf(&s->arena, "%s@%" PRId64, path, m->step);
        take_tensors(&rescue, salvage, "", m);
        for (size_t i = 0; i < m->shards.n; i++)
            take_shard(&rescue, path, &m->shards.items[i]);
    } else if (choose(salvage, CHECKPOINT_NEWEST, NULL)) {
        error_set(err, ERR_NOINPUT, "%s: no manifest of this %s is there", name,
                  step >= 0 ? "step" : "name");
    } else {
        error_set(err, ERR_DATA, "%s: no manifest is left", name);
    }
    salvage_close(salvage);
    *n_lost = rescue.n_lost;
    if (err->code)
        source_close(s);
    return err->code;
}
