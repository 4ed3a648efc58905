/* SPDX-License-Identifier: Apache-2.0
 *
 * The fused op that plans make from several element-wise ops (exec/plan/fuse.h).
 */
#include <inttypes.h>

#include "graph/infer.h"
#include "graph/op_cost.h"
#include "ops/math/elementwise_ops.h"

/* An op with only single-element operands has no elements to traverse. */
static bool stands(const struct infer *infer, const int64_t *operands)
{
    for (int k = 0; k < FUSED_OPERANDS; k++)
        if (operands[k] >= infer->n_in ||
            (operands[k] >= 0 && shape_count(infer_shape(infer, (int)operands[k])) != 1))
            return false;
    return true;
}

static int fused_shape(struct infer *infer)
{
    struct shape *out = &infer->out[0];
    *out = *infer_shape(infer, 0);
    for (int i = 1; i < infer->n_in; i++) {
        struct shape so_far = *out;
        if (!shape_broadcast(&so_far, infer_shape(infer, i), out))
            return infer_fail(infer, "input %d is %s, those before %s", i,
                              shape_text(infer_shape(infer, i)), shape_text(&so_far));
    }
    for (int i = 0; i < infer->n_in; i++) {
        const struct shape *in = infer_shape(infer, i);
        /* A shape that is not yet known may turn out to be a scalar's. */
        bool is_known = shape_is_known(in) && shape_is_known(out);
        if (is_known && shape_count(in) != 1 && !shape_equal(in, out))
            return infer_fail(infer, "input %d is %s, neither the output's %s nor a scalar", i,
                              shape_text(in), shape_text(out));
    }
    const struct attr_value *ops = node_attr(infer->node, "ops");
    const struct attr_value *operands = node_attr(infer->node, "operands");
    if (operands->n != FUSED_OPERANDS * ops->n)
        return infer_fail(infer, "%d ops have %d operands, not %d", ops->n, operands->n,
                          FUSED_OPERANDS * ops->n);
    for (int i = 0; i < operands->n; i++) {
        int64_t last = infer->n_in + i / FUSED_OPERANDS - 1;
        if (operands->ints[i] > last || operands->ints[i] < (i % FUSED_OPERANDS ? -1 : 0))
            return infer_fail(infer, "operand %d of op %d is %" PRId64 ", which is not there",
                              i % FUSED_OPERANDS, i / FUSED_OPERANDS, operands->ints[i]);
    }
    for (int i = 0; i < ops->n && shape_is_known(out) && shape_count(out) != 1; i++)
        if (stands(infer, operands->ints + i * FUSED_OPERANDS))
            return infer_fail(infer, "all operands of op %d are scalars", i);
    return 0;
}

static void fused_cost(const struct cost_query *query, struct op_cost *cost)
{
    cost_elements(query, cost);
    cost->operations *= node_attr(query->node, "ops")->n;
}

const struct op_def op_FusedElementwise = {
    .name = "FusedElementwise",
    .inputs = "inputs: N*T",
    .outputs = "output: T",
    .attrs = "N: int >= 1, T: float32|float64, ops: list(string) >= 1, operands: list(int) >= 2",
    .doc = "Several element-wise ops in one pass over memory; made of them for a device.",
    .detail = "Each of `ops` has two of `operands`: inputs by their number, then results of "
              "earlier ops; -1 is none. An input has the output's shape, or is a scalar. Only in "
              "types that no op of a chain rounds to.",
    .shape = fused_shape,
    .half = HALF_KEPT,
    .cost = fused_cost,
    .flags = OP_NO_GRADIENT,
    .no_gradient = "it is made of ops that have one when that is there",
};
