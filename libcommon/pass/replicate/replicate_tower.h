/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of in-graph replication. Private to libcommon/pass.
 *
 * A node of the source exists either once, or once in each tower. Between the two are two kinds of
 * node: those that split a feed, and those that combine the values of all towers.
 */
#ifndef TF_PASS_REPLICATE_TOWER_H
#define TF_PASS_REPLICATE_TOWER_H

#include "graph/build.h"
#include "graph/frames.h"
#include "pass/replicate/replicate_private.h"

struct towers {
    struct replicator *r;
    int n;
    const char *prefix;         /* of all new names; no name of the source begins with it */
    const char **devices;       /* by tower; with a pipeline all are the first stage's */
    const char *shard;          /* of variables; "": any */
    struct frames *frames;      /* of the source */
    bool *towered;              /* by node: it is in each tower */
    int *feed;                  /* by node: a split feed that it depends on, or -1 */
    struct feed_parts **parted; /* by node: of a feed; NULL: not yet */
    int **copies;               /* by tower and node: node of the result */
    struct edge_map whole_at;   /* by output of a towered node: the node that combines the towers'
                                 * values; with CONTROL_SLOT, a node after all copies */
    struct pipeline *pipeline;  /* towers are its micro-batches; NULL: each has a device */
};

/* Returns the edge of the result that stands for an edge of the source; on failure the replicator's
 * error is set. */
struct edge towers_whole(struct towers *t, struct edge edge);
/* Returns the pattern of towers' devices with the number for its "*"; NULL with the error set. */
const char *towers_name_device(struct towers *t, int k);
/* Returns the outermost loop that contains the node; FRAME_ROOT: none. */
int towers_loop(const struct towers *t, const struct node *node);

/* ---- pipelines ----
 *
 * The towers are micro-batches of one batch, which pass through stages. Each stage has a part of
 * the model on a device of its own.
 *
 * A stage's work on a micro-batch is an item: forward, or backward. A stage runs its items one
 * after another, in the order of the schedule; no node of an item begins before the previous item
 * has ended. Forward items depend on items of the same micro-batch on earlier stages, and backward
 * items on forward ones and on those of later stages, so that the orders cannot deadlock (Narayanan
 * et al., Memory-Efficient Pipeline-Parallel DNN Training, ICML 2021: PipeDream-Flush; Huang et
 * al., GPipe, NeurIPS 2019). */

enum item_phase {
    PHASE_NONE, /* no part of an item: no gradient needs it */
    PHASE_FORWARD,
    PHASE_BACKWARD
};

/* A node of the result at the end of a backward item. */
struct item_end {
    int stage, tower, node;
};

/* A node of the source, or a loop, which is on one stage as a whole. */
struct pipeline_unit {
    int stage;             /* of nodes in towers and those that they need; -1: none */
    enum item_phase phase; /* of nodes in towers */
    bool is_told;          /* the script, or a cut, has set its stage */
    bool is_free;          /* it depends on nothing that is on a stage */
    bool is_bound;         /* forward, it depends on more than the feeds */
    int in_line;           /* its position in the line that is cut; -1: none */
};

struct pipeline {
    int n_stages;
    const char **devices; /* by stage */
    int *first;           /* by node of the source: the first node of its loop, or itself */
    struct pipeline_unit *units;
    VEC(struct item_end) ends; /* sums of gradients */
};

static inline struct pipeline_unit *pipeline_unit(const struct pipeline *pipeline, int node)
{
    return &pipeline->units[pipeline->first[node]];
}

/* replicate_stage.c: makes the pipeline, and finds the stage and phase of all towered nodes. */
int pipeline_find(struct towers *t);
/* Orders the items of each stage. */
int pipeline_order(struct towers *t);

#endif
