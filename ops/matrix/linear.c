/* SPDX-License-Identifier: Apache-2.0
 *
 * Linear algebra on the matrices in the last two dimensions: inverses, determinants, factors,
 * solutions of equations.
 */
#include "graph/infer.h"
#include "graph/op.h"
#include "graph/op_cost.h"
#include "ops/lacking.h"
#include "pass/gradient/grad.h"

/* Checks that input `i` holds square matrices; `merged`: its shape with both dimensions equal. */
static int square(struct infer *infer, int i, struct shape *merged)
{
    if (infer_rank_at_least(infer, i, 2))
        return infer->err->code;
    *merged = *infer_shape(infer, i);
    if (merged->rank < 0)
        return 0;
    int64_t *rows = &merged->dims[merged->rank - 2], *columns = rows + 1;
    if (*rows >= 0 && *columns >= 0 && *rows != *columns)
        return infer_fail(infer, "matrices must be square, not %s", shape_text(merged));
    *rows = *columns = *rows > *columns ? *rows : *columns;
    return 0;
}

static int square_shape(struct infer *infer)
{
    return square(infer, 0, &infer->out[0]);
}

static int determinant_shape(struct infer *infer)
{
    if (square(infer, 0, &infer->out[0]))
        return infer->err->code;
    if (infer->out[0].rank >= 0)
        infer->out[0].rank -= 2;
    return 0;
}

static int cholesky_grad_shape(struct infer *infer)
{
    struct shape l;
    if (square(infer, 0, &l))
        return infer->err->code;
    if (!shape_merge(&l, infer_shape(infer, 1), &infer->out[0]))
        return infer_fail(infer, "l and grad must have the same shape, not %s and %s",
                          shape_text(&l), shape_text(infer_shape(infer, 1)));
    return 0;
}

/* Takes [..., n, n] and [..., n, k] with equal leading dimensions. */
static int solve_shape(struct infer *infer)
{
    struct shape matrix;
    const struct shape *rhs = infer_shape(infer, 1);
    if (square(infer, 0, &matrix) || infer_rank_at_least(infer, 1, 2))
        return infer->err->code;
    infer->out[0] = *rhs;
    if (matrix.rank < 0 || rhs->rank < 0)
        return 0;
    struct shape a = matrix, b = *rhs, merged;
    a.rank--;
    b.rank--;
    if (!shape_merge(&a, &b, &merged))
        return infer_fail(infer, "matrix %s and rhs %s do not fit", shape_text(&matrix),
                          shape_text(rhs));
    merged.dims[merged.rank++] = rhs->dims[rhs->rank - 1];
    infer->out[0] = merged;
    return 0;
}

static int band_shape(struct infer *infer)
{
    if (infer_rank_at_least(infer, 0, 2) || infer_scalar(infer, 1) || infer_scalar(infer, 2))
        return infer->err->code;
    infer->out[0] = *infer_shape(infer, 0);
    return 0;
}

/* ---- gradients ---- */

static struct edge multiply(struct build *b, struct edge x, bool adj_x, struct edge y, bool adj_y)
{
    const struct attr attrs[] = {{"adj_x", attr_bool(adj_x)}, {"adj_y", attr_bool(adj_y)}};
    return build_op(b, "BatchMatMul", (struct edge[]){x, y}, 2, attrs, 2);
}

/* d(A^-1) = -A^-1 dA A^-1 */
static void inverse_gradient(struct grad *g)
{
    struct build *b = &g->b;
    bool adjoint = node_bool(g->node, "adjoint");
    struct edge inverse = grad_output(g, 0), d = g->out[0];
    /* With adjoint the output is the inverse's transpose, and so is its gradient. */
    struct edge left = multiply(b, inverse, !adjoint, d, adjoint);
    g->in[0] = build_unary(b, "Neg", multiply(b, left, false, inverse, !adjoint));
}

static struct edge expand(struct build *b, struct edge x)
{
    const int64_t last = -1;
    return build_op(b, "ExpandDims", (struct edge[]){x, build_ints(b, &last, 1)}, 2, NULL, 0);
}

/* d det(A) = det(A) tr(A^-1 dA) */
static void determinant_gradient(struct grad *g)
{
    struct build *b = &g->b;
    const struct attr adjoint = {"adjoint", attr_bool(true)};
    struct edge a = grad_input(g, 0);
    struct edge inverse = build_op(b, "MatrixInverse", &a, 1, &adjoint, 1);
    struct edge scale = build_binary(b, "Mul", g->out[0], grad_output(g, 0));
    g->in[0] = build_binary(b, "Mul", expand(b, expand(b, scale)), inverse);
}

static void cholesky_gradient(struct grad *g)
{
    g->in[0] = build_binary(&g->b, "CholeskyGrad", grad_output(g, 0), g->out[0]);
}

/* Keeps so many diagonals below the main one and above; all of them if a number is negative. */
static struct edge band_part(struct build *b, struct edge x, int lower, int upper)
{
    struct edge band[] = {x, build_scalar(b, INT64, lower), build_scalar(b, INT64, upper)};
    return build_op(b, "MatrixBandPart", band, 3, NULL, 0);
}

static struct edge lower_band(struct build *b, struct edge x, int lower)
{
    return band_part(b, x, lower, 0);
}

/* S = (s + s^T) / 2 with s = L^-T phi(L^T G) L^-1, where phi takes the lower triangle with half the
 * diagonal and is its own transpose. D is the incoming gradient; with T = (D + D^T) / 2 L^-T and P
 * = phi(L^-1 T): dG = L P and dL = G P^T - 2 S T, the lower triangles of both. */
static void cholesky_grad_gradient(struct grad *g)
{
    struct build *b = &g->b;
    struct edge l = lower_band(b, grad_input(g, 0), -1), up = lower_band(b, grad_input(g, 1), -1);
    struct edge inverse = build_unary(b, "MatrixInverse", l), d = g->out[0];
    struct edge half = build_scalar_like(b, d, 0.5);
    struct edge t = build_binary(b, "Mul", half,
                                 build_binary(b, "Add", multiply(b, d, false, inverse, true),
                                              multiply(b, d, true, inverse, true)));
    struct edge e = multiply(b, inverse, false, t, false);
    struct edge p = build_binary(b, "Sub", lower_band(b, e, -1),
                                 build_binary(b, "Mul", half, lower_band(b, e, 0)));
    struct edge twice = build_binary(b, "Mul", build_scalar_like(b, d, 2), grad_output(g, 0));
    struct edge to_l = build_binary(b, "Sub", multiply(b, up, false, p, true),
                                    multiply(b, twice, false, t, false));
    g->in[0] = lower_band(b, to_l, -1);
    g->in[1] = lower_band(b, multiply(b, l, false, p, false), -1);
}

/* With A X = B: dB = A^-T dX and dA = -dB X^T, transposed where A was. */
static void solve_gradients(struct grad *g, const struct attr *attrs, int n_attrs)
{
    struct build *b = &g->b;
    bool adjoint = node_bool(g->node, "adjoint");
    struct edge x = grad_output(g, 0), inputs[] = {grad_input(g, 0), g->out[0]};
    g->in[1] = build_op(b, g->node->op->def->name, inputs, 2, attrs, n_attrs);
    struct edge product =
        adjoint ? multiply(b, x, false, g->in[1], true) : multiply(b, g->in[1], false, x, true);
    g->in[0] = build_unary(b, "Neg", product);
}

static void solve_gradient(struct grad *g)
{
    const struct attr flipped = {"adjoint", attr_bool(!node_bool(g->node, "adjoint"))};
    solve_gradients(g, &flipped, 1);
}

static void triangular_solve_gradient(struct grad *g)
{
    bool lower = node_bool(g->node, "lower");
    const struct attr attrs[] = {{"adjoint", attr_bool(!node_bool(g->node, "adjoint"))},
                                 {"lower", attr_bool(lower)}};
    solve_gradients(g, attrs, 2);
    g->in[0] = band_part(&g->b, g->in[0], lower ? -1 : 0, lower ? 0 : -1);
}

static void band_gradient(struct grad *g)
{
    struct edge inputs[] = {g->out[0], grad_input(g, 1), grad_input(g, 2)};
    g->in[0] = build_op(&g->b, "MatrixBandPart", inputs, 3, NULL, 0);
}

/* Each matrix of n columns takes n steps over all its elements. */
static void elimination_cost(const struct cost_query *query, struct op_cost *cost)
{
    const struct shape *a = &cost_input(query, 0)->shape;
    cost->operations =
        cost_largest(query) * cost_dim(a, a->rank > 0 ? a->rank - 1 : 0, query->assume);
    cost->bytes = cost_bytes_all(query);
}

#define ELIMINATION(op, ...)                                                                       \
    const struct op_def op_##op = {.name = #op,                                                    \
                                   .outputs = "output: T",                                         \
                                   .half = HALF_DENIED,                                            \
                                   .cost = elimination_cost,                                       \
                                   __VA_ARGS__}

ELIMINATION(MatrixInverse, .inputs = "input: T",
            .attrs = "adjoint: bool = false, T: float16|float32|float64",
            .doc = "Inverse of each square matrix, transposed if adjoint.",
            .detail = "A singular matrix is an error."
                      "\n" NO_COMPLEX,
            .shape = square_shape, .gradient = inverse_gradient);

ELIMINATION(MatrixDeterminant, .inputs = "input: T", .attrs = "T: float16|float32|float64",
            .doc = "Determinant of each square matrix.",
            .detail = "Its gradient needs the inverse, so that of a singular matrix is an error."
                      "\n" NO_COMPLEX,
            .shape = determinant_shape, .gradient = determinant_gradient);

ELIMINATION(
    Cholesky, .inputs = "input: T", .attrs = "T: float16|float32|float64",
    .doc =
        "The lower triangular L with L L^T = input, for each symmetric positive definite matrix.",
    .detail =
        "Only the lower triangle of the input is read. A matrix that is not positive definite\n"
        "is an error. The gradient is that of a symmetric input."
        "\n" NO_COMPLEX,
    .shape = square_shape, .gradient = cholesky_gradient);

ELIMINATION(CholeskyGrad, .inputs = "l: T, grad: T", .attrs = "T: float16|float32|float64",
            .doc = "Gradient of Cholesky from its output l: symmetric.",
            .detail = "Only the lower triangles are read.", .shape = cholesky_grad_shape,
            .gradient = cholesky_grad_gradient);

ELIMINATION(MatrixSolve, .inputs = "matrix: T, rhs: T",
            .attrs = "adjoint: bool = false, T: float16|float32|float64",
            .doc = "The X with matrix X = rhs, or, if adjoint, matrix^T X = rhs.",
            .detail = "A singular matrix is an error."
                      "\n" NO_COMPLEX,
            .shape = solve_shape, .gradient = solve_gradient);

ELIMINATION(
    MatrixTriangularSolve, .inputs = "matrix: T, rhs: T",
    .attrs = "lower: bool = true, adjoint: bool = false, T: floating",
    .doc = "The X with matrix X = rhs, where matrix is triangular.",
    .detail =
        "Only the lower (or upper) triangle is read. adjoint: matrix^T X = rhs. A zero on the\n"
        "diagonal is an error."
        "\n" NO_COMPLEX,
    .shape = solve_shape, .gradient = triangular_solve_gradient);

const struct op_def op_MatrixBandPart = {
    .name = "MatrixBandPart",
    .inputs = "input: T, num_lower: int64, num_upper: int64",
    .outputs = "band: T",
    .attrs = "T: numeric|bool",
    .doc = "Each matrix with zeros outside a band around its diagonal.",
    .detail = "num_lower and num_upper diagonals are kept below and above; negative: all of them."
              "\n" NO_STRINGS,
    .half = HALF_CLEAR,
    .cost = cost_elements,
    .shape = band_shape,
    .gradient = band_gradient,
};
