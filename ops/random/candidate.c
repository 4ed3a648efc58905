/* SPDX-License-Identifier: Apache-2.0
 *
 * Classes drawn to represent all classes in a loss: sampled softmax, noise contrastive estimation.
 * A loss corrects its logits by the expected counts.
 */
#include <inttypes.h>
#include <math.h>

#include "graph/infer.h"
#include "graph/op_cost.h"
#include "ops/random/candidate.h"

#define NO_GRADIENT "what it draws are whole numbers, and the classes it looks at are as well"

#define SAMPLED_ATTRS "num_true: int >= 1, num_sampled: int >= 1, unique: bool"
#define SEED_ATTRS "seed: int = 0, seed2: int = 0"
#define SAMPLER_OUTPUTS                                                                            \
    "sampled_candidates: int64, true_expected_count: float32, sampled_expected_count: float32"

#define DRAWS                                                                                      \
    " What is drawn depends on seed, seed2, the step's seed, number and replica, and the loop's "  \
    "iteration."
#define EXPECTED                                                                                   \
    "\nWith `unique` classes are drawn until num_sampled different ones have come, in the order "  \
    "of "                                                                                          \
    "their first occurrence. A class of probability P has the expected count 1 - (1 - P)^tries "   \
    "then, by the tries that it took, else P num_sampled." DRAWS

/* ---- shapes and arguments ---- */

static int true_classes_shape(struct infer *infer, int input)
{
    int64_t num_true = node_int(infer->node, "num_true");
    const struct shape *classes = infer_shape(infer, input);
    if (infer_rank(infer, input, 2))
        return infer->err->code;
    if (classes->rank == 2 && classes->dims[1] >= 0 && classes->dims[1] != num_true)
        return infer_fail(infer,
                          "true_classes must have num_true = %" PRId64 " columns, not shape %s",
                          num_true, shape_text(classes));
    return 0;
}

/* Infers the shapes of a sampler whose true classes are input `input`. */
static int sampler_shape(struct infer *infer, int input)
{
    const struct shape *classes = infer_shape(infer, input);
    if (true_classes_shape(infer, input))
        return infer->err->code;
    infer->out[0] = infer->out[2] = shape_vector(node_int(infer->node, "num_sampled"));
    infer->out[1] = shape_matrix(classes->rank < 0 ? SHAPE_UNKNOWN : classes->dims[0],
                                 node_int(infer->node, "num_true"));
    return 0;
}

static int check_enough(struct infer *infer, int64_t classes, const char *which)
{
    int64_t wanted = node_int(infer->node, "num_sampled");
    if (!node_bool(infer->node, "unique") || wanted <= classes)
        return 0;
    return infer_fail(
        infer, "num_sampled is %" PRId64 ", but there are only %" PRId64 " different classes%s",
        wanted, classes, which);
}

static int range_shape(struct infer *infer)
{
    int code = check_enough(infer, node_int(infer->node, "range_max"), "");
    return code ? code : sampler_shape(infer, 0);
}

#define DRAWS_CLASSES(op, ...)                                                                     \
    const struct op_def op_##op = {.name = #op,                                                    \
                                   .inputs = "true_classes: int64",                                \
                                   .outputs = SAMPLER_OUTPUTS,                                     \
                                   .flags = OP_STATEFUL | OP_NO_GRADIENT | OP_RANDOM,              \
                                   .half = HALF_DENIED,                                            \
                                   .cost = cost_functions,                                         \
                                   .no_gradient = NO_GRADIENT,                                     \
                                   __VA_ARGS__}

DRAWS_CLASSES(UniformCandidateSampler, .attrs = SAMPLED_ATTRS ", range_max: int >= 1, " SEED_ATTRS,
              .doc = "Classes of [0, range_max), equally likely, and how often each is expected.",
              .detail = "P = 1 / range_max." EXPECTED, .shape = range_shape);

DRAWS_CLASSES(
    LogUniformCandidateSampler, .attrs = SAMPLED_ATTRS ", range_max: int >= 1, " SEED_ATTRS,
    .doc = "Classes of [0, range_max), the first ones likelier, as of words by their frequency.",
    .detail =
        "P(c) = ln((c + 2) / (c + 1)) / ln(range_max + 1): about that of Zipf's law." EXPECTED,
    .shape = range_shape);

static int all_shape(struct infer *infer)
{
    return sampler_shape(infer, 0);
}

#define LOOKS_AT_CLASSES(op, ...)                                                                  \
    const struct op_def op_##op = {.name = #op,                                                    \
                                   .half = HALF_DENIED,                                            \
                                   .cost = cost_elements,                                          \
                                   .no_gradient = NO_GRADIENT,                                     \
                                   __VA_ARGS__}

LOOKS_AT_CLASSES(
    AllCandidateSampler, .inputs = "true_classes: int64", .outputs = SAMPLER_OUTPUTS,
    .attrs = SAMPLED_ATTRS ", " SEED_ATTRS,
    .doc = "All num_sampled classes in their order, each expected once: nothing is drawn.",
    .detail = "For tests of losses by samples. `unique` and the seeds are those of the others, and "
              "change nothing.",
    .flags = OP_NO_GRADIENT, .shape = all_shape);

/* ---- classes by weights ---- */

bool unigram_of(const struct node *node, int64_t id)
{
    return id % node_int(node, "num_shards") == node_int(node, "shard");
}

double unigram_weight(const struct node *node, int64_t id)
{
    int64_t k = id - node_int(node, "num_reserved_ids");
    if (k < 0)
        return 0;
    double weight = node_attr(node, "unigrams")->floats[k];
    double distortion = node_float(node, "distortion");
    return distortion == 1 ? weight : pow(weight, distortion);
}

static int fixed_shape(struct infer *infer)
{
    const struct node *node = infer->node;
    int64_t possible = 0, range = node_int(node, "range_max");
    int64_t shard = node_int(node, "shard"), shards = node_int(node, "num_shards");
    if (shard >= shards)
        return infer_fail(infer, "there is no shard %" PRId64 " of %" PRId64, shard, shards);
    /* Checks the number of classes, and that enough of them can be drawn. */
    int64_t reserved = node_int(node, "num_reserved_ids"), ids;
    if (__builtin_add_overflow(reserved, node_attr(node, "unigrams")->n, &ids))
        return infer_fail(infer, "%" PRId64 " reserved ids are too many", reserved);
    double sum = 0;
    for (int64_t id = reserved; id < ids; id++) {
        double weight = unigram_of(node, id) ? unigram_weight(node, id) : 0;
        if (!(weight >= 0) || !isfinite(sum += weight))
            return infer_fail(infer, "the weight of class %" PRId64 " cannot be %g", id, weight);
        possible += weight > 0;
    }
    int64_t classes = ids / shards + (shard < ids % shards);
    if (classes != range)
        return infer_fail(
            infer, "unigrams and reserved ids make %" PRId64 " classes, but range_max is %" PRId64,
            classes, range);
    if (!possible)
        return infer_fail(infer, "no class has a weight above 0");
    int code = check_enough(infer, possible, " with a weight above 0");
    return code ? code : sampler_shape(infer, 0);
}

DRAWS_CLASSES(
    FixedUnigramCandidateSampler,
    .attrs = SAMPLED_ATTRS ", range_max: int >= 1, distortion: float = 1, "
                           "num_reserved_ids: int = 0 >= 0, num_shards: int = 1 >= 1, "
                           "shard: int = 0 >= 0, unigrams: list(float), " SEED_ATTRS,
    .doc = "Classes by given weights, each raised to the power `distortion`.",
    .detail =
        "P is a class's share of all weights. The first num_reserved_ids classes have none, "
        "and are\nnever drawn; `unigrams` are those of the others. Of several shards this one "
        "has the classes\nshard, shard + num_shards, ..., which it numbers from 0; there are "
        "range_max of them. Weights\nare an attribute, and not read from a file." EXPECTED,
    .shape = fixed_shape);

static int counted_shape(struct infer *infer)
{
    int64_t range = node_int(infer->node, "range_max");
    const struct shape wanted = shape_vector(range), *counts = infer_shape(infer, 0);
    if (!shape_compatible(&wanted, counts))
        return infer_fail(infer, "counts must be %s, as range_max says, not %s",
                          shape_text(&wanted), shape_text(counts));
    int code = check_enough(infer, range, "");
    return code ? code : sampler_shape(infer, 1);
}

LOOKS_AT_CLASSES(
    LearnedUnigramCandidateSampler, .inputs = "counts: Ref(int64), true_classes: int64",
    .outputs = SAMPLER_OUTPUTS, .attrs = SAMPLED_ATTRS ", range_max: int >= 1, " SEED_ATTRS,
    .doc = "Classes by how often they have been true before, which a variable counts.",
    .detail = "P is a class's share of all counts. The true classes count from the next call on. "
              "Let the\nvariable start with ones: a class whose count is 0 is not drawn. It is in "
              "checkpoints, so a\ntraining that goes on draws what it would have drawn." EXPECTED,
    .flags = OP_STATEFUL | OP_NO_GRADIENT | OP_RANDOM | OP_ASYNC, .shape = counted_shape);

LOOKS_AT_CLASSES(
    CountedCandidateSampler, .inputs = "counts: int64, true_classes: int64",
    .outputs = SAMPLER_OUTPUTS, .attrs = SAMPLED_ATTRS ", range_max: int >= 1, " SEED_ATTRS,
    .doc = "Classes by counts of them, as LearnedUnigramCandidateSampler draws them, but learns "
           "nothing.",
    .detail = "P is a class's share of all counts; one whose count is 0 is not drawn. Several "
              "workers learn\ntheir counts together so: nn.learned_samples adds to them in the "
              "update." EXPECTED,
    .flags = OP_STATEFUL | OP_NO_GRADIENT | OP_RANDOM, .shape = counted_shape);

/* ---- accidental hits ---- */

static int hits_shape(struct infer *infer)
{
    for (int i = 0; i < 3; i++)
        infer->out[i] = shape_vector(SHAPE_UNKNOWN);
    int code = true_classes_shape(infer, 0);
    return code ? code : infer_vector(infer, 1);
}

LOOKS_AT_CLASSES(
    ComputeAccidentalHits, .inputs = "true_classes: int64, sampled_candidates: int64",
    .outputs = "indices: int32, ids: int64, weights: float32",
    .attrs = "num_true: int >= 1, " SEED_ATTRS,
    .doc = "Which sampled classes are true ones: the row, the sample's place, and a weight.",
    .detail = "In the order of rows, of the row's true classes, and of places; each row and place "
              "once. The\nweight is the least finite float32: added to a logit it leaves no "
              "probability. The seeds are\nTensorFlow's, and change nothing.",
    .flags = OP_NO_GRADIENT | OP_SHAPED_BY_DATA, .shape = hits_shape);
