/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/cluster.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"

#define LINK_BANDWIDTH 1e9 /* bytes a second, where the file says nothing */
#define LINK_LATENCY 50e-6 /* seconds */
#define TASK_MAX 1000000   /* the largest number of a task */

/* ---- words ---- */

/* "ps:0" into a job and a number; `*` for either when `pattern`. */
static int parse_task(struct cluster *cluster, const char *text, bool pattern,
                      struct cluster_end *end, struct error *err)
{
    const char *colon = strchr(text, ':'), *number = colon ? colon + 1 : "";
    struct device_name ignored;
    int64_t index = -1;
    *end = (struct cluster_end){"", -1};
    if (pattern && !strcmp(text, "*"))
        return 0;
    bool every = pattern && !strcmp(number, "*");
    if (!colon || (!every && (!str_to_int64(number, &index) || index < 0 || index > TASK_MAX)))
        return error_set(err, ERR_CONFIG, "'%s' is not a task, as worker:0 is", text);
    end->job = arena_strndup(&cluster->arena, text, (size_t)(colon - text));
    end->index = (int)index;
    if (device_name_parse(&ignored, arena_printf(&cluster->arena, "/job:%s", end->job), err) ||
        !strcmp(end->job, "*"))
        return error_set(err, ERR_CONFIG, "'%s' is not the name of a job", end->job);
    return 0;
}

static int check_address(const char *address, struct error *err)
{
    const char *colon = strrchr(address, ':');
    int64_t port;
    if (str_starts(address, "unix:") && address[5])
        return 0;
    if (!colon || colon == address || !str_to_int64(colon + 1, &port) || port < 0 || port > 65535)
        return error_set(err, ERR_CONFIG, "'%s' is not an address: HOST:PORT or unix:NAME",
                         address);
    return 0;
}

static int bad_value(const char *key, const char *value, const char *wanted, struct error *err)
{
    return error_set(err, ERR_CONFIG, "%s=%s: %s", key, value, wanted);
}

/* ---- task ---- */

static int add_device(struct cluster *cluster, struct cluster_task *task, const char *text,
                      struct error *err)
{
    struct device_name device;
    const char *full =
        arena_printf(&cluster->arena, "/job:%s/task:%d/device:%s", task->job, task->index, text);
    if (strchr(text, '/') || device_name_parse(&device, full, err) || !*device.type)
        return bad_value("device", text, "not a device, as CPU:0 is", err);
    if (device.index == DEVICE_OPEN)
        device.index = 0;
    for (size_t i = (size_t)task->first_device; i < cluster->devices.n; i++)
        if (device_name_equal(&cluster->devices.items[i], &device))
            return bad_value("device", text, "is given twice", err);
    vec_push(&cluster->devices, device);
    task->n_devices++;
    return 0;
}

static int set_task(struct cluster *cluster, struct cluster_task *task, const char *key,
                    char *value, struct error *err)
{
    char *device;
    int code = 0;
    if (!strcmp(key, "device")) {
        char *rest = arena_strdup(&cluster->arena, value);
        while (!code && (device = strsep(&rest, ",")))
            code = add_device(cluster, task, device, err);
        return code;
    }
    if (!strcmp(key, "memory"))
        return str_to_bytes(value, &task->memory_bytes) && task->memory_bytes > 0
                   ? 0
                   : bad_value(key, value, "not a size, as 1G is", err);
    if (!strcmp(key, "speed"))
        return str_to_float64(value, &task->speed) && task->speed > 0 && isfinite(task->speed)
                   ? 0
                   : bad_value(key, value, "not a positive number", err);
    return error_set(err, ERR_CONFIG, "a task has device, memory and speed, not '%s'", key);
}

static int read_task(struct cluster *cluster, struct words *words, struct error *err)
{
    struct cluster_end name;
    struct cluster_task task = {.first_device = (int)cluster->devices.n, .speed = 1};
    if (words->n < 3)
        return error_set(err, ERR_CONFIG, "a task needs a name and an address");
    if (parse_task(cluster, words->word[1], false, &name, err) ||
        check_address(words->word[2], err))
        return err->code;
    if (cluster_find(cluster, name.job, name.index))
        return error_set(err, ERR_CONFIG, "task %s is given twice", words->word[1]);
    task.job = name.job;
    task.index = name.index;
    task.address = arena_strdup(&cluster->arena, words->word[2]);
    for (int i = 3; i < words->n; i++) {
        char *value = words_value(words->word[i]);
        if (!value)
            return error_set(err, ERR_CONFIG, "'%s' is not key=value", words->word[i]);
        if (set_task(cluster, &task, words->word[i], value, err))
            return err->code;
    }
    if (!task.n_devices && add_device(cluster, &task, "CPU:0", err))
        return err->code;
    vec_push(&cluster->tasks, task);
    return 0;
}

/* ---- link ---- */

static int set_link(struct cluster_link *link, const char *key, const char *value,
                    struct error *err)
{
    int64_t bytes;
    if (!strcmp(key, "bandwidth")) {
        if (!str_to_bytes(value, &bytes) || bytes <= 0)
            return bad_value(key, value, "not bytes a second, as 2G is", err);
        link->bandwidth = (double)bytes;
        return 0;
    }
    if (!strcmp(key, "latency"))
        return str_to_seconds(value, &link->latency) && link->latency >= 0 &&
                       isfinite(link->latency)
                   ? 0
                   : bad_value(key, value, "not a time, as 50us is", err);
    return error_set(err, ERR_CONFIG, "a link has bandwidth and latency, not '%s'", key);
}

static int read_link(struct cluster *cluster, struct words *words, struct error *err)
{
    struct cluster_link link = {.bandwidth = LINK_BANDWIDTH, .latency = LINK_LATENCY};
    if (words->n < 4)
        return error_set(err, ERR_CONFIG, "a link needs two tasks, and bandwidth or latency");
    if (parse_task(cluster, words->word[1], true, &link.a, err) ||
        parse_task(cluster, words->word[2], true, &link.b, err))
        return err->code;
    for (int i = 3; i < words->n; i++) {
        char *value = words_value(words->word[i]);
        if (!value)
            return error_set(err, ERR_CONFIG, "'%s' is not key=value", words->word[i]);
        if (set_link(&link, words->word[i], value, err))
            return err->code;
    }
    vec_push(&cluster->links, link);
    return 0;
}

/* ---- the whole ---- */

static int take(void *context, struct words *words, struct error *err)
{
    if (!strcmp(words->word[0], "task"))
        return read_task(context, words, err);
    if (!strcmp(words->word[0], "link"))
        return read_link(context, words, err);
    return error_set(err, ERR_CONFIG, "'%s' is neither task nor link", words->word[0]);
}

/* The numbers of a job's tasks are 0 to n - 1, so that "worker 2 of 4" means something. */
static int check_whole(const struct cluster *cluster, const char *name, struct error *err)
{
    if (!cluster->tasks.n)
        return error_set(err, ERR_CONFIG, "%s: no task", name);
    for (size_t i = 0; i < cluster->tasks.n; i++) {
        const struct cluster_task *task = &cluster->tasks.items[i];
        int n = cluster_count(cluster, task->job);
        if (task->index >= n)
            return error_set(err, ERR_CONFIG, "%s: job %s has %d task%s, but one is %s:%d", name,
                             task->job, n, n == 1 ? "" : "s", task->job, task->index);
    }
    return 0;
}

static int finish(struct cluster *cluster, const char *name, int code, struct error *err)
{
    if (!code)
        return check_whole(cluster, name, err);
    if (code == ERR_DATA)
        err->code = ERR_CONFIG;
    return err->code;
}

int cluster_read(struct cluster *cluster, const char *path, struct error *err)
{
    return finish(cluster, path, words_read(path, take, cluster, err), err);
}

int cluster_parse(struct cluster *cluster, const char *text, const char *name, struct error *err)
{
    return finish(cluster, name, words_parse(text, strlen(text), name, take, cluster, err), err);
}

void cluster_release(struct cluster *cluster)
{
    vec_release(&cluster->tasks);
    vec_release(&cluster->devices);
    vec_release(&cluster->links);
    arena_release(&cluster->arena);
}

const struct cluster_task *cluster_find(const struct cluster *cluster, const char *job, int index)
{
    for (size_t i = 0; i < cluster->tasks.n; i++)
        if (cluster->tasks.items[i].index == index && !strcmp(cluster->tasks.items[i].job, job))
            return &cluster->tasks.items[i];
    return NULL;
}

int cluster_count(const struct cluster *cluster, const char *job)
{
    int n = 0;
    for (size_t i = 0; i < cluster->tasks.n; i++)
        n += !strcmp(cluster->tasks.items[i].job, job);
    return n;
}

static bool fits(const struct cluster_end *end, const struct cluster_task *task)
{
    return !*end->job ||
           (!strcmp(end->job, task->job) && (end->index < 0 || end->index == task->index));
}

struct cluster_link cluster_link(const struct cluster *cluster, const struct cluster_task *a,
                                 const struct cluster_task *b)
{
    for (size_t i = cluster->links.n; i > 0; i--) {
        const struct cluster_link *link = &cluster->links.items[i - 1];
        if ((fits(&link->a, a) && fits(&link->b, b)) || (fits(&link->a, b) && fits(&link->b, a)))
            return *link;
    }
    return (struct cluster_link){.bandwidth = LINK_BANDWIDTH, .latency = LINK_LATENCY};
}
