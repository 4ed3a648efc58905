/* SPDX-License-Identifier: Apache-2.0
 *
 * Comparisons and the logic of booleans.
 */
#include "graph/infer.h"
#include "graph/op_cost.h"
#include "ops/lacking.h"

#define NO_GRADIENT "its result changes in steps"

#define COMPARISON(types)                                                                          \
    .inputs = "x: T, y: T", .outputs = "z: bool", .attrs = "T: " types, .shape = infer_broadcast
#define LOGIC .inputs = "x: bool, y: bool", .outputs = "z: bool", .shape = infer_broadcast

const struct op_def op_Less = {
    .name = "Less",
    COMPARISON("real"),
    .flags = OP_NO_GRADIENT,
    .doc = "Whether x < y, with broadcasting.",
    .rows = ROWS_ALIKE,
    .half = HALF_CLEAR,
    .cost = cost_elements,
    .no_gradient = NO_GRADIENT,
};

const struct op_def op_LessEqual = {
    .name = "LessEqual",
    COMPARISON("real"),
    .flags = OP_NO_GRADIENT,
    .doc = "Whether x <= y, with broadcasting.",
    .rows = ROWS_ALIKE,
    .half = HALF_CLEAR,
    .cost = cost_elements,
    .no_gradient = NO_GRADIENT,
};

const struct op_def op_Greater = {
    .name = "Greater",
    COMPARISON("real"),
    .flags = OP_NO_GRADIENT,
    .doc = "Whether x > y, with broadcasting.",
    .rows = ROWS_ALIKE,
    .half = HALF_CLEAR,
    .cost = cost_elements,
    .no_gradient = NO_GRADIENT,
};

const struct op_def op_GreaterEqual = {
    .name = "GreaterEqual",
    COMPARISON("real"),
    .flags = OP_NO_GRADIENT,
    .doc = "Whether x >= y, with broadcasting.",
    .rows = ROWS_ALIKE,
    .half = HALF_CLEAR,
    .cost = cost_elements,
    .no_gradient = NO_GRADIENT,
};

const struct op_def op_Equal = {
    .name = "Equal",
    COMPARISON("numeric|bool"),
    .flags = OP_NO_GRADIENT | OP_COMMUTATIVE,
    .doc = "Whether x = y, with broadcasting.",
    .detail = "A NaN equals nothing."
              "\n" NO_STRINGS,
    .rows = ROWS_ALIKE,
    .half = HALF_CLEAR,
    .cost = cost_elements,
    .no_gradient = NO_GRADIENT,
};

const struct op_def op_NotEqual = {
    .name = "NotEqual",
    COMPARISON("numeric|bool"),
    .flags = OP_NO_GRADIENT | OP_COMMUTATIVE,
    .doc = "Whether x and y differ, with broadcasting.",
    .detail = "A NaN differs from everything."
              "\n" NO_STRINGS,
    .rows = ROWS_ALIKE,
    .half = HALF_CLEAR,
    .cost = cost_elements,
    .no_gradient = NO_GRADIENT,
};

const struct op_def op_LogicalAnd = {
    .name = "LogicalAnd",
    LOGIC,
    .flags = OP_NO_GRADIENT | OP_COMMUTATIVE,
    .doc = "Whether both x and y are true, with broadcasting.",
    .rows = ROWS_ALIKE,
    .identity = {SAME_OPERAND, true, 0, "and true"},
    .cost = cost_elements,
    .no_gradient = NO_GRADIENT,
};

const struct op_def op_LogicalOr = {
    .name = "LogicalOr",
    LOGIC,
    .flags = OP_NO_GRADIENT | OP_COMMUTATIVE,
    .doc = "Whether x or y or both are true, with broadcasting.",
    .rows = ROWS_ALIKE,
    .identity = {SAME_OPERAND, false, 0, "or false"},
    .cost = cost_elements,
    .no_gradient = NO_GRADIENT,
};

const struct op_def op_LogicalNot = {
    .name = "LogicalNot",
    .inputs = "x: bool",
    .outputs = "y: bool",
    .rows = ROWS_ALIKE,
    .cost = cost_elements,
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
    .rows = ROWS_ALIKE,
    .half = HALF_CLEAR,
    .cost = cost_elements,
    .shape = infer_unchanged,
    .flags = OP_NO_GRADIENT,
    .doc = "Whether x is not a number.",
    .no_gradient = NO_GRADIENT,
};
