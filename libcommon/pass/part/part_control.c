/* SPDX-License-Identifier: Apache-2.0
 *
 * What crosses less, or not at all: constants that every part has for itself, control edges, and
 * what is of many tasks.
 */
#include <string.h>

#include "base/memory.h"
#include "graph/device_name.h"
#include "pass/part/part_private.h"

/* ---- constants ---- */

bool part_is_copied(const struct node *node)
{
    return node_is(node, "Const") && !node->n_controls &&
           (int64_t)tensor_bytes(node_attr(node, "value")->tensor) <= PART_CONSTANT_BYTES_MAX;
}

struct edge part_constant(struct cutter *c, const struct node *node, int part)
{
    int **copies = &c->constants[node->id];
    struct attr attrs[] = {{"dtype", *node_attr(node, "dtype")},
                           {"value", *node_attr(node, "value")}};
    struct node_spec spec = {.op = "Const", .attrs = attrs, .n_attrs = 2};
    if (!*copies)
        *copies = arena_array(&c->arena, (size_t)c->n + 1, sizeof **copies);
    if (!(*copies)[part])
        (*copies)[part] = part_add(c, part, node, &spec) + 1;
    return (struct edge){(*copies)[part] - 1, 0};
}

/* ---- control edges ---- */

/* Whether the node comes after `first` in any case: by way of nodes with state, which nobody feeds
 * and no plan leaves out. */
static bool is_implied(const struct cutter *c, const struct node *node, int first)
{
    VEC(int) todo = VEC_INIT;
    char *seen = mem_alloc(c->from->nodes.n + 1);
    bool found = false;
    vec_push(&todo, node->id);
    while (todo.n && !found) {
        const struct node *at = graph_node(c->from, vec_pop(&todo));
        for (int i = 0; i < at->n_inputs + at->n_controls && !found; i++) {
            int before = i < at->n_inputs ? at->inputs[i].node : at->controls[i - at->n_inputs];
            const struct node *from = graph_node(c->from, before);
            found = before == first && (at != node || i < at->n_inputs);
            if (seen[before] || !node_has(from, OP_STATEFUL) || node_has(from, OP_CONTROL_FLOW))
                continue;
            seen[before] = 1;
            vec_push(&todo, before);
        }
    }
    vec_release(&todo);
    mem_free(seen);
    return found;
}

static bool is_in_loop(const struct cutter *c, int node)
{
    return c->frames->frame[node] != FRAME_ROOT ||
           frames_output(c->frames, graph_node(c->from, node)) != FRAME_ROOT;
}

static bool may_join(const struct cutter *c, const struct node *node, int before)
{
    return !is_in_loop(c, node->id) && !is_in_loop(c, before) &&
           !part_is_copied(graph_node(c->from, before)) && !node_has(node, OP_CONTROL_FLOW);
}

/* All that the node waits for of one part. */
static int connect_from(struct cutter *c, const struct node *node, int part)
{
    struct graph *graph = part_at(c, c->part[node->id]);
    int *all = arena_array(&c->arena, (size_t)node->n_controls + 1, sizeof *all), n = 0;
    for (int i = 0; i < node->n_controls; i++) {
        int before = node->controls[i];
        if (c->part[before] == part && may_join(c, node, before) && !is_implied(c, node, before))
            all[n++] = before;
    }
    if (!n)
        return 0;
    struct part_crossing over = {.edge = {all[0], CONTROL_SLOT},
                                 .also = all + 1,
                                 .n_also = n - 1,
                                 .from = part,
                                 .to = c->part[node->id],
                                 .frame = FRAME_ROOT,
                                 .reader = -1};
    struct edge here = n > 1 ? part_receive_over(c, &over) : part_edge(c, over.edge, over.to, node);
    if (edge_exists(here))
        graph_add_control(graph, graph_node(graph, c->copy[node->id]), here.node);
    return c->err->code;
}

int part_connect_controls(struct cutter *c, const struct node *node)
{
    int part = c->part[node->id];
    struct graph *graph = part_at(c, part);
    bool crosses = false;
    for (int i = 0; i < node->n_controls; i++) {
        int before = node->controls[i];
        if (c->part[before] != part && may_join(c, node, before)) {
            crosses = true;
            continue;
        }
        struct edge over = part_edge(c, (struct edge){before, CONTROL_SLOT}, part, node);
        if (!edge_exists(over))
            return c->err->code;
        graph_add_control(graph, graph_node(graph, c->copy[node->id]), over.node);
    }
    for (int from = 0; crosses && from < c->n; from++)
        if (from != part && connect_from(c, node, from))
            return c->err->code;
    return 0;
}

int part_check_tasks(const struct cutter *c, const struct part_crossing *crossing)
{
    const char *from = c->parts->parts.items[crossing->from].device;
    const char *to = c->parts->parts.items[crossing->to].device;
    struct device_name a, b;
    if (device_name_parse(&a, from, c->err) || device_name_parse(&b, to, c->err))
        return c->err->code;
    if (strcmp(a.job, b.job) != 0 || device_task_is_many(a.task) == device_task_is_many(b.task))
        return 0;
    return error_set(c->err, ERR_DATA,
                     "%s: is on %s, but what takes it on %s: both must ask for one in each task, "
                     "or for the same task",
                     node_text(graph_node(c->from, crossing->edge.node)), from, to);
}
