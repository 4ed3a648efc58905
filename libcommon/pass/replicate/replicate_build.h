/* SPDX-License-Identifier: Apache-2.0
 *
 * New nodes of a replicated graph. Their names are as of printf, and made unique; a node that says
 * no device is the worker's. Once something has failed they are EDGE_NONE, r->err says what it was,
 * and what has no node waits for nothing. Private to libcommon/pass.
 */
#ifndef TF_PASS_REPLICATE_BUILD_H
#define TF_PASS_REPLICATE_BUILD_H

#include "base/vec.h"
#include "graph/build.h"

#define SHARD_DEVICE "/job:ps"
#define CLOCK_DEVICE "/job:ps/task:0"
#define WORKER_DEVICE "/job:worker/task:*"
#define ALLREDUCE_SCOPE "allreduce/" /* of what reduces gradients and initial values */

struct replicator;
typedef VEC(int) node_list; /* of the result */

/* Adds a node by its spec, whose name it makes. */
struct edge replicate_add(struct replicator *r, struct node_spec spec, const char *name, ...)
    __attribute__((format(printf, 3, 4)));

/* Specs of nodes: with inputs and attributes; with two inputs, which may be EDGE_NONE; the same
 * beside a variable; of constants. */
struct node_spec replicate_spec(const char *op, const struct edge *inputs, int n_inputs,
                                const struct attr *attrs, int n_attrs);
struct node_spec replicate_spec_of_two(const char *op, const struct edge inputs[2]);
struct node_spec replicate_beside(struct replicator *r, const char *variable,
                                  struct node_spec spec);
struct node_spec replicate_spec_of_value(struct replicator *r, enum dtype type,
                                         const struct shape *shape, const void *data);
struct node_spec replicate_spec_of_number(struct replicator *r, enum dtype type, double value);

/* The arguments after those make the name, as of printf. */
#define replicate_node(r, op, inputs, n_inputs, attrs, n_attrs, ...)                               \
    replicate_add(r, replicate_spec(op, inputs, n_inputs, attrs, n_attrs), __VA_ARGS__)
#define replicate_op(r, op, a, b, ...)                                                             \
    replicate_add(r, replicate_spec_of_two(op, (struct edge[]){a, b}), __VA_ARGS__)
/* The value where the flag is true; dead where it is not. */
#define replicate_when(r, value, flag, ...)                                                        \
    build_slot(replicate_op(r, "Switch", value, flag, __VA_ARGS__), 1)
#define replicate_op_beside(r, op, a, b, variable, ...)                                            \
    replicate_add(r,                                                                               \
                  replicate_beside(r, variable, replicate_spec_of_two(op, (struct edge[]){a, b})), \
                  __VA_ARGS__)
#define replicate_number(r, type, value, ...)                                                      \
    replicate_add(r, replicate_spec_of_number(r, type, value), __VA_ARGS__)
/* A variable's new value, which is set with what else is in the list. */
#define replicate_assign(r, nodes, variable, value, ...)                                           \
    replicate_also(r, nodes, replicate_op(r, "Assign", variable, value, __VA_ARGS__))
struct edge replicate_vector(struct replicator *r, const char *name, const int64_t *numbers, int n);
struct edge replicate_zeros(struct replicator *r, const char *name, enum dtype type,
                            const struct shape *shape);
/* A variable of each worker's own, with that attribute; one that the entry join sets. */
struct edge replicate_variable(struct replicator *r, const struct attr *mark, const char *name,
                               enum dtype type, const struct shape *shape);
struct edge replicate_local(struct replicator *r, const char *name, enum dtype type,
                            const struct shape *shape);
/* One that begins with zeros in the entry init; `of`: how checkpoints have it of all workers. */
struct edge replicate_kept(struct replicator *r, const char *name, const char *of, enum dtype type,
                           const struct shape *shape);

/* A node that only waits for those: NoOp, or ControlTrigger where they may be dead. */
int replicate_after(struct replicator *r, const char *op, const char *device,
                    const node_list *nodes, const char *name);
void replicate_wait(struct replicator *r, struct edge what, int before);
static inline struct edge replicate_out(int node)
{
    return (struct edge){node, 0};
}
/* Adds it to a list, if it is there, and returns it. */
struct edge replicate_also(struct replicator *r, node_list *nodes, struct edge made);

/* Adds a copy of `node` with the name, device and attributes (NULL: its own) of `differs`. */
struct node *replicate_add_copy(struct replicator *r, const struct node *node,
                                const struct node_spec *differs, const struct edge *inputs);
/* What an edge of the source, or a node that `reader` waits for (CONTROL_SLOT), is for the k-th of
 * its copies; EDGE_NONE: nothing, or nothing yet. */
typedef struct edge edge_mapper(struct replicator *r, const struct node *reader, struct edge edge,
                                int k);
/* Adds the k-th copy, whose inputs and controls are mapped. Inputs that are not there yet, of back
 * edges, are mapped again in the end. */
struct node *replicate_add_mapped(struct replicator *r, const struct node *node,
                                  const struct node_spec *differs, edge_mapper *map, int k);
void replicate_close(struct replicator *r);
/* The device that the script asked for, or the job if it asked for none. */
const char *replicate_device(struct replicator *r, const struct node *node, const char *job);
/* Makes values that cross from that node of `to` do so in 16 bits, if that is asked for. */
int replicate_narrow(struct replicator *r, int id);
/* Gives what is sent from a node of `to` this priority; 0: none. */
int replicate_hurry(struct replicator *r, int id, int priority);
/* The edge outside of the update that stands for an edge of the source. */
struct edge replicate_edge(struct replicator *r, struct edge edge);

/* A name that is free; NAME/SUFFIX, which may not be. */
const char *replicate_name(struct replicator *r, const char *base);
const char *replicate_text(struct replicator *r, const char *name, const char *suffix);
/* The variable whose gradient a node of the source hands over, by name; NULL: none. */
const char *replicate_gradient_of(const struct node *node);
const struct node *replicate_variable_of(const struct replicator *r, const struct node *node);
/* The role that a node has in handing over a row-wise gradient; "": it hands over a whole one, or
 * none; and how values that workers hand over become one. */
#define ROLE_INDICES "indices"
#define ROLE_VALUES "values"
const char *replicate_role(const struct node *node);
const char *replicate_reduction(const struct node *node, enum dtype type);

#endif
