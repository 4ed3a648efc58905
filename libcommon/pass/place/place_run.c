/* SPDX-License-Identifier: Apache-2.0
 *
 * One run of the simulation.
 */
#include <math.h>
#include <string.h>

#include "pass/place/place_private.h"

#define GAPS_MAX 32 /* of a device that are remembered */

void place_run_init(struct place_run *run, const struct place_model *model)
{
    size_t n = (size_t)model->n, d = (size_t)model->n_devices;
    memset(run, 0, sizeof *run);
    run->model = model;
    run->device = arena_array(&run->arena, n, sizeof *run->device);
    run->start = arena_array(&run->arena, n, sizeof *run->start);
    run->finish = arena_array(&run->arena, n, sizeof *run->finish);
    run->first_copy = arena_array(&run->arena, n, sizeof *run->first_copy);
    run->uses_left = arena_copy(&run->arena, model->n_uses, n * sizeof *run->uses_left);
    run->free_from = arena_array(&run->arena, d, sizeof *run->free_from);
    run->gaps = arena_array(&run->arena, d, sizeof *run->gaps);
    run->channel_free =
        arena_array(&run->arena, (size_t)model->n_channels, sizeof *run->channel_free);
    run->held = arena_array(&run->arena, d, sizeof *run->held);
    run->live = arena_array(&run->arena, d, sizeof *run->live);
    run->peak = arena_array(&run->arena, d, sizeof *run->peak);
    memset(run->device, -1, n * sizeof *run->device);
    memset(run->first_copy, -1, n * sizeof *run->first_copy);
}

void place_run_release(struct place_run *run)
{
    arena_release(&run->arena);
}

static const struct place_device *device_at(const struct place_run *run, int device)
{
    return &run->model->placer->placement->devices.items[device];
}

/* ---- transfers ---- */

/* When the tensor is there; sends it if it has not been sent. A source without a place yet will
 * come to where it is wanted first. */
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
    /* When the transfer may begin; until it is over what it shares is taken. */
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
    bool moves = device_at(run, from)->host != device_at(run, to)->host;
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
    return m->ns[node * m->n_devices + device] / device_at(run, device)->speed;
}

/* The first time from `ready` on when the device is free for so long, and the gap that it is in;
 * -1: after everything. */
static double find_time(const struct place_run *run, int host, double ready, double length,
                        int *gap)
{
    *gap = -1;
    if (length == 0)
        return ready;
    for (size_t i = 0; i < run->gaps[host].n; i++) {
        struct place_gap g = run->gaps[host].items[i];
        double start = fmax(g.from, ready);
        if (start + length <= g.to) {
            *gap = (int)i;
            return start;
        }
    }
    return fmax(ready, run->free_from[host]);
}

static void remove_gap(struct place_run *run, int host, size_t at)
{
    struct place_gap *gaps = run->gaps[host].items;
    memmove(gaps + at, gaps + at + 1, (--run->gaps[host].n - at) * sizeof *gaps);
}

static void add_gap(struct place_run *run, int host, struct place_gap gap)
{
    if (gap.to <= gap.from)
        return;
    if (run->gaps[host].n == GAPS_MAX)
        remove_gap(run, host, 0);
    vec_push_in(&run->arena, &run->gaps[host], gap);
}

/* ---- memory ---- */

double place_run_room(const struct place_run *run, int device)
{
    const struct place_device *d = device_at(run, device);
    return d->memory_bytes ? (double)d->memory_bytes - run->held[d->host] - run->live[d->host]
                           : INFINITY;
}

/* Returns whether the device suffices with more that stays and more that is live now. */
static bool has_room(const struct place_run *run, int device, double stays, double live)
{
    const struct place_device *d = device_at(run, device);
    double peak = fmax(run->peak[d->host], run->live[d->host] + live);
    return !d->memory_bytes || run->held[d->host] + stays + peak <= (double)d->memory_bytes;
}

/* Drops a value that nobody needs any more, where it was made and where it was sent. */
static void drop(struct place_run *run, int node)
{
    run->live[device_at(run, run->device[node])->host] -= run->model->made[node];
    for (int i = run->first_copy[node]; i >= 0; i = run->copies.items[i].next) {
        struct place_copy *copy = &run->copies.items[i];
        run->live[device_at(run, copy->device)->host] -= copy->bytes;
        copy->bytes = 0;
    }
}

/* ---- nodes ---- */

double place_run_try(struct place_run *run, int node, int device, double extra)
{
    size_t n_copies = run->copies.n;
    double length = duration(run, node, device);
    int gap;
    run->undo.n = 0;
    double ready = gather(run, graph_node(run->model->placer->graph, node), device);
    double start = find_time(run, device_at(run, device)->host, ready, length, &gap);
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

void place_run_put(struct place_run *run, int node, int device)
{
    const struct node *n = graph_node(run->model->placer->graph, node);
    double length = duration(run, node, device);
    size_t n_copies = run->copies.n;
    int gap, host = device_at(run, device)->host;
    double ready = gather(run, n, device);
    run->undo.n = 0;
    run->device[node] = device;
    run->start[node] = find_time(run, host, ready, length, &gap);
    run->finish[node] = run->start[node] + length;
    if (length > 0 && gap < 0) {
        add_gap(run, host, (struct place_gap){run->free_from[host], run->start[node]});
        run->free_from[host] = run->finish[node];
    } else if (length > 0) {
        struct place_gap whole = run->gaps[host].items[gap];
        remove_gap(run, host, (size_t)gap);
        add_gap(run, host, (struct place_gap){whole.from, run->start[node]});
        add_gap(run, host, (struct place_gap){run->finish[node], whole.to});
    }
    run->makespan = fmax(run->makespan, run->finish[node]);
    run->live[host] += run->incoming + run->model->made[node];
    run->peak[host] = fmax(run->peak[host], run->live[host]);
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

void place_run_hold(struct place_run *run, int device, double bytes)
{
    run->held[device_at(run, device)->host] += bytes;
}

double place_run_needs(const struct place_run *run, int device)
{
    int host = device_at(run, device)->host;
    return run->held[host] + run->peak[host];
}

int place_run_overfull(const struct place_run *run)
{
    for (int i = 0; i < run->model->n_devices; i++)
        if (!has_room(run, i, 0, 0))
            return i;
    return -1;
}

double place_run_makespan(const struct place_run *run)
{
    return place_run_overfull(run) < 0 ? run->makespan : INFINITY;
}
