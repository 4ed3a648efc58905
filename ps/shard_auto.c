/* SPDX-License-Identifier: Apache-2.0
 *
 * Automatic checkpoints, every so many updates or seconds. The shard with the clock makes them: the
 * clock stops exactly at the update, so that a checkpoint has the requested step.
 */
#include <stdio.h>
#include <time.h>

#include "base/time.h"
#include "ps/containers.h"
#include "ps/shard_private.h"

#define WAIT_SECONDS 0.3 /* then other work of the queue gets its turn */

static const struct timespec look_again = {0, 50000000}; /* interval of polling */

/* ---- between two rounds ---- */

struct pause {
    struct clock_waiter waiter; /* first */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
    int64_t version;
    struct error failure;
};

static void paused(struct clock_waiter *waiter, const struct clock_result *result,
                   const struct error *failure)
{
    struct pause *pause = (struct pause *)waiter;
    pthread_mutex_lock(&pause->lock);
    pause->done = true;
    if (failure)
        pause->failure = *failure;
    else
        pause->version = result->version;
    pthread_cond_signal(&pause->changed);
    pthread_mutex_unlock(&pause->lock);
}

int shard_pause(struct shard *shard, int64_t from, double timeout, int64_t *version,
                struct error *err)
{
    struct clock *clock = containers_clock(shard->options.variables);
    double end = time_now() + timeout, left;
    if (!from)
        clock_ask(clock);
    do {
        error_clear(err);
        left = end - time_now();
        struct pause pause = {
            .waiter = {.done = paused, .timeout = left < WAIT_SECONDS ? left : WAIT_SECONDS},
            .lock = PTHREAD_MUTEX_INITIALIZER,
            .changed = PTHREAD_COND_INITIALIZER};
        clock_pause(clock, from, &pause.waiter);
        pthread_mutex_lock(&pause.lock);
        while (!pause.done)
            pthread_cond_wait(&pause.changed, &pause.lock);
        pthread_mutex_unlock(&pause.lock);
        *version = pause.version;
        *err = pause.failure;
    } while (err->code == ERR_RETRY && end - time_now() > 0.001 && !atomic_load(&shard->ends));
    if (!from)
        clock_end_ask(clock);
    return err->code;
}

/* ---- automatic checkpoints ---- */

/* Reports to the log and in the statistics, as training goes on, perhaps for days. */
static void report_failure(struct shard *shard, int64_t step, const struct error *err)
{
    char line[ERROR_TEXT_BYTES + 64];
    pthread_mutex_lock(&shard->lock);
    shard->saves_failed++;
    shard->failed_step = step;
    snprintf(shard->failed_text, sizeof shard->failed_text, "%.250s", err->text);
    pthread_mutex_unlock(&shard->lock);
    snprintf(line, sizeof line, "no checkpoint: %s", err->text);
    shard_say(shard, line);
}

static int64_t next_due(const struct shard *shard, int64_t step)
{
    return (step / shard->options.save_every + 1) * shard->options.save_every;
}

static void set_due(struct shard *shard, struct clock *clock, int64_t due)
{
    atomic_store(&shard->due, due);
    clock_stop_at(clock, due);
}

static void save_paused(struct shard *shard, struct clock *clock, int64_t version)
{
    struct error err = ERROR_INIT;
    struct shard_save_request wanted = {.folder = shard->options.save_folder,
                                        .step = version,
                                        .keep = shard->options.keep,
                                        .seconds = SHARD_WAIT_SECONDS,
                                        .lock_wait = SHARD_LOCK_SECONDS,
                                        .clock = clock};
    int64_t step;
    if (shard_save_all(shard, &wanted, &step, &err) &&
        shard_react(shard, SHARD_TURN) != SHARD_LET_GO)
        report_failure(shard, step, &err);
}

/* Saves after the first update once save_seconds have passed since the last checkpoint. Saves
 * nothing if there was no update since. */
static void save_at_time(struct shard *shard, struct clock *clock)
{
    struct error err = ERROR_INIT;
    int64_t version = clock_version(clock);
    if (time_now() < shard->due_at || !version || version == atomic_load(&shard->due)) {
        nanosleep(&look_again, NULL);
    } else if (!shard_pause(shard, 0, WAIT_SECONDS, &version, &err)) {
        shard->due_at = time_now() + shard->options.save_seconds;
        atomic_store(&shard->due, version);
        save_paused(shard, clock, version);
    } else if (err.code != ERR_RETRY) {
        nanosleep(&look_again, NULL);
    }
}

/* Waits for the update after which a checkpoint is due, and makes it. The clock knows beforehand
 * where to stop, so that it does so even while the queue does other work or still writes the
 * previous checkpoint. So a slow disk slows updates down, but no checkpoint is left out. A failed
 * one is due again after as many updates. */
static void save_when_due(struct shard *shard, struct clock *clock)
{
    struct error err = ERROR_INIT;
    int64_t reached;
    if (!atomic_load(&shard->due))
        set_due(shard, clock, next_due(shard, clock_version(clock)));
    if (shard_pause(shard, atomic_load(&shard->due), WAIT_SECONDS, &reached, &err)) {
        if (err.code != ERR_RETRY) /* the rounds have failed, perhaps temporarily */
            nanosleep(&look_again, NULL);
        return;
    }
    set_due(shard, clock, next_due(shard, reached));
    save_paused(shard, clock, reached);
}

void shard_was_saved(struct shard *shard, const char *folder, int64_t step)
{
    struct clock *clock = containers_clock(shard->options.variables);
    int64_t due = atomic_load(&shard->due);
    if (!clock || !shard_is_own_folder(shard, folder))
        return;
    if (shard->options.save_every > 0 && due && due <= step)
        set_due(shard, clock, next_due(shard, step));
    else if (shard->options.save_seconds > 0)
        atomic_store(&shard->due, step);
}

void shard_stop_first(struct shard *shard, struct clock *clock)
{
    if (shard->options.save_every <= 0)
        return;
    int64_t first = next_due(shard, clock_version(clock)), unknown = 0;
    atomic_compare_exchange_strong(&shard->due, &unknown, first);
    clock_stop_at(clock, first);
}

/* Queued like other work, so that two saves never overlap. */
void shard_auto_save(void *argument)
{
    struct shard *shard = argument;
    struct clock *clock = containers_clock(shard->options.variables);
    if (shard_react(shard, SHARD_TURN) == SHARD_LET_GO) {
        if (clock)
            clock_stop_at(clock, 0);
        return;
    }
    if (clock && shard->options.save_every > 0)
        save_when_due(shard, clock);
    else if (clock)
        save_at_time(shard, clock);
    else
        nanosleep(&look_again, NULL);
    if (!serial_queue_add(shard->slow, shard_auto_save, shard) && clock)
        clock_stop_at(clock, 0);
}
