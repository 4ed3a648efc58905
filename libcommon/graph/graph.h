/* SPDX-License-Identifier: Apache-2.0
 *
 * The graph: nodes, typed attributes, data and control edges, entry points, provenance.
 *
 * A graph owns everything in it (one arena; graph_free drops all). Nodes are addressed by id, an
 * index that never changes; pointers to nodes are stable, too. A graph is built by adding nodes and
 * is otherwise only rewritten by making another one (libcommon/pass): there is no removal. Cycles
 * run only through NextIteration -> Merge.
 *
 * Not thread-safe for writing; any number of threads may read.
 */
#ifndef TF_GRAPH_GRAPH_H
#define TF_GRAPH_GRAPH_H

#include "base/map.h"
#include "base/vec.h"
#include "graph/op.h"

#define CONTROL_SLOT (-1)

/* Longest name of a node, an entry or an alias: letters, digits and "_.-/", a letter, digit or dot
 * in front. */
#define GRAPH_NAME_MAX 2047
#define GRAPH_NAME_RULE "2047 letters, digits and _.-/ at most" /* for messages */

/* One end of an edge: output `slot` of a node; CONTROL_SLOT for "after the node". */
struct edge {
    int node;
    int slot;
};

#define EDGE_NONE ((struct edge){-1, 0})

static inline bool edge_exists(struct edge edge)
{
    return edge.node >= 0;
}

static inline bool edge_equal(struct edge a, struct edge b)
{
    return a.node == b.node && a.slot == b.slot;
}

struct node_output {
    enum dtype type;
    bool is_ref;
    struct shape shape;
};

struct node {
    const char *name;
    const struct op *op;
    int id;
    int n_inputs, n_controls, n_attrs, n_outputs;
    struct edge *inputs; /* data, in declared order */
    int *controls;       /* node ids, sorted, without repeats */
    struct attr *attrs;  /* sorted by name; all declared ones are present */
    struct node_output *outputs;
    const char *device;   /* requested, canonical; "" for none */
    const char *assigned; /* by the placer; "" before */
    const char *file;     /* of the script; NULL: unknown */
    int line;
};

/* The meaning of `--run NAME`: targets (control edges) are run, the rest is fetched. */
struct entry {
    const char *name;
    const struct edge *edges;
    int n_edges;
};

/* Another name for a tensor, which can be fetched and fed by it. */
struct alias {
    const char *name;
    struct edge edge;
};

struct graph {
    struct arena arena;
    const struct registry *registry;
    VEC(struct node *) nodes; /* by id */
    VEC(struct entry) entries;
    VEC(struct alias) aliases;
    VEC(const char *) made;    /* provenance: "tf-graph 1.0 digits.lua", oldest first */
    VEC(const char *) removed; /* names of nodes that tf-opt has removed; by graph_add_removed */
    struct map names;          /* node name -> id */
    struct map alias_names;    /* -> index */
    struct map entry_names;    /* -> index */
    struct map removed_names;  /* -> index */
    struct map taken;          /* base name -> last suffix tried, for graph_unique_name */
};

struct graph *graph_new(const struct registry *registry);
void graph_free(struct graph *graph);

static inline struct node *graph_node(const struct graph *graph, int id)
{
    return graph->nodes.items[id];
}

/* Iterate over the nodes by id, including nodes added meanwhile, or in a given order of ids. `each`
 * is a const pointer to the current node, declared by the loop. */
#define graph_each(each, graph)                                                                    \
    for (const struct node *each = graph_node_from(graph, 0); each;                                \
         each = graph_node_from(graph, each->id + 1))
/* The inner loop runs once per node; a `break` leaves it unfinished and so ends the outer loop. */
#define graph_each_ordered(each, graph, order)                                                     \
    for (size_t each##_at = 0, each##_ends = 0; !each##_ends && each##_at < (graph)->nodes.n;      \
         each##_at++)                                                                              \
        for (const struct node *each = (each##_ends = 1, graph_node(graph, (order)[each##_at]));   \
             each; each = NULL, each##_ends = 0)
static inline const struct node *graph_node_from(const struct graph *graph, int id)
{
    return (size_t)id < graph->nodes.n ? graph->nodes.items[id] : NULL;
}

/* The output that an edge, which is none of control, comes from. */
static inline const struct node_output *graph_output(const struct graph *graph, struct edge edge)
{
    return &graph_node(graph, edge.node)->outputs[edge.slot];
}

/* Iterates over the edges that entries, and then aliases, name: `each.edge`. */
#define graph_each_named(each, graph)                                                              \
    for (struct named_edge each = {.k = 0}; graph_next_named((graph), &each);)
struct named_edge {
    struct edge edge;
    size_t entry, alias; /* the next one is number k of this entry, or of this alias */
    int k;
};
static inline bool graph_next_named(const struct graph *graph, struct named_edge *at)
{
    for (; graph->entries.n > at->entry; at->entry++, at->k = 0)
        if (at->k < graph->entries.items[at->entry].n_edges) {
            at->edge = graph->entries.items[at->entry].edges[at->k++];
            return true;
        }
    if (at->alias < graph->aliases.n)
        at->edge = graph->aliases.items[at->alias].edge;
    return at->alias++ < graph->aliases.n;
}

struct node *graph_find(const struct graph *graph, const char *name); /* NULL: none */

/* The parts of a new node. Zero-initialise; only `op` is needed. Everything is copied. */
struct node_spec {
    const char *op;
    const struct op *known;    /* graph_add_trusted: the op itself, possibly of no registry */
    const char *name;          /* NULL: made from the op's name and made unique */
    const struct edge *inputs; /* to nodes that exist, or EDGE_NONE to be set later (back edges) */
    int n_inputs;
    const int *controls;
    int n_controls;
    const struct attr *attrs; /* any order; what is inferred or has a default may be left out */
    int n_attrs;
    const char *device; /* "" or NULL: none */
    const char *assigned;
    const char *file;
    int line;
};

/* Checks names, counts, types and attributes against the op's declaration, infers attributes and
 * the outputs' types and shapes, adds the node. On failure the graph is as before and the error
 * says "node 'NAME': OP: what" (ERR_DATA; the script's place is the caller's to add). A name that
 * is taken is an error. Inputs that are EDGE_NONE are left out of inference. */
struct node *graph_add(struct graph *graph, const struct node_spec *spec, struct error *err);

/* As graph_add, but unchecked and without copies: types and shapes of the outputs are as given, the
 * attributes complete, correct and sorted; names, attributes and texts are borrowed. For passes and
 * plans that copy nodes of a graph which outlives the new one. */
struct node *graph_add_trusted(struct graph *graph, const struct node_spec *spec,
                               const struct node_output *outputs, int n_outputs);

/* A spec of a node like another one of the script: op, name, attributes, wanted device, place. */
struct node_spec graph_spec_like(const struct node *node);

/* Adds a copy of a node of another graph, which outlives this one, without controls; its inputs are
 * still those of the other graph. */
struct node *graph_add_copy(struct graph *graph, const struct node *node);

/* Sets an input that was left open (closes a back edge); types must agree. Shapes are not inferred
 * again: call graph_infer when all are closed. */
int graph_set_input(struct graph *graph, struct node *node, int index, struct edge edge,
                    struct error *err);
void graph_add_control(struct graph *graph, struct node *node, int control);
int graph_rename(struct graph *graph, struct node *node, const char *name, struct error *err);
int graph_set_attr(
    struct graph *graph, struct node *node, const struct attr *attr,
    struct error *err); /* checked against the declaration; '_' attributes are free */
void graph_set_device(struct graph *graph, struct node *node, const char *device);
void graph_set_assigned(struct graph *graph, struct node *node, const char *device);

/* "base", "base_1", "base_2", ...: the first that is not taken. In the graph's arena. */
const char *graph_unique_name(struct graph *graph, const char *base);
bool graph_name_valid(const char *name);
/* Returns the first of BASE, BASE.1, BASE.2, ... that is no prefix of the name of any node or
 * alias: `base` itself, or a text in the arena. For the names that a pass makes. */
const char *graph_free_prefix(struct arena *arena, const struct graph *graph, const char *base);

void graph_add_entry(struct graph *graph, const char *name, const struct edge *edges, int n);
const struct entry *graph_entry(const struct graph *graph, const char *name); /* NULL: none */
int graph_add_alias(struct graph *graph, const char *name, struct edge edge, struct error *err);
void graph_add_made(struct graph *graph, const char *provenance);
/* Does nothing if a node of this name exists (again). ERR_DATA if `name` is no valid name. */
int graph_add_removed(struct graph *graph, const char *name, struct error *err);
bool graph_was_removed(const struct graph *graph, const char *name);
/* Records that the changes made to `from` were made to `to` as well: adds provenance and removed
 * names, except names that are aliases in `to` again. */
void graph_add_history(struct graph *to, const struct graph *from);

/* Returns the length of the node's name in an edge's text, "name" or "name:1". */
size_t edge_text_split(const char *text, int *slot);

/* Parses "n", "n:1", "^n", or an alias. If there is no such node, fails with ERR_DATA and says that
 * it was removed or which name may have been meant. */
int graph_parse_edge(const struct graph *graph, const char *text, struct edge *edge,
                     struct error *err);
/* The canonical text: "n", "n:1", "^n". */
void graph_print_edge(struct str *out, const struct graph *graph, struct edge edge);

/* Attributes of a node by name. The declared ones are always there; asking the typed getters for
 * one that is not, or for another kind, is a bug. */
const struct attr_value *node_attr(const struct node *node, const char *name); /* or NULL */
int64_t node_int(const struct node *node, const char *name);
/* Returns the priority of the values that the node sends, from its attribute `_priority`: smaller
 * numbers go first; 0 if it has none. Never the least or the largest number. */
int32_t node_priority(const struct node *node);
double node_float(const struct node *node, const char *name);
bool node_bool(const struct node *node, const char *name);
const char *node_string(const struct node *node, const char *name);
enum dtype node_type(const struct node *node, const char *name);

static inline bool node_is(const struct node *node, const char *op)
{
    return !__builtin_strcmp(node->op->def->name, op);
}

/* Returns whether an input of a node is its loop's back edge, which no order waits for. */
static inline bool graph_is_back_edge(const struct graph *graph, const struct node *node,
                                      struct edge edge)
{
    return node_is(node, "Merge") && node_is(graph_node(graph, edge.node), "NextIteration");
}

/* Returns whether training changes a variable: a floating one without `_trainable` = false. */
static inline bool node_is_trained(const struct node *variable)
{
    const struct attr_value *mark = node_attr(variable, "_trainable");
    return dtype_is_floating(variable->outputs[0].type) &&
           !(mark && mark->kind == ATTR_BOOL && !mark->b);
}

/* The i-th edge that a node waits for: its inputs, then its controls, n_inputs + n_controls in all.
 */
static inline struct edge node_dependency(const struct node *node, int i)
{
    return i < node->n_inputs ? node->inputs[i]
                              : (struct edge){node->controls[i - node->n_inputs], CONTROL_SLOT};
}

/* Returns the group, from the attribute, with which a Send or a Recv is transferred (only members
 * that are needed are); NULL: it is transferred by itself. */
#define NODE_GROUP "_group"
static inline const char *node_group(const struct node *node)
{
    const struct attr_value *group = node_attr(node, NODE_GROUP);
    return group && (node_is(node, "Send") || node_is(node, "Recv")) ? group->s : NULL;
}

/* Groups of nodes to be colocated on one device. A node lists its groups in the attribute `_class`,
 * each as "loc:@NAME", NAME being the node that leads the group. */

/* Returns the name within "loc:@NAME", a part of the text; NULL: the text has another form. */
const char *group_leader_name(const char *group);

/* Returns the node that leads the group; NULL: another form of text, or there is no such node. */
const struct node *group_leader(const struct graph *graph, const char *group);

/* The same of the first group that a node lists. */
const struct node *group_first_leader(const struct graph *graph, const struct node *node);

/* Returns a `_class` attribute that names this leader alone; its texts are in the arena. */
struct attr group_attr(struct arena *arena, const char *leader);

static inline bool node_has(const struct node *node, enum op_flag flag)
{
    return (node->op->def->flags & flag) != 0;
}

/* Finds the argument of `args` that contains tensor *i of the node; *i becomes its index in it. */
int node_argument(const struct node *node, const struct op_arg *args, int *i);
/* Returns whether input i may still be needed after the kernel has returned. */
bool node_keeps(const struct node *node, int i);

/* Returns how the op treats rows: its part in a round of several workers. */
static inline enum op_rows node_rows(const struct node *node)
{
    return node->op->rows;
}

static inline enum op_round node_round(const struct node *node)
{
    return node->op->def->round;
}

/* Returns whether the node creates a resource of the step, for example a stack. */
static inline bool node_makes_resource(const struct node *node)
{
    return !node->n_inputs && node->n_outputs && node->outputs[0].type == RESOURCE;
}

/* "node 'hidden/h' (digits.lua:4)": the start of every message about a node; without the script's
 * place if there is none. In one of a few rotating per-thread buffers. */
const char *node_text(const struct node *node);

/* Prefixes an error with node_text and the op of the node that failed. */
int node_fail(const struct node *node, struct error *err);
/* Says so of a node that cannot be: ERR_DATA. */
#define node_refuse(node, err, ...)                                                                \
    (error_set((err), ERR_DATA, __VA_ARGS__), node_fail((node), (err)))

/* Sets `order`, which has room for nodes.n ids, so that every node comes after its inputs and
 * controls (back edges into Merge left out), ties by id. ERR_DATA naming the nodes of a cycle. */
int graph_order(const struct graph *graph, int *order, struct error *err);

/* Checks what a graph from outside must satisfy beyond graph_add: no open inputs, acyclic but for
 * loops, frames consistent (frames.h), colocation groups and entries name existing nodes. */
int graph_check(const struct graph *graph, struct error *err);

/* Infers all shapes again, to a fixed point across loops. */
int graph_infer(struct graph *graph, struct error *err);

#endif
