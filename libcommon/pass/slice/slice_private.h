/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files that cut variables share. Private to libcommon/pass.
 */
#ifndef TF_PASS_SLICE_PRIVATE_H
#define TF_PASS_SLICE_PRIVATE_H

#include "pass/cut.h"
#include "pass/slice/slice.h"

enum slice_role {
    SLICE_NONE,
    SLICE_VARIABLE,
    SLICE_WRITER, /* has the variable itself: changes it, or asks about it */
    SLICE_PUSH,   /* AggregatorPush of its gradient */
    SLICE_TAKE,   /* AggregatorTake of it */
};

/* In which parts there is a value of the source. */
enum form_kind {
    FORM_WHOLE, /* in none */
    FORM_ROWS,  /* one for each slice, with its rows */
    FORM_INDEX, /* row numbers: those in each slice, counted from its first row */
    FORM_PART,  /* the rows that belong to the row numbers `index`, by slice */
    FORM_NUMBER /* of row numbers: in which slice they are; one value */
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

/* Returns whether a value has the places that are cut. */
static inline bool slice_fits(struct partition cut, const struct shape *shape)
{
    return shape->rank > cut.axis[0] && shape->dims[cut.axis[0]] == cut.size[0];
}

/* Finds what each edge is, through nodes that hand it on; how tables are cut, roles, what is made
 * on demand. */
int slice_find(struct slicer *s);

/* In which parts an AggregatorTake has an output: FORM_ROWS of a whole gradient, FORM_PART of
 * values of the indices before them, or after them if there are none before. */
enum form_kind slice_taken(const struct slicer *s, const struct node *take, int slot);
int slice_partner(const struct node *take, int slot); /* the other slot */

/* Returns whether the edge is a sliced variable, or its value unchanged; *slicing: which. */
bool slice_is_table(const struct slicer *s, struct edge edge, int *slicing);

#endif
