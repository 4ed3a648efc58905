/* SPDX-License-Identifier: Apache-2.0
 *
 * Loss scaling: what is known of the graph, and the nodes that are new in it.
 */
#ifndef TF_PASS_HALF_SCALE_PRIVATE_H
#define TF_PASS_HALF_SCALE_PRIVATE_H

#include <string.h>

#include "graph/build.h"
#include "pass/half/half_private.h"
#include "pass/part/part.h"
#include "pass/rewrite.h"

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

/* Whether all gradients are finite, what becomes of the scale, and `go`. */
void half_add_decision(struct half_scaler *s);

/* `done` */
void half_add_end(struct half_scaler *s);

/* Entries whose ends are gated wait for `done`. */
void half_redirect_ends(struct half_scaler *s);

/* The variables are initialized with the others. */
int half_extend_entries(struct half_scaler *s, struct graph *to);

#endif
