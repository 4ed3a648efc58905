/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products.
 */
#include "graph/index_rule.h"
#include "graph/infer.h"
#include "graph/op.h"
#include "graph/op_cost.h"
#include "ops/lacking.h"
#include "ops/matrix/product.h"
#include "pass/gradient/grad.h"

/* Finds the product's last two dimensions from the operands'. */
static int product_dims(struct infer *infer, int left, int right, bool transpose_a,
                        bool transpose_b, int64_t dims[2])
{
    const struct shape *a = infer_shape(infer, left), *b = infer_shape(infer, right);
    dims[0] = dims[1] = SHAPE_UNKNOWN;
    int64_t inner_a = SHAPE_UNKNOWN, inner_b = SHAPE_UNKNOWN;
    if (a->rank >= 2) {
        dims[0] = a->dims[a->rank - (transpose_a ? 1 : 2)];
        inner_a = a->dims[a->rank - (transpose_a ? 2 : 1)];
    }
    if (b->rank >= 2) {
        dims[1] = b->dims[b->rank - (transpose_b ? 2 : 1)];
        inner_b = b->dims[b->rank - (transpose_b ? 1 : 2)];
    }
    enum dtype type = node_type(infer->node, "T");
    if (inner_a >= 0 && inner_b >= 0 && inner_a != inner_b)
        return infer_fail(infer, "inner dimensions %lld and %lld differ: %s x %s",
                          (long long)inner_a, (long long)inner_b, shape_text_typed(type, a),
                          shape_text_typed(type, b));
    return 0;
}

int product_shape(struct infer *infer, int left, int right, struct shape *shape)
{
    int64_t dims[2];
    if (infer_rank(infer, left, 2) || infer_rank(infer, right, 2) ||
        product_dims(infer, left, right, node_bool(infer->node, "transpose_a"),
                     node_bool(infer->node, "transpose_b"), dims))
        return infer->err->code;
    *shape = shape_of(2, dims);
    return 0;
}

static int matmul_shape(struct infer *infer)
{
    return product_shape(infer, 0, 1, &infer->out[0]);
}

/* The shape of one product, all others, and the tensor. */
static int matmul_sum_shape(struct infer *infer)
{
    int n_others = (int)node_attr(infer->node, "M")->i, n = (int)node_attr(infer->node, "N")->i;
    struct shape sum = {.rank = -1}, product;
    for (int i = 0; i < n_others + n; i++) {
        product = *infer_shape(infer, i);
        if (i >= n_others && product_shape(infer, i, n + i, &product))
            return infer->err->code;
        if (!shape_merge(&sum, &product, &infer->out[0]))
            return infer_fail(infer, "term %d is %s, those before %s", i, shape_text(&product),
                              shape_text(&sum));
        sum = infer->out[0];
    }
    return 0;
}

static int batch_matmul_shape(struct infer *infer)
{
    const struct shape *x = infer_shape(infer, 0), *y = infer_shape(infer, 1);
    int64_t dims[2];
    if (infer_rank_at_least(infer, 0, 2) || infer_rank_at_least(infer, 1, 2) ||
        product_dims(infer, 0, 1, node_bool(infer->node, "adj_x"), node_bool(infer->node, "adj_y"),
                     dims))
        return infer->err->code;
    if (x->rank < 0 && y->rank < 0)
        return 0;
    struct shape batch_x = *x, batch_y = *y, batch;
    if (x->rank >= 2)
        batch_x.rank -= 2;
    if (y->rank >= 2)
        batch_y.rank -= 2;
    if (!shape_merge(&batch_x, &batch_y, &batch))
        return infer_fail(infer, "batch dimensions differ: %s and %s", shape_text(x),
                          shape_text(y));
    batch.dims[batch.rank] = dims[0];
    batch.dims[batch.rank + 1] = dims[1];
    batch.rank += 2;
    infer->out[0] = batch;
    return 0;
}

static struct edge multiply(struct grad *g, struct edge a, bool transpose_a, struct edge b,
                            bool transpose_b)
{
    const struct op *op = g->node->op;
    const struct attr attrs[] = {{rule_operand(op, 0)->swapped, attr_bool(transpose_a)},
                                 {rule_operand(op, 1)->swapped, attr_bool(transpose_b)}};
    return build_op(&g->b, op->def->name, (struct edge[]){a, b}, 2, attrs, 2);
}

/* With C = op(A) op(B): dA = dC op(B)^T and dB = op(A)^T dC, transposed once more where op was a
 * transposition. */
static void product_gradient(struct grad *g)
{
    bool ta = node_bool(g->node, rule_operand(g->node->op, 0)->swapped);
    bool tb = node_bool(g->node, rule_operand(g->node->op, 1)->swapped);
    struct edge a = grad_input(g, 0), b = grad_input(g, 1), d = g->out[0];
    g->in[0] = ta ? multiply(g, b, tb, d, true) : multiply(g, d, false, b, !tb);
    g->in[1] = tb ? multiply(g, d, true, a, ta) : multiply(g, a, !ta, d, false);
}

/* 2 m n k, where k is the total inner length, over n left operands. */
static void product_cost(const struct cost_query *query, struct op_cost *cost, const char *flag_a,
                         int first, int n)
{
    for (int i = first; i < first + n; i++) {
        const struct shape *a = &cost_input(query, i)->shape;
        int axis = a->rank - (node_bool(query->node, flag_a) ? 2 : 1);
        cost->operations += 2 * cost_count(&query->node->outputs[0].shape, query->assume) *
                            cost_dim(a, axis < 0 ? 0 : axis, query->assume);
    }
    cost->bytes = cost_bytes_all(query);
}

static void matmul_cost(const struct cost_query *query, struct op_cost *cost)
{
    product_cost(query, cost, "transpose_a", 0, 1);
}

static void batch_matmul_cost(const struct cost_query *query, struct op_cost *cost)
{
    product_cost(query, cost, "adj_x", 0, 1);
}

static void matmul_sum_cost(const struct cost_query *query, struct op_cost *cost)
{
    product_cost(query, cost, "transpose_a", (int)node_attr(query->node, "M")->i,
                 (int)node_attr(query->node, "N")->i);
}

const struct op_def op_MatMul = {
    .name = "MatMul",
    .inputs = "a: T, b: T",
    .outputs = "product: T",
    .attrs = "transpose_a: bool = false, transpose_b: bool = false, "
             "T: floating|int32|int64|uint8|uint16|uint32|uint64",
    .doc = "Product of two matrices, each transposed first if asked for.",
    .detail = "Integers wrap on overflow."
              "\n" NO_COMPLEX,
    .half = HALF_ALLOWED,
    .rule = "product[i,o] += a[i,k]~transpose_a b[k,o]~transpose_b",
    .cost = matmul_cost,
    .shape = matmul_shape,
    .gradient = product_gradient,
};

const struct op_def op_FusedMatMulSum = {
    .name = "FusedMatMulSum",
    .inputs = "tensor: M*T, a: N*T, b: N*T",
    .outputs = "sum: T",
    .attrs = "transpose_a: bool = false, transpose_b: bool = false, M: int >= 0, N: int >= 1, "
             "T: float32|float64",
    .doc = "A tensor, if there is one, and matrix products, added up; made of AddN and MatMul for "
           "a device.",
    .detail = "Short inner axes are side by side in one product, so sums are in its order.",
    .half = HALF_KEPT,
    .cost = matmul_sum_cost,
    .shape = matmul_sum_shape,
    .flags = OP_NO_GRADIENT,
    .no_gradient = "it is made of ops that have one when that is there",
};

const struct op_def op_BatchMatMul = {
    .name = "BatchMatMul",
    .inputs = "x: T, y: T",
    .outputs = "output: T",
    .attrs = "adj_x: bool = false, adj_y: bool = false, T: floating|int32|int64",
    .doc = "Products of the matrices in the last two dimensions, one per index of the others.",
    .detail = "The other dimensions must be equal: they do not broadcast."
              "\n" NO_COMPLEX,
    .half = HALF_ALLOWED,
    .cost = batch_matmul_cost,
    .shape = batch_matmul_shape,
    .rule = "output[...,i,o] += x[...,i,k]~adj_x y[...,k,o]~adj_y",
    .gradient = product_gradient,
};
