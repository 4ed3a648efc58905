/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing whole variables. use_locking is accepted for graphs that have it, but ignored: a writer
 * always has exclusive access to its variable.
 */
#include "graph/infer.h"
#include "ops/lacking.h"

#define NO_GRADIENT "it changes a variable"

static int assign_shape(struct infer *infer)
{
    if (!node_bool(infer->node, "validate_shape")) {
        infer->out[0] = *infer_shape(infer, 1);
        return 0;
    }
    return infer_alike(infer);
}

#define WRITES(op, ...)                                                                            \
    const struct op_def op_##op = {.name = #op,                                                    \
                                   .inputs = "ref: Ref(T), value: T",                              \
                                   .outputs = "output_ref: Ref(T)",                                \
                                   .rule = "each",                                                 \
                                   .half = HALF_KEPT,                                              \
                                   .no_gradient = NO_GRADIENT,                                     \
                                   __VA_ARGS__}

WRITES(Assign, .attrs = "T: numeric|bool, validate_shape: bool = true, use_locking: bool = true",
       .doc = "Gives a variable a value.",
       .detail = "The shapes must agree, unless validate_shape is false."
                 "\n" NO_STRINGS,
       .flags = OP_STATEFUL | OP_UNINITIALIZED | OP_NO_GRADIENT | OP_OVERWRITES,
       .shape = assign_shape);

WRITES(AssignAdd, .attrs = "T: real, use_locking: bool = false",
       .doc = "Adds a value of the same shape to a variable.", .detail = NO_COMPLEX,
       .flags = OP_STATEFUL | OP_NO_GRADIENT, .shape = infer_alike);

WRITES(AssignSub, .attrs = "T: real, use_locking: bool = false",
       .doc = "Subtracts a value of the same shape from a variable.", .detail = NO_COMPLEX,
       .flags = OP_STATEFUL | OP_NO_GRADIENT, .shape = infer_alike);
