/* SPDX-License-Identifier: Apache-2.0
 *
 * The same elements in another order of dimensions, or backwards.
 */
#include "graph/op_cost.h"
#include "ops/array/build.h"
#include "ops/lacking.h"

#include <inttypes.h>

/* ---- Transpose ---- */

static int transpose_shape(struct infer *infer)
{
    const struct shape *in = infer_shape(infer, 0), *p = infer_shape(infer, 1);
    const struct tensor *perm = infer_value(infer, 1);
    int code = infer_vector(infer, 1), rank = in->rank;
    if (code)
        return code;
    if (rank < 0 && p->rank == 1 && p->dims[0] <= SHAPE_RANK_MAX)
        rank = (int)p->dims[0];
    if (in->rank >= 0 && p->rank == 1 && p->dims[0] >= 0 && p->dims[0] != rank)
        return infer_fail(infer, "perm has %" PRId64 " elements, but the input has rank %d",
                          p->dims[0], rank);
    if (perm && in->rank >= 0) {
        bool used[SHAPE_RANK_MAX] = {false};
        for (int i = 0; i < in->rank; i++) {
            int64_t from = tensor_get_int64(perm, i);
            if (from < 0 || from >= in->rank || used[from])
                return infer_fail(infer,
                                  "perm is not a permutation of 0 to %d: element %d is %" PRId64,
                                  in->rank - 1, i, from);
            used[from] = true;
            infer->out[0].dims[i] = in->dims[from];
        }
        infer->out[0].rank = in->rank;
        return 0;
    }
    infer->out[0] = shape_unknown(rank);
    return 0;
}

static void transpose_gradient(struct grad *g)
{
    struct build *b = &g->b;
    struct edge perm = grad_input(g, 1);
    int64_t values[SHAPE_RANK_MAX], inverse[SHAPE_RANK_MAX] = {0};
    int n = array_constant(b, perm, values, SHAPE_RANK_MAX);
    for (int i = 0; i < n; i++)
        inverse[values[i] < 0 || values[i] >= n ? 0 : values[i]] = i;
    struct edge back = n >= 0 ? array_ints(b, build_type(b, perm), inverse, n)
                              : build_unary(b, "InvertPermutation", perm);
    g->in[0] = build_binary(b, "Transpose", g->out[0], back);
}

#define TURNS(op, ...)                                                                             \
    const struct op_def op_##op = {.name = #op, .cost = cost_elements, __VA_ARGS__}

TURNS(Transpose, .inputs = "x: T, perm: Tperm", .outputs = "y: T",
      .attrs = "T: numeric|bool, Tperm: int32|int64 = int32",
      .doc = "A tensor with its dimensions in another order.",
      .detail = "Dimension i of the result is dimension perm[i] of the input."
                "\n" NO_STRINGS,
      .flags = OP_PERMUTES, .half = HALF_CLEAR, .shape = transpose_shape,
      .gradient = transpose_gradient);

static int invert_shape(struct infer *infer)
{
    infer->out[0] = *infer_shape(infer, 0);
    return infer_vector(infer, 0);
}

TURNS(InvertPermutation, .inputs = "x: T", .outputs = "y: T", .attrs = "T: int32|int64 = int32",
      .doc = "The permutation that undoes another: y[x[i]] = i.", .flags = OP_NO_GRADIENT,
      .shape = invert_shape, .no_gradient = "its result is made of numbers of elements");

/* ---- Reverse ---- */

static int reverse_shape(struct infer *infer)
{
    const struct shape *in = infer_shape(infer, 0), *dims = infer_shape(infer, 1);
    int code = infer_vector(infer, 1);
    if (code)
        return code;
    if (in->rank >= 0 && dims->rank == 1 && dims->dims[0] >= 0 && dims->dims[0] != in->rank)
        return infer_fail(infer, "dims has %" PRId64 " elements, but the input has rank %d",
                          dims->dims[0], in->rank);
    infer->out[0] = *in;
    return 0;
}

static void reverse_gradient(struct grad *g)
{
    g->in[0] = build_binary(&g->b, "Reverse", g->out[0], grad_input(g, 1));
}

TURNS(Reverse, .inputs = "tensor: T, dims: bool", .outputs = "output: T",
      .attrs = "T: numeric|bool",
      .doc = "A tensor with the dimensions backwards for which dims is true.", .detail = NO_STRINGS,
      .identity = {SAME_ARGUMENT, 0.0, 0, "changes nothing"}, .half = HALF_CLEAR,
      .shape = reverse_shape, .gradient = reverse_gradient);
