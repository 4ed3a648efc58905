/* SPDX-License-Identifier: Apache-2.0
 *
 * The fused op that plans make from several element-wise ops (exec/plan/fuse.h).
 */
#include "ops/math/results.h"
#include <inttypes.h>

#include "graph/infer.h"
#include "graph/op_cost.h"

static int fused_shape(struct infer *infer)
{
    infer->out[0] = *infer_shape(infer, 0);
    for (int i = 1; i < infer->n_in; i++) {
        struct shape so_far = infer->out[0];
        if (!shape_broadcast(&so_far, infer_shape(infer, i), &infer->out[0]))
            return infer_fail(infer, "input %d is %s, those before %s", i,
                              shape_text(infer_shape(infer, i)), shape_text(&so_far));
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
    return 0;
}

static void fused_cost(const struct cost_query *query, struct op_cost *cost)
{
    cost_elements(query, cost);
    cost->operations *= node_attr(query->node, "ops")->n;
}

int fused_check_shapes(const struct attr_value *operands, const struct shape *const *in, int n_in,
                       struct shape *out, struct error *err)
{
    *out = *in[0];
    for (int i = 1; i < n_in; i++) {
        struct shape so_far = *out;
        if (!shape_broadcast(&so_far, in[i], out))
            return error_set(err, ERR_DATA, "input %d is %s, those before %s", i, shape_text(in[i]),
                             shape_text(&so_far));
    }
    for (int i = 0; i < n_in; i++)
        if (shape_count(in[i]) != 1 && !shape_equal(in[i], out))
            return error_set(err, ERR_DATA, "input %d is %s, neither the output's %s nor a scalar",
                             i, shape_text(in[i]), shape_text(out));
    if (shape_count(out) == 1)
        return 0;
    /* An op with only single-element operands has no elements to traverse. */
    for (int i = 0; i < operands->n; i += FUSED_OPERANDS) {
        bool stands = true;
        for (int k = 0; k < FUSED_OPERANDS; k++) {
            int64_t from = operands->ints[i + k];
            stands &= from < 0 || (from < n_in && shape_count(in[from]) == 1);
        }
        if (stands)
            return error_set(err, ERR_DATA, "all operands of op %d are scalars",
                             i / FUSED_OPERANDS);
    }
    return 0;
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
