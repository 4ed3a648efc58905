/* SPDX-License-Identifier: Apache-2.0
 *
 * What the candidate samplers share: the weights of FixedUnigramCandidateSampler, of which the
 * declaration and the kernel need to know the same, and how all of them draw.
 */
#ifndef TF_OPS_RANDOM_CANDIDATE_H
#define TF_OPS_RANDOM_CANDIDATE_H

#include "exec/device/kernel.h"
#include "ops/random/draw.h"

/* ---- FixedUnigramCandidateSampler ---- */

/* Returns whether the node's shard has class `id` of all shards' classes, and the weight of that
 * class. */
bool unigram_of(const struct node *node, int64_t id);
double unigram_weight(const struct node *node, int64_t id);

/* ---- all samplers ---- */

/* The state of a sampler. random_stream (ops/random/stream.h) looks at the seeds, the first. */
struct candidate_sampler {
    struct random_seeds seeds;
    int64_t num_true, num_sampled, range_max;
    bool unique;
    double sums[]; /* of weights, up to and with each class: FixedUnigramCandidateSampler alone */
};

/* Makes the state, with room for that many sums. */
struct candidate_sampler *candidate_prepare(struct kernel_setup *setup, int64_t n_sums);

/* How classes are drawn; `context` is what it is drawn by in this call. */
struct candidate_law {
    int64_t (*draw)(const struct candidate_law *law, const uint32_t words[2]);
    double (*probability)(const struct candidate_law *law, int64_t id);
    int64_t range;
    const void *context;
};

/* Checks the true classes, which are that input, draws, and sets the outputs. 0 or an error. */
int candidate_sample(struct kernel_call *call, int input, const struct candidate_law *law);

/* The same by counts, which are on the host, of true classes that are input 1. */
int candidate_sample_counted(struct kernel_call *call, const struct tensor *counts);

#endif
