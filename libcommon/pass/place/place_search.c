/* SPDX-License-Identifier: Apache-2.0
 *
 * The choice of devices by simulation: its fixed inputs, which are times, bytes, links, and the
 * order of nodes; then variables over shards, then the best of several strategies for the rest.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "pass/place/cost.h"
#include "pass/place/place_private.h"

/* A channel that carries one transfer at a time. */
struct place_channel {
    int index;       /* within the run; -1: none */
    double per_byte; /* time per byte of a tensor, for all receivers through it */
};

#define PLACE_CHANNELS 3 /* the link, the adapter of the sender's host, that of the receiver's */

/* A wire from one device to another. */
struct place_wire {
    double latency, per_byte; /* until all receivers have the tensor */
    struct place_channel channels[PLACE_CHANNELS];
};

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

/* Counts the tensors, of those sent at once from one device to the other, that leave the host of
 * the first sender, or arrive at that of the first receiver. */
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

/* ---- all wires ---- */

static void find_wires(struct place_model *m)
{
    const struct placement *placement = m->placer->placement;
    int d = m->n_devices;
    int *leaders = arena_array(&m->placer->arena, (size_t)d, sizeof *leaders);
    m->n_channels = d * d + 2 * (placement->cluster ? (int)placement->cluster->hosts.n : 0) + 2 * d;
    m->wires = arena_array(&m->placer->arena, (size_t)d * (size_t)d, sizeof *m->wires);
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
            /* Devices of one task: through the bus of the first, and that of the second, one tensor
             * after the other in each direction. */
            int first = m->n_channels - 2 * d, x = from->host, y = to->host;
            if (!is_link && x != y && strcmp(devices[x].name.type, "CPU") != 0)
                wire->channels[1] = (struct place_channel){first + 2 * x, wire->per_byte};
            if (!is_link && x != y && strcmp(devices[y].name.type, "CPU") != 0)
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

    struct rank *ranks = arena_array(&m->placer->arena, (size_t)m->n, sizeof *ranks);
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

static int place_model_new(struct placer *p, const struct place_costs *costs)
{
    struct place_model *m = p->model = arena_alloc(&p->arena, sizeof *m);
    size_t n = p->graph->nodes.n;
    m->placer = p;
    m->n = (int)n;
    m->n_devices = (int)p->placement->devices.n;
    m->assume = costs->assume;
    m->order = arena_array(&p->arena, n, sizeof *m->order);
    m->measured = costs->measured;
    m->ns = arena_array(&p->arena, n * (size_t)m->n_devices, sizeof *m->ns);
    m->weight = arena_array(&p->arena, n, sizeof *m->weight);
    m->first_output = arena_array(&p->arena, n, sizeof *m->first_output);
    m->made = arena_array(&p->arena, n, sizeof *m->made);
    m->held = arena_array(&p->arena, n, sizeof *m->held);
    m->n_uses = arena_array(&p->arena, n, sizeof *m->n_uses);
    m->by_bytes = arena_array(&p->arena, n, sizeof *m->by_bytes);
    m->has_variable = arena_array(&p->arena, n, sizeof *m->has_variable);
    m->may = arena_array(&p->arena, n * (size_t)m->n_devices, sizeof *m->may);
    m->kept = arena_array(&p->arena, n, sizeof *m->kept);
    m->best_start = arena_array(&p->arena, n, sizeof *m->best_start);
    m->best_finish = arena_array(&p->arena, n, sizeof *m->best_finish);
    find_wires(m);
    int code = cost_weights(p->graph, m->weight, p->err);
    if (code)
        return code;
    m->initial = place_find_initial(p->graph, &p->arena);
    struct device_rates *rates = arena_array(&p->arena, (size_t)m->n_devices, sizeof *rates);
    int n_outputs = 0;
    /* Unknown rates of a device are taken from measurements of its type. */
    const struct cost_sample sample = {
        .graph = p->graph, .measured = m->measured, .weights = m->weight, .assume = m->assume};
    const struct placement *placement = p->placement;
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
    m->bytes = arena_array(&p->arena, (size_t)n_outputs, sizeof *m->bytes);
    graph_each(node, p->graph) {
        const struct cost_query query = {node, p->graph, m->assume};
        const struct place_device *devices = p->placement->devices.items;
        const bool is_view = cost_is_view(&query);
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
            else if (!node->outputs[j].is_ref && !is_view)
                m->made[node->id] += bytes;
        }
        m->kept[place_root(p, node->id)] += m->held[node->id];
        m->has_variable[place_root(p, node->id)] |= node_is(node, "Variable");
        for (int j = 0; j < node->n_inputs; j++)
            m->n_uses[node->inputs[j].node] += !graph_is_back_edge(p->graph, node, node->inputs[j]);
    }
    return find_order(m);
}

bool place_is_copied(const struct node *node)
{
    return node_is(node, "Const") && !node->n_controls &&
           (int64_t)tensor_bytes(node_attr(node, "value")->tensor) <= PLACE_COPIED_BYTES_MAX;
}

static const struct place_device *device_at(const struct place_model *m, int device)
{
    return &m->placer->placement->devices.items[device];
}

/* ---- one run ---- */

struct place_gap {
    double from, to;
};

/* A tensor that was sent to a device. */
struct place_copy {
    int node, slot; /* slot may be CONTROL_SLOT */
    int device;     /* its destination */
    double time;    /* of arrival */
    double bytes;
    int next; /* next copy of the node; -1: last */
};

struct place_undo {
    int channel;
    double before;
};

/* A device whose time and memory others may use, too. */
struct place_host {
    double free_from; /* it is idle from then on, */
    VEC(struct place_gap) gaps;
    double held;       /* bytes kept */
    double live, peak; /* bytes of tensors, now and at most */
};

struct place_run {
    const struct place_model *model;
    int *device; /* by node */
    double *start, *finish;
    struct place_host *hosts; /* by device */
    double *channel_free;     /* by channel */
    int *first_copy;          /* by node: index into copies; -1: none */
    VEC(struct place_copy) copies;
    VEC(struct place_undo) undo;
    int *uses_left;
    int *group;      /* by root: its device; -1: none yet */
    char *is_held;   /* by root: its kept bytes are counted */
    double incoming; /* bytes that the node on trial transfers to its device */
    double makespan;
    struct place_result total; /* of transfers */
    struct arena arena;
};

#define GAPS_MAX 32 /* remembered per device */

static void run_init(struct place_run *run, const struct place_model *model)
{
    size_t n = (size_t)model->n, d = (size_t)model->n_devices;
    memset(run, 0, sizeof *run);
    run->model = model;
    run->device = arena_array(&run->arena, n, sizeof *run->device);
    run->start = arena_array(&run->arena, n, sizeof *run->start);
    run->finish = arena_array(&run->arena, n, sizeof *run->finish);
    run->first_copy = arena_array(&run->arena, n, sizeof *run->first_copy);
    run->uses_left = arena_copy(&run->arena, model->n_uses, n * sizeof *run->uses_left);
    run->group = arena_array(&run->arena, n, sizeof *run->group);
    run->is_held = arena_array(&run->arena, n, sizeof *run->is_held);
    run->hosts = arena_array(&run->arena, d, sizeof *run->hosts);
    run->channel_free =
        arena_array(&run->arena, (size_t)model->n_channels, sizeof *run->channel_free);
    memset(run->device, -1, n * sizeof *run->device);
    memset(run->first_copy, -1, n * sizeof *run->first_copy);
}

static struct place_host *host_at(const struct place_run *run, int device)
{
    return &run->hosts[device_at(run->model, device)->host];
}

/* ---- transfers ---- */

/* Returns when the tensor is there, sending it if necessary. A source without a device will get the
 * first one that needs it. */
static double send(struct place_run *run, struct edge edge, int to)
{
    const struct place_model *m = run->model;
    int from = run->device[edge.node];
    double ready = run->finish[edge.node];
    if (from == to || from < 0 || place_is_copied(graph_node(m->placer->graph, edge.node)))
        return ready;
    for (int i = run->first_copy[edge.node]; i >= 0; i = run->copies.items[i].next)
        if (run->copies.items[i].slot == edge.slot && run->copies.items[i].device == to)
            return run->copies.items[i].time;
    const struct place_wire *wire = &m->wires[from * m->n_devices + to];
    double weight = m->weight[edge.node];
    double bytes = edge.slot < 0 ? 0 : m->bytes[m->first_output[edge.node] + edge.slot];
    /* Find when the transfer may begin; until its end it occupies its channels. */
    for (int i = 0; i < PLACE_CHANNELS; i++)
        if (wire->channels[i].index >= 0)
            ready = fmax(ready, run->channel_free[wire->channels[i].index]);
    for (int i = 0; i < PLACE_CHANNELS; i++) {
        struct place_channel channel = wire->channels[i];
        if (channel.index < 0)
            continue;
        double *busy = &run->channel_free[channel.index];
        vec_push_in(&run->arena, &run->undo, ((struct place_undo){channel.index, *busy}));
        *busy = ready + (weight * bytes) * channel.per_byte;
    }
    double time = ready + weight * (bytes * wire->per_byte + wire->latency);
    bool moves = device_at(run->model, from)->host != device_at(run->model, to)->host;
    double held = moves && !m->initial[edge.node] ? bytes : 0;
    run->incoming += held;
    vec_push_in(
        &run->arena, &run->copies,
        ((struct place_copy){edge.node, edge.slot, to, time, held, run->first_copy[edge.node]}));
    run->first_copy[edge.node] = (int)run->copies.n - 1;
    return time;
}

static double gather(struct place_run *run, const struct node *node, int device)
{
    double latest = 0;
    run->incoming = 0;
    for (int i = 0; i < node->n_inputs + node->n_controls; i++)
        if (!graph_is_back_edge(run->model->placer->graph, node, node_dependency(node, i)))
            latest = fmax(latest, send(run, node_dependency(node, i), device));
    return latest;
}

/* ---- time ---- */

static double duration(const struct place_run *run, int node, int device)
{
    const struct place_model *m = run->model;
    return m->ns[node * m->n_devices + device] / device_at(run->model, device)->speed;
}

/* Returns the first time from `ready` on at which the host is idle for `length`, and the gap used;
 * -1: after everything. */
static double find_time(const struct place_host *host, double ready, double length, int *gap)
{
    *gap = -1;
    if (length == 0)
        return ready;
    for (size_t i = 0; i < host->gaps.n; i++) {
        struct place_gap g = host->gaps.items[i];
        double start = fmax(g.from, ready);
        if (start + length <= g.to) {
            *gap = (int)i;
            return start;
        }
    }
    return fmax(ready, host->free_from);
}

static void remove_gap(struct place_host *host, size_t at)
{
    struct place_gap *gaps = host->gaps.items;
    memmove(gaps + at, gaps + at + 1, (--host->gaps.n - at) * sizeof *gaps);
}

static void add_gap(struct place_run *run, struct place_host *host, struct place_gap gap)
{
    if (gap.to <= gap.from)
        return;
    if (host->gaps.n == GAPS_MAX)
        remove_gap(host, 0);
    vec_push_in(&run->arena, &host->gaps, gap);
}

/* ---- memory ---- */

/* Returns the free bytes of memory; infinite without a limit. */
static double run_room(const struct place_run *run, int device)
{
    const struct place_host *host = host_at(run, device);
    int64_t bytes = device_at(run->model, device)->memory_bytes;
    return bytes ? (double)bytes - host->held - host->live : INFINITY;
}

/* Returns whether the device's memory suffices for more kept and more live bytes. */
static bool has_room(const struct place_run *run, int device, double stays, double live)
{
    const struct place_host *host = host_at(run, device);
    int64_t bytes = device_at(run->model, device)->memory_bytes;
    return !bytes || host->held + stays + fmax(host->peak, host->live + live) <= (double)bytes;
}

/* Drops a value without further users, where it was made and where it was sent. */
static void drop(struct place_run *run, int node)
{
    host_at(run, run->device[node])->live -= run->model->made[node];
    for (int i = run->first_copy[node]; i >= 0; i = run->copies.items[i].next) {
        struct place_copy *copy = &run->copies.items[i];
        host_at(run, copy->device)->live -= copy->bytes;
        copy->bytes = 0;
    }
}

/* ---- nodes ---- */

/* Returns when the node would finish on the device, started as early as possible; its inputs are
 * placed already, or are sources. Infinite if the device has no memory for it and `extra` bytes. */
static double run_try(struct place_run *run, int node, int device, double extra)
{
    size_t n_copies = run->copies.n;
    double length = duration(run, node, device);
    int gap;
    run->undo.n = 0;
    double ready = gather(run, graph_node(run->model->placer->graph, node), device);
    double start = find_time(host_at(run, device), ready, length, &gap);
    double live = run->incoming + run->model->made[node];
    while (run->copies.n > n_copies) {
        struct place_copy copy = vec_pop(&run->copies);
        run->first_copy[copy.node] = copy.next;
    }
    while (run->undo.n) {
        struct place_undo undo = vec_pop(&run->undo);
        run->channel_free[undo.channel] = undo.before;
    }
    return has_room(run, device, extra, live) ? start + length : INFINITY;
}

/* Places the node. */
static void run_put(struct place_run *run, int node, int device)
{
    const struct node *n = graph_node(run->model->placer->graph, node);
    double length = duration(run, node, device);
    size_t n_copies = run->copies.n;
    struct place_host *host = host_at(run, device);
    int gap;
    double ready = gather(run, n, device);
    run->undo.n = 0;
    run->device[node] = device;
    run->start[node] = find_time(host, ready, length, &gap);
    run->finish[node] = run->start[node] + length;
    if (length > 0 && gap < 0) {
        add_gap(run, host, (struct place_gap){host->free_from, run->start[node]});
        host->free_from = run->finish[node];
    } else if (length > 0) {
        struct place_gap whole = host->gaps.items[gap];
        remove_gap(host, (size_t)gap);
        add_gap(run, host, (struct place_gap){whole.from, run->start[node]});
        add_gap(run, host, (struct place_gap){run->finish[node], whole.to});
    }
    run->makespan = fmax(run->makespan, run->finish[node]);
    host->live += run->incoming + run->model->made[node];
    host->peak = fmax(host->peak, host->live);
    for (int i = 0; i < n->n_inputs; i++)
        if (!graph_is_back_edge(run->model->placer->graph, n, n->inputs[i]) &&
            --run->uses_left[n->inputs[i].node] == 0)
            drop(run, n->inputs[i].node);
    if (!run->uses_left[n->id])
        drop(run, n->id);
    for (; n_copies < run->copies.n; n_copies++) {
        const struct place_copy *copy = &run->copies.items[n_copies];
        double bytes = copy->slot < 0
                           ? 0
                           : run->model->bytes[run->model->first_output[copy->node] + copy->slot];
        run->total.n_transfers += copy->slot >= 0;
        run->total.transfer_bytes += run->model->weight[copy->node] * bytes;
    }
}

/* Returns a device whose memory does not suffice; -1: none. */
static int run_overfull(const struct place_run *run)
{
    for (int i = 0; i < run->model->n_devices; i++)
        if (!has_room(run, i, 0, 0))
            return i;
    return -1;
}

enum strategy {
    FIRST_FINISH, /* where the node finishes first */
    MOST_ROOM,    /* the device with most free memory */
    IN_TURN,      /* the devices in turn */
    ALL_ON,       /* this and above: everything possible on device i, ALL_ON + i */
};

static bool may(const struct place_model *m, int root, int device)
{
    return m->may[root * m->n_devices + device];
}

/* ---- possible devices of groups ---- */

static bool is_shard(const struct place_model *m, int device)
{
    return !strcmp(device_at(m, device)->name.job, SHARD_JOB);
}

static bool has_shards(const struct place_model *m)
{
    const struct cluster *cluster = m->placer->placement->cluster;
    return cluster && cluster_count(cluster, SHARD_JOB) > 0;
}

static void find_feasible(struct place_model *m)
{
    for (int i = 0; i < m->n; i++) {
        if (place_root(m->placer, i) != i)
            continue;
        for (int k = 0; k < m->n_devices; k++)
            m->may[i * m->n_devices + k] = m->placer->settled[i]
                                               ? k == m->placer->chosen[i]
                                               : place_is_feasible(m->placer, i, device_at(m, k));
        if (!has_shards(m) || m->placer->settled[i] || *m->placer->merged[i].job)
            continue;
        /* Allow only shards, or only other devices, if any are left then. */
        bool shards = m->has_variable[i];
        int left = 0, d = m->n_devices;
        for (int j = 0; j < d; j++)
            left += may(m, i, j) && is_shard(m, j) == shards;
        for (int j = 0; left && j < d; j++)
            if (is_shard(m, j) != shards)
                m->may[i * d + j] = 0;
    }
}

/* ---- variables over shards ---- */

struct load {
    double bytes;
    const char *name;
    int root;
};

static int by_load(const void *a, const void *b)
{
    const struct load *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Returns the least loaded shard with enough memory; the first of equals. */
static int put_variable(struct place_model *m, const struct load *load, double *taken)
{
    int best = -1;
    for (int i = 0; i < m->n_devices; i++) {
        double limit = (double)device_at(m, i)->memory_bytes;
        if (may(m, load->root, i) && (limit == 0 || taken[i] + load->bytes <= limit) &&
            (best < 0 || taken[i] < taken[best]))
            best = i;
    }
    if (best < 0) {
        double most = 0;
        for (int i = 0; i < m->n_devices; i++)
            if (may(m, load->root, i))
                most = fmax(most, (double)device_at(m, i)->memory_bytes - taken[i]);
        return error_set(
            m->placer->err, ERR_DATA,
            "%s: %.0f bytes of variables share a device, and no task of job %s has more "
            "than %.0f left",
            node_text(graph_node(m->placer->graph, load->root)), load->bytes, SHARD_JOB, most);
    }
    taken[best] += load->bytes;
    m->placer->chosen[load->root] = best;
    m->placer->settled[load->root] = 1;
    m->by_bytes[load->root] = 1;
    m->by_bytes_total += load->bytes;
    return 0;
}

/* Assigns variables by decreasing size, each to the least loaded shard; settled ones count. */
static int spread_variables(struct place_model *m)
{
    struct arena *arena = &m->placer->arena;
    double *taken = arena_array(arena, (size_t)m->n_devices, sizeof *taken);
    struct load *loads = arena_array(arena, (size_t)m->n, sizeof *loads);
    const char **names = arena_array(arena, (size_t)m->n, sizeof *names);
    size_t n = 0;
    int code = 0;
    /* Use the smallest name in a group: which node is its root depends on the graph's order. */
    for (int i = 0; i < m->n; i++) {
        const char **name = &names[place_root(m->placer, i)];
        if (!*name || strcmp(graph_node(m->placer->graph, i)->name, *name) < 0)
            *name = graph_node(m->placer->graph, i)->name;
    }
    for (int i = 0; i < m->n; i++) {
        if (!m->has_variable[i])
            continue;
        if (m->placer->settled[i])
            taken[m->placer->chosen[i]] += m->kept[i];
        else if (!*m->placer->merged[i].job || !strcmp(m->placer->merged[i].job, SHARD_JOB))
            loads[n++] = (struct load){m->kept[i], names[i], i};
    }
    if (n)
        qsort(loads, n, sizeof *loads, by_load);
    for (size_t i = 0; !code && i < n; i++)
        code = put_variable(m, &loads[i], taken);
    return code;
}

/* ---- strategies for the rest ---- */

/* Returns the device with most free memory, or the one where the node finishes first. */
static int best_device(struct place_run *run, int strategy, int node)
{
    const struct place_model *m = run->model;
    int best = -1, root = place_root(m->placer, node);
    double least = INFINITY;
    for (int i = 0; i < m->n_devices; i++) {
        if (!may(m, root, i))
            continue;
        double cost =
            strategy == MOST_ROOM ? -run_room(run, i) : run_try(run, node, i, m->kept[root]);
        if (best < 0 || cost < least) {
            best = i;
            least = cost;
        }
    }
    return best;
}

/* Returns the next feasible device from `device` on. */
static int next_feasible(const struct place_model *m, int root, int device)
{
    int n = m->n_devices;
    for (int i = 0; i < n; i++)
        if (may(m, root, (device + i) % n))
            return (device + i) % n;
    BUG_ON(true); /* every group has a device */
}

static void put(struct place_run *run, int node, int device)
{
    const struct place_model *m = run->model;
    int root = place_root(m->placer, node);
    if (run->group[root] < 0)
        run->group[root] = may(m, root, device) ? device : next_feasible(m, root, 0);
    if (!run->is_held[root])
        host_at(run, run->group[root])->held += m->kept[root];
    run->is_held[root] = 1;
    run_put(run, node, run->group[root]);
}

static void simulate(struct place_run *run, int strategy)
{
    const struct place_model *m = run->model;
    /* Some strategies need no simulation to choose. */
    int turn = 0;
    for (int i = 0; i < m->n; i++) {
        if (m->placer->settled[i])
            run->group[i] = m->placer->chosen[i];
        else if (place_root(m->placer, i) != i || strategy == FIRST_FINISH || strategy == MOST_ROOM)
            run->group[i] = -1;
        else if (strategy == IN_TURN)
            turn = 1 + (run->group[i] = next_feasible(m, i, turn));
        else
            run->group[i] =
                may(m, i, strategy - ALL_ON) ? strategy - ALL_ON : next_feasible(m, i, 0);
    }
    for (int i = 0; i < m->n; i++) {
        run->is_held[i] = run->group[i] >= 0 && place_root(m->placer, i) == i;
        if (run->is_held[i])
            host_at(run, run->group[i])->held += m->kept[i];
    }
    for (int i = 0; i < m->n; i++) {
        int id = m->order[i], root = place_root(m->placer, id), device = run->group[root];
        const struct node *node = graph_node(m->placer->graph, id);
        /* A node without inputs and without cost follows the first node that needs it. */
        if (!node->n_inputs && !node->n_controls && m->ns[id * m->n_devices] == 0 &&
            m->placer->members[root] == 1)
            continue;
        if (device < 0)
            device = best_device(run, strategy, id);
        for (int j = 0; j < node->n_inputs + node->n_controls; j++) {
            struct edge edge = node_dependency(node, j);
            if (run->device[edge.node] < 0 && !graph_is_back_edge(m->placer->graph, node, edge))
                put(run, edge.node, device);
        }
        put(run, id, device);
    }
    for (int i = 0; i < m->n; i++) /* sources without users */
        if (run->device[i] < 0)
            put(run, i, 0);
}

static int try_all(struct place_model *m, struct place_result *result)
{
    struct place_run run;
    int code = 0;
    *result = (struct place_result){.makespan = INFINITY, .one_device = INFINITY};
    for (int strategy = m->n_devices == 1 ? ALL_ON : FIRST_FINISH; strategy < ALL_ON + m->n_devices;
         strategy++) {
        run_init(&run, m);
        simulate(&run, strategy);
        int overfull = run_overfull(&run);
        double makespan = overfull < 0 ? run.makespan : INFINITY;
        if (strategy == IN_TURN || m->n_devices == 1)
            result->round_robin = makespan;
        if (strategy >= ALL_ON)
            result->one_device = fmin(result->one_device, makespan);
        size_t n = (size_t)m->n;
        if (overfull < 0 && makespan <= result->makespan &&
            (makespan < result->makespan || run.total.transfer_bytes < result->transfer_bytes)) {
            memcpy(m->placer->chosen, run.group, n * sizeof *run.group);
            memcpy(m->best_start, run.start, n * sizeof *run.start);
            memcpy(m->best_finish, run.finish, n * sizeof *run.finish);
            result->makespan = makespan;
            result->n_transfers = run.total.n_transfers;
            result->transfer_bytes = run.total.transfer_bytes;
        }
        if (isinf(result->makespan) && strategy == ALL_ON + m->n_devices - 1) {
            const struct place_device *device = device_at(m, overfull);
            code = error_set(m->placer->err, ERR_DATA,
                             "the graph does not fit: it needs %.0f bytes on %s, which has %lld",
                             run.hosts[device->host].held + run.hosts[device->host].peak,
                             device->text, (long long)device->memory_bytes);
        }
        arena_release(&run.arena);
    }
    return code;
}

int place_search(struct placer *p, const struct place_costs *costs, struct place_result *result)
{
    struct place_result ignored;
    if (place_model_new(p, costs))
        return p->err->code;
    find_feasible(p->model);
    if (has_shards(p->model) && spread_variables(p->model))
        return p->err->code;
    return try_all(p->model, result ? result : &ignored);
}
