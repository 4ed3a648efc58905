/* SPDX-License-Identifier: Apache-2.0
 *
 * Leases: a thread does what tf-ps watch does, and its reports are handled here, under the lock.
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"

#include "supervise/supervise_private.h"

#define OVERDUE_FACTOR 4 /* of the timeout: a replacement may have much to read first */
#define NEWS_SECONDS 1.0 /* a shorter absence is not reported */

/* ---- reports of the watch ---- */

/* Returns why a task of another host is missing: the last words of ssh, or the watch's reason. */
static const char *reason_of(const struct task *task, const char *why, char words[TEXT_BYTES])
{
    if (!task->host)
        return why;
    task_last_words(task, words);
    if (!str_starts(words, "ssh: "))
        return why;
    const char *end = strrchr(words, ':');
    memmove(words + strlen("ssh"), end, strlen(end) + 1);
    return words;
}

/* Tells "5 of 6 ready; waiting for worker:3 on node4: ssh: Connection timed out, 22 s left" if it
 * is news: a new reason, or the last missing task. */
static void tell_who_is_missing(struct supervisor *s, struct task *task, const char *why)
{
    char words[TEXT_BYTES], news[TEXT_BYTES];
    const char *reason = reason_of(task, why, words);
    int n_ready = 0;
    double left = fmax(0, task->asked + s->timeout - time_now());
    for (const struct task *other = s->tasks; other; other = other->next)
        n_ready += other->life.ready;
    snprintf(news, sizeof news, "%.900s%s", reason, n_ready < s->n_tasks - 1 ? "" : ", the last");
    if (strcmp(news, task->told))
        say(s, "%d of %d ready; waiting for %s%s%s: %s, %.0f s left", n_ready, s->n_tasks,
            task->name, task->host ? " on " : "", task->host ? task->host : "", reason, left);
    memcpy(task->told, news, sizeof news);
}

/* A report on a process that was not heard of since its start may be about its predecessor. A
 * process that stalls before it was first heard of has no lease that could expire. */
static void look_at_running(struct supervisor *s, struct task *task, const struct watch_task *seen)
{
    double since = fmax(seen->heard, task->main.since), age = time_now() - task->main.since;
    bool heard = seen->heard > task->main.since;
    bool late = seen->missing &&
                age > s->timeout * (strcmp(seen->missing, WATCH_NO_REPLY) ? 1 : OVERDUE_FACTOR);
    if (seen->ready && heard) {
        task->life.ready = true;
        task->told[0] = '\0';
    }
    if (seen->left && seen->incarnation > task->incarnation)
        late_begin(&task->main); /* also a task that came and left between two reports */
    if (!late && !(seen->silent && (heard || age > s->timeout)))
        return;
    snprintf(task->life.why, sizeof task->life.why, "silent for %.1f s", time_now() - since);
    process_signal(&task->main, SIGKILL);
}

static void see_task(void *context, const struct watch_task *seen)
{
    struct supervisor *s = context;
    pthread_mutex_lock(&s->lock);
    struct task *task = s->tasks;
    while (task && strcmp(task->name, seen->name))
        task = task->next;
    if (task && task->main.pid)
        look_at_running(s, task, seen);
    if (task && seen->missing && !s->why && !task->life.ready &&
        (task->main.pid || task->start_at) && time_now() > task->asked + NEWS_SECONDS)
        tell_who_is_missing(s, task, seen->missing);
    pthread_mutex_unlock(&s->lock);
}

static void see_state(void *context, const struct watch_state *state)
{
    struct supervisor *s = context;
    pthread_mutex_lock(&s->lock);
    s->step = state->step > s->step ? state->step : s->step;
    snprintf(s->values, sizeof s->values, "%s", state->values);
    if ((s->phase < PHASE_END || (s->phase == PHASE_END && !s->hooked)) && !s->quiet)
        s->options.progress(s->options.context, state);
    pthread_mutex_unlock(&s->lock);
}

/* ---- the thread ---- */

static bool ends(void *context)
{
    return atomic_load(&((struct supervisor *)context)->watch_ends);
}

static void *watch_thread(void *argument)
{
    struct supervisor *s = argument;
    struct error err = ERROR_INIT;
    struct watch_options options = {.job_folder = s->folder,
                                    .producer = "tf-supervise",
                                    .no_key = s->no_key,
                                    .lease = s->lease,
                                    .task = see_task,
                                    .state = see_state,
                                    .ends = ends,
                                    .context = s};
    if (s->options.watch(&options, &err)) {
        pthread_mutex_lock(&s->lock);
        say(s, "nobody is watched: %s", err.text);
        pthread_mutex_unlock(&s->lock);
    }
    return NULL;
}

void watch_begin(struct supervisor *s)
{
    if (s->lease <= 0 || !s->folder)
        return;
    atomic_store(&s->watch_ends, false);
    s->watching = !thread_start(&s->watch, watch_thread, s);
    if (!s->watching)
        say(s, "nobody is watched: no thread is to be had");
}

void watch_end(struct supervisor *s)
{
    if (!s->watching)
        return;
    atomic_store(&s->watch_ends, true);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->watch, NULL);
    pthread_mutex_lock(&s->lock);
    s->watching = false;
}
