/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of tasks: a word a line and what it is set to. docs/supervise.md describes it.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ps/supervise_private.h"

struct reading {
    struct supervisor *s;
    struct task *task, **end; /* task NULL: still the job's own lines */
    int line;
};

static int fail(const struct reading *r, const char *text, const char *word, struct error *err)
{
    return error_set(err, ERR_DATA, "%s:%d: '%.64s' %s", r->s->options.path, r->line, word, text);
}

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
                       : fail(r, "is not what this can be set to", value, err);
    return fail(r, r->task ? "is no word of a task" : "is no word of a job", name, err);
}

static int begin_task(struct reading *r, const char *name, struct error *err)
{
    struct supervisor *s = r->s;
    if (r->task && !r->task->command)
        return fail(r, "has no command", r->task->name, err);
    if (!*name || strlen(name) > 60 || strpbrk(name, " ./"))
        return fail(r, "is no name of a task", name, err);
    for (const struct task *task = s->tasks; task; task = task->next)
        if (!strcmp(task->name, name))
            return fail(r, "is there twice", name, err);
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

static int take_entry(struct reading *r, char *name, struct error *err)
{
    char *value = name + strcspn(name, " ");
    if (!*name || *name == '#')
        return 0;
    if (*value)
        *value++ = '\0';
    return strcmp(name, "task") ? take_word(r, name, value, err) : begin_task(r, value, err);
}

/* A line that begins with a blank goes on with the one before, behind a newline. */
static int read_entries(struct reading *r, FILE *file, struct error *err)
{
    struct str entry = STR_INIT;
    char *line = NULL;
    size_t capacity = 0;
    ssize_t n = 0;
    for (int number = 1; !err->code && n >= 0; number++) {
        n = getline(&line, &capacity, file);
        if (n > 0 && line[n - 1] == '\n')
            line[n - 1] = '\0';
        if (n > 0 && *line == ' ') {
            str_printf(&entry, "\n%s", line + 1);
            continue;
        }
        if (entry.n)
            take_entry(r, entry.data, err);
        str_clear(&entry);
        str_append(&entry, n > 0 ? line : "");
        if (n > 0)
            r->line = number;
    }
    free(line);
    str_release(&entry);
    return err->code;
}

int supervise_read(struct supervisor *s, struct error *err)
{
    struct reading r = {.s = s, .end = &s->tasks};
    const char *path = s->options.path;
    FILE *file = fopen(path, "re");
    if (!file)
        return error_set_errno(err, ERR_NOINPUT, "%s", path);
    errno = 0;
    read_entries(&r, file, err);
    if (ferror(file))
        error_set_errno(err, errno == EISDIR ? ERR_DATA : ERR_IO, "%s", path);
    else if (!err->code && !r.task)
        error_set(err, ERR_DATA, "%s: there is no task", path);
    else if (!err->code && !r.task->command)
        fail(&r, "has no command", r.task->name, err);
    fclose(file);
    return err->code;
}
