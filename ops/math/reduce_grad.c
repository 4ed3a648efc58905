/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of reductions. The gradient is reshaped to the input's rank (reduced axes have length
 * 1) and repeated along the reduced axes. With static shapes this takes two constants, else a few
 * nodes on small integer vectors: with m[axis] = 1 for a reduced axis, 0 for others, the kept shape
 * is shape * (1 - m) + m and the repeats are shape * m + (1 - m).
 */
#include "ops/math/reduce_grad.h"
#include "graph/infer.h"
#include "ops/math/gradients.h"

struct reduction_shapes {
    struct edge kept;    /* the result's shape with keep_dims, an int32 vector */
    struct edge repeats; /* repeats of each axis that give the input's shape */
};

static struct edge int_scalar(struct build *b, int value)
{
    return build_scalar(b, INT32, value);
}

static bool static_axes(struct grad *g, unsigned *axes)
{
    int rank = build_shape(&g->b, grad_input(g, 0))->rank;
    return rank >= 0 && graph_constant_axes(g->b.graph, grad_input(g, 1), rank, axes);
}

/* Builds m of the comment at the top. */
static struct edge axis_mask(struct grad *g)
{
    struct build *b = &g->b;
    unsigned axes;
    if (static_axes(g, &axes)) {
        int64_t mask[SHAPE_RANK_MAX] = {0};
        int rank = build_shape(b, grad_input(g, 0))->rank;
        for (int i = 0; i < rank; i++)
            mask[i] = axes >> i & 1;
        return build_ints(b, mask, rank);
    }
    struct edge rank = build_unary(b, "Rank", grad_input(g, 0));
    struct edge indices = grad_input(g, 1);
    indices = grad_cast(g, indices, INT32);
    struct edge flat = build_binary(b, "Reshape", indices, build_ints(b, (int64_t[]){-1}, 1));
    struct edge positive = build_binary(b, "Mod", build_binary(b, "Add", flat, rank), rank);
    struct edge one_hot[] = {positive, rank, int_scalar(b, 1), int_scalar(b, 0)};
    return build_binary(b, "Sum", build_op(b, "OneHot", one_hot, 4, NULL, 0), int_scalar(b, 0));
}

static struct reduction_shapes reduction_of(struct grad *g)
{
    const struct shape *shape = build_shape(&g->b, grad_input(g, 0));
    int64_t kept[SHAPE_RANK_MAX], repeats[SHAPE_RANK_MAX];
    unsigned axes;
    if (g->b.err->code || !shape_is_known(shape) || !static_axes(g, &axes)) {
        /* The axes, or some dimensions, are known only in a step. */
        struct build *b = &g->b;
        struct edge sizes = build_unary(b, "Shape", grad_input(g, 0));
        struct edge mask = axis_mask(g);
        struct edge others = build_binary(b, "Sub", int_scalar(b, 1), mask);
        return (struct reduction_shapes){
            .kept = build_binary(b, "Add", grad_mul(g, sizes, others), mask),
            .repeats = build_binary(b, "Add", grad_mul(g, sizes, mask), others),
        };
    }
    for (int i = 0; i < shape->rank; i++) {
        bool reduced = axes >> i & 1;
        kept[i] = reduced ? 1 : shape->dims[i];
        repeats[i] = reduced ? shape->dims[i] : 1;
    }
    return (struct reduction_shapes){build_ints(&g->b, kept, shape->rank),
                                     build_ints(&g->b, repeats, shape->rank)};
}

static struct edge broadcast_back(struct grad *g, struct edge x,
                                  const struct reduction_shapes *reduction)
{
    struct edge kept = build_binary(&g->b, "Reshape", x, reduction->kept);
    return build_binary(&g->b, "Tile", kept, reduction->repeats);
}

void reduce_sum_gradient(struct grad *g)
{
    struct reduction_shapes reduction = reduction_of(g);
    g->in[0] = broadcast_back(g, g->out[0], &reduction);
}

void reduce_mean_gradient(struct grad *g)
{
    struct build *b = &g->b;
    struct reduction_shapes reduction = reduction_of(g);
    int64_t in = shape_count(build_shape(b, grad_input(g, 0)));
    int64_t out = shape_count(build_shape(b, grad_output(g, 0)));
    struct edge each; /* elements that went into each result */
    if (in > 0 && out > 0) {
        each = build_scalar(b, grad_count_type(g, g->out[0]), (double)(in / out));
    } else {
        struct edge one = int_scalar(b, 1);
        struct edge results =
            build_binary(b, "Maximum", build_unary(b, "Size", grad_output(g, 0)), one);
        each = grad_div(g, build_unary(b, "Size", grad_input(g, 0)), results);
    }
    g->in[0] = broadcast_back(g, grad_by_count(g, "Div", g->out[0], each), &reduction);
}

void reduce_extremum_gradient(struct grad *g)
{
    struct build *b = &g->b;
    struct edge x = grad_input(g, 0);
    struct reduction_shapes reduction = reduction_of(g);
    struct edge result = build_binary(b, "Reshape", grad_output(g, 0), reduction.kept);
    struct edge equal = build_binary(b, "Equal", result, x);
    struct edge chosen = grad_cast(g, equal, grad_count_type(g, x));
    struct edge sum = build_binary(b, "Sum", chosen, grad_input(g, 1));
    struct edge number = build_binary(b, "Reshape", sum, reduction.kept);
    struct edge kept = build_binary(b, "Reshape", g->out[0], reduction.kept);
    struct edge share = grad_by_count(g, "Div", kept, number);
    g->in[0] = grad_mul(g, grad_cast(g, chosen, build_type(b, x)), share);
}

/* The reduced axes first, then the others. */
struct permutation {
    struct edge order; /* axis order[i] moves to position i */
    struct edge back;  /* its inverse: the position of each axis */
};

static struct permutation static_permutation(struct build *b, unsigned axes, int rank)
{
    int64_t order[SHAPE_RANK_MAX], back[SHAPE_RANK_MAX];
    int n = 0;
    for (int reduced = 1; reduced >= 0; reduced--)
        for (int axis = 0; axis < rank; axis++)
            if ((int)(axes >> axis & 1) == reduced)
                order[n++] = axis;
    for (int i = 0; i < rank; i++)
        back[order[i]] = i;
    return (struct permutation){build_ints(b, order, rank), build_ints(b, back, rank)};
}

/* Sums, for each element of a vector, the elements before it. */
static struct edge sums_before(struct grad *g, struct edge vector)
{
    return grad_scan(g, "Cumsum", vector, int_scalar(&g->b, 0), true, false);
}

/* A reduced axis' position is the number of reduced axes before it; another axis' is the number of
 * all reduced axes plus the kept ones before it. */
static struct permutation dynamic_permutation(struct grad *g)
{
    struct build *b = &g->b;
    struct edge mask = axis_mask(g);
    struct edge others = build_binary(b, "Sub", int_scalar(b, 1), mask);
    struct edge n_reduced = build_binary(b, "Sum", mask, int_scalar(b, 0));
    struct edge place = build_binary(b, "Add", n_reduced, sums_before(g, others));
    struct edge back =
        build_binary(b, "Add", grad_mul(g, mask, sums_before(g, mask)), grad_mul(g, others, place));
    return (struct permutation){build_unary(b, "InvertPermutation", back), back};
}

static struct edge exclusive_product(struct grad *g, struct edge x, bool reverse)
{
    return grad_scan(g, "Cumprod", x, int_scalar(&g->b, 0), true, reverse);
}

static struct edge vector_product(struct build *b, struct edge vector)
{
    return build_binary(b, "Prod", vector, int_scalar(b, 0));
}

/* The gradient is the product of all other elements, that is, those before times those after it,
 * which also works with zeros. Axes are permuted so that each product is a matrix column. */
void reduce_prod_gradient(struct grad *g)
{
    struct build *b = &g->b;
    struct edge x = grad_input(g, 0);
    struct reduction_shapes reduction = reduction_of(g);
    unsigned axes;
    struct permutation moves = static_axes(g, &axes)
                                   ? static_permutation(b, axes, build_shape(b, x)->rank)
                                   : dynamic_permutation(g);
    struct edge moved = build_binary(b, "Transpose", x, moves.order);
    struct edge sizes[] = {vector_product(b, reduction.repeats), vector_product(b, reduction.kept)};
    struct edge matrix = build_binary(b, "Reshape", moved, build_op(b, "Pack", sizes, 2, NULL, 0));
    struct edge others =
        grad_mul(g, exclusive_product(g, matrix, false), exclusive_product(g, matrix, true));
    struct edge unflat = build_binary(b, "Reshape", others, build_unary(b, "Shape", moved));
    struct edge back = build_binary(b, "Transpose", unflat, moves.back);
    g->in[0] = grad_mul(g, back, broadcast_back(g, g->out[0], &reduction));
}
