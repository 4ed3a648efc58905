/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/matrix/linear_sizes.h"
#include "ops/math/outputs.h"

#include <limits.h>

#define ROWS_MAX 32768 /* LAPACK counts elements in an int */

static bool flag(const struct node *node, const char *name)
{
    const struct attr_value *value = node_attr(node, name);
    return value && value->b;
}

struct linear_flags linear_flags_of(const struct node *node)
{
    return (struct linear_flags){flag(node, "adjoint"), flag(node, "lower")};
}

static bool has_too_many_rows(const struct shape *a)
{
    return a->dims[a->rank - 1] > ROWS_MAX;
}

bool linear_sizes_for(const struct shape *a, const struct shape *b, const struct shape *result,
                      struct linear_sizes *sizes)
{
    int64_t n = a->dims[a->rank - 1], columns = b ? b->dims[b->rank - 1] : 0;
    if (has_too_many_rows(a) || columns > INT_MAX / 2)
        return false;
    *sizes = (struct linear_sizes){.n = (int)n,
                                   .columns = (int)columns,
                                   .matrices = shape_count_of(a, 0, a->rank - 2),
                                   .results = shape_count(result)};
    return true;
}

struct tensor *linear_output(struct kernel_call *call, struct linear_sizes *sizes)
{
    const struct shape *a = &call->in[0]->shape, *b = call->n_in > 1 ? &call->in[1]->shape : NULL;
    struct tensor *out = result_outputs(call, 0, 0);
    if (!out || linear_sizes_for(a, b, &out->shape, sizes))
        return out;
    kernel_fail(call, "matrices %s are too large", shape_text(has_too_many_rows(a) ? a : b));
    return NULL;
}
