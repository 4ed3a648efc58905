/* SPDX-License-Identifier: Apache-2.0
 *
 * Random valid graphs over a registry's ops, for tests of properties that hold for every graph. Ops
 * are drawn evenly; inputs are earlier tensors of a type that the declaration admits; a node that
 * the shape function refuses is drawn again.
 */
#ifndef TF_TESTS_LIB_RANDOM_GRAPH_H
#define TF_TESTS_LIB_RANDOM_GRAPH_H

#include <stdio.h>
#include <string.h>

#include "graph/graph.h"

#define RANDOM_INPUTS_MAX 16
#define RANDOM_ATTRS_MAX 32

struct random_graph {
    struct graph *graph;
    uint64_t state;
    unsigned without;                   /* flags of ops that are left out */
    bool plain;                         /* no devices, places, controls, entries, aliases */
    enum dtype types[RANDOM_ATTRS_MAX]; /* of the op being drawn, by attribute; 0: open */
    struct tensor tensor;               /* of its attributes */
    struct shape shape;
    uint8_t data[1024];
};

/* splitmix64 */
static inline uint64_t random_next(struct random_graph *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static inline int random_below(struct random_graph *r, int n)
{
    return (int)(random_next(r) % (uint64_t)n);
}

static inline struct shape random_shape(struct random_graph *r, bool known)
{
    struct shape shape = {.rank = random_below(r, 4)};
    for (int i = 0; i < shape.rank; i++)
        shape.dims[i] = known ? random_below(r, 4) : random_below(r, 5) - 1;
    return shape;
}

/* Small numbers of every type, exact in all of them; now and then all alike. */
static inline void random_tensor(struct random_graph *r, enum dtype type)
{
    bool alike = random_below(r, 4) == 0;
    r->shape = random_shape(r, true);
    if (type == STRING) {
        struct error err = ERROR_INIT;
        const char *texts[64];
        for (int i = 0; i < 64; i++)
            texts[i] = random_below(r, 2) ? "a\"\n" : "";
        tensor_from_strings(&r->tensor, &r->shape, texts, NULL, &err);
        return;
    }
    r->tensor = tensor_borrow(type, &r->shape, r->data);
    int64_t n = tensor_count(&r->tensor);
    for (int64_t i = 0; i < n; i++)
        tensor_set_float64(&r->tensor, i, alike ? 1 : random_below(r, 3));
}

static inline struct attr_value random_value(struct random_graph *r, const struct op_attr *attr,
                                             int index)
{
    static const char *const text[] = {"x y", "\"q\"\t", ""};
    int64_t least = attr->has_minimum ? attr->minimum : 0;
    switch (attr->kind) {
    case ATTR_INT:
        return attr_int(least + random_below(r, 3));
    case ATTR_FLOAT:
        return attr_float(random_below(r, 100) / 7.0);
    case ATTR_BOOL:
        return attr_bool(random_below(r, 2));
    case ATTR_STRING:
        return attr_string(attr->strings ? attr->strings[0] : text[random_below(r, 3)]);
    case ATTR_TYPE:
        return attr_type(r->types[index]);
    case ATTR_SHAPE:
        r->shape = random_shape(r, random_below(r, 2));
        return attr_shape(&r->shape);
    default:
        return (struct attr_value){.kind = attr->kind};
    }
}

static inline enum dtype random_type(struct random_graph *r, dtype_set set)
{
    enum dtype types[32];
    int n = 0;
    for (int t = 1; t < 32; t++)
        if (set & DTYPE_BIT(t) && strcmp(dtype_name((enum dtype)t), "invalid") && t != RESOURCE)
            types[n++] = (enum dtype)t;
    return n ? types[random_below(r, n)] : DTYPE_INVALID;
}

/* Picks a tensor for an argument; EDGE_NONE if some tries found none. */
static inline struct edge random_edge(struct random_graph *r, const struct op *op,
                                      const struct op_arg *arg)
{
    for (int attempt = 0; attempt < 20 && r->graph->nodes.n; attempt++) {
        const struct node *node = graph_node(r->graph, random_below(r, (int)r->graph->nodes.n));
        if (!node->n_outputs)
            continue;
        struct edge edge = {node->id, random_below(r, node->n_outputs)};
        const struct node_output *output = &node->outputs[edge.slot];
        if (arg->is_ref && !output->is_ref)
            continue;
        if (arg->type != DTYPE_INVALID && arg->type != output->type)
            continue;
        if (arg->type_attr >= 0) {
            enum dtype *type = &r->types[arg->type_attr];
            if (*type ? *type != output->type
                      : !(op->attrs[arg->type_attr].types & DTYPE_BIT(output->type)))
                continue;
            *type = output->type;
        }
        return edge;
    }
    return EDGE_NONE;
}

static inline int random_inputs(struct random_graph *r, const struct op *op, struct edge *inputs)
{
    int n = 0;
    for (int i = 0; i < op->n_inputs; i++) {
        bool list = op->inputs[i].number_attr >= 0 || op->inputs[i].type_list_attr >= 0;
        int count = list ? 2 + random_below(r, 2) : 1;
        for (int k = 0; k < count; k++) {
            if (n == RANDOM_INPUTS_MAX)
                return -1;
            inputs[n] = random_edge(r, op, &op->inputs[i]);
            if (!edge_exists(inputs[n++]))
                return -1;
        }
    }
    return n;
}

/* Draws attributes that neither inputs nor a default determine, and some that have a default. */
static inline int random_attrs(struct random_graph *r, const struct op *op, struct attr *attrs)
{
    int n = 0;
    for (int i = 0; i < op->n_attrs && i < RANDOM_ATTRS_MAX - 2; i++) {
        const struct op_attr *attr = &op->attrs[i];
        if (attr->inferred || (attr->has_default && random_below(r, 4)))
            continue;
        if (attr->kind == ATTR_TYPE && !r->types[i])
            r->types[i] = random_type(r, attr->types);
        if (attr->kind == ATTR_TENSOR)
            continue;
        attrs[n++] = (struct attr){attr->name, random_value(r, attr, i)};
    }
    int dtype = op_find_attr(op, "dtype"), value = op_find_attr(op, "value");
    if (value >= 0 && dtype >= 0 && op->attrs[value].kind == ATTR_TENSOR) {
        random_tensor(r, r->types[dtype]);
        attrs[n++] = (struct attr){"value", attr_tensor(&r->tensor)};
    }
    if (!r->plain && random_below(r, 8) == 0)
        attrs[n++] = (struct attr){"_note", attr_float(random_below(r, 9) / 3.0)};
    return n;
}

static inline bool random_node(struct random_graph *r, const struct op *op)
{
    static const char *const devices[] = {"", "/job:ps", "/job:worker/task:*/device:CPU:0"};
    struct edge inputs[RANDOM_INPUTS_MAX];
    struct attr attrs[RANDOM_ATTRS_MAX];
    struct error err = ERROR_INIT;
    char name[32];
    memset(r->types, 0, sizeof r->types);
    memset(&r->tensor, 0, sizeof r->tensor);
    int n_inputs = random_inputs(r, op, inputs), size = (int)r->graph->nodes.n;
    if (n_inputs < 0)
        return false;
    snprintf(name, sizeof name, "%c/n%d", 'a' + random_below(r, 3), size);
    int control = size ? random_below(r, size) : 0;
    struct node_spec spec = {.op = op->def->name,
                             .name = name,
                             .inputs = inputs,
                             .n_inputs = n_inputs,
                             .attrs = attrs,
                             .n_attrs = random_attrs(r, op, attrs)};
    if (!r->plain) {
        spec.controls = &control;
        spec.n_controls = size && random_below(r, 4) == 0;
        spec.device = devices[random_below(r, 3)];
        spec.assigned = random_below(r, 2) ? devices[2] : "";
        spec.file = random_below(r, 2) ? "a model.lua" : NULL;
        spec.line = spec.file ? random_below(r, 100) : 0;
    }
    bool added = graph_add(r->graph, &spec, &err) != NULL;
    tensor_release(&r->tensor);
    return added;
}

static inline void random_names(struct random_graph *r)
{
    struct error err = ERROR_INIT;
    struct edge edges[2];
    int n = (int)r->graph->nodes.n;
    for (int i = 0; i < 2; i++)
        edges[i] = (struct edge){random_below(r, n), CONTROL_SLOT};
    graph_add_entry(r->graph, "train", edges, 2);
    graph_add_made(r->graph, "random 1.0");
    graph_add_removed(r->graph, "gone/1", &err);
    graph_add_removed(r->graph, "mean", &err);
    const struct node *node = graph_node(r->graph, random_below(r, n));
    if (node->n_outputs)
        graph_add_alias(r->graph, "alias", (struct edge){node->id, node->n_outputs - 1}, &err);
}

/* Returns whether an op may wait for other workers, as those of a clock do. */
static inline bool random_may_wait(const struct op *op)
{
    return !strncmp(op->def->name, "Clock", 5) || !strcmp(op->def->name, "AllReduce") ||
           !strncmp(op->def->name, "Collective", 10);
}

/* Makes a graph of n nodes, the same for the same seed; the caller frees it. It has no ops with a
 * flag of `without`, and of control flow only single ops; a plain graph can be run. */
static inline struct graph *random_graph(const struct registry *registry, uint64_t seed, int n,
                                         unsigned without, bool plain)
{
    struct random_graph r = {.graph = graph_new(registry),
                             .state = seed,
                             .without = without | OP_CONTROL_FLOW,
                             .plain = plain};
    int n_ops = (int)registry_count(registry);
    const struct op *constant = registry_find(registry, "Const");
    while ((int)r.graph->nodes.n < n) {
        const struct op *op = registry_at(registry, (size_t)random_below(&r, n_ops));
        if (random_below(&r, 4) == 0)
            op = constant;
        if (!(op->def->flags & r.without) && !(plain && random_may_wait(op)))
            random_node(&r, op);
    }
    if (!plain)
        random_names(&r);
    return r.graph;
}

#endif
