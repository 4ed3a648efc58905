/* SPDX-License-Identifier: Apache-2.0
 *
 * Clusters: what is asked of one; then their files, statement by statement.
 */
#include "graph/cluster.h"

#include <math.h>
#include <string.h>

#include "base/words.h"

/* ---- facts ---- */

static int bad_value(const char *key, const char *value, const char *wanted, struct error *err)
{
    return error_set(err, ERR_CONFIG, "%s=%s: %s", key, value, wanted);
}

static bool read_positive(const char *value, double *n)
{
    return str_to_float64(value, n) && *n > 0 && isfinite(*n);
}

/* Parses "80G", or a plain number such as "2e12". */
static bool read_bytes(const char *value, double *n)
{
    int64_t bytes;
    if (!str_to_bytes(value, &bytes))
        return read_positive(value, n);
    *n = (double)bytes;
    return bytes > 0;
}

int device_facts_set(struct device_facts *facts, const char *key, const char *value,
                     struct error *err)
{
    const struct {
        const char *key;
        double *to;
        bool (*read)(const char *value, double *n);
        const char *wrong;
    } keys[] = {{"bandwidth", &facts->bandwidth, read_bytes, "not bytes a second, as 24G is"},
                {"bus", &facts->bus, read_bytes, "not bytes a second, as 24G is"},
                {"speed", &facts->speed, read_positive, "not a positive number"},
                {"operations", &facts->operations, read_positive, "not a positive number"}};
    size_t i = names_find(keys, 4, key);
    if (i < 4)
        return keys[i].read(value, keys[i].to) ? 0 : bad_value(key, value, keys[i].wrong, err);
    if (!strcmp(key, "memory"))
        return str_to_bytes(value, &facts->memory_bytes) && facts->memory_bytes > 0
                   ? 0
                   : bad_value(key, value, "not a size, as 80G is", err);
    return error_set(err, ERR_CONFIG,
                     "a device has memory, speed, operations, bandwidth and bus, not '%s'", key);
}

void device_facts_fill(struct device_facts *facts, const struct device_facts *others)
{
    facts->memory_bytes = facts->memory_bytes ? facts->memory_bytes : others->memory_bytes;
    facts->speed = facts->speed > 0 ? facts->speed : others->speed;
    facts->operations = facts->operations > 0 ? facts->operations : others->operations;
    facts->bandwidth = facts->bandwidth > 0 ? facts->bandwidth : others->bandwidth;
    facts->bus = facts->bus > 0 ? facts->bus : others->bus;
}

/* ---- what is asked ---- */

void cluster_release(struct cluster *cluster)
{
    vec_release(&cluster->tasks);
    vec_release(&cluster->devices);
    vec_release(&cluster->hosts);
    vec_release(&cluster->links);
    vec_release(&cluster->facts);
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

int cluster_machine(const struct cluster *cluster, int host)
{
    int within = cluster->hosts.items[host].within;
    return within >= 0 ? within : host;
}

/* Returns whether the end includes the task. */
static bool end_fits(const struct cluster_end *end, const struct cluster_task *task)
{
    if (end->host >= 0)
        return end->host == task->host;
    return !*end->job ||
           (!strcmp(end->job, task->job) && (end->index < 0 || end->index == task->index));
}

struct cluster_link cluster_link(const struct cluster *cluster, const struct cluster_task *a,
                                 const struct cluster_task *b)
{
    for (size_t i = cluster->links.n; i > 0; i--) {
        const struct cluster_link *link = &cluster->links.items[i - 1];
        if ((end_fits(&link->a, a) && end_fits(&link->b, b)) ||
            (end_fits(&link->a, b) && end_fits(&link->b, a)))
            return *link;
    }
    /* The bandwidths of the hosts, where stated, are the limit. */
    const int ends[] = {a->host, b->host};
    double least = INFINITY;
    for (int i = 0; i < 2 && a->host != b->host; i++) {
        double bandwidth = cluster->hosts.items[ends[i]].bandwidth;
        if (bandwidth > 0)
            least = fmin(least, bandwidth);
    }
    return (struct cluster_link){.bandwidth = isinf(least) ? CLUSTER_BANDWIDTH : least,
                                 .latency = CLUSTER_LATENCY};
}

struct device_facts cluster_facts(const struct cluster *cluster, const struct device_name *device)
{
    const struct cluster_task *task = cluster_find(cluster, device->job, device->task);
    struct device_facts facts = {0};
    if (!task)
        return facts;
    for (size_t i = cluster->facts.n; i > 0; i--) {
        const struct cluster_device *line = &cluster->facts.items[i - 1];
        if (end_fits(&line->tasks, task) && !strcmp(line->type, device->type) &&
            (line->index == DEVICE_OPEN || line->index == device->index))
            device_facts_fill(&facts, &line->facts);
    }
    const struct device_facts of_task = {.memory_bytes = task->memory_bytes, .speed = task->speed};
    device_facts_fill(&facts, &of_task);
    return facts;
}

#define TASK_MAX 1000000 /* the largest number of a task */
#define CORES_MAX 65536  /* of a host */

/* ---- words ---- */

/* Parses "ps:0" into a job and a number; if `pattern`, either may be `*`. */
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

static int bad_key(const char *text, struct error *err)
{
    return error_set(err, ERR_CONFIG, "'%s' is not key=value", text);
}

/* ---- host ---- */

/* Finds a host by name, or adds it. */
static int host_of(struct cluster *cluster, const char *name)
{
    int i = (int)vec_find(&cluster->hosts, name);
    const struct cluster_host new = {.name = arena_strdup(&cluster->arena, name), .within = -1};
    if (i == (int)cluster->hosts.n)
        vec_push(&cluster->hosts, new);
    return i;
}

static int read_host(struct cluster *cluster, struct words *words, struct error *err)
{
    if (words->n < 3)
        return error_set(err, ERR_CONFIG, "a host needs a name, and bandwidth, cores or within");
    int index = host_of(cluster, words->word[1]);
    const struct cluster_host *known = &cluster->hosts.items[index];
    if (known->bandwidth > 0 || known->cores || known->within >= 0)
        return error_set(err, ERR_CONFIG, "host %s is given twice", words->word[1]);
    for (int i = 2; i < words->n; i++) {
        const char *key = words->word[i], *value = words_value(words->word[i]);
        struct cluster_host *host = &cluster->hosts.items[index];
        int64_t n;
        if (!value)
            return bad_key(key, err);
        if (!strcmp(key, "bandwidth")) {
            if (!str_to_bytes(value, &n) || n <= 0)
                return bad_value(key, value, "not bytes a second, as 100M is", err);
            host->bandwidth = (double)n;
        } else if (!strcmp(key, "cores")) {
            if (!str_to_int64(value, &n) || n < 1 || n > CORES_MAX)
                return bad_value(key, value, "not a number of cores", err);
            host->cores = (int)n;
        } else if (!strcmp(key, "within")) {
            if (!*value || !strcmp(value, host->name))
                return bad_value(key, value, "not another host", err);
            int within = host_of(cluster, value); /* may move the hosts */
            cluster->hosts.items[index].within = within;
        } else {
            return error_set(err, ERR_CONFIG, "a host has bandwidth, cores and within, not '%s'",
                             key);
        }
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

static int read_task(struct cluster *cluster, struct words *words, struct error *err)
{
    struct cluster_end name;
    struct cluster_task task = {.host = -1, .first_device = (int)cluster->devices.n, .speed = 1};
    if (words->n < 3)
        return error_set(err, ERR_CONFIG, "a task needs a name and an address");
    const char *address = words->word[2], *colon = strrchr(address, ':');
    bool is_unix = str_starts(address, "unix:");
    int64_t port;
    if (parse_task(cluster, words->word[1], false, &name, err))
        return err->code;
    if (!(is_unix && address[5]) &&
        (!colon || colon == address || !str_to_int64(colon + 1, &port) || port < 0 || port > 65535))
        return error_set(err, ERR_CONFIG, "'%s' is not an address: HOST:PORT or unix:NAME",
                         address);
    if (cluster_find(cluster, name.job, name.index))
        return error_set(err, ERR_CONFIG, "task %s is given twice", words->word[1]);
    task.name = arena_printf(&cluster->arena, "%s:%d", name.job, name.index);
    task.job = name.job;
    task.index = name.index;
    task.address = arena_strdup(&cluster->arena, address);
    for (int i = 3; i < words->n; i++) {
        const char *key = words->word[i], *value = words_value(words->word[i]), *device;
        if (!value)
            return bad_key(key, err);
        if (!strcmp(key, "device")) {
            char *rest = arena_strdup(&cluster->arena, value);
            while ((device = strsep(&rest, ",")))
                if (add_device(cluster, &task, device, err))
                    return err->code;
        } else if (!strcmp(key, "memory")) {
            if (!str_to_bytes(value, &task.memory_bytes) || task.memory_bytes <= 0)
                return bad_value(key, value, "not a size, as 1G is", err);
        } else if (!strcmp(key, "speed")) {
            if (!read_positive(value, &task.speed))
                return bad_value(key, value, "not a positive number", err);
        } else if (!strcmp(key, "host")) {
            if (!*value)
                return bad_value(key, value, "no name", err);
            task.host = host_of(cluster, value);
        } else {
            return error_set(err, ERR_CONFIG, "a task has device, host, memory and speed, not '%s'",
                             key);
        }
    }
    if (task.host < 0) {
        /* Unix sockets and loopback addresses are on the local host. */
        size_t n = (size_t)(colon - address);
        size_t bracket = *address == '[' && n > 1 && address[n - 1] == ']';
        const char *host = arena_strndup(&cluster->arena, address + bracket, n - 2 * bracket);
        bool here = is_unix || str_starts(host, "127.") || !strcmp(host, "::1");
        task.host = host_of(cluster, here ? "localhost" : host);
    }
    if (!task.n_devices && add_device(cluster, &task, "CPU:0", err))
        return err->code;
    vec_push(&cluster->tasks, task);
    return 0;
}

/* ---- device ---- */

/* Parses a task, a pattern of tasks, or "host=H". */
static int parse_end(struct cluster *cluster, const char *text, struct cluster_end *end,
                     struct error *err)
{
    if (!str_starts(text, "host="))
        return parse_task(cluster, text, true, end, err);
    *end = (struct cluster_end){"", -1, host_of(cluster, text + strlen("host="))};
    return 0;
}

static int read_device(struct cluster *cluster, struct words *words, struct error *err)
{
    struct cluster_device line = {.index = DEVICE_OPEN};
    struct device_name name; /* "GPU:0" of each such task; "GPU": all of the type */
    if (words->n < 4)
        return error_set(err, ERR_CONFIG, "a device needs its task, its name, and what it has");
    if (parse_end(cluster, words->word[1], &line.tasks, err))
        return err->code;
    const char *full = arena_printf(&cluster->arena, "/device:%s", words->word[2]);
    if (strchr(words->word[2], '/') || device_name_parse(&name, full, err) || !*name.type)
        return error_set(err, ERR_CONFIG, "'%s' is not a device, as GPU:0 is, or a type",
                         words->word[2]);
    line.type = arena_strdup(&cluster->arena, name.type);
    line.index = name.index;
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
        const char *key = words->word[i], *value = words_value(words->word[i]);
        int64_t bytes;
        if (!value)
            return bad_key(key, err);
        if (!strcmp(key, "bandwidth")) {
            if (!str_to_bytes(value, &bytes) || bytes <= 0)
                return bad_value(key, value, "not bytes a second, as 2G is", err);
            link.bandwidth = (double)bytes;
        } else if (!strcmp(key, "latency")) {
            if (!str_to_seconds(value, &link.latency) || !(link.latency >= 0) ||
                !isfinite(link.latency))
                return bad_value(key, value, "not a time, as 50us is", err);
        } else {
            return error_set(err, ERR_CONFIG, "a link has bandwidth and latency, not '%s'", key);
        }
    }
    vec_push(&cluster->links, link);
    return 0;
}

/* ---- the whole file ---- */

static int read_words(void *context, struct words *words, struct error *err)
{
    static const struct {
        const char *word;
        int (*read)(struct cluster *cluster, struct words *words, struct error *err);
    } statements[] = {
        {"task", read_task}, {"link", read_link}, {"host", read_host}, {"device", read_device}};
    size_t i = names_find(statements, 4, words->word[0]);
    if (i < 4)
        return statements[i].read(context, words, err);
    return error_set(err, ERR_CONFIG, "'%s' is none of task, host, device and link",
                     words->word[0]);
}

/* Checks that the things a line names exist. */
static int check_end(const struct cluster *cluster, const struct cluster_end *end, const char *line,
                     const char *name, struct error *err)
{
    for (size_t i = 0; i < cluster->tasks.n; i++)
        if (end_fits(end, &cluster->tasks.items[i]))
            return 0;
    if (end->index < 0)
        return error_set(err, ERR_CONFIG, "%s: a %s of %s:*, of which there is no task", name, line,
                         end->job);
    return error_set(err, ERR_CONFIG, "%s: a %s of %s:%d, which is no task", name, line, end->job,
                     end->index);
}

static int finish(struct cluster *cluster, const char *name, int code, struct error *err)
{
    if (code == ERR_DATA)
        err->code = ERR_CONFIG;
    if (code)
        return err->code;
    if (!cluster->tasks.n)
        return error_set(err, ERR_CONFIG, "%s: no task", name);
    /* The tasks of a job must be numbered 0 to n - 1, so that "worker 2 of 4" means something. */
    vec_each(task, &cluster->tasks) {
        int n = cluster_count(cluster, task->job);
        if (task->index >= n)
            return error_set(err, ERR_CONFIG, "%s: job %s has %d task%s, but one is %s:%d", name,
                             task->job, n, n == 1 ? "" : "s", task->job, task->index);
    }
    for (size_t i = 0; i < cluster->hosts.n; i++) {
        const struct cluster_host *host = &cluster->hosts.items[i];
        bool is_used = false; /* a task is on it, or on a host within it */
        for (size_t k = 0; !is_used && k < cluster->tasks.n; k++) {
            int own = cluster->tasks.items[k].host;
            is_used = own == (int)i || cluster_machine(cluster, own) == (int)i;
        }
        if (!is_used)
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
    for (size_t i = 0; i < cluster->links.n; i++)
        if (check_end(cluster, &cluster->links.items[i].a, "link", name, err) ||
            check_end(cluster, &cluster->links.items[i].b, "link", name, err))
            return err->code;
    for (size_t i = 0; i < cluster->facts.n; i++)
        if (check_end(cluster, &cluster->facts.items[i].tasks, "device", name, err))
            return err->code;
    return 0;
}

int cluster_read(struct cluster *cluster, const char *path, struct error *err)
{
    return finish(cluster, path, words_read(path, read_words, cluster, err), err);
}

int cluster_parse(struct cluster *cluster, const char *text, const char *name, struct error *err)
{
    return finish(cluster, name, words_parse(text, strlen(text), name, read_words, cluster, err),
                  err);
}
