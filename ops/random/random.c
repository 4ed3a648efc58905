/* SPDX-License-Identifier: Apache-2.0
 *
 * Random values without state: see philox.h. The tool that makes a node gives it a unique seed2.
 */
#include <inttypes.h>

#include "graph/infer.h"
#include "graph/op_cost.h"
#include "ops/lacking.h"

#define NO_GRADIENT "what it draws depends on no value"

#define RANDOM_DETAIL                                                                              \
    "A value depends on seed, seed2, the step's seed, number and replica, the loop's iteration "   \
    "and "                                                                                         \
    "the element's index, and on nothing else."

/* A slice of a tensor draws what the whole tensor would have there. */
#define RANDOM_ATTRS                                                                               \
    "seed: int = 0, seed2: int = 0, offset: int = 0, dtype: floating, T: int32|int64"
#define OFFSET_MAX (INT64_C(1) << 62)
#define RANDOM_SLICE " The first element counts as number `offset`."

static int shaped(struct infer *infer)
{
    return infer_dims(infer, 0, &infer->out[0]);
}

static int sliced(struct infer *infer)
{
    int64_t offset = node_int(infer->node, "offset");
    if (offset < 0 || offset > OFFSET_MAX)
        return infer_fail(infer, "offset %" PRId64 " is not in [0, 2^62]", offset);
    return shaped(infer);
}

#define NUMBERS(op, ...)                                                                           \
    const struct op_def op_##op = {.name = #op,                                                    \
                                   .inputs = "shape: T",                                           \
                                   .outputs = "output: dtype",                                     \
                                   .attrs = RANDOM_ATTRS,                                          \
                                   .detail = RANDOM_DETAIL RANDOM_SLICE,                           \
                                   .flags = OP_STATEFUL | OP_NO_GRADIENT | OP_RANDOM,              \
                                   .rule = "output[...] = shape#",                                 \
                                   .half = HALF_KEPT,                                              \
                                   .cost = cost_functions,                                         \
                                   .shape = sliced,                                                \
                                   .no_gradient = NO_GRADIENT,                                     \
                                   __VA_ARGS__}

NUMBERS(RandomUniform, .doc = "Random numbers, uniform in [0, 1).");

NUMBERS(RandomStandardNormal,
        .doc = "Random numbers, normal with mean 0 and standard deviation 1.");

NUMBERS(TruncatedNormal,
        .doc = "Random numbers, standard normal, drawn again when beyond two standard deviations.");

static int uniform_int_shape(struct infer *infer)
{
    int64_t low, high;
    if (infer_scalars(infer, 1, 3))
        return infer->err->code;
    if (infer_value_int(infer, 1, &low) && infer_value_int(infer, 2, &high) && low >= high)
        return infer_fail(infer, "minval %" PRId64 " is not below maxval %" PRId64, low, high);
    return shaped(infer);
}

#define RANDOM(op, ...)                                                                            \
    const struct op_def op_##op = {                                                                \
        .name = #op, .flags = OP_STATEFUL | OP_NO_GRADIENT | OP_RANDOM, __VA_ARGS__}

RANDOM(RandomUniformInt, .inputs = "shape: T, minval: Tout, maxval: Tout",
       .outputs = "output: Tout",
       .attrs = "seed: int = 0, seed2: int = 0, Tout: int32|int64, T: int32|int64",
       .doc = "Random integers, uniform in [minval, maxval).", .detail = RANDOM_DETAIL,
       .cost = cost_functions, .shape = uniform_int_shape, .no_gradient = NO_GRADIENT);

RANDOM(RandomShuffle, .inputs = "value: T", .outputs = "output: T",
       .attrs = "seed: int = 0, seed2: int = 0, T: numeric|bool",
       .doc = "The rows of a tensor (its slices along dimension 0) in random order.",
       .detail = "All orders are equally likely. " RANDOM_DETAIL "\n" NO_STRINGS, .half = HALF_KEPT,
       .cost = cost_elements, .shape = infer_unchanged, .no_gradient = "it draws the order");

static int multinomial_shape(struct infer *infer)
{
    const struct shape *logits = infer_shape(infer, 0);
    int64_t n = SHAPE_UNKNOWN;
    int code = infer_rank(infer, 0, 2);
    if (code || (code = infer_scalar(infer, 1)))
        return code;
    if (infer_value_int(infer, 1, &n) && n < 0)
        return infer_fail(infer, "num_samples is negative: %" PRId64, n);
    infer->out[0] = shape_matrix(logits->rank < 0 ? SHAPE_UNKNOWN : logits->dims[0], n);
    return 0;
}

RANDOM(
    Multinomial, .inputs = "logits: T, num_samples: int32", .outputs = "output: int64",
    .attrs = "seed: int = 0, seed2: int = 0, T: real",
    .doc = "Classes drawn by unnormalized log-probabilities, num_samples for each row of logits.",
    .detail = "Class k of a row has probability exp(logits[k]) / sum(exp(logits)). " RANDOM_DETAIL,
    .half = HALF_DENIED, .cost = cost_functions, .shape = multinomial_shape,
    .no_gradient = "it draws whole numbers");
