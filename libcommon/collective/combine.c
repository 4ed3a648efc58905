/* SPDX-License-Identifier: Apache-2.0 */
#include "collective/combine.h"

#include <string.h>

#include "base/memory.h"

int collective_check_value(enum collective_kind kind, const struct tensor *value, struct error *err)
{
    bool divides = collective_divides(kind);
    if ((collective_gathers(kind) || collective_parts(kind)) && value->shape.rank < 1)
        return error_set(err, ERR_DATA, "a scalar has no rows");
    if ((collective_adds(kind) || divides) && !collective_can_add(kind, value->type))
        return error_set(err, ERR_DATA, "there is no %s of %s", divides ? "mean" : "sum",
                         dtype_name(value->type));
    if (collective_gathers(kind) && value->type == STRING)
        return error_set(err, ERR_DATA, "rows of strings are not gathered");
    return 0;
}

static int check(enum collective_kind kind, const struct tensor *const *values, int n,
                 struct error *err)
{
    const struct tensor *first = values[0];
    if (collective_check_value(kind, first, err))
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
    return memory->alloc(memory->context, type, shape, t, err);
}

static int copy(const struct collective_memory *memory, void *to, const struct tensor *from,
                struct error *err)
{
    if (memory)
        return memory->copy(memory->context, to, from->data, tensor_bytes(from), err);
    memcpy(to, from->data, tensor_bytes(from));
    return 0;
}

static int sum(const struct collective_memory *memory, const struct collective_terms *terms,
               struct tensor *to, struct error *err)
{
    int64_t count = tensor_count(to);
    if (memory && count)
        return memory->sum(memory->context, terms, to->data, count, err);
    collective_sum(terms, to->data, NULL, count);
    return 0;
}

/* ---- kinds ---- */

struct combining {
    const struct collective_memory *memory;
    const struct collective_routing *routing;
    const struct tensor *const *values;
    int member;   /* who gets the result */
    int64_t unit; /* elements of a row */
};

/* What the member gets of another's value; borrowed. */
static struct tensor rows_of(const struct combining *c, int from)
{
    const struct tensor *t = c->values[from];
    struct row_range rows = collective_rows_of(c->routing, from, c->member);
    struct shape shape = shape_vector(rows.count * c->unit);
    size_t at = (size_t)(rows.first * c->unit) * dtype_bytes(t->type);
    return tensor_borrow(t->type, &shape, (char *)t->data + at);
}

static int add(const struct combining *c, struct tensor *result, struct error *err)
{
    int n = c->routing->n;
    const void **data = mem_array((size_t)n, sizeof *data);
    for (int k = 0; k < n; k++)
        data[k] = rows_of(c, k).data;
    const struct collective_terms terms = {result->type, data, n,
                                           collective_divides(c->routing->kind) ? n : 0};
    int code = sum(c->memory, &terms, result, err);
    mem_free(data);
    return code;
}

static int gather(const struct combining *c, struct tensor *result, struct error *err)
{
    char *to = result->data;
    int code = 0;
    for (int k = 0; !code && k < c->routing->n; k++) {
        struct tensor rows = rows_of(c, k);
        code = copy(c->memory, to, &rows, err);
        to += tensor_bytes(&rows);
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

static int combine(const struct combining *c, struct tensor *result, struct error *err)
{
    const struct tensor *own = c->values[c->member];
    enum collective_kind kind = c->routing->kind;
    struct shape shape = collective_result_shape(c->routing, &own->shape, c->member);
    if (alloc(c->memory, own->type, &shape, result, err))
        return err->code;
    if (collective_gets_zeros(c->routing, c->member)) {
        memset(result->data, 0, tensor_bytes(result));
        return 0;
    }
    if (collective_adds(kind))
        return add(c, result, err);
    if (gather(c, result, err))
        return err->code;
    return collective_divides(kind) ? divide(c->memory, result, c->routing->n, err) : 0;
}

static int combine_rows(const struct combining *c, struct tensor *result, struct error *err)
{
    int n = c->routing->n;
    enum collective_kind kind = c->routing->kind;
    int64_t *brought = mem_array((size_t)n, sizeof *brought);
    struct collective_routing routing = *c->routing;
    struct combining with = *c;
    for (int k = 0; k < n; k++)
        brought[k] = collective_rows(kind, &c->values[k]->shape);
    routing.brought = brought;
    with.routing = &routing;
    with.unit = collective_row_elements(kind, &c->values[0]->shape);
    int code = collective_check_rows(&routing, err);
    if (!code)
        code = combine(&with, result, err);
    mem_free(brought);
    return code;
}

int collective_combine_for(const struct collective_memory *memory,
                           const struct collective_routing *routing,
                           const struct tensor *const *values, int member, struct tensor *result,
                           struct error *err)
{
    const struct combining c = {memory, routing, values, member, 0};
    const struct tensor *first = values[routing->root < 0 ? 0 : routing->root];
    if (check(routing->kind, values, routing->n, err))
        return err->code;
    if (routing->kind != COLLECTIVE_FIRST)
        return combine_rows(&c, result, err);
    if (!memory)
        return tensor_copy(result, first, err);
    tensor_share(result, first);
    return 0;
}

int collective_combine(enum collective_kind kind, const struct tensor *const *values, int n,
                       struct tensor *result, struct error *err)
{
    const struct collective_routing routing = {.kind = kind, .n = n, .root = -1};
    return collective_combine_for(NULL, &routing, values, 0, result, err);
}
