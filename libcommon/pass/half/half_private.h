/* SPDX-License-Identifier: Apache-2.0
 *
 * Which nodes are computed in 16 bits.
 */
#ifndef TF_PASS_HALF_PRIVATE_H
#define TF_PASS_HALF_PRIVATE_H

#include "graph/build.h"
#include "graph/frames.h"
#include "pass/half/half.h"
#include "pass/part/part.h"
#include "pass/rewrite.h"
#include <string.h>

enum half_fact {
    HALF_FACT_PAINTED = 1 << 0, /* computed in 16 bits */
    HALF_FACT_REFUSED = 1 << 1, /* follows of what is denied */
    HALF_FACT_ABOVE = 1 << 2,   /* clear, and what is inferred or denied depends on it */
    HALF_FACT_BEHIND = 1 << 3,  /* depends on what is allowed */
    HALF_FACT_BETWEEN = 1 << 4, /* and what is allowed depends on it */
    HALF_FACT_TRAINS = 1 << 5,  /* an entry other than init and ready needs it */
    HALF_FACT_INITIAL = 1 << 6, /* init needs it */
    HALF_FACT_UPDATE = 1 << 7,  /* made of gradients that were handed over */
};

struct halver {
    struct rewrite r;
    const struct half_options *options;
    struct error *err;
    unsigned char *kind; /* by node: enum op_half */
    unsigned *facts;     /* by node */
    int *next;           /* by node: another one that must have the same type; a ring */
    int *unit;           /* by node: which ring */
    int *first_user;     /* by node: place in `users`; n + 1 of them */
    int *users;          /* nodes that take a float32 of it */
    VEC(int) todo;
    struct edge *narrow, *wide; /* by output of the source, as r.edges: in 16 bits, in float32 */
};

static inline bool half_has(const struct halver *h, int node, unsigned facts)
{
    return (h->facts[node] & facts) != 0;
}

/* Returns whether an edge of the source is a float32 that is no variable. */
static inline bool half_is_float(const struct graph *graph, struct edge edge)
{
    const struct node_output *output = &graph_node(graph, edge.node)->outputs[edge.slot];
    return output->type == FLOAT32 && !output->is_ref;
}

/* kind, next, unit, users. */
int half_classify(struct halver *h);

/* HALF_FACT_PAINTED */
void half_paint(struct halver *h);

/* ---- loss scaling: what is known of the graph, and the nodes that are new in it ---- */

enum half_scale_fact {
    SCALE_GRADIENT = 1 << 0,     /* minimize() hands it over */
    SCALE_BEFORE = 1 << 1,       /* such gradients need it */
    SCALE_OF_GRADIENTS = 1 << 2, /* made of them */
    SCALE_AFTER = 1 << 3,        /* made of them, or waits for them */
    SCALE_TRAINS = 1 << 4,       /* what comes after them needs it */
    SCALE_GATED = 1 << 5,        /* runs if all gradients are finite */
    SCALE_LATE = 1 << 6,         /* comes after what is gated */
    SCALE_INSIDE = 1 << 7,       /* what is gated needs it */
};

struct half_scaler {
    struct rewrite r;
    const struct half_options *options;
    struct error *err;
    struct build b;
    unsigned *facts;             /* by node */
    const struct node *gradient; /* one of them */
    int n_gradients, n_losses;

    /* Of the result. */
    struct edge scale;                 /* its value in this step */
    struct edge good, skipped;         /* counters, likewise */
    int scale_var, good_var, skip_var; /* variables */
    int initial[3];                    /* their assignments */
    VEC(struct edge) gradients;        /* that are handed over */
    int go, done;                      /* what is gated runs after; what is over when it is */
    VEC(int) waits;                    /* what is gated */
};

/* The variables, and scale. */
void half_add_state(struct half_scaler *s);

/* Returns whether all gradients are finite, what becomes of the scale, and `go`. */
void half_add_decision(struct half_scaler *s);

/* `done` */
void half_add_end(struct half_scaler *s);

/* Entries whose ends are gated wait for `done`. */
void half_redirect_ends(struct half_scaler *s);

/* The variables are initialized with the others. */
int half_extend_entries(struct half_scaler *s, struct graph *to);

#endif
