/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/step/collective.h"

#include <string.h>

#include "base/memory.h"

static int check(enum collective_kind kind, const struct tensor *const *values, int n,
                 struct error *err)
{
    const struct tensor *first = values[0];
    if (kind == COLLECTIVE_ROWS && first->shape.rank < 1)
        return error_set(err, ERR_DATA, "a scalar has no rows");
    if (collective_adds(kind) && !collective_can_add(kind, first->type))
        return error_set(err, ERR_DATA, "there is no %s of %s",
                         kind == COLLECTIVE_MEAN ? "mean" : "sum", dtype_name(first->type));
    if (kind == COLLECTIVE_ROWS && first->type == STRING)
        return error_set(err, ERR_DATA, "rows of strings are not gathered");
    for (int k = 1; k < n; k++) {
        struct shape like = first->shape;
        if (kind == COLLECTIVE_ROWS && values[k]->shape.rank > 0)
            like.dims[0] = values[k]->shape.dims[0];
        if (values[k]->type != first->type || !shape_equal(&like, &values[k]->shape))
            return error_set(err, ERR_DATA, "a member brings %s, another %s",
                             shape_text_typed(values[k]->type, &values[k]->shape),
                             shape_text_typed(first->type, &first->shape));
    }
    return 0;
}

static int add(const struct tensor *const *values, int n, bool mean, struct tensor *result,
               struct error *err)
{
    const struct tensor *first = values[0];
    const void **data;
    if (tensor_alloc(result, first->type, &first->shape, err))
        return err->code;
    data = mem_array((size_t)n, sizeof *data);
    for (int k = 0; k < n; k++)
        data[k] = values[k]->data;
    const struct collective_terms terms = {first->type, data, n, mean};
    collective_sum(&terms, result->data, NULL, tensor_count(first));
    mem_free(data);
    return 0;
}

static int rows(const struct tensor *const *values, int n, struct tensor *result, struct error *err)
{
    struct shape shape = values[0]->shape;
    for (int k = 1; k < n; k++)
        shape.dims[0] += values[k]->shape.dims[0];
    if (tensor_alloc(result, values[0]->type, &shape, err))
        return err->code;
    char *to = result->data;
    for (int k = 0; k < n; k++) {
        memcpy(to, values[k]->data, tensor_bytes(values[k]));
        to += tensor_bytes(values[k]);
    }
    return 0;
}

int collective_combine(enum collective_kind kind, const struct tensor *const *values, int n,
                       struct tensor *result, struct error *err)
{
    int code = check(kind, values, n, err);
    if (code)
        return code;
    if (kind == COLLECTIVE_ROWS)
        return rows(values, n, result, err);
    return collective_adds(kind) ? add(values, n, kind == COLLECTIVE_MEAN, result, err)
                                 : tensor_copy(result, values[0], err);
}
