/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/job/autosave.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/life.h"
#include "base/memory.h"
#include "base/thread.h"
#include "base/time.h"
#include "checkpoint/job/autosave_private.h"
#include "exec/state/saver.h"

static const struct measurement *metric_of(const struct autosave *a)
{
    size_t i = a->options.best ? vec_find(&a->scalars, a->options.best) : a->scalars.n;
    return i < a->scalars.n ? &a->scalars.items[i] : NULL;
}

/* ---- background saves ---- */

static void report_failure(const struct autosave *a, const char *what, const struct error *why)
{
    struct error err = *why;
    if (!err.code || !a->options.say)
        return;
    error_prefix(&err, "%s: ", what);
    a->options.say(a->options.context, err.text);
}

static void tell_failure(struct autosave *a, const struct error *why)
{
    a->counts.failed++;
    report_failure(a, "not saved", why);
}

static void *save_jobs(void *context)
{
    struct autosave_job *job = context;
    LIFE_BEGINS("save.marked");
    autosave_job_run(job, &job->err);
    autosave_job_react(job, SAVE_ENDED);
    return NULL;
}

/* A failed save of the best checkpoint waits until the next save is due. */
static void end_job(struct autosave *a, struct autosave_job *job)
{
    a->options.writer.goes_on |= job->writer.goes_on;
    report_failure(a, "not forgotten", &job->commit.left);
    if (job->commit.is_succeeded)
        a->succeeded = job->err;
    if (!job->err.code)
        a->saved = job->step;
    else
        tell_failure(a, &job->err);
    if (!job->err.code || !job->is_best || a->waiting) {
        autosave_job_free(job);
        if (!a->candidate) /* the variables' first values were released */
            spare_begin(&a->spare, a->options.variables);
        return;
    }
    atomic_store(&job->life, SAVE_LOCKING); /* to be tried again: its values were copied */
    a->waiting = job;
}

/* Joins the save under way if its state allows it; SAVE_TURN joins only a save that is done. */
static enum save_reaction join(struct autosave *a, enum save_event event)
{
    struct autosave_job *job = a->job;
    enum save_reaction what = autosave_job_react(job, event);
    if (what != SAVE_JOIN)
        return what;
    atomic_store(&a->hurry, true);
    pthread_join(a->thread, NULL);
    atomic_store(&a->hurry, false);
    a->job = NULL;
    end_job(a, job);
    return SAVE_GO_ON;
}

static void give_late(struct autosave *a, struct autosave_job *job)
{
    autosave_late_clear(&job->late);
    job->late = a->late;
    a->late = (struct autosave_late){.step = -1};
    job->writer = a->options.writer;
}

static void start(struct autosave *a, struct autosave_job *job)
{
    give_late(a, job);
    job->in_background = true;
    job->hurry = &a->hurry;
    if (job->step > a->last_begun)
        a->last_begun = job->step;
    a->last_time = time_now();
    a->counts.begun++;
    a->job = job;
    if (!thread_start(&a->thread, save_jobs, job))
        return;
    a->job = NULL; /* a thread may be had later */
    error_set(&job->err, ERR_OS, "cannot start a thread");
    end_job(a, job);
}

/* Starts the waiting save once no other is under way; one that failed is started when the next is
 * due. */
static void reap(struct autosave *a, bool again)
{
    bool waits = join(a, SAVE_TURN) == SAVE_WAIT;
    struct autosave_job *next = a->waiting;
    if (waits || !next || (next->err.code && !again))
        return;
    a->waiting = NULL;
    start(a, next);
}

/* ---- when ---- */

static bool is_due(const struct autosave *a, int64_t step)
{
    return interval_is_over(&a->options.every, step, a->last_begun, a->last_time);
}

/* Several saves may have become due since the last one began; one of them, this one or the best
 * soon after it, is made. The others are counted. */
static void count_left_out(struct autosave *a, int64_t step)
{
    int64_t every = a->options.every.steps;
    int64_t due = every > 0 ? step / every - a->last_begun / every : 0;
    a->counts.left_out += due > 1 ? due - 1 : 0;
}

bool autosave_is_due(struct autosave *a, int64_t step)
{
    const struct measurement *metric = metric_of(a);
    bool due = is_due(a, step);
    reap(a, due);
    return (metric && (metric->is_before || autosave_is_better(a, metric->value))) ||
           (due && autosave_job_react(a->job, SAVE_DUE) == SAVE_GO_ON);
}

/* Adds the scalars that the step computed from the variables before (or after) its update. */
static void add_scalars(const struct autosave *a, struct autosave_job *job, bool before)
{
    for (size_t i = 0; i < a->scalars.n; i++)
        if (a->scalars.items[i].is_before == before)
            autosave_job_add_scalar(job, a->scalars.items[i].name, a->scalars.items[i].value);
}

#define COPY_SECONDS 60.0

/* A cut is taken when all before it are collected: a variable has one snapshot at a time. NULL, and
 * it was told: they are not. */
static struct autosave_job *take_cut(struct autosave *a, int64_t step)
{
    struct error ignored = ERROR_INIT;
    double wait = a->options.copy_wait > 0 ? a->options.copy_wait : COPY_SECONDS;
    double end = time_now() + wait;
    spare_break(&a->spare);
    while (autosave_job_react(a->job, SAVE_CUT) == SAVE_WAIT) {
        if (time_now() > end) {
            struct error err = ERROR_INIT;
            error_set(&err, ERR_RETRY,
                      "step %" PRId64 ": the variables of step %" PRId64
                      " are still being copied after %g s",
                      step, a->job->step, wait);
            tell_failure(a, &err);
            return NULL;
        }
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
    if (a->candidate)
        autosave_job_collect(a->candidate, &ignored);
    struct autosave_job *job = autosave_job_new(&a->options, step);
    add_scalars(a, job, false);
    for (size_t i = 0; i < a->blobs.n; i++)
        autosave_job_add_blob(job, &a->blobs.items[i]);
    return job;
}

static int check_variables(const struct autosave *a, struct error *err)
{
    const struct autosave_options *options = &a->options;
    return options->graph ? variables_check_all(options->variables, options->graph, err) : 0;
}

/* The best checkpoint is never left out: it waits for the save under way, and replaces a former
 * best that waits. */
static void queue_best(struct autosave *a, struct autosave_job *job)
{
    struct error err = ERROR_INIT;
    if (!job)
        return;
    job->is_best = true;
    if (check_variables(a, &err) || autosave_job_collect(job, &err)) {
        tell_failure(a, &err);
        autosave_job_free(job);
        return;
    }
    autosave_job_free(a->waiting);
    a->waiting = job;
    reap(a, true);
}

/* Records what this step computed from the variables before its update. */
static void measure(struct autosave *a, int64_t step)
{
    struct autosave_job *job = a->candidate;
    const struct measurement *metric = metric_of(a);
    a->candidate = NULL;
    if (a->unmeasured == step - 1) {
        autosave_late_clear(&a->late);
        a->late.step = a->unmeasured;
        for (size_t i = 0; i < a->scalars.n; i++) {
            struct manifest_scalar scalar = {a->scalars.items[i].name, a->scalars.items[i].value};
            if (!a->scalars.items[i].is_before)
                continue;
            scalar.name = mem_strdup(scalar.name);
            vec_push(&a->late.scalars, scalar);
        }
    }
    a->unmeasured = -1;
    if (job && job->step == step - 1 && metric && metric->is_before &&
        autosave_is_better(a, metric->value)) {
        a->best = metric->value;
        add_scalars(a, job, true);
        queue_best(a, job);
    } else {
        autosave_job_free(job);
    }
}

static bool measures_before(const struct autosave *a)
{
    bool does = false;
    for (size_t i = 0; i < a->scalars.n; i++)
        does |= a->scalars.items[i].is_before;
    return does;
}

void autosave_step(struct autosave *a, int64_t step, bool is_settled)
{
    const struct measurement *metric = metric_of(a);
    bool due = is_settled && is_due(a, step);
    reap(a, due);
    measure(a, step);
    if (is_settled && metric && !metric->is_before && autosave_is_better(a, metric->value)) {
        a->best = metric->value;
        count_left_out(a, step);
        queue_best(a, take_cut(a, step));
        a->unmeasured = measures_before(a) ? step : -1;
    } else if (due && autosave_job_react(a->job, SAVE_DUE) == SAVE_GO_ON) {
        struct error err = ERROR_INIT;
        if (check_variables(a, &err)) {
            tell_failure(a, &err);
        } else {
            count_left_out(a, step);
            start(a, take_cut(a, step));
            a->unmeasured = measures_before(a) ? step : -1;
        }
    }
    if (is_settled && metric && metric->is_before)
        a->candidate = take_cut(a, step);
    /* Before the first snapshot, looks for spares after steps 2, 4, 8 and so on: some variables are
     * written only in some steps. */
    int64_t run = step - a->options.step;
    bool saves = a->options.every.steps || a->options.every.seconds > 0 || a->options.best;
    if (saves && !a->candidate && !a->counts.begun && run > 1 && !(run & (run - 1)))
        spare_begin(&a->spare, a->options.variables);
}

int autosave_check(const struct autosave *a, struct error *err)
{
    *err = a->succeeded;
    return err->code;
}

bool autosave_is_saving(const struct autosave *a)
{
    return a->job && atomic_load(&a->job->life) < SAVE_DONE;
}

void autosave_count(const struct autosave *a, struct autosave_counts *counts)
{
    *counts = a->counts;
}

/* ---- beginning and end ---- */

void autosave_begin(struct autosave *a)
{
    if (a->options.best)
        a->candidate = take_cut(a, a->options.step);
}

/* Writes the saves that are under way or waiting: this is the last chance. */
static void drain(struct autosave *a)
{
    join(a, SAVE_AWAIT);
    reap(a, true);
    join(a, SAVE_AWAIT);
    autosave_job_free(a->waiting); /* its save has failed twice */
    a->waiting = NULL;
    autosave_job_free(a->candidate);
    a->candidate = NULL;
    spare_end(&a->spare);
}

int autosave_finish(struct autosave *a, int64_t step, struct error *err)
{
    drain(a);
    error_clear(err);
    if (step > a->last_begun)
        count_left_out(a, step);
    if (a->saved == step)
        return autosave_write_late(&a->options, &a->late, err);
    if (check_variables(a, err))
        return err->code;
    a->last_begun = step;
    struct autosave_job *job = take_cut(a, step);
    give_late(a, job);
    if (!autosave_job_run(job, err))
        a->saved = step;
    report_failure(a, "not forgotten", &job->commit.left);
    autosave_job_free(job);
    return err->code;
}

void autosave_close(struct autosave *a)
{
    if (!a)
        return;
    drain(a);
    for (size_t i = 0; i < a->scalars.n; i++)
        mem_free(a->scalars.items[i].name);
    for (size_t i = 0; i < a->blobs.n; i++) {
        mem_free((void *)(uintptr_t)a->blobs.items[i].name);
        mem_free((void *)(uintptr_t)a->blobs.items[i].data);
    }
    vec_release(&a->scalars);
    vec_release(&a->blobs);
    autosave_late_clear(&a->late);
    mem_free(a);
}
