/* SPDX-License-Identifier: Apache-2.0
 *
 * Stages of a model that names none. The forward graph is put in a line, and the line is cut so
 * that the longest stage is as short as can be (Narayanan et al., PipeDream, SOSP 2019, section
 * 3.1): a stage takes the time of its nodes and of their gradients', and of what crosses to the
 * next stage and back. Of cuts that are as good, those are taken at which the least crosses.
 *
 * What is computed of fed values alone is not in the line: it goes where it is wanted first.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/device_name.h"
#include "pass/replicate/replicate_private.h"
#include "pass/replicate/replicate_tower.h"

/* A node, or a loop, in the line. */
struct cut_unit {
    int first;
    int place; /* after those of all that it needs */
    double ns; /* with the nodes of its gradient */
};

/* The best way to make so many stages of the units before a cut. */
struct cut_best {
    double longest; /* stage; infinite: there is none */
    double crosses; /* at all cuts */
    int begin;      /* of the last stage */
};

struct stage_cutter {
    struct towers *t;
    int n;
    struct cut_unit *units; /* the line */
    int *unit_of;           /* by first node; -1: none */
    double *ns;             /* by cut: of all units before it */
    double *way;            /* by cut: of what crosses there and back */
    struct cut_best *best;  /* by number of stages * (n + 1) + cut */
};

static bool is_forward(const struct towers *t, int node)
{
    return t->towered[node] && pipeline_phase(t->pipeline, node) == PHASE_FORWARD;
}

static int unit_of(const struct stage_cutter *c, int node)
{
    return is_forward(c->t, node) ? c->unit_of[c->t->pipeline->first[node]] : -1;
}

/* ---- the line ---- */

/* Returns whether a unit depends on more than what is fed: by first node. */
static bool *find_bound(const struct towers *t)
{
    const struct replicator *r = t->r;
    const int *first = t->pipeline->first;
    bool *bound = arena_array(&t->r->arena, r->from->nodes.n + 1, sizeof *bound);
    bool news = true;
    while (news) {
        news = false;
        graph_each_ordered(node, r->from, r->order) {
            bool is_bound = false;
            for (int k = 0; is_forward(t, node->id) && k < node->n_inputs; k++) {
                const struct node *needed = graph_node(r->from, node->inputs[k].node);
                is_bound |= t->towered[needed->id]
                                ? bound[first[needed->id]]
                                : node_is(needed, "Variable") || !node_has(needed, OP_SOURCE);
            }
            news |= is_bound && !bound[first[node->id]];
            bound[first[node->id]] |= is_bound;
        }
    }
    return bound;
}

static void add_units(struct stage_cutter *c)
{
    const struct replicator *r = c->t->r;
    const int *first = c->t->pipeline->first;
    const bool *bound = find_bound(c->t);
    for (size_t i = 0; i < r->from->nodes.n; i++) {
        int node = r->order[i];
        if (!is_forward(c->t, node) || !bound[first[node]] || c->unit_of[first[node]] >= 0)
            continue;
        c->units[c->n] = (struct cut_unit){.first = first[node], .place = (int)i};
        c->unit_of[first[node]] = c->n++;
    }
    for (size_t i = 0; i < r->from->nodes.n; i++) {
        int node = (int)i;
        if (c->t->towered[i] && pipeline_phase(c->t->pipeline, node) == PHASE_BACKWARD)
            node = pipeline_forward_of(c->t, graph_node(r->from, node));
        if (node >= 0 && unit_of(c, node) >= 0)
            c->units[unit_of(c, node)].ns += replicate_node_ns(r, graph_node(r->from, (int)i));
    }
}

static int compare_places(const void *a, const void *b)
{
    const struct cut_unit *left = a, *right = b;
    return left->place != right->place
               ? (left->place > right->place) - (left->place < right->place)
               : (left->first > right->first) - (left->first < right->first);
}

/* A loop as a whole comes after all that it needs, and before all who need something of it. */
static void sort_units(struct stage_cutter *c)
{
    const struct replicator *r = c->t->r;
    bool news = true;
    while (news) {
        news = false;
        graph_each_ordered(node, r->from, r->order) {
            int of = unit_of(c, node->id);
            for (int k = 0; of >= 0 && k < node->n_inputs + node->n_controls; k++) {
                int needed = unit_of(c, node_dependency(node, k).node);
                if (needed < 0 || needed == of || c->units[needed].place < c->units[of].place)
                    continue;
                c->units[of].place = c->units[needed].place + 1;
                news = true;
            }
        }
    }
    if (c->n)
        qsort(c->units, (size_t)c->n, sizeof *c->units, compare_places);
    for (int i = 0; i < c->n; i++)
        c->unit_of[c->units[i].first] = i;
}

/* ---- what cuts cost ---- */

/* The bytes that cross at each cut. */
static double *find_crossing(struct stage_cutter *c)
{
    const struct replicator *r = c->t->r;
    struct arena *arena = &c->t->r->arena;
    double *crossing = arena_array(arena, (size_t)c->n + 2, sizeof *crossing);
    const int *first_output = c->t->first;
    int *last = arena_array(arena, (size_t)c->t->n_outputs + 1, sizeof *last); /* reader */
    graph_each(node, r->from) {
        int reader = unit_of(c, node->id);
        for (int k = 0; k < node->n_inputs; k++) {
            int *of = &last[first_output[node->inputs[k].node] + node->inputs[k].slot];
            *of = reader > *of ? reader : *of;
        }
    }
    graph_each(node, r->from) {
        int unit = unit_of(c, node->id);
        for (int k = 0; unit >= 0 && k < node->n_outputs; k++)
            for (int cut = unit + 1; cut <= last[first_output[node->id] + k]; cut++)
                crossing[cut] += replicate_elements(c->t->r, (struct edge){node->id, k}) *
                                 (double)dtype_bytes(node->outputs[k].type);
    }
    return crossing;
}

/* ---- the cuts ---- */

/* The best of all places where the last of so many stages before the cut may begin. */
static struct cut_best find_best(const struct stage_cutter *c, int stages, int cut)
{
    struct cut_best best = {.longest = INFINITY};
    for (int begin = cut - 1; begin >= 0; begin--) {
        double ns = c->ns[cut] - c->ns[begin];
        if (ns > best.longest)
            break;
        const struct cut_best *rest = &c->best[(stages - 1) * (c->n + 1) + begin];
        double longest = fmax(rest->longest, ns + c->way[begin] + c->way[cut]);
        double crosses = rest->crosses + c->way[begin];
        if (longest < best.longest || (longest == best.longest && crosses < best.crosses))
            best = (struct cut_best){longest, crosses, begin};
    }
    return best;
}

int pipeline_cut(struct towers *t, int n_stages)
{
    struct replicator *r = t->r;
    struct pipeline *p = t->pipeline;
    size_t n = r->from->nodes.n + 1;
    if (p->n_stages)
        return error_set(r->err, ERR_DATA,
                         "--stages is for a model without devices, but a node asks for %s",
                         p->devices[0]);
    for (int i = 0; i < n_stages; i++)
        if (!(p->devices[i] = towers_name_device(t, i)))
            return r->err->code;
    p->n_stages = n_stages;
    struct stage_cutter c = {.t = t,
                             .units = arena_array(&r->arena, n, sizeof *c.units),
                             .unit_of = arena_array(&r->arena, n, sizeof *c.unit_of),
                             .ns = arena_array(&r->arena, n + 1, sizeof *c.ns),
                             .way = arena_array(&r->arena, n + 1, sizeof *c.way)};
    memset(c.unit_of, -1, n * sizeof *c.unit_of);
    add_units(&c);
    sort_units(&c);
    c.best = arena_array(&r->arena, (size_t)(n_stages + 1) * (size_t)(c.n + 1), sizeof *c.best);
    struct error ignored = ERROR_INIT;
    struct device_name from = device_name_open(), to = device_name_open();
    struct cost_way way = {0, 0};
    if (n_stages > 1 && !device_name_parse(&from, p->devices[0], &ignored) &&
        !device_name_parse(&to, p->devices[1], &ignored))
        way = cost_way(&from, &to, r->options->cluster, r->options->measured);
    const double *crossing = find_crossing(&c);
    for (int i = 0; i < c.n; i++)
        c.ns[i + 1] = c.ns[i] + c.units[i].ns;
    for (int i = 1; i < c.n; i++)
        c.way[i] = 2 * (way.latency + way.per_byte * crossing[i]);
    if (n_stages > c.n)
        return error_set(r->err, ERR_DATA,
                         "--stages %d: the model has %d nodes that compute of variables", n_stages,
                         c.n);
    for (int stages = 0; stages <= n_stages; stages++)
        for (int cut = 0; cut <= c.n; cut++)
            c.best[stages * (c.n + 1) + cut] =
                stages ? find_best(&c, stages, cut)
                       : (struct cut_best){.longest = cut ? INFINITY : 0};
    for (int stage = n_stages - 1, end = c.n; stage >= 0; stage--) {
        int begin = c.best[(stage + 1) * (c.n + 1) + end].begin;
        for (int i = begin; i < end; i++) {
            p->stage[c.units[i].first] = stage;
            p->told[c.units[i].first] = true;
        }
        end = begin;
    }
    return 0;
}
