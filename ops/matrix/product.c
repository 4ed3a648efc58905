/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/matrix/product.h"

struct product_sizes product_sizes_by(const struct product_flags *flags, const struct shape *a,
                                      const struct shape *b)
{
    struct product_sizes sizes = {.flags = *flags,
                                  .m = a->dims[a->rank - (flags->transpose_a ? 1 : 2)],
                                  .k = a->dims[a->rank - (flags->transpose_a ? 2 : 1)],
                                  .n = b->dims[b->rank - (flags->transpose_b ? 2 : 1)],
                                  .batches = shape_count_of(a, 0, a->rank - 2)};
    return sizes;
}

int product_sizes_of(struct kernel_call *call, int left, int right,
                     const struct product_flags *flags, struct product_sizes *sizes)
{
    const struct shape *a = &call->in[left]->shape, *b = &call->in[right]->shape;
    if (a->rank < 2 || b->rank != a->rank)
        return kernel_fail(call, "operands must be matrices of equal rank, not %s and %s",
                           shape_text(a), shape_text(b));
    *sizes = product_sizes_by(flags, a, b);
    int64_t inner_b = b->dims[b->rank - (flags->transpose_b ? 1 : 2)];
    if (sizes->k != inner_b)
        return kernel_fail(call, "inner dimensions %lld and %lld differ", (long long)sizes->k,
                           (long long)inner_b);
    for (int i = 0; i < a->rank - 2; i++)
        if (a->dims[i] != b->dims[i])
            return kernel_fail(call, "batch dimensions differ: %s and %s", shape_text(a),
                               shape_text(b));
    return 0;
}

struct shape product_shape(const struct product_sizes *sizes, const struct shape *a)
{
    struct shape shape = *a;
    shape.dims[shape.rank - 2] = sizes->m;
    shape.dims[shape.rank - 1] = sizes->n;
    return shape;
}
