/* SPDX-License-Identifier: Apache-2.0
 *
 * State of one gradients_add; internal to libcommon/pass/grad*.c.
 *
 * Backward nodes belong to *spaces*: the base, where ys and xs are, and for each loop between them
 * a backward loop with as many iterations as the forward one. A gradient function sees forward
 * nodes; the nodes that it builds are then adopted into their space: forward values that they use
 * are replaced by the space's values for them (grad_frame.c).
 */
#ifndef TF_PASS_GRAD_ENGINE_H
#define TF_PASS_GRAD_ENGINE_H

#include "graph/edge_map.h"
#include "graph/frames.h"
#include "pass/gradient/grad.h"

enum grad_mark {
    MARK_ANCESTOR = 1, /* some y depends on it */
    MARK_BETWEEN = 2,  /* and it depends on some x */
};

typedef VEC(struct gradient) gradient_list;
typedef VEC(int) id_list;

/* The backward loop of a forward loop, with counters for both. */
struct grad_space {
    int frame;                 /* of the forward loop */
    struct grad_space *parent; /* NULL: the base */
    const char *frame_name;    /* of the backward loop */
    int forward_pivot;         /* node that runs once in each iteration of the forward loop */
    int forward_sync;          /* ControlTrigger before the count of the next iteration */
    int pivot, sync;           /* the same for the backward loop */
    struct edge loop_cond;     /* of the backward loop */
    struct edge_map values;    /* by other edges: node of the space's value for each */
};

/* The place of a node that was made here. */
struct grad_origin {
    struct grad_space *space; /* NULL: the base, or the forward graph */
    int forward_frame;        /* for a node added to the forward graph; -1: a backward one */
    int condition;            /* that a forward node runs under; or CONDITION_NONE */
};

struct grad_engine {
    struct graph *graph;
    const struct gradients_options *options;
    const char *scope;
    struct error *err;
    int n_forward;                 /* nodes with smaller ids existed before */
    int base;                      /* the frame of ys and xs */
    unsigned char *marks;          /* by forward id: enum grad_mark */
    gradient_list **contributions; /* by forward id, by output */
    struct frames *frames;         /* NULL: no control flow between */
    struct grad_space **spaces;    /* by frame */
    struct map loop_names;         /* of forward loops */
    VEC(struct grad_origin) made;  /* by id - n_forward */
    id_list ancestors;             /* of ys, and ys themselves */
    id_list cuts;                  /* nodes where a gradient ended */
    struct arena arena;
    /* grad_frame.c: the ancestors sorted so that those of a frame and of the loops in it are
     * adjacent, from begin[frame] to end[frame]. */
    id_list by_frame;
    int *begin, *end;
    int *pending; /* by unit, each of one frame: edges from units not yet processed */
};

/* Returns the frame that a node runs in; the root without control flow. */
static inline int grad_frame(const struct grad_engine *e, int id)
{
    return e->frames ? e->frames->frame[id] : FRAME_ROOT;
}

static inline bool grad_differentiable(enum dtype type)
{
    return dtype_is_floating(type) || type == COMPLEX64;
}

/* Returns a builder of backward nodes under "SCOPE/suffix" (NULL: SCOPE). */
struct build grad_build(struct grad_engine *e, const char *suffix, const struct node *forward);

/* Takes the nodes added since the last call into a space. */
int grad_adopt(struct grad_engine *e, struct grad_space *space);

/* Adds to the gradient of a forward edge. */
void grad_contribute(struct grad_engine *e, struct edge edge, struct gradient gradient);

/* Returns the sum of the contributions to an edge, which replaces them; values EDGE_NONE: none. The
 * second function makes it dense. */
struct gradient grad_total(struct grad_engine *e, struct grad_space *space, struct edge edge);
struct edge grad_total_dense(struct grad_engine *e, struct grad_space *space, struct edge edge);
void grad_forget(struct grad_engine *e, struct edge edge);

/* Sorts the ancestors by frame, before any of them is processed. */
void grad_sort_ancestors(struct grad_engine *e);

/* Processes backward all nodes between that run in a frame. Called once per frame. */
int grad_process_frame(struct grad_engine *e, struct grad_space *space, int frame);

#endif
