/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/collective.h"

#include <string.h>

static int check(enum collective_kind kind, const struct tensor *const *values, int n,
                 struct error *err)
{
    const struct tensor *first = values[0];
    if (kind == COLLECTIVE_ROWS && first->shape.rank < 1)
        return error_set(err, ERR_DATA, "a scalar has no rows");
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

#define DEFINE_ADD(type)                                                                           \
    static void add_##type(type *sum, const type *value, int64_t n)                                \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            sum[i] += value[i];                                                                    \
    }
DEFINE_ADD(float)
DEFINE_ADD(double)
DEFINE_ADD(int32_t)
DEFINE_ADD(int64_t)
#undef DEFINE_ADD

/* Narrow floats are added wide and rounded once. */
static void sum_slowly(struct tensor *sum, const struct tensor *const *values, int n)
{
    for (int64_t i = 0; i < tensor_count(sum); i++) {
        double total = 0;
        for (int k = 0; k < n; k++)
            total += tensor_get_float64(values[k], i);
        tensor_set_float64(sum, i, total);
    }
}

static int sum(const struct tensor *const *values, int n, struct tensor *result, struct error *err)
{
    if (tensor_copy(result, values[0], err))
        return err->code;
    int64_t count = tensor_count(result);
    if (result->type != FLOAT32 && result->type != FLOAT64 && result->type != INT32 &&
        result->type != INT64) {
        sum_slowly(result, values, n);
        return 0;
    }
    for (int k = 1; k < n; k++) {
        if (result->type == FLOAT32)
            add_float(result->data, values[k]->data, count);
        else if (result->type == FLOAT64)
            add_double(result->data, values[k]->data, count);
        else if (result->type == INT32)
            add_int32_t(result->data, values[k]->data, count);
        else
            add_int64_t(result->data, values[k]->data, count);
    }
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
    return kind == COLLECTIVE_SUM ? sum(values, n, result, err)
                                  : tensor_copy(result, values[0], err);
}
