/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/access_nodes.h"

#include <string.h>

#include "base/memory.h"

bool node_takes_ref(const struct node *node, int input)
{
    return node->op->inputs[node_argument(node, node->op->inputs, &input)].is_ref;
}

bool node_writes_ref(const struct node *node, int input)
{
    return node_takes_ref(node, input) && !node_has(node, OP_READS_REF);
}

bool access_is_variable(const struct graph *graph, struct edge edge)
{
    const struct node *from = graph_node(graph, edge.node);
    return edge.slot >= 0 && !from->n_inputs && from->outputs[edge.slot].is_ref;
}

const struct node *access_written(const struct graph *graph, const struct node *node)
{
    if (node_has(node, OP_READS_REF | OP_CONTROL_FLOW | OP_UNINITIALIZED) &&
        !node_has(node, OP_OVERWRITES))
        return NULL;
    for (int i = 0; i < node->n_inputs; i++)
        if (edge_exists(node->inputs[i]) && node_takes_ref(node, i) &&
            access_is_variable(graph, node->inputs[i]))
            return graph_node(graph, node->inputs[i].node);
    return NULL;
}

const int *access_variables(const struct graph *graph, struct arena *memory)
{
    struct error none = ERROR_INIT;
    struct map known = MAP_INIT;
    size_t n = graph->nodes.n;
    int *variables = arena_array(memory, n + 1, sizeof *variables);
    int *order = mem_array(n + 1, sizeof *order);
    memset(variables, -1, n * sizeof *variables);
    graph_each(node, graph)
        if (node_is(node, "Variable")) {
            int64_t first = node->id;
            const char *name = node_string(node, "shared_name");
            const char *key = arena_printf(memory, "%s\n%s", node_string(node, "container"),
                                           *name ? name : node->name);
            if (!map_get(&known, key, &first))
                map_put(&known, key, first);
            variables[node->id] = (int)first;
        }
    bool sorted = !graph_order(graph, order, &none);
    for (size_t i = 0; sorted && i < n; i++) {
        const struct node *node = graph_node(graph, order[i]);
        bool hands = false;
        for (int k = 0; k < node->n_outputs && node->n_inputs; k++)
            hands |= node->outputs[k].is_ref;
        if (hands) {
            /* Find the input whose reference the node passes on. */
            int k = 0;
            while (k < node->n_inputs && !node_takes_ref(node, k))
                k++;
            variables[node->id] =
                k < node->n_inputs ? access_variable_at(graph, variables, node->inputs[k]) : -1;
        }
    }
    map_release(&known);
    mem_free(order);
    return variables;
}

/* Returns whether an output may share the memory of an input. */
static bool hands_on(const struct node *node)
{
    enum { FLAGS = OP_VIEW | OP_PASSES | OP_CHECKS | OP_CONTROL_FLOW | OP_STATEFUL };
    const struct op_identity *identity = &node->op->def->identity;
    bool may_be_input = identity->when != SAME_NEVER && identity->when != SAME_OPERAND;
    return may_be_input || node->op->def->flags & FLAGS;
}

/* Repeats until nothing changes, as values also flow back to the next iteration. */
const bool *access_shown(const struct graph *graph, const int *order, const int *variables,
                         const bool *changed, struct arena *memory)
{
    bool found, *shown = arena_array(memory, graph->nodes.n + 1, sizeof *shown);
    do {
        found = false;
        graph_each_ordered(node, graph, order) {
            int variable = variables[node->id];
            bool shows = shown[node->id] || (variable >= 0 && changed[variable]);
            for (int k = 0; k < node->n_inputs && !shows && hands_on(node); k++)
                shows = edge_exists(node->inputs[k]) && shown[node->inputs[k].node];
            found |= shows != shown[node->id];
            shown[node->id] = shows;
        }
    } while (found);
    return shown;
}

int access_variable_at(const struct graph *graph, const int *variables, struct edge edge)
{
    bool is_ref = edge.slot >= 0 && graph_output(graph, edge)->is_ref;
    return is_ref ? variables[edge.node] : -1;
}

void access_add_node(struct access_graph *accesses, const struct graph *graph, const int *variables,
                     const struct node *node)
{
    bool in_loop = accesses->frame && accesses->frame[node->id];
    for (int k = 0; k < node->n_inputs; k++) {
        const struct node *from = graph_node(graph, node->inputs[k].node);
        if (!(node_is(from, "NextIteration") && node_is(node, "Merge")))
            vec_push(&accesses->edges, ((struct arc){from->id, node->id}));
        struct access access = {.variable = access_variable_at(graph, variables, node->inputs[k]),
                                .node = node->id,
                                .input = k,
                                .write = node_writes_ref(node, k),
                                .copies = !node_takes_ref(node, k) && !in_loop};
        if (access.variable >= 0)
            vec_push(&accesses->accesses, access);
    }
    for (int k = 0; k < node->n_controls; k++)
        vec_push(&accesses->edges, ((struct arc){node->controls[k], node->id}));
}

#define SLOTS_MAX 1024 /* of a predicate */

void access_name_conditions(struct access_graph *accesses, const struct frames *frames,
                            struct arena *memory)
{
    int *of_frame = arena_array(memory, frames->frames.n, sizeof *of_frame);
    vec_each(known, &frames->conditions) {
        struct access_condition condition = {known->predicate.node * SLOTS_MAX +
                                                 known->predicate.slot,
                                             known->branch, known->parent};
        vec_push(&accesses->conditions, condition);
    }
    for (size_t i = 0; i < frames->frames.n; i++)
        of_frame[i] = frames->frames.items[i].condition;
    accesses->frame_condition = of_frame;
}

void access_add_frames(struct access_graph *accesses, const struct graph *graph,
                       const struct frames *frames, struct arena *memory)
{
    int *enters = arena_array(memory, graph->nodes.n + 1, sizeof *enters);
    access_name_conditions(accesses, frames, memory);
    graph_each(node, graph) {
        if (node_is(node, "Enter"))
            enters[node->id] = frames_output(frames, node);
    }
    accesses->frame = frames->frame;
    accesses->parent = frames->parents;
    accesses->n_frames = (int)frames->frames.n;
    accesses->enters = enters;
    accesses->condition = frames->condition;
}
