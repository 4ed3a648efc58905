/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "exec/state/variable.h"
#include "ops/aggregate/quantize.h"
#include "ops/math/parallel_cpu.h"

#define BLOCK 256 /* elements decoded at a time */

/* Returns the number of groups that is worth a thread. */
static int64_t grain_of(const struct gradient_code *code)
{
    return (PARALLEL_GRAIN_MOVE + code->group - 1) / code->group;
}

/* ---- QuantizeGradient ---- */

struct quantize_job {
    const struct gradient_code *code;
    struct coded_sum sum;
    uint8_t *rows;
};

static int encode_groups(void *context, int64_t begin, int64_t end)
{
    const struct quantize_job *q = context;
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
    struct quantize_call described;
    if (quantize_describe(call, &described))
        return call->err->code;
    const float *residual = call->in[1]->data;
    struct quantize_job q = {
        code, {call->in[0]->data, residual + described.first * code->group}, call->out[0]->data};
    parallel_for(call->threads, described.groups, grain_of(code), encode_groups, &q);
    return KERNEL_DONE;
}

const struct kernel_code kernel_quantize_gradient = {.prepare = quantize_prepare,
                                                     .run = quantize_run};

/* ---- DequantizeGradient ---- */

struct dequantize_job {
    const struct gradient_code *code;
    const uint8_t *rows; /* of n members, `groups` each */
    int64_t n, groups;
    float *mean;
};

static void add_blocks(const struct dequantize_job *d, int64_t i, float *mean)
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

static bool add_top(const struct dequantize_job *d, int64_t i, float *mean)
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
    const struct dequantize_job *d = context;
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

static int dequantize_run(struct kernel_call *call)
{
    const struct gradient_code *code = call->state;
    struct dequantize_call described;
    if (dequantize_describe(call, &described))
        return call->err->code;
    struct dequantize_job d = {code, call->in[0]->data, described.n, described.groups,
                               call->out[0]->data};
    if (parallel_for(call->threads, d.groups, grain_of(code), decode_groups, &d))
        return quantize_fail_malformed(call);
    return KERNEL_DONE;
}

const struct kernel_code kernel_dequantize_gradient = {.prepare = quantize_prepare,
                                                       .run = dequantize_run};

/* ---- ApplyResidual ---- */

struct residual_job {
    const struct gradient_code *code;
    const uint8_t *rows;
    const float *gradient;
    float *residual;
};

static void lose_blocks(const struct residual_job *l, const uint8_t *row, const float *gradient,
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

static bool lose_top(const struct residual_job *l, const uint8_t *row, const float *gradient,
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
    const struct residual_job *l = context;
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
    struct quantize_call described;
    if (residual_describe(call, &described))
        return call->err->code;
    struct residual_job l = {code, call->in[2]->data, call->in[1]->data,
                             (float *)variable->value.data + described.first * code->group};
    int bad = parallel_for(call->threads, described.groups, grain_of(code), lose_groups, &l);
    variable_written(variable);
    if (bad)
        return quantize_fail_malformed(call);
    return kernel_alias_output(call, 0, 0, NULL) ? KERNEL_DONE : call->err->code;
}

const struct kernel_code kernel_apply_residual = {.prepare = quantize_prepare, .run = residual_run};
