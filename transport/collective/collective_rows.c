/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that go by rows: who gets which is known when the round is settled, since what a member
 * brings says how many rows it has. What is small goes with that already, each member's as it is
 * small, and to each only what it is to get: of parts, if they are made for as many members as then
 * take part.
 */
#include <string.h>

#include "base/memory.h"
#include "transport/collective/collective_private.h"

#define ROWS_MAX ((int64_t)1 << 47) /* of a member: sums of them are numbers */

/* ---- the call ---- */

static void assume(struct process_group *group, struct collective_round *m)
{
    m->assumed = mem_array((size_t)group->interface.size, sizeof *m->assumed);
    for (int k = 0; k < group->interface.size; k++) {
        m->assumed[k] = !round_lacks(group, m, k) && round_meets(group, m, k);
        m->n_assumed += m->assumed[k];
    }
}

void rows_call(struct process_group *group, struct collective_round *m,
               const struct collective_call *call)
{
    m->has_root = call->has_root;
    m->root = collective_group_rank(&call->group, group->interface.rank, call->root);
    m->wants = call->rows != NULL;
    m->routed = mem_array((size_t)m->n + 1, sizeof *m->routed);
    for (int v = 0; v < m->n; v++) {
        enum collective_kind kind = m->kinds[v];
        const struct shape *shape = &m->own[v].shape;
        if (!collective_routes(kind, m->has_root))
            continue;
        m->routed[v] = (struct routed_value){.is_routed = true,
                                             .unit = collective_row_elements(kind, shape),
                                             .brought = collective_rows(kind, shape),
                                             .wanted = m->wants ? call->rows[v] : 0};
        m->n_routed++;
    }
    if (m->n_routed)
        assume(group, m);
}

void rows_free(struct collective_round *m)
{
    for (int v = 0; v < m->n && m->routed; v++)
        mem_free(m->routed[v].counts);
    mem_free(m->routed);
    mem_free(m->late);
    mem_free(m->assumed);
}

/* ---- what is said of them ---- */

void rows_pack(msgpack_packer *packer, const struct collective_round *m)
{
    pack_key(packer, "rows");
    msgpack_pack_array(packer, 2 * (size_t)m->n_routed);
    for (int v = 0; v < m->n; v++) {
        if (!m->routed[v].is_routed)
            continue;
        msgpack_pack_int64(packer, m->routed[v].brought);
        msgpack_pack_int64(packer, m->routed[v].wanted);
    }
    pack_key(packer, "parted");
    msgpack_pack_int(packer, m->n_assumed);
}

bool rows_read(const struct record *record, struct brought *brought)
{
    const msgpack_object *field = record_field(&record->header, "rows");
    int64_t n_parted;
    if (!field)
        return true;
    if (field->type != MSGPACK_OBJECT_ARRAY || field->via.array.size > INT32_MAX ||
        !record_get_int(&record->header, "parted", &n_parted))
        return false;
    brought->n_rows = (int)field->via.array.size;
    brought->n_parted = n_parted < INT32_MAX ? (int)n_parted : 0;
    brought->rows = mem_array((size_t)brought->n_rows + 1, sizeof *brought->rows);
    for (int i = 0; i < brought->n_rows; i++) {
        const msgpack_object *rows = &field->via.array.ptr[i];
        if (rows->type != MSGPACK_OBJECT_POSITIVE_INTEGER || rows->via.u64 > ROWS_MAX)
            return false;
        brought->rows[i] = (int64_t)rows->via.u64;
    }
    return true;
}

int rows_counts(const struct process_group *group, const struct collective_round *m, int rank,
                int value, const int64_t **counts, struct error *err)
{
    const struct brought *brought = &m->brought[rank];
    int at = 0;
    if (brought->n_rows != 2 * m->n_routed)
        return error_set(err, ERR_PROTOCOL, "'%s': %s does not say how many rows it brings",
                         m->name, group->tasks[rank]);
    for (int v = 0; v < value; v++)
        at += m->routed[v].is_routed;
    *counts = brought->rows + (size_t)at * 2;
    return 0;
}

/* ---- what is brought ---- */

bool rows_are_brought(const struct collective_round *m, int value, int64_t rows)
{
    const struct tensor *own = &m->own[value];
    int64_t bytes =
        own->type == STRING ? 0 : m->routed[value].unit * (int64_t)dtype_bytes(own->type);
    if (own->type == STRING || (collective_parts(m->kinds[value]) && m->wants))
        return false;
    return !bytes || rows <= SMALL_BYTES / bytes;
}

/* The place of a rank among those of whom a member assumes that they take part. */
static int assumed_place(const struct collective_round *m, int rank)
{
    int place = 0;
    for (int k = 0; k < rank; k++)
        place += m->assumed[k];
    return place;
}

static struct tensor own_rows(const struct collective_round *m, int value, struct row_range rows)
{
    int64_t unit = m->routed[value].unit;
    return tensor_piece(&m->own[value], rows.first * unit, rows.count * unit);
}

struct tensor rows_piece(const struct process_group *group, const struct collective_round *m,
                         int rank, int value)
{
    int own = assumed_place(m, group->interface.rank);
    int64_t *brought = mem_array((size_t)m->n_assumed, sizeof *brought);
    struct row_range rows = {0, 0};
    bool has_root = m->has_root && m->root >= 0 && m->root < group->interface.size;
    const struct collective_routing routing = {
        .kind = m->kinds[value],
        .n = m->n_assumed,
        .root = has_root && m->assumed[m->root] ? assumed_place(m, m->root) : -1,
        .brought = brought};
    brought[own] = m->routed[value].brought;
    if (m->assumed[rank] && m->has_root == (routing.root >= 0))
        rows = collective_rows_of(&routing, own, assumed_place(m, rank));
    mem_free(brought);
    return own_rows(m, value, rows);
}

static bool parted_for_all(const struct process_group *group, const struct collective_round *m,
                           int member)
{
    int rank = m->members[member];
    int n = rank == group->interface.rank ? m->n_assumed : m->brought[rank].n_parted;
    return n == m->n_members;
}

bool rows_were_brought(const struct process_group *group, const struct collective_round *m,
                       int value, int member)
{
    enum collective_kind kind = m->kinds[value];
    bool brought = rows_are_brought(m, value, m->routed[value].routing.brought[member]);
    if (!brought || !collective_parts(kind))
        return brought;
    for (int k = 0; k < m->n_members && collective_adds(kind) && brought; k++)
        brought = parted_for_all(group, m, k);
    return brought && parted_for_all(group, m, member);
}

/* ---- results ---- */

static int own_place(const struct process_group *group, const struct collective_round *m)
{
    int place = 0;
    while (m->members[place] != group->interface.rank)
        place++;
    return place;
}

static int route(const struct process_group *group, struct collective_round *m, int value,
                 struct error *err)
{
    struct routed_value *routed = &m->routed[value];
    int64_t *brought = mem_array(2 * (size_t)m->n_members, sizeof *brought);
    int64_t *wanted = brought + m->n_members;
    routed->counts = brought;
    routed->routing = (struct collective_routing){.kind = m->kinds[value],
                                                  .n = m->n_members,
                                                  .root = -1,
                                                  .brought = brought,
                                                  .wanted = m->wants ? wanted : NULL};
    for (int k = 0; k < m->n_members; k++) {
        const int64_t own[2] = {routed->brought, routed->wanted}, *counts = own;
        if (m->members[k] != group->interface.rank &&
            rows_counts(group, m, m->members[k], value, &counts, err))
            return err->code;
        brought[k] = counts[0];
        wanted[k] = counts[1];
        if (m->has_root && m->members[k] == m->root)
            routed->routing.root = k;
    }
    return 0;
}

static int make_result(struct process_group *group, struct collective_round *m, int value, int own,
                       struct error *err)
{
    struct tensor like = m->own[value];
    like.shape = collective_result_shape(&m->routed[value].routing, &m->own[value].shape, own);
    int64_t bytes = shape_bytes(&like.shape, like.type);
    if (bytes < 0)
        return error_set(err, ERR_DATA, "members bring more rows than there can be");
    int code = recycle_alloc(group->memory, &m->results[value], &like, (size_t)bytes, err);
    if (!code && collective_gets_zeros(&m->routed[value].routing, own))
        memset(m->results[value].data, 0, (size_t)bytes);
    return code;
}

/* *rows, what a member has brought, becomes the rows of it that are this one's. */
static int take_piece(const struct process_group *group, const struct collective_round *m,
                      int value, int member, struct tensor *rows, struct error *err)
{
    const struct routed_value *routed = &m->routed[value];
    struct row_range range = collective_rows_of(&routed->routing, member, own_place(group, m));
    if (m->members[member] == group->interface.rank)
        *rows = own_rows(m, value, range);
    else if (rows->type != m->own[value].type || rows->shape.rank != 1 ||
             rows->shape.dims[0] != range.count * routed->unit)
        return error_set(err, ERR_PROTOCOL, "%s brings other rows than it says",
                         group->tasks[m->members[member]]);
    return 0;
}

static int gather_pieces(const struct process_group *group, struct collective_round *m, int value,
                         const struct tensor *const *pieces, struct error *err)
{
    const struct routed_value *routed = &m->routed[value];
    int64_t at = 0;
    int own = own_place(group, m), code = 0;
    for (int k = 0; k < m->n_members && !code; k++) {
        struct tensor rows = TENSOR_INIT, place;
        int64_t count = collective_rows_of(&routed->routing, k, own).count * routed->unit;
        bool is_here = k == own || rows_were_brought(group, m, value, k);
        if (is_here) {
            rows = *pieces[k];
            code = take_piece(group, m, value, k, &rows, err);
        }
        if (is_here && !code) {
            place = tensor_piece(&m->results[value], at, count);
            memcpy(place.data, rows.data, tensor_bytes(&rows));
            reduce_divide(m, value, &place);
        }
        at += count;
    }
    return code;
}

static int add_pieces(const struct process_group *group, struct collective_round *m, int value,
                      const struct tensor *const *pieces, struct error *err)
{
    const void **data = mem_array((size_t)m->n_members, sizeof *data);
    struct tensor rows = TENSOR_INIT;
    int code = 0;
    for (int k = 0; k < m->n_members && !code; k++) {
        rows = *pieces[k];
        code = take_piece(group, m, value, k, &rows, err);
        data[k] = rows.data;
    }
    int divisor = collective_divides(m->kinds[value]) ? m->n_members : 0;
    const struct collective_terms terms = {rows.type, data, m->n_members, divisor};
    if (!code && !collective_gets_zeros(&m->routed[value].routing, own_place(group, m)))
        collective_sum(&terms, m->results[value].data, NULL, tensor_count(&rows));
    mem_free(data);
    return code;
}

static int take_rows(struct process_group *group, struct collective_round *m, int value,
                     const struct tensor *const *pieces, struct error *err)
{
    if (collective_check_value(m->kinds[value], &m->own[value], err) ||
        collective_check_rows(&m->routed[value].routing, err) ||
        make_result(group, m, value, own_place(group, m), err))
        return err->code;
    if (collective_gathers(m->kinds[value]))
        return gather_pieces(group, m, value, pieces, err);
    return rows_were_brought(group, m, value, 0) ? add_pieces(group, m, value, pieces, err) : 0;
}

int rows_take(struct process_group *group, struct collective_round *m, int value,
              const struct tensor *const *pieces, struct error *err)
{
    if (route(group, m, value, err))
        return err->code;
    return take_rows(group, m, value, pieces, err) ? error_prefix(err, "'%s': ", m->name) : 0;
}
