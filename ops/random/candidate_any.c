/* SPDX-License-Identifier: Apache-2.0
 *
 * Candidate samplers: try t draws a class by the t-th 64-bit number of the node's stream.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "ops/array/results.h"
#include "ops/random/candidate.h"
#include "ops/random/distribution.h"
#include "ops/random/philox.h"

/* Drawing distinct classes is given up after so many tries, or so many per class if that is more.
 * With the log-uniform distribution all R classes come up in about R ln(R)^2 tries, and ln(2^63)^2
 * is below 4096. */
#define TRIES_LEAST (INT64_C(1) << 24)
#define TRIES_PER_CLASS 4096

struct candidate_sampler *candidate_new(struct kernel_setup *setup, int64_t n_sums)
{
    size_t doubles = sizeof(struct candidate_sampler) / sizeof(double) + (size_t)n_sums;
    struct candidate_sampler *sampler = mem_array(doubles, sizeof(double));
    const struct node *node = setup->node;
    *sampler = (struct candidate_sampler){.seeds = random_seeds_of(node),
                                          .num_true = node_int(node, "num_true"),
                                          .num_sampled = node_int(node, "num_sampled"),
                                          .range_max = op_find_attr(node->op, "range_max") < 0
                                                           ? node_int(node, "num_sampled")
                                                           : node_int(node, "range_max"),
                                          .unique = node_bool(node, "unique")};
    setup->state = sampler;
    return sampler;
}

int candidate_prepare(struct kernel_setup *setup)
{
    candidate_new(setup, 0);
    return 0;
}

/* ---- the classes drawn so far ---- */

/* A hash table of classes, each plus 1, at most half full; 0: a free slot. */
struct candidate_table {
    uint64_t *slots;
    uint64_t mask;
};

/* Adds a class; returns false if it was already there. */
static bool seen_add(struct candidate_table *seen, int64_t class)
{
    uint64_t key = (uint64_t) class + 1;
    uint64_t at = (key * UINT64_C(0x9E3779B97F4A7C15) >> 32) & seen->mask;
    for (; seen->slots[at]; at = (at + 1) & seen->mask)
        if (seen->slots[at] == key)
            return false;
    seen->slots[at] = key;
    return true;
}

/* ---- drawing ---- */

/* Fills in the classes, and returns the number of tries; 0 with call->err set. */
static int64_t draw(struct kernel_call *call, const struct candidate_law *law, int64_t *classes)
{
    const struct candidate_sampler *sampler = call->state;
    struct philox_stream stream = random_stream(call);
    struct candidate_table seen = {NULL, 0};
    int64_t n = sampler->num_sampled, filled = 0, tries = 0;
    int64_t most =
        law->range > INT64_MAX / TRIES_PER_CLASS ? INT64_MAX : law->range * TRIES_PER_CLASS;
    most = most > TRIES_LEAST ? most : TRIES_LEAST;
    if (sampler->unique) {
        uint64_t size = 2;
        while (size < 2 * (uint64_t)n)
            size *= 2;
        seen.mask = size - 1;
        seen.slots = kernel_temporary(call, size * sizeof *seen.slots);
        if (!seen.slots)
            return 0;
        memset(seen.slots, 0, size * sizeof *seen.slots);
    }
    for (; filled < n && tries < most; tries++) {
        uint32_t words[2];
        philox_words(&stream, tries, words);
        int64_t class = law->draw(law, words);
        if (!sampler->unique || seen_add(&seen, class))
            classes[filled++] = class;
    }
    if (filled == n)
        return tries;
    kernel_fail(call,
                "only %" PRId64 " of %" PRId64 " different classes came up in %" PRId64
                " tries: the others are too unlikely",
                filled, n, tries);
    return 0;
}

static void expected_counts(const struct kernel_call *call, const struct candidate_law *law,
                            const struct tensor *classes, struct tensor *expected, int64_t tries)
{
    const struct candidate_sampler *sampler = call->state;
    const int64_t *class = classes->data;
    float *out = expected->data;
    for (int64_t i = 0; i < tensor_count(classes); i++) {
        /* With `unique`, the probability to come up in that many tries; else the expected number.
         */
        double p = law->probability(law, class[i]);
        if (!sampler->unique)
            out[i] = (float)(p * (double)sampler->num_sampled);
        else
            out[i] = p > 0 ? (float)-expm1((double)tries * log1p(-p)) : 0.0f;
    }
}

static int check_classes(struct kernel_call *call, int input)
{
    const struct candidate_sampler *sampler = call->state;
    const struct shape *shape = &call->in[input]->shape;
    if (shape->rank != 2 || shape->dims[1] != sampler->num_true)
        return kernel_fail(
            call, "true_classes must be a matrix of num_true = %" PRId64 " columns, not %s",
            sampler->num_true, shape_text(shape));
    return rows_check(call, input, sampler->range_max);
}

static int make_outputs(struct kernel_call *call, int input)
{
    const struct candidate_sampler *sampler = call->state;
    struct shape sampled = shape_vector(sampler->num_sampled);
    bool made = kernel_alloc_output(call, 0, &sampled) &&
                kernel_alloc_output(call, 1, &call->in[input]->shape) &&
                kernel_alloc_output(call, 2, &sampled);
    return made ? 0 : call->err->code;
}

int candidate_sample(struct kernel_call *call, int input, const struct candidate_law *law)
{
    if (check_classes(call, input) || make_outputs(call, input))
        return call->err->code;
    int64_t tries = draw(call, law, call->out[0]->data);
    if (!tries)
        return call->err->code;
    expected_counts(call, law, call->in[input], call->out[1], tries);
    expected_counts(call, law, call->out[0], call->out[2], tries);
    return 0;
}

static int sample_by(struct kernel_call *call, struct candidate_law law)
{
    law.range = ((const struct candidate_sampler *)call->state)->range_max;
    return candidate_sample(call, 0, &law);
}

/* ---- uniform ---- */

static int64_t uniform_draw(const struct candidate_law *law, const uint32_t words[2])
{
    return (int64_t)uniform_integer(words, (uint64_t)law->range);
}

static double uniform_probability(const struct candidate_law *law, int64_t class)
{
    (void)class;
    return 1.0 / (double)law->range;
}

static int uniform_run(struct kernel_call *call)
{
    return sample_by(call, (struct candidate_law){uniform_draw, uniform_probability, 0, NULL});
}

const struct kernel_code kernel_uniform_candidates = {.prepare = candidate_prepare,
                                                      .run = uniform_run};

/* ---- log-uniform ---- */

/* e^x is uniform in its logarithm in [1, range + 1), whose integer part minus 1 is the class. */
static int64_t log_uniform_draw(const struct candidate_law *law, const uint32_t words[2])
{
    double range = (double)law->range;
    double class = floor(random_exp(uniform_float64(words) * random_log(range + 1))) - 1;
    return class < range ? (int64_t) class : 0; /* rounding may have made it the range */
}

static double log_uniform_probability(const struct candidate_law *law, int64_t class)
{
    return log1p(1 / ((double)class + 1)) / log1p((double)law->range);
}

static int log_uniform_run(struct kernel_call *call)
{
    return sample_by(call,
                     (struct candidate_law){log_uniform_draw, log_uniform_probability, 0, NULL});
}

const struct kernel_code kernel_log_uniform_candidates = {.prepare = candidate_prepare,
                                                          .run = log_uniform_run};

/* ---- all ---- */

static int all_run(struct kernel_call *call)
{
    if (check_classes(call, 0) || make_outputs(call, 0))
        return call->err->code;
    int64_t *classes = call->out[0]->data;
    float *is_true = call->out[1]->data, *is_sampled = call->out[2]->data;
    for (int64_t i = 0; i < tensor_count(call->out[0]); i++) {
        classes[i] = i;
        is_sampled[i] = 1;
    }
    for (int64_t i = 0; i < tensor_count(call->out[1]); i++)
        is_true[i] = 1;
    return KERNEL_DONE;
}

const struct kernel_code kernel_all_candidates = {.prepare = candidate_prepare, .run = all_run};
