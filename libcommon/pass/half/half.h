/* SPDX-License-Identifier: Apache-2.0
 *
 * Mixed precision: products are computed in floats of 16 bits, and so is what lies between them if
 * that is good enough; variables, updates, losses and sums stay float32. Which op is what is in its
 * declaration (enum op_half). Casts are made once for all who need them. What an entry or an alias
 * names, what is fed, and gradients that minimize() hands over have the types that they had.
 */
#ifndef TF_PASS_HALF_H
#define TF_PASS_HALF_H

#include "pass/pass.h"

#define HALF_SCALE_FIRST 32768.0
#define HALF_SCALE_LAST 16777216.0
#define HALF_GOOD_STEPS 2000

enum half_scaling {
    HALF_UNSCALED,
    HALF_STATIC, /* by `factor` */
    HALF_DYNAMIC /* by a variable, halved when a gradient is not finite */
};

struct half_options {
    enum dtype type; /* FLOAT16 or BFLOAT16 */
    enum half_scaling scaling;
    double factor;
    const struct pass_options *pass;
};

/* "bf16" or "fp16"; `scale`: "dynamic", "none", a number, or NULL: dynamic for fp16 only.
 * ERR_USAGE. */
int half_parse(struct half_options *options, const char *type, const char *scale,
               struct error *err);

struct half_result {
    struct graph *graph;        /* the last of what follows, or the source: nothing changed */
    struct pass_result pruned;  /* of the source */
    VEC(struct graph *) graphs; /* each borrows from the one before */
    int n_halved, n_scaled;     /* nodes that are computed in 16 bits; gradients that are divided */
};

/* Leaves out what no entry needs, then half_graph, then half_scale. The source must outlive the
 * result; half_result_release frees all but the source. */
int half_rewrite(struct graph *source, const struct half_options *options,
                 struct half_result *result, struct error *err);
void half_result_release(struct half_result *result);

/* The graph with 16 bits in it, which borrows from `from`; NULL when there is nothing to compute
 * so. n: nodes that are computed in 16 bits. */
int half_graph(const struct graph *from, const struct half_options *options, struct graph **to,
               int *n, struct error *err);

/* The graph whose loss is scaled before its gradient is taken: the gradient of the loss, which
 * minimize() marks with _loss, is multiplied, and what it hands over divided. Dynamic: a step
 * whose gradients are not all finite changes no variable but those of the scale. ERR_DATA where
 * that cannot be done. NULL when nothing is trained. n: gradients that are divided. */
int half_scale(const struct graph *from, const struct half_options *options, struct graph **to,
               int *n, struct error *err);

#endif
