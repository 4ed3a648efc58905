/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: a graph randomly placed on several devices of this process, partitioned and joined
 * again. With TF_TEST_DEVICE every other device is of that type, as long as there are enough.
 */
#ifndef TF_TESTS_LIB_CUT_H
#define TF_TESTS_LIB_CUT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/run/plan_set.h"
#include "graph/join.h"
#include "graph/text.h"
#include "lib/random_graph.h"
#include "lib/test_device.h"
#include "lib/unit.h"
#include "ops/ops.h"
#include "pass/part/part.h"

#define CUT_DEVICES 4

static inline bool same_bits(const struct tensor *a, const struct tensor *b)
{
    if (a->type != b->type || !shape_equal(&a->shape, &b->shape))
        return false;
    return a->type == STRING ? tensor_equal(a, b)
                             : !tensor_bytes(a) || !memcmp(a->data, b->data, tensor_bytes(a));
}

struct cut_graph {
    struct parts parts;
    struct graph *joined;
};

static inline struct device *cut_open_device(const char *type, int index, struct error *err)
{
    return device_open(type, index, &(struct device_options){.threads = 1}, err);
}

static inline struct device *const *cut_devices(void)
{
    static struct device *devices[CUT_DEVICES];
    struct error err = ERROR_INIT;
    const char *other = getenv("TF_TEST_DEVICE");
    char type[64] = "CPU";
    test_device_path();
    if (other)
        sscanf(other, "%63[^:]", type);
    for (int i = 0; i < CUT_DEVICES && !devices[i]; i++) {
        bool is_other = i % 2 && strcmp(type, "CPU");
        devices[i] = cut_open_device(is_other ? type : "CPU", is_other ? i / 2 : i, &err);
        if (!devices[i] && i > 1 && is_other) {
            error_clear(&err);
            devices[i] = cut_open_device("CPU", i, &err);
        }
        if (!devices[i] && test_device_lacks(&err))
            skip();
        if (!devices[i])
            fail_msg("%s", err.text);
    }
    return devices;
}

static inline void cut_assign(struct graph *graph, struct node *node, int device)
{
    const struct device *at = cut_devices()[device];
    char name[160];
    snprintf(name, sizeof name, "/job:localhost/task:0/device:%s:%d", at->type, at->index);
    graph_set_assigned(graph, node, name);
}

/* Moves nodes that a text places on CPU:i to the i-th device, whatever its type. */
static inline void cut_rename(struct graph *graph)
{
    for (size_t i = 0; i < graph->nodes.n; i++) {
        struct node *node = graph_node(graph, (int)i);
        const char *index = strrchr(node->assigned, ':');
        if (index)
            cut_assign(graph, node, atoi(index + 1));
    }
}

static inline bool cut_is_joined(const struct node *node)
{
    for (int i = 0; i < node->n_outputs; i++)
        if (node->outputs[i].is_ref)
            return true;
    for (int i = 0; i < node->op->n_inputs; i++)
        if (node->op->inputs[i].is_ref)
            return true;
    return false;
}

static inline bool cut_has_resource(const struct graph *graph, const struct node *node)
{
    for (int i = 0; i < node->n_outputs; i++)
        if (node->outputs[i].type == RESOURCE)
            return true;
    for (int i = 0; i < node->n_inputs; i++)
        if (graph_output(graph, node->inputs[i])->type == RESOURCE)
            return true;
    return false;
}

/* Moves a node and the source of its reference to one device: the first of their two, by name. */
static inline bool cut_meet(struct graph *graph, struct node *node, struct node *from)
{
    int order = strcmp(node->assigned, from->assigned);
    if (order)
        graph_set_assigned(graph, order < 0 ? from : node,
                           order < 0 ? node->assigned : from->assigned);
    return order;
}

static inline bool cut_join(struct graph *graph)
{
    bool moved = false;
    for (size_t i = 0; i < graph->nodes.n; i++) {
        struct node *node = graph_node(graph, (int)i);
        for (int k = 0; k < node->n_inputs && cut_is_joined(node); k++) {
            struct node *from = graph_node(graph, node->inputs[k].node);
            if (from->outputs[node->inputs[k].slot].is_ref)
                moved |= cut_meet(graph, node, from);
        }
    }
    return moved;
}

/* Places each node on one of the devices; nodes that use or share a variable itself on the same
 * one; all resources on the first. */
static inline void cut_place(struct graph *graph, uint64_t seed, int n_devices)
{
    for (size_t i = 0; i < graph->nodes.n; i++) {
        struct node *node = graph_node(graph, (int)i);
        int device = (int)(unit_random(&seed) % (uint64_t)n_devices);
        cut_assign(graph, node, cut_has_resource(graph, node) ? 0 : device);
    }
    while (cut_join(graph))
        ;
}

static inline void cut_open(struct cut_graph *cut, const struct graph *graph)
{
    struct error err = ERROR_INIT;
    const struct graph *graphs[CUT_DEVICES];
    if (part_graph(graph, NULL, &cut->parts, &err))
        fail_msg("%s", err.text);
    for (size_t i = 0; i < cut->parts.parts.n; i++)
        graphs[i] = cut->parts.parts.items[i].graph;
    if (graph_join(graphs, (int)cut->parts.parts.n, &cut->joined, &err))
        fail_msg("%s", err.text);
}

/* The same for a graph in text form: returns the joined graph; *whole is the original. */
static inline struct graph *cut_parse(struct cut_graph *cut, struct graph **whole, const char *text)
{
    struct error err = ERROR_INIT;
    if (graph_parse_text(text, strlen(text), "test", ops_registry(), whole, &err))
        fail_msg("%s", err.text);
    cut_open(cut, *whole);
    return cut->joined;
}

static inline void cut_close(struct cut_graph *cut)
{
    graph_free(cut->joined);
    parts_release(&cut->parts);
}

/* Returns the same tensor in the joined graph. */
static inline struct edge cut_edge(const struct cut_graph *cut, const struct graph *graph,
                                   struct edge edge)
{
    const struct node *node = graph_find(cut->joined, graph_node(graph, edge.node)->name);
    assert_non_null(node);
    return (struct edge){node->id, edge.slot};
}

/* Returns whether some ops wait for other steps, of which there are none here. */
static inline bool random_graph_may_wait(const struct graph *graph)
{
    for (size_t i = 0; i < graph->nodes.n; i++) {
        const struct kernel_row *row = kernel_find(ops_kernels(), graph_node(graph, (int)i), "CPU");
        if (row && row->flags & KERNEL_ASYNC)
            return true;
    }
    return false;
}

/* Adds control edges to every other graph: one node in three waits for one before it. */
static inline void random_graph_add_controls(struct graph *graph, uint64_t seed)
{
    struct random_graph r = {.state = ~seed};
    for (size_t i = 1; seed % 2 && i < graph->nodes.n; i++)
        for (int k = 0; k < 2; k++)
            if (random_below(&r, 3) == 0)
                graph_add_control(graph, graph_node(graph, (int)i), random_below(&r, (int)i));
}

#endif
