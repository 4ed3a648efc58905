/* SPDX-License-Identifier: Apache-2.0
 *
 * A few ops for tests of graphs, which thus need none of the real ops.
 */
#ifndef TF_TESTS_LIB_TEST_OPS_H
#define TF_TESTS_LIB_TEST_OPS_H

#include "graph/build.h"
#include "graph/infer.h"

static int test_const_shape(struct infer *infer)
{
    infer->out[0] = node_attr(infer->node, "value")->tensor->shape;
    return 0;
}

static int test_given_shape(struct infer *infer)
{
    infer->out[0] = *node_attr(infer->node, "shape")->shape;
    return 0;
}

static int test_merge_shape(struct infer *infer)
{
    infer->out[0] = infer->in[0]->shape;
    for (int i = 1; i < infer->n_in; i++)
        if (infer->in[i])
            infer->out[0] = shape_join(&infer->out[0], &infer->in[i]->shape);
    infer->out[1] = SHAPE_SCALAR;
    return 0;
}

/* Every kind of attribute. */
#define TEST_KINDS                                                                                 \
    "i: int = 3, f: float = 0.5, b: bool = true, s: string = \"x\", t: any = float32, "            \
    "h: shape = [2,?], li: list(int) = [], lf: list(float) = [], lb: list(bool) = [], "            \
    "ls: list(string) = [], lt: list(type) = [], lh: list(shape) = [], T: any"

static const struct op_def test_op_table[] = {
    {.name = "Const",
     .outputs = "output: dtype",
     .attrs = "value: tensor, dtype: any",
     .shape = test_const_shape},
    {.name = "Placeholder",
     .outputs = "output: dtype",
     .attrs = "dtype: any, shape: shape = ?",
     .flags = OP_SOURCE | OP_STATEFUL,
     .shape = test_given_shape},
    {.name = "Variable",
     .outputs = "ref: Ref(dtype)",
     .attrs = "shape: shape, dtype: any",
     .flags = OP_STATEFUL,
     .shape = test_given_shape},
    {.name = "Identity",
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = "T: any",
     .shape = infer_unchanged},
    {.name = "Add",
     .inputs = "x: T, y: T",
     .outputs = "z: T",
     .attrs = "T: numeric",
     .shape = infer_broadcast},
    {.name = "Less",
     .inputs = "x: T, y: T",
     .outputs = "z: bool",
     .attrs = "T: real",
     .shape = infer_broadcast},
    {.name = "Both",
     .inputs = "x: T",
     .outputs = "y: T, z: T",
     .attrs = "T: any",
     .shape = infer_unchanged},
    {.name = "Kinds",
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = TEST_KINDS,
     .shape = infer_unchanged},
    {.name = "Later", .inputs = "x: T", .outputs = "y: T", .attrs = "T: any", .version = 2},
    {.name = "NoOp"},
    {.name = "Switch",
     .inputs = "data: T, pred: bool",
     .outputs = "output_false: T, output_true: T",
     .attrs = "T: any",
     .flags = OP_CONTROL_FLOW,
     .shape = infer_unchanged},
    {.name = "Merge",
     .inputs = "inputs: N*T",
     .outputs = "output: T, value_index: int32",
     .attrs = "T: any, N: int >= 1",
     .flags = OP_CONTROL_FLOW,
     .shape = test_merge_shape},
    {.name = "Enter",
     .inputs = "data: T",
     .outputs = "output: T",
     .attrs =
         "frame_name: string, is_constant: bool = false, parallel_iterations: int = 10, T: any",
     .flags = OP_CONTROL_FLOW,
     .shape = infer_unchanged},
    {.name = "Exit",
     .inputs = "data: T",
     .outputs = "output: T",
     .attrs = "T: any",
     .flags = OP_CONTROL_FLOW,
     .shape = infer_unchanged},
    {.name = "NextIteration",
     .inputs = "data: T",
     .outputs = "output: T",
     .attrs = "T: any",
     .flags = OP_CONTROL_FLOW,
     .shape = infer_unchanged},
    {.name = "LoopCond",
     .inputs = "input: bool",
     .outputs = "output: bool",
     .flags = OP_CONTROL_FLOW,
     .shape = infer_unchanged},
};

#define N_TEST_OPS (sizeof test_op_table / sizeof *test_op_table)

static struct registry *test_registry(void)
{
    static struct registry *registry;
    if (!registry) {
        const struct op_def *ops[N_TEST_OPS];
        struct error err = ERROR_INIT;
        for (size_t i = 0; i < N_TEST_OPS; i++)
            ops[i] = &test_op_table[i];
        registry = registry_new();
        if (registry_add(registry, ops, N_TEST_OPS, &err))
            error_bug(err.file, err.line, err.text);
    }
    return registry;
}

#endif
