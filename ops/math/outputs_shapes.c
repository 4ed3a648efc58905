/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/math/outputs.h"

#include "graph/infer.h"

#define FEW 8 /* outputs of most ops */

int result_shapes(struct kernel_call *call, int from, int to, struct shape *shapes)
{
    const struct infer_inputs inputs = {call->in, call->n_in, from, to};
    return infer_from_inputs(call->node, &inputs, shapes, call->err);
}

struct tensor *result_outputs(struct kernel_call *call, int from, int to)
{
    struct shape few[FEW], *shapes = few;
    const struct node_output *planned =
        call->shapes_known && from == to ? call->node->outputs : NULL;
    if (call->n_out > FEW && !planned)
        shapes = kernel_temporary(call, (size_t)call->n_out * sizeof *shapes);
    if (!shapes || (!planned && result_shapes(call, from, to, shapes)))
        return NULL;
    for (int i = 0; i < call->n_out; i++)
        if (!kernel_alloc_output(call, i, planned ? &planned[i].shape : &shapes[i]))
            return NULL;
    return call->n_out ? call->out[0] : NULL;
}
