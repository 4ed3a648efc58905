/* SPDX-License-Identifier: Apache-2.0
 *
 * Binding a node's inputs and attributes to its op's declaration. Private to libcommon/graph.
 */
#ifndef TF_GRAPH_BIND_H
#define TF_GRAPH_BIND_H

#include "graph/graph.h"

#define ATTRS_MAX 32
#define BIND_COUNT_MAX (1 << 20) /* tensors that a list argument may stand for */

struct bind {
    struct graph *graph;
    const struct node_spec *spec;
    const struct op *op;
    struct attr_value values[ATTRS_MAX]; /* by the declaration's order; ATTR_NONE: not known yet */
    struct error *err;
};

/* Checks all that the spec says and finds what can be inferred: afterwards every declared attribute
 * has its value. ERR_DATA without the node's name. */
int bind_node(struct bind *b);

/* Number of inputs or outputs that an argument stands for; -1: not known yet. */
int64_t bind_count(const struct bind *b, const struct op_arg *arg);

/* Checks and converts one attribute by itself; a name with '_' in front is free. */
int bind_attr(struct bind *b, const char *name, struct attr_value *value);

/* ERR_DATA: the op declares no attribute of this name. */
int bind_unknown_attr(const struct op *op, const char *name, struct error *err);

#endif
