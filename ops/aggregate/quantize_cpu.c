/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "exec/state/variable.h"
#include "ops/aggregate/quantize.h"
#include "ops/math/parallel_cpu.h"

#define BLOCK 256 /* elements decoded at a time */

/* Runs the loop over the groups, with as many for a thread as are worth it. Returns 1 if a row is
 * malformed. */
static int each_group(struct kernel_call *call, struct coded_gradients *q,
                      int (*loop)(void *context, int64_t begin, int64_t end))
{
    int64_t group = q->code.group;
    return parallel_for(call->threads, q->groups, (PARALLEL_GRAIN_MOVE + group - 1) / group, loop,
                        q);
}

/* ---- QuantizeGradient ---- */

static int encode_groups(void *context, int64_t begin, int64_t end)
{
    const struct coded_gradients *q = context;
    int64_t group = q->code.group;
    for (int64_t i = begin; i < end; i++) {
        struct coded_sum sum = {q->gradient + i * group, q->residual + i * group};
        gradient_code_encode(&q->code, sum, q->rows + i * q->code.row);
    }
    return 0;
}

static int quantize_run(struct kernel_call *call)
{
    struct coded_gradients q;
    if (quantize_describe(call, &q))
        return call->err->code;
    each_group(call, &q, encode_groups);
    return KERNEL_DONE;
}

const struct kernel_code kernel_quantize_gradient = {.prepare = quantize_prepare,
                                                     .run = quantize_run};

/* ---- DequantizeGradient ---- */

static void add_blocks(const struct coded_gradients *q, int64_t i, float *mean)
{
    for (int64_t from = 0, n; from < q->code.group; from += n) {
        float values[BLOCK];
        n = q->code.group - from < BLOCK ? q->code.group - from : BLOCK;
        gradient_code_decode(&q->code, q->rows + i * q->code.row, from, n, mean + from);
        for (int64_t k = 1; k < q->n; k++) {
            const uint8_t *row = q->rows + (k * q->groups + i) * q->code.row;
            gradient_code_decode(&q->code, row, from, n, values);
            for (int64_t e = 0; e < n; e++)
                mean[from + e] += values[e];
        }
    }
}

static bool add_top(const struct coded_gradients *q, int64_t i, float *mean)
{
    int64_t index;
    float value;
    memset(mean, 0, (size_t)q->code.group * sizeof *mean);
    for (int64_t k = 0; k < q->n; k++)
        for (int64_t e = 0; e < q->code.keep; e++) {
            const uint8_t *row = q->rows + (k * q->groups + i) * q->code.row;
            if (!gradient_code_top(&q->code, row, e, &index, &value))
                return false;
            mean[index] += value;
        }
    return true;
}

static int decode_groups(void *context, int64_t begin, int64_t end)
{
    const struct coded_gradients *q = context;
    for (int64_t i = begin; i < end; i++) {
        float *mean = q->mean + i * q->code.group;
        if (q->code.kind != CODE_TOP)
            add_blocks(q, i, mean);
        else if (!add_top(q, i, mean))
            return 1;
        for (int64_t e = 0; q->n > 1 && e < q->code.group; e++)
            mean[e] /= (float)q->n;
    }
    return 0;
}

static int dequantize_run(struct kernel_call *call)
{
    struct coded_gradients q;
    if (dequantize_describe(call, &q))
        return call->err->code;
    return each_group(call, &q, decode_groups) ? quantize_fail_malformed(call) : KERNEL_DONE;
}

const struct kernel_code kernel_dequantize_gradient = {.prepare = quantize_prepare,
                                                       .run = dequantize_run};

/* ---- ApplyResidual ---- */

static void lose_blocks(const struct gradient_code *code, const uint8_t *row, const float *gradient,
                        float *residual)
{
    for (int64_t from = 0, n; from < code->group; from += n) {
        float values[BLOCK];
        n = code->group - from < BLOCK ? code->group - from : BLOCK;
        gradient_code_decode(code, row, from, n, values);
        for (int64_t e = 0; e < n; e++)
            residual[from + e] = gradient[from + e] + residual[from + e] - values[e];
    }
}

static bool lose_top(const struct gradient_code *code, const uint8_t *row, const float *gradient,
                     float *residual)
{
    int64_t index;
    float value;
    for (int64_t e = 0; e < code->group; e++)
        residual[e] = gradient[e] + residual[e];
    for (int64_t e = 0; e < code->keep; e++) {
        if (!gradient_code_top(code, row, e, &index, &value))
            return false;
        residual[index] -= value;
    }
    return true;
}

static int lose_groups(void *context, int64_t begin, int64_t end)
{
    const struct coded_gradients *q = context;
    int64_t group = q->code.group;
    for (int64_t i = begin; i < end; i++) {
        const uint8_t *row = q->rows + i * q->code.row;
        const float *gradient = q->gradient + i * group;
        float *residual = q->residual + i * group;
        if (q->code.kind != CODE_TOP)
            lose_blocks(&q->code, row, gradient, residual);
        else if (!lose_top(&q->code, row, gradient, residual))
            return 1;
    }
    return 0;
}

static int residual_run(struct kernel_call *call)
{
    struct coded_gradients q;
    if (residual_describe(call, &q))
        return call->err->code;
    int bad = each_group(call, &q, lose_groups);
    variable_written(call->refs[0]);
    if (bad)
        return quantize_fail_malformed(call);
    return kernel_alias_output(call, 0, 0, NULL) ? KERNEL_DONE : call->err->code;
}

const struct kernel_code kernel_apply_residual = {.prepare = quantize_prepare, .run = residual_run};
