/* SPDX-License-Identifier: Apache-2.0
 *
 * New nodes of a replicated graph. Their names are printf formats, and are made unique; a node
 * without a device is the worker's. After an error, saved in r->err, new nodes are EDGE_NONE, and
 * nothing waits for them. Private to libcommon/pass.
 */
#ifndef TF_PASS_REPLICATE_BUILD_H
#define TF_PASS_REPLICATE_BUILD_H

#include "base/vec.h"
#include "graph/build.h"

#define SHARD_DEVICE "/job:ps"
#define CLOCK_DEVICE "/job:ps/task:0"
#define WORKER_DEVICE "/job:worker/task:*"
#define ALLREDUCE_SCOPE "allreduce/" /* scope of nodes that reduce gradients and initial values */

struct replicator;
typedef VEC(int) node_list; /* of the result */

/* Adds a node by its spec, with the name formatted from `name`. */
struct edge replicate_add(struct replicator *r, struct node_spec spec, const char *name, ...)
    __attribute__((format(printf, 3, 4)));

/* Specs of nodes: with inputs and attributes; with two inputs, which may be EDGE_NONE; a spec
 * placed beside a variable; a constant. */
struct node_spec replicate_spec(const char *op, const struct edge *inputs, int n_inputs,
                                const struct attr *attrs, int n_attrs);
struct node_spec replicate_spec_of_two(const char *op, const struct edge inputs[2]);
struct node_spec replicate_beside(struct replicator *r, const char *variable,
                                  struct node_spec spec);
struct node_spec replicate_spec_of_number(struct replicator *r, enum dtype type, double value);

/* The further arguments are the name's format and its arguments. */
#define replicate_node(r, op, inputs, n_inputs, attrs, n_attrs, ...)                               \
    replicate_add(r, replicate_spec(op, inputs, n_inputs, attrs, n_attrs), __VA_ARGS__)
#define replicate_op(r, op, a, b, ...)                                                             \
    replicate_add(r, replicate_spec_of_two(op, (struct edge[]){a, b}), __VA_ARGS__)
/* The value if the flag is true, else dead. */
#define replicate_when(r, value, flag, ...)                                                        \
    build_slot(replicate_op(r, "Switch", value, flag, __VA_ARGS__), 1)
#define replicate_op_beside(r, op, a, b, variable, ...)                                            \
    replicate_add(r,                                                                               \
                  replicate_beside(r, variable, replicate_spec_of_two(op, (struct edge[]){a, b})), \
                  __VA_ARGS__)
#define replicate_number(r, type, value, ...)                                                      \
    replicate_add(r, replicate_spec_of_number(r, type, value), __VA_ARGS__)
/* Assigns a variable's new value; the node joins the list. */
#define replicate_assign(r, nodes, variable, value, ...)                                           \
    replicate_also(r, nodes, replicate_op(r, "Assign", variable, value, __VA_ARGS__))
struct edge replicate_vector(struct replicator *r, const char *name, const int64_t *numbers, int n);
struct edge replicate_zeros(struct replicator *r, const char *name, enum dtype type,
                            const struct shape *shape);
/* A variable private to each worker, with that attribute; one that the entry join sets. */
struct edge replicate_variable(struct replicator *r, const struct attr *mark, const char *name,
                               enum dtype type, const struct shape *shape);
struct edge replicate_local(struct replicator *r, const char *name, enum dtype type,
                            const struct shape *shape);
/* A variable that the entry init sets to zeros; `of`: how checkpoints combine all workers'. */
struct edge replicate_kept(struct replicator *r, const char *name, const char *of, enum dtype type,
                           const struct shape *shape);

/* Adds a node that only waits for others: NoOp, or ControlTrigger if they may be dead. */
int replicate_after(struct replicator *r, const char *op, const char *device,
                    const node_list *nodes, const char *name);
void replicate_wait(struct replicator *r, struct edge what, int before);
/* Adds an entry of those edges, unless something has failed. */
int replicate_entry(struct replicator *r, const char *name, const struct edge *edges, int n);
/* Makes a node wait for the step's checks, of its loss for example, which precede any exchange. */
void replicate_wait_for_checks(struct replicator *r, struct edge what);
static inline struct edge replicate_out(int node)
{
    return (struct edge){node, 0};
}
/* Adds the node to a list, if it exists, and returns it. */
struct edge replicate_also(struct replicator *r, node_list *nodes, struct edge made);

/* Returns the device that the script asked for, or the job if it asked for none. */
const char *replicate_device(struct replicator *r, const struct node *node, const char *job);
/* Makes values sent from a node of `to` cross in 16 bits, if that is asked for, and with a
 * priority; 0: none. */
void replicate_mark_sent(struct replicator *r, int id, int priority);
/* Returns the edge outside of the update that stands for an edge of the source. */
struct edge replicate_edge(struct replicator *r, struct edge edge);

/* Returns NAME/SUFFIX, which may be in use. */
const char *replicate_text(struct replicator *r, const char *name, const char *suffix);
/* Return the variable whose gradient a node of the source hands over, by name; NULL: none. */
const char *replicate_gradient_of(const struct node *node);
const struct node *replicate_variable_of(const struct replicator *r, const struct node *node);
/* The node's role in handing over a row-wise gradient; "": it hands over a whole one, or none.
 * replicate_reduction returns how workers' values are combined. */
#define ROLE_INDICES "indices"
#define ROLE_VALUES "values"
const char *replicate_role(const struct node *node);
const char *replicate_reduction(const struct node *node, enum dtype type);

#endif
