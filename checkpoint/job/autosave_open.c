/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening: what the store already holds, and what a checkpoint gets besides the variables.
 */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/time.h"
#include "checkpoint/job/autosave_private.h"
#include "checkpoint/policy/retain.h"

int interval_parse(const char *text, struct interval *every, struct error *err)
{
    *every = (struct interval){0};
    if (str_to_int64(text, &every->steps)
            ? every->steps > 0
            : str_to_seconds(text, &every->seconds) && every->seconds > 0)
        return 0;
    return error_set(err, ERR_USAGE,
                     "'%s' is neither a number of steps below 2^63 nor a time like 30s", text);
}

void autosave_set_scalar(struct autosave *a, const char *name, double value, bool is_before)
{
    if (!a)
        return;
    size_t i = vec_find(&a->scalars, name);
    if (i == a->scalars.n)
        vec_push(&a->scalars, ((struct measurement){.name = mem_strdup(name)}));
    a->scalars.items[i].value = value;
    a->scalars.items[i].is_before = is_before;
}

void autosave_drop_scalar(struct autosave *a, const char *name)
{
    size_t i = a ? vec_find(&a->scalars, name) : 0;
    if (!a || i == a->scalars.n)
        return;
    mem_free(a->scalars.items[i].name);
    a->scalars.items[i] = vec_pop(&a->scalars);
}

void autosave_set_blob(struct autosave *a, const char *name, const void *data, size_t n)
{
    if (!a)
        return;
    char *copy = mem_alloc(n);
    memcpy(copy, data, n);
    size_t i = vec_find(&a->blobs, name);
    if (i == a->blobs.n)
        vec_push(&a->blobs, ((struct manifest_blob){.name = mem_strdup(name)}));
    struct manifest_blob *blob = &a->blobs.items[i];
    mem_free((void *)(uintptr_t)blob->data);
    *blob = (struct manifest_blob){blob->name, copy, n};
}

bool autosave_is_better(const struct autosave *a, double value)
{
    return retain_is_better(a->options.best_is_low, value, a->best);
}

int autosave_open(const struct autosave_options *options, struct autosave **autosave,
                  struct error *err)
{
    if (store_ensure(options->path, err))
        return err->code;
    struct autosave *a = mem_alloc(sizeof *a);
    a->options = *options;
    a->saved = options->step > 0 ? options->step : -1;
    a->last_begun = options->step;
    a->best = NAN;
    a->unmeasured = -1;
    a->late.step = -1;
    a->last_time = time_now();
    /* The run's earlier checkpoints count when a metric must be a new best. */
    manifest_vec all;
    struct store *store;
    if (!store_open(a->options.path, NULL, &store, err)) {
        *err = *store_rolled_back(store); /* reported now, not at the first save */
        if (!err->code && !store_check_writer(store, &a->options.writer, err) &&
            !store_manifests(store, &all, NULL, err)) {
            for (size_t i = 0; i < all.n; i++) {
                double value;
                if (a->options.best && run_equal(&all.items[i].run, &a->options.writer.run) &&
                    ckpt_manifest_find_scalar(&all.items[i], a->options.best, &value) &&
                    autosave_is_better(a, value))
                    a->best = value;
            }
            manifests_release(&all);
        }
        store_close(store);
    }
    if (err->code)
        mem_free(a);
    else
        *autosave = a;
    return err->code;
}
