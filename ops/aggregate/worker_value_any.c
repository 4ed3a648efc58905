/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "ops/aggregate/ids_any.h"
#include "resource/worker_value.h"

struct value_use {
    struct worker_values *values;
    int64_t workers;
};

static int prepare(struct kernel_setup *setup)
{
    const struct node *node = setup->node;
    struct value_use *use = setup->state = mem_alloc(sizeof *use);
    if (!setup->variables)
        return kernel_setup_fail(setup, "there is nowhere to keep what is given");
    use->values = resource_get(setup->variables, &worker_value_kind, container_of_node(node),
                               node_string(node, "of"));
    use->workers = node_attr(node, "workers") ? node_int(node, "workers") : 0;
    return 0;
}

static int give_run(struct kernel_call *call)
{
    const struct value_use *use = call->state;
    struct push_id id = id_of_step(call->step);
    struct tensor value = TENSOR_INIT, *token = kernel_alloc_output(call, 0, &SHAPE_SCALAR);
    if (!token || kernel_keep_input(call, 0, &value))
        return call->err->code;
    worker_value_give(use->values, id.worker, &value);
    tensor_set_int64(token, 0, id.seq);
    tensor_release(&value);
    return 0;
}

/* A value from a checkpoint may belong to another model. */
static int take_run(struct kernel_call *call)
{
    const struct value_use *use = call->state;
    const struct node_output *declared = &call->node->outputs[0];
    struct push_id id = id_of_step(call->step);
    struct tensor value;
    int code = worker_value_take(use->values, id.worker, use->workers, &value, call->err);
    if (code)
        return code;
    if (value.type == DTYPE_INVALID) {
        struct tensor *out = kernel_alloc_output(call, 0, &declared->shape);
        if (out && tensor_bytes(out)) /* an empty one has no memory */
            memset(out->data, 0, tensor_bytes(out));
        return out ? 0 : call->err->code;
    }
    if (value.type != declared->type || !shape_equal(&value.shape, &declared->shape))
        code = kernel_fail(call, "worker:%" PRId64 " had %s, not %s", id.worker,
                           shape_text_typed(value.type, &value.shape),
                           shape_text_typed(declared->type, &declared->shape));
    else if (!kernel_share_output(call, 0, &value))
        code = call->err->code;
    tensor_release(&value);
    return code;
}

const struct kernel_code kernel_worker_value_give = {.prepare = prepare, .run = give_run};
const struct kernel_code kernel_worker_value_take = {.prepare = prepare, .run = take_run};
