/* SPDX-License-Identifier: Apache-2.0
 *
 * Repeating a tensor, and summing what was repeated.
 */
#include <inttypes.h>

#include "graph/op_cost.h"
#include "ops/array/build.h"
#include "ops/lacking.h"

/* ---- Tile ---- */

static int tile_shape(struct infer *infer)
{
    const struct shape *in = infer_shape(infer, 0), *m = infer_shape(infer, 1);
    const struct tensor *multiples = infer_value(infer, 1);
    struct shape partly;
    int code = infer_vector(infer, 1);
    if (code || in->rank < 0)
        return code;
    if (m->rank == 1 && m->dims[0] >= 0 && m->dims[0] != in->rank)
        return infer_fail(infer, "multiples has %" PRId64 " elements, but the input has rank %d",
                          m->dims[0], in->rank);
    for (int i = 0; multiples && i < in->rank; i++)
        if (tensor_get_int64(multiples, i) < 0)
            return infer_fail(infer, "multiple %d is negative: %" PRId64, i,
                              tensor_get_int64(multiples, i));
    bool known = infer_value_shape(infer, 1, &partly) && partly.rank == in->rank;
    infer->out[0].rank = in->rank;
    for (int i = 0; i < in->rank; i++) {
        int64_t *out = &infer->out[0].dims[i];
        *out = SHAPE_UNKNOWN;
        if (known && partly.dims[i] >= 0 && in->dims[i] >= 0 &&
            __builtin_mul_overflow(in->dims[i], partly.dims[i], out))
            return infer_fail(infer, "the result is too large");
    }
    return 0;
}

/* Finds the shape [multiple, dim, multiple, dim, ...] of a repeated tensor, without multiples of 1,
 * and which of its axes are multiples. False if it is not known or too long. */
static bool interleave(const struct build *b, struct edge x, struct edge multiples,
                       struct shape *split, struct shape *axes)
{
    int64_t m[SHAPE_RANK_MAX];
    const struct shape *in = build_shape(b, x);
    int n = array_constant(b, multiples, m, SHAPE_RANK_MAX), repeated = 0;
    for (int i = 0; i < n; i++)
        repeated += m[i] != 1;
    if (n < 0 || !shape_is_known(in) || in->rank != n || n + repeated > SHAPE_RANK_MAX)
        return false;
    *split = *axes = SHAPE_SCALAR;
    for (int i = 0; i < n; i++) {
        if (m[i] != 1) {
            axes->dims[axes->rank++] = split->rank;
            split->dims[split->rank++] = m[i];
        }
        split->dims[split->rank++] = in->dims[i];
    }
    return true;
}

static void tile_gradient(struct grad *g)
{
    struct build *b = &g->b;
    struct shape split, axes;
    if (!interleave(b, grad_input(g, 0), grad_input(g, 1), &split, &axes)) {
        struct edge multiples = grad_input(g, 1);
        struct edge inputs[] = {g->out[0], multiples,
                                array_shape(b, grad_input(g, 0), build_type(b, multiples))};
        g->in[0] = build_op(b, "TileGrad", inputs, 3, NULL, 0);
    } else if (axes.rank == 0) {
        g->in[0] = g->out[0];
    } else {
        struct edge seen =
            build_binary(b, "Reshape", g->out[0], build_ints(b, split.dims, split.rank));
        g->in[0] = build_binary(b, "Sum", seen, build_ints(b, axes.dims, axes.rank));
    }
}

#define TILES(op, ...)                                                                             \
    const struct op_def op_##op = {                                                                \
        .name = #op, .outputs = "output: T", .cost = cost_elements, __VA_ARGS__}

TILES(Tile, .inputs = "input: T, multiples: Tmultiples",
      .attrs = "T: numeric|bool, Tmultiples: int32|int64 = int32",
      .doc = "A tensor repeated: multiples[i] times in dimension i.", .detail = NO_STRINGS,
      .identity = {SAME_ARGUMENT, 1.0, 0, "changes nothing"}, .half = HALF_CLEAR,
      .shape = tile_shape, .gradient = tile_gradient);

/* Returns whether each dimension of the input is `multiples` times the result's. */
static bool tile_grad_fits(const struct shape *in, const struct shape *shape,
                           const struct tensor *multiples)
{
    bool fits = shape->rank == in->rank && tensor_count(multiples) == in->rank;
    for (int i = 0; fits && i < shape->rank; i++) {
        int64_t multiple = tensor_get_int64(multiples, i), dim;
        fits = multiple >= 0 && !__builtin_mul_overflow(shape->dims[i], multiple, &dim) &&
               dim == in->dims[i];
    }
    return fits;
}

static int tile_grad_shape(struct infer *infer)
{
    const struct tensor *multiples = infer_value(infer, 1);
    const struct shape *in = infer_shape(infer, 0), *out = &infer->out[0];
    if (infer_vector(infer, 1) || infer_dims(infer, 2, &infer->out[0]))
        return infer->err->code;
    bool may_fit = in->rank < 0 || out->rank < 0 || in->rank == out->rank;
    if (may_fit && multiples && shape_is_known(in) && shape_is_known(out))
        may_fit = tile_grad_fits(in, out, multiples);
    if (!may_fit)
        return infer_fail(infer, "%s is not made of repetitions of %s", shape_text(in),
                          shape_text(out));
    return 0;
}

static void tile_grad_gradient(struct grad *g)
{
    g->in[0] = build_binary(&g->b, "Tile", g->out[0], grad_input(g, 1));
}

TILES(TileGrad, .inputs = "input: T, multiples: Tmultiples, shape: Tmultiples",
      .attrs = "T: real, Tmultiples: int32|int64 = int32",
      .doc = "The sum of the repetitions that Tile made of a tensor of that shape.",
      .detail = "Not of booleans, which have no sum, nor of complex numbers, strings or resources.",
      .half = HALF_DENIED, .shape = tile_grad_shape, .gradient = tile_grad_gradient);
