/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/command/command.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/time.h"
#include "checkpoint/formats/archive.h"
#include "checkpoint/store/best.h"
#include "checkpoint/store/save.h"
#include "show/show.h"

void command_release(struct command *command)
{
    str_release(&command->out);
}

/* Reports each damaged checkpoint, which does not affect the others, and releases the list. */
static void say_damages(struct command *c, damage_vec *damages)
{
    vec_each(damage, damages) {
        if (damage->step == STORE_NO_STEP)
            log_tell(c->say, c->context, "%s", damage->err.text);
        else
            log_tell(c->say, c->context, "%.400s; tf-ckpt forget STORE@%" PRId64 " removes it",
                     damage->err.text, damage->step);
    }
    vec_release(damages);
}

int command_open_writing(struct command *c, const char *path, struct store **store,
                         struct error *err)
{
    const struct store_options options = {
        .write = true, .lock_wait = c->lock_wait, .owner = c->owner};
    return store_open(path, &options, store, err);
}

void command_measure(struct command *c, struct store *store)
{
    manifest_vec all;
    struct error ignored = ERROR_INIT;
    struct str file = STR_INIT;
    struct stat status;
    str_printf(&file, "%s/data.mdb", store_name(store));
    if (!stat(file.data, &status))
        c->metrics.store_bytes = (uint64_t)status.st_size;
    str_release(&file);
    c->metrics.newest = -1;
    if (store_manifests(store, &all, NULL, &ignored))
        return;
    c->metrics.checkpoints = all.n;
    if (all.n) {
        c->metrics.newest = all.items[all.n - 1].step;
        c->metrics.newest_time = all.items[all.n - 1].time;
    }
    manifests_release(&all);
}

int command_open(struct command *c, const char *name, struct source *source, struct error *err)
{
    if (source_open(name, source, err))
        return err->code;
    if (source->passed_over.code)
        log_tell(c->say, c->context, "%s; taking %s", source->passed_over.text, source->name);
    return 0;
}

/* ---- looking ---- */

int command_init(struct command *c, struct error *err)
{
    return store_create(c->operands[0], err);
}

int command_list(struct command *c, struct error *err)
{
    struct store *store;
    manifest_vec all;
    damage_vec damages;
    if (store_open(c->operands[0], NULL, &store, err))
        return err->code;
    if (!store_read_all(store, &all, &damages, err)) {
        text_list(&c->out, &all, c->json);
        manifests_release(&all);
        say_damages(c, &damages);
        command_measure(c, store);
    }
    store_close(store);
    return err->code;
}

int command_show(struct command *c, struct error *err)
{
    struct source source;
    if (command_open(c, c->operands[0], &source, err))
        return err->code;
    if (!c->all)
        source_drop_resources(&source);
    text_show(&c->out, &source, c->json);
    source_close(&source);
    return 0;
}

static int open_compared(struct command *c, const char *name, struct source *source,
                         struct error *err)
{
    if (command_open(c, name, source, err))
        return err->code;
    if (!c->all)
        source_drop_resources(source);
    source_join_slices(source, err);
    error_clear(err); /* slices that cannot be joined are compared as they are */
    return 0;
}

int command_diff(struct command *c, struct error *err)
{
    struct source a, b;
    difference_vec differences = VEC_INIT;
    if (open_compared(c, c->operands[0], &a, err))
        return err->code;
    if (!open_compared(c, c->operands[1], &b, err)) {
        if (!source_diff(&a, &b, &differences, err)) {
            text_diff(&c->out, &differences, c->json);
            if (differences.n) /* no error line: the output says it */
                err->code = ERR_NEGATIVE;
        }
        vec_release(&differences);
        source_close(&b);
    }
    source_close(&a);
    return err->code;
}

int command_verify(struct command *c, struct error *err)
{
    struct store *store;
    struct verify_report report;
    struct verify_request request = {
        .fraction = c->fraction, .seed = (uint64_t)time_wall(), .watch = &c->watch};
    if (store_open(c->operands[0], NULL, &store, err)) {
        c->metrics.problems = err->code == ERR_DATA;
        return err->code = err->code == ERR_DATA ? ERR_NEGATIVE : err->code;
    }
    if (!store_verify(store, &request, &report, err)) {
        if (c->json || c->verbose)
            text_verify(&c->out, &report, c->json);
        /* The last problem becomes the error line, with advice; the earlier ones are reported. */
        size_t n = report.problems.n;
        c->metrics.problems = (int64_t)n;
        if (n) {
            for (size_t i = 0; i + 1 < n; i++)
                log_tell(c->say, c->context, "%s", report.problems.items[i].err.text);
            const char *last = report.problems.items[n - 1].err.text;
            if (report.newest_intact >= 0)
                error_set(err, ERR_NEGATIVE, "%s; newest intact is %s@%" PRId64, last,
                          store_name(store), report.newest_intact);
            else
                error_set(err, ERR_NEGATIVE, "%s; none is intact; tf-ckpt salvage saves what is",
                          last);
        }
    }
    verify_report_release(&report);
    command_measure(c, store);
    store_close(store);
    return err->code;
}

/* ---- keeping in order ---- */

static int apply_policy(struct command *c, struct store *store, struct error *err)
{
    manifest_vec all;
    damage_vec damages;
    struct arena arena = ARENA_INIT;
    if (store_read_all(store, &all, &damages, err))
        return err->code;
    say_damages(c, &damages);
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

/* With a second operand, the checkpoint gets that tag; else it loses the tag that names it. */
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

int command_prune(struct command *c, struct error *err)
{
    struct store *store;
    struct prune_report report;
    manifest_vec all;
    damage_vec damages;
    if (c->dry_run ? store_open(c->operands[0], NULL, &store, err)
                   : command_open_writing(c, c->operands[0], &store, err))
        return err->code;
    if (!store_read_all(store, &all, &damages, err)) {
        say_damages(c, &damages);
        manifests_release(&all);
    }
    if (!err->code && !store_prune(store, c->dry_run, &c->watch, &report, err)) {
        if (c->json) {
            str_printf(&c->out,
                       "{\"removed_chunks\":%" PRIu64 ",\"removed_bytes\":%" PRIu64
                       ",\"kept_chunks\":%" PRIu64 ",\"kept_bytes\":%" PRIu64 "}\n",
                       report.chunks, report.bytes, report.kept_chunks, report.kept_bytes);
        } else if (c->dry_run || c->verbose) {
            str_printf(&c->out, "%s %sremoved, %s kept\n", show_bytes((int64_t)report.bytes).s,
                       c->dry_run ? "to be " : "", show_bytes((int64_t)report.kept_bytes).s);
        }
    }
    command_measure(c, store);
    store_close(store);
    return err->code;
}

int command_repair(struct command *c, struct error *err)
{
    const struct store_options options = {.lock_wait = c->lock_wait, .owner = c->owner};
    return store_repair(c->operands[0], &options, c->say, c->context, err);
}

/* ---- copying ---- */

/* Appends to an error of copy or import the advice on how to resolve it. */
static int advise(struct error *err)
{
    if (err->code == ERR_CONFIG)
        error_append(err, "; --replace replaces it");
    return err->code;
}

static int copy_one(struct command *c, struct store *from, int64_t step, struct store *to,
                    struct error *err)
{
    struct checkpoint *checkpoint;
    struct ckpt_manifest saved;
    if (checkpoint_open(from, step, &checkpoint, NULL, err))
        return err->code;
    if (!checkpoint_copy(checkpoint, to, c->replace, &c->watch, &saved, err)) {
        if (c->verbose && saved.sequence) {
            str_printf(&c->out, "%s  %s written\n", checkpoint->name,
                       show_bytes((int64_t)saved.new_bytes).s);
        }
        ckpt_manifest_release(&saved);
        const char *tag; /* which another checkpoint of `to` may have */
        for (size_t i = 0; !err->code && (tag = ckpt_manifest_next_tag(&checkpoint->manifest, &i));)
            store_tag(to, checkpoint->manifest.step, tag, err);
    }
    checkpoint_close(checkpoint);
    return advise(err);
}

/* Copies what the other store lacks. A checkpoint that was forgotten meanwhile is skipped. */
static int copy_all(struct command *c, struct store *from, struct store *to, struct error *err)
{
    manifest_vec here;
    struct error first = ERROR_INIT;
    if (store_manifests(from, &here, &first, err))
        return err->code;
    for (size_t i = 0; i < here.n && !err->code; i++) {
        struct error failed = ERROR_INIT;
        copy_one(c, from, here.items[i].step, to, &failed);
        if (!failed.code || failed.code == ERR_NOINPUT)
            continue;
        /* Damage, or another checkpoint in its place, does not stop the others. */
        if (failed.code != ERR_DATA && failed.code != ERR_CONFIG)
            *err = failed;
        else if (first.code)
            log_tell(c->say, c->context, "%s", failed.text);
        else
            first = failed;
    }
    manifests_release(&here);
    if (!err->code && first.code)
        *err = first;
    return err->code;
}

int command_copy(struct command *c, struct error *err)
{
    struct arena arena = ARENA_INIT;
    struct store *from, *to;
    const char *path;
    int64_t step;
    if (!source_split(c->operands[0], &arena, &path, &step, err) &&
        !command_open_writing(c, c->operands[1], &to, err)) {
        if (!store_open(path, NULL, &from, err)) {
            if (from == to)
                error_set(err, ERR_USAGE, "%s: is copied onto itself", path);
            else if (step == CHECKPOINT_NEWEST)
                copy_all(c, from, to, err);
            else
                copy_one(c, from, step, to, err);
            store_close(from);
        }
        command_measure(c, to);
        store_close(to);
    }
    arena_release(&arena);
    return err->code;
}

/* `step` -1: the file does not name a step. */
static int import_save(struct command *c, struct store *store,
                       const struct variable_record *tensors, size_t n, int64_t step,
                       struct error *err)
{
    int64_t at = c->step >= 0 ? c->step : step;
    struct save_request request = {.step = at < 0 ? 0 : at,
                                   .over = c->replace ? SAVE_OVER_ANY : SAVE_OVER_NONE,
                                   .producer = c->producer,
                                   .tensors = tensors,
                                   .n_tensors = n,
                                   .progress = c->watch.progress,
                                   .context = c->watch.context};
    if (!n)
        return error_set(err, ERR_DATA, "%s: has no tensors: nothing to import", c->operands[0]);
    if (run_make(&request.run, c->run_name, err))
        return err->code;
    if (!store_save(store, &request, NULL, err))
        return 0;
    if (err->code == ERR_CONFIG && c->step < 0 && step < 0)
        error_append(err, "; --step N says which it is");
    return advise(err);
}

static int import_source(struct command *c, struct store *store, struct error *err)
{
    struct source source;
    if (source_open(c->operands[0], &source, err))
        return err->code;
    size_t n = 0, all = source_join_slices(&source, err) ? 0 : source.tensors.n;
    struct variable_record *tensors = mem_array(all + 1, sizeof *tensors);
    for (; n < all && !err->code; n++) {
        tensors[n] = manifest_tensor_record(&source.tensors.items[n].saved);
        source_read(&source, n, &tensors[n].value, err);
    }
    if (!err->code)
        import_save(c, store, tensors, n, source.step, err);
    for (size_t i = 0; i < n; i++)
        tensor_release(&tensors[i].value);
    mem_free(tensors);
    source_close(&source);
    return err->code;
}

int command_import(struct command *c, struct error *err)
{
    struct store *store;
    enum export_form form;
    if (command_open_writing(c, c->operands[1], &store, err))
        return err->code;
    if (!export_form_find(c->operands[0], &form, err))
        import_source(c, store, err);
    store_close(store);
    return err->code;
}
