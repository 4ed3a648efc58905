/* SPDX-License-Identifier: Apache-2.0
 *
 * Candidate samplers by weights: a class is found by the position of a random number among the
 * running sums of the weights.
 */
#include <inttypes.h>

#include "ops/random/candidate.h"
#include "ops/random/distribution.h"

/* ---- by an attribute ---- */

static int fixed_prepare(struct kernel_setup *setup)
{
    int64_t range = node_int(setup->node, "range_max"), class = 0;
    struct candidate_sampler *sampler = candidate_new(setup, range);
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
    return candidate_sample(call, 0, &law);
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

int candidate_sample_counted(struct kernel_call *call, const struct tensor *counts)
{
    const struct candidate_sampler *sampler = call->state;
    if (counts->shape.rank != 1 || counts->shape.dims[0] != sampler->range_max)
        return kernel_fail(call,
                           "counts must be a vector of range_max = %" PRId64 " elements, not %s",
                           sampler->range_max, shape_text(&counts->shape));
    int64_t *sums = kernel_temporary(call, (size_t)sampler->range_max * sizeof *sums);
    if (!sums)
        return call->err->code;
    const int64_t *of = counts->data;
    int64_t sum = 0, possible = 0;
    for (int64_t i = 0; i < sampler->range_max; i++) {
        if (of[i] < 0 || __builtin_add_overflow(sum, of[i], &sum))
            return kernel_fail(call, "the count of class %" PRId64 " cannot be %" PRId64, i, of[i]);
        sums[i] = sum;
        possible += of[i] > 0;
    }
    if (!possible)
        return kernel_fail(call, "no class has a count above 0");
    if (sampler->unique && possible < sampler->num_sampled)
        return kernel_fail(call,
                           "num_sampled is %" PRId64 ", but there are only %" PRId64
                           " different classes with a count above 0",
                           sampler->num_sampled, possible);
    struct candidate_law law = {counted_draw, counted_probability, sampler->range_max, sums};
    return candidate_sample(call, 1, &law);
}

static int counted_run(struct kernel_call *call)
{
    return candidate_sample_counted(call, call->in[0]);
}

const struct kernel_code kernel_counted_candidates = {.prepare = candidate_prepare,
                                                      .run = counted_run};
