/* SPDX-License-Identifier: Apache-2.0
 *
 * What members contribute to a round, in one record to each other member: all that is small, and
 * how many rows they have of the others. When the round is settled what is small becomes results,
 * and the rest of the rows is cut in chunks.
 *
 * Values that go by rows: who gets which is known when the round is settled, since what a member
 * brings says how many rows it has. Small rows go with that already, each member's if they are
 * small, and to each only its own: parts, if all of the group then take part.
 *
 * The rest comes in chunks. They are the same list in all members, in which those of one owner, or
 * from one member to another, take turns: so all begin with them at about the same pace, and no
 * link waits for another. A member has those of the list that it sends or gets; the number of each
 * follows from what all members said.
 */
#include <string.h>

#include "base/memory.h"
#include "transport/collective/collective_record.h"
#include "transport/collective/collective_round.h"

#define RELAY_LEAST_BYTES ((int64_t)32 << 10) /* of one of several that a server passes on */
#define UNCALLED_MAX 4096            /* rounds that others came to, and this member not yet */
#define ROWS_MAX ((uint64_t)1 << 47) /* of a member: sums of them are numbers */

/* ---- the call ---- */

void rows_call(struct process_group *group, struct collective_round *r,
               const struct collective_call *call)
{
    r->has_root = call->has_root;
    r->root = collective_group_rank(&call->group, group->interface.rank, call->root);
    r->wants = call->rows != NULL;
    r->routed = mem_array((size_t)r->n + 1, sizeof *r->routed);
    int n = collective_group_size(&r->group, group->interface.size), root = -1;
    if (r->has_root && r->root >= 0 && r->root < group->interface.size &&
        round_meets(group, r, (int)r->root))
        root = collective_group_place(&r->group, (int)r->root);
    for (int v = 0; v < r->n; v++) {
        struct routed_value *routed = &r->routed[v];
        enum collective_kind kind = r->kinds[v];
        const struct shape *shape = &r->own[v].shape;
        if (!collective_routes(kind, r->has_root))
            continue;
        *routed = (struct routed_value){.is_routed = true,
                                        .at = r->n_routed++,
                                        .unit = collective_row_elements(kind, shape),
                                        .brought = collective_rows(kind, shape),
                                        .wanted = r->wants ? call->rows[v] : 0,
                                        .counts = mem_array(2 * (size_t)n, sizeof(int64_t))};
        routed->routing = (struct row_routes){kind, n, root, routed->counts, NULL};
        routed->counts[collective_group_place(&r->group, group->interface.rank)] = routed->brought;
    }
}

void rows_free(struct collective_round *r)
{
    for (int v = 0; v < r->n && r->routed; v++)
        mem_free(r->routed[v].counts);
    mem_free(r->routed);
}

bool round_is_small(const struct collective_round *r, int value)
{
    const struct tensor *t = &r->own[value];
    enum collective_kind kind = r->kinds[value];
    return t->type == STRING || (!r->on_device && collective_adds(kind) &&
                                 (!collective_can_add(kind, t->type) ||
                                  (int64_t)tensor_bytes(t) <= COLLECTIVE_SMALL_BYTES));
}

/* ---- what is said ---- */

int contribution_fields(const struct collective_round *r)
{
    return r->declined + (r->n_routed > 0) + (r->on_device != NULL);
}

void contribution_pack(const struct collective_round *r, uint64_t number, msgpack_packer *packer)
{
    if (r->declined)
        pack_key_bool(packer, "nothing", true);
    if (r->n_routed)
        pack_key_array(packer, "rows", 2 * (size_t)r->n_routed);
    for (int v = 0; v < r->n; v++) {
        if (!r->routed[v].is_routed)
            continue;
        msgpack_pack_int64(packer, r->routed[v].brought);
        msgpack_pack_int64(packer, r->routed[v].wanted);
    }
    if (r->on_device)
        pack_key_uint(packer, "number", number);
}

static bool is_small_by_rows(const struct collective_round *r, int value, int64_t rows)
{
    const struct tensor *own = &r->own[value];
    int64_t bytes =
        own->type == STRING ? 0 : r->routed[value].unit * (int64_t)dtype_bytes(own->type);
    if (own->type == STRING || (collective_parts(r->kinds[value]) && r->wants))
        return false;
    return !bytes || rows <= COLLECTIVE_SMALL_BYTES / bytes;
}

static struct tensor own_rows(const struct collective_round *r, int value, struct row_range rows)
{
    int64_t unit = r->routed[value].unit;
    return tensor_piece(&r->own[value], rows.first * unit, rows.count * unit);
}

/* The rows that the member gets if all of the group take part. */
static struct tensor piece_for(const struct process_group *group, const struct collective_round *r,
                               int rank, int value)
{
    const struct row_routes *routing = &r->routed[value].routing;
    int own = collective_group_place(&r->group, group->interface.rank);
    struct row_range rows = {0, 0};
    if (r->has_root == (routing->root >= 0)) /* else it is of no member */
        rows = collective_rows_of(routing, own, collective_group_place(&r->group, rank));
    return own_rows(r, value, rows);
}

/* Returns whether the member's rows were in what it contributed; of a sum, those of all. */
static bool were_contributed(const struct process_group *group, const struct collective_round *r,
                             int value, int member)
{
    bool is_for_all = r->n_members == collective_group_size(&r->group, group->interface.size) ||
                      !collective_parts(r->kinds[value]);
    return is_for_all && is_small_by_rows(r, value, r->routed[value].routing.brought[member]);
}

void contribution_send(struct process_group *group, struct collective_round *r)
{
    struct tensor *small = mem_array((size_t)r->n + 1, sizeof *small);
    for (int rank = 0; rank < group->interface.size; rank++) {
        int n = 0;
        if (rank == group->interface.rank || !round_meets(group, r, rank))
            continue;
        for (int i = 0; i < r->n; i++) {
            const struct routed_value *routed = &r->routed[i];
            if (routed->is_routed && is_small_by_rows(r, i, routed->brought))
                small[n++] = piece_for(group, r, rank, i);
            else if (!routed->is_routed && round_is_small(r, i))
                small[n++] = r->own[i];
        }
        const struct reduce bring = {
            .what = REDUCE_BRING, .round = r, .index = r->signature, .tensors = small, .n = n};
        reduce_send(group, rank, &bring);
    }
    mem_free(small);
}

/* Reads how many rows it has, in place of what a record that was refused said. False: it says
 * something else. */
static bool read_rows(const struct record *record, struct round_contribution *c)
{
    const msgpack_object *rows = record_field(&record->header, "rows");
    bool good = !rows || (rows->type == MSGPACK_OBJECT_ARRAY && rows->via.array.size < INT32_MAX);
    c->n_rows = rows && good ? (int)rows->via.array.size : 0;
    mem_free(c->rows);
    c->rows = mem_array((size_t)c->n_rows + 1, sizeof *c->rows);
    for (int i = 0; i < c->n_rows && good; i++) {
        const msgpack_object *number = &rows->via.array.ptr[i];
        good = number->type == MSGPACK_OBJECT_POSITIVE_INTEGER && number->via.u64 <= ROWS_MAX;
        c->rows[i] = number->via.u64;
    }
    return good;
}

int contribution_take(struct process_group *group, struct collective_round *r, int rank,
                      uint64_t signature, const struct record *record, struct error *err)
{
    struct round_contribution *c = &r->contributions[rank];
    if (c->here || group->ends[rank].left || group->n_uncalled > UNCALLED_MAX)
        return error_set(err, ERR_PROTOCOL, "comes to '%.200s' twice, or to too much", r->name);
    if (!read_rows(record, c))
        return error_set(err, ERR_PROTOCOL, "says of '%.200s' how many rows it has, and how not",
                         r->name);
    c->here = true;
    c->nothing = record_field(&record->header, "nothing") != NULL;
    record_get_uint(&record->header, "number", &c->number);
    c->signature = signature;
    c->n = record->n_tensors;
    c->values = mem_array((size_t)record->n_tensors + 1, sizeof *c->values);
    for (int i = 0; i < record->n_tensors; i++)
        tensor_share(&c->values[i], &record->tensors[i].tensor);
    return 0;
}

/* ---- chunks ---- */

/* The cutting of one value: */
struct rows_cut {
    const struct collective_round *round;
    int value;
    uint64_t index;       /* of its first chunk */
    bool adds, is_to_all; /* its flows are */
    uint64_t n_flows;     /* of all members, */
    int64_t longest;      /* and the rows of the longest */
    chunk_vec flows; /* of one member's rows, or of their sum, to another or to all: those that */
};                   /* begin or end here */

/* `from` to `to`, as places among the members. */
static void add_flow(struct rows_cut *c, int from, int to)
{
    const struct collective_round *r = c->round;
    const struct routed_value *routed = &r->routed[c->value];
    struct row_range rows = collective_rows_of(&routed->routing, from, to);
    bool sends = !c->adds && from == r->place, gets = c->is_to_all || to == r->place;
    if (!rows.count || !routed->unit)
        return;
    struct chunk next = {.index = c->index + c->n_flows++,
                         .value = c->value,
                         .piece = -1,
                         .first = rows.first * routed->unit};
    c->longest = rows.count > c->longest ? rows.count : c->longest;
    if (c->adds)
        next.program = gets ? &program_owner : &program_member;
    else
        next.program = sends ? &program_source : &program_destination;
    next.peer = r->members[c->adds || sends ? to : from];
    if (c->is_to_all && sends)
        next.peer = TO_ALL;
    for (int k = 0; k < from && !c->adds && !sends && gets; k++) /* in what this member gets */
        next.at += collective_rows_of(&routed->routing, k, r->place).count * routed->unit;
    if (!c->adds && !sends && !gets) /* it is not of this member's memory, however long */
        return;
    next.count = rows.count * routed->unit;
    vec_push(&c->flows, next);
}

/* A server passes rows on that are for all others; for one other alone it would be a way around. */
#define RELAY_MEMBERS_MIN 3

/* Flows through a server are cut if they are not too small, so that the first chunks are on their
 * way to the others while the last ones still come. All flows are looked at, as all members have to
 * cut alike. False: so many there cannot be. */
static bool cut_value(struct process_group *group, struct collective_round *r, int value,
                      uint64_t *index, chunk_vec *chunks)
{
    const struct routed_value *routed = &r->routed[value];
    struct rows_cut c = {.round = r, .value = value, .index = *index};
    int n = r->n_members;
    int64_t bytes = (int64_t)dtype_bytes(r->own[value].type), elements;
    int64_t most = CHUNK_BYTES / bytes, least = RELAY_LEAST_BYTES / bytes;
    uint64_t n_chunks;
    size_t at = chunks->n;
    c.adds = collective_adds(r->kinds[value]);
    c.is_to_all = !collective_parts(r->kinds[value]) && routed->routing.root < 0;
    for (int turn = 0; turn < (c.adds || c.is_to_all ? 1 : n); turn++)
        for (int from = 0; from < n; from++) {
            int to = (from + turn) % n;
            bool is_own = !c.adds && !c.is_to_all && from == to;
            if (!is_own && !were_contributed(group, r, value, from))
                add_flow(&c, c.adds ? 0 : from, to);
        }
    r->has_late |= c.n_flows > 0;
    bool is_relayed = c.is_to_all && r->by_servers && n >= RELAY_MEMBERS_MIN;
    if (is_relayed) {
        int64_t each = c.longest > most ? most : c.longest * routed->unit / CHUNKS_EACH;
        most = each > most ? most : each > least ? each : least;
    }
    chunks_append(chunks, &c.flows, c.n_flows, most);
    for (; at < chunks->n && is_relayed; at++) {
        uint64_t number = chunks->items[at].index - c.index;
        chunks->items[at].peer = server_of(group, r, number / c.n_flows + number % c.n_flows);
    }
    /* The next value is behind as many chunks of each flow as the longest one has. */
    if (__builtin_mul_overflow(c.longest, routed->unit, &elements))
        return false;
    uint64_t turns = (uint64_t)elements / (uint64_t)most + 1;
    return !__builtin_mul_overflow(turns, c.n_flows, &n_chunks) &&
           !__builtin_add_overflow(c.index, n_chunks, index);
}

static int cut_rows(struct process_group *group, struct collective_round *r, struct error *err)
{
    chunk_vec chunks = VEC_INIT;
    uint64_t index = r->chunks.n;
    bool fits = true;
    for (int v = 0; v < r->n && fits; v++)
        fits = !r->routed[v].is_routed || cut_value(group, r, v, &index, &chunks);
    pthread_mutex_lock(&group->lock);
    chunks_add(r, &chunks);
    pthread_mutex_unlock(&group->lock);
    return fits ? 0
                : error_set(err, ERR_DATA, "'%s': members bring more rows than there can be",
                            r->name);
}

/* ---- results of what is small ---- */

/* It is known now whose rows go to whom: makes memory for what this member gets. */
static int route(struct process_group *group, struct collective_round *r, int value,
                 struct error *err)
{
    struct routed_value *routed = &r->routed[value];
    int64_t *brought = routed->counts, *wanted = brought + r->n_members;
    struct tensor like = r->own[value];
    routed->routing =
        (struct row_routes){r->kinds[value], r->n_members, -1, brought, r->wants ? wanted : NULL};
    for (int k = 0; k < r->n_members; k++) {
        const struct round_contribution *c = &r->contributions[r->members[k]];
        const uint64_t own[2] = {(uint64_t)routed->brought, (uint64_t)routed->wanted};
        if (k != r->place && c->n_rows != 2 * r->n_routed)
            return error_set(err, ERR_PROTOCOL, "'%s': %s does not say how many rows it brings",
                             r->name, group->ends[r->members[k]].task);
        const uint64_t *counts = k == r->place ? own : c->rows + 2 * (size_t)routed->at;
        brought[k] = (int64_t)counts[0];
        wanted[k] = (int64_t)counts[1];
        if (r->has_root && r->members[k] == r->root)
            routed->routing.root = k;
    }
    if (collective_check_value(r->kinds[value], &like, err) ||
        collective_check_rows(&routed->routing, err))
        return error_prefix(err, "'%s': ", r->name);
    like.shape = collective_result_shape(&routed->routing, &like.shape, r->place);
    int64_t bytes = shape_bytes(&like.shape, like.type);
    if (bytes < 0)
        return error_set(err, ERR_DATA, "'%s': members bring more rows than there can be", r->name);
    if (buffer_pool_alloc(group->memory, &r->results[value], &like, (size_t)bytes, err))
        return error_prefix(err, "'%s': ", r->name);
    if (collective_gets_zeros(&routed->routing, r->place))
        memset(r->results[value].data, 0, (size_t)bytes);
    return 0;
}

void rows_divide(const struct collective_round *r, int value, struct tensor *piece)
{
    if (collective_gathers(r->kinds[value]) && collective_divides(r->kinds[value]))
        collective_sum_tensors(piece, 1, r->n_members, piece);
}

/* Finds that member's contribution to the value, borrowed; empty: it comes in chunks. */
static int find_value(const struct process_group *group, const struct collective_round *r, int i,
                      int k, struct tensor *value, struct error *err)
{
    struct round_contribution *c = &r->contributions[r->members[k]];
    const struct routed_value *routed = &r->routed[i];
    struct row_range range = {0, 0};
    *value = (struct tensor){0};
    if (routed->is_routed)
        range = collective_rows_of(&routed->routing, k, r->place);
    if (k == r->place) {
        *value = routed->is_routed ? own_rows(r, i, range) : r->own[i];
        return 0;
    }
    if (routed->is_routed && !is_small_by_rows(r, i, routed->routing.brought[k]))
        return 0;
    if (c->n_taken == c->n)
        return error_set(err, ERR_PROTOCOL, "'%s': %s brings too little", r->name,
                         group->ends[r->members[k]].task);
    const struct tensor *t = &c->values[c->n_taken++], *own = &r->own[i];
    if (routed->is_routed && !were_contributed(group, r, i, k))
        return 0;
    *value = *t;
    if (routed->is_routed && (t->type != own->type || t->shape.rank != 1 ||
                              t->shape.dims[0] != range.count * routed->unit))
        return error_set(err, ERR_PROTOCOL, "'%s': %s brings other rows than it says", r->name,
                         group->ends[r->members[k]].task);
    if (!routed->is_routed && (t->type != own->type || !shape_equal(&t->shape, &own->shape)))
        return error_set(err, ERR_DATA, "'%s': a member brings %s, another %s", r->name,
                         shape_text_typed(t->type, &t->shape),
                         shape_text_typed(own->type, &own->shape));
    return 0;
}

static int combine(struct process_group *group, struct collective_round *r, int i,
                   struct tensor *values, struct error *err)
{
    enum collective_kind kind = r->kinds[i];
    const struct routed_value *routed = &r->routed[i];
    struct tensor *result = &r->results[i];
    int n = r->n_members, root = 0;
    if (routed->is_routed && collective_gets_zeros(&routed->routing, r->place))
        return 0;
    if (collective_adds(kind)) {
        if (!routed->is_routed && tensor_alloc(result, values->type, &values->shape, err))
            return error_prefix(err, "'%s': ", r->name);
        if (!routed->is_routed || were_contributed(group, r, i, 0))
            collective_sum_tensors(values, n, collective_divides(kind) ? n : 0, result);
    } else if (routed->is_routed) {
        for (int64_t k = 0, at = 0; k < n; k++) {
            struct row_range range = collective_rows_of(&routed->routing, (int)k, r->place);
            struct tensor place = tensor_piece(result, at, range.count * routed->unit);
            at += place.shape.dims[0];
            if (!values[k].data)
                continue;
            memcpy(place.data, values[k].data, tensor_bytes(&place));
            rows_divide(r, i, &place);
        }
    } else {
        for (int k = 0; k < n && r->has_root; k++)
            if (r->members[k] == r->root)
                root = k;
        if (tensor_copy(result, &values[root], err))
            return error_prefix(err, "'%s': ", r->name);
    }
    return 0;
}

int contributions_combine(struct process_group *group, struct collective_round *r,
                          struct error *err)
{
    struct tensor *values = mem_array((size_t)r->n_members, sizeof *values);
    int code = 0;
    for (int i = 0; !code && i < r->n; i++) {
        bool is_routed = r->routed[i].is_routed;
        if (!is_routed && !round_is_small(r, i))
            continue;
        if (is_routed)
            code = route(group, r, i, err);
        else if (collective_check_value(r->kinds[i], &r->own[i], err))
            code = error_prefix(err, "'%s': ", r->name);
        for (int k = 0; k < r->n_members && !code; k++)
            code = find_value(group, r, i, k, &values[k], err);
        if (!code)
            code = combine(group, r, i, values, err);
    }
    mem_free(values);
    return code ? code : cut_rows(group, r, err);
}
