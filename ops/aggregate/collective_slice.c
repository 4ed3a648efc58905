/* SPDX-License-Identifier: Apache-2.0
 *
 * The position of a worker's part of a tensor that is divided among all workers.
 */
#include "graph/infer.h"
#include "graph/op_cost.h"

static int slice_shape(struct infer *infer)
{
    int64_t rank = node_int(infer->node, "rank");
    if (rank > SHAPE_RANK_MAX || node_int(infer->node, "axis") >= rank)
        return infer_fail(infer, "a tensor of rank %lld has no axis %lld", (long long)rank,
                          (long long)node_int(infer->node, "axis"));
    infer->out[0] = infer->out[1] = shape_vector(rank);
    infer->out[2] = shape_of(2, (const int64_t[]){rank, 2});
    infer->out[3] = SHAPE_SCALAR;
    return 0;
}

const struct op_def op_CollectiveSlice = {
    .name = "CollectiveSlice",
    .outputs = "begin: int64, size: int64, paddings: int64, workers: int64",
    .attrs = "dim: int >= 0, axis: int = 0 >= 0, rank: int = 1 >= 1",
    .doc = "Where this worker's part of a tensor is, of which each has a part along an axis.",
    .detail = "As Slice takes it, begin and size, and as Pad takes it, which puts the part among "
              "zeros in its\nplace; and how many workers there are. Of dim elements along the axis "
              "in n parts each has dim / n,\nthe first dim % n one more.",
    .flags = OP_STATEFUL | OP_NO_GRADIENT,
    .cost = cost_view,
    .shape = slice_shape,
    .no_gradient = "it does not depend on what is computed",
};
