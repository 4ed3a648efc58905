/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/random/draw.h"

#include "base/memory.h"
#include "graph/worker_attr.h"
#include "ops/array/args.h"
#include "ops/array/reshape.h"
#include "ops/math/outputs.h"

struct random_seeds random_seeds_of(const struct node *node)
{
    const struct attr_value *offset = node_attr(node, "offset");
    return (struct random_seeds){.seed = (uint64_t)node_int(node, "seed"),
                                 .seed2 = (uint64_t)node_int(node, "seed2"),
                                 .offset = offset ? offset->i : 0,
                                 .alike = node_attr(node, DRAWS_ALIKE) != NULL};
}

int random_prepare(struct kernel_setup *setup)
{
    struct random_seeds *seeds = setup->state = mem_alloc(sizeof *seeds);
    *seeds = random_seeds_of(setup->node);
    return 0;
}

struct tensor *random_output(struct kernel_call *call)
{
    struct shape shape;
    if (reshape_read(call->in[0], &shape, call->err))
        return NULL;
    if (shape_count(&shape) < 0) {
        kernel_fail(call, "a tensor of shape %s is impossible", shape_text(&shape));
        return NULL;
    }
    return kernel_alloc_output(call, 0, &shape);
}

int random_range(struct kernel_call *call, int64_t *low, uint64_t *size)
{
    int64_t high = 0;
    if (args_scalar(call, 1, "minval", low) || args_scalar(call, 2, "maxval", &high))
        return call->err->code;
    if (*low >= high)
        return kernel_fail(call, "minval %" PRId64 " is not below maxval %" PRId64, *low, high);
    *size = (uint64_t)high - (uint64_t)*low;
    return 0;
}

struct tensor *multinomial_output(struct kernel_call *call)
{
    const struct shape *logits = &call->in[0]->shape;
    struct tensor *out = result_outputs(call, 1, 2);
    if (!out || logits->dims[1] || !tensor_count(out))
        return out;
    kernel_fail(call, "there are no classes: logits are %s", shape_text(logits));
    return NULL;
}
