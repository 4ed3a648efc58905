/* SPDX-License-Identifier: Apache-2.0
 *
 * Updates of a variable and its slots by a gradient, each in one pass and in place.
 */
#include "graph/infer.h"
#include "graph/op.h"
#include "graph/update_rows.h"

#define NO_INTEGERS                                                                                \
    "Not of integers, whose steps would be rounded to nothing, nor of complex numbers."

#define NO_GRADIENT "it changes a variable"

/* Checks that references and gradient have one shape, and everything else is a scalar. */
static int apply_shape(struct infer *infer)
{
    const struct op *op = infer->node->op;
    struct shape merged = *infer_shape(infer, 0);
    int64_t first = update_first_row(infer->node);
    for (int i = 1; i < infer->n_in; i++) {
        const struct op_arg *arg = &op->inputs[i];
        if (!arg->is_ref && i != op->def->descent.gradient) {
            if (infer_scalar(infer, i))
                return infer->err->code;
            continue;
        }
        if (!arg->is_ref && first >= 0) { /* a gradient of some of the updated rows */
            if (!update_rows_fit(&merged, infer_shape(infer, i), first))
                return infer_fail(infer, "%s must be rows of var from row %lld on, not %s of %s",
                                  arg->name, (long long)first, shape_text(infer_shape(infer, i)),
                                  shape_text(&merged));
            continue;
        }
        struct shape known = merged;
        if (!shape_merge(&known, infer_shape(infer, i), &merged))
            return infer_fail(infer, "var and %s must have the same shape, not %s and %s",
                              arg->name, shape_text(&known), shape_text(infer_shape(infer, i)));
    }
    infer->out[0] = merged;
    return 0;
}

#define TYPE "T: floating"
#define OF_ZERO " A quotient by 0 is 0."
#define LOCKING "use_locking: bool = false, " TYPE

#define UPDATE(op, takes, its_attrs, its_doc, ...)                                                 \
    const struct op_def op_##op = {.name = #op,                                                    \
                                   .inputs = takes,                                                \
                                   .attrs = its_attrs,                                             \
                                   .doc = its_doc,                                                 \
                                   .outputs = "out: Ref(T)",                                       \
                                   .flags = OP_STATEFUL,                                           \
                                   .rule = "each",                                                 \
                                   .half = HALF_KEPT,                                              \
                                   .shape = apply_shape,                                           \
                                   .no_gradient = NO_GRADIENT,                                     \
                                   __VA_ARGS__}

UPDATE(ApplyGradientDescent, "var: Ref(T), alpha: T, delta: T", LOCKING,
       "Gradient descent: var -= alpha * delta.", .detail = NO_INTEGERS,
       .descent = {.gradient = 2, .rate = 1, .is_plain = true});

UPDATE(ApplyMomentum, "var: Ref(T), accum: Ref(T), lr: T, grad: T, momentum: T",
       "use_nesterov: bool = false, " LOCKING, "Gradient descent with momentum.",
       .detail = "accum = momentum * accum + grad; var -= lr * accum, and with use_nesterov\n"
                 "var -= lr * grad + lr * momentum * accum."
                 "\n" NO_INTEGERS,
       .descent = {.gradient = 3, .rate = 2});

UPDATE(ApplyAdagrad, "var: Ref(T), accum: Ref(T), lr: T, grad: T", LOCKING,
       "Adagrad: steps shrink with the sum of squares of past gradients.",
       .detail = "accum += grad^2; var -= lr * grad / sqrt(accum)." OF_ZERO "\n" NO_INTEGERS,
       .descent = {.gradient = 3, .rate = 2});

UPDATE(ApplyAdadelta,
       "var: Ref(T), accum: Ref(T), accum_update: Ref(T), lr: T, rho: T, epsilon: T, "
       "grad: T",
       LOCKING, "Adadelta: steps in the ratio of past steps to past gradients.",
       .detail = "accum = rho * accum + (1 - rho) * grad^2;\n"
                 "d = sqrt(accum_update + epsilon) / sqrt(accum + epsilon) * grad;\n"
                 "accum_update = rho * accum_update + (1 - rho) * d^2; var -= lr * d." OF_ZERO
                 "\n" NO_INTEGERS,
       .descent = {.gradient = 6, .rate = 3});

UPDATE(ApplyRMSProp,
       "var: Ref(T), ms: Ref(T), mom: Ref(T), lr: T, rho: T, momentum: T, epsilon: T, "
       "grad: T",
       LOCKING, "RMSProp: steps divided by a running root mean square of the gradient.",
       .detail = "ms += (1 - rho) * (grad^2 - ms);\n"
                 "mom = momentum * mom + lr * grad / sqrt(ms + epsilon); var -= mom." OF_ZERO
                 "\n" NO_INTEGERS,
       .descent = {.gradient = 7, .rate = 3});

UPDATE(ApplyAdam,
       "var: Ref(T), m: Ref(T), v: Ref(T), beta1_power: T, beta2_power: T, lr: T, beta1: T, "
       "beta2: T, epsilon: T, grad: T",
       LOCKING,
       "Adam: momentum and a running square of the gradient, corrected for their start at zero.",
       .detail =
           "a = lr * sqrt(1 - beta2_power) / (1 - beta1_power); m += (1 - beta1) * (grad - m);\n"
           "v += (1 - beta2) * (grad^2 - v); var -= a * m / (sqrt(v) + epsilon)." OF_ZERO "\n"
           "Scalars are of T, too: a beta2 of 0.999 is 1 in bfloat16, an epsilon of 1e-8 is 0 in "
           "float16."
           "\n" NO_INTEGERS,
       .descent = {.gradient = 9, .rate = 5});

UPDATE(ApplyFtrl,
       "var: Ref(T), accum: Ref(T), linear: Ref(T), grad: T, lr: T, l1: T, l2: T, "
       "lr_power: T",
       LOCKING, "Follow the regularized leader, proximal: weights that l1 keeps at zero are zero.",
       .detail =
           "n = accum + grad^2; linear += grad - (n^-lr_power - accum^-lr_power) / lr * var;\n"
           "var = |linear| > l1 ? (sign(linear) * l1 - linear) / (n^-lr_power / lr + 2 * l2) : 0;\n"
           "accum = n. lr_power is not positive; -0.5 is usual." OF_ZERO "\n" NO_INTEGERS,
       .descent = {.gradient = 3, .rate = 4});
