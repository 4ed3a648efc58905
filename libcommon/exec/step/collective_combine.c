/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/step/collective.h"

#include <string.h>

#include "base/memory.h"
#include "exec/device/pool.h"

static int check_kind(enum collective_kind kind, const struct tensor *first, struct error *err)
{
    bool divides = collective_divides(kind);
    if (collective_gathers(kind) && first->shape.rank < 1)
        return error_set(err, ERR_DATA, "a scalar has no rows");
    if ((collective_adds(kind) || divides) && !collective_can_add(kind, first->type))
        return error_set(err, ERR_DATA, "there is no %s of %s", divides ? "mean" : "sum",
                         dtype_name(first->type));
    if (collective_gathers(kind) && first->type == STRING)
        return error_set(err, ERR_DATA, "rows of strings are not gathered");
    return 0;
}

static int check(enum collective_kind kind, const struct tensor *const *values, int n,
                 struct error *err)
{
    const struct tensor *first = values[0];
    if (check_kind(kind, first, err))
        return err->code;
    for (int k = 1; k < n; k++) {
        struct shape like = first->shape;
        if (collective_gathers(kind) && values[k]->shape.rank > 0)
            like.dims[0] = values[k]->shape.dims[0];
        if (values[k]->type != first->type || !shape_equal(&like, &values[k]->shape))
            return error_set(err, ERR_DATA, "a member brings %s, another %s",
                             shape_text_typed(values[k]->type, &values[k]->shape),
                             shape_text_typed(first->type, &first->shape));
    }
    return 0;
}

/* ---- memory of a device, or of the host (NULL) ---- */

static int alloc(const struct collective_memory *memory, enum dtype type, const struct shape *shape,
                 struct tensor *t, struct error *err)
{
    if (!memory)
        return tensor_alloc(t, type, shape, err);
    struct buffer *buffer = pool_alloc(memory->pool, (size_t)shape_bytes(shape, type));
    if (!buffer)
        return error_set(err, ERR_OS, "no memory for %s%s", shape_text_typed(type, shape),
                         mem_limit_text());
    *t = (struct tensor){.type = type, .shape = *shape, .data = buffer->data, .buffer = buffer};
    return 0;
}

static int copy(const struct collective_memory *memory, void *to, const struct tensor *from,
                struct error *err)
{
    if (memory)
        return memory->device->copy(memory->device, to, from->data, tensor_bytes(from), err);
    memcpy(to, from->data, tensor_bytes(from));
    return 0;
}

static int sum(const struct collective_memory *memory, const struct collective_terms *terms,
               struct tensor *to, struct error *err)
{
    int64_t count = tensor_count(to);
    if (memory && count)
        return memory->device->sum(memory->device, terms, to->data, count, err);
    collective_sum(terms, to->data, NULL, count);
    return 0;
}

/* ---- kinds ---- */

static int add(const struct collective_memory *memory, const struct tensor *const *values, int n,
               bool divides, struct tensor *result, struct error *err)
{
    const struct tensor *first = values[0];
    if (alloc(memory, first->type, &first->shape, result, err))
        return err->code;
    const void **data = mem_array((size_t)n, sizeof *data);
    for (int k = 0; k < n; k++)
        data[k] = values[k]->data;
    const struct collective_terms terms = {first->type, data, n, divides ? n : 0};
    int code = sum(memory, &terms, result, err);
    mem_free(data);
    return code;
}

static int gather(const struct collective_memory *memory, const struct tensor *const *values, int n,
                  struct tensor *result, struct error *err)
{
    struct shape shape = values[0]->shape;
    for (int k = 1; k < n; k++)
        shape.dims[0] += values[k]->shape.dims[0];
    int code = alloc(memory, values[0]->type, &shape, result, err);
    char *to = result->data;
    for (int k = 0; !code && k < n; k++) {
        code = copy(memory, to, values[k], err);
        to += tensor_bytes(values[k]);
    }
    return code;
}

static int divide(const struct collective_memory *memory, struct tensor *t, int divisor,
                  struct error *err)
{
    const void *data = t->data;
    const struct collective_terms terms = {t->type, &data, 1, divisor};
    return sum(memory, &terms, t, err);
}

static int combine(const struct collective_memory *memory, enum collective_kind kind,
                   const struct tensor *const *values, int n, struct tensor *result,
                   struct error *err)
{
    if (collective_adds(kind))
        return add(memory, values, n, collective_divides(kind), result, err);
    if (gather(memory, values, n, result, err))
        return err->code;
    return collective_divides(kind) ? divide(memory, result, n, err) : 0;
}

int collective_combine(enum collective_kind kind, const struct tensor *const *values, int n,
                       struct tensor *result, struct error *err)
{
    if (check(kind, values, n, err))
        return err->code;
    return kind == COLLECTIVE_FIRST ? tensor_copy(result, values[0], err)
                                    : combine(NULL, kind, values, n, result, err);
}

int collective_combine_on(const struct collective_memory *memory, enum collective_kind kind,
                          const struct tensor *const *values, int n, struct tensor *result,
                          struct error *err)
{
    if (check(kind, values, n, err))
        return err->code;
    if (kind != COLLECTIVE_FIRST)
        return combine(memory, kind, values, n, result, err);
    tensor_share(result, values[0]);
    return 0;
}
