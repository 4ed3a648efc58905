/* SPDX-License-Identifier: Apache-2.0
 *
 * Cluster files, a statement after the other.
 */
#include "graph/cluster.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"

#define TASK_MAX 1000000 /* the largest number of a task */
#define CORES_MAX 65536  /* of a host */

/* ---- words ---- */

/* "ps:0" into a job and a number; `*` for either when `pattern`. */
static int parse_task(struct cluster *cluster, const char *text, bool pattern,
                      struct cluster_end *end, struct error *err)
{
    const char *colon = strchr(text, ':'), *number = colon ? colon + 1 : "";
    struct device_name ignored;
    int64_t index = -1;
    *end = (struct cluster_end){"", -1, -1};
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

static int bad_key(const char *text, struct error *err)
{
    return error_set(err, ERR_CONFIG, "'%s' is not key=value", text);
}

/* ---- host ---- */

/* By name, added if it is new. */
static int host_of(struct cluster *cluster, const char *name)
{
    for (size_t i = 0; i < cluster->hosts.n; i++)
        if (!strcmp(cluster->hosts.items[i].name, name))
            return (int)i;
    vec_push(&cluster->hosts,
             ((struct cluster_host){.name = arena_strdup(&cluster->arena, name), .within = -1}));
    return (int)cluster->hosts.n - 1;
}

/* Sockets of the system and its own addresses are on one host. */
static int host_of_address(struct cluster *cluster, const char *address)
{
    const char *colon = strrchr(address, ':');
    size_t n = (size_t)(colon - address);
    bool bracketed = *address == '[' && n > 1 && address[n - 1] == ']';
    const char *name =
        arena_strndup(&cluster->arena, address + bracketed, n - 2 * (size_t)bracketed);
    bool here = str_starts(address, "unix:") || str_starts(name, "127.") || !strcmp(name, "::1");
    return host_of(cluster, here ? "localhost" : name);
}

static int set_host(struct cluster *cluster, int index, const char *key, const char *value,
                    struct error *err)
{
    struct cluster_host *host = &cluster->hosts.items[index];
    int64_t n;
    if (!strcmp(key, "bandwidth")) {
        if (!str_to_bytes(value, &n) || n <= 0)
            return bad_value(key, value, "not bytes a second, as 100M is", err);
        host->bandwidth = (double)n;
        return 0;
    }
    if (!strcmp(key, "cores")) {
        if (!str_to_int64(value, &n) || n < 1 || n > CORES_MAX)
            return bad_value(key, value, "not a number of cores", err);
        host->cores = (int)n;
        return 0;
    }
    if (!strcmp(key, "within")) {
        if (!*value || !strcmp(value, host->name))
            return bad_value(key, value, "not another host", err);
        int within = host_of(cluster, value); /* which may move them */
        cluster->hosts.items[index].within = within;
        return 0;
    }
    return error_set(err, ERR_CONFIG, "a host has bandwidth, cores and within, not '%s'", key);
}

static int read_host(struct cluster *cluster, struct words *words, struct error *err)
{
    if (words->n < 3)
        return error_set(err, ERR_CONFIG, "a host needs a name, and bandwidth, cores or within");
    int index = host_of(cluster, words->word[1]);
    const struct cluster_host *host = &cluster->hosts.items[index];
    if (host->bandwidth > 0 || host->cores || host->within >= 0)
        return error_set(err, ERR_CONFIG, "host %s is given twice", words->word[1]);
    for (int i = 2; i < words->n; i++) {
        char *value = words_value(words->word[i]);
        if (!value)
            return bad_key(words->word[i], err);
        if (set_host(cluster, index, words->word[i], value, err))
            return err->code;
    }
    return 0;
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
    if (!strcmp(key, "host")) {
        if (!*value)
            return bad_value(key, value, "no name", err);
        task->host = host_of(cluster, value);
        return 0;
    }
    return error_set(err, ERR_CONFIG, "a task has device, host, memory and speed, not '%s'", key);
}

static int read_task(struct cluster *cluster, struct words *words, struct error *err)
{
    struct cluster_end name;
    struct cluster_task task = {.host = -1, .first_device = (int)cluster->devices.n, .speed = 1};
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
            return bad_key(words->word[i], err);
        if (set_task(cluster, &task, words->word[i], value, err))
            return err->code;
    }
    if (task.host < 0)
        task.host = host_of_address(cluster, task.address);
    if (!task.n_devices && add_device(cluster, &task, "CPU:0", err))
        return err->code;
    vec_push(&cluster->tasks, task);
    return 0;
}

/* ---- device ---- */

/* A task or some, or "host=H". */
static int parse_end(struct cluster *cluster, const char *text, struct cluster_end *end,
                     struct error *err)
{
    if (!str_starts(text, "host="))
        return parse_task(cluster, text, true, end, err);
    *end = (struct cluster_end){"", -1, host_of(cluster, text + strlen("host="))};
    return 0;
}

/* "GPU:0" of each such task, or "GPU", all of the type. */
static int parse_devices(struct cluster *cluster, const char *text, struct cluster_device *line,
                         struct error *err)
{
    struct device_name name;
    const char *full = arena_printf(&cluster->arena, "/device:%s", text);
    if (strchr(text, '/') || device_name_parse(&name, full, err) || !*name.type)
        return error_set(err, ERR_CONFIG, "'%s' is not a device, as GPU:0 is, or a type", text);
    line->type = arena_strdup(&cluster->arena, name.type);
    line->index = name.index;
    return 0;
}

static int read_device(struct cluster *cluster, struct words *words, struct error *err)
{
    struct cluster_device line = {.index = DEVICE_OPEN};
    if (words->n < 4)
        return error_set(err, ERR_CONFIG, "a device needs its task, its name, and what it has");
    if (parse_end(cluster, words->word[1], &line.tasks, err) ||
        parse_devices(cluster, words->word[2], &line, err))
        return err->code;
    for (int i = 3; i < words->n; i++) {
        char *value = words_value(words->word[i]);
        if (!value)
            return bad_key(words->word[i], err);
        if (device_facts_set(&line.facts, words->word[i], value, err))
            return err->code;
    }
    vec_push(&cluster->facts, line);
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
    struct cluster_link link = {.bandwidth = CLUSTER_BANDWIDTH, .latency = CLUSTER_LATENCY};
    if (words->n < 4)
        return error_set(err, ERR_CONFIG,
                         "a link needs two tasks or hosts, and bandwidth or latency");
    if (parse_end(cluster, words->word[1], &link.a, err) ||
        parse_end(cluster, words->word[2], &link.b, err))
        return err->code;
    for (int i = 3; i < words->n; i++) {
        char *value = words_value(words->word[i]);
        if (!value)
            return bad_key(words->word[i], err);
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
    if (!strcmp(words->word[0], "host"))
        return read_host(context, words, err);
    if (!strcmp(words->word[0], "device"))
        return read_device(context, words, err);
    return error_set(err, ERR_CONFIG, "'%s' is none of task, host, device and link",
                     words->word[0]);
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

/* Whether a task is on the host, or on one within it. */
static bool is_used(const struct cluster *cluster, int host)
{
    for (size_t i = 0; i < cluster->tasks.n; i++) {
        int own = cluster->tasks.items[i].host;
        if (own == host || cluster_machine(cluster, own) == host)
            return true;
    }
    return false;
}

static int check_hosts(const struct cluster *cluster, const char *name, struct error *err)
{
    for (size_t i = 0; i < cluster->hosts.n; i++) {
        const struct cluster_host *host = &cluster->hosts.items[i];
        if (!is_used(cluster, (int)i))
            return error_set(err, ERR_CONFIG, "%s: no task is on host %s", name, host->name);
        if (host->within < 0)
            continue;
        const struct cluster_host *machine = &cluster->hosts.items[host->within];
        if (host->cores)
            return error_set(err, ERR_CONFIG,
                             "%s: host %s has the cores of %s, and none of its own", name,
                             host->name, machine->name);
        if (machine->within >= 0)
            return error_set(err, ERR_CONFIG, "%s: host %s is within %s, which is within another",
                             name, host->name, machine->name);
    }
    return 0;
}

/* What a line speaks of is there. */
static int check_end(const struct cluster *cluster, const struct cluster_end *end, const char *line,
                     const char *name, struct error *err)
{
    for (size_t i = 0; i < cluster->tasks.n; i++)
        if (cluster_end_fits(end, &cluster->tasks.items[i]))
            return 0;
    if (end->index < 0)
        return error_set(err, ERR_CONFIG, "%s: a %s of %s:*, of which there is no task", name, line,
                         end->job);
    return error_set(err, ERR_CONFIG, "%s: a %s of %s:%d, which is no task", name, line, end->job,
                     end->index);
}

static int check_ends(const struct cluster *cluster, const char *name, struct error *err)
{
    for (size_t i = 0; i < cluster->links.n; i++)
        if (check_end(cluster, &cluster->links.items[i].a, "link", name, err) ||
            check_end(cluster, &cluster->links.items[i].b, "link", name, err))
            return err->code;
    for (size_t i = 0; i < cluster->facts.n; i++)
        if (check_end(cluster, &cluster->facts.items[i].tasks, "device", name, err))
            return err->code;
    return 0;
}

static int finish(struct cluster *cluster, const char *name, int code, struct error *err)
{
    if (!code && !check_whole(cluster, name, err) && !check_hosts(cluster, name, err))
        return check_ends(cluster, name, err);
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
