/* SPDX-License-Identifier: Apache-2.0
 *
 * Forgetting, by a policy or by name; and tags, which protect checkpoints from being forgotten.
 */
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "checkpoint/command/command.h"
#include "checkpoint/store/best.h"

static int apply_policy(struct command *c, struct store *store, struct error *err)
{
    manifest_vec all;
    damage_vec damages;
    struct arena arena = ARENA_INIT;
    if (store_read_all(store, &all, &damages, err))
        return err->code;
    command_say_damages(c, &damages);
    const char *by = c->by ? retain_metric(c->by, &arena, &c->policy.best_is_low, err) : NULL;
    struct retain_item *items = mem_array(all.n + 1, sizeof *items);
    for (size_t i = 0; i < all.n; i++) {
        items[i].step = all.items[i].step;
        items[i].time = all.items[i].time;
        items[i].has_metric = by && ckpt_manifest_find_scalar(&all.items[i], by, &items[i].metric);
    }
    /* A mistyped name must not cause the best ones to be forgotten. */
    bool has_any = !by || !all.n;
    for (size_t i = 0; i < all.n && !has_any; i++)
        has_any = items[i].has_metric;
    if (!has_any) {
        error_set(err, ERR_NOINPUT, "%s: no checkpoint has a scalar '%s'; nothing was forgotten",
                  store_name(store), by);
    } else if (err->code) {
        error_prefix(err, "--by %s: ", c->by);
    } else {
        VEC(int64_t) steps = VEC_INIT;
        retain(&c->policy, items, all.n);
        for (size_t i = 0; i < all.n; i++) {
            size_t tag = 0;
            if (!items[i].kept_by && ckpt_manifest_next_tag(&all.items[i], &tag))
                items[i].kept_by = "tag";
            if (!items[i].kept_by)
                vec_push(&steps, items[i].step);
            if (c->json || c->dry_run || c->verbose)
                text_retain(&c->out, items[i].step, items[i].kept_by, c->dry_run, c->json);
        }
        if (!c->dry_run)
            store_forget(store, steps.items, steps.n, err);
        vec_release(&steps);
    }
    mem_free(items);
    manifests_release(&all);
    arena_release(&arena);
    return err->code;
}

/* Forgets one checkpoint, damaged or not. */
static int forget_step(struct command *c, struct store *store, int64_t step, struct error *err)
{
    struct ckpt_manifest manifest;
    if (!store_manifest(store, step, &manifest, err))
        ckpt_manifest_release(&manifest);
    if (err->code && err->code != ERR_DATA)
        return err->code;
    error_clear(err);
    if (c->json || c->dry_run || c->verbose)
        text_retain(&c->out, step, NULL, c->dry_run, c->json);
    return c->dry_run ? 0 : store_forget(store, &step, 1, err);
}

int command_forget(struct command *c, struct error *err)
{
    struct arena arena = ARENA_INIT;
    struct store *store;
    const char *path;
    int64_t step;
    if (source_split(c->operands[0], &arena, &path, &step, err)) {
        arena_release(&arena);
        return err->code;
    }
    bool is_one = step != CHECKPOINT_NEWEST;
    if (is_one && retain_has_rules(&c->policy))
        error_set(err, ERR_USAGE, "%s: is one checkpoint, and rules are for all", c->operands[0]);
    else if (!is_one && !retain_has_rules(&c->policy))
        error_set(err, ERR_USAGE, "forget needs a rule, such as --keep-last 8");
    else if (!is_one && (c->policy.best > 0) != (c->by != NULL))
        error_set(err, ERR_USAGE, "--keep-best N and --by METRIC need each other");
    if (!err->code && !(c->dry_run ? store_open(path, NULL, &store, err)
                                   : command_open_writing(c, path, &store, err))) {
        if (is_one)
            forget_step(c, store, step, err);
        else
            apply_policy(c, store, err);
        command_measure(c, store);
        store_close(store);
    }
    arena_release(&arena);
    return err->code;
}

/* With a second operand, the checkpoint gets that tag; else it loses the tag that names it.
 */
int command_tag(struct command *c, struct error *err)
{
    struct arena arena = ARENA_INIT;
    struct error none = ERROR_INIT;
    struct checkpoint *newest = NULL;
    struct store *store;
    const char *path, *at = strrchr(c->operands[0], '@');
    const char *tag = c->n_operands > 1 ? c->operands[1] : at ? at + 1 : "";
    int64_t step, taken = STORE_NO_STEP;
    if (source_split(c->operands[0], &arena, &path, &step, err)) {
        arena_release(&arena);
        return err->code;
    }
    if (!*tag)
        error_set(err, ERR_USAGE, "%s: which tag? STORE@TAG", c->operands[0]);
    else if (!ckpt_tag_fits(tag))
        error_set(err, ERR_USAGE,
                  "'%s' is no tag: letters, digits, '.', '_' and '-', neither a number nor 'best'",
                  tag);
    else if (!command_open_writing(c, path, &store, err)) {
        struct ckpt_manifest m;
        if (c->n_operands == 1)
            step = STORE_NO_STEP;
        else if (step == CHECKPOINT_NEWEST && !checkpoint_open(store, step, &newest, NULL, err))
            step = newest->manifest.step;
        checkpoint_close(newest);
        if (!err->code && step != STORE_NO_STEP && !store_manifest(store, step, &m, err))
            ckpt_manifest_release(&m);
        if (!err->code && c->n_operands > 1 && !c->replace &&
            !store_named(store, tag, &taken, &none) && taken != step)
            error_set(err, ERR_USAGE,
                      "%s@%s: is step %" PRId64 "; --replace gives the tag to another", path, tag,
                      taken);
        if (!err->code)
            store_tag(store, step, tag, err);
        command_measure(c, store);
        store_close(store);
    }
    arena_release(&arena);
    return err->code;
}
