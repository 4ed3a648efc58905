/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files that cut dense layers share. Private to libcommon/pass/dense.
 */
#ifndef TF_PASS_DENSE_PRIVATE_H
#define TF_PASS_DENSE_PRIVATE_H

#include "base/vec.h"
#include "graph/worker_attr.h"
#include "pass/cut.h"
#include "pass/dense/dense.h"

/* The layout of a value: a form, or the axis along which it is cut. DENSE_SAME is -1, so that
 * variables that are not cut have it at first. */
enum dense_form { DENSE_OWN = -4, DENSE_ALL, DENSE_SUM, DENSE_SAME };

enum dense_fact {
    DENSE_GRADIENT = 1 << 0, /* depends on where back-propagation begins */
    DENSE_BEHIND = 1 << 1,   /* depends on a layer's product */
    DENSE_BEFORE = 1 << 2,   /* a layer's product depends on it */
    DENSE_BACK = 1 << 3,     /* a gradient of a variable that is cut depends on it */
    DENSE_LAYER = 1 << 4,    /* a layer's product */
    DENSE_INITIAL = 1 << 5,  /* gives a variable its initial value */

    /* Of several passes. */
    DENSE_IN = 1 << 6,             /* it is there in each pass */
    DENSE_LAST = 1 << 7,           /* the errors that layers hand on */
    DENSE_ENDED = 1 << 8,          /* no longer in a pass, as it is behind those */
    DENSE_HANDED_OVER = 1 << 9,    /* a variable's gradient */
    DENSE_OF_LAYERS = 1 << 10,     /* depends on gradients of layers, */
    DENSE_OF_OTHERS = 1 << 11,     /* of others */
    DENSE_UPDATE = 1 << 12,        /* changes layers' variables in each pass, or is for that */
    DENSE_WRITER = 1 << 13,        /* changes them itself */
    DENSE_WRITTEN = 1 << 14,       /* a variable that passes change */
    DENSE_READS = 1 << 15,         /* depends on the value of one */
    DENSE_COMES_OF_PASS = 1 << 16, /* waits for some pass */
};

/* A value of the source in a layout that is not its node's; of passes, in pass number `layout`. */
struct conversion {
    struct edge edge, result;
    int layout;
};

struct dense_cutter {
    struct rewrite r;
    const struct dense_options *options;
    unsigned *facts; /* by node */
    int *cut;        /* by variable: its layout; DENSE_SAME: it is whole */
    int *layouts;    /* by node, of all outputs */
    VEC(struct conversion) converted;
    struct edge *rows;     /* by pass, of the source: the first value whose rows came together */
    struct edge reference; /* of the source: the rows of which shares are meant */
    int *first;            /* by node in passes: its copy in the first; the others follow */
    struct build b;
    int32_t priority; /* of exchanges that are built: that of the value which crosses */
};

/* int, of a node that is there in each pass: which one it is of. */
#define DENSE_PASS "_pass"

static inline bool dense_has(const struct dense_cutter *c, int node, unsigned facts)
{
    return (c->facts[node] & facts) != 0;
}

/* Returns whether it has a row for each of the batch: its first dimension is open. */
static inline bool dense_is_rows(const struct dense_cutter *c, struct edge edge)
{
    const struct shape *shape = &graph_output(c->r.from, edge)->shape;
    return shape->rank > 0 && shape->dims[0] == SHAPE_UNKNOWN;
}

/* dense_passes.c: when layers are found, `to` gets them in several passes. */
int dense_unroll(struct dense_cutter *c);

/* dense.c: nodes that are built go below SCOPE/NAME, beside what makes the edge. */
void dense_begin(struct dense_cutter *c, struct edge edge, const char *scope);

/* What a value is in that layout, or EDGE_NONE; from now on it is `result`. */
struct edge dense_known(const struct dense_cutter *c, struct edge edge, int layout);
struct edge dense_note(struct dense_cutter *c, struct edge edge, int layout, struct edge result);

/* The layout of the variable whose gradient a node hands over; DENSE_SAME: of none. */
int dense_axis_of_gradient(const struct dense_cutter *c, const struct node *node);

/* The variable whose value an edge is, or is a cast of; NULL: it is none. */
const struct node *dense_variable(const struct dense_cutter *c, struct edge edge);

int dense_refuse(struct dense_cutter *c, const struct node *node, const char *why);
/* The number of rows of a value: a vector of one number, built where `b` builds. */
struct edge dense_row_count(struct build *b, struct edge x);

#endif
