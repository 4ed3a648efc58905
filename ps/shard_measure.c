/* SPDX-License-Identifier: Apache-2.0
 *
 * The scalars of a checkpoint: those that the first worker computed from exactly the variables in
 * it. A loss is computed in the step after the one that wrote the variables. So a checkpoint is
 * committed first, and gets its scalars when they appear in the worker's records.
 */
#include <time.h>

#include "base/memory.h"
#include "base/time.h"
#include "checkpoint/store/best.h"
#include "ps/shard_private.h"

#define WORKER_SECONDS 1.0

static const struct timespec look_again = {0, 50000000}, soon = {0, 1000000};

const scalar_vec *shard_measured(struct shard *shard)
{
    struct shard_measure *m = &shard->measure;
    if (m->fetches.path)
        tail_read(&m->fetches);
    return &m->fetches.wanted;
}

static int set_scalars(struct shard *shard, struct error *err)
{
    const struct shard_measure *m = &shard->measure;
    const struct store_options options = {.write = true, .owner = "tf-ps"};
    const scalar_vec *scalars = &m->fetches.wanted;
    struct store_writer writer = shard_saves_as(shard);
    struct store *store;
    if (!scalars->n || shard_open_store(shard, m->folder, &options, &store, err))
        return err->code;
    if (!shard_is_own_folder(shard, m->folder) || !store_check_writer(store, &writer, err))
        store_set_scalars(store, m->step, &m->run, scalars->items, scalars->n, err);
    shard_close_store(shard, store);
    return err->code;
}

/* Returns whether there is nothing left to wait for. */
static bool measure(struct shard *shard)
{
    struct shard_measure *m = &shard->measure;
    struct error err = ERROR_INIT;
    if (!m->folder)
        return true;
    tail_read(&m->fetches);
    if (!m->fetches.has_all || set_scalars(shard, &err) == ERR_RETRY)
        return false;
    shard_measure_forget(shard);
    if (err.code && err.code != ERR_NOINPUT) /* it may have been forgotten */
        shard_say(shard, err.text);
    return true;
}

/* Queued like other work, until the worker has got that far. */
static void measure_later(void *argument)
{
    struct shard *shard = argument;
    if (measure(shard) || atomic_load(&shard->ends)) {
        shard->measure.is_looking = false;
        return;
    }
    nanosleep(&look_again, NULL);
    serial_queue_add(shard->slow, measure_later, shard);
}

void shard_measure_later(struct shard *shard, const char *folder, int64_t step,
                         const struct ckpt_run *run)
{
    struct shard_measure *m = &shard->measure;
    if (!m->fetches.path || m->fetches.version < 0 || m->fetches.has_all)
        return;
    m->folder = mem_strdup(folder);
    m->step = step;
    m->run = *run;
    if (!m->is_looking)
        m->is_looking = serial_queue_add(shard->slow, measure_later, shard);
}

void shard_measure_forget(struct shard *shard)
{
    mem_free(shard->measure.folder);
    shard->measure.folder = NULL;
}

void shard_measure_want(struct shard *shard, const struct shard_save_request *wanted)
{
    struct error ignored = ERROR_INIT;
    struct shard_measure *m = &shard->measure;
    const double end = time_now() + WORKER_SECONDS;
    struct clock_member first;
    if (!m->fetches.path)
        return;
    /* A worker that writes each step is about to write that of the previous checkpoint: the clock
     * could not have come this far without it. */
    bool writes_soon = wanted->clock && m->fetches.exact &&
                       clock_workers(wanted->clock, &first, 1) && first.worker == 0 &&
                       first.joined && !first.left;
    while (!measure(shard) && writes_soon && m->fetches.is_of_each_step && time_now() < end &&
           !atomic_load(&shard->ends))
        nanosleep(&soon, NULL);
    if (m->folder)
        set_scalars(shard, &ignored); /* those found so far, perhaps of an evaluation */
    shard_measure_forget(shard);
    /* No record was read since, so none of this version was missed. */
    if (wanted->clock)
        tail_want(&m->fetches, wanted->step, clock_has_one_version(wanted->clock));
    else
        tail_want(&m->fetches, -1, true); /* the version of scalars is not known */
}
