/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/job/cluster_config.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static int fail(const char *what, struct error *err)
{
    return error_set(err, ERR_CONFIG, "TF_CONFIG: %s", what);
}

/* ---- the cluster ---- */

static const char *own_name(const char *job)
{
    return strcmp(job, "chief") ? job : "worker";
}

/* Returns whether the text is one word in a line of a file. */
static bool is_word(const char *text, const char *besides)
{
    return text && *text && !strpbrk(text, " \t\n#") && !strpbrk(text, besides);
}

static int add_tasks(struct str *text, const char *job, const json_t *addresses, size_t first,
                     struct error *err)
{
    size_t i;
    json_t *address;
    if (!is_word(job, ":") || !json_is_array(addresses))
        return error_set(err, ERR_CONFIG, "TF_CONFIG: job '%.60s' is no list of addresses", job);
    json_array_foreach(addresses, i, address)
    {
        const char *where = json_string_value(address);
        if (!is_word(where, ""))
            return error_set(err, ERR_CONFIG, "TF_CONFIG: address %zu of job '%.60s' is none", i,
                             job);
        str_printf(text, "task %s:%zu %s\n", own_name(job), first + i, where);
    }
    return 0;
}

/* Returns the number of workers before those of the job: chiefs come first. */
static size_t first_of(const json_t *jobs, const char *job)
{
    return strcmp(job, "worker") ? 0 : json_array_size(json_object_get(jobs, "chief"));
}

static int add_cluster(struct str *text, json_t *jobs, struct error *err)
{
    const char *job;
    json_t *addresses;
    if (!json_is_object(jobs))
        return fail("there is no object 'cluster'", err);
    json_object_foreach(jobs, job, addresses)
    {
        if (add_tasks(text, job, addresses, first_of(jobs, job), err))
            return err->code;
    }
    return 0;
}

/* ---- the task ---- */

/* Parses a number, or a text that is one. */
static bool index_of(const json_t *value, int64_t *index)
{
    *index = json_integer_value(value);
    if (json_is_string(value) && !str_to_int64(json_string_value(value), index))
        return false;
    return (json_is_integer(value) || json_is_string(value)) && *index >= 0 && *index < 1000000;
}

static int take_task(const json_t *task, const json_t *jobs, char text[TASK_TEXT_BYTES],
                     struct error *err)
{
    const char *type = json_string_value(json_object_get(task, "type"));
    const json_t *number = json_object_get(task, "index");
    int64_t index = 0;
    if (number && !index_of(number, &index))
        return fail("the index of its task is no number", err);
    if (type && *type && strlen(type) < DEVICE_WORD_BYTES)
        snprintf(text, TASK_TEXT_BYTES, "%.60s:%d", own_name(type),
                 (int)index + (int)first_of(jobs, type));
    return 0;
}

/* ---- cluster and task ---- */

int cluster_config_text(struct str *text, const char *json, char task[TASK_TEXT_BYTES],
                        struct error *err)
{
    json_error_t where;
    *task = '\0';
    json_t *config = json_loads(json, JSON_REJECT_DUPLICATES, &where);
    if (!config)
        return error_set(err, ERR_CONFIG, "TF_CONFIG: line %d, column %d: %s", where.line,
                         where.column, where.text);
    json_t *jobs = json_object_get(config, "cluster");
    int code = add_cluster(text, jobs, err);
    if (!code)
        code = take_task(json_object_get(config, "task"), jobs, task, err);
    json_decref(config);
    return code;
}

int cluster_from_config(struct cluster *cluster, const char *json, char task[TASK_TEXT_BYTES],
                        struct error *err)
{
    struct str text = STR_INIT;
    int code = cluster_config_text(&text, json, task, err);
    if (!code)
        code = cluster_parse(cluster, str_text(&text), "TF_CONFIG", err);
    if (code)
        *task = '\0';
    str_release(&text);
    return code;
}
