/* SPDX-License-Identifier: Apache-2.0
 *
 * Random choices: an order, or classes by their probabilities.
 */
#include <math.h>
#include <string.h>

#include "exec/device/step_block.h"
#include "ops/random/distribution.h"
#include "ops/random/draw.h"
#include "ops/random/philox.h"

/* ---- RandomShuffle ---- */

static int shuffle_run(struct kernel_call *call)
{
    const struct tensor *in = call->in[0];
    struct tensor *out = kernel_alloc_output(call, 0, &in->shape);
    if (!out)
        return call->err->code;
    size_t bytes = tensor_bytes(in);
    int64_t n = in->shape.rank ? in->shape.dims[0] : 1;
    if (!bytes)
        return KERNEL_DONE;
    int64_t *order = kernel_temporary(call, (size_t)n * sizeof *order);
    if (!order)
        return call->err->code;
    struct philox_stream stream = random_stream(call);
    /* Fisher-Yates: from the end, each place gets one of the elements not placed yet. */
    uint32_t words[2];
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        philox_words(&stream, i, words);
        int64_t k = (int64_t)uniform_integer(words, (uint64_t)i + 1), kept = order[i];
        order[i] = order[k];
        order[k] = kept;
    }
    size_t row = bytes / (size_t)n;
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)out->data + (size_t)i * row, (const char *)in->data + (size_t)order[i] * row,
               row);
    return KERNEL_DONE;
}

const struct kernel_code kernel_random_shuffle = {.prepare = random_prepare, .run = shuffle_run};

/* ---- Multinomial ---- */

static int multinomial_run(struct kernel_call *call)
{
    const struct tensor *logits = call->in[0];
    struct tensor *out = multinomial_output(call);
    if (!out)
        return call->err->code;
    int64_t n = logits->shape.dims[1], n_samples = out->shape.dims[1];
    double *sums = kernel_temporary(call, ((size_t)n + 1) * sizeof *sums);
    if (!sums)
        return call->err->code;
    struct philox_stream stream = random_stream(call);
    int64_t *classes = out->data;
    for (int64_t row = 0; n_samples > 0 && row < out->shape.dims[0]; row++) {
        /* sums[k] = sum of exp(logit - largest) over classes 0 to k. */
        double largest = -INFINITY, sum = 0;
        for (int64_t k = 0; k < n; k++)
            largest = fmax(largest, tensor_get_float64(logits, row * n + k));
        for (int64_t k = 0; k < n; k++)
            sums[k] = sum += exp(tensor_get_float64(logits, row * n + k) - largest);
        if (!isfinite(largest) || !isfinite(sum) || sum <= 0) /* no class is possible */
            return kernel_fault(call, &(struct fault){.code = FAULT_CLASSES, .at = row});
        for (int64_t s = 0; s < n_samples; s++) {
            uint32_t words[2];
            philox_words(&stream, row * n_samples + s, words);
            classes[row * n_samples + s] = random_class(sums, n, words);
        }
    }
    return KERNEL_DONE;
}

const struct kernel_code kernel_multinomial = {.prepare = random_prepare, .run = multinomial_run};
