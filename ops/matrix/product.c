/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/matrix/product.h"

struct product_sizes product_sizes_of(const struct product_flags *flags, const struct shape *a,
                                      const struct shape *b)
{
    struct product_sizes sizes = {.flags = *flags,
                                  .m = a->dims[a->rank - (flags->transpose_a ? 1 : 2)],
                                  .k = a->dims[a->rank - (flags->transpose_a ? 2 : 1)],
                                  .n = b->dims[b->rank - (flags->transpose_b ? 2 : 1)],
                                  .batches = shape_count_of(a, 0, a->rank - 2)};
    return sizes;
}
