/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"
#include "checkpoint/job/autosave_private.h"
#include "checkpoint/store/best.h"
#include "exec/state/saver.h"

#define NICENESS 10 /* of the background thread */

/* ---- what is saved ---- */

/* No step is running, so no variable has to be locked. */
struct autosave_job *autosave_job_new(const struct autosave_options *options, int64_t step)
{
    struct autosave_job *job = mem_alloc(sizeof *job);
    struct variable_store *store = options->variables;
    variable_vec all = VEC_INIT;
    *job = (struct autosave_job){.options = options, .step = step, .late = {.step = -1}};
    for (struct variable *v = NULL; (v = variable_store_next(store, v));)
        if (!v->is_local)
            vec_push(&all, v);
    cut_take(store, &all, &job->cut);
    vec_release(&all);
    return job;
}

void autosave_job_free(struct autosave_job *job)
{
    if (!job)
        return;
    cut_release(&job->cut);
    vec_release(&job->scalars);
    vec_release(&job->blobs);
    autosave_late_clear(&job->late);
    arena_release(&job->arena);
    mem_free(job);
}

void autosave_job_add_scalar(struct autosave_job *job, const char *name, double value)
{
    struct manifest_scalar scalar = {arena_strdup(&job->arena, name), value};
    vec_push(&job->scalars, scalar);
}

void autosave_job_add_blob(struct autosave_job *job, const struct manifest_blob *blob)
{
    struct manifest_blob copy = {arena_strdup(&job->arena, blob->name),
                                 arena_copy(&job->arena, blob->data, blob->n), blob->n};
    vec_push(&job->blobs, copy);
}

/* Only its own thread changes the state of a save under way. */
enum save_reaction autosave_job_react(struct autosave_job *job, enum save_event event)
{
    enum save_life before = job ? atomic_load(&job->life) : SAVE_IDLE, life = before;
    enum save_reaction what = save_life_react(&life, event);
    if (life != before)
        atomic_store(&job->life, life);
    return what;
}

int autosave_job_collect(struct autosave_job *job, struct error *err)
{
    if (atomic_load(&job->life) == SAVE_MARKED && !cut_collect(&job->cut, err))
        autosave_job_react(job, SAVE_COLLECTED);
    return err->code;
}

void autosave_late_clear(struct autosave_late *late)
{
    for (size_t i = 0; i < late->scalars.n; i++)
        mem_free((void *)(uintptr_t)late->scalars.items[i].name);
    vec_release(&late->scalars);
    *late = (struct autosave_late){.step = -1};
}

/* ---- writing ---- */

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
    autosave_late_clear(late);
    return err->code;
}

int autosave_write_late(const struct autosave_options *options, struct autosave_late *late,
                        struct error *err)
{
    const struct store_options opening = commit_options(options->owner);
    struct store *store;
    if (late->step < 0 || store_open(options->path, &opening, &store, err))
        return err->code;
    struct store_writer writer = options->writer;
    struct save_request request = {.run = writer.run};
    if (!store_check_writer(store, &writer, err))
        write_late(late, store, &request, err);
    store_close(store);
    return err->code;
}

int autosave_job_run(struct autosave_job *job, struct error *err)
{
    error_clear(err);
    if (autosave_job_collect(job, err))
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
    autosave_job_react(job, SAVE_LOCKED);
    commit_checkpoint(store, &job->commit, err);
    store_close(store);
    return err->code;
}
