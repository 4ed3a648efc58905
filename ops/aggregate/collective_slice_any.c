/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "exec/device/kernel.h"
#include "exec/step/collective.h"
#include "exec/step/step.h"

struct collective_slice {
    int64_t dim, axis;
};

static int slice_prepare(struct kernel_setup *setup)
{
    struct collective_slice *slice = setup->state = mem_alloc(sizeof *slice);
    *slice = (struct collective_slice){node_int(setup->node, "dim"), node_int(setup->node, "axis")};
    return 0;
}

static int slice_run(struct kernel_call *call)
{
    const struct collective *collective = call->step->collective;
    const struct collective_slice *slice = call->state;
    int64_t n = collective ? collective->size : 1, rank = call->node->outputs[0].shape.dims[0];
    struct row_range part = collective_part(slice->dim, n, collective ? collective->rank : 0);
    int64_t *out[4];
    for (int i = 0; i < 4; i++) {
        struct tensor *made = kernel_alloc_output(call, i, &call->node->outputs[i].shape);
        if (!made)
            return call->err->code;
        out[i] = made->data;
    }
    for (int64_t i = 0; i < rank; i++) {
        bool is_cut = i == slice->axis;
        out[0][i] = out[2][2 * i] = is_cut ? part.first : 0;
        out[1][i] = is_cut ? part.count : -1;
        out[2][2 * i + 1] = is_cut ? slice->dim - part.first - part.count : 0;
    }
    *out[3] = n;
    return KERNEL_DONE;
}

const struct kernel_code kernel_collective_slice = {.prepare = slice_prepare, .run = slice_run};
