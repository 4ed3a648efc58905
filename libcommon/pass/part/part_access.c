/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and writes of variables in the graph as a whole, which no part sees: which writes come
 * before a read, and what the plans of the parts are advised to do about the others.
 */
#include <string.h>

#include "base/memory.h"
#include "base/str.h"
#include "pass/part/part_private.h"

/* ---- who has which variable ---- */

/* Variable nodes of one name and container are one variable: the first of them. */
static void find_variables(struct cutter *c)
{
    struct map known = MAP_INIT;
    struct str key = STR_INIT;
    for (size_t i = 0; i < c->from->nodes.n; i++) {
        const struct node *node = graph_node(c->from, (int)i);
        int64_t first = node->id;
        c->variable[i] = -1;
        if (!node_is(node, "Variable"))
            continue;
        const char *name = node_string(node, "shared_name");
        str_clear(&key);
        str_printf(&key, "%s\n%s", node_string(node, "container"), *name ? name : node->name);
        const char *kept = arena_printf(&c->arena, "%s", str_text(&key));
        if (!map_get(&known, kept, &first))
            map_put(&known, kept, first);
        c->variable[i] = (int)first;
    }
    map_release(&known);
    str_release(&key);
}

int part_variable(const struct cutter *c, struct edge edge)
{
    const struct node *node = graph_node(c->from, edge.node);
    while (edge.slot >= 0 && node->outputs[edge.slot].is_ref && node->n_inputs) {
        int k = 0;
        while (k < node->n_inputs && !part_takes_ref(node, k))
            k++;
        if (k == node->n_inputs)
            return -1;
        edge = node->inputs[k];
        node = graph_node(c->from, edge.node);
    }
    return edge.slot < 0 ? -1 : c->variable[node->id];
}

static bool writes(const struct node *node, int input)
{
    return part_takes_ref(node, input) && !node_has(node, OP_READS_REF);
}

static void add_node(struct cutter *c, struct access_graph *graph, const struct node *node)
{
    for (int k = 0; k < node->n_inputs; k++) {
        const struct node *from = graph_node(c->from, node->inputs[k].node);
        if (!(node_is(from, "NextIteration") && node_is(node, "Merge")))
            vec_push(&graph->edges, ((struct access_edge){from->id, node->id}));
        int variable = part_variable(c, node->inputs[k]);
        if (variable < 0)
            continue;
        struct access access = {.variable = variable,
                                .node = node->id,
                                .write = writes(node, k),
                                .copies = !part_takes_ref(node, k) &&
                                          c->frames->frame[node->id] == FRAME_ROOT};
        vec_push(&graph->accesses, access);
    }
    for (int k = 0; k < node->n_controls; k++)
        vec_push(&graph->edges, ((struct access_edge){node->controls[k], node->id}));
}

static void describe(struct cutter *c)
{
    struct access_graph *graph = &c->accesses;
    size_t n = c->from->nodes.n, n_frames = c->frames->frames.n;
    const char **names = arena_array(&c->arena, n + 1, sizeof *names);
    int *parent = arena_array(&c->arena, n_frames + 1, sizeof *parent);
    for (size_t i = 0; i < n; i++)
        names[i] = graph_node(c->from, (int)i)->name;
    for (size_t i = 0; i < n_frames; i++)
        parent[i] = c->frames->frames.items[i].parent;
    graph->n = (int)n;
    graph->names = names;
    graph->frame = c->frames->frame;
    graph->parent = parent;
    graph->n_frames = (int)n_frames;
    for (size_t i = 0; i < n; i++)
        add_node(c, graph, graph_node(c->from, (int)i));
}

/* ---- conditions ---- */

#define SLOTS_MAX 1024 /* of a predicate */

static void find_conditions(struct cutter *c)
{
    struct access_graph *graph = &c->accesses;
    int *of_frame = arena_array(&c->arena, c->frames->frames.n + 1, sizeof *of_frame);
    memset(of_frame, -1, c->frames->frames.n * sizeof *of_frame);
    for (size_t i = 0; i < c->frames->conditions.n; i++) {
        const struct condition *known = &c->frames->conditions.items[i];
        access_condition_add(graph, known->predicate.node * SLOTS_MAX + known->predicate.slot,
                             known->branch, known->parent);
    }
    for (size_t i = 0; i < c->from->nodes.n; i++) {
        const struct node *node = graph_node(c->from, (int)i);
        if (node_is(node, "Enter") && c->frames->condition[i] >= 0)
            of_frame[frames_output(c->frames, node)] = c->frames->condition[i];
    }
    graph->condition = c->frames->condition;
    graph->frame_condition = of_frame;
}

int part_tell_condition(struct cutter *c, int part, int id, int condition)
{
    const struct condition *all = c->frames->conditions.items;
    if (condition < 0)
        return 0;
    const char **texts = arena_array(&c->arena, (size_t)all[condition].depth, sizeof *texts);
    struct attr_value value = {.kind = ATTR_LIST_STRING, .strings = texts};
    for (; condition >= 0; condition = all[condition].parent)
        texts[value.n++] = arena_printf(&c->arena, "%s:%d %d",
                                        graph_node(c->from, all[condition].predicate.node)->name,
                                        all[condition].predicate.slot, all[condition].branch);
    struct graph *graph = part_at(c, part);
    return graph_set_attr(graph, graph_node(graph, id), &(struct attr){"_condition", value},
                          c->err);
}

int part_tell_conditions(struct cutter *c)
{
    char *told = arena_alloc(&c->arena, c->from->nodes.n + 1);
    for (size_t i = 0; i < c->accesses.accesses.n; i++)
        told[c->accesses.accesses.items[i].node] = 1;
    for (size_t i = 0; i < c->from->nodes.n; i++) {
        bool tells = told[i] || node_is(graph_node(c->from, (int)i), "Enter");
        if (tells && part_tell_condition(c, c->part[i], c->copy[i], c->frames->condition[i]))
            return c->err->code;
    }
    return 0;
}

/* ---- reads after writes ---- */

static bool is_bit(const uint64_t *reached, int node, int bit)
{
    return reached[node] >> bit & 1;
}

/* Notes the write with the nodes that read its variable after it. Such a node is late if what it
 * has the variable from does not come after the write. */
static void note_late(struct cutter *c, const struct access *write, const uint64_t *reached,
                      int bit)
{
    for (size_t i = 0; i < c->accesses.accesses.n; i++) {
        const struct access *read = &c->accesses.accesses.items[i];
        if (read->write || read->variable != write->variable || !is_bit(reached, read->node, bit))
            continue;
        const struct node *node = graph_node(c->from, read->node);
        vec_push(&c->before[read->node], write->node);
        for (int k = 0; k < node->n_inputs; k++)
            if (part_variable(c, node->inputs[k]) == write->variable &&
                node->inputs[k].node != write->node && !is_bit(reached, node->inputs[k].node, bit))
                c->late[read->node] = 1;
    }
}

static void find_late(struct cutter *c)
{
    const struct access *accesses = c->accesses.accesses.items;
    uint64_t *reached = mem_array(c->from->nodes.n + 1, sizeof *reached);
    int from[ACCESS_BATCH], which[ACCESS_BATCH], n = 0;
    for (size_t i = 0; i < c->accesses.accesses.n; i++) {
        if (accesses[i].write) {
            which[n] = (int)i;
            from[n++] = accesses[i].node;
        }
        if (n < ACCESS_BATCH && i + 1 < c->accesses.accesses.n)
            continue;
        access_reach(&c->accesses, FRAME_ROOT, from, n, reached);
        for (int k = 0; k < n; k++)
            note_late(c, &accesses[which[k]], reached, k);
        n = 0;
    }
    mem_free(reached);
}

/* What crosses on behalf of all readers of a part is read as soon as it can be. */
static void find_taken(struct cutter *c)
{
    for (size_t i = 0; i < c->accesses.accesses.n; i++) {
        struct access *access = &c->accesses.accesses.items[i];
        access->taken = access->copies && !c->late[access->node] &&
                        c->part[access->node] != c->part[access->variable];
    }
}

void part_find_accesses(struct cutter *c)
{
    size_t n = c->from->nodes.n;
    c->variable = arena_array(&c->arena, n + 1, sizeof *c->variable);
    c->late = arena_alloc(&c->arena, n + 1);
    c->copied = arena_alloc(&c->arena, n + 1);
    c->before = arena_array(&c->arena, n + 1, sizeof *c->before);
    find_variables(c);
    describe(c);
    find_conditions(c);
    find_late(c);
    find_taken(c);
    access_advise(&c->accesses, &c->advice);
    for (size_t i = 0; i < c->advice.copies.n; i++)
        c->copied[c->accesses.accesses.items[c->advice.copies.items[i]].node] = 1;
}

void part_release_accesses(struct cutter *c)
{
    for (size_t i = 0; c->before && i < c->from->nodes.n; i++)
        vec_release(&c->before[i]);
    access_graph_release(&c->accesses);
    vec_release(&c->advice.wishes);
    vec_release(&c->advice.copies);
}

/* ---- points of reads ---- */

int part_set_names(struct cutter *c, int part, int id, const char *attr, const part_node_vec *nodes)
{
    const char **names = arena_array(&c->arena, nodes->n + 1, sizeof *names);
    struct attr_value value = {.kind = ATTR_LIST_STRING, .n = (int)nodes->n, .strings = names};
    struct graph *graph = part_at(c, part);
    for (size_t i = 0; i < nodes->n; i++)
        names[i] = graph_node(c->from, nodes->items[i])->name;
    return nodes->n
               ? graph_set_attr(graph, graph_node(graph, id), &(struct attr){attr, value}, c->err)
               : 0;
}

struct edge part_point(struct cutter *c, struct edge edge, const struct node *reader)
{
    int variable = part_variable(c, edge), part = c->part[edge.node];
    struct edge here = {c->copy[edge.node], edge.slot};
    if (variable < 0 || !c->copied[reader->id])
        return here;
    struct node_spec spec = {.op = "Identity", .inputs = &here, .n_inputs = 1};
    part_node_vec follows = VEC_INIT;
    struct edge point = {part_add(c, part, reader, &spec), 0};
    for (size_t i = 0; i < c->before[reader->id].n; i++) {
        const struct node *write = graph_node(c->from, c->before[reader->id].items[i]);
        for (int k = 0; k < write->n_inputs; k++)
            if (writes(write, k) && part_variable(c, write->inputs[k]) == variable) {
                vec_push(&follows, write->id);
                break;
            }
    }
    int code = edge_exists(point) ? part_set_names(c, part, point.node, "_follows", &follows)
                                  : c->err->code;
    if (!code)
        code = part_tell_condition(c, part, point.node, c->frames->condition[reader->id]);
    vec_release(&follows);
    return code ? EDGE_NONE : point;
}
