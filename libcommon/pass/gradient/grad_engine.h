/* SPDX-License-Identifier: Apache-2.0
 *
 * State of one gradients_add; internal to libcommon/pass/grad*.c.
 *
 * Backward nodes live in *spaces*: the base, where ys and xs are, and for each loop on the way a
 * backward loop that runs as often as the forward one did. A gradient function sees forward nodes;
 * what it builds is then adopted into the space it belongs to: forward values that it uses are
 * replaced by what the space has of them (grad_value.c).
 */
#ifndef TF_PASS_GRAD_ENGINE_H
#define TF_PASS_GRAD_ENGINE_H

#include "graph/frames.h"
#include "pass/gradient/grad.h"

enum grad_mark {
    MARK_ANCESTOR = 1, /* some y depends on it */
    MARK_BETWEEN = 2,  /* and it depends on some x */
};

struct contribution {
    struct gradient gradient;
    struct contribution *next;
};

struct contributions {
    struct contribution *first, *last;
};

/* The backward loop of a forward loop, with the counters of both. */
struct grad_space {
    int frame;                 /* of the forward loop */
    struct grad_space *parent; /* NULL: the base */
    const char *frame_name;    /* of the backward loop */
    int forward_pivot;         /* node that runs once in each iteration of the forward loop */
    int forward_sync;          /* ControlTrigger before the next iteration's count */
    int pivot, sync;           /* the same of the backward loop */
    struct edge loop_cond;     /* of the backward loop */
    struct map values;         /* what the space has of other edges, by their text */
};

/* Where a node that was made here lives. */
struct grad_origin {
    struct grad_space *space; /* NULL: in the base, or in the forward graph */
    int forward_frame;        /* of a node added to the forward graph; -1: it is backward */
    int condition;            /* of the latter: under what it runs; CONDITION_NONE */
};

struct grad_engine {
    struct graph *graph;
    const struct gradients_options *options;
    const char *scope;
    struct error *err;
    int n_forward;                        /* nodes with smaller ids were there before */
    int base;                             /* the frame of ys and xs */
    unsigned char *marks;                 /* by forward id: enum grad_mark */
    struct contributions **contributions; /* by forward id, by output */
    struct frames *frames;                /* NULL: no control flow between */
    struct grad_space **spaces;           /* by frame */
    struct map loop_names;                /* of forward loops */
    VEC(struct grad_origin) made;         /* by id - n_forward */
    VEC(int) ancestors;                   /* of ys, and these themselves */
    VEC(int) cuts;                        /* nodes at which a gradient ended */
    struct arena arena;
    /* grad_frame.c: the ancestors again, those of a frame and of the loops in it one after the
     * other, from begin[frame] on to end[frame]. */
    int *by_frame, *begin, *end;
    int *pending; /* by unit: edges from units that are still to be processed */
};

/* The frame that a node runs in; the root without control flow. */
static inline int grad_frame(const struct grad_engine *e, int id)
{
    return e->frames ? e->frames->frame[id] : FRAME_ROOT;
}

static inline const struct loop_variable *grad_variable(const struct grad_engine *e, int frame,
                                                        int i)
{
    return &e->frames->variables.items[e->frames->frames.items[frame].first_variable + i];
}

static inline bool grad_differentiable(enum dtype type)
{
    return dtype_is_floating(type) || type == COMPLEX64;
}

/* A builder of backward nodes under "SCOPE/suffix" (NULL: SCOPE). */
struct build grad_build(struct grad_engine *e, const char *suffix, const struct node *forward);

/* One of nodes that belong to the forward graph: they are where `node` is, whose value they keep or
 * whose loop they count. */
struct build grad_build_beside(struct grad_engine *e, const char *suffix, const struct node *node);

/* Takes the nodes from id `mark` on into a space. */
int grad_adopt(struct grad_engine *e, struct grad_space *space, int mark);

/* A space's value for another's edge: itself in the base, a popped or re-entered value. */
struct edge grad_value(struct grad_engine *e, struct grad_space *space, struct edge edge);

/* An Enter of the loop of that name. */
struct edge grad_add_enter(struct build *b, struct edge x, const char *frame, int parallel,
                           bool is_constant);

/* Brings an edge of the parent into the space, in every iteration. */
struct edge grad_enter(struct grad_engine *e, struct grad_space *space, struct edge edge);

/* Says of all nodes that were added since where they live (struct grad_origin). */
void grad_note(struct grad_engine *e, struct grad_space *space, int forward_frame);

/* The same for nodes that were added to the forward graph beside a loop, in the frame around it:
 * they run when the loop does. */
void grad_note_beside(struct grad_engine *e, int loop);
struct grad_origin grad_made_beside(const struct grad_engine *e, int loop);

/* Node of the frame around a loop after which a node without inputs runs in that frame; -1: the
 * root, where none is needed. */
int grad_anchor(const struct grad_engine *e, int frame);

/* Adds to the gradient of a forward edge. */
void grad_contribute(struct grad_engine *e, struct edge edge, struct gradient gradient);

/* The sum of what was contributed to an edge, which stays the only contribution; none: values is
 * EDGE_NONE. The second form makes it dense. */
struct gradient grad_total(struct grad_engine *e, struct grad_space *space, struct edge edge);
struct edge grad_total_dense(struct grad_engine *e, struct grad_space *space, struct edge edge);
void grad_forget(struct grad_engine *e, struct edge edge);

/* Puts the ancestors in order by frame, before any of these is processed. */
void grad_sort_ancestors(struct grad_engine *e);

/* Goes backward through all nodes between that run in a frame. It runs once for each frame. */
int grad_process_frame(struct grad_engine *e, struct grad_space *space, int frame);

#endif
