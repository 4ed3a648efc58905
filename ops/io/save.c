/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints as part of a graph (white paper, section 3.3).
 */
#include "graph/infer.h"
#include "graph/op_cost.h"

static int save_shape(struct infer *infer)
{
    return infer_scalar(infer, 0) ? infer_scalar(infer, 0) : infer_vector(infer, 1);
}

#define FILE_OP(op, ...)                                                                           \
    const struct op_def op_##op = {                                                                \
        .name = #op, .half = HALF_KEPT, .cost = cost_elements, __VA_ARGS__}

FILE_OP(
    Save, .inputs = "filename: string, tensor_names: string, data: T...", .attrs = "T: list(any)",
    .doc = "Saves tensors under their names as a checkpoint of the step.",
    .detail = "filename is a store of checkpoints, which tf-ckpt init has made. As many names as "
              "tensors. The tensors of one Save are of one checkpoint; two Saves of the same step "
              "and store replace each other, those of another run are refused. Only tf-exec in a "
              "process of its own gives graphs "
              "access to files.",
    .flags = OP_STATEFUL | OP_NO_GRADIENT, .shape = save_shape, .no_gradient = "it has no result");

static int restore_shape(struct infer *infer)
{
    infer->out[0] = SHAPE_ANY;
    return infer_scalar(infer, 0) ? infer_scalar(infer, 0) : infer_scalar(infer, 1);
}

FILE_OP(Restore, .inputs = "file_pattern: string, tensor_name: string", .outputs = "tensor: dt",
        .attrs = "dt: any", .doc = "One tensor of a checkpoint.",
        .detail = "file_pattern is a store (its newest complete checkpoint), STORE@STEP, or a file "
                  "x.ckpt. Every byte is checked against its digest.",
        .flags = OP_STATEFUL | OP_NO_GRADIENT | OP_SHAPED_BY_DATA, .shape = restore_shape,
        .no_gradient = "its result comes from a file");
