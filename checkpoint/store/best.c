/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/store/best.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "checkpoint/store/store_private.h"

#define SLACK_BYTES (256 << 10)
#define BEST_NAME "best" /* STORE@best */
#define TAG_BLOB "tag:"
#define TAG_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

/* ---- which is the best ---- */

struct best_rule { /* of a run */
    const struct ckpt_run *run;
    char metric[256];
    bool is_low;
};

static bool read_rule(const struct ckpt_manifest *m, struct best_rule *rule)
{
    const struct manifest_blob *blob = ckpt_manifest_find_blob(m, BEST_BLOB);
    if (!blob || blob->n <= 4 || blob->n >= sizeof rule->metric)
        return false;
    memcpy(rule->metric, blob->data, blob->n);
    rule->metric[blob->n] = '\0';
    char *how = rule->metric + blob->n - 4;
    rule->is_low = !strcmp(how, ":min");
    rule->run = &m->run;
    if (!rule->is_low && strcmp(how, ":max") != 0)
        return false;
    *how = '\0';
    return true;
}

const struct ckpt_manifest *best_of(const manifest_vec *manifests)
{
    const struct ckpt_manifest *best = NULL;
    struct best_rule rule = {.run = NULL};
    double value, least = NAN;
    for (size_t i = manifests->n; i-- > 0 && !rule.run;)
        if (!read_rule(&manifests->items[i], &rule))
            rule.run = NULL;
    for (size_t i = manifests->n; i-- > 0 && rule.run;) {
        const struct ckpt_manifest *m = &manifests->items[i];
        if (!run_equal(&m->run, rule.run) || !ckpt_manifest_find_scalar(m, rule.metric, &value) ||
            isnan(value))
            continue;
        value = rule.is_low ? value : -value;
        if (best && value >= least)
            continue;
        best = m;
        least = value;
    }
    return best;
}

/* ---- scalars ---- */

static int rewrite_best(struct store *store, struct ckpt_manifest *m, struct error *err)
{
    MDB_txn *txn;
    uint8_t bytes[STEP_KEY_BYTES];
    struct store_head head;
    struct str text = STR_INIT;
    error_clear(err);
    ckpt_manifest_encode(m, &text);
    if (!ckpt_manifest_check_names(m, err) &&
        !store_reserve(store, SLACK_BYTES + text.n, false, err) &&
        !store_begin(store, true, &txn, err)) {
        MDB_val key = store_step_key(bytes, m->step), value = {text.n, text.data};
        int status = mdb_put(txn, store->dbi, &key, &value, 0);
        if (!store_failed(store, status, "writing", err) &&
            !store_read_head(store, txn, &head, err) && head.step == m->step) {
            head.manifest = m->digest;
            store_write_head(store, txn, &head, err);
        }
        store_commit(store, txn, err);
    }
    str_release(&text);
    return err->code;
}

int store_set_scalars(struct store *store, int64_t step, const struct ckpt_run *run,
                      const struct manifest_scalar *scalars, size_t n, struct error *err)
{
    struct ckpt_manifest m;
    if (store_manifest(store, step, &m, err))
        return err->code;
    for (size_t i = 0; i < n; i++) {
        size_t k = vec_find(&m.scalars, scalars[i].name);
        if (k < m.scalars.n)
            m.scalars.items[k].value = scalars[i].value;
        else
            vec_push(&m.scalars, scalars[i]);
    }
    if (run_equal(&m.run, run))
        rewrite_best(store, &m, err);
    else
        error_set(err, ERR_NOINPUT, "%s@%" PRId64 ": is of another run", store->name, step);
    ckpt_manifest_release(&m);
    return err->code;
}

/* ---- tags: each is a blob without bytes ---- */

bool ckpt_tag_fits(const char *text)
{
    int64_t number;
    return *text && !text[strspn(text, TAG_LETTERS)] && !str_to_int64(text, &number) &&
           strcmp(text, BEST_NAME) != 0;
}

const char *ckpt_manifest_next_tag(const struct ckpt_manifest *m, size_t *i)
{
    while (*i < m->blobs.n) {
        const char *name = m->blobs.items[(*i)++].name;
        if (str_starts(name, TAG_BLOB))
            return name + strlen(TAG_BLOB);
    }
    return NULL;
}

/* Returns one more than the tag's position; 0: the checkpoint lacks the tag. */
static size_t find_tag(const struct ckpt_manifest *m, const char *tag)
{
    const char *name;
    size_t i = 0;
    while ((name = ckpt_manifest_next_tag(m, &i)) && strcmp(name, tag) != 0)
        continue;
    return name ? i : 0;
}

static void add_tag(struct ckpt_manifest *m, const char *tag)
{
    struct manifest_blob blob = {arena_printf(&m->arena, TAG_BLOB "%s", tag), "", 0};
    vec_push(&m->blobs, blob);
}

const struct ckpt_manifest *ckpt_manifest_named(const manifest_vec *manifests, const char *name)
{
    if (!strcmp(name, BEST_NAME))
        return best_of(manifests);
    size_t i = manifests->n;
    while (i > 0 && !find_tag(&manifests->items[i - 1], name))
        i--;
    return i ? &manifests->items[i - 1] : NULL;
}

static void refuse_tag(const struct store *store, const manifest_vec *manifests, const char *name,
                       struct error *err)
{
    VEC(const char *) tags = {0};
    const char *tag;
    for (size_t i = 0; i < manifests->n; i++)
        for (size_t k = 0; (tag = ckpt_manifest_next_tag(&manifests->items[i], &k));)
            vec_push(&tags, tag);
    vec_push(&tags, BEST_NAME);
    vec_push(&tags, NULL);
    error_set(err, ERR_NOINPUT, "%s@%s: no checkpoint has this tag%s", store->name, name,
              str_hint(name, tags.items));
    vec_release(&tags);
}

int store_named(struct store *store, const char *name, int64_t *step, struct error *err)
{
    manifest_vec all;
    if (store_manifests(store, &all, NULL, err))
        return err->code;
    const struct ckpt_manifest *m = ckpt_manifest_named(&all, name);
    if (m)
        *step = m->step;
    else if (!strcmp(name, BEST_NAME))
        error_set(err, ERR_NOINPUT, "%s@%s: nothing there was saved by a metric (--save-best)",
                  store->name, name);
    else
        refuse_tag(store, &all, name, err);
    manifests_release(&all);
    return err->code;
}

void ckpt_manifest_add_tags(struct ckpt_manifest *m, const struct ckpt_manifest *from)
{
    const char *tag;
    for (size_t i = 0; (tag = ckpt_manifest_next_tag(from, &i));)
        if (!find_tag(m, tag))
            add_tag(m, tag);
}

int store_tag(struct store *store, int64_t step, const char *tag, struct error *err)
{
    manifest_vec all;
    if (store_manifests(store, &all, NULL, err))
        return err->code;
    for (size_t i = 0; i < 2 * all.n && !err->code; i++) { /* a kill may leave it twice, not lost */
        struct ckpt_manifest *m = &all.items[i % all.n];
        size_t at = find_tag(m, tag);
        bool gives = i < all.n;
        if (gives != (m->step == step) || gives == (at > 0))
            continue;
        if (at)
            m->blobs.items[at - 1] = m->blobs.items[--m->blobs.n];
        else
            add_tag(m, tag);
        rewrite_best(store, m, err);
    }
    manifests_release(&all);
    return err->code;
}
