/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the candidate samplers: the weights of FixedUnigramCandidateSampler, which declaration
 * and kernel both need, and how all samplers draw.
 */
#ifndef TF_OPS_RANDOM_CANDIDATE_H
#define TF_OPS_RANDOM_CANDIDATE_H

#include "exec/device/kernel.h"
#include "ops/random/draw.h"

/* ---- FixedUnigramCandidateSampler ---- */

/* Return whether the node's shard has class `id` of all shards' classes, and that class' weight. */
bool unigram_of(const struct node *node, int64_t id);
double unigram_weight(const struct node *node, int64_t id);

/* ---- all samplers ---- */

/* The state of a sampler. random_stream reads the seeds, its first member. */
struct candidate_sampler {
    struct random_seeds seeds;
    int64_t num_true, num_sampled, range_max;
    bool unique;
    double sums[]; /* running sums of weights, only for FixedUnigramCandidateSampler */
};

/* Makes the state, with room for that many sums. */
struct candidate_sampler *candidate_new(struct kernel_setup *setup, int64_t n_sums);

/* prepare, for a state without sums. */
int candidate_prepare(struct kernel_setup *setup);

/* How classes are drawn; `context` is data of this call. */
struct candidate_law {
    int64_t (*draw)(const struct candidate_law *law, const uint32_t words[2]);
    double (*probability)(const struct candidate_law *law, int64_t id);
    int64_t range;
    const void *context;
};

/* Checks the true classes in that input, draws, and sets the outputs. Returns 0 or an error. */
int candidate_sample(struct kernel_call *call, int input, const struct candidate_law *law);

/* The same with weights from `counts`, which are on the host; the true classes are input 1. */
int candidate_sample_counted(struct kernel_call *call, const struct tensor *counts);

#endif
