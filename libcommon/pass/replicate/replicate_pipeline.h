/* SPDX-License-Identifier: Apache-2.0
 *
 * A pipeline: towers that are micro-batches of one batch, over stages, each of which has a part of
 * the model on a device of its own. Private to libcommon/pass.
 *
 * What a stage does of a micro-batch is an item: forward, or backward. A stage does its items one
 * after another, in the order that the schedule says; nothing of an item begins before the one
 * before it has ended. Forward items need items of the same micro-batch on earlier stages, and
 * backward ones forward ones and those of later stages, so that no order of them all waits for
 * itself (Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training, ICML 2021:
 * PipeDream-Flush; Huang et al., GPipe, NeurIPS 2019).
 */
#ifndef TF_PASS_REPLICATE_PIPELINE_H
#define TF_PASS_REPLICATE_PIPELINE_H

#include "pass/replicate/replicate_tower.h"

enum item_phase {
    PHASE_NONE, /* no part of an item: what nobody's gradient needs */
    PHASE_FORWARD,
    PHASE_BACKWARD
};

/* A node of the result that belongs to the end of a backward item. */
struct item_end {
    int stage, tower, node;
};

/* Loops are on one stage as a whole: what is told of their nodes, but for those, is told of a first
 * node for all of them, which for a node outside of loops is the node itself. */
struct pipeline {
    int n_stages;
    const char **devices; /* by stage */
    int *first;           /* by node of the source: the first of its loop, or itself */
    int *stage;           /* by node: of those that are in towers, and that these need; or -1 */
    char *phase;          /* by node: enum item_phase */
    bool *told;           /* by first node: its stage is the script's, or a cut's */
    bool *is_free;        /* by first node: it needs nothing that is on a stage */
    VEC(struct item_end) ends; /* sums of gradients */
};

static inline int pipeline_stage(const struct pipeline *pipeline, int node)
{
    return pipeline->stage[pipeline->first[node]];
}

static inline enum item_phase pipeline_phase(const struct pipeline *pipeline, int node)
{
    return (enum item_phase)pipeline->phase[pipeline->first[node]];
}

/* replicate_stage.c: makes the pipeline, and finds the stage and phase of all that is in towers. */
int pipeline_find(struct towers *t);
/* The node that a node of the source is of the gradient of, told by its scope; -1: of none. */
int pipeline_forward_of(const struct towers *t, const struct node *node);

/* replicate_stage_cut.c: stages of a script that has none, about as long as each other, cut where
 * little has to cross. Sets `stage` and `told` of what is forward. */
int pipeline_cut(struct towers *t, int n_stages);

/* replicate_pipeline.c: orders the items of each stage. */
int pipeline_order(struct towers *t);

#endif
