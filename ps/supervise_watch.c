/* SPDX-License-Identifier: Apache-2.0
 *
 * Leases: a thread does what tf-ps watch does, and what it sees is looked at here, at every tick.
 */
#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ps/supervise_private.h"

#define OVERDUE_FACTOR                                                                             \
    4 /* times the timeout: one that takes another's place may read much first                     \
       */

/* ---- the thread ---- */

static void hear_line(void *context, const char *text)
{
    struct news *news = &((struct supervisor *)context)->news;
    pthread_mutex_lock(&news->lock);
    vec_push(&news->lines, mem_strdup(text));
    pthread_mutex_unlock(&news->lock);
}

static void hear_state(void *context, const struct watch_state *state)
{
    struct news *news = &((struct supervisor *)context)->news;
    pthread_mutex_lock(&news->lock);
    news->state = *state;
    str_clear(&news->values);
    str_append(&news->values, state->values);
    news->has_state = true;
    pthread_mutex_unlock(&news->lock);
}

static bool ends(void *context)
{
    return atomic_load(&((struct supervisor *)context)->watch_ends);
}

static void *watch_thread(void *argument)
{
    struct supervisor *s = argument;
    struct error err = ERROR_INIT;
    char text[ERROR_TEXT_BYTES + 32];
    struct watch_options options = {.job_folder = s->folder,
                                    .producer = "tf-supervise",
                                    .no_key = s->no_key,
                                    .lease = s->lease,
                                    .line = hear_line,
                                    .state = hear_state,
                                    .ends = ends,
                                    .context = s};
    if (watch_job(&options, &err)) {
        snprintf(text, sizeof text, "unwatched %s", err.text);
        hear_line(s, text);
    }
    return NULL;
}

void watch_begin(struct supervisor *s)
{
    if (s->lease <= 0 || !s->folder)
        return;
    atomic_store(&s->watch_ends, false);
    s->watching = !pthread_create(&s->watch, NULL, watch_thread, s);
    if (!s->watching)
        say(s, "nobody is watched: no thread is to be had");
}

static void forget_lines(struct news *news)
{
    for (size_t i = 0; i < news->lines.n; i++)
        mem_free(news->lines.items[i]);
    news->lines.n = 0;
}

void watch_end(struct supervisor *s)
{
    if (!s->watching)
        return;
    atomic_store(&s->watch_ends, true);
    pthread_join(s->watch, NULL);
    s->watching = false;
    forget_lines(&s->news);
    vec_release(&s->news.lines);
    str_release(&s->news.values);
    s->news.has_state = false;
}

/* ---- what it saw ---- */

static struct task *find_task(struct supervisor *s, const char *name)
{
    for (size_t i = 0; i < s->tasks.n; i++)
        if (!strcmp(s->tasks.items[i]->name, name))
            return s->tasks.items[i];
    return NULL;
}

static void kill_silent(struct task *task, const char *seconds)
{
    snprintf(task->why, sizeof task->why, "silent for %.16s s", seconds);
    task->unheard_at = 0;
    process_signal(&task->main, SIGKILL);
}

/* The watch does not see that a task on another host was started again: what it misses may be the
 * incarnation before. `ready` comes when it hears of the next one. */
static bool may_be_starting(const struct supervisor *s, const struct task *task, double now)
{
    return task->host && !task->ready && now < task->main.since + s->timeout;
}

/* SECONDSs pid=N ...: N is 0 of another host. */
static void on_silent(struct supervisor *s, struct task *task, char *words)
{
    const char *pid = strstr(words, "pid=");
    long process = pid ? strtol(pid + 4, NULL, 10) : 0;
    if (!task->main.pid || (process && kill((pid_t)process, 0)))
        return; /* the one before */
    words[strcspn(words, "s ")] = '\0';
    if (may_be_starting(s, task, time_now()))
        task->unheard_at = time_now() + 1;
    else
        kill_silent(task, words);
}

void look_at_silent(struct supervisor *s, struct task *task, double now)
{
    char seconds[16];
    if (!task->unheard_at || now < task->unheard_at)
        return;
    task->unheard_at = now + 1;
    if (task->ready || !task->main.pid) {
        task->unheard_at = 0;
    } else if (!may_be_starting(s, task, now)) {
        snprintf(seconds, sizeof seconds, "%.1f", now - task->main.since);
        kill_silent(task, seconds);
    }
}

static bool has_services(const struct supervisor *s)
{
    for (size_t i = 0; i < s->tasks.n; i++)
        if (s->tasks.items[i]->service)
            return true;
    return false;
}

/* A process that stands still before anybody heard of it is missed by no lease. */
static void kill_overdue(struct supervisor *s, struct task *task, const char *why)
{
    double limit = s->timeout * (strcmp(why, "no answer yet") ? 1 : OVERDUE_FACTOR);
    char seconds[16];
    if (!task->main.pid || time_now() < task->main.since + limit)
        return;
    snprintf(seconds, sizeof seconds, "%.0f", limit);
    kill_silent(task, seconds);
}

/* Why a task of another host is not there: what ssh said last, or what the watch says. */
static void reason_of(const struct task *task, const char *why, char *text, size_t n)
{
    struct str line = STR_INIT;
    snprintf(text, n, "%.900s", why);
    if (!task->host)
        return;
    task_last_lines(task, 1, &line);
    const char *said = str_text(&line), *colon = strrchr(said, ':');
    if (str_starts(said, "ssh: ") && colon && colon[1])
        snprintf(text, n, "ssh:%.900s", colon + 1);
    str_release(&line);
}

static void give_up_waiting(struct supervisor *s, const struct task *task)
{
    say(s, "%s is not there after %.0fs; the job ends", task->name, s->timeout);
    stop_with(s, "FAIL", ERR_UNAVAILABLE);
    for (size_t i = 0; i < s->tasks.n; i++)
        if (!s->tasks.items[i]->service)
            task_kill(s->tasks.items[i]);
    s->phase = PHASE_LEAVE;
}

/* "5 of 6 ready; waiting for worker:3 on node4: ssh: Connection timed out, 22 s left", when it is
 * news: another reason, or that it is the last one. */
static void tell_who_is_missing(struct supervisor *s, struct task *task, const char *why)
{
    char reason[1024], news[1100], on[300] = "";
    int n_ready = 0, n = (int)s->tasks.n;
    double left = task->asked + s->timeout - time_now();
    for (int i = 0; i < n; i++)
        n_ready += s->tasks.items[i]->ready;
    reason_of(task, why, reason, sizeof reason);
    snprintf(news, sizeof news, "%s%s", reason, n_ready < n - 1 ? "" : ", the last");
    if (task->host)
        snprintf(on, sizeof on, " on %.250s", task->host);
    if (strcmp(news, task->told))
        say(s, "%d of %d ready; waiting for %s%s: %s, %.0f s left", n_ready, n, task->name, on,
            reason, left > 0 ? left : 0);
    snprintf(task->told, sizeof task->told, "%s", news);
    if (left <= 0 && !strcmp(why, "not started") && !task->main.pid && !task->start_at)
        give_up_waiting(s, task);
}

/* A worker of others without services is ready when it runs: nobody else can tell. */
static void on_waiting(struct supervisor *s, struct task *task, const char *words)
{
    const char *why = str_starts(words, "why=") ? words + 4 : words;
    if (!has_services(s) && !strcmp(why, "no answer yet"))
        return;
    kill_overdue(s, task, why);
    if (!s->why && !task->ready && !task->done)
        tell_who_is_missing(s, task, why);
}

static void take_line(struct supervisor *s, char *line)
{
    char *name = line + strcspn(line, " "), *words;
    if (*name)
        *name++ = '\0';
    if (!strcmp(line, "unwatched")) {
        say(s, "nobody is watched: %s", name);
        return;
    }
    words = name + strcspn(name, " ");
    if (*words)
        *words++ = '\0';
    struct task *task = find_task(s, name);
    if (!task)
        return;
    if (!strcmp(line, "ready")) {
        task->ready = true;
        s->dirty = true;
    } else if (!strcmp(line, "silent")) {
        on_silent(s, task, words);
    } else if (!strcmp(line, "waiting")) {
        on_waiting(s, task, words);
    }
}

static void take_state(struct supervisor *s, const struct watch_state *state)
{
    if (state->step > s->step) {
        s->step = state->step;
        s->dirty = true;
    }
    if (s->phase < PHASE_END && !s->quiet)
        s->options.progress(s->options.context, state);
}

void watch_take(struct supervisor *s)
{
    struct news *news = &s->news;
    VEC(char *) lines;
    struct str values = STR_INIT;
    struct watch_state state;
    pthread_mutex_lock(&news->lock);
    memcpy(&lines, &news->lines, sizeof lines);
    memset(&news->lines, 0, sizeof news->lines);
    bool has_state = news->has_state;
    news->has_state = false;
    state = news->state;
    str_append(&values, str_text(&news->values));
    pthread_mutex_unlock(&news->lock);
    state.values = str_text(&values);
    if (has_state)
        take_state(s, &state);
    for (size_t i = 0; i < lines.n; i++) {
        if (s->phase <= PHASE_CLOSE)
            take_line(s, lines.items[i]);
        mem_free(lines.items[i]);
    }
    vec_release(&lines);
    str_release(&values);
}
