/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of in-graph replication share. Private to libcommon/pass.
 *
 * A node of the source is either there once, or once in each tower. Between the two lie two kinds
 * of node: what parts a feed, and what makes one value of those of all towers.
 */
#ifndef TF_PASS_REPLICATE_TOWER_H
#define TF_PASS_REPLICATE_TOWER_H

#include "graph/build.h"
#include "graph/frames.h"
#include "pass/replicate/replicate_private.h"

/* What towers' means are weighed by: in one of two types, or shares for a type of 16 bits. */
enum weights { WEIGHTS_FLOAT32, WEIGHTS_FLOAT64, WEIGHTS_SHARES, N_WEIGHTS };

/* A feed that is parted. */
struct parted {
    struct edge *parts;              /* of the result, by tower: its rows */
    struct edge *weights[N_WEIGHTS]; /* by tower, then of all; made when asked for */
    struct edge rows;                /* of the result: how many rows there are */
    int check;                       /* node of the result: each tower has some; -1: not yet */
};

struct pipeline; /* pass/replicate/replicate_pipeline.h */

struct towers {
    struct replicator *r;
    int n;
    const char *prefix;        /* of all new names; no name of the source begins with it */
    const char **devices;      /* by tower; of a pipeline the first stage's, by each */
    const char *shard;         /* where variables are; "": anywhere */
    struct frames *frames;     /* of the source */
    bool *towered;             /* by node: it is in each tower */
    int *feed;                 /* by node: a feed that is parted and that it depends on, or -1 */
    struct parted **parted;    /* by node: of a feed; NULL: not yet */
    int **copies;              /* by tower and node: node of the result */
    int n_outputs;             /* of all nodes */
    int *first;                /* by node: place of its output 0 in `whole` */
    struct edge *whole;        /* by output of a towered node: what the towers' values become */
    int *all;                  /* by towered node: a node after all its copies; -1: not yet */
    struct pipeline *pipeline; /* towers are its micro-batches; NULL: each has a device */
};

/* What an edge of the source is in the result. */
struct edge towers_whole(struct towers *t, struct edge edge);
void towers_release(struct towers *t);
/* The pattern of towers' devices with the number for its "*"; NULL with the error set. */
const char *towers_name_device(struct towers *t, int k);
/* The outermost loop that the node belongs to; FRAME_ROOT: none. */
int towers_loop(const struct towers *t, const struct node *node);

/* replicate_tower_find.c: fills `towered` and `feed`. */
int towers_find(struct towers *t);
/* Whether the node is fed rows that are parted. */
bool towers_is_parted(const struct node *node);

/* replicate_tower_join.c: values that cross. The error of the replicator is set on failure. */
struct edge towers_part(struct towers *t, int feed, int k); /* what tower k gets of a feed */

/* The device of a node that is there once; of a tower's copy, and of what is made beside it. */
const char *towers_device(struct towers *t, const struct node *node);
const char *towers_copy_device(struct towers *t, const struct node *node, int k);

#endif
