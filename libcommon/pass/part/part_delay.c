/* SPDX-License-Identifier: Apache-2.0
 *
 * Receiving late (the 2015 white paper, section 5.2). A Recv has no inputs, so all would start with
 * the step, and received values would occupy memory until used. Here a step is simulated, in which
 * each device and link does one thing at a time. It shows when a value is needed, so when it must
 * be sent, and the Recv is made to run `_after` a node of its own part that is over by then.
 *
 * A plan without that node behaves as before. A Recv never waits for a node that comes after a
 * write: readers of the variable after the Recv would then also read it after the write. As the
 * simulated times are respected, the new edges close no cycle.
 *
 * Grouping small values: values of a few KiB from one task to another that exist at nearly the same
 * time share a group, as any message costs both ends some microseconds, whatever its size. A group
 * waits for its last member. So that no two values wait for each other, each node has a level, the
 * largest number of crossings before it, and members of a group are of one level: nodes that need a
 * member are of a higher one. Nodes that may wait for more than their edges say have no group:
 * those after a write, which waits for reads, and those after control flow.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/access_nodes.h"
#include "pass/part/part_private.h"

#define SMALL_BYTES 65536 /* sent along with its announcement */
#define ASSUMED_DIM 32
#define AHEAD 0.05 /* of the step: allowed error of the estimates */

#define MEMBER_BYTES_MAX 4096
#define GROUP_MAX 1024
#define MEMBER_WAIT_NS 1e5 /* longest wait of a value for others of its group, */
#define MEMBER_WAIT 0.125  /* or this part of the step */

/* The device that a part runs on. */
struct delay_device {
    struct device_name name;
    struct cost_rates rates;
    double speed;
};

/* A node of the source. */
struct delay_node {
    bool after_write;
    bool apart;           /* after a write or control flow */
    int level;            /* largest number of crossings before it */
    double start, finish; /* in the simulated step */
};

struct delayer {
    struct cutter *c;
    struct delay_device *devices; /* by part */
    struct delay_node *nodes;
    bool is_grouped; /* some values cross in a group */
    double *arrival; /* by crossing; < 0: not known yet */
    double *need;    /* by crossing: start of the first node that needs it */
    double *free_part, *free_link;
    double end;
};

static const struct part_crossing *crossing_at(const struct delayer *d, int i)
{
    return &d->c->parts->crossings.items[i];
}

static double bytes_of(const struct delayer *d, const struct part_crossing *crossing)
{
    const struct node *node = graph_node(d->c->from, crossing->edge.node);
    return crossing->edge.slot < 0 ? 0
                                   : cost_bytes(&node->outputs[crossing->edge.slot], ASSUMED_DIM);
}

static double way_ns(const struct delayer *d, const struct part_crossing *crossing)
{
    struct cost_way way = cost_way(&d->devices[crossing->from].name, &d->devices[crossing->to].name,
                                   d->c->estimates->cluster, d->c->estimates->costs);
    return way.latency + bytes_of(d, crossing) * way.per_byte;
}

/* ---- simulating a step ---- */

static int find_way(const struct delayer *d, struct edge edge, int to)
{
    if (d->c->part[edge.node] == to)
        return -1;
    for (int i = d->c->head[edge.node]; i >= 0; i = crossing_at(d, i)->next)
        if (crossing_at(d, i)->to == to && crossing_at(d, i)->edge.slot == edge.slot)
            return i;
    return -1;
}

/* Returns when the value is available. */
static double arrive(struct delayer *d, struct edge edge, const struct node *node)
{
    const struct cutter *c = d->c;
    int to = c->part[node->id], way = find_way(d, edge, to);
    double ready = d->nodes[edge.node].finish;
    if (way < 0)
        return ready;
    if (d->arrival[way] < 0) {
        double *link = &d->free_link[c->part[edge.node] * c->n + to];
        ready = ready > *link ? ready : *link;
        *link = d->arrival[way] = ready + way_ns(d, crossing_at(d, way));
    }
    return d->arrival[way];
}

/* ---- from the last transfer to the first ---- */

static int by_link_and_need(const void *a, const void *b, void *context)
{
    const struct delayer *d = context;
    int x = *(const int *)a, y = *(const int *)b;
    const struct part_crossing *p = crossing_at(d, x), *q = crossing_at(d, y);
    int link = p->from * d->c->n + p->to, other = q->from * d->c->n + q->to;
    if (link != other)
        return link < other ? -1 : 1;
    if (d->need[x] != d->need[y])
        return d->need[x] > d->need[y] ? -1 : 1;
    return x - y;
}

/* ---- groups ---- */

static bool can_join(const struct delayer *d, const struct part_crossing *crossing)
{
    const struct device_name *from = &d->devices[crossing->from].name;
    const struct device_name *to = &d->devices[crossing->to].name;
    const struct node *node = graph_node(d->c->from, crossing->edge.node);
    const struct node_output *output =
        node->outputs + (crossing->edge.slot < 0 ? 0 : crossing->edge.slot);
    return crossing->edge.slot >= 0 && crossing->frame == FRAME_ROOT && crossing->reader < 0 &&
           crossing->bytes >= 0 && crossing->bytes <= MEMBER_BYTES_MAX &&
           !d->nodes[node->id].apart && !output->is_ref && output->type != STRING &&
           output->type != RESOURCE && !strcmp(from->type, "CPU") && !strcmp(to->type, "CPU") &&
           !device_name_same_task(from, to);
}

static int by_way_and_time(const void *a, const void *b, void *context)
{
    const struct delayer *d = context;
    const struct part_crossing *x = crossing_at(d, *(const int *)a);
    const struct part_crossing *y = crossing_at(d, *(const int *)b);
    const struct delay_node *p = &d->nodes[x->edge.node], *q = &d->nodes[y->edge.node];
    int keys[] = {x->from - y->from, x->to - y->to, p->level - q->level,
                  (p->finish > q->finish) - (p->finish < q->finish)};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i])
            return keys[i];
    return *(const int *)a - *(const int *)b;
}

/* Sets the group's name at both ends of each member: the name of the first Send, extended. */
static int name_group(struct delayer *d, const int *members, size_t n)
{
    struct cutter *c = d->c;
    const char *name = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct part_crossing *crossing = crossing_at(d, members[i]);
        struct graph *to = part_at(c, crossing->to), *from = part_at(c, crossing->from);
        struct node *recv = graph_node(to, crossing->recv);
        struct node *send = graph_find(from, node_string(recv, "tensor_name"));
        name = name ? name : arena_printf(&c->arena, "%s/group", send->name);
        struct attr attr = {NODE_GROUP, attr_string(name)};
        if (graph_set_attr(to, recv, &attr, c->err) || graph_set_attr(from, send, &attr, c->err))
            return c->err->code;
    }
    d->is_grouped = true;
    return 0;
}

static int find_groups(struct delayer *d)
{
    double wait = d->end * MEMBER_WAIT > MEMBER_WAIT_NS ? d->end * MEMBER_WAIT : MEMBER_WAIT_NS;
    part_node_vec may = VEC_INIT;
    for (size_t i = 0; i < d->c->parts->crossings.n; i++)
        if (can_join(d, crossing_at(d, (int)i)))
            vec_push_in(&d->c->arena, &may, (int)i);
    if (may.n)
        qsort_r(may.items, may.n, sizeof *may.items, by_way_and_time, d);
    for (size_t first = 0, i = 1; i <= may.n; i++) {
        const struct part_crossing *x = crossing_at(d, may.items[first]);
        const struct part_crossing *y = i < may.n ? crossing_at(d, may.items[i]) : NULL;
        if (y && y->from == x->from && y->to == x->to &&
            d->nodes[y->edge.node].level == d->nodes[x->edge.node].level &&
            d->nodes[y->edge.node].finish <= d->nodes[x->edge.node].finish + wait &&
            (int64_t)(i - first) < GROUP_MAX)
            continue;
        if (i - first > 1 && name_group(d, may.items + first, i - first))
            break;
        first = i;
    }
    return d->c->err->code;
}

/* ---- the whole pass ---- */

/* The attribute names a node of the Recv's part. The plan ignores it if it closes a cycle. */
static int wait_after(struct cutter *c, const struct part_crossing *crossing, int node)
{
    const char **name = arena_alloc(&c->arena, sizeof *name);
    struct attr attr = {"_after", {.kind = ATTR_LIST_STRING, .n = 1, .strings = name}};
    struct graph *graph = part_at(c, crossing->to);
    *name = graph_node(c->from, node)->name;
    return graph_set_attr(graph, graph_node(graph, crossing->recv), &attr, c->err);
}

int part_delay(struct cutter *c)
{
    size_t n = c->from->nodes.n, n_crossings = c->parts->crossings.n, parts = (size_t)c->n;
    struct delayer d = {.c = c};
    d.nodes = arena_array(&c->arena, n + 1, sizeof *d.nodes);
    d.arrival = arena_array(&c->arena, n_crossings + 1, sizeof *d.arrival);
    d.need = arena_array(&c->arena, n_crossings + 1, sizeof *d.need);
    d.free_part = arena_array(&c->arena, parts + 1, sizeof *d.free_part);
    d.free_link = arena_array(&c->arena, parts * parts + 1, sizeof *d.free_link);
    for (size_t i = 0; i < n_crossings; i++) {
        d.arrival[i] = -1;
        d.need[i] = HUGE_VAL;
    }
    const struct cluster *cluster = c->estimates->cluster;
    d.devices = arena_array(&d.c->arena, (size_t)c->n + 1, sizeof *d.devices);
    for (int i = 0; i < c->n; i++) {
        struct delay_device *device = &d.devices[i];
        device->name = c->parts->parts.items[i].name;
        struct device_facts facts = cost_facts(&device->name, cluster, c->estimates->costs);
        device->rates = cost_rates_of(device->name.type, &facts);
        device->speed = facts.speed > 0 ? facts.speed : 1;
    }

    /* If a loop writes, the nodes after that write are not known: delay nothing. */
    graph_each_ordered(node, c->from, c->order) {
        struct delay_node *own = &d.nodes[node->id];
        for (int k = 0; k < node->n_inputs; k++)
            own->after_write |= node_writes_ref(node, k);
        own->apart = own->after_write || node_has(node, OP_CONTROL_FLOW);
        if (own->after_write && c->frames->frame[node->id] != FRAME_ROOT)
            return 0;
        for (int k = 0; k < node->n_inputs + node->n_controls; k++) {
            int from = node_dependency(node, k).node;
            int level = d.nodes[from].level + (c->part[from] != c->part[node->id]);
            own->after_write |= d.nodes[from].after_write;
            own->apart |= d.nodes[from].apart;
            own->level = level > own->level ? level : own->level;
        }
    }

    graph_each_ordered(node, c->from, c->order) {
        struct delay_node *own = &d.nodes[node->id];
        double *part = &d.free_part[c->part[node->id]], ready = *part;
        for (int j = 0; j < node->n_inputs + node->n_controls; j++) {
            struct edge edge = node_dependency(node, j);
            if (graph_is_back_edge(c->from, node, edge))
                continue;
            double there = arrive(&d, edge, node);
            ready = there > ready ? there : ready;
        }
        const struct delay_device *device = &d.devices[c->part[node->id]];
        double ns;
        if (!costs_find(c->estimates->costs, node, device->name.type, &ns))
            ns = cost_estimate_ns(&(struct cost_query){node, c->from, ASSUMED_DIM}, &device->rates);
        own->start = ready;
        own->finish = ready + ns / device->speed;
        if (own->finish > ready)
            *part = own->finish;
        d.end = own->finish > d.end ? own->finish : d.end;
        for (int j = 0; j < node->n_inputs; j++) {
            int way = find_way(&d, node->inputs[j], c->part[node->id]);
            if (way >= 0 && ready < d.need[way])
                d.need[way] = ready;
        }
    }
    if (find_groups(&d))
        return c->err->code;

    /* The value needed last on a link is considered first: earlier ones must leave the link free
     * for it. */
    part_node_vec ways = VEC_INIT;
    for (int i = 0; i < (int)c->parts->crossings.n; i++)
        if (d.arrival[i] >= 0 && d.need[i] <= d.end)
            vec_push_in(&c->arena, &ways, i);
    if (ways.n)
        qsort_r(ways.items, ways.n, sizeof *ways.items, by_link_and_need, &d);
    double leave = 0;
    for (size_t i = 0; i < ways.n; i++) {
        const struct part_crossing *crossing = crossing_at(&d, ways.items[i]);
        const struct part_crossing *before = crossing_at(&d, ways.items[i ? i - 1 : 0]);
        bool same = i && before->from == crossing->from && before->to == crossing->to;
        double need = d.need[ways.items[i]], ns = way_ns(&d, crossing);
        leave = (same && leave < need ? leave : need) - ns;
        double margin = ns > d.end * AHEAD ? ns : d.end * AHEAD;
        if (crossing->frame == FRAME_ROOT && crossing->reader < 0 &&
            bytes_of(&d, crossing) > SMALL_BYTES) {
            /* Find the node of the part that is over last before that time; with groups, one that
             * comes after no grouped value of a higher level. */
            int best = -1, level = d.nodes[crossing->edge.node].level + 1;
            for (int j = 0; j < (int)c->from->nodes.n; j++) {
                const struct delay_node *node = &d.nodes[j];
                if (c->part[j] == crossing->to && !node->after_write &&
                    (!d.is_grouped || (!node->apart && node->level <= level)) &&
                    c->frames->frame[j] == FRAME_ROOT && node->finish > node->start &&
                    node->finish <= leave - margin &&
                    (best < 0 || node->finish > d.nodes[best].finish))
                    best = j;
            }
            if (best >= 0 && wait_after(c, crossing, best))
                break;
        }
    }
    return c->err->code;
}
