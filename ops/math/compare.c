/* SPDX-License-Identifier: Apache-2.0
 *
 * Comparisons and the logic of booleans.
 */
#include "graph/infer.h"
#include "ops/lacking.h"
#include "ops/math/elementwise_def.h"

#define NO_GRADIENT "its result changes in steps"

#define COMPARISON(op, of, its_flags, doc, ...)                                                    \
    ELEMENTWISE(op, "x: T, y: T", "z: bool", "T: " of, CLEAR, cost_elements, infer_broadcast, doc, \
                .flags = its_flags, .no_gradient = NO_GRADIENT, __VA_ARGS__)
#define LOGIC(op, its_doc, ...)                                                                    \
    const struct op_def op_##op = {.name = #op,                                                    \
                                   .inputs = "x: bool, y: bool",                                   \
                                   .outputs = "z: bool",                                           \
                                   .doc = its_doc,                                                 \
                                   .flags = OP_NO_GRADIENT | OP_COMMUTATIVE,                       \
                                   .rule = "each",                                                 \
                                   .shape = infer_broadcast,                                       \
                                   .no_gradient = NO_GRADIENT,                                     \
                                   __VA_ARGS__}

COMPARISON(Less, "real", OP_NO_GRADIENT, "Whether x < y, with broadcasting.");

COMPARISON(LessEqual, "real", OP_NO_GRADIENT, "Whether x <= y, with broadcasting.");

COMPARISON(Greater, "real", OP_NO_GRADIENT, "Whether x > y, with broadcasting.");

COMPARISON(GreaterEqual, "real", OP_NO_GRADIENT, "Whether x >= y, with broadcasting.");

COMPARISON(Equal, "numeric|bool", OP_NO_GRADIENT | OP_COMMUTATIVE,
           "Whether x = y, with broadcasting.",
           .detail = "A NaN equals nothing."
                     "\n" NO_STRINGS);

COMPARISON(NotEqual, "numeric|bool", OP_NO_GRADIENT | OP_COMMUTATIVE,
           "Whether x and y differ, with broadcasting.",
           .detail = "A NaN differs from everything."
                     "\n" NO_STRINGS);

LOGIC(LogicalAnd, "Whether both x and y are true, with broadcasting.",
      .identity = {SAME_OPERAND, true, 0, "and true"});

LOGIC(LogicalOr, "Whether x or y or both are true, with broadcasting.",
      .identity = {SAME_OPERAND, false, 0, "or false"});

const struct op_def op_LogicalNot = {
    .name = "LogicalNot",
    .inputs = "x: bool",
    .outputs = "y: bool",
    .rule = "each",
    .shape = infer_unchanged,
    .flags = OP_NO_GRADIENT | OP_INVOLUTION,
    .doc = "Whether x is false.",
    .no_gradient = NO_GRADIENT,
};

const struct op_def op_IsNan = {
    .name = "IsNan",
    .inputs = "x: T",
    .outputs = "y: bool",
    .attrs = "T: floating",
    .rule = "each",
    .half = HALF_CLEAR,
    .shape = infer_unchanged,
    .flags = OP_NO_GRADIENT,
    .doc = "Whether x is not a number.",
    .no_gradient = NO_GRADIENT,
};
