/* SPDX-License-Identifier: Apache-2.0
 *
 * How passes make a new graph of another: the source's nodes are visited in topological order, and
 * each is copied, copied with changes, or replaced by an edge that exists already. Later nodes get
 * their inputs through that mapping, so that a chain collapses in one visit. For passes only.
 */
#ifndef TF_PASS_REWRITE_H
#define TF_PASS_REWRITE_H

#include "graph/build.h"
#include "graph/frames.h"
#include "pass/pass.h"

enum rewrite_flag {
    REWRITE_KEPT = 1 << 0,     /* an entry or a colocation group names it */
    REWRITE_OPAQUE = 1 << 1,   /* the user keeps it: its value may be fed */
    REWRITE_AWAITED = 1 << 2,  /* some control edge leads from it */
    REWRITE_STATEFUL = 1 << 3, /* has state, an effect, or a variable as input or output */
};

/* How attributes of a pass' copies differ from the source's. Copies of a node are numbered by k; a
 * node that the result has only once has a negative k. */
struct copy_rules {
    const struct graph *from;
    struct graph *to;
    /* Returns the name of the node that leads the copy's group in place of `leader`. The leader's
     * own name: the group stays as it is. NULL: the copy leaves it. Unset: all groups stay. */
    const char *(*leader)(void *context, const struct node *leader, int k);
    /* Changes any other attribute; false: the copy lacks it. Unset: all stay. */
    bool (*attr)(void *context, const struct node *node, int k, struct attr *attr);
    void *context;
};

/* Returns the input of copy k of `reader` that replaces an edge of the source, or (CONTROL_SLOT)
 * the node to wait for. EDGE_NONE: there is none, or none yet. */
typedef struct edge rewrite_map(void *context, const struct node *reader, struct edge edge, int k);

struct rewrite {
    const struct graph *from;
    struct graph *to;
    const struct pass_options *options;
    struct error *err;
    struct arena arena; /* goes with the rewrite */
    struct copy_rules rules;
    /* Called when a node of the source needs an edge (CONTROL_SLOT: a node) that the result has in
     * parts or not yet: makes its replacement. NULL: the pass has no such edges. */
    struct edge (*make)(void *context, const struct node *asker, struct edge edge);
    struct frames *frames; /* of the source, if the pass has found them; go with the rewrite */
    int *order;            /* of from's nodes */
    unsigned char *flags;  /* by from's node: enum rewrite_flag */
    int *first;            /* by from's node: place of its output 0 in `edges` */
    size_t n_outputs;      /* of from's nodes */
    struct edge *edges;    /* by from's outputs: what stands for it in `to`; EDGE_NONE: not yet */
    int **after;           /* by from's node: -1-terminated nodes of `to` to wait for instead */
    bool has_control_flow;
    int n_changes;
    VEC(struct open_node) open;   /* those that lacked an input when they were added */
    VEC(struct alias) lost;       /* names that shall stay fetchable */
    VEC(struct entry_edge) added; /* what entries of the source also run, or fetch */
};

/* `options` may be NULL: nothing is kept, and nobody is told. */
int rewrite_open(struct rewrite *r, const struct graph *from, const struct pass_options *options,
                 struct error *err);

/* Closes back edges; entries, aliases and provenance follow. Hands the new graph over, or NULL if
 * nothing was changed, and releases the rest. `code`: 0, or the error to end with. */
int rewrite_close(struct rewrite *r, int code, struct graph **to, int *n_changes);

/* As rewrite_close, for a pass whose nodes have new shapes: it checks the graph as well. */
int rewrite_finish(struct rewrite *r, int code, struct graph **to);

/* Edges by output of the source, as r->edges: EDGE_NONE at first. */
struct edge *rewrite_edges(struct rewrite *r);

/* The edge that stands for an edge of the source. */
struct edge rewrite_edge(const struct rewrite *r, struct edge edge);

/* Makes what entries and aliases name, if it is not there. */
void rewrite_make_named(struct rewrite *r);

/* Makes the entry, if the source has it, also run a node of `to` (CONTROL_SLOT), or fetch that edge
 * and nothing else. Other entries and aliases of the edge that it fetched keep that. */
void rewrite_extend_entry(struct rewrite *r, const char *entry, struct edge edge);

/* The node as it would be in `to`: inputs and controls mapped, all else the source's. Lives as long
 * as the rewrite. Inputs over back edges are EDGE_NONE. */
struct node rewrite_view(struct rewrite *r, const struct node *node);

/* Adds the node's replacement under its name: a view, perhaps with another op, other inputs or
 * attributes (in the arena of `to`). */
struct node *rewrite_add(struct rewrite *r, const struct node *node, const struct node *view);

/* Adds a node under another name, which replaces nothing. */
struct node *rewrite_add_as(struct rewrite *r, const struct node *node, const struct node *view,
                            const char *name);

/* Adds the node's view, with the attributes that the rules change. */
struct node *rewrite_copy(struct rewrite *r, const struct node *node);

/* Lets the outputs of a node of `to` replace the node's. */
void rewrite_stand_in(struct rewrite *r, const struct node *node, int copy);

/* Makes the nodes that wait for `node` wait for the nodes of those edges. */
void rewrite_await_parts(struct rewrite *r, const struct node *node, const struct edge *parts,
                         int n);

/* ---- facts of nodes, a bit each, that spread along edges ---- */

struct spread {
    unsigned roots;
    unsigned fact;   /* given to a node that reads one with `roots` or with the fact itself, */
    unsigned unless; /* except nodes with one of these; */
    unsigned only;   /* not 0: only nodes with one of these get it */
    bool controls;   /* nodes that wait for such a node get it, too */
    bool up;         /* the other way: such a node gives it to those that it reads */
    bool loops;      /* repeats until no node gets it, as loops lead back */
    bool (*follows)(const struct graph *graph, struct edge edge); /* NULL: along all edges */
};
/* Spreads facts in one visit of all nodes, or in several, in that order. Returns whether some node
 * got one. */
bool spread_facts(const struct graph *graph, const int *order, unsigned *facts, struct spread how);

/* A builder of nodes for a node of the source. */
struct build rewrite_build(const struct rewrite *r, const struct node *node, const char *scope,
                           const char *device);

/* ---- copies: nodes of the source that are there several times ---- */

/* The base, or if a node or alias of either graph has it BASE_1, BASE_2, ... */
const char *rewrite_free_name(const struct graph *from, struct graph *to, const char *base);
/* The same of "NEAR/SUFFIX". */
const char *rewrite_name_near(struct rewrite *r, const char *near, const char *suffix);
/* The name of part k of a node with that name: "NAME/part_k". */
const char *rewrite_part_name(struct rewrite *r, const char *name, int k);

/* Copies attributes into the arena of `to`; with `more` in the place of the node's, up to one
 * without a name (NULL: none). */
struct attr *copy_attrs(const struct copy_rules *rules, const struct node *node, int k,
                        const struct attr *more, int *n);

/* A copy whose inferred attributes and outputs are found anew, as its inputs may have other shapes.
 */
struct rewrite_copy {
    const struct node *node;
    int k;
    const char *name, *device; /* NULL: the node's */
    const struct edge *inputs; /* of `to` */
    int n_inputs;
    const struct attr *more; /* as of copy_attrs */
};
/* Adds it, and returns its output 0; EDGE_NONE once something has failed. It waits for what the
 * node waited for, but a variable, which has no value yet, waits for nothing. */
struct edge rewrite_add_copy(struct rewrite *r, const struct rewrite_copy *copy);

/* Adds a copy as it is, but for name, device, what the rules change, and what inputs and controls
 * are mapped to. Inputs over back edges are mapped again by rewrite_close. */
struct node *rewrite_add_mapped(struct rewrite *r, const struct rewrite_copy *copy,
                                rewrite_map *map);

/* Lets an edge of `to` replace output 0 of a node that computes nothing. False: the node itself is
 * needed. */
bool rewrite_replace(struct rewrite *r, const struct node *node, struct edge by, const char *what);

/* Returns whether an edge of the result is a variable. A node with that input reads it, and another
 * node in its place would read it at another time. */
bool rewrite_reads(const struct rewrite *r, struct edge edge);

/* A new constant in `to`, near a node of the source; the tensor's memory is taken over. */
struct edge rewrite_constant(struct rewrite *r, const struct node *near, const char *suffix,
                             struct tensor *value);

/* A Const in the place of `node`, as rewrite_view; the tensor's memory is taken over. */
struct node rewrite_constant_view(struct rewrite *r, const struct node *node, struct tensor *value);

/* The value of an edge of `to` that is a constant. NULL: it is none, or it is where gradients of a
 * loss begin, which other passes look for. */
const struct tensor *rewrite_value(const struct rewrite *r, struct edge edge);

/* Returns whether a node of `to` may be looked through. */
bool rewrite_is_opaque(const struct rewrite *r, const struct node *copy);

/* False for a name made from the op's, "MatMul", "hidden/MatMul_1", or, of a constant, from the
 * node that it was made for, "Div/y". */
bool rewrite_has_own_name(struct rewrite *r, const struct node *node);

void rewrite_note(struct rewrite *r, const char *node, const char *what);

#endif
