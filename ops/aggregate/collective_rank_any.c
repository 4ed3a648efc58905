/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "exec/device/kernel.h"
#include "exec/step/collective_kernel.h"
#include "exec/step/step.h"

static int rank_prepare(struct kernel_setup *setup)
{
    struct collective_group *group = setup->state = mem_alloc(sizeof *group);
    *group = collective_group_of(setup->node);
    return 0;
}

static int rank_run(struct kernel_call *call)
{
    const struct shape one = shape_vector(1);
    const struct collective *collective = call->step->collective;
    const struct collective_group *group = call->state;
    struct error why = ERROR_INIT;
    struct tensor *rank = kernel_alloc_output(call, 0, &one);
    if (!rank)
        return call->err->code;
    if (collective && collective_check_group(group, collective->size, &why))
        return kernel_fail(call, "%s", why.text);
    *(int64_t *)rank->data = collective ? collective_group_place(group, collective->rank) : 0;
    return KERNEL_DONE;
}

static int part_prepare(struct kernel_setup *setup)
{
    int64_t *rows = setup->state = mem_alloc(sizeof *rows);
    *rows = node_int(setup->node, "rows");
    return 0;
}

static int part_run(struct kernel_call *call)
{
    const int64_t *ranks = call->in[0]->data, *rank = call->in[1]->data;
    int64_t n = tensor_count(call->in[0]), rows = *(const int64_t *)call->state, k = 0;
    if (tensor_count(call->in[1]) != 1)
        return kernel_fail(call, "a member has one rank");
    while (k < n && ranks[k] != *rank)
        k++;
    if (k == n)
        return kernel_fail(call, "%lld is no member", (long long)*rank);
    struct tensor *first = kernel_alloc_output(call, 0, &SHAPE_SCALAR);
    if (!first)
        return call->err->code;
    *(int64_t *)first->data = collective_part(rows, n, k).first;
    return KERNEL_DONE;
}

const struct kernel_code kernel_collective_rank = {.prepare = rank_prepare, .run = rank_run};
const struct kernel_code kernel_collective_part = {.prepare = part_prepare, .run = part_run};
