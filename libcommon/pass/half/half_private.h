/* SPDX-License-Identifier: Apache-2.0
 *
 * Which nodes are computed in 16 bits.
 */
#ifndef TF_PASS_HALF_PRIVATE_H
#define TF_PASS_HALF_PRIVATE_H

#include "graph/build.h"
#include "graph/frames.h"
#include "pass/half/half.h"
#include "pass/rewrite.h"

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

static inline bool half_is_painted(const struct halver *h, int node)
{
    return half_has(h, node, HALF_FACT_PAINTED);
}

/* Returns whether an edge of the source is a float32 that is no variable. */
static inline bool half_is_float(const struct graph *graph, struct edge edge)
{
    const struct node_output *output = &graph_node(graph, edge.node)->outputs[edge.slot];
    return output->type == FLOAT32 && !output->is_ref;
}

/* half_paint.c: all but `narrow` and `wide`. */
int half_paint(struct halver *h);

#endif
