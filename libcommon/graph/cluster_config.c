/* SPDX-License-Identifier: Apache-2.0
 *
 * A reader of JSON that is as large as it has to be: it goes through the text once and keeps what
 * it was sent for.
 */
#include "graph/cluster_config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/str.h"

#define DEPTH_MAX 16
#define WORD_BYTES 512 /* the longest text, with its terminator */

struct reader {
    const char *at;
    int depth;
    struct str text; /* the cluster as a file would say it */
    char type[WORD_BYTES];
    int64_t index;
    struct error *err;
};

static int fail(struct reader *r, const char *what)
{
    return error_set(r->err, ERR_CONFIG, "TF_CONFIG: %s at '%.20s'", what, r->at);
}

static void skip_blanks(struct reader *r)
{
    r->at += strspn(r->at, " \t\n\r");
}

/* Passes blanks, and the character if it is the next. */
static bool take(struct reader *r, char c)
{
    skip_blanks(r);
    if (*r->at != c)
        return false;
    r->at++;
    return true;
}

/* A text without escapes but for those of one character. */
static int take_text(struct reader *r, char word[WORD_BYTES])
{
    size_t n = 0;
    if (!take(r, '"'))
        return fail(r, "a text is expected");
    while (*r->at && *r->at != '"' && n < WORD_BYTES - 1) {
        if (*r->at == '\\' && (*++r->at == 'u' || !*r->at))
            return fail(r, "an escape that no name needs");
        word[n++] = *r->at++;
    }
    word[n] = '\0';
    return take(r, '"') ? 0 : fail(r, "a text that does not end");
}

typedef int member_function(struct reader *r, const char *name);

static int skip_value(struct reader *r);

/* {"name": value, ...}: calls for each value. */
static int take_object(struct reader *r, member_function *member)
{
    char name[WORD_BYTES];
    int code = 0;
    if (!take(r, '{'))
        return fail(r, "'{' is expected");
    if (++r->depth > DEPTH_MAX)
        return fail(r, "too deep");
    if (!take(r, '}')) {
        do {
            code = take_text(r, name);
            if (!code && !take(r, ':'))
                code = fail(r, "':' is expected");
            if (!code)
                code = member(r, name);
        } while (!code && take(r, ','));
        if (!code && !take(r, '}'))
            code = fail(r, "'}' is expected");
    }
    r->depth--;
    return code;
}

typedef int element_function(struct reader *r, const char *job, int i);

static int take_array(struct reader *r, const char *job, element_function *element)
{
    int code = 0, n = 0;
    if (!take(r, '['))
        return fail(r, "'[' is expected");
    if (++r->depth > DEPTH_MAX)
        return fail(r, "too deep");
    if (!take(r, ']')) {
        do
            code = element(r, job, n++);
        while (!code && take(r, ','));
        if (!code && !take(r, ']'))
            code = fail(r, "']' is expected");
    }
    r->depth--;
    return code;
}

static int skip_member(struct reader *r, const char *name)
{
    (void)name;
    return skip_value(r);
}

static int skip_element(struct reader *r, const char *job, int i)
{
    (void)job, (void)i;
    return skip_value(r);
}

static int skip_value(struct reader *r)
{
    char word[WORD_BYTES];
    skip_blanks(r);
    if (*r->at == '{')
        return take_object(r, skip_member);
    if (*r->at == '[')
        return take_array(r, NULL, skip_element);
    if (*r->at == '"')
        return take_text(r, word);
    if (!*r->at || !(isalnum((unsigned char)*r->at) || *r->at == '-'))
        return fail(r, "a value is expected");
    while (isalnum((unsigned char)*r->at) || (*r->at && strchr("+-.", *r->at)))
        r->at++;
    return 0;
}

/* ---- what it is read for ---- */

static int take_address(struct reader *r, const char *job, int i)
{
    char word[WORD_BYTES];
    int code = take_text(r, word);
    if (!code && (strpbrk(word, " \t\n#") || !*word))
        return fail(r, "an address is expected before this");
    if (!code)
        str_printf(&r->text, "task %s:%d %s\n", job, i, word);
    return code;
}

static int take_job(struct reader *r, const char *job)
{
    if (strpbrk(job, " \t\n#:") || !*job)
        return fail(r, "the name of a job is expected before this");
    return take_array(r, job, take_address);
}

static int take_task(struct reader *r, const char *name)
{
    if (!strcmp(name, "type"))
        return take_text(r, r->type);
    if (strcmp(name, "index") != 0)
        return skip_value(r);
    char word[WORD_BYTES];
    size_t n = 0;
    bool quoted = take(r, '"');
    while (isdigit((unsigned char)*r->at) && n < 9)
        word[n++] = *r->at++;
    word[n] = '\0';
    if (!str_to_int64(word, &r->index) || (quoted && !take(r, '"')))
        return fail(r, "the number of a task is expected");
    return 0;
}

static int take_member(struct reader *r, const char *name)
{
    if (!strcmp(name, "cluster"))
        return take_object(r, take_job);
    return strcmp(name, "task") ? skip_value(r) : take_object(r, take_task);
}

int cluster_from_config(struct cluster *cluster, const char *json, char task[TASK_TEXT_BYTES],
                        struct error *err)
{
    struct reader r = {.at = json, .text = STR_INIT, .err = err};
    int code = take_object(&r, take_member);
    skip_blanks(&r);
    if (!code && *r.at)
        code = fail(&r, "nothing more is expected");
    if (!code)
        code = cluster_parse(cluster, str_text(&r.text), "TF_CONFIG", err);
    *task = '\0';
    if (!code && *r.type && strlen(r.type) < DEVICE_WORD_BYTES)
        snprintf(task, TASK_TEXT_BYTES, "%.60s:%d", r.type, (int)r.index);
    str_release(&r.text);
    return code;
}
