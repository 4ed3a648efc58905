/* SPDX-License-Identifier: Apache-2.0
 *
 * The placer: groups by union-find, the devices possible for each, and the choice, by simulation or
 * of the first. A group is a set of nodes that must share a device; its data are stored under its
 * root, the node with the smallest id.
 */
#include "pass/place/place.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/access_nodes.h"
#include "graph/walk.h"
#include "resource/policy.h"

#define NS 1e9
#define PLACE_TYPES_MAX 32

/* Two nodes. */
struct place_link {
    int a, b;
};

/* A node. What is said of a group is its root's. */
struct place_node {
    struct device_name asked, wanted; /* its request; the part of it that must hold */
    uint32_t kernel_types;            /* bit i: has a kernel on types[i] */
    int parent;                       /* union-find */

    /* Of a group: */
    int members;
    struct device_name merged; /* of what they want */
    uint32_t common_types;     /* for which all have a kernel */
    int chosen;                /* index of a device */
    bool settled;              /* the choice is final */
    bool has_variable;
    bool by_bytes; /* its variables are balanced over shards */
    double kept;   /* bytes kept by all of it */
    /* the smallest one in it: which node is the root depends on the graph's order */
    const char *name;
    bool *may; /* by device: it may be there */

    /* For the simulation: */
    double made;      /* memory allocated by a run */
    double held;      /* bytes kept: variables, constants */
    int first_output; /* index into bytes */
    int n_uses;       /* number of outgoing data edges */
};

/* A node in a run of the simulation. */
struct place_spot {
    int device;    /* -1: not placed yet */
    int group;     /* of a root: the group's device; -1: none yet */
    int uses_left; /* users that are not placed */
    int copy;      /* the last tensor of it that was sent: index into copies; -1: none */
    double start, finish;
};

/* The simulation of a step on the devices of a placement has data that are independent of the
 * placement: times of nodes on each type of device, bytes of their outputs, the order of placing. A
 * run places the nodes one by one and advances the time. Units are nanoseconds and bytes.
 *
 * A device computes one node at a time, and uses its idle gaps. A tensor is sent to a device once,
 * however many nodes need it there; between two tasks tensors are sent one after the other in each
 * direction, and likewise through the adapter of a host with known bandwidth. A device that stands
 * for one per task of a job sends and receives once per task. Within loops everything counts
 * LOOP_STEPS times per level, except measured times, which are for a whole step. */
struct placer {
    const struct graph *graph;
    const struct placement *placement;
    const struct kernel_table *kernels;
    struct arena arena;
    int n, n_devices;
    const char *types[PLACE_TYPES_MAX]; /* of the available devices */
    int n_types;
    int *type_of; /* by device: index into types */
    bool soft;    /* requests may be relaxed */
    struct place_node *nodes;
    const bool *initial;          /* by node: only initial values need it */
    VEC(struct place_link) links; /* reasons for two nodes to share a device */
    struct error *err;

    /* The simulation: */
    const struct place_costs *costs;
    int n_channels;
    int *order;               /* nodes by longest path to an end, longest first */
    double *weight;           /* by node: number of runs per step */
    double *ns;               /* by node * n_devices + device, for speed 1 */
    double *bytes;            /* by output */
    struct place_wire *wires; /* by from * n_devices + to */
    double by_bytes_total;    /* of the variables that are balanced over shards */
    struct place_spot *best;  /* the chosen run, by node; NULL: no simulation */
};

static const struct place_device *place_device(const struct placer *p, int device)
{
    return &p->placement->devices.items[device];
}

/* ---- groups ---- */

static int place_root(struct placer *p, int node)
{
    struct place_node *nodes = p->nodes;
    while (nodes[node].parent != node)
        node = nodes[node].parent = nodes[nodes[node].parent].parent;
    return node;
}

static struct place_node *place_group(struct placer *p, int node)
{
    return &p->nodes[place_root(p, node)];
}

/* Puts two nodes that must share a device into one group. */
static void place_join(struct placer *p, int a, int b)
{
    vec_push_in(&p->arena, &p->links, ((struct place_link){a, b}));
    a = place_root(p, a);
    b = place_root(p, b);
    p->nodes[a > b ? a : b].parent = a > b ? b : a;
}

/* ---- failures ----
 *
 * Explains why a graph cannot be placed: two nodes that conflict, with the shortest chain of nodes
 * that must share a device between them, or one node that fits nowhere. Each function reports one
 * kind of failure, and returns ERR_DATA. */

/* Prints "'W' on /job:ps/task:0 (m.lua:3)". */
static void print_node(struct str *out, const struct node *node, const char *where)
{
    str_printf(out, "'%s'%s%s", node->name, *where ? " on " : "", where);
    if (node->file)
        str_printf(out, " (%s:%d)", node->file, node->line);
}

/* ---- chains ---- */

/* Returns the nearest node to `start` in its group for which the predicate holds; -1: none. From
 * all of the group, by node, *from then leads back to `start`. */
static int find_nearest(struct placer *p, int start,
                        bool (*conflicts)(const struct placer *p, int a, int b), int **from)
{
    size_t n = (size_t)p->n;
    int *queue = arena_array(&p->arena, n, sizeof *queue), head = 0, tail = 0, nearest = -1;
    *from = arena_array(&p->arena, n, sizeof **from); /* -1: not reached */
    memset(*from, -1, n * sizeof **from);
    (*from)[start] = start;
    queue[tail++] = start;
    while (head < tail) {
        int node = queue[head++];
        if (nearest < 0 && node != start && conflicts(p, start, node))
            nearest = node;
        for (size_t i = p->links.n; i-- > 0;) {
            struct place_link link = p->links.items[i];
            int other = link.a == node ? link.b : link.b == node ? link.a : start;
            if ((*from)[other] >= 0)
                continue;
            (*from)[other] = node;
            queue[tail++] = other;
        }
    }
    return nearest;
}

/* ---- conflicts of two nodes ---- */

static bool ask_for_others(const struct placer *p, int a, int b)
{
    struct device_name merged = p->nodes[a].wanted;
    struct error ignored = ERROR_INIT;
    return device_name_merge(&merged, &p->nodes[b].wanted, &ignored) != 0;
}

static bool have_no_common_kernels(const struct placer *p, int a, int b)
{
    return !(p->nodes[a].kernel_types & p->nodes[b].kernel_types);
}

static int report_pair(struct placer *p, const int *from, int near, int start, const char *near_on,
                       const char *start_on)
{
    struct str text = STR_INIT;
    print_node(&text, graph_node(p->graph, near), near_on);
    str_append(&text, " and ");
    print_node(&text, graph_node(p->graph, start), start_on);
    str_append(&text, " must share a device: ");
    /* Print "W -> W/slot -> m", cut in the middle if it is very long. */
    int length = 1;
    for (int i = near; from[i] != i; i = from[i])
        length++;
    for (int i = near, k = 0; k < length; i = from[i], k++) {
        if (length <= 12 || k < 6 || k >= length - 5)
            str_printf(&text, "%s%s", k ? " -> " : "", graph_node(p->graph, i)->name);
        else if (k == 6)
            str_append(&text, " -> ...");
    }
    int code = error_set(p->err, ERR_DATA, "%s", str_text(&text));
    str_release(&text);
    return code;
}

/* Prefers to name the group's first node, whose device the others share, over one of these. */
static int place_fail_shared(struct placer *p, int node)
{
    int *from;
    int first = place_root(p, node), other = find_nearest(p, node, ask_for_others, &from);
    if (ask_for_others(p, node, first))
        other = first;
    BUG_ON(other < 0); /* names conflict by parts, so some pair conflicts */
    return report_pair(p, from, other, node, graph_node(p->graph, other)->device,
                       graph_node(p->graph, node)->device);
}

static void print_types(struct str *out, const struct placer *p, uint32_t types)
{
    const char *separator = "";
    for (int i = 0; i < p->n_types; i++) {
        if (types >> i & 1) {
            str_printf(out, "%s%s", separator, p->types[i]);
            separator = " or ";
        }
    }
}

static int report_no_kernel(struct placer *p, const struct node *node, uint32_t types)
{
    struct str text = STR_INIT;
    const char *op = node->op->def->name;
    bool exists = false;
    for (int i = 0; i < p->n_types; i++)
        exists |= types >> i & 1 && kernel_exists(p->kernels, op, p->types[i]);
    str_printf(&text, "%s: no kernel for %s on ", node_text(node), op);
    print_types(&text, p, types);
    if (exists) {
        /* Print "with T=int8, Tidx=int32". */
        const char *separator = " with ";
        for (int i = 0; i < node->n_attrs; i++) {
            const struct attr *attr = &node->attrs[i];
            if (attr->value.kind == ATTR_TYPE) {
                str_printf(&text, "%s%s=%s", separator, attr->name, dtype_name(attr->value.type));
                separator = ", ";
            }
        }
    }
    int code = error_set(p->err, ERR_DATA, "%s", str_text(&text));
    str_release(&text);
    return code;
}

static int place_fail_kernels(struct placer *p, int node)
{
    int *from;
    struct str near_on = STR_INIT, start_on = STR_INIT;
    if (!p->nodes[node].kernel_types)
        return report_no_kernel(p, graph_node(p->graph, node),
                                (uint32_t)((uint64_t)1 << p->n_types) - 1);
    int other = find_nearest(p, node, have_no_common_kernels, &from);
    if (other < 0)
        return error_set(p->err, ERR_DATA,
                         "%s: of %d nodes that must share a device no type of device has kernels "
                         "for all",
                         node_text(graph_node(p->graph, node)), place_group(p, node)->members);
    print_types(&near_on, p, p->nodes[other].kernel_types);
    print_types(&start_on, p, p->nodes[node].kernel_types);
    int code = report_pair(p, from, other, node, str_text(&near_on), str_text(&start_on));
    str_release(&near_on);
    str_release(&start_on);
    return code;
}

/* ---- groups without a device ---- */

static bool exists(const struct placer *p, const struct device_name *pattern)
{
    for (int i = 0; i < p->n_devices; i++)
        if (device_name_specialises(&place_device(p, i)->name, pattern))
            return true;
    return false;
}

static int report_unknown(struct placer *p, const struct node *node, const char *device)
{
    struct str has = STR_INIT;
    for (int i = 0; i < p->n_devices && i < 8; i++)
        str_printf(&has, "%s%s", i ? ", " : "", place_device(p, i)->text);
    if (p->n_devices > 8)
        str_printf(&has, " and %d more", p->n_devices - 8);
    int code = error_set(p->err, ERR_DATA, "%s: %s is not in this cluster: it has %s",
                         node_text(node), device, str_text(&has));
    str_release(&has);
    return code;
}

static int place_fail_group(struct placer *p, int root)
{
    /* The types of the devices that match the group's names. */
    uint32_t types = 0;
    for (int i = 0; i < p->n_devices; i++)
        if (device_name_specialises(&place_device(p, i)->name, &p->nodes[root].merged))
            types |= 1u << p->type_of[i];

    for (int i = root; i < p->n; i++) {
        const struct node *node = graph_node(p->graph, i);
        if (place_root(p, i) != root)
            continue;
        if (!types && !exists(p, &p->nodes[i].asked))
            return report_unknown(p, node, node->device);
        if (types && !(p->nodes[i].kernel_types & types))
            return report_no_kernel(p, node, types);
    }
    /* Each node's request or kernels could be satisfied alone, but not together. */
    struct str name = STR_INIT;
    device_name_print(&name, &p->nodes[root].merged);
    int code = report_unknown(p, graph_node(p->graph, root), str_text(&name));
    str_release(&name);
    return code;
}

/* ---- implicit colocation with a variable ----
 *
 * Row lookups in it, its initial value, and values computed only for it are placed with a variable.
 * Elsewhere, they would have to be transferred. */

const struct node *place_table_of(const struct graph *graph, const struct node *node)
{
    const struct node *read = graph_node(graph, node->inputs[0].node);
    const struct node *table =
        node_is(read, "Identity") ? graph_node(graph, read->inputs[0].node) : read;
    bool is_it = node_is(table, "Variable") &&
                 shape_bytes(&node->outputs[0].shape, node->outputs[0].type) <=
                     shape_bytes(&table->outputs[0].shape, table->outputs[0].type);
    return is_it ? table : NULL;
}

bool place_is_copied(const struct node *node)
{
    return node_is(node, "Const") && !node->n_controls &&
           (int64_t)tensor_bytes(node_attr(node, "value")->tensor) <= PLACE_COPIED_BYTES_MAX;
}

bool *place_find_initial(const struct graph *graph, struct arena *arena)
{
    struct graph_walk first = graph_walk_new(arena, graph), later = graph_walk_new(arena, graph);
    vec_each(entry, &graph->entries) {
        graph_walk_entry(strcmp(entry->name, "init") ? &later : &first, entry);
    }
    graph_walk_end(&first, graph);
    graph_walk_end(&later, graph);
    for (size_t i = 0; i < graph->nodes.n; i++)
        first.seen[i] &= !later.seen[i];
    return first.seen;
}

enum { NOBODY = -1, SEVERAL = -2 };

static void count_user(int *user, int group)
{
    *user = *user == NOBODY || *user == group ? group : SEVERAL;
}

/* Returns whether the node has inputs and all come from the group. */
static bool comes_from(struct placer *p, const struct node *node, int group)
{
    bool found = false;
    for (int i = 0; i < node->n_inputs; i++) {
        bool is_copied = place_is_copied(graph_node(p->graph, node->inputs[i].node));
        if (!is_copied && place_root(p, node->inputs[i].node) != group)
            return false;
        found |= !is_copied;
    }
    return found;
}

static bool may_be_with(const struct placer *p, const struct node *node, int group)
{
    const struct node *leader = graph_node(p->graph, group);
    uint32_t needed = p->nodes[group].kernel_types;
    return (!*node->device || !strcmp(node->device, leader->device)) &&
           (p->nodes[node->id].kernel_types & needed) == needed &&
           !node_has(node, OP_CONTROL_FLOW | OP_SOURCE) && !node_is(node, "Variable");
}

/* On a cluster, joins nodes to a variable if their values would otherwise be transferred for it. */
static int join_near(struct placer *p)
{
    size_t n = p->graph->nodes.n;
    if (!p->placement->cluster)
        return 0;
    graph_each(node, p->graph) {
        /* A shard sends only the requested rows of its table, unless those are more. */
        if (!cluster_count(p->placement->cluster, SHARD_JOB) || node_rows(node) != ROWS_LOOKUP)
            continue;
        const struct node *table = place_table_of(p->graph, node);
        if (table && (!*node->device || !strcmp(node->device, table->device)))
            place_join(p, table->id, node->id);
    }
    int *order = arena_array(&p->arena, n + 1, sizeof *order);
    char *has_variable = arena_alloc(&p->arena, n + 1);      /* by root of earlier groups */
    int *user = arena_array(&p->arena, n + 1, sizeof *user); /* by node: the group of all users */
    if (graph_order(p->graph, order, p->err))
        return p->err->code;
    graph_each(node, p->graph) {
        user[node->id] = NOBODY;
        if (node_is(node, "Variable"))
            has_variable[place_root(p, node->id)] = 1;
    }
    vec_each(entry, &p->graph->entries) {
        for (int k = 0; k < entry->n_edges; k++)
            user[entry->edges[k].node] = SEVERAL;
    }
    /* Backwards: a node whose users are all in one group may join it, then its inputs may. */
    while (n-- > 0) {
        const struct node *node = graph_node(p->graph, order[n]);
        int group = user[node->id];
        bool joins = group >= 0 && has_variable[group] && may_be_with(p, node, group) &&
                     (p->initial[node->id] || comes_from(p, node, group));
        if (joins && place_root(p, node->id) == node->id) {
            place_join(p, group, node->id);
            has_variable[place_root(p, group)] = 1;
        }
        group = place_root(p, node->id);
        for (int k = 0; k < node->n_inputs; k++)
            count_user(&user[node->inputs[k].node], group);
        for (int k = 0; k < node->n_controls; k++)
            count_user(&user[node->controls[k]], p->initial[node->id] ? group : SEVERAL);
    }
    return 0;
}

/* ---- soft placement ----
 *
 * A node that asked for a type of device without a kernel for it, or for a device that does not
 * exist, may go to another device of its task: TensorFlow's allow_soft_placement. */

static void give_way(struct device_name *name)
{
    *name->type = '\0';
    name->index = DEVICE_OPEN;
}

static bool has_kernel(const struct placer *p, int node)
{
    const char *type = p->nodes[node].asked.type;
    for (int i = 0; i < p->n_types; i++)
        if (!strcmp(p->types[i], type))
            return p->nodes[node].kernel_types >> i & 1;
    return false;
}

/* Returns whether the node is not on the device that it asked for, with the reason. */
static bool why_soft(struct placer *p, const struct node *node, char reason[static 512])
{
    const struct device_name *asked = &p->nodes[node->id].asked;
    const struct place_device *device = place_device(p, place_group(p, node->id)->chosen);
    if (!p->soft || device_name_specialises(&device->name, asked))
        return false;
    if (!exists(p, asked))
        snprintf(reason, 512, "there is no %s", node->device);
    else if (!has_kernel(p, node->id))
        snprintf(reason, 512, "no kernel for %s on %s", node->op->def->name, node->device);
    else
        snprintf(reason, 512, "not all that share a device can have %s", node->device);
    return true;
}

/* ---- types ---- */

static int find_types(struct placer *p)
{
    p->type_of = arena_array(&p->arena, (size_t)p->n_devices, sizeof *p->type_of);
    for (int i = 0; i < p->n_devices; i++) {
        const char *type = place_device(p, i)->name.type;
        int k = 0;
        while (k < p->n_types && strcmp(p->types[k], type))
            k++;
        if (k == PLACE_TYPES_MAX)
            return error_set(p->err, ERR_DATA, "more than %d types of devices", PLACE_TYPES_MAX);
        if (k == p->n_types)
            p->types[p->n_types++] = type;
        p->type_of[i] = k;
    }
    return 0;
}

/* ---- possible devices of nodes and groups ---- */

static int read_request(struct placer *p, const struct node *node)
{
    const struct node *before = node->id ? graph_node(p->graph, node->id - 1) : NULL;
    struct device_name *asked = &p->nodes[node->id].asked;
    *asked = device_name_open();
    if (!*node->device)
        return 0;
    if (before && !strcmp(before->device, node->device))
        *asked = p->nodes[before->id].asked;
    else if (device_name_parse(asked, node->device, p->err))
        return error_prefix(p->err, "%s: ", node_text(node));
    return 0;
}

static int merge_into_group(struct placer *p, int node)
{
    struct place_node *own = &p->nodes[node], *group = place_group(p, node);
    struct error ignored = ERROR_INIT;
    if (group == own) {
        own->merged = own->wanted;
        own->common_types = own->kernel_types;
    } else if (device_name_merge(&group->merged, &own->wanted, &ignored)) {
        return place_fail_shared(p, node);
    }
    group->members++;
    group->common_types &= own->kernel_types;
    return group->common_types ? 0 : place_fail_kernels(p, node);
}

/* Finds the devices that a group may be on, by kernels and by name. Prefers accelerators to CPUs,
 * then the first device; chosen is -1 if it can have none. */
static void find_devices(struct placer *p, struct place_node *group)
{
    bool every = p->placement->cluster && device_task_is_many(group->merged.task);
    bool is_cpu = false; /* the chosen one */
    group->chosen = -1;
    for (int i = 0; i < p->n_devices; i++) {
        const struct place_device *device = place_device(p, i);
        group->may[i] = every == (device->tasks > 0) && group->common_types >> p->type_of[i] & 1 &&
                        device_name_specialises(&device->name, &group->merged);
        bool is_other = strcmp(device->name.type, "CPU") != 0;
        if (!group->may[i] || (group->chosen >= 0 && !(is_cpu && is_other)))
            continue;
        group->chosen = i;
        is_cpu = !is_other;
    }
}

static int choose(struct placer *p, int root)
{
    struct place_node *group = &p->nodes[root];
    struct device_name wish = group->merged;
    group->may = arena_array(&p->arena, (size_t)p->n_devices, sizeof *group->may);
    find_devices(p, group);
    if (group->chosen < 0 && p->soft && *wish.type) {
        give_way(&group->merged);
        find_devices(p, group);
    }
    if (group->chosen >= 0)
        return 0;
    group->merged = wish;
    return place_fail_group(p, root);
}

/* ---- the choice by simulation ----
 *
 * Its fixed inputs are times, bytes, links, and the order of nodes; then variables are spread over
 * shards, then the best of several strategies is taken for the rest. */

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

/* Chooses the device of each group that is not settled, by simulation. ERR_DATA if memory does not
 * suffice. */
static int place_search(struct placer *p, const struct place_costs *costs,
                        struct place_result *result)
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

/* ---- reasons ---- */

static void explain(struct placer *p, const struct node *node, const char *before,
                    char reason[static 512])
{
    int root = place_root(p, node->id), able = 0;
    const struct place_node *own = &p->nodes[node->id], *group = &p->nodes[root];
    for (int i = 0; i < p->n_devices; i++)
        able += own->kernel_types >> p->type_of[i] & 1;
    const struct place_device *device = place_device(p, group->chosen);
    if (!strcmp(before, node->assigned))
        snprintf(reason, 512, "placed there before");
    else if (why_soft(p, node, reason))
        return;
    else if (device->tasks > 0)
        snprintf(reason, 512, "one in each of %d %ss", device->tasks, device->name.job);
    else if (node_is(node, "Variable") && group->by_bytes)
        snprintf(reason, 512, "variable, by bytes: %.0f of %.0f", own->held, p->by_bytes_total);
    else if (*node->device)
        snprintf(reason, 512, "asked for %s", node->device);
    else if (root != node->id)
        snprintf(reason, 512, "with %s", graph_node(p->graph, root)->name);
    else if (p->best && !group->settled && p->n_devices > 1)
        snprintf(reason, 512, "simulated: %.1f to %.1f us", p->best[node->id].start / 1e3,
                 p->best[node->id].finish / 1e3);
    else if (node_is(node, "Variable"))
        snprintf(reason, 512, "variable");
    else if (p->n_devices == 1)
        snprintf(reason, 512, "only device");
    else if (able == 1)
        snprintf(reason, 512, "only device with a kernel");
    else if (group->members > 1)
        snprintf(reason, 512, "first device for %d that share one", group->members);
    else
        snprintf(reason, 512, "first device with a kernel");
}

/* Tells each clock the cluster's number of workers, unless the graph states it. */
static int tell_clocks(struct placer *p, struct graph *graph)
{
    /* The number of tasks of a job with a node in each of them; 0: there is none. */
    int workers = 0;
    for (int i = 0; i < p->n; i++) {
        int n = place_device(p, place_group(p, i)->chosen)->tasks;
        workers = n > workers ? n : workers;
    }

    for (size_t i = 0; workers > 0 && i < graph->nodes.n; i++) {
        struct node *node = graph_node(graph, (int)i);
        const struct attr_value *known = node_attr(node, "workers");
        if (!known || known->kind != ATTR_INT || known->i || !node_round(node))
            continue;
        const struct attr_value *policy = node_attr(node, "policy");
        if (policy && policy_check_workers(policy->s, workers, p->err))
            return node_fail(node, p->err);
        if (graph_set_attr(graph, node, &(struct attr){"workers", attr_int(workers)}, p->err))
            return p->err->code;
    }
    return 0;
}

/* Forms groups and finds the devices possible for each; afterwards each has one. */
static int prepare(struct placer *p)
{
    p->nodes = arena_array(&p->arena, (size_t)p->n, sizeof *p->nodes);
    p->initial = place_find_initial(p->graph, &p->arena);
    for (int i = 0; i < p->n; i++)
        p->nodes[i].parent = i;
    if (find_types(p))
        return p->err->code;
    graph_each(node, p->graph) {
        if (read_request(p, node))
            return p->err->code;
        struct place_node *own = &p->nodes[node->id];
        for (int j = 0; j < p->n_types; j++)
            if (kernel_find(p->kernels, node, p->types[j]))
                own->kernel_types |= 1u << j;
        own->wanted = own->asked;
        if (p->soft && *own->asked.type && !has_kernel(p, node->id))
            give_way(&own->wanted);
        /* A resource is memory of one task, which no other task can use. */
        for (int j = 0; j < node->n_inputs; j++)
            if (node_takes_ref(node, j) ||
                graph_output(p->graph, node->inputs[j])->type == RESOURCE)
                place_join(p, node->inputs[j].node, node->id);
        const struct attr_value *groups = node_attr(node, "_class");
        for (int j = 0; groups && j < groups->n; j++) {
            const struct node *leader = group_leader(p->graph, groups->strings[j]);
            if (leader && leader != node)
                place_join(p, leader->id, node->id);
        }
    }
    if (join_near(p))
        return p->err->code;
    for (int i = 0; i < p->n; i++) /* the root has the smallest id, and so comes first */
        if (merge_into_group(p, i))
            return p->err->code;
    for (int i = 0; i < p->n; i++)
        if (place_root(p, i) == i && choose(p, i))
            return p->err->code;
    graph_each(node, p->graph) {
        /* A group keeps the device of its first node that had a feasible one. */
        struct place_node *group = place_group(p, node->id);
        for (int j = 0; *node->assigned && !group->settled && j < p->n_devices; j++) {
            if (group->may[j] && !strcmp(place_device(p, j)->text, node->assigned)) {
                group->chosen = j;
                group->settled = true;
            }
        }
    }
    return 0;
}

int place_graph(struct graph *graph, const struct place_options *options, struct error *err)
{
    struct placer p = {.graph = graph,
                       .placement = options->placement,
                       .kernels = options->kernels,
                       .n = (int)graph->nodes.n,
                       .n_devices = (int)options->placement->devices.n,
                       .soft = options->soft,
                       .err = err};
    int code = prepare(&p);
    if (!code && options->model)
        code = place_search(&p, options->model, options->result);
    if (!code) {
        for (size_t i = 0; i < graph->nodes.n; i++) {
            struct node *node = graph_node(graph, (int)i);
            const char *before = node->assigned;
            char reason[512];
            const char *device = place_device(&p, place_group(&p, node->id)->chosen)->text;
            if (strcmp(before, device))
                graph_set_assigned(graph, node, device);
            if (options->note) {
                explain(&p, node, before, reason);
                options->note(options->context, node, reason);
            }
            if (options->moved && why_soft(&p, node, reason))
                options->moved(options->context, node, reason);
        }
    }
    if (!code)
        code = tell_clocks(&p, graph);
    arena_release(&p.arena);
    return code;
}
