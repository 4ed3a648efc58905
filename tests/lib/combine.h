/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: combines the values of all members in one process: the reference for collectives that
 * send them, which must give the same bits.
 */
#ifndef TF_TESTS_LIB_COMBINE_H
#define TF_TESTS_LIB_COMBINE_H

#include <string.h>

#include "base/memory.h"
#include "collective/rows.h"
#include "collective/schedule.h"
#include "collective/sum.h"

static inline int combine_check(enum collective_kind kind, const struct tensor *const *values,
                                int n, struct error *err)
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

/* ---- kinds ---- */

struct combining {
    const struct row_routes *routing;
    const struct tensor *const *values;
    int member;   /* the one that gets the result */
    int64_t unit; /* elements of a row */
};

/* Returns what the member gets of another's value; borrowed. */
static inline struct tensor combined_rows(const struct combining *c, int from)
{
    const struct tensor *t = c->values[from];
    struct row_range rows = collective_rows_of(c->routing, from, c->member);
    struct shape shape = shape_vector(rows.count * c->unit);
    size_t at = (size_t)(rows.first * c->unit) * dtype_bytes(t->type);
    return tensor_borrow(t->type, &shape, (char *)t->data + at);
}

static inline void combine_add(const struct combining *c, struct tensor *result)
{
    int n = c->routing->n;
    const void **data = mem_array((size_t)n, sizeof *data);
    for (int k = 0; k < n; k++)
        data[k] = combined_rows(c, k).data;
    const struct collective_terms terms = {result->type, data, n,
                                           collective_divides(c->routing->kind) ? n : 0};
    collective_sum(&terms, result->data, NULL, tensor_count(result));
    mem_free(data);
}

static inline void combine_gather(const struct combining *c, struct tensor *result)
{
    char *to = result->data;
    for (int k = 0; k < c->routing->n; k++) {
        struct tensor rows = combined_rows(c, k);
        memcpy(to, rows.data, tensor_bytes(&rows));
        to += tensor_bytes(&rows);
    }
}

static inline void combine_divide(struct tensor *t, int divisor)
{
    const void *data = t->data;
    const struct collective_terms terms = {t->type, &data, 1, divisor};
    collective_sum(&terms, t->data, NULL, tensor_count(t));
}

static inline int combine_routed(const struct combining *c, struct tensor *result,
                                 struct error *err)
{
    const struct tensor *own = c->values[c->member];
    enum collective_kind kind = c->routing->kind;
    struct shape shape = collective_result_shape(c->routing, &own->shape, c->member);
    if (tensor_alloc(result, own->type, &shape, err))
        return err->code;
    if (collective_gets_zeros(c->routing, c->member)) {
        memset(result->data, 0, tensor_bytes(result));
    } else if (collective_adds(kind)) {
        combine_add(c, result);
    } else {
        combine_gather(c, result);
        if (collective_divides(kind))
            combine_divide(result, c->routing->n);
    }
    return 0;
}

static inline int combine_by_rows(const struct combining *c, struct tensor *result,
                                  struct error *err)
{
    int n = c->routing->n;
    enum collective_kind kind = c->routing->kind;
    int64_t *brought = mem_array((size_t)n, sizeof *brought);
    struct row_routes routing = *c->routing;
    struct combining with = *c;
    for (int k = 0; k < n; k++)
        brought[k] = collective_rows(kind, &c->values[k]->shape);
    routing.brought = brought;
    with.routing = &routing;
    with.unit = collective_row_elements(kind, &c->values[0]->shape);
    int code = collective_check_rows(&routing, err);
    if (!code)
        code = combine_routed(&with, result, err);
    mem_free(brought);
    return code;
}

/* The same for a member, by a routing, of which what is brought need not be said. */
static inline int collective_combine_for(const struct row_routes *routing,
                                         const struct tensor *const *values, int member,
                                         struct tensor *result, struct error *err)
{
    const struct combining c = {routing, values, member, 0};
    const struct tensor *first = values[routing->root < 0 ? 0 : routing->root];
    if (combine_check(routing->kind, values, routing->n, err))
        return err->code;
    if (routing->kind != COLLECTIVE_FIRST)
        return combine_by_rows(&c, result, err);
    return tensor_copy(result, first, err);
}

/* Combines the members' contributions, by rank, to what member 0 gets; values[k] is member k's, on
 * the host. The result is new memory. ERR_DATA if types or shapes do not fit. */
static inline int collective_combine(enum collective_kind kind, const struct tensor *const *values,
                                     int n, struct tensor *result, struct error *err)
{
    const struct row_routes routing = {.kind = kind, .n = n, .root = -1};
    return collective_combine_for(&routing, values, 0, result, err);
}

/* ---- by a schedule ---- */

#define STRIP 512 /* elements; all members' sums of so many fit in the first-level cache */

struct scheduled_sum {
    const struct sum_schedule *schedule;
    const struct tensor *const *values;
    char *result;
    char *sums; /* STRIP elements of each member */
    int divisor;
};

static inline void strip_add(const struct scheduled_sum *c, int from, int to, int64_t n)
{
    enum dtype type = c->values[0]->type;
    size_t bytes = STRIP * dtype_bytes(type);
    const void *data[2] = {c->sums + (size_t)from * bytes, c->sums + (size_t)to * bytes};
    const struct collective_terms terms = {type, data, 2, 0};
    collective_sum(&terms, c->sums + (size_t)to * bytes, NULL, n);
}

/* Returns the member that has the whole sum in the end: the one that the piece's flows add to. */
static inline int strip_sum(const struct scheduled_sum *c, int piece, int64_t n)
{
    int last = 0;
    for (size_t i = 0; i < c->schedule->flows.n; i++) {
        const struct schedule_flow *flow = &c->schedule->flows.items[i];
        if (flow->piece != piece || flow->operation != SCHEDULE_ADD)
            continue;
        strip_add(c, flow->from, flow->to, n);
        last = flow->to;
    }
    return last;
}

static inline void strip_combine(const struct scheduled_sum *c, int piece, int64_t first, int64_t n)
{
    enum dtype type = c->values[0]->type;
    size_t width = dtype_bytes(type), at = (size_t)first * width;
    for (int k = 0; k < c->schedule->n_members; k++)
        memcpy(c->sums + (size_t)k * STRIP * width, (const char *)c->values[k]->data + at,
               (size_t)n * width);
    const void *sum = c->sums + (size_t)strip_sum(c, piece, n) * STRIP * width;
    const struct collective_terms terms = {type, &sum, 1, c->divisor};
    collective_sum(&terms, c->result + at, NULL, n);
}

/* Combines the members' values, by rank, in host memory, to the bits that a schedule of so many
 * parts gives. */
static inline int collective_combine_by(const struct sum_schedule *schedule, int n_parts,
                                        enum collective_kind kind,
                                        const struct tensor *const *values, struct tensor *result,
                                        struct error *err)
{
    int n = schedule->n_members;
    struct scheduled_sum c = {
        .schedule = schedule, .values = values, .divisor = collective_divides(kind) ? n : 0};
    if (tensor_alloc(result, values[0]->type, &values[0]->shape, err))
        return err->code;
    c.result = result->data;
    c.sums = mem_array((size_t)n * STRIP, dtype_bytes(values[0]->type));
    for (int part = 0; part < n_parts; part++) {
        struct row_range range = collective_part(tensor_count(values[0]), n_parts, part);
        for (int64_t at = 0; at < range.count; at += STRIP)
            strip_combine(&c, part % schedule->n_pieces, range.first + at,
                          range.count - at < STRIP ? range.count - at : STRIP);
    }
    mem_free(c.sums);
    return 0;
}

#endif
