/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of tasks: a word a line and what it is set to. docs/supervise.md describes it.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "ps/supervise_private.h"

struct reading {
    struct supervisor *s;
    struct task *task, **end; /* task NULL: still the job's own lines */
};

/* ---- the words ---- */

enum kind { TEXT, FLAG, NUMBER, SECONDS, BUDGET, POLICY, CODES };

struct word {
    const char *name;
    enum kind kind;
    bool of_task;
    size_t at;
};

static const struct word words[] = {
    {"name", TEXT, false, offsetof(struct supervisor, name)},
    {"job", TEXT, false, offsetof(struct supervisor, folder)},
    {"cleanup", TEXT, false, offsetof(struct supervisor, cleanup)},
    {"guard", NUMBER, false, offsetof(struct supervisor, guard_pid)},
    {"max-restarts", BUDGET, false, offsetof(struct supervisor, budget)},
    {"lease", SECONDS, false, offsetof(struct supervisor, lease)},
    {"timeout", SECONDS, false, offsetof(struct supervisor, timeout)},
    {"no-key", FLAG, false, offsetof(struct supervisor, no_key)},
    {"quiet", FLAG, false, offsetof(struct supervisor, quiet)},
    {"restart", TEXT, false, offsetof(struct supervisor, hooks[HOOK_RESTART])},
    {"stop", TEXT, false, offsetof(struct supervisor, hooks[HOOK_STOP])},
    {"end", TEXT, false, offsetof(struct supervisor, hooks[HOOK_END])},
    {"over", TEXT, false, offsetof(struct supervisor, hooks[HOOK_OVER])},
    {"command", TEXT, true, offsetof(struct task, command)},
    {"feed", TEXT, true, offsetof(struct task, feed)},
    {"hold", FLAG, true, offsetof(struct task, hold)},
    {"service", FLAG, true, offsetof(struct task, service)},
    {"restart", POLICY, true, offsetof(struct task, policy)},
    {"ends", CODES, true, offsetof(struct task, ends)},
    {"absent", NUMBER, true, offsetof(struct task, absent)},
    {"host", TEXT, true, offsetof(struct task, host)},
    {"errors", TEXT, true, offsetof(struct task, errors)},
    {"repeats", TEXT, true, offsetof(struct task, repeats)},
};

/* ---- what they are set to: false, not to this value ---- */

static bool set_number(int *to, const char *value)
{
    int64_t n;
    if (!str_to_int64(value, &n) || n < 1 || n > INT32_MAX)
        return false;
    *to = (int)n;
    return true;
}

static bool set_seconds(double *to, const char *value)
{
    return str_to_seconds(value, to) && *to > 0;
}

/* 5, or 5/1h */
static bool set_budget(struct budget *to, const char *value)
{
    char *end;
    long n = strtol(value, &end, 10);
    *to = (struct budget){.max = (int)n, .text = value};
    if (end == value || n < 0 || n > 1000000)
        return false;
    return !*end || (*end == '/' && set_seconds(&to->seconds, end + 1));
}

static bool set_policy(enum restart_policy *to, const char *value)
{
    static const char *const names[] = {"all", "alone", "never"};
    for (int i = 0; i < 3; i++)
        if (!strcmp(names[i], value)) {
            *to = (enum restart_policy)i;
            return true;
        }
    return false;
}

static bool set_codes(bool codes[256], const char *value)
{
    for (char *end; *value; value = end + strspn(end, " ")) {
        long code = strtol(value, &end, 10);
        if (end == value || code < 1 || code > 255)
            return false;
        codes[code] = true;
    }
    return true;
}

static bool set(enum kind kind, void *to, const char *value)
{
    switch (kind) {
    case NUMBER:
        return set_number(to, value);
    case SECONDS:
        return set_seconds(to, value);
    case BUDGET:
        return set_budget(to, value);
    case POLICY:
        return set_policy(to, value);
    case CODES:
        return set_codes(to, value);
    case TEXT:
        *(const char **)to = value;
        return true;
    default:
        *(bool *)to = true;
        return true;
    }
}

static int take_word(const struct reading *r, const char *name, const char *value,
                     struct error *err)
{
    char *object = r->task ? (char *)r->task : (char *)r->s;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].of_task == !!r->task && !strcmp(words[i].name, name))
            return set(words[i].kind, object + words[i].at, arena_strdup(&r->s->arena, value))
                       ? 0
                       : error_set(err, ERR_DATA, "'%.64s' is not what this can be set to", value);
    return error_set(err, ERR_DATA, "'%.64s' is no word of a %s", name, r->task ? "task" : "job");
}

static int check_command(const struct task *task, struct error *err)
{
    return task->command ? 0 : error_set(err, ERR_DATA, "'%s' has no command", task->name);
}

static int begin_task(struct reading *r, const char *name, struct error *err)
{
    struct supervisor *s = r->s;
    if (r->task && check_command(r->task, err))
        return err->code;
    if (!*name || strlen(name) > 60 || strpbrk(name, " ./"))
        return error_set(err, ERR_DATA, "'%.64s' is no name of a task", name);
    for (const struct task *task = s->tasks; task; task = task->next)
        if (!strcmp(task->name, name))
            return error_set(err, ERR_DATA, "'%s' is there twice", name);
    struct task *task = r->task = *r->end = arena_alloc(&s->arena, sizeof *task);
    *task = (struct task){.name = arena_strdup(&s->arena, name),
                          .input = -1,
                          .main = {.task = task, .ended = task_ended, .next = &task->feeder},
                          .feeder = {.task = task, .ended = feeder_ended, .next = s->processes}};
    s->processes = &task->main;
    r->end = &task->next;
    s->n_tasks++;
    return 0;
}

static int take_setting(void *context, const struct setting *setting, struct error *err)
{
    struct reading *r = context;
    return strcmp(setting->word, "task") ? take_word(r, setting->word, setting->text, err)
                                         : begin_task(r, setting->text, err);
}

int supervise_read(struct supervisor *s, struct error *err)
{
    struct reading r = {.s = s, .end = &s->tasks};
    const char *path = s->options.path;
    if (settings_read(path, take_setting, &r, err))
        return err->code;
    if (!r.task)
        return error_set(err, ERR_DATA, "%s: there is no task", path);
    return check_command(r.task, err) ? error_prefix(err, "%s: ", path) : 0;
}
