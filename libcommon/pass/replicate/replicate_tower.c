/* SPDX-License-Identifier: Apache-2.0
 *
 * In-graph replication: the part of the graph that computes with fed rows is copied into each
 * tower, which gets a part of the rows; one driver runs all towers. Their results are combined, and
 * the nodes that follow, above all the update, exist once. Towers may be micro-batches, which pass
 * through the stages of a pipeline.
 *
 * A node of the source exists either once, or once in each tower. Between the two are two kinds of
 * node: those that split a feed, and those that combine the values of all towers.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/access_nodes.h"
#include "graph/device_name.h"
#include "graph/frames.h"
#include "graph/op_cost.h"
#include "pass/replicate/replicate_plan.h"

struct towers {
    struct replicator *r;
    int n;
    const char *prefix;         /* of all new names; no name of the source begins with it */
    const char **devices;       /* by tower; with a pipeline all are the first stage's */
    const char *shard;          /* of variables; "": any */
    bool *towered;              /* by node: it is in each tower */
    int *feed;                  /* by node: a split feed that it depends on, or -1 */
    struct feed_parts **parted; /* by node: of a feed; NULL: not yet */
    int **copies;               /* by tower and node: node of the result */
    struct pipeline *pipeline;  /* towers are its micro-batches; NULL: each has a device */
};

/* Returns the outermost loop that contains the node; FRAME_ROOT: none. */
static int towers_loop(const struct towers *t, const struct node *node)
{
    const struct frames *frames = t->r->w.frames;
    int frame = frames->frame[node->id];
    if (frame == FRAME_ROOT)
        frame = frames_output(frames, node);
    while (frame != FRAME_ROOT && frames->frames.items[frame].parent != FRAME_ROOT)
        frame = frames->frames.items[frame].parent;
    return frame;
}

/* Returns the pattern of towers' devices with the number for its "*"; NULL with the error set. */
static const char *towers_name_device(struct towers *t, int k)
{
    struct replicator *r = t->r;
    const char *pattern = r->options->tower_device ? r->options->tower_device : WORKER_DEVICE;
    struct device_name name;
    struct error why = ERROR_INIT;
    const char *text = device_pattern_text(&r->w.arena, pattern, k);
    if (!text || device_name_parse(&name, text, &why)) {
        error_set(r->w.err, ERR_USAGE,
                  "--towers '%s' is no device with a '*' for the tower's number", pattern);
        return NULL;
    }
    t->shard = *name.job && !r->options->pipeline ? SHARD_DEVICE : "";
    return device_name_text(&r->w.to->arena, &name);
}

/* ---- pipelines ----
 *
 * The towers are micro-batches of one batch, which pass through stages. Each stage has a part of
 * the model on a device of its own.
 *
 * A stage's work on a micro-batch is an item: forward, or backward. A stage runs its items one
 * after another, in the order of the schedule; no node of an item begins before the previous item
 * has ended. Forward items depend on items of the same micro-batch on earlier stages, and backward
 * items on forward ones and on those of later stages, so that the orders cannot deadlock (Narayanan
 * et al., Memory-Efficient Pipeline-Parallel DNN Training, ICML 2021: PipeDream-Flush; Huang et
 * al., GPipe, NeurIPS 2019). */

enum item_phase {
    PHASE_NONE, /* no part of an item: no gradient needs it */
    PHASE_FORWARD,
    PHASE_BACKWARD
};

/* A node of the result at the end of a backward item. */
struct item_end {
    int stage, tower, node;
};

/* A node of the source, or a loop, which is on one stage as a whole. */
struct pipeline_unit {
    int stage;             /* of nodes in towers and those that they need; -1: none */
    enum item_phase phase; /* of nodes in towers */
    bool is_told;          /* the script, or a cut, has set its stage */
    bool is_free;          /* it depends on nothing that is on a stage */
    bool is_bound;         /* forward, it depends on more than the feeds */
    int in_line;           /* its position in the line that is cut; -1: none */
};

struct pipeline {
    int n_stages;
    const char **devices; /* by stage */
    int *first;           /* by node of the source: the first node of its loop, or itself */
    struct pipeline_unit *units;
    VEC(struct item_end) ends; /* sums of gradients */
};

static struct pipeline_unit *pipeline_unit(const struct pipeline *pipeline, int node)
{
    return &pipeline->units[pipeline->first[node]];
}

/* ---- stages ----
 *
 * The script's devices are the stages, in the order in which the forward graph reaches them. A node
 * without a device goes to the stage of its inputs: a forward node to the latest of these; a
 * backward node to that of the forward node whose gradient it computes, but to no later one than
 * its incoming gradients. */

static bool has_phase(const struct towers *t, int node, enum item_phase phase)
{
    return t->towered[node] && pipeline_unit(t->pipeline, node)->phase == phase;
}

/* Moves nodes, in their order or in the opposite one, until none moves any more. */
static void move_until_still(struct towers *t, enum item_phase phase, bool backwards,
                             bool (*move)(struct towers *, const struct node *))
{
    size_t n = t->r->w.from->nodes.n;
    for (bool news = true; news;) {
        news = false;
        for (size_t i = 0; i < n; i++) {
            int node = t->r->w.order[backwards ? n - 1 - i : i];
            news |= has_phase(t, node, phase) && move(t, graph_node(t->r->w.from, node));
        }
    }
}

/* Returns the forward node whose gradient the node computes, found by its scope; -1: none. */
static int forward_of(const struct towers *t, const struct node *node)
{
    for (const char *end = strstr(node->name, "_grad/"); end; end = strstr(end + 1, "_grad/"))
        for (const char *begin = node->name; begin && begin < end; begin = strchr(begin, '/')) {
            begin += *begin == '/';
            const char *name = arena_printf(&t->r->w.arena, "%.*s", (int)(end - begin), begin);
            const struct node *found = graph_find(t->r->w.from, name);
            if (found && has_phase(t, found->id, PHASE_FORWARD))
                return found->id;
        }
    return -1;
}

/* ---- stages of a model without devices ----
 *
 * The forward graph is put into a line, and the line is cut so that the longest stage is as short
 * as possible (Narayanan et al., PipeDream, SOSP 2019, section 3.1): a stage takes the time of its
 * nodes, of their gradients, and of its transfers to the next stage and back. Among equally good
 * cuts the ones with the least transfer time are taken.
 *
 * Nodes computed from fed values alone are not in the line: they go where they are needed first. */

/* A node, or a loop, in the line; and the cut before it. */
struct cut_unit {
    int first;
    int place;     /* after those of all its dependencies */
    double ns;     /* with the nodes of its gradient */
    double before; /* the time of all units before the cut */
    double way;    /* of the transfers there and back */
};

/* The best way to make a number of stages of the units before a cut. */
struct cut_best {
    double longest; /* stage; infinite: there is no way */
    double crosses; /* of the transfers at all cuts */
    int begin;      /* of the last stage */
};

struct stage_cutter {
    struct towers *t;
    int n;
    struct cut_unit *units; /* the line, and its end */
    struct cut_best *best;  /* by number of stages * (n + 1) + cut */
};

static int unit_of(const struct stage_cutter *c, int node)
{
    return has_phase(c->t, node, PHASE_FORWARD) ? pipeline_unit(c->t->pipeline, node)->in_line : -1;
}

/* ---- the line ---- */

/* Forward nodes that depend on more than the feeds. */
static bool bind_unit(struct towers *t, const struct node *node)
{
    const struct graph *from = t->r->w.from;
    struct pipeline_unit *unit = pipeline_unit(t->pipeline, node->id);
    bool before = unit->is_bound;
    for (int k = 0; k < node->n_inputs; k++) {
        const struct node *needed = graph_node(from, node->inputs[k].node);
        unit->is_bound |= t->towered[needed->id]
                              ? pipeline_unit(t->pipeline, needed->id)->is_bound
                              : node_is(needed, "Variable") || !node_has(needed, OP_SOURCE);
    }
    return unit->is_bound != before;
}

static int compare_places(const void *a, const void *b)
{
    const struct cut_unit *left = a, *right = b;
    return left->place != right->place ? left->place - right->place : left->first - right->first;
}

static void make_line(struct stage_cutter *c)
{
    const struct replicator *r = c->t->r;
    struct pipeline *p = c->t->pipeline;
    move_until_still(c->t, PHASE_FORWARD, false, bind_unit);
    graph_each_ordered(node, r->w.from, r->w.order) {
        struct pipeline_unit *unit = pipeline_unit(p, node->id);
        if (!has_phase(c->t, node->id, PHASE_FORWARD) || !unit->is_bound || unit->in_line >= 0)
            continue;
        c->units[c->n] = (struct cut_unit){.first = p->first[node->id], .place = (int)node_at};
        unit->in_line = c->n++;
    }
    graph_each(node, r->w.from) {
        bool is_back = has_phase(c->t, node->id, PHASE_BACKWARD);
        int forward = is_back ? forward_of(c->t, node) : node->id;
        int unit = forward >= 0 ? unit_of(c, forward) : -1;
        if (unit >= 0)
            c->units[unit].ns += replicate_node_ns(r, node);
    }
    /* A loop as a whole comes after all its dependencies, and before all its users. */
    for (bool news = true; news;) {
        news = false;
        graph_each_ordered(node, r->w.from, r->w.order) {
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
        p->units[c->units[i].first].in_line = i;
}

/* ---- what cuts cost ---- */

/* Finds the time before each cut, and that of the transfers at it. */
static void price_cuts(struct stage_cutter *c, struct cost_way way)
{
    const struct replicator *r = c->t->r;
    struct arena *arena = &c->t->r->w.arena;
    int *first_output = arena_array(arena, r->w.from->nodes.n + 1, sizeof *first_output);
    graph_each(node, r->w.from)
        first_output[node->id + 1] = first_output[node->id] + node->n_outputs;
    int *last = arena_array(arena, (size_t)first_output[r->w.from->nodes.n] + 1, sizeof *last);
    graph_each(node, r->w.from) {
        int reader = unit_of(c, node->id);
        for (int k = 0; k < node->n_inputs; k++) {
            int *of = &last[first_output[node->inputs[k].node] + node->inputs[k].slot];
            *of = reader > *of ? reader : *of;
        }
    }
    graph_each(node, r->w.from) {
        int unit = unit_of(c, node->id);
        for (int k = 0; unit >= 0 && k < node->n_outputs; k++)
            for (int cut = unit + 1; cut <= last[first_output[node->id] + k]; cut++)
                c->units[cut].way += cost_bytes(&node->outputs[k], r->options->assume);
    }
    for (int i = 1; i < c->n; i++)
        c->units[i].way = 2 * (way.latency + way.per_byte * c->units[i].way);
    for (int i = 0; i < c->n; i++)
        c->units[i + 1].before = c->units[i].before + c->units[i].ns;
}

/* Sets the stages of the forward nodes in the line. */
static int cut_stages(struct towers *t, int n_stages)
{
    struct replicator *r = t->r;
    struct pipeline *p = t->pipeline;
    struct stage_cutter c = {
        .t = t, .units = arena_array(&r->w.arena, r->w.from->nodes.n + 2, sizeof *c.units)};
    if (p->n_stages)
        return error_set(r->w.err, ERR_DATA,
                         "--stages is for a model without devices, but a node asks for %s",
                         p->devices[0]);
    for (int i = 0; i < n_stages; i++)
        if (!(p->devices[i] = towers_name_device(t, i)))
            return r->w.err->code;
    p->n_stages = n_stages;
    make_line(&c);
    if (n_stages > c.n)
        return error_set(r->w.err, ERR_DATA,
                         "--stages %d: the model has %d nodes that compute of variables", n_stages,
                         c.n);
    struct error ignored = ERROR_INIT;
    struct device_name from = device_name_open(), to = device_name_open();
    struct cost_way way = {0, 0};
    if (n_stages > 1 && !device_name_parse(&from, p->devices[0], &ignored) &&
        !device_name_parse(&to, p->devices[1], &ignored))
        way = cost_way(&from, &to, r->options->cluster, r->options->measured);
    price_cuts(&c, way);
    c.best = arena_array(&r->w.arena, (size_t)(n_stages + 1) * (size_t)(c.n + 1), sizeof *c.best);
    for (int stages = 0; stages <= n_stages; stages++)
        for (int cut = 0; cut <= c.n; cut++) {
            /* All places where the last of the stages before the cut may begin. */
            struct cut_best *best = &c.best[stages * (c.n + 1) + cut];
            best->longest = stages || cut ? INFINITY : 0;
            for (int begin = cut - 1; stages && begin >= 0; begin--) {
                double ns = c.units[cut].before - c.units[begin].before;
                if (ns > best->longest)
                    break;
                const struct cut_best *rest = &c.best[(stages - 1) * (c.n + 1) + begin];
                double longest = fmax(rest->longest, ns + c.units[begin].way + c.units[cut].way);
                double crosses = rest->crosses + c.units[begin].way;
                if (longest < best->longest ||
                    (longest == best->longest && crosses < best->crosses))
                    *best = (struct cut_best){longest, crosses, begin};
            }
        }
    for (int stage = n_stages, end = c.n; stage > 0; stage--) {
        int begin = c.best[stage * (c.n + 1) + end].begin;
        for (int i = begin; i < end; i++) {
            p->units[c.units[i].first].stage = stage - 1;
            p->units[c.units[i].first].is_told = true;
        }
        end = begin;
    }
    return 0;
}

/* ---- the script's devices ---- */

/* Returns the stage of the node's device, which is added if it is new and `is_new`; -1: none. */
static int stage_of_device(struct towers *t, const struct node *node, bool is_new)
{
    struct pipeline *p = t->pipeline;
    struct device_name name;
    struct error ignored = ERROR_INIT;
    if (!*node->device || device_name_parse(&name, node->device, &ignored))
        return -1;
    const char *device = device_name_text(&t->r->w.to->arena, &name);
    for (int i = 0; i < p->n_stages; i++)
        if (!strcmp(p->devices[i], device))
            return i;
    if (!is_new)
        return -1;
    p->devices[p->n_stages] = device;
    return p->n_stages++;
}

static int take_devices(struct towers *t, enum item_phase phase)
{
    graph_each_ordered(node, t->r->w.from, t->r->w.order) {
        struct pipeline_unit *unit = pipeline_unit(t->pipeline, node->id);
        if (!has_phase(t, node->id, phase) || !*node->device)
            continue;
        int stage = stage_of_device(t, node, phase == PHASE_FORWARD);
        if (stage < 0)
            return node_refuse(node, t->r->w.err, "%s is no stage of the forward graph",
                               node->device);
        if (unit->is_told && unit->stage != stage)
            return node_refuse(node, t->r->w.err,
                               "it asks for another device than the rest of its loop: %s",
                               node->device);
        unit->is_told = true;
        unit->stage = stage;
    }
    return 0;
}

/* ---- all other nodes ---- */

/* Moves backward nodes to no later stage than the gradients that they get, all others to the latest
 * of their dependencies, if these have stages. */
static bool follow_needs(struct towers *t, const struct node *node)
{
    struct pipeline_unit *unit = pipeline_unit(t->pipeline, node->id);
    int before = unit->stage;
    for (int i = 0; !unit->is_told && i < node->n_inputs + node->n_controls; i++) {
        int needed = node_dependency(node, i).node;
        int there = t->towered[needed]
                        ? pipeline_unit(t->pipeline, needed)->stage
                        : stage_of_device(t, graph_node(t->r->w.from, needed), false);
        bool moves = unit->phase == PHASE_BACKWARD
                         ? has_phase(t, needed, PHASE_BACKWARD) && there < unit->stage
                         : there > unit->stage;
        unit->stage = moves ? there : unit->stage;
    }
    return unit->stage != before;
}

/* A node that depends on nothing on a stage, such as labels, goes where it is needed first. */
static bool lower_free(struct towers *t, const struct node *node)
{
    int stage = pipeline_unit(t->pipeline, node->id)->stage;
    bool news = false;
    for (int i = 0; i < node->n_inputs + node->n_controls; i++) {
        struct pipeline_unit *needed = pipeline_unit(t->pipeline, node_dependency(node, i).node);
        if (!needed->is_free || needed->stage <= stage)
            continue;
        needed->stage = stage;
        news = true;
    }
    return news;
}

static void place_rest(struct towers *t)
{
    struct replicator *r = t->r;
    struct pipeline *p = t->pipeline;
    move_until_still(t, PHASE_FORWARD, false, follow_needs);
    for (size_t i = 0; i < t->r->w.from->nodes.n; i++)
        if (p->units[i].phase == PHASE_FORWARD && p->units[i].stage < 0) {
            p->units[i].is_free = true;
            p->units[i].stage = p->n_stages - 1;
        }
    move_until_still(t, PHASE_FORWARD, true, lower_free);
    graph_each(node, r->w.from) { /* a stack is on the stage of the loop that fills it */
        for (int k = 0; k < node->n_inputs && has_phase(t, node->id, PHASE_FORWARD); k++)
            if (node_makes_resource(graph_node(t->r->w.from, node->inputs[k].node)))
                p->units[node->inputs[k].node].stage = pipeline_unit(p, node->id)->stage;
    }
    graph_each(node, t->r->w.from) {
        struct pipeline_unit *unit = pipeline_unit(p, node->id);
        if (!has_phase(t, node->id, PHASE_BACKWARD) || unit->is_told)
            continue;
        /* The preferred stage: that of its first stack, or of its forward node. */
        int forward = forward_of(t, node);
        int stage = forward < 0 ? p->n_stages - 1 : pipeline_unit(p, forward)->stage;
        for (int k = node->n_inputs; k-- > 0;)
            if (node_makes_resource(graph_node(t->r->w.from, node->inputs[k].node)))
                stage = pipeline_unit(p, node->inputs[k].node)->stage;
        if (unit->stage < 0 || stage < unit->stage)
            unit->stage = stage;
    }
    move_until_still(t, PHASE_BACKWARD, false, follow_needs);
    /* Nodes that no gradient needs, and nodes that exist once and that stages read. */
    move_until_still(t, PHASE_NONE, false, follow_needs);
    for (size_t i = r->w.from->nodes.n; i-- > 0;) {
        const struct node *node = graph_node(r->w.from, r->w.order[i]);
        struct pipeline_unit *unit = pipeline_unit(p, node->id);
        bool towered = t->towered[node->id];
        if (towered && unit->stage < 0)
            unit->stage = 0;
        bool reads =
            towered ? unit->phase == PHASE_FORWARD : !has(r, node->id, FACT_DOWN | FACT_UPDATE);
        for (int k = 0; reads && unit->stage >= 0 && k < node->n_inputs; k++) {
            int from = node->inputs[k].node, *of = &pipeline_unit(p, from)->stage;
            if (!t->towered[from] && (*of < 0 || unit->stage < *of))
                *of = unit->stage;
        }
    }
}

/* ---- what is impossible ---- */

/* A node that exists once and comes after towers needs all micro-batches. */
static int check_needs(struct towers *t)
{
    const struct replicator *r = t->r;
    const struct pipeline *p = t->pipeline;
    bool *after_all = arena_array(&t->r->w.arena, r->w.from->nodes.n + 1, sizeof *after_all);
    graph_each_ordered(node, r->w.from, r->w.order) {
        bool towered = t->towered[node->id];
        enum item_phase phase = pipeline_unit(p, node->id)->phase;
        int here = pipeline_unit(p, node->id)->stage;
        for (int k = 0; k < node->n_inputs + node->n_controls; k++) {
            int needed = node_dependency(node, k).node, there = pipeline_unit(p, needed)->stage;
            bool is_wrong = phase == PHASE_FORWARD ? there > here : there < here;
            if (!towered)
                after_all[node->id] |= t->towered[needed] || after_all[needed];
            else if (!has_phase(t, node->id, PHASE_NONE) && !t->towered[needed] &&
                     after_all[needed])
                return node_refuse(node, t->r->w.err,
                                   "a micro-batch cannot wait for '%s', which needs all of them",
                                   graph_node(r->w.from, needed)->name);
            if (phase != PHASE_NONE && has_phase(t, needed, phase) && is_wrong)
                return node_refuse(
                    node, t->r->w.err,
                    "it is on stage %d (%s) and needs '%s' on stage %d (%s), but a pipeline goes "
                    "%s",
                    here, p->devices[here], graph_node(r->w.from, needed)->name, there,
                    p->devices[there],
                    phase == PHASE_FORWARD ? "from each stage to later ones only"
                                           : "back from each stage to earlier ones only");
        }
    }
    return 0;
}

/* ---- the pipeline ---- */

static int find_phases(struct towers *t)
{
    static const unsigned facts[] = {
        [PHASE_FORWARD] = FACT_FORWARD, [PHASE_BACKWARD] = FACT_BACKWARD};
    const struct replicator *r = t->r;
    bool found = false;
    graph_each(node, r->w.from) {
        const struct attr_value *name = node_attr(node, "_loss");
        const struct node *loss = name ? graph_find(r->w.from, name->s) : NULL;
        if (!has(r, node->id, FACT_NEEDED))
            continue;
        found |= loss != NULL;
        if (loss)
            r->facts[loss->id] |= FACT_FORWARD;
        if (has(r, node->id, FACT_MARKED) && t->towered[node->id])
            r->facts[node->id] |= FACT_BACKWARD;
    }
    for (enum item_phase phase = PHASE_FORWARD; phase <= PHASE_BACKWARD; phase++) {
        spread_facts(
            r->w.from, r->w.order, r->facts,
            (struct spread){.fact = facts[phase], .controls = true, .up = true, .loops = true});
        graph_each(node, r->w.from) {
            struct pipeline_unit *unit = pipeline_unit(t->pipeline, node->id);
            if (has(r, node->id, facts[phase]) && t->towered[node->id] &&
                !node_makes_resource(node) && unit->phase == PHASE_NONE)
                unit->phase = phase;
        }
    }
    return found ? 0
                 : error_set(r->w.err, ERR_DATA,
                             "a pipeline goes forward to the loss and back again, but nothing of "
                             "the entry '%s' says what its loss is (_loss)",
                             r->entry->name);
}

/* Makes the pipeline, and finds the stage and phase of all towered nodes. */
static int pipeline_find(struct towers *t)
{
    struct replicator *r = t->r;
    const struct replicate_options *options = r->options;
    size_t n = r->w.from->nodes.n + 1;
    struct pipeline *p = t->pipeline = arena_alloc(&r->w.arena, sizeof *p);
    int *of_loop = arena_array(&r->w.arena, t->r->w.frames->frames.n + 1, sizeof *of_loop);
    p->devices = arena_array(&r->w.arena, n + (size_t)options->stages, sizeof *p->devices);
    p->first = arena_array(&r->w.arena, n, sizeof *p->first);
    p->units = arena_array(&r->w.arena, n, sizeof *p->units);
    graph_each_ordered(node, r->w.from, r->w.order) {
        int loop = towers_loop(t, node);
        if (loop != FRAME_ROOT && !of_loop[loop])
            of_loop[loop] = node->id + 1;
        p->first[node->id] = loop == FRAME_ROOT ? node->id : of_loop[loop] - 1;
        p->units[node->id].stage = p->units[node->id].in_line = -1;
    }
    if (find_phases(t) || take_devices(t, PHASE_FORWARD))
        return r->w.err->code;
    if (!options->stages && !p->n_stages)
        return error_set(r->w.err, ERR_DATA,
                         "no node asks for a device, which would be a stage of the pipeline: "
                         "--stages says how many there shall be");
    if ((options->stages && cut_stages(t, options->stages)) || take_devices(t, PHASE_BACKWARD))
        return r->w.err->code;
    place_rest(t);
    return check_needs(t);
}

/* ---- the order of items ----
 *
 * Control edges order the items: each ends with a NoOp after all its nodes that have no users in
 * it, and the stage's next item begins after that. */

/* The nodes of an item, in the source. */
struct stage_item {
    int stage;
    enum item_phase phase;
    VEC(int) begin; /* depend on no node of it */
    VEC(int) end;   /* have no users in it */
};

static bool is_in(const struct towers *t, const struct stage_item *item, int node)
{
    return has_phase(t, node, item->phase) &&
           pipeline_unit(t->pipeline, node)->stage == item->stage;
}

static void find_item(const struct towers *t, struct stage_item *item)
{
    const struct graph *from = t->r->w.from;
    bool *is_needed = arena_array(&t->r->w.arena, from->nodes.n + 1, sizeof *is_needed);
    graph_each(node, from) {
        bool begins = t->r->w.frames->frame[node->id] == FRAME_ROOT;
        for (int k = 0; is_in(t, item, node->id) && k < node->n_inputs + node->n_controls; k++) {
            int needed = node_dependency(node, k).node;
            is_needed[needed] = true;
            begins &= !is_in(t, item, needed);
        }
        if (begins && is_in(t, item, node->id))
            vec_push_in(&t->r->w.arena, &item->begin, node->id);
    }
    graph_each(node, from) {
        /* Nodes inside of loops, and nodes that may be dead, are not waited for. */
        if (is_in(t, item, node->id) && !is_needed[node->id] &&
            frames_output(t->r->w.frames, node) == FRAME_ROOT &&
            t->r->w.frames->condition[node->id] == CONDITION_NONE)
            vec_push_in(&t->r->w.arena, &item->end, node->id);
    }
}

/* Orders a tower's item after `before` (-1: at once). Returns the NoOp that the item ends with. */
static int add_item(struct towers *t, const struct stage_item *item, int k, int before)
{
    struct replicator *r = t->r;
    const struct pipeline *p = t->pipeline;
    const char *what = item->phase == PHASE_FORWARD ? "forward" : "backward";
    VEC(int) ends = {0};
    for (size_t i = 0; before >= 0 && i < item->begin.n; i++)
        graph_add_control(r->w.to, graph_node(r->w.to, t->copies[k][item->begin.items[i]]), before);
    for (size_t i = 0; i < item->end.n; i++)
        vec_push_in(&t->r->w.arena, &ends, t->copies[k][item->end.items[i]]);
    for (size_t i = 0; item->phase == PHASE_BACKWARD && i < p->ends.n; i++)
        if (p->ends.items[i].stage == item->stage && p->ends.items[i].tower == k)
            vec_push_in(&t->r->w.arena, &ends, p->ends.items[i].node);
    struct node_spec spec = {.op = "NoOp",
                             .name = arena_printf(&r->w.to->arena, "%ss/stage_%d/%s_%d", t->prefix,
                                                  item->stage, what, k),
                             .controls = ends.items,
                             .n_controls = (int)ends.n,
                             .device = p->devices[item->stage]};
    struct node *end = ends.n ? graph_add(r->w.to, &spec, r->w.err) : NULL;
    return end ? end->id : before;
}

int replicate_parse_pipeline(struct replicate_options *options, const char *text, struct error *err)
{
    int64_t most = 0;
    const char *rest = strchr(text, ',');
    size_t n = rest ? (size_t)(rest - text) : strlen(text);
    bool is_1f1b = n == strlen("1f1b") && !strncmp(text, "1f1b", n);
    if ((!is_1f1b && strcmp(text, "gpipe") != 0) ||
        (rest && (!str_starts(rest, ",flight=") ||
                  !str_to_int64(rest + strlen(",flight="), &most) || most < 1)))
        return error_set(err, ERR_USAGE, "--pipeline '%s' is none of 1f1b, 1f1b,flight=N, gpipe",
                         text);
    options->pipeline = is_1f1b ? PIPELINE_1F1B : PIPELINE_GPIPE;
    options->in_flight = most > INT32_MAX ? INT32_MAX : (int)most;
    return 0;
}

/* Orders the items of each stage. */
static int pipeline_order(struct towers *t)
{
    const struct replicate_options *options = t->r->options;
    int n_stages = t->pipeline->n_stages;
    for (int stage = 0; stage < n_stages && !t->r->w.err->code; stage++) {
        struct stage_item forward = {.stage = stage, .phase = PHASE_FORWARD};
        struct stage_item backward = {.stage = stage, .phase = PHASE_BACKWARD};
        /* So many micro-batches may have gone forward on the stage without having come back. */
        int most = options->pipeline == PIPELINE_GPIPE ? t->n : n_stages - stage, before = -1;
        if (options->in_flight && options->in_flight < most)
            most = options->in_flight;
        most = most < t->n ? most : t->n;
        find_item(t, &forward);
        find_item(t, &backward);
        for (int k = 0; k < t->n + most - 1; k++) {
            if (k < t->n)
                before = add_item(t, &forward, k, before);
            if (k >= most - 1)
                before = add_item(t, &backward, k - most + 1, before);
        }
    }
    return t->r->w.err->code;
}

/* ---- the nodes of towers ----
 *
 * Nodes are in each tower if they depend on fed rows, but not on a gradient. Nodes after gradients,
 * above all the update, exist once and get the towers' combined values. A loop is in the towers as
 * a whole or not at all. */

struct tower_finder {
    struct towers *t;
    bool *looked_at;                 /* by node: some node or entry uses a value of it */
    bool *loop_towered, *loop_whole; /* by outermost frame */
};

static bool is_parted(const struct node *node)
{
    return node_is(node, "Placeholder") && node->outputs[0].shape.rank > 0 &&
           node->outputs[0].shape.dims[0] == SHAPE_UNKNOWN;
}

/* A check that other nodes only wait for is made once, of the towers' combined values. */
static bool is_once(const struct tower_finder *f, const struct node *node)
{
    const struct replicator *r = f->t->r;
    return has(r, node->id, FACT_DOWN | FACT_UPDATE | FACT_INITIAL) ||
           access_written(r->w.from, node) || node_is(node, "Variable") ||
           (node_has(node, OP_CHECKS) && !f->looked_at[node->id]);
}

/* The node is in the towers if one that it depends on is; its feed is that of the first input with
 * one. */
static bool spread_to(struct tower_finder *f, const struct node *node)
{
    struct towers *t = f->t;
    int loop = towers_loop(t, node), *feed = &t->feed[node->id], before = *feed;
    if (is_parted(node) || is_once(f, node) || (loop && f->loop_whole[loop]))
        return false;
    bool needs = loop && f->loop_towered[loop];
    for (int i = 0; i < node->n_inputs + node->n_controls; i++) {
        int from = node_dependency(node, i).node;
        bool is_input = i < node->n_inputs;
        needs |= t->towered[from] || (is_input && is_parted(graph_node(t->r->w.from, from)));
        if (is_input && *feed < 0)
            *feed = t->feed[from];
    }
    if (!needs)
        *feed = before;
    bool news = needs && (!t->towered[node->id] || *feed != before);
    t->towered[node->id] |= needs;
    if (needs && loop && !f->loop_towered[loop])
        news = f->loop_towered[loop] = true;
    return news;
}

static int find_towered(struct towers *t)
{
    const struct graph *from = t->r->w.from;
    struct arena *arena = &t->r->w.arena;
    size_t n_frames = t->r->w.frames->frames.n;
    bool parted = false;
    graph_each(node, from) {
        t->feed[node->id] = is_parted(node) ? node->id : -1;
        if (node_is(node, "Placeholder") && node->outputs[0].shape.rank < 0)
            return error_set(t->r->w.err, ERR_DATA,
                             "%s: Placeholder: towers get a part of its rows or all of it, which "
                             "its shape has to tell",
                             node_text(node));
        parted |= is_parted(node) && has(t->r, node->id, FACT_NEEDED);
    }
    if (!parted)
        return error_set(t->r->w.err, ERR_DATA,
                         "nothing that the entry '%s' is fed has any number of rows (a first "
                         "dimension of -1), which towers could share",
                         t->r->entry->name);
    struct tower_finder f = {.t = t,
                             .looked_at = arena_array(arena, from->nodes.n + 1, sizeof(bool)),
                             .loop_towered = arena_array(arena, n_frames + 1, sizeof(bool)),
                             .loop_whole = arena_array(arena, n_frames + 1, sizeof(bool))};
    graph_each(node, from) {
        for (int k = 0; k < node->n_inputs; k++)
            f.looked_at[node->inputs[k].node] = true;
    }
    vec_each(entry, &from->entries) {
        for (int k = 0; k < entry->n_edges; k++)
            f.looked_at[entry->edges[k].node] |= entry->edges[k].slot != CONTROL_SLOT;
    }
    graph_each(node, from) {
        if (is_once(&f, node))
            f.loop_whole[towers_loop(t, node)] = true;
    }
    for (bool news = true; news;) { /* until no loop is added any more */
        news = false;
        graph_each_ordered(node, from, t->r->w.order)
            news |= spread_to(&f, node);
    }
    /* A stack that saves a loop's values for its gradient is in the towers with the loop. */
    graph_each(node, from) {
        for (int k = 0; t->towered[node->id] && k < node->n_inputs; k++) {
            int input = node->inputs[k].node;
            t->towered[input] |= node_makes_resource(graph_node(from, input));
        }
    }
    return 0;
}

/* ---- devices ---- */

static const char *once_device(struct towers *t, const struct node *node)
{
    struct replicator *r = t->r;
    int stage =
        t->pipeline && !t->towered[node->id] ? pipeline_unit(t->pipeline, node->id)->stage : -1;
    bool is_source = node_has(node, OP_SOURCE) && !node_is(node, "Variable");
    if (stage >= 0 && !is_source)
        return replicate_device(r, node, t->pipeline->devices[stage]);
    if (has(r, node->id, FACT_SHARD | FACT_INITIAL | FACT_UPDATE))
        return replicate_device(r, node, t->shard);
    return node_has(node, OP_SOURCE) ? replicate_device(r, node, t->devices[0]) : node->device;
}

/* The device of a tower's nodes, or of a node's stage. */
static const char *own_device(struct towers *t, const struct node *node, int k)
{
    return t->pipeline ? t->pipeline->devices[pipeline_unit(t->pipeline, node->id)->stage]
                       : t->devices[k];
}

/* ---- values that cross between the towers and the nodes that exist once ----
 *
 * Fed rows are split as evenly as possible: row i of n belongs to tower (i * towers / n). So values
 * with a row for each of them are combined by Concat; means over rows by the mean of the towers',
 * weighted by their numbers of rows; for all other values the first tower's is used.
 *
 * A tower's weight is its rows divided by those of the first tower, and the weighted sum is divided
 * by all rows over those of the first: if all towers have equally many, this is the same mean, to
 * the bit, that workers take of as many pushes. A 16-bit sum may overflow where the mean does not:
 * there the weights are shares of all rows. */

/* The weights of towers' means: of one of two types, or shares for 16-bit types. */
enum weights { WEIGHTS_FLOAT32, WEIGHTS_FLOAT64, WEIGHTS_SHARES, N_WEIGHTS };

/* A feed that is split. */
struct feed_parts {
    struct edge *parts;      /* in the result, by tower: its rows */
    int *weights[N_WEIGHTS]; /* nodes by tower, then of all; 0: not yet */
    struct edge rows;        /* in the result: the number of rows */
    int check;               /* node of the result that checks that each tower has some; -1: not
                              * yet */
};

static struct build builder(struct towers *t, const char *what, const char *name, int k)
{
    struct replicator *r = t->r;
    return (struct build){.graph = r->w.to,
                          .scope =
                              arena_printf(&r->w.to->arena, "%ss/%s/%s", t->prefix, what, name),
                          .device = t->devices[k],
                          .err = r->w.err};
}

static struct edge rows_of(struct build *b, struct edge value)
{
    struct edge inputs[] = {build_unary(b, "Shape", value), build_ints(b, (int64_t[]){0}, 1),
                            build_ints(b, (int64_t[]){1}, 1), build_ints(b, (int64_t[]){1}, 1)};
    struct attr shrink = {"shrink_axis_mask", attr_int(1)};
    return build_op(b, "StridedSlice", inputs, 4, &shrink, 1);
}

static struct feed_parts *split_feed(struct towers *t, int feed)
{
    if (t->parted[feed])
        return t->parted[feed];
    struct replicator *r = t->r;
    struct feed_parts *parted = arena_alloc(&r->w.arena, sizeof *parted);
    struct build b = builder(t, "part", graph_node(r->w.from, feed)->name, 0);
    struct edge value = {r->copy[feed], 0};
    parted->rows = rows_of(&b, value);
    parted->parts = arena_array(&r->w.arena, (size_t)t->n, sizeof *parted->parts);
    struct edge begin = build_ints(&b, (int64_t[]){0}, 1);
    for (int k = 0; k < t->n; k++) {
        /* The first row i of n with floor(i N / n) = k + 1, that is ceil((k + 1) n / N), as a
         * vector: thus the shapes of all parts are known if that of the feed is. */
        struct edge scaled = build_binary(&b, "Mul", parted->rows, build_scalar(&b, INT32, k + 1));
        struct edge up = build_binary(&b, "Add", scaled, build_scalar(&b, INT32, t->n - 1));
        struct edge first = build_binary(&b, "FloorDiv", up, build_scalar(&b, INT32, t->n));
        struct edge end = build_op(&b, "Pack", &first, 1, NULL, 0);
        struct edge slice[] = {value, begin, end, build_ints(&b, (int64_t[]){1}, 1)};
        parted->parts[k] = build_op(&b, "StridedSlice", slice, 4, NULL, 0);
        begin = end;
    }
    for (int i = 0; i < N_WEIGHTS; i++)
        parted->weights[i] = arena_array(&r->w.arena, (size_t)t->n + 1, sizeof *parted->weights[i]);
    parted->check = -1;
    return t->parted[feed] = parted;
}

static enum weights weights_for(enum dtype type)
{
    return type == FLOAT32 ? WEIGHTS_FLOAT32 : type == FLOAT64 ? WEIGHTS_FLOAT64 : WEIGHTS_SHARES;
}

/* The weight of tower k or, for k = n, of all together. */
static struct edge weight(struct towers *t, int feed, int k, enum weights kind)
{
    struct feed_parts *parted = split_feed(t, feed);
    int *made = &parted->weights[kind][k];
    const char *name = graph_node(t->r->w.from, feed)->name;
    if (*made)
        return replicate_out(*made);
    /* Each tower has rows: no rows have no mean. */
    struct build checks = builder(t, "has_rows_for_all", name, 0);
    struct edge n = build_scalar(&checks, INT32, t->n);
    struct edge has = build_binary(&checks, "GreaterEqual", parted->rows, n);
    const struct edge inputs[] = {has, parted->rows, n};
    if (parted->check < 0)
        parted->check = build_op(&checks, "Assert", inputs, 3, NULL, 0).node;
    struct build b = builder(t, "weight", name, 0);
    if (t->r->w.err->code)
        return EDGE_NONE;
    enum dtype type = kind == WEIGHTS_FLOAT64 ? FLOAT64 : FLOAT32;
    struct edge rows = k < t->n ? rows_of(&b, parted->parts[k]) : parted->rows;
    struct edge of = kind == WEIGHTS_SHARES ? parted->rows : rows_of(&b, parted->parts[0]);
    rows = build_cast(&b, rows, type);
    of = build_cast(&b, of, type);
    b.controls = &parted->check;
    b.n_controls = 1;
    struct edge share = build_binary(&b, "Div", rows, of);
    *made = share.node;
    return share;
}

/* A tower's value times its weight, on the tower's device. */
static struct edge weighed(struct towers *t, const struct node *node, struct edge value, int k)
{
    struct build b = builder(t, "weigh", node->name, k);
    b.device = own_device(t, node, k);
    enum dtype type = build_type(&b, value);
    enum weights kind = weights_for(type);
    struct edge by = weight(t, t->feed[node->id], k, kind);
    if (kind == WEIGHTS_SHARES && edge_exists(by))
        by = build_cast(&b, by, type);
    struct edge product = edge_exists(by) ? build_binary(&b, "Mul", value, by) : EDGE_NONE;
    if (node_attr(node, "_gradient"))
        replicate_mark_sent(t->r, product.node, 0);
    return product;
}

/* Gradients are combined beside their variable. */
static struct build joiner(struct towers *t, const struct node *node, const char *what)
{
    const struct node *variable = replicate_variable_of(t->r, node);
    struct build b = builder(t, what, node->name, 0);
    b.device = variable ? once_device(t, variable) : own_device(t, node, 0);
    return b;
}

/* Gradients of micro-batches are added as they come, which leaves two values. The sum after each
 * one counts as the end of its backward item. */
static int accumulate(struct towers *t, const struct node *node, struct edge *values)
{
    struct replicator *r = t->r;
    struct pipeline *p = t->pipeline;
    const struct node *variable = replicate_variable_of(t->r, node);
    struct build b = joiner(t, node, "add");
    int stage = pipeline_unit(p, node->id)->stage;
    bool is_here = variable && pipeline_unit(p, variable->id)->stage == stage;
    for (int k = 0; k + 1 < t->n && !r->w.err->code; k++) {
        if (k)
            values[0] = build_binary(&b, "Add", values[0], values[k]);
        if (is_here)
            vec_push_in(&r->w.arena, &p->ends, ((struct item_end){stage, k, values[0].node}));
    }
    values[1] = values[t->n - 1];
    return 2;
}

static struct edge joined(struct towers *t, const struct node *node, int slot)
{
    struct replicator *r = t->r;
    const struct node_output *output = &node->outputs[slot];
    const struct attr_value *mark = node_attr(node, "_gradient");
    const struct attr_value *role = node_attr(node, "_gradient_role");
    const struct node *variable = replicate_variable_of(r, node);
    enum weights kind = weights_for(output->type);
    /* Rows are concatenated; a mean over all rows, and each row's contribution to one, is weighted;
     * for other values the first tower's is used. */
    bool is_of_rows = mark ? strstr(replicate_reduction(node, output->type), "rows") != NULL
                           : output->shape.rank > 0 && output->shape.dims[0] == SHAPE_UNKNOWN;
    bool weigh = dtype_is_floating(output->type) && t->feed[node->id] >= 0 && (mark || !is_of_rows);
    int n = is_of_rows || weigh ? t->n : 1, n_values = 0;
    struct edge *values = arena_array(&r->w.arena, (size_t)n + 1, sizeof *values);
    struct build b = builder(t, "join", node->name, 0);
    if (is_of_rows)
        values[n_values++] = build_scalar(&b, INT32, 0);
    for (int k = 0; k < n && !r->w.err->code; k++) {
        struct edge value = {t->copies[k][node->id], slot};
        values[n_values++] = weigh ? weighed(t, node, value, k) : value;
    }
    if (weigh && !is_of_rows && t->pipeline && mark && !r->w.err->code)
        n_values = accumulate(t, node, values);
    b = joiner(t, node, "join");
    struct node_spec spec = {.op = is_of_rows ? "Concat"
                                   : weigh    ? "AddN"
                                              : "Identity",
                             .name = slot ? arena_printf(&r->w.to->arena, "%s/%d", b.scope, slot)
                                          : node->name,
                             .inputs = values,
                             .n_inputs = n_values,
                             .device = b.device,
                             .file = node->file,
                             .line = node->line};
    struct edge mean[2];
    if (weigh && kind != WEIGHTS_SHARES && !r->w.err->code) {
        /* The weighted sum, beside the node made from it. */
        b.colocate = variable ? arena_printf(&r->w.to->arena, "loc:@%s", variable->name) : NULL;
        mean[0] = build_op(&b, spec.op, values, n_values, NULL, 0);
        mean[1] = weight(t, t->feed[node->id], t->n, kind);
        spec.op = "Div";
        spec.inputs = mean;
        spec.n_inputs = 2;
    }
    if (r->w.err->code)
        return EDGE_NONE;
    /* As in the source, a node's attributes mark a gradient as handed over. */
    struct attr attrs[3];
    spec.attrs = attrs;
    if (mark)
        attrs[spec.n_attrs++] = (struct attr){"_gradient", *mark};
    if (role)
        attrs[spec.n_attrs++] = (struct attr){"_gradient_role", *role};
    if (variable)
        attrs[spec.n_attrs++] = group_attr(&r->w.to->arena, variable->name);
    struct node *made = graph_add(r->w.to, &spec, r->w.err);
    if (made)
        rewrite_note(&r->w, made->name, "of all towers");
    return made ? replicate_out(made->id) : EDGE_NONE;
}

struct edge towers_whole(struct towers *t, struct edge edge)
{
    struct replicator *r = t->r;
    if (!edge_exists(edge))
        return EDGE_NONE;
    if (!t->towered[edge.node])
        return (struct edge){r->copy[edge.node], edge.slot};
    const struct node *node = graph_node(r->w.from, edge.node);
    if (edge.slot != CONTROL_SLOT) {
        struct edge *whole = &r->w.edges[r->w.first[node->id] + edge.slot];
        if (!edge_exists(*whole))
            *whole = joined(t, node, edge.slot);
        return *whole;
    }
    if (!r->w.after[node->id]) { /* a node after all copies */
        node_list copies = VEC_INIT;
        for (int k = 0; k < t->n; k++)
            vec_push_in(&r->w.arena, &copies, t->copies[k][node->id]);
        struct node_spec spec = {
            .op = "NoOp",
            .name = node->n_outputs
                        ? arena_printf(&r->w.to->arena, "%ss/all/%s", t->prefix, node->name)
                        : node->name,
            .controls = copies.items,
            .n_controls = t->n,
            .device = t->devices[0]};
        const struct node *all = graph_add(r->w.to, &spec, r->w.err);
        if (!all)
            return EDGE_NONE;
        rewrite_await_parts(&r->w, node, &(struct edge){all->id, 0}, 1);
    }
    return (struct edge){r->w.after[node->id][0], CONTROL_SLOT};
}

/* ---- copies ---- */

static const char *in_tower(struct towers *t, const char *name, int k)
{
    return arena_printf(&t->r->w.to->arena, "%s_%d/%s", t->prefix, k, name);
}

static const char *leader_in_tower(void *context, const struct node *leader, int k)
{
    struct towers *t = ((struct replicator *)context)->towers;
    return k >= 0 && t->towered[leader->id] ? in_tower(t, leader->name, k) : leader->name;
}

/* Each tower has its own frames and stacks, and all towers but the first have their own random
 * numbers: two rows of a batch must not get the same. Gradients are not handed over in towers. */
static bool tower_attr(void *context, const struct node *node, int k, struct attr *attr)
{
    struct towers *t = ((struct replicator *)context)->towers;
    if (k < 0)
        return true;
    if (!strcmp(attr->name, "frame_name") || !strcmp(attr->name, "stack_name"))
        attr->value = attr_string(in_tower(t, attr->value.s, k));
    else if (!strcmp(attr->name, "seed2") && k > 0)
        attr->value = attr_int((int64_t)(hash_text(in_tower(t, node->name, k)) >> 1));
    return strcmp(attr->name, "_gradient") != 0 && strcmp(attr->name, "_gradient_role") != 0;
}

static struct edge in_one(void *context, const struct node *reader, struct edge edge, int k)
{
    struct replicator *r = context;
    struct towers *t = r->towers;
    (void)reader;
    if (!edge_exists(edge))
        return EDGE_NONE;
    if (is_parted(graph_node(r->w.from, edge.node)) && edge.slot != CONTROL_SLOT)
        return split_feed(t, edge.node)->parts[k];
    return (struct edge){t->towered[edge.node] ? t->copies[k][edge.node] : r->copy[edge.node],
                         edge.slot};
}

/* Nodes that exist once wait for all copies of a node, not for a node after them. */
static struct edge in_none(void *context, const struct node *reader, struct edge edge, int k)
{
    struct replicator *r = context;
    (void)reader, (void)k;
    return edge.slot == CONTROL_SLOT && r->towers->towered[edge.node]
               ? EDGE_NONE
               : towers_whole(r->towers, edge);
}

/* ---- the graph ---- */

static int copy_tower(struct towers *t)
{
    struct replicator *r = t->r;
    r->w.rules.leader = leader_in_tower;
    r->w.rules.attr = tower_attr;
    graph_each_ordered(node, r->w.from, r->w.order) {
        for (int k = 0; t->towered[node->id] && k < t->n; k++) {
            bool is_sharded = !t->pipeline && has(r, node->id, FACT_SHARD);
            const char *device = is_sharded ? t->shard : own_device(t, node, k);
            const struct rewrite_copy spec = {node, k, .name = in_tower(t, node->name, k),
                                              .device = replicate_device(r, node, device)};
            struct node *copy = rewrite_add_mapped(&r->w, &spec, in_one);
            t->copies[k][node->id] = copy->id;
            if (has(r, node->id, FACT_SHARD) && replicate_is_lookup(r, node))
                replicate_mark_sent(r, copy->id, 0);
            rewrite_note(&r->w, copy->name, *device ? device : "tower");
        }
        if (!t->towered[node->id]) {
            const struct rewrite_copy spec = {node, -1, .device = once_device(t, node)};
            struct node *copy = rewrite_add_mapped(&r->w, &spec, in_none);
            for (int i = 0; i < node->n_controls; i++)
                for (int k = 0; t->towered[node->controls[i]] && k < t->n; k++)
                    replicate_wait(r, replicate_out(copy->id), t->copies[k][node->controls[i]]);
            r->copy[node->id] = copy->id;
            if (replicate_is_read(r, node))
                replicate_mark_sent(r, copy->id, 0);
        }
        if (r->w.err->code)
            return r->w.err->code;
    }
    return r->w.err->code;
}

int replicate_towers(struct replicator *r)
{
    struct arena *arena = &r->w.arena;
    struct towers *t = r->towers = arena_alloc(arena, sizeof *t);
    size_t n = r->w.from->nodes.n + 1;
    t->r = r;
    t->n = r->options->towers;
    if (replicate_find(r))
        return r->w.err->code;
    t->devices = arena_array(arena, (size_t)t->n, sizeof *t->devices);
    t->copies = arena_array(arena, (size_t)t->n, sizeof *t->copies);
    t->towered = arena_array(arena, n, sizeof *t->towered);
    t->feed = arena_array(arena, n, sizeof *t->feed);
    t->parted = arena_array(arena, n, sizeof *t->parted);
    for (int k = 0; k < t->n; k++) {
        if (!(t->devices[k] = towers_name_device(t, k)))
            return r->w.err->code;
        t->copies[k] = arena_array(arena, n, sizeof **t->copies);
        memset(t->copies[k], -1, n * sizeof **t->copies);
    }
    t->prefix = graph_free_prefix(&r->w.to->arena, r->w.from, "tower");
    if (frames_new(r->w.from, &r->w.frames, r->w.err) || find_towered(t) ||
        (r->options->pipeline && pipeline_find(t)))
        return r->w.err->code;
    /* Nodes that exist once, without a stage of their own, are on the first stage. */
    for (int k = 0; t->pipeline && k < t->n; k++)
        t->devices[k] = t->pipeline->devices[0];
    if (copy_tower(t))
        return r->w.err->code;
    /* Nodes that a script has named can be fetched by name. */
    graph_each(node, r->w.from) {
        if (t->towered[node->id] && node->n_outputs && !strchr(node->name, '/') &&
            !node_has(node, OP_CONTROL_FLOW) && !t->r->w.frames->frame[node->id] && !r->w.err->code)
            towers_whole(t, replicate_out(node->id));
    }
    return !r->w.err->code && t->pipeline ? pipeline_order(t) : r->w.err->code;
}
