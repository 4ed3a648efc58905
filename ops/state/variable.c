/* SPDX-License-Identifier: Apache-2.0
 *
 * State that outlives steps: the variable itself, and queries on it.
 */
#include "graph/infer.h"
#include "graph/op_cost.h"
#include "ops/lacking.h"

const struct op_def op_Variable = {
    .name = "Variable",
    .outputs = "ref: Ref(dtype)",
    .attrs =
        "shape: shape, dtype: numeric|bool, container: string = \"\", shared_name: string = \"\"",
    .doc = "A tensor that keeps its value from step to step.",
    .detail = "Variables of the same container and shared_name (the node's name if that is empty) "
              "are the same.\nWithin a step, reads come before writes unless an edge orders them "
              "otherwise."
              "\n" NO_STRINGS,
    .flags = OP_STATEFUL | OP_NO_GRADIENT,
    .half = HALF_KEPT,
    .cost = cost_nothing,
    .shape = infer_output_declared,
    .no_gradient = "it has no inputs",
};

const struct op_def op_IsVariableInitialized = {
    .name = "IsVariableInitialized",
    .inputs = "ref: Ref(dtype)",
    .outputs = "is_initialized: bool",
    .attrs = "dtype: any",
    .doc = "Whether a variable has been given a value.",
    .flags = OP_STATEFUL | OP_UNINITIALIZED | OP_READS_REF | OP_NO_GRADIENT,
    .rule = "is_initialized[] all= ref[...]",
    .half = HALF_KEPT,
    .cost = cost_view,
    .shape = infer_output_scalar,
    .no_gradient = "its answer changes in steps",
};

const struct op_def op_CountUpTo = {
    .name = "CountUpTo",
    .inputs = "ref: Ref(T)",
    .outputs = "output: T",
    .attrs = "limit: int, T: int32|int64",
    .doc = "The value of a scalar variable, which is then increased by one.",
    .detail = "An error once the value has reached the limit; the variable stays as it is then.",
    .flags = OP_STATEFUL | OP_NO_GRADIENT,
    .cost = cost_elements,
    .shape = infer_all_scalars,
    .no_gradient = "it changes a variable",
};
