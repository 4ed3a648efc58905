/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of tasks: a word a line and what it is set to. docs/supervise.md describes it.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ps/supervise_private.h"

struct reading {
    struct supervisor *s;
    struct task *task; /* NULL: still the job's own lines */
    const char *path;
    int line;
};

static int fail(const struct reading *r, const char *text, const char *word, struct error *err)
{
    return error_set(err, ERR_DATA, "%s:%d: '%.64s' %s", r->path, r->line, word, text);
}

static void set_text(char **to, const char *value)
{
    mem_free(*to);
    *to = mem_strdup(value);
}

/* ---- words that set a text ---- */

struct text_word {
    const char *word;
    size_t offset;
};

static const struct text_word job_texts[] = {
    {"name", offsetof(struct supervisor, name)},
    {"cleanup", offsetof(struct supervisor, cleanup)},
    {"job", offsetof(struct supervisor, folder)},
    {"restart", offsetof(struct supervisor, hooks[HOOK_RESTART])},
    {"broken", offsetof(struct supervisor, hooks[HOOK_BROKEN])},
    {"stop", offsetof(struct supervisor, hooks[HOOK_STOP])},
    {"end", offsetof(struct supervisor, hooks[HOOK_END])},
    {"over", offsetof(struct supervisor, hooks[HOOK_OVER])},
    {0}};

static const struct text_word task_texts[] = {{"command", offsetof(struct task, command)},
                                              {"feed", offsetof(struct task, feed)},
                                              {"host", offsetof(struct task, host)},
                                              {"output", offsetof(struct task, output)},
                                              {"errors", offsetof(struct task, errors)},
                                              {"repeats", offsetof(struct task, repeats)},
                                              {0}};

static bool take_text(const struct text_word *words, void *object, const char *word,
                      const char *value)
{
    for (; words->word; words++)
        if (!strcmp(words->word, word)) {
            set_text((char **)((char *)object + words->offset), value);
            return true;
        }
    return false;
}

/* ---- the others ---- */

/* 5, or 5/1h */
static bool take_budget(struct supervisor *s, const char *value)
{
    char *end;
    long n = strtol(value, &end, 10);
    s->restart_window = 0;
    if (end == value || n < 0 || n > 1000000)
        return false;
    if (*end == '/' && (!str_to_seconds(end + 1, &s->restart_window) || s->restart_window <= 0))
        return false;
    if (*end && *end != '/')
        return false;
    s->max_restarts = (int)n;
    set_text(&s->max_text, value);
    return true;
}

static bool take_number(const char *value, int *to)
{
    int64_t n;
    bool right = str_to_int64(value, &n) && n >= 0 && n <= INT32_MAX;
    if (right)
        *to = (int)n;
    return right;
}

static int take_job(struct reading *r, const char *word, const char *value, struct error *err)
{
    struct supervisor *s = r->s;
    int guard = 0;
    bool right = true;
    if (!strcmp(word, "lease"))
        right = str_to_seconds(value, &s->lease) && s->lease > 0;
    else if (!strcmp(word, "timeout"))
        right = str_to_seconds(value, &s->timeout) && s->timeout > 0;
    else if (!strcmp(word, "max-restarts"))
        right = take_budget(s, value);
    else if (!strcmp(word, "guard")) {
        right = take_number(value, &guard) && guard > 0;
        s->guard.pid = guard;
    } else if (!strcmp(word, "no-key"))
        s->no_key = true;
    else if (!strcmp(word, "quiet"))
        s->quiet = true;
    else if (!take_text(job_texts, s, word, value))
        return fail(r, "is no word of a job", word, err);
    return right ? 0 : fail(r, "is not what this can be set to", value, err);
}

static bool take_policy(struct task *task, const char *value)
{
    static const char *const names[] = {"all", "alone", "never"};
    for (int i = 0; i < 3; i++)
        if (!strcmp(names[i], value)) {
            task->policy = (enum restart_policy)i;
            return true;
        }
    return false;
}

static bool take_ends(struct task *task, const char *value)
{
    char *end;
    task->n_ends = 0;
    while (*value && task->n_ends < ENDS_MAX) {
        long code = strtol(value, &end, 10);
        if (end == value || code < 1 || code > 255)
            return false;
        task->ends[task->n_ends++] = (int)code;
        value = end + strspn(end, " ");
    }
    return !*value;
}

static int take_of_task(struct reading *r, const char *word, const char *value, struct error *err)
{
    struct task *task = r->task;
    bool right = true;
    if (!strcmp(word, "restart"))
        right = take_policy(task, value);
    else if (!strcmp(word, "ends"))
        right = take_ends(task, value);
    else if (!strcmp(word, "absent"))
        right = take_number(value, &task->absent);
    else if (!strcmp(word, "service"))
        task->service = true;
    else if (!strcmp(word, "hold"))
        task->hold = true;
    else if (!take_text(task_texts, task, word, value))
        return fail(r, "is no word of a task", word, err);
    return right ? 0 : fail(r, "is not what this can be set to", value, err);
}

static int begin_task(struct reading *r, const char *name, struct error *err)
{
    if (r->task && !r->task->command)
        return fail(r, "has no command", r->task->name, err);
    if (!*name || strlen(name) > 60 || strpbrk(name, " ./"))
        return fail(r, "is no name of a task", name, err);
    for (size_t i = 0; i < r->s->tasks.n; i++)
        if (!strcmp(r->s->tasks.items[i]->name, name))
            return fail(r, "is there twice", name, err);
    r->task = mem_alloc(sizeof *r->task);
    r->task->name = mem_strdup(name);
    r->task->input = -1;
    vec_push(&r->s->tasks, r->task);
    return 0;
}

static int take_line(struct reading *r, char *line, struct error *err)
{
    char *value = line + strcspn(line, " ");
    if (!*line || *line == '#')
        return 0;
    if (*value)
        *value++ = '\0';
    if (!strcmp(line, "task"))
        return begin_task(r, value, err);
    return r->task ? take_of_task(r, line, value, err) : take_job(r, line, value, err);
}

static int check(const struct reading *r, struct error *err)
{
    if (!r->task)
        return error_set(err, ERR_DATA, "%s: there is no task", r->path);
    return r->task->command ? 0 : fail(r, "has no command", r->task->name, err);
}

/* A line that begins with a blank goes on with the one before, behind a newline. */
int supervise_read(struct supervisor *s, const char *path, struct error *err)
{
    struct reading r = {.s = s, .path = path};
    struct str value = STR_INIT;
    char *line = NULL;
    size_t capacity = 0;
    ssize_t n;
    int code = 0, number = 0;
    FILE *file = fopen(path, "re");
    if (!file)
        return error_set_errno(err, ERR_NOINPUT, "%s", path);
    errno = 0;
    while (!code && (n = getline(&line, &capacity, file)) >= 0) {
        number++;
        if (n && line[n - 1] == '\n')
            line[--n] = '\0';
        if (*line == ' ') {
            str_printf(&value, "\n%s", line + 1);
            continue;
        }
        if (value.n)
            code = take_line(&r, value.data, err);
        str_clear(&value);
        str_append(&value, line);
        r.line = number;
    }
    if (ferror(file))
        code = error_set_errno(err, errno == EISDIR ? ERR_DATA : ERR_IO, "%s", path);
    if (!code && value.n)
        code = take_line(&r, value.data, err);
    if (!code)
        code = check(&r, err);
    fclose(file);
    free(line);
    str_release(&value);
    return code;
}

void supervise_free_tasks(struct supervisor *s)
{
    for (size_t i = 0; i < s->tasks.n; i++) {
        struct task *task = s->tasks.items[i];
        for (const struct text_word *word = task_texts; word->word; word++)
            mem_free(*(char **)((char *)task + word->offset));
        mem_free(task->name);
        mem_free(task);
    }
    vec_release(&s->tasks);
    for (const struct text_word *word = job_texts; word->word; word++)
        mem_free(*(char **)((char *)s + word->offset));
    mem_free(s->max_text);
}
