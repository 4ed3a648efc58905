/* SPDX-License-Identifier: Apache-2.0
 *
 * The available devices.
 */
#include <string.h>

#include "pass/place/cost.h"
#include "pass/place/place.h"

static int add(struct placement *placement, struct place_device *device, struct error *err)
{
    struct str text = STR_INIT;
    int code = 0;
    device_name_print(&text, &device->name);
    for (size_t i = 0; !code && i < placement->devices.n; i++)
        if (device_name_equal(&placement->devices.items[i].name, &device->name))
            code = error_set(err, ERR_DATA, "device '%s' is given twice", str_text(&text));
    device->text = arena_strdup(&placement->arena, str_text(&text));
    device->host = device->host < 0 ? (int)placement->devices.n : device->host;
    if (!code)
        vec_push(&placement->devices, *device);
    str_release(&text);
    return code;
}

int placement_add(struct placement *placement, const char *device, struct error *err)
{
    struct place_device added = {.host = -1, .speed = 1};
    struct str text = STR_INIT;
    str_printf(&text, *device == '/' ? "%s" : "/job:localhost/task:0/device:%s", device);
    int code = device_name_parse(&added.name, str_text(&text), err);
    str_release(&text);
    if (code)
        return code;
    if (*device != '/' && added.name.index == DEVICE_OPEN)
        added.name.index = 0;
    if (!device_name_is_full(&added.name) || device_task_is_many(added.name.task))
        return error_set(err, ERR_DATA, "'%s' is not a whole device, as CPU:0 is", device);
    if (add(placement, &added, err))
        return error_set(err, ERR_DATA, "device '%s' is given twice", device);
    return 0;
}

/* ---- groups ---- */

/* Adds the i-th device as one that the k-th task of each group has, if each has one, with its speed
 * and memory. */
static int add_group(struct placement *placement, size_t i, int size, struct error *err)
{
    struct place_device group = placement->devices.items[i];
    int n = 0, n_groups = cluster_count(placement->cluster, group.name.job) / size;
    int member = group.name.task;
    if (member < 0 || member >= size)
        return 0;
    vec_each(device, &placement->devices) {
        group.name.task = device->name.task;
        n += device->name.task >= 0 && device->name.task % size == member &&
             device_name_equal(&device->name, &group.name);
    }
    if (n != n_groups)
        return 0;
    group.host = (int)i;
    group.tasks = n_groups;
    group.name.task = device_group_task(size, member);
    return add(placement, &group, err);
}

int placement_add_groups(struct placement *placement, const struct graph *graph, struct error *err)
{
    struct device_name name, known = device_name_open();
    struct error ignored = ERROR_INIT;
    for (size_t i = 0; placement->cluster && i < graph->nodes.n; i++) {
        const char *device = graph_node(graph, (int)i)->device;
        if (!strchr(device, '%') || device_name_parse(&name, device, &ignored))
            continue;
        int size = device_group_size(name.task);
        if (!*known.job) {
            size_t n = placement->devices.n;
            int tasks = cluster_count(placement->cluster, name.job);
            if (tasks % size)
                return error_set(err, ERR_CONFIG,
                                 "the replicas are groups of %d tasks, but the cluster has %d %ss",
                                 size, tasks, name.job);
            for (size_t j = 0; j < n; j++)
                if (!strcmp(placement->devices.items[j].name.job, name.job) &&
                    add_group(placement, j, size, err))
                    return err->code;
        }
        if (*known.job && (strcmp(known.job, name.job) != 0 ||
                           device_group_size(known.task) != device_group_size(name.task)))
            return error_set(err, ERR_DATA, "%s: its replicas are not those of other nodes: %s",
                             node_text(graph_node(graph, (int)i)), device);
        known = name;
    }
    return 0;
}

int placement_add_cluster(struct placement *placement, const struct cluster *cluster,
                          struct error *err)
{
    vec_each(task, &cluster->tasks) {
        for (int k = 0; k < task->n_devices; k++) {
            double share = (strcmp(task->job, SHARD_JOB) != 0 &&
                            !strcmp(cluster->devices.items[task->first_device + k].type, "CPU"))
                               ? cost_core_share(cluster, task->host, false)
                               : 1;
            struct place_device device = {.name = cluster->devices.items[task->first_device + k],
                                          .host = -1};
            struct device_facts facts = cluster_facts(cluster, &device.name);
            device.speed = facts.speed * share;
            device.memory_bytes = facts.memory_bytes;
            if (add(placement, &device, err))
                return err->code;
        }
    }
    placement->cluster = cluster;
    for (size_t i = 0, n = placement->devices.n; i < n; i++)
        if (add_group(placement, i, 1, err))
            return err->code;
    return 0;
}

void placement_take_facts(struct placement *placement, const struct costs *costs)
{
    vec_each(device, &placement->devices) {
        if (!device->memory_bytes)
            device->memory_bytes = cost_facts(&device->name, NULL, costs).memory_bytes;
    }
}

void placement_release(struct placement *placement)
{
    vec_release(&placement->devices);
    arena_release(&placement->arena);
}
