/* SPDX-License-Identifier: Apache-2.0
 *
 * Shape inference: what an op's shape function sees. It runs when a node is added (shapes may be
 * unknown), and again when a plan is made for given feed shapes.
 */
#ifndef TF_GRAPH_INFER_H
#define TF_GRAPH_INFER_H

#include "graph/graph.h"

struct infer {
    const struct node *node; /* name, op and attributes; inputs are described here: */
    const struct node_output *const
        *in; /* types, and shapes as far as known; NULL: a back edge (Merge) */
    struct tensor *const *tensors; /* in a step: the inputs, in place of `in` */
    struct shape *out;             /* to be set; unknown rank on entry */
    int n_in, n_out;
    /* A constant input's value (host), or NULL; and an int32 or int64 vector's value, as far as
     * known, as a shape (unknown elements are -1; false: not even its length is known). */
    const struct tensor *(*value)(const struct infer *infer, int input);
    bool (*value_shape)(const struct infer *infer, int input, struct shape *shape);
    const void *context;
    struct error *err;
};

/* Sets the text (the caller puts node and op in front) and returns ERR_DATA. */
#define infer_fail(infer, ...) error_set((infer)->err, ERR_DATA, __VA_ARGS__)

/* Checks that help to write shape functions; each fails with a message that names the input. An
 * unknown rank passes. */
int infer_rank(struct infer *infer, int input, int rank); /* exactly */
int infer_rank_at_least(struct infer *infer, int input, int rank);
#define infer_scalar(infer, input) infer_rank((infer), (input), 0)
int infer_scalars(struct infer *infer, int from, int to); /* inputs from..to-1 */
#define infer_vector(infer, input) infer_rank((infer), (input), 1)
int infer_merge(struct infer *infer, int a, int b, struct shape *merged); /* both must agree */

static inline const struct shape *infer_shape(const struct infer *infer, int input)
{
    return infer->tensors ? &infer->tensors[input]->shape : &infer->in[input]->shape;
}

static inline const struct tensor *infer_value(const struct infer *infer, int input)
{
    return infer->value(infer, input);
}

static inline bool infer_value_shape(const struct infer *infer, int input, struct shape *shape)
{
    return infer->value_shape(infer, input, shape);
}

/* Gets the value of an int32/int64 scalar; false if it is not constant. */
bool infer_value_int(const struct infer *infer, int input, int64_t *value);

/* Gets the axis of a value of that rank which a scalar names, from the end if negative; -1 if it is
 * not constant, or the rank unknown. */
int infer_axis(struct infer *infer, int input, int rank, int *axis);

/* Gets the shape that a value gives: an int32/int64 scalar or vector, unknown where it is below 0.
 * False: it is none. */
bool infer_shape_of_value(const struct tensor *value, struct shape *shape);

/* Gets the shape that an int32/int64 vector gives, as far as known. Fails for constants below 0. */
int infer_dims(struct infer *infer, int input, struct shape *shape);

/* The same of a shape of `rank` dimensions, of which unknown ones are -1. */
int infer_sizes(struct infer *infer, int input, int rank, struct shape *sizes);

/* Shape functions that many ops share. */
int infer_unchanged(struct infer *infer);     /* every output like input 0 */
int infer_broadcast(struct infer *infer);     /* output 0: inputs 0 and 1 broadcast */
int infer_alike(struct infer *infer);         /* output 0: inputs 0 and 1, of one shape */
int infer_output_scalar(struct infer *infer); /* every output a scalar */
int infer_all_scalars(struct infer *infer);   /* every input and output a scalar */
/* Output 0: the attribute `shape`, as far as it is known. */
int infer_output_declared(struct infer *infer);
/* Output 0: the attribute `shape`, which must be known; all others scalars. */
int infer_output_attribute(struct infer *infer);

/* Common forms of op_def.value: the value of input 0; the concatenated values of the inputs from
 * `first` on. */
bool infer_value_unchanged(const struct infer *infer, struct shape *value);
bool infer_value_joined(const struct infer *infer, int first, struct shape *value);

/* Infers one node of a graph; known input values come from Const, Shape, Pack and the like. Inputs
 * that are not in `visited` (by id; NULL: all are) are open. */
int infer_node(const struct graph *graph, const struct node *node, const char *visited,
               struct shape *out, struct error *err);

/* Infers one node from what its inputs are in a step: their types and shapes, and the values of
 * inputs `from` to `to` - 1. */
struct infer_inputs {
    struct tensor *const *in;
    int n, from, to;
};
int infer_from_inputs(const struct node *node, const struct infer_inputs *inputs, struct shape *out,
                      struct error *err);

/* Returns an edge's value if it is constant in this graph, as infer->value does. */
const struct tensor *graph_constant(const struct graph *graph, struct edge edge);
bool graph_constant_shape(const struct graph *graph, struct edge edge, struct shape *shape);

/* Sets a bit per axis that a constant scalar or vector of integers names, for a value of that rank.
 * Returns false if the edge is not constant or names an axis out of range. */
bool graph_constant_axes(const struct graph *graph, struct edge edge, int rank, unsigned *axes);

#endif
