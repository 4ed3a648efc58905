/* SPDX-License-Identifier: Apache-2.0
 *
 * The routing of rows between members.
 */
#include "collective/rows.h"

#include "collective/sum.h"

static bool takes_all_rows(enum collective_kind kind)
{
    return collective_adds(kind) && !collective_parts(kind);
}

int64_t collective_rows(enum collective_kind kind, const struct shape *shape)
{
    return takes_all_rows(kind) || shape->rank < 1 ? 1 : shape->dims[0];
}

int64_t collective_row_elements(enum collective_kind kind, const struct shape *shape)
{
    struct shape row = *shape;
    if (!takes_all_rows(kind) && row.rank > 0)
        row.dims[0] = 1;
    return shape_count(&row);
}

struct row_range collective_part(int64_t rows, int64_t n, int64_t k)
{
    int64_t each = rows / n, more = rows % n;
    return (struct row_range){each * k + (k < more ? k : more), each + (k < more)};
}

/* Returns how many rows of `from` member `to` wants. */
static int64_t wanted_of(const struct row_routes *routing, int from, int to)
{
    bool back = routing->kind == COLLECTIVE_PART && routing->root < 0;
    return back ? collective_part(routing->wanted[to], routing->n, from).count
                : routing->wanted[to];
}

struct row_range collective_rows_of(const struct row_routes *routing, int from, int to)
{
    struct row_range none = {0, 0}, all = {0, routing->brought[from]};
    bool is_whole_root = routing->root < 0 || routing->root == to;
    if (!collective_parts(routing->kind))
        return is_whole_root ? all : none;
    if (routing->kind == COLLECTIVE_PART && routing->root >= 0 && routing->root != from)
        return none;
    if (!routing->wanted)
        return collective_part(routing->brought[from], routing->n, to);
    struct row_range range = {0, wanted_of(routing, from, to)};
    for (int k = 0; k < to; k++)
        range.first += wanted_of(routing, from, k);
    return range;
}

struct shape collective_result_shape(const struct row_routes *routing, const struct shape *own,
                                     int to)
{
    struct shape shape = *own;
    bool zeros = collective_gets_zeros(routing, to);
    if (takes_all_rows(routing->kind) || shape.rank < 1)
        return shape;
    shape.dims[0] = zeros && routing->wanted ? routing->wanted[to] : 0;
    if (collective_adds(routing->kind))
        shape.dims[0] = collective_rows_of(routing, 0, to).count;
    for (int from = 0; from < routing->n && collective_gathers(routing->kind); from++)
        shape.dims[0] += collective_rows_of(routing, from, to).count;
    return shape;
}

int collective_check_rows(const struct row_routes *routing, struct error *err)
{
    bool parts = collective_parts(routing->kind), adds = collective_adds(routing->kind);
    bool are_alike = adds || (parts && routing->root < 0 && !routing->wanted);
    for (int k = 1; k < routing->n && are_alike; k++)
        if (routing->brought[k] != routing->brought[0])
            return error_set(err, ERR_DATA, "a member brings %lld rows to be parted, another %lld",
                             (long long)routing->brought[k], (long long)routing->brought[0]);
    for (int from = 0; from < routing->n && parts && routing->wanted; from++) {
        int64_t wanted = 0; /* rows of `from` */
        for (int to = 0; to < routing->n; to++)
            wanted += wanted_of(routing, from, to);
        if ((routing->root < 0 || routing->root == from) && wanted != routing->brought[from])
            return error_set(err, ERR_DATA, "members want %lld rows back of one that brings %lld",
                             (long long)wanted, (long long)routing->brought[from]);
    }
    return 0;
}

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
