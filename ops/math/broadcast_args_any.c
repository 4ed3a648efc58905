/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/device/kernel.h"

static int64_t dim_at(const struct tensor *shape, int axis, int rank)
{
    int64_t from = axis - (rank - tensor_count(shape));
    return from < 0 ? 1 : tensor_get_int64(shape, from);
}

static int write_axes(struct kernel_call *call, int k, const int64_t *axes, int n)
{
    struct shape shape = shape_vector(n);
    struct tensor *out = kernel_alloc_output(call, k, &shape);
    if (!out)
        return call->err->code;
    for (int i = 0; i < n; i++)
        tensor_set_int64(out, i, axes[i]);
    return 0;
}

static int broadcast_args_run(struct kernel_call *call)
{
    const struct tensor *s0 = call->in[0], *s1 = call->in[1];
    int64_t n0 = tensor_count(s0), n1 = tensor_count(s1), axes[2][SHAPE_RANK_MAX];
    int n[2] = {0}, rank = (int)(n0 > n1 ? n0 : n1);
    if (s0->shape.rank != 1 || s1->shape.rank != 1 || n0 > SHAPE_RANK_MAX || n1 > SHAPE_RANK_MAX)
        return kernel_fail(call, "%s and %s are no shapes of at most %d dimensions",
                           shape_text(&s0->shape), shape_text(&s1->shape), SHAPE_RANK_MAX);
    for (int axis = 0; axis < rank; axis++) {
        int64_t a = dim_at(s0, axis, rank), b = dim_at(s1, axis, rank);
        if (a != b && a != 1 && b != 1)
            return kernel_fail(call, "dimensions %lld and %lld cannot be broadcast", (long long)a,
                               (long long)b);
        if (a == 1 && (b != 1 || axis < rank - n0))
            axes[0][n[0]++] = axis;
        if (b == 1 && (a != 1 || axis < rank - n1))
            axes[1][n[1]++] = axis;
    }
    if (write_axes(call, 0, axes[0], n[0]) || write_axes(call, 1, axes[1], n[1]))
        return call->err->code;
    return KERNEL_DONE;
}

const struct kernel_code kernel_broadcast_args = {.run = broadcast_args_run};
