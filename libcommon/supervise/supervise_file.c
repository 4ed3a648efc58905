/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of tasks: each line a word and its value. docs/supervise.md describes it.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/words.h"
#include "supervise/supervise_private.h"

/* ---- values of words ---- */

/* 5, or 5/1h */
static bool set_budget(void *target, const char *text)
{
    struct budget *budget = target;
    int64_t n;
    *budget = (struct budget){.text = text};
    if (!str_to_budget(text, &n, &budget->seconds) || n > SUPERVISE_RESTARTS_MAX)
        return false;
    budget->max = (int)n;
    return true;
}

static bool set_policy(void *target, const char *text)
{
    enum restart_policy *policy = target;
    *policy = !strcmp(text, "alone")   ? RESTART_ALONE
              : !strcmp(text, "never") ? RESTART_NEVER
                                       : RESTART_ALL;
    return *policy != RESTART_ALL || !strcmp(text, "all");
}

static bool set_codes(void *target, const char *text)
{
    bool *codes = target;
    for (char *end; *text; text = end + strspn(end, " ")) {
        long code = strtol(text, &end, 10);
        if (end == text || code < 1 || code > 255)
            return false;
        codes[code] = true;
    }
    return true;
}

static const struct setting_row of_job[] = {
    {"name", setting_text, offsetof(struct supervisor, name)},
    {"job", setting_text, offsetof(struct supervisor, folder)},
    {"cleanup", setting_text, offsetof(struct supervisor, cleanup)},
    {"reaper", setting_count, offsetof(struct supervisor, reaper_pid)},
    {"max-restarts", set_budget, offsetof(struct supervisor, budget)},
    {"lease", setting_seconds, offsetof(struct supervisor, lease)},
    {"timeout", setting_seconds, offsetof(struct supervisor, timeout)},
    {"grace", setting_seconds, offsetof(struct supervisor, grace)},
    {"no-key", setting_flag, offsetof(struct supervisor, no_key)},
    {"quiet", setting_flag, offsetof(struct supervisor, quiet)},
    {"restart", setting_text, offsetof(struct supervisor, hooks[HOOK_RESTART])},
    {"stop", setting_text, offsetof(struct supervisor, hooks[HOOK_STOP])},
    {"end", setting_text, offsetof(struct supervisor, hooks[HOOK_END])},
    {"over", setting_text, offsetof(struct supervisor, hooks[HOOK_OVER])},
    {0}};

static const struct setting_row of_task[] = {
    {"command", setting_text, offsetof(struct task, command)},
    {"feed", setting_text, offsetof(struct task, feed)},
    {"hold", setting_flag, offsetof(struct task, hold)},
    {"service", setting_flag, offsetof(struct task, service)},
    {"leads", setting_flag, offsetof(struct task, leads)},
    {"restart", set_policy, offsetof(struct task, policy)},
    {"ends", set_codes, offsetof(struct task, ends)},
    {"absent", setting_count, offsetof(struct task, absent)},
    {"host", setting_text, offsetof(struct task, host)},
    {"errors", setting_text, offsetof(struct task, errors)},
    {"repeats", setting_text, offsetof(struct task, repeats)},
    {0}};

/* ---- the file ---- */

static int begin_task(struct supervisor *s, const char *name, struct error *err)
{
    struct task **end = &s->tasks, *task;
    if (!*name || strlen(name) > 60 || strpbrk(name, " ./"))
        return error_set(err, ERR_DATA, "'%.64s' is no name of a task", name);
    for (; *end; end = &(*end)->next)
        if (!strcmp((*end)->name, name))
            return error_set(err, ERR_DATA, "'%s' is there twice", name);
    s->last = *end = task = arena_alloc(&s->arena, sizeof *task);
    *task = (struct task){.name = name,
                          .input = -1,
                          .main = {.task = task, .ended = task_ended, .next = &task->feeder},
                          .feeder = {.task = task, .ended = feeder_ended, .next = s->processes}};
    s->processes = &task->main;
    s->n_tasks++;
    return 0;
}

static int read_setting(void *context, const struct setting *setting, struct error *err)
{
    struct supervisor *s = context;
    const struct setting kept = {setting->word, arena_strdup(&s->arena, setting->text), 0};
    if (!strcmp(kept.word, "task"))
        return begin_task(s, kept.text, err);
    return s->last ? setting_take(of_task, "task", s->last, &kept, err)
                   : setting_take(of_job, "job", s, &kept, err);
}

int supervise_read(struct supervisor *s, struct error *err)
{
    const char *path = s->options.path;
    int code = settings_read(path, read_setting, s, err);
    if (!code && !s->tasks)
        code = error_set(err, ERR_DATA, "%s: there is no task", path);
    for (const struct task *task = s->tasks; task && !code; task = task->next)
        if (!task->command)
            code = error_set(err, ERR_DATA, "%s: '%s' has no command", path, task->name);
    return code;
}
