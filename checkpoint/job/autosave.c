/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/job/autosave.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/life.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"
#include "base/time.h"
#include "checkpoint/job/commit.h"
#include "checkpoint/job/save_life.h"
#include "checkpoint/policy/retain.h"
#include "checkpoint/store/best.h"
#include "checkpoint/variables/cut.h"
#include "checkpoint/variables/spare.h"
#include "exec/state/saver.h"

#define NICENESS 10 /* of the background thread */
#define COPY_SECONDS 60.0

typedef VEC(struct manifest_scalar) measured_vec;

/* Scalars that a step measured for a checkpoint whose save began before they were known. */
struct autosave_late {
    int64_t step; /* of the checkpoint; -1: there are no such scalars */
    measured_vec scalars;
};

struct autosave_job {
    const struct autosave_options *options;
    int64_t step; /* the step after which the variables were marked */
    struct cut cut;
    _Atomic enum save_life life;
    bool is_best;
    measured_vec scalars; /* computed from these variables */
    VEC(struct manifest_blob) blobs;
    struct autosave_late late; /* scalars of an earlier checkpoint, written along with this save */
    struct arena arena;
    bool in_background;
    const atomic_bool *hurry;   /* true: somebody waits for the save; NULL: nobody ever does */
    struct store_writer writer; /* `goes_on` is set once it was saved */
    struct error err;
    struct commit commit;
};

struct measurement { /* a scalar of the last step */
    char *name;
    double value;
    bool is_before;
};

struct autosave {
    struct autosave_options options;
    VEC(struct measurement) scalars;
    VEC(struct manifest_blob) blobs; /* names and data are owned */
    int64_t saved, last_begun;       /* steps; -1: none */
    double last_time;
    double best;                    /* NaN: none yet */
    struct autosave_job *job;       /* under way, with its thread; NULL: SAVE_IDLE */
    struct autosave_job *waiting;   /* the best, until no save is under way; if it failed (`err`),
                                       until another is due */
    struct autosave_job *candidate; /* of the last step; the next measures it */
    int64_t unmeasured; /* step of a save that began before its scalars were known; -1: none */
    struct autosave_late late;
    struct spare spare; /* makes the first step after a snapshot as fast as others */
    pthread_t thread;
    atomic_bool hurry;      /* true: somebody waits for the save */
    struct error succeeded; /* set when another job has taken the store over */
    struct autosave_counts counts;
};

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

/* ---- what a checkpoint gets besides the variables ---- */

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

/* ---- one save ---- */

static void late_clear(struct autosave_late *late)
{
    for (size_t i = 0; i < late->scalars.n; i++)
        mem_free((void *)(uintptr_t)late->scalars.items[i].name);
    vec_release(&late->scalars);
    *late = (struct autosave_late){.step = -1};
}

static void job_free(struct autosave_job *job)
{
    if (!job)
        return;
    cut_release(&job->cut);
    vec_release(&job->scalars);
    vec_release(&job->blobs);
    late_clear(&job->late);
    arena_release(&job->arena);
    mem_free(job);
}

/* Returns the reaction to an event. `job` NULL: no save is under way. Only its own thread changes
 * the state of a save under way. */
static enum save_reaction react(struct autosave_job *job, enum save_event event)
{
    enum save_life before = job ? atomic_load(&job->life) : SAVE_IDLE, life = before;
    enum save_reaction what = save_life_react(&life, event);
    if (life != before)
        atomic_store(&job->life, life);
    return what;
}

/* Copies the values of the snapshot, so that another snapshot may be taken. */
static int collect(struct autosave_job *job, struct error *err)
{
    if (atomic_load(&job->life) == SAVE_MARKED && !cut_collect(&job->cut, err))
        react(job, SAVE_COLLECTED);
    return err->code;
}

/* The checkpoint may never have been written, or may have been forgotten. */
static int write_late(void *context, struct store *store, struct save_request *request,
                      struct error *err)
{
    struct autosave_late *late = context;
    if (late->step < 0)
        return 0;
    int code = store_set_scalars(store, late->step, &request->run, late->scalars.items,
                                 late->scalars.n, err);
    if (code == ERR_NOINPUT || code == ERR_DATA)
        error_clear(err);
    late_clear(late);
    return err->code;
}

/* Writes the checkpoint. Any thread. */
static int write_checkpoint(struct autosave_job *job, struct error *err)
{
    error_clear(err);
    if (collect(job, err))
        return err->code;
    if (job->in_background)
        /* Steps come first: this thread, and those it starts, get a lower priority. Only once the
         * variables are copied, as steps may have to wait for the copies. */
        setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICENESS);
    const struct autosave_options *options = job->options;
    const struct store_options opening = commit_options(options->owner);
    job->commit = (struct commit){
        .request = {.step = job->step,
                    .run = job->writer.run,
                    .producer = options->producer,
                    .tensors = job->cut.tensors.items,
                    .n_tensors = job->cut.tensors.n,
                    .scalars = job->scalars.items,
                    .n_scalars = job->scalars.n,
                    .blobs = job->blobs.items,
                    .n_blobs = job->blobs.n,
                    .bytes_per_second = job->in_background ? options->bytes_per_second : 0,
                    .hurry = job->hurry,
                    .threads = job->in_background ? 1 : 0},
        .writer = &job->writer,
        .keep = (size_t)options->keep,
        .collect = write_late,
        .context = &job->late};
    struct store *store;
    if (store_open(options->path, &opening, &store, err))
        return err->code;
    react(job, SAVE_LOCKED);
    commit_checkpoint(store, &job->commit, err);
    store_close(store);
    return err->code;
}

static const struct measurement *metric_of(const struct autosave *a)
{
    size_t i = a->options.best ? vec_find(&a->scalars, a->options.best) : a->scalars.n;
    return i < a->scalars.n ? &a->scalars.items[i] : NULL;
}

static bool is_better(const struct autosave *a, double value)
{
    return retain_is_better(a->options.best_is_low, value, a->best);
}

/* ---- background saves ---- */

static void report_failure(const struct autosave *a, const char *what, const struct error *why)
{
    if (why->code)
        log_tell(a->options.say, a->options.context, "%s: %s", what, why->text);
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
    write_checkpoint(job, &job->err);
    react(job, SAVE_ENDED);
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
        job_free(job);
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
    enum save_reaction what = react(job, event);
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
    late_clear(&job->late);
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
    return (metric && (metric->is_before || is_better(a, metric->value))) ||
           (due && react(a->job, SAVE_DUE) == SAVE_GO_ON);
}

/* Adds the scalars that the step computed from the variables before (or after) its update. */
static void add_scalars(const struct autosave *a, struct autosave_job *job, bool before)
{
    vec_each(measured, &a->scalars) {
        if (measured->is_before == before)
            vec_push(&job->scalars,
                     ((struct manifest_scalar){arena_strdup(&job->arena, measured->name),
                                               measured->value}));
    }
}

bool autosave_collect(struct autosave *a, int64_t step)
{
    struct error ignored = ERROR_INIT;
    double wait = a->options.copy_wait > 0 ? a->options.copy_wait : COPY_SECONDS;
    double end = time_now() + wait;
    spare_break(&a->spare);
    while (react(a->job, SAVE_CUT) == SAVE_WAIT) {
        if (time_now() > end) {
            struct error err = ERROR_INIT;
            error_set(&err, ERR_RETRY,
                      "step %" PRId64 ": the variables of step %" PRId64
                      " are still being copied after %g s",
                      step, a->job->step, wait);
            tell_failure(a, &err);
            return false;
        }
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
    if (a->candidate)
        collect(a->candidate, &ignored);
    return true;
}

/* A cut is taken when all before it are collected: a variable has one snapshot at a time. NULL, and
 * it was told: they are not. */
static struct autosave_job *take_cut(struct autosave *a, int64_t step)
{
    if (!autosave_collect(a, step))
        return NULL;
    /* No step is running, so no variable has to be locked. */
    struct autosave_job *job = mem_alloc(sizeof *job);
    struct variable_store *store = a->options.variables;
    variable_vec all = VEC_INIT;
    *job = (struct autosave_job){.options = &a->options, .step = step, .late = {.step = -1}};
    for (struct variable *v = NULL; (v = variable_store_next(store, v));)
        if (!v->is_local)
            vec_push(&all, v);
    cut_take(store, &all, &job->cut);
    vec_release(&all);
    add_scalars(a, job, false);
    vec_each(blob, &a->blobs) {
        vec_push(&job->blobs,
                 ((struct manifest_blob){arena_strdup(&job->arena, blob->name),
                                         arena_copy(&job->arena, blob->data, blob->n), blob->n}));
    }
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
    if (check_variables(a, &err) || collect(job, &err)) {
        tell_failure(a, &err);
        job_free(job);
        return;
    }
    job_free(a->waiting);
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
        late_clear(&a->late);
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
        is_better(a, metric->value)) {
        a->best = metric->value;
        add_scalars(a, job, true);
        queue_best(a, job);
    } else {
        job_free(job);
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
    if (is_settled && metric && !metric->is_before && is_better(a, metric->value)) {
        a->best = metric->value;
        count_left_out(a, step);
        queue_best(a, take_cut(a, step));
        a->unmeasured = measures_before(a) ? step : -1;
    } else if (due && react(a->job, SAVE_DUE) == SAVE_GO_ON) {
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
                    is_better(a, value))
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
    job_free(a->waiting); /* its save has failed twice */
    a->waiting = NULL;
    job_free(a->candidate);
    a->candidate = NULL;
    spare_end(&a->spare);
}

int autosave_finish(struct autosave *a, int64_t step, struct error *err)
{
    drain(a);
    error_clear(err);
    if (step > a->last_begun)
        count_left_out(a, step);
    if (a->saved == step) { /* only its late scalars are to be written */
        const struct store_options opening = commit_options(a->options.owner);
        struct store_writer writer = a->options.writer;
        struct save_request request = {.run = writer.run};
        struct store *store;
        if (a->late.step < 0 || store_open(a->options.path, &opening, &store, err))
            return err->code;
        if (!store_check_writer(store, &writer, err))
            write_late(&a->late, store, &request, err);
        store_close(store);
        return err->code;
    }
    if (check_variables(a, err))
        return err->code;
    a->last_begun = step;
    struct autosave_job *job = take_cut(a, step);
    give_late(a, job);
    if (!write_checkpoint(job, err))
        a->saved = step;
    report_failure(a, "not forgotten", &job->commit.left);
    job_free(job);
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
    late_clear(&a->late);
    mem_free(a);
}
