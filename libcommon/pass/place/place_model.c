/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulation's fixed inputs: times, bytes, links, the order of nodes.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "pass/place/cost.h"
#include "pass/place/place_private.h"

#define NS 1e9

/* ---- links ---- */

/* Returns false if both devices belong to one task, whose devices share no link. */
static bool set_link(const struct place_model *m, struct place_wire *wire, int from, int to)
{
    const struct placement *placement = m->placer->placement;
    const struct place_device *a = &placement->devices.items[from];
    const struct place_device *b = &placement->devices.items[to];
    const struct device_name *x = &placement->devices.items[a->host].name;
    const struct device_name *y = &placement->devices.items[b->host].name;
    struct device_name other = *y;
    bool same_task = device_name_same_task(x, y);
    /* From many tasks to a single one of the same job, most transfers cross tasks. */
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

/* Returns the i-th task that a device stands for. */
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

/* Returns the host at the sending or the receiving side of a transfer. */
static int host_of(const struct cluster_task *from, const struct cluster_task *to, bool out)
{
    return out ? from->host : to->host;
}

/* Of the tensors sent at once from one device to the other, counts those that leave the host of the
 * first sender, or arrive at that of the first receiver. */
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

/* ---- all wires ---- */

static void find_wires(struct place_model *m)
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
            /* Between devices of one task: through the bus of the first, and that of the second,
             * one tensor after the other in each direction. */
            int first = m->n_channels - 2 * d, x = from->host, y = to->host;
            if (!is_link && x != y && is_behind_bus(&devices[x]))
                wire->channels[1] = (struct place_channel){first + 2 * x, wire->per_byte};
            if (!is_link && x != y && is_behind_bus(&devices[y]))
                wire->channels[2] = (struct place_channel){first + 2 * y + 1, wire->per_byte};
        }
    }
}

/* ---- nodes ---- */

struct device_rates {
    struct device_facts facts;
    struct cost_rates rates;
    int like; /* first device of the same type and facts */
};

/* ---- order ---- */

struct rank {
    double longest; /* from the node's start to an end */
    int level;      /* edges from a source */
    const char *name;
    int node;
};

/* Costs are not negative, so a node ranks at least as high as its users, and is on a lower level:
 * the order respects dependencies. Ties are broken by names, so that the order of the nodes in the
 * graph does not matter. */
static int by_rank(const void *a, const void *b)
{
    const struct rank *x = a, *y = b;
    if (x->longest != y->longest)
        return x->longest > y->longest ? -1 : 1;
    if (x->level != y->level)
        return x->level < y->level ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int find_order(struct place_model *m)
{
    const struct graph *graph = m->placer->graph;
    /* Mean over the links between different devices. */
    struct place_wire wire = {0};
    int n = m->n_devices * (m->n_devices - 1);
    for (int i = 0; i < m->n_devices * m->n_devices; i++) {
        wire.latency += m->wires[i].latency;
        wire.per_byte += m->wires[i].per_byte;
    }
    wire.latency /= n ? n : 1;
    wire.per_byte /= n ? n : 1;

    struct rank *ranks = arena_array(&m->arena, (size_t)m->n, sizeof *ranks);
    int code = graph_order(graph, m->order, m->placer->err);
    for (int i = 0; !code && i < m->n; i++) {
        const struct node *node = graph_node(graph, m->order[i]);
        int level = 0;
        for (int k = 0; k < node->n_inputs + node->n_controls; k++) {
            struct edge edge = node_dependency(node, k);
            if (!graph_is_back_edge(graph, node, edge) && ranks[edge.node].level >= level)
                level = ranks[edge.node].level + 1;
        }
        ranks[node->id] = (struct rank){.name = node->name, .node = node->id, .level = level};
    }
    for (int i = m->n - 1; !code && i >= 0; i--) {
        const struct node *node = graph_node(graph, m->order[i]);
        /* Only the first device of each type counts. */
        const struct placer *p = m->placer;
        uint32_t seen = 0;
        double sum = 0;
        for (int k = 0; k < m->n_devices; k++) {
            int type = place_type_of(p, &p->placement->devices.items[k]);
            if (!(seen >> type & 1))
                sum += m->ns[node->id * m->n_devices + k];
            seen |= (uint32_t)1 << type;
        }
        ranks[node->id].longest += sum / p->n_types;
        double longest = ranks[node->id].longest;
        for (int j = 0; j < node->n_inputs + node->n_controls; j++) {
            struct edge edge = node_dependency(node, j);
            double bytes =
                j < node->n_inputs ? m->bytes[m->first_output[edge.node] + edge.slot] : 0;
            double way = wire.latency + wire.per_byte * bytes;
            double *before = &ranks[edge.node].longest;
            if (!graph_is_back_edge(m->placer->graph, node, edge) && longest + way > *before)
                *before = longest + way;
        }
    }
    if (!code)
        qsort(ranks, (size_t)m->n, sizeof *ranks, by_rank);
    for (int i = 0; !code && i < m->n; i++)
        m->order[i] = ranks[i].node;
    return code;
}

int place_model_new(struct placer *p, const struct place_costs *costs, struct place_model **model)
{
    struct place_model *m = mem_alloc(sizeof *m);
    size_t n = p->graph->nodes.n;
    *model = m;
    m->placer = p;
    m->n = (int)n;
    m->n_devices = (int)p->placement->devices.n;
    m->assume = costs->assume;
    m->order = arena_array(&m->arena, n, sizeof *m->order);
    m->measured = costs->measured;
    m->ns = arena_array(&m->arena, n * (size_t)m->n_devices, sizeof *m->ns);
    m->weight = arena_array(&m->arena, n, sizeof *m->weight);
    m->first_output = arena_array(&m->arena, n, sizeof *m->first_output);
    m->made = arena_array(&m->arena, n, sizeof *m->made);
    m->held = arena_array(&m->arena, n, sizeof *m->held);
    m->n_uses = arena_array(&m->arena, n, sizeof *m->n_uses);
    m->by_bytes = arena_array(&m->arena, n, sizeof *m->by_bytes);
    m->best_start = arena_array(&m->arena, n, sizeof *m->best_start);
    m->best_finish = arena_array(&m->arena, n, sizeof *m->best_finish);
    find_wires(m);
    int code = cost_weights(m->placer->graph, m->weight, m->placer->err);
    if (code)
        return code;
    m->initial = place_find_initial(p->graph, &m->arena);
    struct device_rates *rates = arena_array(&m->arena, (size_t)m->n_devices, sizeof *rates);
    int n_outputs = 0;
    /* Unknown rates of a device are taken from measurements of its type. */
    const struct cost_sample sample = {
        .graph = p->graph, .measured = m->measured, .weights = m->weight, .assume = m->assume};
    const struct placement *placement = m->placer->placement;
    for (int k = 0; k < m->n_devices; k++) {
        const struct place_device *device = &placement->devices.items[k];
        const struct device_name *name = &placement->devices.items[device->host].name;
        struct device_rates *own = &rates[k];
        own->facts = cost_facts(name, placement->cluster, m->measured);
        own->like = 0;
        while (own->like < k && (rates[own->like].facts.operations != own->facts.operations ||
                                 rates[own->like].facts.bandwidth != own->facts.bandwidth ||
                                 strcmp(placement->devices.items[own->like].name.type, name->type)))
            own->like++;
        own->rates = own->like < k ? rates[own->like].rates
                                   : cost_scaled_rates(&sample, name->type, &own->facts);
    }
    for (int i = 0; i < m->n; i++) {
        m->first_output[i] = n_outputs;
        n_outputs += graph_node(p->graph, i)->n_outputs;
    }
    m->bytes = arena_array(&m->arena, (size_t)n_outputs, sizeof *m->bytes);
    graph_each(node, p->graph) {
        const struct cost_query query = {node, m->placer->graph, m->assume};
        const struct place_device *devices = m->placer->placement->devices.items;
        double ns;
        for (int k = 0; k < m->n_devices; k++) {
            double *cost = &m->ns[node->id * m->n_devices + k];
            if (rates[k].like < k)
                *cost = cost[rates[k].like - k];
            else if (costs_find(m->measured, node, devices[k].name.type, &ns))
                *cost = ns;
            else
                *cost = m->weight[node->id] * cost_estimate_ns(&query, &rates[k].rates);
        }
        for (int j = 0; j < node->n_outputs; j++) {
            double bytes = cost_bytes(&node->outputs[j], m->assume);
            m->bytes[m->first_output[node->id] + j] = bytes;
            if (m->initial[node->id] && !node_is(node, "Variable"))
                continue;
            if (node_is(node, "Variable") || node_is(node, "Const"))
                m->held[node->id] += bytes;
            else if (!node->outputs[j].is_ref && !cost_is_view(&query))
                m->made[node->id] += bytes;
        }
        for (int j = 0; j < node->n_inputs; j++)
            m->n_uses[node->inputs[j].node] +=
                !graph_is_back_edge(m->placer->graph, node, node->inputs[j]);
    }
    return find_order(m);
}

void place_model_free(struct place_model *model)
{
    if (!model)
        return;
    arena_release(&model->arena);
    mem_free(model);
}

bool place_is_copied(const struct node *node)
{
    return node_is(node, "Const") && !node->n_controls &&
           (int64_t)tensor_bytes(node_attr(node, "value")->tensor) <= PLACE_COPIED_BYTES_MAX;
}
