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
    struct attr_value values[ATTRS_MAX]; /* in declaration order; ATTR_NONE: not known yet */
    struct error *err;
};

/* Checks the whole spec and infers what it can: afterwards every declared attribute has a value.
 * ERR_DATA without the node's name. */
int bind_node(struct bind *b);

/* Returns how many inputs or outputs an argument stands for; -1: not known yet. */
int64_t bind_count(const struct bind *b, const struct op_arg *arg);

/* Checks and converts one attribute by itself; names that begin with '_' are free. */
int bind_attr(struct bind *b, const char *name, struct attr_value *value);

/* ERR_DATA: the op declares no attribute of this name. */
int bind_unknown_attr(const struct op *op, const char *name, struct error *err);

#endif
