/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "exec/device/fault.h"
#include "exec/state/variable.h"
#include "ops/aggregate/quantize.h"

int quantize_prepare(struct kernel_setup *setup)
{
    struct gradient_code *code = setup->state = mem_alloc(sizeof *code);
    const char *wrong = gradient_code_read(code, setup->node);
    return wrong ? kernel_setup_fail(setup, "%s", wrong) : 0;
}

static int64_t groups_of(const struct gradient_code *code, const struct tensor *t)
{
    return tensor_count(t) / code->group;
}

/* Checks that the gradient consists of groups, and that the residual has those from q->first on. */
static int check_groups(struct kernel_call *call, const struct tensor *gradient,
                        const struct tensor *residual, struct quantize_call *q)
{
    const struct gradient_code *code = call->state;
    int64_t all = groups_of(code, residual);
    q->groups = groups_of(code, gradient);
    if (tensor_count(gradient) % code->group)
        return kernel_fail(call, "%s has no groups of %lld elements", shape_text(&gradient->shape),
                           (long long)code->group);
    if (q->first < 0 || q->groups > all || q->first > all - q->groups)
        return kernel_fail(call, "a residual of %lld groups does not have %lld from group %lld on",
                           (long long)all, (long long)q->groups, (long long)q->first);
    return 0;
}

int quantize_describe(struct kernel_call *call, struct quantize_call *q)
{
    q->first = *(const int64_t *)call->in[2]->data;
    if (check_groups(call, call->in[0], call->in[1], q))
        return call->err->code;
    struct shape shape = shape_matrix(q->groups, gradient_code_bytes(call->state));
    return kernel_alloc_output(call, 0, &shape) ? 0 : call->err->code;
}

int residual_describe(struct kernel_call *call, struct quantize_call *q)
{
    struct variable *variable = call->refs[0];
    const struct tensor *rows = call->in[2];
    struct shape shape = variable->value.shape;
    q->first = *(const int64_t *)call->in[3]->data;
    if (check_groups(call, call->in[1], &variable->value, q))
        return call->err->code;
    if (rows->shape.dims[0] != q->groups || rows->shape.dims[1] != gradient_code_bytes(call->state))
        return kernel_fail(call, "codes %s are not those of %lld groups", shape_text(&rows->shape),
                           (long long)q->groups);
    return variable_prepare_write(variable, &shape, VARIABLE_UPDATE, call->err);
}

int dequantize_describe(struct kernel_call *call, struct dequantize_call *d)
{
    const struct gradient_code *code = call->state;
    const struct tensor *rows = call->in[0];
    int64_t all = rows->shape.dims[0];
    d->n = call->in[1]->shape.dims[0];
    d->groups = d->n > 0 ? all / d->n : 0;
    /* The declared shape, whose first dimension may depend on the rows. */
    struct shape shape = call->node->outputs[0].shape;
    if (shape.rank > 0 && shape.dims[0] < 0) {
        int64_t row = shape_count_of(&shape, 1, shape.rank);
        shape.dims[0] = row > 0 ? d->groups * code->group / row : 0;
    }

    if (d->n < 1 || d->groups * d->n != all || rows->shape.dims[1] != gradient_code_bytes(code) ||
        shape_count(&shape) != d->groups * code->group)
        return kernel_fail(call, "codes %s are not those of %lld gradients %s",
                           shape_text(&rows->shape), (long long)d->n, shape_text(&shape));
    return kernel_alloc_output(call, 0, &shape) ? 0 : call->err->code;
}

int quantize_fail_malformed(struct kernel_call *call)
{
    return kernel_fault(call, &(struct fault){.code = FAULT_GROUP});
}
