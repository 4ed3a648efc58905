/* SPDX-License-Identifier: Apache-2.0
 *
 * Candidate samplers by weights: a class is found by the position of a random number among the
 * running sums of the weights.
 */
#include <inttypes.h>

#include "ops/random/candidate.h"
#include "ops/random/distribution.h"
#include "ops/random/stream.h"

/* ---- by an attribute ---- */

static int fixed_prepare(struct kernel_setup *setup)
{
    int64_t range = node_int(setup->node, "range_max"), class = 0;
    struct candidate_sampler *sampler = candidate_prepare(setup, range);
    double sum = 0;
    for (int64_t id = 0; class < range; id++)
        if (unigram_of(setup->node, id))
            sampler->sums[class ++] = sum += unigram_weight(setup->node, id);
    return 0;
}

static int64_t fixed_draw(const struct candidate_law *law, const uint32_t words[2])
{
    return random_class(law->context, law->range, words);
}

static double fixed_probability(const struct candidate_law *law, int64_t class)
{
    const double *sums = law->context;
    return (sums[class] - (class ? sums[class - 1] : 0)) / sums[law->range - 1];
}

static int fixed_run(struct kernel_call *call)
{
    const struct candidate_sampler *sampler = call->state;
    struct candidate_law law = {fixed_draw, fixed_probability, sampler->range_max, sampler->sums};
    return candidate_sample(call, 0, &law) ? call->err->code : KERNEL_DONE;
}

const struct kernel_code kernel_fixed_unigram_candidates = {.prepare = fixed_prepare,
                                                            .run = fixed_run};

/* ---- by counts ---- */

/* Draws with integers, so that even large sums are exact. */
static int64_t counted_draw(const struct candidate_law *law, const uint32_t words[2])
{
    return random_counted_class(law->context, law->range, words);
}

static double counted_probability(const struct candidate_law *law, int64_t class)
{
    const int64_t *sums = law->context;
    return (double)(sums[class] - (class ? sums[class - 1] : 0)) / (double)sums[law->range - 1];
}

static int sum_counts(struct kernel_call *call, const int64_t *counts, int64_t *sums)
{
    const struct candidate_sampler *sampler = call->state;
    int64_t sum = 0, possible = 0;
    for (int64_t i = 0; i < sampler->range_max; i++) {
        if (counts[i] < 0 || __builtin_add_overflow(sum, counts[i], &sum))
            return kernel_fail(call, "the count of class %" PRId64 " cannot be %" PRId64, i,
                               counts[i]);
        sums[i] = sum;
        possible += counts[i] > 0;
    }
    if (!possible)
        return kernel_fail(call, "no class has a count above 0");
    if (sampler->unique && possible < sampler->num_sampled)
        return kernel_fail(call,
                           "num_sampled is %" PRId64 ", but there are only %" PRId64
                           " different classes with a count above 0",
                           sampler->num_sampled, possible);
    return 0;
}

int candidate_sample_counted(struct kernel_call *call, const struct tensor *counts)
{
    const struct candidate_sampler *sampler = call->state;
    if (counts->shape.rank != 1 || counts->shape.dims[0] != sampler->range_max)
        return kernel_fail(call,
                           "counts must be a vector of range_max = %" PRId64 " elements, not %s",
                           sampler->range_max, shape_text(&counts->shape));
    int64_t *sums = kernel_temporary(call, (size_t)sampler->range_max * sizeof *sums);
    if (!sums || sum_counts(call, counts->data, sums))
        return call->err->code;
    struct candidate_law law = {counted_draw, counted_probability, sampler->range_max, sums};
    return candidate_sample(call, 1, &law);
}

static int counted_run(struct kernel_call *call)
{
    return candidate_sample_counted(call, call->in[0]) ? call->err->code : KERNEL_DONE;
}

static int counted_prepare(struct kernel_setup *setup)
{
    candidate_prepare(setup, 0);
    return 0;
}

const struct kernel_code kernel_counted_candidates = {.prepare = counted_prepare,
                                                      .run = counted_run};
