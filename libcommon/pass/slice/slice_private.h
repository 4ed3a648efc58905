/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files that cut variables share. Private to libcommon/pass.
 *
 * Nodes of the source are visited in topological order. Those that concern a table are made once
 * for each slice; a node that only they need is made when somebody asks for its value, whole or in
 * parts.
 */
#ifndef TF_PASS_SLICE_PRIVATE_H
#define TF_PASS_SLICE_PRIVATE_H

#include "pass/cut.h"
#include "pass/slice/slice.h"

/* The depth of values that are asked for by values; deeper ones are made whole. */
#define SLICE_DEPTH_MAX 64

enum slice_role {
    SLICE_NONE,
    SLICE_VARIABLE,
    SLICE_WRITER, /* has the variable itself: changes it, or asks about it */
    SLICE_PUSH,   /* AggregatorPush of its gradient */
    SLICE_TAKE,   /* AggregatorTake of it */
};

/* In which parts there is a value of the source. */
enum form_kind {
    FORM_ROWS,  /* one for each slice, with its rows */
    FORM_INDEX, /* row numbers: those in each slice, counted from its first row */
    FORM_PART,  /* the rows that belong to the row numbers `index`, by slice */
    FORM_NUMBER /* of row numbers: in which slice they are; one value */
};

struct form {
    enum form_kind kind;
    struct edge edge, index; /* of the source */
    int slicing;
    struct edge *parts; /* of the result */
    struct form *next;  /* of the same node */
};

/* The meaning of an output of an AggregatorTake. */
enum taken {
    TAKEN_OTHER,
    TAKEN_DENSE,
    TAKEN_INDEX,
    TAKEN_VALUES, /* of the indices before it, or after it if there are none before */
};

struct slicer {
    const struct graph *from;
    const struct placement *placement;
    int64_t balance_above;
    struct rewrite r;
    VEC(struct partition) slicings; /* the cuts that the tables of a group share, along one axis */
    int *slicing;                   /* by node with a role: index into slicings */
    char *role;                     /* by node: enum slice_role */
    const struct node **origin;
    char *on_demand;     /* by node: only what is made in slices needs it */
    unsigned *updates;   /* by node: 1: it has to do with what was taken, as that runs on shards */
    int *take;           /* by push: its take */
    const char ***names; /* by table and slice */
    struct form **forms; /* by node */
    const char *prefix;  /* of the names of new nodes: prefix/NAME, of what they are for */
    int depth;           /* of values asked for by values */
    struct build b;
    struct error *err;
};

static inline struct partition slice_cut_at(const struct slicer *s, int slicing)
{
    return s->slicings.items[slicing];
}

/* The first place of slice k, and how many it has, along the axis; rows, they are called. */
static inline int64_t slice_first(struct partition cut, int k)
{
    return cut_area(&cut, k).from[0];
}

static inline int64_t slice_rows(struct partition cut, int k)
{
    return slice_first(cut, k + 1) - slice_first(cut, k);
}

/* Returns whether a value has the places that are cut. */
static inline bool slice_fits(struct partition cut, const struct shape *shape)
{
    return shape->rank > cut.axis[0] && shape->dims[cut.axis[0]] == cut.size[0];
}

/* slice_find.c: how tables are cut, roles, what is made on demand. */
int slice_find(struct slicer *s);

/* Finds what each edge is, through nodes that hand it on; for all edges at once. */
void slice_find_origins(struct slicer *s);
enum taken slice_taken(const struct slicer *s, const struct node *take, int slot);
int slice_partner(const struct node *take, int slot); /* the other slot */

/* Returns whether the edge is a sliced variable, or its value unchanged; *slicing: which. */
bool slice_is_table(const struct slicer *s, struct edge edge, int *slicing);

/* slice.c: nodes of the result. All return EDGE_NONE (-1, NULL) once something has failed. */

/* One like the node for slice k, or, -1, the whole; its name is found here. */
struct edge slice_add_copy(struct slicer *s, struct rewrite_copy copy);
/* Adds a Gather's part: the rows of a table that are in slice k. */
struct edge slice_add_gather(struct slicer *s, const struct node *node, int k, struct edge table,
                             struct edge rows);

/* Where new nodes go: named below a node of the source, on the device and in the group of what
 * they go with. In a loop what has no input waits for `here`, so that it is of the same iteration.
 */
struct slice_site {
    const struct node *node, *with;
    int k;
    struct edge here; /* of the result; or EDGE_NONE */
};
struct build *slice_builder(struct slicer *s, const struct slice_site *site);

static inline const struct node_output *slice_output(const struct slicer *s, struct edge edge)
{
    return &graph_node(s->from, edge.node)->outputs[edge.slot];
}

/* slice_form.c: values of the source in parts, made if need be; NULL on failure. */
const struct form *slice_note(struct slicer *s, const struct form *form);
const struct form *slice_rows_of(struct slicer *s, int slicing, struct edge edge);
const struct form *slice_index_of(struct slicer *s, int slicing, struct edge edge);
const struct form *slice_part_of(struct slicer *s, int slicing, struct edge edge,
                                 struct edge index);
struct edge slice_number_of(struct slicer *s, int slicing, struct edge edge);

/* Copies of the form's node, one for each slice, of what that slice has of each input. */
const struct form *slice_copies(struct slicer *s, struct form *form, struct edge *const *inputs);
/* A value as it is, for each slice. */
struct edge *slice_same(struct slicer *s, int slicing, const struct node *asker, struct edge edge);

/* A form with no parts yet. */
struct form slice_new_form(struct slicer *s, enum form_kind kind, int slicing, struct edge edge);

/* slice.c: the value of the source as it is, for a node of the source. */
struct edge slice_whole(struct slicer *s, const struct node *asker, struct edge edge);
int slice_await(struct slicer *s, const struct node *node); /* its controls are there */

/* What those have in common: how many slices the node's table has; parts of an output, to be made;
 * what its output is as a whole; the parts in which that is known. */
static inline int slice_n_slices(const struct slicer *s, const struct node *node)
{
    return slice_cut_at(s, s->slicing[node->id]).n[0];
}
struct form slice_new_rows(struct slicer *s, const struct node *node, int slot);
struct edge slice_is_whole(struct slicer *s, struct edge edge, struct edge whole);
const struct form *slice_first_known(const struct slicer *s, struct edge edge);

/* slice_push.c: aggregators, and the clock that waits for them. */
void slice_find_updates(struct slicer *s);
int slice_visit_push(struct slicer *s, const struct node *node);
int slice_visit_take(struct slicer *s, const struct node *node);
int slice_visit_clock(struct slicer *s, const struct node *node);

#endif
