/* SPDX-License-Identifier: Apache-2.0
 *
 * The stage of each node of a tower, and the order of each stage's items. The script's devices are
 * the stages, in the order in which the forward graph reaches them. A node without a device goes to
 * the stage of its inputs: a forward node to the latest of these; a backward node to that of the
 * forward node whose gradient it computes, but to no later one than its incoming gradients.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/device_name.h"
#include "graph/op_cost.h"
#include "pass/replicate/replicate_plan.h"
#include "pass/replicate/replicate_tower.h"

static bool has_phase(const struct towers *t, int node, enum item_phase phase)
{
    return t->towered[node] && pipeline_unit(t->pipeline, node)->phase == phase;
}

/* Moves nodes, in their order or in the opposite one, until none moves any more. */
static void move_until_still(struct towers *t, enum item_phase phase, bool backwards,
                             bool (*move)(struct towers *, const struct node *))
{
    size_t n = t->r->from->nodes.n;
    for (bool news = true; news;) {
        news = false;
        for (size_t i = 0; i < n; i++) {
            int node = t->r->order[backwards ? n - 1 - i : i];
            news |= has_phase(t, node, phase) && move(t, graph_node(t->r->from, node));
        }
    }
}

/* Returns the forward node whose gradient the node computes, found by its scope; -1: none. */
static int forward_of(const struct towers *t, const struct node *node)
{
    for (const char *end = strstr(node->name, "_grad/"); end; end = strstr(end + 1, "_grad/"))
        for (const char *begin = node->name; begin && begin < end; begin = strchr(begin, '/')) {
            begin += *begin == '/';
            const char *name = arena_printf(&t->r->arena, "%.*s", (int)(end - begin), begin);
            const struct node *found = graph_find(t->r->from, name);
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
    const struct graph *from = t->r->from;
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
    graph_each_ordered(node, r->from, r->order) {
        struct pipeline_unit *unit = pipeline_unit(p, node->id);
        if (!has_phase(c->t, node->id, PHASE_FORWARD) || !unit->is_bound || unit->in_line >= 0)
            continue;
        c->units[c->n] = (struct cut_unit){.first = p->first[node->id], .place = (int)node_at};
        unit->in_line = c->n++;
    }
    graph_each(node, r->from) {
        bool is_back = has_phase(c->t, node->id, PHASE_BACKWARD);
        int forward = is_back ? forward_of(c->t, node) : node->id;
        int unit = forward >= 0 ? unit_of(c, forward) : -1;
        if (unit >= 0)
            c->units[unit].ns += replicate_node_ns(r, node);
    }
    /* A loop as a whole comes after all its dependencies, and before all its users. */
    for (bool news = true; news;) {
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
        p->units[c->units[i].first].in_line = i;
}

/* ---- what cuts cost ---- */

/* Finds the time before each cut, and that of the transfers at it. */
static void price_cuts(struct stage_cutter *c, struct cost_way way)
{
    const struct replicator *r = c->t->r;
    struct arena *arena = &c->t->r->arena;
    int *first_output = arena_array(arena, r->from->nodes.n + 1, sizeof *first_output);
    graph_each(node, r->from)
        first_output[node->id + 1] = first_output[node->id] + node->n_outputs;
    int *last = arena_array(arena, (size_t)first_output[r->from->nodes.n] + 1, sizeof *last);
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
        .t = t, .units = arena_array(&r->arena, r->from->nodes.n + 2, sizeof *c.units)};
    if (p->n_stages)
        return error_set(r->err, ERR_DATA,
                         "--stages is for a model without devices, but a node asks for %s",
                         p->devices[0]);
    for (int i = 0; i < n_stages; i++)
        if (!(p->devices[i] = towers_name_device(t, i)))
            return r->err->code;
    p->n_stages = n_stages;
    make_line(&c);
    if (n_stages > c.n)
        return error_set(r->err, ERR_DATA,
                         "--stages %d: the model has %d nodes that compute of variables", n_stages,
                         c.n);
    struct error ignored = ERROR_INIT;
    struct device_name from = device_name_open(), to = device_name_open();
    struct cost_way way = {0, 0};
    if (n_stages > 1 && !device_name_parse(&from, p->devices[0], &ignored) &&
        !device_name_parse(&to, p->devices[1], &ignored))
        way = cost_way(&from, &to, r->options->cluster, r->options->measured);
    price_cuts(&c, way);
    c.best = arena_array(&r->arena, (size_t)(n_stages + 1) * (size_t)(c.n + 1), sizeof *c.best);
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
    const char *device = device_name_text(&t->r->to->arena, &name);
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
    graph_each_ordered(node, t->r->from, t->r->order) {
        struct pipeline_unit *unit = pipeline_unit(t->pipeline, node->id);
        if (!has_phase(t, node->id, phase) || !*node->device)
            continue;
        int stage = stage_of_device(t, node, phase == PHASE_FORWARD);
        if (stage < 0)
            return node_refuse(node, t->r->err, "%s is no stage of the forward graph",
                               node->device);
        if (unit->is_told && unit->stage != stage)
            return node_refuse(node, t->r->err,
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
        int there = t->towered[needed] ? pipeline_unit(t->pipeline, needed)->stage
                                       : stage_of_device(t, graph_node(t->r->from, needed), false);
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
    for (size_t i = 0; i < t->r->from->nodes.n; i++)
        if (p->units[i].phase == PHASE_FORWARD && p->units[i].stage < 0) {
            p->units[i].is_free = true;
            p->units[i].stage = p->n_stages - 1;
        }
    move_until_still(t, PHASE_FORWARD, true, lower_free);
    graph_each(node, r->from) { /* a stack is on the stage of the loop that fills it */
        for (int k = 0; k < node->n_inputs && has_phase(t, node->id, PHASE_FORWARD); k++)
            if (node_makes_resource(graph_node(t->r->from, node->inputs[k].node)))
                p->units[node->inputs[k].node].stage = pipeline_unit(p, node->id)->stage;
    }
    graph_each(node, t->r->from) {
        struct pipeline_unit *unit = pipeline_unit(p, node->id);
        if (!has_phase(t, node->id, PHASE_BACKWARD) || unit->is_told)
            continue;
        /* The preferred stage: that of its first stack, or of its forward node. */
        int forward = forward_of(t, node);
        int stage = forward < 0 ? p->n_stages - 1 : pipeline_unit(p, forward)->stage;
        for (int k = node->n_inputs; k-- > 0;)
            if (node_makes_resource(graph_node(t->r->from, node->inputs[k].node)))
                stage = pipeline_unit(p, node->inputs[k].node)->stage;
        if (unit->stage < 0 || stage < unit->stage)
            unit->stage = stage;
    }
    move_until_still(t, PHASE_BACKWARD, false, follow_needs);
    /* Nodes that no gradient needs, and nodes that exist once and that stages read. */
    move_until_still(t, PHASE_NONE, false, follow_needs);
    for (size_t i = r->from->nodes.n; i-- > 0;) {
        const struct node *node = graph_node(r->from, r->order[i]);
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
    bool *after_all = arena_array(&t->r->arena, r->from->nodes.n + 1, sizeof *after_all);
    graph_each_ordered(node, r->from, r->order) {
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
                return node_refuse(node, t->r->err,
                                   "a micro-batch cannot wait for '%s', which needs all of them",
                                   graph_node(r->from, needed)->name);
            if (phase != PHASE_NONE && has_phase(t, needed, phase) && is_wrong)
                return node_refuse(
                    node, t->r->err,
                    "it is on stage %d (%s) and needs '%s' on stage %d (%s), but a pipeline goes "
                    "%s",
                    here, p->devices[here], graph_node(r->from, needed)->name, there,
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
    graph_each(node, r->from) {
        const struct attr_value *name = node_attr(node, "_loss");
        const struct node *loss = name ? graph_find(r->from, name->s) : NULL;
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
            r->from, r->order, r->facts,
            (struct spread){.fact = facts[phase], .controls = true, .up = true, .loops = true});
        graph_each(node, r->from) {
            struct pipeline_unit *unit = pipeline_unit(t->pipeline, node->id);
            if (has(r, node->id, facts[phase]) && t->towered[node->id] &&
                !node_makes_resource(node) && unit->phase == PHASE_NONE)
                unit->phase = phase;
        }
    }
    return found ? 0
                 : error_set(r->err, ERR_DATA,
                             "a pipeline goes forward to the loss and back again, but nothing of "
                             "the entry '%s' says what its loss is (_loss)",
                             r->entry->name);
}

int pipeline_find(struct towers *t)
{
    struct replicator *r = t->r;
    const struct replicate_options *options = r->options;
    size_t n = r->from->nodes.n + 1;
    struct pipeline *p = t->pipeline = arena_alloc(&r->arena, sizeof *p);
    int *of_loop = arena_array(&r->arena, t->frames->frames.n + 1, sizeof *of_loop);
    p->devices = arena_array(&r->arena, n + (size_t)options->stages, sizeof *p->devices);
    p->first = arena_array(&r->arena, n, sizeof *p->first);
    p->units = arena_array(&r->arena, n, sizeof *p->units);
    graph_each_ordered(node, r->from, r->order) {
        int loop = towers_loop(t, node);
        if (loop != FRAME_ROOT && !of_loop[loop])
            of_loop[loop] = node->id + 1;
        p->first[node->id] = loop == FRAME_ROOT ? node->id : of_loop[loop] - 1;
        p->units[node->id].stage = p->units[node->id].in_line = -1;
    }
    if (find_phases(t) || take_devices(t, PHASE_FORWARD))
        return r->err->code;
    if (!options->stages && !p->n_stages)
        return error_set(r->err, ERR_DATA,
                         "no node asks for a device, which would be a stage of the pipeline: "
                         "--stages says how many there shall be");
    if ((options->stages && cut_stages(t, options->stages)) || take_devices(t, PHASE_BACKWARD))
        return r->err->code;
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
    const struct graph *from = t->r->from;
    bool *is_needed = arena_array(&t->r->arena, from->nodes.n + 1, sizeof *is_needed);
    graph_each(node, from) {
        bool begins = t->frames->frame[node->id] == FRAME_ROOT;
        for (int k = 0; is_in(t, item, node->id) && k < node->n_inputs + node->n_controls; k++) {
            int needed = node_dependency(node, k).node;
            is_needed[needed] = true;
            begins &= !is_in(t, item, needed);
        }
        if (begins && is_in(t, item, node->id))
            vec_push_in(&t->r->arena, &item->begin, node->id);
    }
    graph_each(node, from) {
        /* Nodes inside of loops, and nodes that may be dead, are not waited for. */
        if (is_in(t, item, node->id) && !is_needed[node->id] &&
            frames_output(t->frames, node) == FRAME_ROOT &&
            t->frames->condition[node->id] == CONDITION_NONE)
            vec_push_in(&t->r->arena, &item->end, node->id);
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
        graph_add_control(r->to, graph_node(r->to, t->copies[k][item->begin.items[i]]), before);
    for (size_t i = 0; i < item->end.n; i++)
        vec_push_in(&t->r->arena, &ends, t->copies[k][item->end.items[i]]);
    for (size_t i = 0; item->phase == PHASE_BACKWARD && i < p->ends.n; i++)
        if (p->ends.items[i].stage == item->stage && p->ends.items[i].tower == k)
            vec_push_in(&t->r->arena, &ends, p->ends.items[i].node);
    struct node_spec spec = {
        .op = "NoOp",
        .name = arena_printf(&r->to->arena, "%ss/stage_%d/%s_%d", t->prefix, item->stage, what, k),
        .controls = ends.items,
        .n_controls = (int)ends.n,
        .device = p->devices[item->stage]};
    struct node *end = ends.n ? graph_add(r->to, &spec, r->err) : NULL;
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

int pipeline_order(struct towers *t)
{
    const struct replicate_options *options = t->r->options;
    int n_stages = t->pipeline->n_stages;
    for (int stage = 0; stage < n_stages && !t->r->err->code; stage++) {
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
    return t->r->err->code;
}
