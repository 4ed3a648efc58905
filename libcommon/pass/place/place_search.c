/* SPDX-License-Identifier: Apache-2.0
 *
 * The choice of devices by simulation: its fixed inputs, which are times, bytes, links, and the
 * order of nodes; then variables over shards, then the best of several strategies for the rest.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
static bool set_link(const struct placer *p, struct place_wire *wire, int from, int to)
{
    const struct place_device *a = place_device(p, from), *b = place_device(p, to);
    const struct device_name *x = &place_device(p, a->host)->name;
    const struct device_name *y = &place_device(p, b->host)->name;
    struct device_name other = *y;
    bool same_task = device_name_same_task(x, y);
    /* From many tasks to a single one of the same job, most transfers cross tasks. */
    if (same_task && a->tasks != b->tasks && (a->tasks > 1 || b->tasks > 1))
        other.task++;
    else if (same_task && a->host == b->host)
        return false;
    struct cost_way way = cost_way(x, &other, p->placement->cluster, p->costs->measured);
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

/* The adapter of the first sender's host, or of the first receiver's: of the tensors that are sent
 * at once from one device to the other, it carries those that leave, or arrive at, that host. */
static struct place_channel adapter(const struct placer *p, const struct place_device *from,
                                    const struct place_device *to, bool out)
{
    const struct cluster *cluster = p->placement->cluster;
    const struct cluster_task *a = cluster ? task_of(cluster, from, 0) : NULL;
    const struct cluster_task *b = cluster ? task_of(cluster, to, 0) : NULL;
    int host = !a || !b ? -1 : out ? a->host : b->host, n = 0;
    double bandwidth = host < 0 ? 0 : cluster->hosts.items[host].bandwidth;
    bool side_by_side = from->tasks && to->tasks && !strcmp(from->name.job, to->name.job);
    for (int i = 0; bandwidth > 0 && i < task_count(from); i++)
        for (int k = 0; k < task_count(to); k++) {
            a = task_of(cluster, from, i);
            b = task_of(cluster, to, k);
            n += a->host != b->host && (out ? a->host : b->host) == host &&
                 (!side_by_side || i == k);
        }
    return n ? (struct place_channel){p->n_devices * p->n_devices + 2 * host + out,
                                      n * NS / bandwidth}
             : (struct place_channel){.index = -1};
}

/* ---- all wires ---- */

static void find_wires(struct placer *p)
{
    const struct placement *placement = p->placement;
    int d = p->n_devices;
    int *leaders = arena_array(&p->arena, (size_t)d, sizeof *leaders);
    p->n_channels = d * d + 2 * (placement->cluster ? (int)placement->cluster->hosts.n : 0) + 2 * d;
    p->wires = arena_array(&p->arena, (size_t)d * (size_t)d, sizeof *p->wires);
    const struct place_device *devices = placement->devices.items;
    for (int i = 0; i < d; i++) { /* the first device of the same task */
        int host = devices[i].host, k = 0;
        while (k < i && !device_name_same_task(&devices[k].name, &devices[host].name))
            k++;
        leaders[i] = k < i ? k : host;
    }
    for (int a = 0; a < d; a++) {
        for (int b = 0; b < d; b++) {
            struct place_wire *wire = &p->wires[a * d + b];
            const struct place_device *from = &devices[a], *to = &devices[b];
            bool is_link = set_link(p, wire, a, b);
            wire->channels[0] =
                (struct place_channel){is_link ? leaders[a] * d + leaders[b] : -1, wire->per_byte};
            wire->channels[1] = adapter(p, from, to, true);
            wire->channels[2] = adapter(p, from, to, false);
            for (int i = 1; i < PLACE_CHANNELS; i++)
                wire->per_byte = fmax(wire->per_byte, wire->channels[i].per_byte);
            /* Devices of one task: through the bus of the first, and that of the second, one tensor
             * after the other in each direction. */
            int first = p->n_channels - 2 * d, x = from->host, y = to->host;
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

static double edge_bytes(const struct placer *p, struct edge edge)
{
    return edge.slot < 0 ? 0 : p->bytes[p->nodes[edge.node].first_output + edge.slot];
}

static int find_order(struct placer *p)
{
    const struct graph *graph = p->graph;
    /* Mean over the links between different devices. */
    struct place_wire wire = {0};
    int n = p->n_devices * (p->n_devices - 1);
    for (int i = 0; i < p->n_devices * p->n_devices; i++) {
        wire.latency += p->wires[i].latency;
        wire.per_byte += p->wires[i].per_byte;
    }
    wire.latency /= n ? n : 1;
    wire.per_byte /= n ? n : 1;

    struct rank *ranks = arena_array(&p->arena, (size_t)p->n, sizeof *ranks);
    if (graph_order(graph, p->order, p->err))
        return p->err->code;
    graph_each_ordered(node, graph, p->order) {
        int level = 0;
        for (int k = 0; k < node->n_inputs + node->n_controls; k++) {
            struct edge edge = node_dependency(node, k);
            if (!graph_is_back_edge(graph, node, edge) && ranks[edge.node].level >= level)
                level = ranks[edge.node].level + 1;
        }
        ranks[node->id] = (struct rank){.name = node->name, .node = node->id, .level = level};
    }
    for (int i = p->n - 1; i >= 0; i--) {
        const struct node *node = graph_node(graph, p->order[i]);
        /* Only the first device of each type counts. */
        uint32_t seen = 0;
        double sum = 0;
        for (int k = 0; k < p->n_devices; k++) {
            if (!(seen >> p->type_of[k] & 1))
                sum += p->ns[node->id * p->n_devices + k];
            seen |= (uint32_t)1 << p->type_of[k];
        }
        ranks[node->id].longest += sum / p->n_types;
        for (int j = 0; j < node->n_inputs + node->n_controls; j++) {
            struct edge edge = node_dependency(node, j);
            double way = wire.latency + wire.per_byte * edge_bytes(p, edge);
            double *before = &ranks[edge.node].longest;
            if (!graph_is_back_edge(graph, node, edge))
                *before = fmax(*before, ranks[node->id].longest + way);
        }
    }
    qsort(ranks, (size_t)p->n, sizeof *ranks, by_rank);
    for (int i = 0; i < p->n; i++)
        p->order[i] = ranks[i].node;
    return 0;
}

static int find_costs(struct placer *p)
{
    size_t n = (size_t)p->n, n_devices = (size_t)p->n_devices;
    const struct costs *measured = p->costs->measured;
    p->order = arena_array(&p->arena, n, sizeof *p->order);
    p->ns = arena_array(&p->arena, n * n_devices, sizeof *p->ns);
    p->weight = arena_array(&p->arena, n, sizeof *p->weight);
    find_wires(p);
    if (cost_weights(p->graph, p->weight, p->err))
        return p->err->code;
    struct device_rates *rates = arena_array(&p->arena, n_devices, sizeof *rates);
    int n_outputs = 0;
    /* Unknown rates of a device are taken from measurements of its type. */
    const struct cost_sample sample = {
        .graph = p->graph, .measured = measured, .weights = p->weight, .assume = p->costs->assume};
    for (int k = 0; k < p->n_devices; k++) {
        const struct device_name *name = &place_device(p, place_device(p, k)->host)->name;
        struct device_rates *own = &rates[k];
        own->facts = cost_facts(name, p->placement->cluster, measured);
        own->like = 0;
        while (own->like < k && (rates[own->like].facts.operations != own->facts.operations ||
                                 rates[own->like].facts.bandwidth != own->facts.bandwidth ||
                                 p->type_of[own->like] != p->type_of[k]))
            own->like++;
        own->rates = own->like < k ? rates[own->like].rates
                                   : cost_scaled_rates(&sample, name->type, &own->facts);
    }
    graph_each(node, p->graph) {
        p->nodes[node->id].first_output = n_outputs;
        n_outputs += node->n_outputs;
    }
    p->bytes = arena_array(&p->arena, (size_t)n_outputs, sizeof *p->bytes);
    graph_each(node, p->graph) {
        const struct cost_query query = {node, p->graph, p->costs->assume};
        struct place_node *own = &p->nodes[node->id], *group = place_group(p, node->id);
        const bool is_view = cost_is_view(&query), is_variable = node_is(node, "Variable");
        double ns;
        for (int k = 0; k < p->n_devices; k++) {
            double *cost = &p->ns[node->id * p->n_devices + k];
            if (rates[k].like < k)
                *cost = cost[rates[k].like - k];
            else if (costs_find(measured, node, p->types[p->type_of[k]], &ns))
                *cost = ns;
            else
                *cost = p->weight[node->id] * cost_estimate_ns(&query, &rates[k].rates);
        }
        for (int j = 0; j < node->n_outputs; j++) {
            double bytes = cost_bytes(&node->outputs[j], p->costs->assume);
            p->bytes[own->first_output + j] = bytes;
            if (p->initial[node->id] && !is_variable)
                continue;
            if (is_variable || node_is(node, "Const"))
                own->held += bytes;
            else if (!node->outputs[j].is_ref && !is_view)
                own->made += bytes;
        }
        group->kept += own->held;
        if (!group->name || strcmp(node->name, group->name) < 0)
            group->name = node->name;
        group->has_variable |= is_variable;
        for (int j = 0; j < node->n_inputs; j++)
            p->nodes[node->inputs[j].node].n_uses +=
                !graph_is_back_edge(p->graph, node, node->inputs[j]);
    }
    return find_order(p);
}

bool place_is_copied(const struct node *node)
{
    return node_is(node, "Const") && !node->n_controls &&
           (int64_t)tensor_bytes(node_attr(node, "value")->tensor) <= PLACE_COPIED_BYTES_MAX;
}

/* ---- one run ---- */

struct place_gap {
    double from, to;
};

/* A tensor that was sent to a device. */
struct place_copy {
    struct edge edge; /* slot may be CONTROL_SLOT */
    int device;       /* its destination */
    double time;      /* of arrival */
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
    struct placer *placer;
    struct place_spot *spots; /* by node */
    struct place_host *hosts; /* by device */
    double *channel_free;     /* by channel */
    VEC(struct place_copy) copies;
    VEC(struct place_undo) undo;
    double incoming;           /* bytes that the node on trial transfers to its device */
    struct place_result total; /* its makespan, and of transfers */
    struct arena arena;
};

#define GAPS_MAX 32 /* remembered per device */

static void run_init(struct place_run *run, struct placer *p)
{
    *run = (struct place_run){.placer = p};
    run->spots = arena_array(&run->arena, (size_t)p->n, sizeof *run->spots);
    run->hosts = arena_array(&run->arena, (size_t)p->n_devices, sizeof *run->hosts);
    run->channel_free = arena_array(&run->arena, (size_t)p->n_channels, sizeof *run->channel_free);
    for (int i = 0; i < p->n; i++)
        run->spots[i] = (struct place_spot){
            .device = -1, .group = -1, .copy = -1, .uses_left = p->nodes[i].n_uses};
}

static struct place_host *host_at(const struct place_run *run, int device)
{
    return &run->hosts[place_device(run->placer, device)->host];
}

/* ---- transfers ---- */

/* Returns when the tensor is there, sending it if necessary. A source without a device will get the
 * first one that needs it. */
static double send(struct place_run *run, struct edge edge, int to)
{
    const struct placer *p = run->placer;
    struct place_spot *spot = &run->spots[edge.node];
    int from = spot->device;
    double ready = spot->finish;
    if (from == to || from < 0 || place_is_copied(graph_node(p->graph, edge.node)))
        return ready;
    for (int i = spot->copy; i >= 0; i = run->copies.items[i].next)
        if (run->copies.items[i].edge.slot == edge.slot && run->copies.items[i].device == to)
            return run->copies.items[i].time;
    const struct place_wire *wire = &p->wires[from * p->n_devices + to];
    double weight = p->weight[edge.node], bytes = edge_bytes(p, edge);
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
    bool moves = place_device(p, from)->host != place_device(p, to)->host;
    double held = moves && !p->initial[edge.node] ? bytes : 0;
    run->incoming += held;
    vec_push_in(&run->arena, &run->copies, ((struct place_copy){edge, to, time, held, spot->copy}));
    spot->copy = (int)run->copies.n - 1;
    return time;
}

/* ---- time ---- */

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
    int64_t bytes = place_device(run->placer, device)->memory_bytes;
    return bytes ? (double)bytes - host->held - host->live : INFINITY;
}

/* Returns whether the device's memory suffices for more kept and more live bytes. */
static bool has_room(const struct place_run *run, int device, double stays, double live)
{
    const struct place_host *host = host_at(run, device);
    int64_t bytes = place_device(run->placer, device)->memory_bytes;
    return !bytes || host->held + stays + fmax(host->peak, host->live + live) <= (double)bytes;
}

/* Drops a value without further users, where it was made and where it was sent. */
static void drop(struct place_run *run, int node)
{
    host_at(run, run->spots[node].device)->live -= run->placer->nodes[node].made;
    for (int i = run->spots[node].copy; i >= 0; i = run->copies.items[i].next) {
        struct place_copy *copy = &run->copies.items[i];
        host_at(run, copy->device)->live -= copy->bytes;
        copy->bytes = 0;
    }
}

/* ---- nodes ---- */

/* Returns when the node finishes on the device, started as early as possible; its inputs are placed
 * already, or are sources. Infinite if the device has no memory for it and `extra` bytes. The node
 * is placed there if it `stays`; else nothing has changed. */
static double run_node(struct place_run *run, const struct node *node, int device, double extra,
                       bool stays)
{
    const struct placer *p = run->placer;
    struct place_host *host = host_at(run, device);
    struct place_spot *spot = &run->spots[node->id];
    size_t n_copies = run->copies.n;
    double length = p->ns[node->id * p->n_devices + device] / place_device(p, device)->speed;
    double ready = 0;
    int gap;
    run->undo.n = 0;
    run->incoming = 0;
    for (int i = 0; i < node->n_inputs + node->n_controls; i++)
        if (!graph_is_back_edge(p->graph, node, node_dependency(node, i)))
            ready = fmax(ready, send(run, node_dependency(node, i), device));
    double start = find_time(host, ready, length, &gap), finish = start + length;
    double live = run->incoming + p->nodes[node->id].made;
    if (!stays) {
        while (run->copies.n > n_copies) {
            struct place_copy copy = vec_pop(&run->copies);
            run->spots[copy.edge.node].copy = copy.next;
        }
        while (run->undo.n) {
            struct place_undo undo = vec_pop(&run->undo);
            run->channel_free[undo.channel] = undo.before;
        }
        return has_room(run, device, extra, live) ? finish : INFINITY;
    }
    spot->device = device;
    spot->start = start;
    spot->finish = finish;
    if (length > 0 && gap < 0) {
        add_gap(run, host, (struct place_gap){host->free_from, start});
        host->free_from = finish;
    } else if (length > 0) {
        struct place_gap whole = host->gaps.items[gap];
        remove_gap(host, (size_t)gap);
        add_gap(run, host, (struct place_gap){whole.from, start});
        add_gap(run, host, (struct place_gap){finish, whole.to});
    }
    run->total.makespan = fmax(run->total.makespan, finish);
    host->live += live;
    host->peak = fmax(host->peak, host->live);
    for (int i = 0; i < node->n_inputs; i++)
        if (!graph_is_back_edge(p->graph, node, node->inputs[i]) &&
            --run->spots[node->inputs[i].node].uses_left == 0)
            drop(run, node->inputs[i].node);
    if (!spot->uses_left)
        drop(run, node->id);
    for (; n_copies < run->copies.n; n_copies++) {
        struct edge edge = run->copies.items[n_copies].edge;
        run->total.n_transfers += edge.slot >= 0;
        run->total.transfer_bytes += p->weight[edge.node] * edge_bytes(p, edge);
    }
    return finish;
}

/* ---- possible devices of groups ---- */

static bool is_shard(const struct placer *p, int device)
{
    return !strcmp(place_device(p, device)->name.job, SHARD_JOB);
}

static bool has_shards(const struct placer *p)
{
    const struct cluster *cluster = p->placement->cluster;
    return cluster && cluster_count(cluster, SHARD_JOB) > 0;
}

/* Settled groups may be where they are; others are on shards, or on none of these. */
static void find_feasible(struct placer *p)
{
    int d = p->n_devices;
    for (int i = 0; i < p->n; i++) {
        struct place_node *group = &p->nodes[i];
        if (place_root(p, i) != i)
            continue;
        for (int k = 0; k < d && group->settled; k++)
            group->may[k] = k == group->chosen;
        if (!has_shards(p) || group->settled || *group->merged.job)
            continue;
        /* Allow only shards, or only other devices, if any are left then. */
        int left = 0;
        for (int j = 0; j < d; j++)
            left += group->may[j] && is_shard(p, j) == group->has_variable;
        for (int j = 0; left && j < d; j++)
            group->may[j] &= is_shard(p, j) == group->has_variable;
    }
}

/* ---- variables over shards ---- */

static int by_bytes(const void *a, const void *b)
{
    const struct place_node *x = *(struct place_node *const *)a;
    const struct place_node *y = *(struct place_node *const *)b;
    if (x->kept != y->kept)
        return x->kept > y->kept ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Returns the least loaded shard with enough memory; the first of equals. */
static int put_variable(struct placer *p, struct place_node *group, double *taken)
{
    int best = -1;
    double most = 0;
    for (int i = 0; i < p->n_devices; i++) {
        double limit = (double)place_device(p, i)->memory_bytes;
        if (!group->may[i])
            continue;
        most = fmax(most, limit - taken[i]);
        if ((limit == 0 || taken[i] + group->kept <= limit) && (best < 0 || taken[i] < taken[best]))
            best = i;
    }
    if (best < 0)
        return error_set(
            p->err, ERR_DATA,
            "%s: %.0f bytes of variables share a device, and no task of job %s has more "
            "than %.0f left",
            node_text(graph_node(p->graph, (int)(group - p->nodes))), group->kept, SHARD_JOB, most);
    taken[best] += group->kept;
    group->chosen = best;
    group->settled = group->by_bytes = true;
    p->by_bytes_total += group->kept;
    return 0;
}

/* Assigns variables by decreasing size, each to the least loaded shard; settled ones count. */
static int spread_variables(struct placer *p)
{
    double *taken = arena_array(&p->arena, (size_t)p->n_devices, sizeof *taken);
    struct place_node **groups = arena_array(&p->arena, (size_t)p->n, sizeof *groups);
    size_t n = 0;
    int code = 0;
    for (int i = 0; i < p->n; i++) {
        struct place_node *group = &p->nodes[i];
        if (!group->has_variable)
            continue;
        if (group->settled)
            taken[group->chosen] += group->kept;
        else if (!*group->merged.job || !strcmp(group->merged.job, SHARD_JOB))
            groups[n++] = group;
    }
    if (n)
        qsort(groups, n, sizeof *groups, by_bytes);
    for (size_t i = 0; !code && i < n; i++)
        code = put_variable(p, groups[i], taken);
    return code;
}

/* ---- strategies for the rest ---- */

enum strategy {
    FIRST_FINISH, /* where the node finishes first */
    MOST_ROOM,    /* the device with most free memory */
    IN_TURN,      /* the devices in turn */
    ALL_ON,       /* this and above: everything possible on device i, ALL_ON + i */
};

/* Returns the device with most free memory, or the one where the node finishes first. */
static int best_device(struct place_run *run, int strategy, const struct node *node)
{
    const struct place_node *group = place_group(run->placer, node->id);
    int best = -1;
    double least = INFINITY;
    for (int i = 0; i < run->placer->n_devices; i++) {
        if (!group->may[i])
            continue;
        double cost =
            strategy == MOST_ROOM ? -run_room(run, i) : run_node(run, node, i, group->kept, false);
        if (best < 0 || cost < least) {
            best = i;
            least = cost;
        }
    }
    return best;
}

/* Returns the next feasible device from `device` on. */
static int next_feasible(const struct placer *p, const struct place_node *group, int device)
{
    for (int i = device; i < device + p->n_devices; i++)
        if (group->may[i % p->n_devices])
            return i % p->n_devices;
    BUG_ON(true); /* every group has a device */
}

/* Puts a group on that device, or on the first that it may be on. */
static void hold(struct place_run *run, int root, int device)
{
    const struct place_node *group = &run->placer->nodes[root];
    struct place_spot *spot = &run->spots[root];
    if (spot->group >= 0)
        return;
    spot->group = group->may[device] ? device : next_feasible(run->placer, group, 0);
    host_at(run, spot->group)->held += group->kept;
}

static void put(struct place_run *run, int id, int device)
{
    int root = place_root(run->placer, id);
    hold(run, root, device);
    run_node(run, graph_node(run->placer->graph, id), run->spots[root].group, 0, true);
}

static void simulate(struct place_run *run, int strategy)
{
    struct placer *p = run->placer;
    /* Some strategies need no simulation to choose. */
    int turn = 0;
    for (int i = 0; i < p->n; i++) {
        const struct place_node *group = &p->nodes[i];
        if (place_root(p, i) != i)
            continue;
        if (group->settled)
            hold(run, i, group->chosen);
        else if (strategy == IN_TURN) {
            hold(run, i, next_feasible(p, group, turn));
            turn = run->spots[i].group + 1;
        } else if (strategy >= ALL_ON)
            hold(run, i, strategy - ALL_ON);
    }
    graph_each_ordered(node, p->graph, p->order) {
        int root = place_root(p, node->id), device = run->spots[root].group;
        /* A node without inputs and without cost follows the first node that needs it. */
        if (!node->n_inputs && !node->n_controls && p->ns[node->id * p->n_devices] == 0 &&
            p->nodes[root].members == 1)
            continue;
        if (device < 0)
            device = best_device(run, strategy, node);
        for (int j = 0; j < node->n_inputs + node->n_controls; j++) {
            struct edge edge = node_dependency(node, j);
            if (run->spots[edge.node].device < 0 && !graph_is_back_edge(p->graph, node, edge))
                put(run, edge.node, device);
        }
        put(run, node->id, device);
    }
    for (int i = 0; i < p->n; i++) /* sources without users */
        if (run->spots[i].device < 0)
            put(run, i, 0);
}

static int try_all(struct placer *p, struct place_result *result)
{
    struct place_run run;
    int code = 0;
    *result = (struct place_result){.makespan = INFINITY, .one_device = INFINITY};
    for (int strategy = p->n_devices == 1 ? ALL_ON : FIRST_FINISH; strategy < ALL_ON + p->n_devices;
         strategy++) {
        run_init(&run, p);
        simulate(&run, strategy);
        int overfull = 0; /* the first device whose memory does not suffice */
        while (overfull < p->n_devices && has_room(&run, overfull, 0, 0))
            overfull++;
        bool fits = overfull == p->n_devices;
        double makespan = fits ? run.total.makespan : INFINITY;
        if (strategy == IN_TURN || p->n_devices == 1)
            result->round_robin = makespan;
        if (strategy >= ALL_ON)
            result->one_device = fmin(result->one_device, makespan);
        if (fits && makespan <= result->makespan &&
            (makespan < result->makespan || run.total.transfer_bytes < result->transfer_bytes)) {
            p->best = arena_copy(&p->arena, run.spots, (size_t)p->n * sizeof *run.spots);
            result->makespan = makespan;
            result->n_transfers = run.total.n_transfers;
            result->transfer_bytes = run.total.transfer_bytes;
        }
        if (!p->best && strategy == ALL_ON + p->n_devices - 1) {
            const struct place_device *device = place_device(p, overfull);
            code = error_set(p->err, ERR_DATA,
                             "the graph does not fit: it needs %.0f bytes on %s, which has %lld",
                             run.hosts[device->host].held + run.hosts[device->host].peak,
                             device->text, (long long)device->memory_bytes);
        }
        arena_release(&run.arena);
    }
    for (int i = 0; !code && i < p->n; i++)
        p->nodes[i].chosen = p->best[i].group;
    return code;
}

int place_search(struct placer *p, const struct place_costs *costs, struct place_result *result)
{
    struct place_result ignored;
    p->costs = costs;
    if (find_costs(p))
        return p->err->code;
    find_feasible(p);
    if (has_shards(p) && spread_variables(p))
        return p->err->code;
    return try_all(p, result ? result : &ignored);
}
