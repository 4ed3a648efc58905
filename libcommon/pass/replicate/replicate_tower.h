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

/* The weights of towers' means: in one of two types, or shares for a type of 16 bits. */
enum weights { WEIGHTS_FLOAT32, WEIGHTS_FLOAT64, WEIGHTS_SHARES, N_WEIGHTS };

/* A feed that is parted. */
struct feed_parts {
    struct edge *parts;      /* of the result, by tower: its rows */
    int *weights[N_WEIGHTS]; /* nodes by tower, then of all; 0: not yet */
    struct edge rows;        /* of the result: how many rows there are */
    int check;               /* node of the result: each tower has some; -1: not yet */
};

struct towers {
    struct replicator *r;
    int n;
    const char *prefix;         /* of all new names; no name of the source begins with it */
    const char **devices;       /* by tower; of a pipeline the first stage's, by each */
    const char *shard;          /* where variables are; "": anywhere */
    struct frames *frames;      /* of the source */
    bool *towered;              /* by node: it is in each tower */
    int *feed;                  /* by node: a feed that is parted and that it depends on, or -1 */
    struct feed_parts **parted; /* by node: of a feed; NULL: not yet */
    int **copies;               /* by tower and node: node of the result */
    struct edge_map whole_at;   /* by output of a towered node: the node that the towers' values
                                 * become; with CONTROL_SLOT one after all its copies */
    struct pipeline *pipeline;  /* towers are its micro-batches; NULL: each has a device */
};

/* The edge of the result that stands for an edge of the source. */
struct edge towers_whole(struct towers *t, struct edge edge);
/* The pattern of towers' devices with the number for its "*"; NULL with the error set. */
const char *towers_name_device(struct towers *t, int k);
/* The outermost loop that the node belongs to; FRAME_ROOT: none. */
int towers_loop(const struct towers *t, const struct node *node);

/* Returns whether the node is fed rows that are parted. */
bool towers_is_parted(const struct node *node);

/* replicate_tower_join.c: values that cross. The error of the replicator is set on failure. */
struct edge towers_part(struct towers *t, int feed, int k); /* what tower k gets of a feed */

/* The device of a node that is there once; of a tower's copy, and of what is made beside it. */
const char *towers_device(struct towers *t, const struct node *node);
const char *towers_copy_device(struct towers *t, const struct node *node, int k);

/* ---- pipelines ----
 *
 * Towers that are micro-batches of one batch, over stages, each of which has a part of the model on
 * a device of its own.
 *
 * What a stage does of a micro-batch is an item: forward, or backward. A stage does its items one
 * after another, in the order that the schedule says; nothing of an item begins before the one
 * before it has ended. Forward items need items of the same micro-batch on earlier stages, and
 * backward ones forward ones and those of later stages, so that no order of them all waits for
 * itself (Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training, ICML 2021:
 * PipeDream-Flush; Huang et al., GPipe, NeurIPS 2019). */

enum item_phase {
    PHASE_NONE, /* no part of an item: what nobody's gradient needs */
    PHASE_FORWARD,
    PHASE_BACKWARD
};

/* A node of the result that belongs to the end of a backward item. */
struct item_end {
    int stage, tower, node;
};

/* A node of the source, or a loop, which is on one stage as a whole. */
struct pipeline_unit {
    int stage;             /* of what is in towers, and what these need; -1: of none */
    enum item_phase phase; /* of what is in towers */
    bool is_told;          /* its stage is the script's, or a cut's */
    bool is_free;          /* it needs nothing that is on a stage */
    bool is_bound;         /* forward, it depends on more than what is fed: */
    int in_line;           /* its place in the line that is cut; -1: it has none */
};

struct pipeline {
    int n_stages;
    const char **devices; /* by stage */
    int *first; /* by node of the source: the first of its loop, or itself; and by that: */
    struct pipeline_unit *units;
    VEC(struct item_end) ends; /* sums of gradients */
};

static inline struct pipeline_unit *pipeline_unit(const struct pipeline *pipeline, int node)
{
    return &pipeline->units[pipeline->first[node]];
}

/* replicate_stage.c: makes the pipeline, and finds the stage and phase of all that is in towers. */
int pipeline_find(struct towers *t);
/* Orders the items of each stage. */
int pipeline_order(struct towers *t);

#endif
