/* SPDX-License-Identifier: Apache-2.0
 *
 * The choice of devices by simulation: variables over shards first, then the best of some ways to
 * place the rest.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "pass/place/place_private.h"

enum strategy {
    FIRST_FINISH, /* where the node finishes first */
    MOST_ROOM,    /* where most memory is left */
    IN_TURN,      /* the devices one after the other */
    ALL_ON,       /* from here on: everything that may on one device, ALL_ON + i */
};

struct place_search {
    char *has_variable; /* by root */
    struct placer *p;
    struct place_model *model;
    char *may;     /* by root * n_devices + device */
    double *held;  /* by root: bytes that stay, of the whole group */
    int *best;     /* by root: the device of the best placement */
    int *group;    /* by root: the device in this run; -1: not yet */
    char *is_held; /* by root: in this run */
    double shortest;
};

static const struct place_device *device_at(const struct place_search *s, int device)
{
    return &s->p->placement->devices.items[device];
}

static bool may(const struct place_search *s, int root, int device)
{
    return s->may[root * s->model->n_devices + device];
}

/* ---- what each group may have ---- */

static bool is_shard(const struct place_search *s, int device)
{
    return !strcmp(device_at(s, device)->name.job, SHARD_JOB);
}

static bool has_shards(const struct place_search *s)
{
    const struct cluster *cluster = s->p->placement->cluster;
    return cluster && cluster_count(cluster, SHARD_JOB) > 0;
}

static void find_feasible(struct place_search *s)
{
    for (int i = 0; i < s->model->n; i++) {
        if (place_root(s->p, i) != i)
            continue;
        for (int k = 0; k < s->model->n_devices; k++)
            s->may[i * s->model->n_devices + k] = s->p->settled[i]
                                                      ? k == s->p->chosen[i]
                                                      : place_is_feasible(s->p, i, device_at(s, k));
        if (!has_shards(s) || s->p->settled[i] || *s->p->merged[i].job)
            continue;
        /* Keeps only shards, or only what is none, if that leaves anything. */
        bool shards = s->has_variable[i];
        int left = 0, d = s->model->n_devices;
        for (int j = 0; j < d; j++)
            left += may(s, i, j) && is_shard(s, j) == shards;
        for (int j = 0; left && j < d; j++)
            if (is_shard(s, j) != shards)
                s->may[i * d + j] = 0;
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

/* The least loaded shard that has the memory; the first of equals. */
static int put_variable(struct place_search *s, const struct load *load, double *taken)
{
    int best = -1;
    for (int i = 0; i < s->model->n_devices; i++) {
        double limit = (double)device_at(s, i)->memory_bytes;
        if (may(s, load->root, i) && (limit == 0 || taken[i] + load->bytes <= limit) &&
            (best < 0 || taken[i] < taken[best]))
            best = i;
    }
    if (best < 0) {
        double most = 0;
        for (int i = 0; i < s->model->n_devices; i++)
            if (may(s, load->root, i))
                most = fmax(most, (double)device_at(s, i)->memory_bytes - taken[i]);
        return error_set(
            s->p->err, ERR_DATA,
            "%s: %.0f bytes of variables share a device, and no task of job %s has more "
            "than %.0f left",
            node_text(graph_node(s->p->graph, load->root)), load->bytes, SHARD_JOB, most);
    }
    taken[best] += load->bytes;
    s->p->chosen[load->root] = best;
    s->p->settled[load->root] = 1;
    s->model->by_bytes[load->root] = 1;
    s->model->by_bytes_total += load->bytes;
    return 0;
}

/* The largest first, each to the shard with least; those that are settled count. */
static int spread_variables(struct place_search *s)
{
    struct arena *arena = &s->model->arena;
    double *taken = arena_array(arena, (size_t)s->model->n_devices, sizeof *taken);
    struct load *loads = arena_array(arena, (size_t)s->model->n, sizeof *loads);
    const char **names = arena_array(arena, (size_t)s->model->n, sizeof *names);
    size_t n = 0;
    int code = 0;
    /* The smallest name in a group: which node is its root depends on the order of the graph. */
    for (int i = 0; i < s->model->n; i++) {
        const char **name = &names[place_root(s->p, i)];
        if (!*name || strcmp(graph_node(s->p->graph, i)->name, *name) < 0)
            *name = graph_node(s->p->graph, i)->name;
    }
    for (int i = 0; i < s->model->n; i++) {
        if (!s->has_variable[i])
            continue;
        if (s->p->settled[i])
            taken[s->p->chosen[i]] += s->held[i];
        else if (!*s->p->merged[i].job || !strcmp(s->p->merged[i].job, SHARD_JOB))
            loads[n++] = (struct load){s->held[i], names[i], i};
    }
    if (n)
        qsort(loads, n, sizeof *loads, by_load);
    for (size_t i = 0; !code && i < n; i++)
        code = put_variable(s, &loads[i], taken);
    return code;
}

/* ---- ways to place the rest ---- */

static int first_finish(const struct place_search *s, struct place_run *run, int root, int node)
{
    int best = -1;
    double earliest = INFINITY;
    for (int i = 0; i < s->model->n_devices; i++) {
        if (!may(s, root, i))
            continue;
        double finish = place_run_try(run, node, i, s->held[root]);
        if (best < 0 || finish < earliest) {
            best = i;
            earliest = finish;
        }
    }
    return best;
}

static int most_room(const struct place_search *s, const struct place_run *run, int root)
{
    int best = -1;
    for (int i = 0; i < s->model->n_devices; i++)
        if (may(s, root, i) && (best < 0 || place_run_room(run, i) > place_run_room(run, best)))
            best = i;
    return best;
}

/* The next one from `device` on. */
static int next_feasible(const struct place_search *s, int root, int device)
{
    int n = s->model->n_devices;
    for (int i = 0; i < n; i++)
        if (may(s, root, (device + i) % n))
            return (device + i) % n;
    BUG_ON(true); /* every group has a device */
}

static void put(struct place_search *s, struct place_run *run, int node, int device)
{
    int root = place_root(s->p, node);
    if (s->group[root] < 0)
        s->group[root] = may(s, root, device) ? device : next_feasible(s, root, 0);
    if (!s->is_held[root])
        place_run_hold(run, s->group[root], s->held[root]);
    s->is_held[root] = 1;
    place_run_put(run, node, s->group[root]);
}

static void simulate(struct place_search *s, struct place_run *run, int strategy)
{
    /* Some strategies decide without a simulation. */
    int turn = 0;
    for (int i = 0; i < s->model->n; i++) {
        if (s->p->settled[i])
            s->group[i] = s->p->chosen[i];
        else if (place_root(s->p, i) != i || strategy == FIRST_FINISH || strategy == MOST_ROOM)
            s->group[i] = -1;
        else if (strategy == IN_TURN)
            turn = 1 + (s->group[i] = next_feasible(s, i, turn));
        else
            s->group[i] = may(s, i, strategy - ALL_ON) ? strategy - ALL_ON : next_feasible(s, i, 0);
    }
    for (int i = 0; i < s->model->n; i++) {
        s->is_held[i] = s->group[i] >= 0 && place_root(s->p, i) == i;
        if (s->is_held[i])
            place_run_hold(run, s->group[i], s->held[i]);
    }
    for (int i = 0; i < s->model->n; i++) {
        int id = s->model->order[i], root = place_root(s->p, id), device = s->group[root];
        const struct node *node = graph_node(s->p->graph, id);
        /* A node that needs nothing, and no time, follows the first node that wants it. */
        if (!node->n_inputs && !node->n_controls && s->model->ns[id * s->model->n_devices] == 0 &&
            s->p->members[root] == 1)
            continue;
        if (device < 0)
            device =
                strategy == MOST_ROOM ? most_room(s, run, root) : first_finish(s, run, root, id);
        for (int j = 0; j < node->n_inputs + node->n_controls; j++) {
            struct edge edge = node_dependency(node, j);
            if (run->device[edge.node] < 0 && !graph_is_back_edge(s->p->graph, node, edge))
                put(s, run, edge.node, device);
        }
        put(s, run, id, device);
    }
    for (int i = 0; i < s->model->n; i++) /* sources that nobody wants */
        if (run->device[i] < 0)
            put(s, run, i, 0);
}

static int try_all(struct place_search *s, struct place_result *result)
{
    struct place_run run;
    int code = 0;
    result->one_device = INFINITY;
    s->shortest = INFINITY;
    for (int strategy = s->model->n_devices == 1 ? ALL_ON : FIRST_FINISH;
         strategy < ALL_ON + s->model->n_devices; strategy++) {
        place_run_init(&run, s->model);
        simulate(s, &run, strategy);
        double makespan = place_run_makespan(&run);
        if (strategy == IN_TURN || s->model->n_devices == 1)
            result->round_robin = makespan;
        if (strategy >= ALL_ON)
            result->one_device = fmin(result->one_device, makespan);
        size_t n = (size_t)s->model->n;
        if (!isinf(makespan) && makespan <= s->shortest &&
            (makespan < s->shortest || run.total.transfer_bytes < result->transfer_bytes)) {
            s->shortest = makespan;
            memcpy(s->best, s->group, n * sizeof *s->best);
            memcpy(s->model->best_start, run.start, n * sizeof *run.start);
            memcpy(s->model->best_finish, run.finish, n * sizeof *run.finish);
            result->makespan = makespan;
            result->n_transfers = run.total.n_transfers;
            result->transfer_bytes = run.total.transfer_bytes;
        }
        if (isinf(s->shortest) && strategy == ALL_ON + s->model->n_devices - 1) {
            int device = place_run_overfull(&run);
            code = error_set(s->p->err, ERR_DATA,
                             "the graph does not fit: it needs %.0f bytes on %s, which has %lld",
                             place_run_needs(&run, device), device_at(s, device)->text,
                             (long long)device_at(s, device)->memory_bytes);
        }
        place_run_release(&run);
    }
    return code;
}

static int search_init(struct place_search *s, struct placer *p, const struct place_costs *costs)
{
    int code = place_model_new(p, costs, &p->model);
    if (code)
        return code;
    size_t n = (size_t)p->model->n, d = (size_t)p->model->n_devices;
    struct arena *arena = &p->model->arena;
    *s = (struct place_search){.p = p, .model = p->model};
    s->may = arena_array(arena, n, d);
    s->held = arena_array(arena, n, sizeof *s->held);
    s->best = arena_array(arena, n, sizeof *s->best);
    s->group = arena_array(arena, n, sizeof *s->group);
    s->is_held = arena_alloc(arena, n + 1);
    s->has_variable = arena_alloc(arena, n + 1);
    for (int i = 0; i < s->model->n; i++) {
        int root = place_root(s->p, i);
        s->held[root] += s->model->held[i];
        s->has_variable[root] |= node_is(graph_node(s->p->graph, i), "Variable");
    }
    find_feasible(s);
    return 0;
}

int place_search(struct placer *p, const struct place_costs *costs, struct place_result *result)
{
    struct place_search s;
    struct place_result ignored;
    int code = search_init(&s, p, costs);
    result = result ? result : &ignored;
    *result = (struct place_result){0};
    if (!code && has_shards(&s))
        code = spread_variables(&s);
    if (!code)
        code = try_all(&s, result);
    if (!code) {
        for (int i = 0; i < s.model->n; i++)
            if (place_root(s.p, i) == i && !s.p->settled[i])
                s.p->chosen[i] = s.best[i];
    }
    return code;
}

int place_measure(struct placer *p, const struct place_costs *costs, struct place_result *result)
{
    struct place_search s;
    struct place_run run;
    memset(p->settled, 1, p->graph->nodes.n);
    int code = search_init(&s, p, costs);
    if (code)
        return code;
    place_run_init(&run, p->model);
    simulate(&s, &run, FIRST_FINISH);
    *result = run.total;
    result->makespan = place_run_makespan(&run);
    place_run_release(&run);
    return 0;
}
