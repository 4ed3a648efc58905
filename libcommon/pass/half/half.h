/* SPDX-License-Identifier: Apache-2.0
 *
 * Mixed precision: products, and ops between them where 16 bits are precise enough, are computed in
 * 16-bit floats; variables, updates, losses and sums stay float32. Each op's declaration says how
 * it is treated (enum op_half). A cast is made once for all its users. Values that entries and
 * aliases name, feeds, and gradients that minimize() hands over keep their types.
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

/* Parses "bf16" or "fp16"; `scale` is "dynamic", "none", a number, or NULL: dynamic for fp16 only.
 * ERR_USAGE. */
int half_parse(struct half_options *options, const char *type, const char *scale,
               struct error *err);

/* Changes of half_rewrite, by index in the result's n_changes: nodes that were removed, nodes
 * computed in 16 bits, and gradients that are divided. */
enum half_change { HALF_PRUNED, HALF_HALVED, HALF_SCALED };

/* Removes nodes that no entry needs, then makes a graph with 16-bit nodes, then applies half_scale.
 * The source must outlive the result; pass_result_release frees everything but the source. */
int half_rewrite(struct graph *source, const struct half_options *options,
                 struct pass_result *result, struct error *err);

/* Makes a graph whose loss is scaled before its gradient is taken: the gradient of the loss, which
 * minimize() marks with _loss, is multiplied, and the gradients handed over are divided. Dynamic: a
 * step with a gradient that is not finite changes no variable except those of the scale. ERR_DATA
 * if that cannot be done. NULL if nothing is trained. *n: the number of divided gradients. */
int half_scale(const struct graph *from, const struct half_options *options, struct graph **to,
               int *n, struct error *err);

#endif
