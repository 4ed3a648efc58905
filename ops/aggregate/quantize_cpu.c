/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/memory.h"
#include "exec/device/kernel.h"
#include "exec/state/variable.h"
#include "ops/aggregate/gradient_code.h"
#include "ops/math/parallel_cpu.h"

#define BLOCK 256 /* elements that are decoded at a time */

static int prepare(struct kernel_setup *setup)
{
    struct gradient_code *code = setup->state = mem_alloc(sizeof *code);
    const char *wrong = gradient_code_read(code, setup->node);
    return wrong ? kernel_setup_fail(setup, "%s", wrong) : 0;
}

/* Groups that are worth a thread. */
static int64_t grain_of(const struct gradient_code *code)
{
    return (PARALLEL_GRAIN_MOVE + code->group - 1) / code->group;
}

static int64_t groups_of(const struct gradient_code *code, const struct tensor *t)
{
    return tensor_count(t) / code->group;
}

/* Whether a gradient has groups, and the residual has those from `first` on. */
static int check_groups(struct kernel_call *call, const struct tensor *gradient,
                        const struct tensor *residual, int64_t first)
{
    const struct gradient_code *code = call->state;
    int64_t groups = groups_of(code, gradient), all = groups_of(code, residual);
    if (tensor_count(gradient) % code->group)
        return kernel_fail(call, "%s has no groups of %lld elements", shape_text(&gradient->shape),
                           (long long)code->group);
    if (first < 0 || groups > all || first > all - groups)
        return kernel_fail(call, "a residual of %lld groups does not have %lld from group %lld on",
                           (long long)all, (long long)groups, (long long)first);
    return 0;
}

/* ---- QuantizeGradient ---- */

struct quantizing {
    const struct gradient_code *code;
    struct coded_sum sum;
    uint8_t *rows;
};

static int encode_groups(void *context, int64_t begin, int64_t end)
{
    const struct quantizing *q = context;
    int64_t group = q->code->group, bytes = gradient_code_bytes(q->code);
    for (int64_t i = begin; i < end; i++) {
        struct coded_sum sum = {q->sum.gradient + i * group, q->sum.residual + i * group};
        gradient_code_encode(q->code, sum, q->rows + i * bytes);
    }
    return 0;
}

static int quantize_run(struct kernel_call *call)
{
    const struct gradient_code *code = call->state;
    const struct tensor *gradient = call->in[0], *residual = call->in[1];
    int64_t first = *(const int64_t *)call->in[2]->data;
    if (check_groups(call, gradient, residual, first))
        return call->err->code;
    int64_t groups = groups_of(code, gradient);
    struct shape shape = shape_matrix(groups, gradient_code_bytes(code));
    struct tensor *rows = kernel_alloc_output(call, 0, &shape);
    if (!rows)
        return call->err->code;
    struct quantizing q = {
        code, {gradient->data, (const float *)residual->data + first * code->group}, rows->data};
    parallel_for(call->threads, groups, grain_of(code), encode_groups, &q);
    return KERNEL_DONE;
}

const struct kernel_code kernel_quantize_gradient = {.prepare = prepare, .run = quantize_run};

/* ---- DequantizeGradient ---- */

struct dequantizing {
    const struct gradient_code *code;
    const uint8_t *rows; /* of n members, `groups` each */
    int64_t n, groups;
    float *mean;
};

static void add_blocks(const struct dequantizing *d, int64_t i, float *mean)
{
    int64_t bytes = gradient_code_bytes(d->code);
    for (int64_t from = 0, n; from < d->code->group; from += n) {
        float values[BLOCK];
        n = d->code->group - from < BLOCK ? d->code->group - from : BLOCK;
        gradient_code_decode(d->code, d->rows + i * bytes, from, n, mean + from);
        for (int64_t k = 1; k < d->n; k++) {
            gradient_code_decode(d->code, d->rows + (k * d->groups + i) * bytes, from, n, values);
            for (int64_t e = 0; e < n; e++)
                mean[from + e] += values[e];
        }
    }
}

static bool add_top(const struct dequantizing *d, int64_t i, float *mean)
{
    int64_t bytes = gradient_code_bytes(d->code), index;
    float value;
    memset(mean, 0, (size_t)d->code->group * sizeof *mean);
    for (int64_t k = 0; k < d->n; k++)
        for (int64_t e = 0; e < d->code->keep; e++) {
            const uint8_t *row = d->rows + (k * d->groups + i) * bytes;
            if (!gradient_code_top(d->code, row, e, &index, &value))
                return false;
            mean[index] += value;
        }
    return true;
}

static int decode_groups(void *context, int64_t begin, int64_t end)
{
    const struct dequantizing *d = context;
    for (int64_t i = begin; i < end; i++) {
        float *mean = d->mean + i * d->code->group;
        if (d->code->kind != CODE_TOP)
            add_blocks(d, i, mean);
        else if (!add_top(d, i, mean))
            return 1;
        for (int64_t e = 0; d->n > 1 && e < d->code->group; e++)
            mean[e] /= (float)d->n;
    }
    return 0;
}

/* The attribute; its first dimension may be what there is. */
static struct shape result_shape(const struct kernel_call *call, int64_t groups)
{
    const struct gradient_code *code = call->state;
    struct shape shape = *node_attr(call->node, "shape")->shape;
    if (shape.rank > 0 && shape.dims[0] < 0) {
        int64_t row = 1;
        for (int i = 1; i < shape.rank; i++)
            row *= shape.dims[i];
        shape.dims[0] = row > 0 ? groups * code->group / row : 0;
    }
    return shape;
}

static int dequantize_run(struct kernel_call *call)
{
    const struct gradient_code *code = call->state;
    const struct tensor *rows = call->in[0];
    int64_t n = tensor_count(call->in[1]), all = rows->shape.dims[0];
    int64_t groups = n > 0 ? all / n : 0;
    struct shape shape = result_shape(call, groups);
    if (n < 1 || groups * n != all || rows->shape.dims[1] != gradient_code_bytes(code) ||
        shape_count(&shape) != groups * code->group)
        return kernel_fail(call, "codes %s are not those of %lld gradients %s",
                           shape_text(&rows->shape), (long long)n, shape_text(&shape));
    struct tensor *mean = kernel_alloc_output(call, 0, &shape);
    if (!mean)
        return call->err->code;
    struct dequantizing d = {code, rows->data, n, groups, mean->data};
    if (parallel_for(call->threads, groups, grain_of(code), decode_groups, &d))
        return kernel_fail(call, "a code has elements that its group does not have");
    return KERNEL_DONE;
}

const struct kernel_code kernel_dequantize_gradient = {.prepare = prepare, .run = dequantize_run};

/* ---- ApplyResidual ---- */

struct losing {
    const struct gradient_code *code;
    const uint8_t *rows;
    const float *gradient;
    float *residual;
};

static void lose_blocks(const struct losing *l, const uint8_t *row, const float *gradient,
                        float *residual)
{
    for (int64_t from = 0, n; from < l->code->group; from += n) {
        float values[BLOCK];
        n = l->code->group - from < BLOCK ? l->code->group - from : BLOCK;
        gradient_code_decode(l->code, row, from, n, values);
        for (int64_t e = 0; e < n; e++)
            residual[from + e] = gradient[from + e] + residual[from + e] - values[e];
    }
}

static bool lose_top(const struct losing *l, const uint8_t *row, const float *gradient,
                     float *residual)
{
    int64_t index;
    float value;
    for (int64_t e = 0; e < l->code->group; e++)
        residual[e] = gradient[e] + residual[e];
    for (int64_t e = 0; e < l->code->keep; e++) {
        if (!gradient_code_top(l->code, row, e, &index, &value))
            return false;
        residual[index] -= value;
    }
    return true;
}

static int lose_groups(void *context, int64_t begin, int64_t end)
{
    const struct losing *l = context;
    int64_t group = l->code->group, bytes = gradient_code_bytes(l->code);
    for (int64_t i = begin; i < end; i++) {
        const uint8_t *row = l->rows + i * bytes;
        const float *gradient = l->gradient + i * group;
        float *residual = l->residual + i * group;
        if (l->code->kind != CODE_TOP)
            lose_blocks(l, row, gradient, residual);
        else if (!lose_top(l, row, gradient, residual))
            return 1;
    }
    return 0;
}

static int residual_run(struct kernel_call *call)
{
    const struct gradient_code *code = call->state;
    struct variable *variable = call->refs[0];
    const struct tensor *gradient = call->in[1], *rows = call->in[2];
    int64_t first = *(const int64_t *)call->in[3]->data;
    struct shape shape = variable->value.shape;
    if (check_groups(call, gradient, &variable->value, first))
        return call->err->code;
    int64_t groups = groups_of(code, gradient);
    if (rows->shape.dims[0] != groups || rows->shape.dims[1] != gradient_code_bytes(code))
        return kernel_fail(call, "codes %s are not those of %lld groups", shape_text(&rows->shape),
                           (long long)groups);
    if (variable_prepare_write(variable, &shape, VARIABLE_UPDATE, call->err))
        return call->err->code;
    struct losing l = {code, rows->data, gradient->data,
                       (float *)variable->value.data + first * code->group};
    int bad = parallel_for(call->threads, groups, grain_of(code), lose_groups, &l);
    variable_written(variable);
    if (bad)
        return kernel_fail(call, "a code has elements that its group does not have");
    return kernel_alias_output(call, 0, 0, NULL) ? KERNEL_DONE : call->err->code;
}

const struct kernel_code kernel_apply_residual = {.prepare = prepare, .run = residual_run};
