/* SPDX-License-Identifier: Apache-2.0
 *
 * The ways from each device to each other: links between tasks, the adapters of hosts, and the
 * buses of accelerators.
 */
#include <math.h>
#include <string.h>

#include "pass/place/place_private.h"

#define NS 1e9

/* ---- links ---- */

/* False: they are of one task, whose devices share nothing on the way. */
static bool set_link(const struct place_model *m, struct place_wire *wire, int from, int to)
{
    const struct placement *placement = m->placer->placement;
    const struct place_device *a = &placement->devices.items[from];
    const struct place_device *b = &placement->devices.items[to];
    const struct device_name *x = &placement->devices.items[a->host].name;
    const struct device_name *y = &placement->devices.items[b->host].name;
    struct device_name other = *y;
    bool same_task = device_name_same_task(x, y);
    /* From many tasks to a single one of the same job, most are elsewhere. */
    if (same_task && a->tasks != b->tasks && (a->tasks > 1 || b->tasks > 1))
        other.task++;
    else if (same_task && a->host == b->host)
        return false;
    struct cost_way way = cost_way(x, &other, placement->cluster, m->measured);
    wire->latency = way.latency;
    wire->per_byte = way.per_byte;
    return !device_name_same_task(x, &other);
}

/* ---- adapters ---- */

/* The i-th task that a device stands for. */
static const struct cluster_task *task_of(const struct cluster *cluster,
                                          const struct place_device *device, int i)
{
    int task = device->name.task, size = device->tasks ? device_group_size(task) : 1;
    int member = size > 1 ? device_group_member(task) : 0;
    return cluster_find(cluster, device->name.job, device->tasks ? i * size + member : task);
}

static int task_count(const struct place_device *device)
{
    return device->tasks ? device->tasks : 1;
}

/* The side of a transfer whose adapter is looked at. */
static int host_of(const struct cluster_task *from, const struct cluster_task *to, bool out)
{
    return out ? from->host : to->host;
}

/* Counts, of the tensors that go from one device to the other at once, those that leave the host of
 * the first sender, or reach that of the first receiver. */
static int crossings(const struct cluster *cluster, const struct place_device *from,
                     const struct place_device *to, bool out)
{
    int host = host_of(task_of(cluster, from, 0), task_of(cluster, to, 0), out), n = 0;
    bool side_by_side = from->tasks && to->tasks && !strcmp(from->name.job, to->name.job);
    for (int i = 0; i < task_count(from); i++)
        for (int k = 0; k < task_count(to); k++) {
            const struct cluster_task *a = task_of(cluster, from, i), *b = task_of(cluster, to, k);
            n += a->host != b->host && host_of(a, b, out) == host && (!side_by_side || i == k);
        }
    return n;
}

static struct place_channel adapter(const struct place_model *m, const struct place_device *from,
                                    const struct place_device *to, bool out)
{
    const struct place_channel none = {.index = -1};
    const struct cluster *cluster = m->placer->placement->cluster;
    const struct cluster_task *a = cluster ? task_of(cluster, from, 0) : NULL;
    const struct cluster_task *b = cluster ? task_of(cluster, to, 0) : NULL;
    if (!a || !b)
        return none;
    int host = host_of(a, b, out);
    double bandwidth = cluster->hosts.items[host].bandwidth;
    int n = bandwidth > 0 ? crossings(cluster, from, to, out) : 0;
    return n ? (struct place_channel){m->n_devices * m->n_devices + 2 * host + out,
                                      n * NS / bandwidth}
             : none;
}

/* ---- buses ---- */

static bool is_behind_bus(const struct place_device *device)
{
    return strcmp(device->name.type, "CPU") != 0;
}

/* ---- all ---- */

void place_find_wires(struct place_model *m)
{
    const struct placement *placement = m->placer->placement;
    int d = m->n_devices;
    int *leaders = arena_array(&m->arena, (size_t)d, sizeof *leaders);
    m->n_channels = d * d + 2 * (placement->cluster ? (int)placement->cluster->hosts.n : 0) + 2 * d;
    m->wires = arena_array(&m->arena, (size_t)d * (size_t)d, sizeof *m->wires);
    const struct place_device *devices = placement->devices.items;
    for (int i = 0; i < d; i++) { /* the first device of the same task */
        int host = devices[i].host, k = 0;
        while (k < i && !device_name_same_task(&devices[k].name, &devices[host].name))
            k++;
        leaders[i] = k < i ? k : host;
    }
    for (int a = 0; a < d; a++) {
        for (int b = 0; b < d; b++) {
            struct place_wire *wire = &m->wires[a * d + b];
            const struct place_device *from = &devices[a], *to = &devices[b];
            bool is_link = set_link(m, wire, a, b);
            wire->channels[0] =
                (struct place_channel){is_link ? leaders[a] * d + leaders[b] : -1, wire->per_byte};
            wire->channels[1] = adapter(m, from, to, true);
            wire->channels[2] = adapter(m, from, to, false);
            for (int i = 1; i < PLACE_CHANNELS; i++)
                wire->per_byte = fmax(wire->per_byte, wire->channels[i].per_byte);
            /* Devices of one task: by the bus of the first, and by that of the second, one tensor
             * after the other in each direction. */
            int first = m->n_channels - 2 * d, x = from->host, y = to->host;
            if (!is_link && x != y && is_behind_bus(&devices[x]))
                wire->channels[1] = (struct place_channel){first + 2 * x, wire->per_byte};
            if (!is_link && x != y && is_behind_bus(&devices[y]))
                wire->channels[2] = (struct place_channel){first + 2 * y + 1, wire->per_byte};
        }
    }
}
