/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantized gradients (ops/aggregate/gradient_code.h).
 */
#include "graph/infer.h"
#include "graph/op_cost.h"
#include "ops/aggregate/collective_grad.h"
#include "ops/aggregate/gradient_code.h"

#define CODE_ATTRS                                                                                 \
    "code: {\"one_bit\",\"uniform\",\"threshold\",\"top\"}, group: int >= 1, bits: int = 1, "      \
    "threshold: float = 0, keep: int = 1"
#define NO_GRADIENT "it is about gradients themselves"

static int read_code(struct infer *infer, struct gradient_code *code)
{
    const char *wrong = gradient_code_read(code, infer->node);
    return wrong ? infer_fail(infer, "%s", wrong) : 0;
}

/* Counts the groups of a shape; -1: unknown. */
static int count_groups(struct infer *infer, const struct gradient_code *code,
                        const struct shape *shape, int64_t *groups)
{
    int64_t count = shape->rank < 0 ? -1 : shape_count(shape);
    *groups = count < 0 ? -1 : count / code->group;
    return count > 0 && count % code->group ? infer_fail(infer, "%s has no groups of %lld elements",
                                                         shape_text(shape), (long long)code->group)
                                            : 0;
}

/* Checks that input `input` holds encoded rows. */
static int check_rows(struct infer *infer, int input, const struct gradient_code *code)
{
    const struct shape rows = shape_matrix(-1, code->row);
    if (!shape_compatible(infer_shape(infer, input), &rows))
        return infer_fail(infer, "codes of %lld bytes are needed, not %s", (long long)rows.dims[1],
                          shape_text(infer_shape(infer, input)));
    return 0;
}

static int quantize_shape(struct infer *infer)
{
    struct gradient_code code;
    int64_t groups;
    if (read_code(infer, &code) || count_groups(infer, &code, infer_shape(infer, 0), &groups) ||
        infer_scalar(infer, 2))
        return infer->err->code;
    infer->out[0] = shape_matrix(groups, code.row);
    return 0;
}

static int dequantize_shape(struct infer *infer)
{
    const struct shape *shape = node_attr(infer->node, "shape")->shape;
    struct gradient_code code;
    int64_t groups;
    if (read_code(infer, &code) || count_groups(infer, &code, shape, &groups) ||
        check_rows(infer, 0, &code) || infer_rank_at_least(infer, 1, 1))
        return infer->err->code;
    infer->out[0] = *shape;
    return 0;
}

static int residual_shape(struct infer *infer)
{
    struct gradient_code code;
    int64_t groups;
    if (read_code(infer, &code) || count_groups(infer, &code, infer_shape(infer, 0), &groups) ||
        count_groups(infer, &code, infer_shape(infer, 1), &groups) || check_rows(infer, 2, &code) ||
        infer_scalar(infer, 3))
        return infer->err->code;
    infer->out[0] = *infer_shape(infer, 0);
    return 0;
}

static int part_shape(struct infer *infer)
{
    infer->out[0] = SHAPE_SCALAR;
    return infer_vector(infer, 0) || infer_vector(infer, 1) ? infer->err->code : 0;
}

static int rank_shape(struct infer *infer)
{
    infer->out[0] = shape_vector(1);
    return 0;
}

#define CODES(op, ...)                                                                             \
    const struct op_def op_##op = {.name = #op,                                                    \
                                   .flags = OP_NO_GRADIENT,                                        \
                                   .cost = cost_elements,                                          \
                                   .no_gradient = NO_GRADIENT,                                     \
                                   __VA_ARGS__}

CODES(
    QuantizeGradient, .inputs = "gradient: float32, residual: float32, first: int64",
    .outputs = "code: uint8", .attrs = CODE_ATTRS,
    .doc = "A gradient in a few bits: a row of bytes for each group of its elements.",
    .detail =
        "What is coded is the sum of the gradient and of what was lost before, which the elements\n"
        "of the residual from those of group `first` on are. one_bit: whether it is negative, and\n"
        "the mean of those that are and of the others. uniform: which of 2^bits parts of mean - 4\n"
        "sigma to mean + 4 sigma it is in. threshold: of 2 bits threshold, -threshold or 0, of 1\n"
        "bit 1 above threshold and else -1. top: the `keep` largest by absolute value; the others\n"
        "are 0. ApplyResidual keeps what is lost.",
    .shape = quantize_shape);

CODES(DequantizeGradient, .inputs = "code: uint8, ranks: int64", .outputs = "mean: float32",
      .attrs = CODE_ATTRS ", shape: shape",
      .doc = "The mean of gradients in a few bits, one member's after the other's.",
      .detail =
          "There are as many as `ranks` has elements, or rows; they are added in their order. "
          "`shape` is\nthe shape of one of them.",
      .shape = dequantize_shape);

#define QUANTIZER(op, ...)                                                                         \
    const struct op_def op_##op = {.name = #op, .no_gradient = NO_GRADIENT, __VA_ARGS__}

QUANTIZER(
    ApplyResidual, .inputs = "residual: Ref(float32), gradient: float32, code: uint8, first: int64",
    .outputs = "output_ref: Ref(float32)", .attrs = CODE_ATTRS,
    .doc = "What the code of a gradient has lost, into the residual that it was made with.",
    .detail =
        "Elements of the residual from those of group `first` on: residual = residual + gradient "
        "-\nwhat the code stands for. code = QuantizeGradient(gradient, residual, first), before.",
    .flags = OP_STATEFUL | OP_NO_GRADIENT, .cost = cost_elements, .shape = residual_shape);

QUANTIZER(CollectiveRank, .outputs = "rank: int64", .attrs = COLLECTIVE_GROUP_ATTRS,
          .doc = "The worker's number among those that reduce together, as a vector of one.",
          .detail = "In a group (AllReduce) its place by rank.",
          .flags = OP_STATEFUL | OP_NO_GRADIENT, .cost = cost_view, .shape = rank_shape);

QUANTIZER(CollectivePart, .inputs = "ranks: int64, rank: int64", .outputs = "first: int64",
          .attrs = "rows: int >= 0",
          .doc = "The first of the rows that are a member's, where rows are shared out.",
          .detail =
              "Of n rows in N parts each has n / N, the first n % N one more. `ranks` are those of "
              "all\nmembers, in order, and `rank` the member's.",
          .flags = OP_NO_GRADIENT, .cost = cost_view, .shape = part_shape);
