/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of variable partitioning. Private to libcommon/pass.
 */
#ifndef TF_PASS_SLICE_PRIVATE_H
#define TF_PASS_SLICE_PRIVATE_H

#include "pass/cut.h"
#include "pass/slice/slice.h"

enum slice_role {
    SLICE_NONE,
    SLICE_VARIABLE,
    SLICE_WRITER, /* takes the variable itself: changes it, or tests it */
    SLICE_PUSH,   /* AggregatorPush of its gradient */
    SLICE_TAKE,   /* AggregatorTake of its gradient */
};

/* The parts in which a value of the source exists. */
enum form_kind {
    FORM_WHOLE, /* not in parts */
    FORM_ROWS,  /* for each slice its rows */
    FORM_INDEX, /* row numbers: for each slice its own, relative to its first row */
    FORM_PART,  /* for each slice the rows that belong to the row numbers `index` */
    FORM_NUMBER /* for row numbers: the slice of each, as one value */
};

/* Of the shards' memory: bytes; 0: some shard has no limit. */
struct slice_limits {
    int64_t least, most;
    int n; /* shards */
};

struct slicer {
    const struct placement *placement;
    int64_t balance_above;
    struct slice_limits limits;
    struct sliced_table *tables; /* by node */
    struct rewrite r;
    bool found;                   /* something is cut */
    const struct partition **cut; /* by node with a role: a table's and its slots' */
    char *role;                   /* by node: enum slice_role */
    const struct node **origin;
    char *on_demand;     /* by node: only nodes made in slices need it */
    unsigned *updates;   /* by node: 1: depends on a take, or is needed by such a node: on shards */
    int *take;           /* by push: its take */
    const char ***names; /* by table and slice */
    struct form **forms; /* by node */
    const char *prefix;  /* of the names of new nodes: prefix/NAME */
    int depth;           /* of values made on demand for one another */
    struct build b;
};

/* Returns whether a value has the axis that is split, with its size. */
static inline bool slice_fits(const struct partition *cut, const struct shape *shape)
{
    return shape->rank > cut->axis[0] && shape->dims[cut->axis[0]] == cut->size[0];
}

/* Finds the origin of each value, through nodes that pass it on; the partitioning of tables; roles;
 * nodes made on demand. */
int slice_find(struct slicer *s);

/* Returns the form of an AggregatorTake's output: FORM_ROWS for a whole gradient, FORM_PART for
 * values whose indices are another output, FORM_INDEX for these. */
enum form_kind slice_taken(const struct slicer *s, const struct node *take, int slot);
int slice_partner(const struct node *take, int slot); /* Returns that other output; -1: none. */

/* Returns how an edge is cut that is a partitioned variable, or its unchanged value; else NULL. */
const struct partition *slice_table(const struct slicer *s, struct edge edge);

#endif
