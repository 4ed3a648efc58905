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

/* Describes a gradient, which must consist of groups; the residual must have these from `first` on.
 */
static int describe(struct kernel_call *call, const struct tensor *gradient,
                    const struct tensor *residual, int64_t first, struct coded_gradients *q)
{
    const struct gradient_code *code = call->state;
    int64_t all = groups_of(code, residual);
    *q = (struct coded_gradients){
        .code = *code, .groups = groups_of(code, gradient), .gradient = gradient->data};
    if (tensor_count(gradient) % code->group)
        return kernel_fail(call, "%s has no groups of %lld elements", shape_text(&gradient->shape),
                           (long long)code->group);
    if (first < 0 || q->groups > all || first > all - q->groups)
        return kernel_fail(call, "a residual of %lld groups does not have %lld from group %lld on",
                           (long long)all, (long long)q->groups, (long long)first);
    return 0;
}

int quantize_describe(struct kernel_call *call, struct coded_gradients *q)
{
    int64_t first = *(const int64_t *)call->in[2]->data;
    if (describe(call, call->in[0], call->in[1], first, q))
        return call->err->code;
    struct shape shape = shape_matrix(q->groups, q->code.row);
    if (!kernel_alloc_output(call, 0, &shape))
        return call->err->code;
    q->rows = call->out[0]->data;
    q->residual = (float *)call->in[1]->data + first * q->code.group;
    return 0;
}

int residual_describe(struct kernel_call *call, struct coded_gradients *q)
{
    struct variable *variable = call->refs[0];
    const struct tensor *rows = call->in[2];
    struct shape shape = variable->value.shape;
    int64_t first = *(const int64_t *)call->in[3]->data;
    if (describe(call, call->in[1], &variable->value, first, q))
        return call->err->code;
    if (rows->shape.dims[0] != q->groups || rows->shape.dims[1] != q->code.row)
        return kernel_fail(call, "codes %s are not those of %lld groups", shape_text(&rows->shape),
                           (long long)q->groups);
    if (variable_prepare_write(variable, &shape, VARIABLE_UPDATE, call->err))
        return call->err->code;
    q->rows = rows->data;
    q->residual = (float *)variable->value.data + first * q->code.group;
    return 0;
}

int dequantize_describe(struct kernel_call *call, struct coded_gradients *q)
{
    const struct gradient_code *code = call->state;
    const struct tensor *rows = call->in[0];
    int64_t all = rows->shape.dims[0], n = call->in[1]->shape.dims[0];
    *q = (struct coded_gradients){
        .code = *code, .groups = n > 0 ? all / n : 0, .n = n, .rows = rows->data};
    /* The declared shape, whose first dimension may depend on the rows. */
    struct shape shape = call->node->outputs[0].shape;
    if (shape.rank > 0 && shape.dims[0] < 0) {
        int64_t row = shape_count_of(&shape, 1, shape.rank);
        shape.dims[0] = row > 0 ? q->groups * code->group / row : 0;
    }

    if (n < 1 || q->groups * n != all || rows->shape.dims[1] != code->row ||
        shape_count(&shape) != q->groups * code->group)
        return kernel_fail(call, "codes %s are not those of %lld gradients %s",
                           shape_text(&rows->shape), (long long)n, shape_text(&shape));
    if (!kernel_alloc_output(call, 0, &shape))
        return call->err->code;
    q->mean = call->out[0]->data;
    return 0;
}

int quantize_fail_malformed(struct kernel_call *call)
{
    return kernel_fault(call, &(struct fault){.code = FAULT_GROUP});
}
