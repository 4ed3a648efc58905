/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/policy/autosave.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/thread.h"
#include "base/time.h"
#include "checkpoint/store/maintain.h"
#include "checkpoint/variables/cut.h"
#include "exec/state/saver.h"

#define LOCK_WAIT_SECONDS 600 /* a nightly job may be at work on the store */
#define NICENESS 10           /* of the thread in the background */

struct autosave_job { /* one save */
    struct autosave *autosave;
    int64_t step;
    struct cut cut;
    VEC(struct manifest_scalar) scalars;
    VEC(struct manifest_blob) blobs;
    struct arena arena;
    bool in_background;
    struct error err;
    struct error left; /* why older ones are still there */
};

struct autosave {
    struct autosave_options options;
    VEC(struct manifest_scalar) scalars; /* names and data are owned */
    VEC(struct manifest_blob) blobs;
    int64_t saved, last_begun; /* steps; -1: none */
    bool is_alone;             /* there is a checkpoint of the run, or there was no other's */
    double last_time;
    double best;              /* NaN: none yet */
    struct autosave_job *job; /* under way, with its thread */
    pthread_t thread;
    atomic_bool done, hurry; /* hurry: somebody waits for it */
    struct error succeeded; /* by another job, which has the store; the thread's, if there is one */
    struct autosave_counts counts;
};

int autosave_parse_interval(const char *text, int64_t *steps, double *seconds, struct error *err)
{
    *steps = 0;
    *seconds = 0;
    if (str_to_int64(text, steps) ? *steps > 0 : str_to_seconds(text, seconds) && *seconds > 0)
        return 0;
    return error_set(err, ERR_USAGE, "'%s' is neither a number of steps nor a time like 30s", text);
}

/* ---- what a checkpoint gets besides the variables ---- */

void autosave_set_scalar(struct autosave *a, const char *name, double value)
{
    for (size_t i = 0; i < a->scalars.n; i++) {
        if (!strcmp(a->scalars.items[i].name, name)) {
            a->scalars.items[i].value = value;
            return;
        }
    }
    struct manifest_scalar scalar = {mem_strdup(name), value};
    vec_push(&a->scalars, scalar);
}

void autosave_set_blob(struct autosave *a, const char *name, const void *data, size_t n)
{
    char *copy = mem_alloc(n);
    memcpy(copy, data, n);
    for (size_t i = 0; i < a->blobs.n; i++) {
        if (!strcmp(a->blobs.items[i].name, name)) {
            mem_free((void *)(uintptr_t)a->blobs.items[i].data);
            a->blobs.items[i] = (struct manifest_blob){a->blobs.items[i].name, copy, n};
            return;
        }
    }
    struct manifest_blob blob = {mem_strdup(name), copy, n};
    vec_push(&a->blobs, blob);
}

static double metric_of(const struct autosave *a)
{
    for (size_t i = 0; a->options.best && i < a->scalars.n; i++)
        if (!strcmp(a->scalars.items[i].name, a->options.best))
            return a->scalars.items[i].value;
    return NAN;
}

static bool is_better(const struct autosave *a, double value)
{
    if (isnan(value) || isnan(a->best))
        return !isnan(value);
    return a->options.best_is_low ? value < a->best : value > a->best;
}

/* ---- one save ---- */

static void copy_scalars_and_blobs(struct autosave_job *job)
{
    const struct autosave *a = job->autosave;
    for (size_t i = 0; i < a->scalars.n; i++) {
        struct manifest_scalar scalar = a->scalars.items[i];
        scalar.name = arena_strdup(&job->arena, scalar.name);
        vec_push(&job->scalars, scalar);
    }
    for (size_t i = 0; i < a->blobs.n; i++) {
        struct manifest_blob blob = a->blobs.items[i];
        blob.name = arena_strdup(&job->arena, blob.name);
        blob.data = arena_copy(&job->arena, blob.data, blob.n);
        vec_push(&job->blobs, blob);
    }
}

/* Between two steps, when nobody writes: no variable has to be locked. */
static void take_cut(struct autosave_job *job)
{
    struct variable_store *store = job->autosave->options.variables;
    variable_vec all = VEC_INIT;
    for (struct variable *v = NULL; (v = variable_store_next(store, v));)
        vec_push(&all, v);
    cut_take(store, &all, &job->cut);
    vec_release(&all);
}

static struct autosave_job *job_new(struct autosave *a, int64_t step)
{
    struct autosave_job *job = mem_alloc(sizeof *job);
    job->autosave = a;
    job->step = step;
    take_cut(job);
    copy_scalars_and_blobs(job);
    return job;
}

static void job_free(struct autosave_job *job)
{
    cut_release(&job->cut);
    vec_release(&job->scalars);
    vec_release(&job->blobs);
    arena_release(&job->arena);
    mem_free(job);
}

/* What is too old goes; if that fails, the checkpoint is there all the same. */
static void keep_newest(struct autosave_job *job, struct store *store)
{
    const struct autosave_options *options = &job->autosave->options;
    struct prune_report report;
    if (options->keep > 0 &&
        !store_forget_old(store, &options->run, (size_t)options->keep, &job->left))
        store_prune(store, false, NULL, &report, &job->left);
}

static int write_job(struct autosave_job *job, struct error *err)
{
    const struct autosave_options *options = &job->autosave->options;
    const struct store_options opening = {
        .write = true, .lock_wait = LOCK_WAIT_SECONDS, .owner = options->owner};
    struct save_request request = {.step = job->step,
                                   .run = options->run,
                                   .producer = options->producer,
                                   .tensors = job->cut.tensors.items,
                                   .n_tensors = job->cut.tensors.n,
                                   .scalars = job->scalars.items,
                                   .n_scalars = job->scalars.n,
                                   .blobs = job->blobs.items,
                                   .n_blobs = job->blobs.n,
                                   .bytes_per_second =
                                       job->in_background ? options->bytes_per_second : 0,
                                   .hurry = &job->autosave->hurry,
                                   .threads = job->in_background ? 1 : 0};
    struct store *store;
    if (store_open(options->path, &opening, &store, err))
        return err->code;
    if (store_check_generation(store, options->generation, err) == ERR_DENIED)
        job->autosave->succeeded = *err;
    /* another job may have begun in the same moment, and have saved first */
    if (!err->code && !job->autosave->is_alone)
        store_check_alone(store, &options->run, err);
    if (!err->code && !store_save(store, &request, NULL, err)) {
        job->autosave->is_alone = true;
        keep_newest(job, store);
    }
    store_close(store);
    return err->code;
}

/* Steps come first: this thread, and those that it starts, step back. Not before the variables are
 * copied, which steps may have to wait for. */
static void let_steps_pass(void)
{
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICENESS);
}

static int job_run(struct autosave_job *job, struct error *err)
{
    if (cut_collect(&job->cut, err))
        return err->code;
    if (job->in_background)
        let_steps_pass();
    return write_job(job, err);
}

static int check_variables(const struct autosave *a, struct error *err)
{
    const struct autosave_options *options = &a->options;
    return options->graph ? variables_check_all(options->variables, options->graph, err) : 0;
}

/* ---- in the background ---- */

static void *work(void *context)
{
    struct autosave_job *job = context;
    job_run(job, &job->err);
    atomic_store(&job->autosave->done, true);
    return NULL;
}

static void tell(const struct autosave *a, const char *what, const struct error *why)
{
    struct error err = *why;
    if (!err.code || !a->options.say)
        return;
    error_prefix(&err, "%s: ", what);
    a->options.say(a->options.context, err.text);
}

/* Waits for the save that is under way; *err gets what it failed with. */
static int join(struct autosave *a, struct error *err)
{
    if (!a->job)
        return 0;
    atomic_store(&a->hurry, true);
    pthread_join(a->thread, NULL);
    atomic_store(&a->hurry, false);
    *err = a->job->err;
    if (!err->code)
        a->saved = a->job->step;
    tell(a, "not forgotten", &a->job->left);
    job_free(a->job);
    a->job = NULL;
    return err->code;
}

static void join_and_tell(struct autosave *a)
{
    struct error err = ERROR_INIT;
    if (!join(a, &err))
        return;
    a->counts.failed++;
    tell(a, "not saved", &err);
}

static void start(struct autosave *a, int64_t step)
{
    struct error err = ERROR_INIT;
    if (check_variables(a, &err)) {
        a->counts.failed++;
        tell(a, "not saved", &err);
        return;
    }
    a->job = job_new(a, step);
    a->job->in_background = true;
    a->last_begun = step;
    a->last_time = time_now();
    a->counts.begun++;
    atomic_store(&a->done, false);
    if (!thread_start(&a->thread, work, a->job))
        return;
    job_free(a->job); /* there will be a thread another time */
    a->job = NULL;
}

static bool is_due(const struct autosave *a, int64_t step)
{
    const struct autosave_options *o = &a->options;
    return is_better(a, metric_of(a)) ||
           (o->every_steps > 0 && step / o->every_steps > a->last_begun / o->every_steps) ||
           (o->every_seconds > 0 && time_now() - a->last_time >= o->every_seconds);
}

/* Of the steps that were due since the last one that was begun this one, or one soon after it, is
 * saved. */
static void count_left_out(struct autosave *a, int64_t step)
{
    int64_t every = a->options.every_steps;
    int64_t due = every > 0 ? step / every - a->last_begun / every : 0;
    a->counts.left_out += due > 1 ? due - 1 : 0;
}

bool autosave_is_due(struct autosave *a, int64_t step)
{
    if (a->job && atomic_load(&a->done))
        join_and_tell(a);
    return !a->job && is_due(a, step);
}

void autosave_step(struct autosave *a, int64_t step)
{
    if (!autosave_is_due(a, step))
        return;
    if (is_better(a, metric_of(a)))
        a->best = metric_of(a);
    count_left_out(a, step);
    start(a, step);
}

int autosave_check(const struct autosave *a, struct error *err)
{
    *err = a->job ? ERROR_INIT : a->succeeded;
    return err->code;
}

bool autosave_is_saving(const struct autosave *a)
{
    return a->job && !atomic_load(&a->done);
}

void autosave_count(const struct autosave *a, struct autosave_counts *counts)
{
    *counts = a->counts;
}

/* ---- beginning and end ---- */

/* What the run has in the store already counts when something must be better than ever. */
static int look_at_store(struct autosave *a, struct error *err)
{
    manifest_vec all;
    struct store *store;
    struct error damaged = ERROR_INIT;
    double value;
    if (store_open(a->options.path, NULL, &store, err))
        return err->code;
    *err = *store_rolled_back(store); /* now, and not when there is something to save */
    if (!err->code && !a->options.generation)
        store_generation(store, &a->options.generation, err);
    if (!err->code && (a->is_alone || !store_check_alone(store, &a->options.run, err)) &&
        !store_manifests(store, &all, &damaged, err)) {
        for (size_t i = 0; i < all.n; i++)
            if (a->options.best && run_equal(&all.items[i].run, &a->options.run) &&
                ckpt_manifest_find_scalar(&all.items[i], a->options.best, &value) &&
                is_better(a, value))
                a->best = value;
        manifests_release(&all);
    }
    store_close(store);
    return err->code;
}

int autosave_open(const struct autosave_options *options, struct autosave **autosave,
                  struct error *err)
{
    error_clear(err);
    if (!store_exists(options->path) && store_create(options->path, err) &&
        !store_exists(options->path)) /* nobody else was quicker */
        return err->code;
    struct autosave *a = mem_alloc(sizeof *a);
    a->options = *options;
    a->saved = options->step > 0 ? options->step : -1;
    a->last_begun = options->step;
    a->is_alone = options->goes_on;
    a->best = NAN;
    a->last_time = time_now();
    if (look_at_store(a, err)) {
        mem_free(a);
        return err->code;
    }
    *autosave = a;
    return 0;
}

int autosave_finish(struct autosave *a, int64_t step, struct error *err)
{
    join_and_tell(a);
    error_clear(err);
    if (step > a->last_begun)
        count_left_out(a, step);
    if (a->saved == step)
        return 0;
    if (check_variables(a, err))
        return err->code;
    a->last_begun = step;
    struct autosave_job *job = job_new(a, step);
    if (!job_run(job, err))
        a->saved = step;
    tell(a, "not forgotten", &job->left);
    job_free(job);
    return err->code;
}

void autosave_close(struct autosave *a)
{
    if (!a)
        return;
    join_and_tell(a);
    for (size_t i = 0; i < a->scalars.n; i++)
        mem_free((void *)(uintptr_t)a->scalars.items[i].name);
    for (size_t i = 0; i < a->blobs.n; i++) {
        mem_free((void *)(uintptr_t)a->blobs.items[i].name);
        mem_free((void *)(uintptr_t)a->blobs.items[i].data);
    }
    vec_release(&a->scalars);
    vec_release(&a->blobs);
    mem_free(a);
}
