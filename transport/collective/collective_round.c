/* SPDX-License-Identifier: Apache-2.0
 *
 * Rounds: their list, their states, and the contributions of members.
 *
 * A contribution is one record to each other member, with all small values and the row counts. When
 * the round settles, small values become results, and other rows are cut into chunks.
 *
 * Values routed by rows: which member gets which rows is known when the round settles, since a
 * contribution says how many rows it has. A member's rows are in its contribution if they are
 * small; each other member gets only its own: parts, valid if the whole group takes part.
 *
 * Other rows come in chunks. All members have the same list of chunks, in which the chunks of
 * owners, or of pairs of members, alternate: so all members work on them at about the same pace,
 * and no link waits for another. Each member keeps the chunks that it sends or gets; the index of
 * each follows from all contributions.
 */
#include <string.h>

#include "base/failpoint.h"
#include "base/map.h"
#include "base/memory.h"
#include "transport/collective/collective_record.h"
#include "transport/collective/collective_round.h"
#include "transport/value/segment.h"

#define UNCALLED_MAX 4096            /* rounds that only others have called */
#define ROWS_MAX ((uint64_t)1 << 47) /* of a member, so that sums do not overflow */

/* ---- the list ---- */

static bool meets(const struct process_group *group, const struct collective_round *r, int rank)
{
    return collective_group_has(&r->call.group, group->interface.rank, rank);
}

struct collective_round *round_find(struct process_group *group, const struct collective_key *key)
{
    struct collective_round *r = group->rounds;
    while (r && (r->call.key.step != key->step || r->call.key.iteration != key->iteration ||
                 strcmp(r->name, key->name) != 0))
        r = r->next;
    return r;
}

struct collective_round *round_get(struct process_group *group, const struct collective_key *key)
{
    struct collective_round *r = round_find(group, key);
    if (r)
        return r;
    r = mem_alloc(sizeof *r);
    r->holders = 1;
    r->name = mem_strdup(key->name);
    r->call.key = *key;
    r->call.key.name = r->name;
    r->contributions = mem_array((size_t)group->interface.size, sizeof *r->contributions);
    r->next = group->rounds;
    group->rounds = r;
    group->n_uncalled++;
    return r;
}

struct collective_round *round_hold(struct process_group *group,
                                    bool (*is_it)(const struct process_group *group,
                                                  const struct collective_round *round))
{
    pthread_mutex_lock(&group->lock);
    struct collective_round *r = group->rounds;
    while (r && !is_it(group, r))
        r = r->next;
    if (r)
        r->holders++;
    pthread_mutex_unlock(&group->lock);
    return r;
}

static void release(struct tensor *tensors, int n)
{
    for (int i = 0; tensors && i < n; i++)
        tensor_release(&tensors[i]);
    mem_free(tensors);
}

void round_drop(struct process_group *group, struct collective_round *r)
{
    pthread_mutex_lock(&group->lock);
    bool last = !--r->holders;
    pthread_mutex_unlock(&group->lock);
    if (!last)
        return;
    release(r->own, r->call.n);
    if (r->answered) { /* it may become the sole holder: all others have released the results */
        const struct collective_results results = {r->results, r->call.at, r->n_members};
        r->answered->done(r->answered, &results, NULL);
    }
    chunks_free(group, r);
    for (int k = 0; k < group->interface.size; k++) {
        release(r->contributions[k].values, r->contributions[k].n);
        mem_free(r->contributions[k].rows);
    }
    mem_free(r->routed);
    mem_free(r->counts);
    release(r->results, r->call.n);
    device_sum_free(r->on_device);
    mem_free(r->contributions);
    mem_free(r->members);
    mem_free(r->kinds);
    mem_free(r->name);
    mem_free(r);
}

struct collective_waiter *round_end(struct process_group *group, struct collective_round *r)
{
    struct collective_waiter *waiter = r->waiter;
    struct collective_round **at = &group->rounds;
    if (r->state == ROUND_OVER)
        return NULL;
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    group->n_uncalled -= r->state == ROUND_NEW;
    r->holders--; /* the list's hold; the caller has another */
    r->waiter = NULL;
    r->state = ROUND_OVER;
    if (group->sums)
        device_sums_look_at(group->sums, r);
    return waiter;
}

void round_fail(struct process_group *group, struct collective_round *r, const struct error *err)
{
    pthread_mutex_lock(&group->lock);
    struct collective_waiter *waiter = round_end(group, r);
    pthread_mutex_unlock(&group->lock);
    if (waiter)
        waiter->done(waiter, NULL, err);
}

void round_lose(struct process_group *group, struct collective_round *r, const struct error *why)
{
    struct error err = *why;
    error_waited(&err, "'%s'", r->name);
    round_fail(group, r, &err);
}

/* ---- the call ---- */

void rows_call(struct process_group *group, struct collective_round *r)
{
    int n = collective_group_size(&r->call.group, group->interface.size), root = -1;
    r->root = collective_group_rank(&r->call.group, group->interface.rank, r->call.root);
    r->routed = mem_array((size_t)r->call.n + 1, sizeof *r->routed);
    r->counts = mem_array(2 * (size_t)n * (size_t)r->call.n + 1, sizeof *r->counts);
    if (r->call.has_root && r->root >= 0 && r->root < group->interface.size &&
        meets(group, r, (int)r->root))
        root = collective_group_place(&r->call.group, (int)r->root);
    for (int v = 0; v < r->call.n; v++) {
        struct routed_value *routed = &r->routed[v];
        enum collective_kind kind = r->kinds[v];
        const struct shape *shape = &r->own[v].shape;
        *routed = (struct routed_value){.is_routed = collective_routes(kind, r->call.has_root),
                                        .unit = collective_row_elements(kind, shape),
                                        .brought = collective_rows(kind, shape),
                                        .wanted = r->call.rows ? r->call.rows[v] : 0,
                                        .counts = r->counts + 2 * (size_t)n * (size_t)v};
        routed->at = routed->is_routed ? r->n_routed++ : 0;
        routed->routing = (struct row_routes){kind, n, root, routed->counts, NULL};
        routed->counts[collective_group_place(&r->call.group, group->interface.rank)] =
            routed->brought;
    }
}

bool round_is_small(const struct collective_round *r, int value, int64_t rows)
{
    const struct tensor *own = &r->own[value];
    enum collective_kind kind = r->kinds[value];
    bool is_routed = r->routed[value].is_routed;
    int64_t bytes = r->routed[value].unit * (int64_t)dtype_bytes(own->type);
    if (own->type == STRING)
        return !is_routed;
    if (is_routed ? collective_parts(kind) && r->call.rows : r->on_device || !collective_adds(kind))
        return false;
    return (!is_routed && !collective_can_add(kind, own->type)) || !bytes ||
           rows <= COLLECTIVE_SMALL_BYTES / bytes;
}

/* Makes a signature of kinds, types, and shapes, except the number of gathered rows. */
static uint64_t sign(const struct collective_round *r, int size)
{
    const int64_t call[7] = {r->call.n,
                             r->call.has_root,
                             r->call.has_root ? r->root : 0,
                             r->call.rows != NULL,
                             r->call.group.size,
                             r->call.group.stride,
                             r->call.by_servers};
    uint64_t hash =
        hash_bytes(call, sizeof call, r->on_device ? UINT64_MAX : (uint64_t)r->call.schedule.kind);
    if (r->call.schedule.hosts)
        hash =
            hash_bytes(r->call.schedule.hosts, (size_t)size * sizeof *r->call.schedule.hosts, hash);
    for (int i = 0; i < r->call.n; i++) {
        const struct shape *shape = &r->own[i].shape;
        bool rows = collective_gathers(r->kinds[i]) && shape->rank > 0;
        const int64_t head[3] = {r->kinds[i], r->own[i].type, shape->rank};
        hash = hash_bytes(head, sizeof head, hash);
        hash = hash_bytes(shape->dims + rows, (size_t)(shape->rank - rows) * sizeof *shape->dims,
                          hash);
    }
    return hash;
}

/* Makes memory for a value's sum: the value's own if only the call holds it, as it is no longer
 * needed when the sum arrives; or memory that others can read, if the value is in such memory. */
static void make_result(struct process_group *group, const struct collective_call *call, int value,
                        struct collective_round *r, struct error *err)
{
    const struct tensor *own = &r->own[value];
    bool alone = atomic_load(&own->buffer->holders) == 2 && /* the caller and the round */
                 (!segment_has(own) || segment_is_own(own));
    if (call->yields && alone)
        tensor_share(&r->results[value], own);
    else if (!segment_has(own) || !segment_suits(own->type, tensor_bytes(own)) ||
             !segments_alloc(conns_segments(group->conns), &r->results[value], own->type,
                             &own->shape))
        buffer_pool_alloc(group->memory, &r->results[value], own, tensor_bytes(own), err);
}

struct collective_round *round_call(struct process_group *group, const struct collective_call *call,
                                    struct collective_waiter *waiter, struct error *err)
{
    struct collective_round *r = round_get(group, &call->key);
    BUG_ON(r->state != ROUND_NEW);
    r->holders++;
    r->waiter = waiter;
    r->state = ROUND_CALLING;
    r->call = *call;
    r->call.key.name = r->name;
    r->declined = !waiter;
    group->n_calls++;
    group->n_uncalled--;
    if (call->at.device) { /* sums on devices have no schedule */
        r->call.schedule = (struct collective_schedule){0};
        device_sum_new(group, r);
    }
    r->call.by_servers &= count_servers(group) > 0;
    r->kinds = mem_array((size_t)call->n + 1, sizeof *r->kinds);
    r->own = mem_array((size_t)call->n + 1, sizeof *r->own);
    r->results = mem_array((size_t)call->n + 1, sizeof *r->results);
    for (int i = 0; i < call->n; i++) {
        r->kinds[i] = call->kinds[i];
        tensor_share(&r->own[i], &call->values[i]);
    }
    rows_call(group, r);
    r->signature = sign(r, group->interface.size);
    for (int i = 0; !r->on_device && !err->code && i < r->call.n; i++)
        if (!r->routed[i].is_routed && !round_is_small(r, i, r->routed[i].brought))
            make_result(group, call, i, r, err);
    return r;
}

/* ---- contributions ---- */

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
    for (int v = 0; v < r->call.n; v++) {
        if (!r->routed[v].is_routed)
            continue;
        msgpack_pack_int64(packer, r->routed[v].brought);
        msgpack_pack_int64(packer, r->routed[v].wanted);
    }
    if (r->on_device)
        pack_key_uint(packer, "number", number);
}

static struct tensor own_rows(const struct collective_round *r, int value, struct row_range rows)
{
    int64_t unit = r->routed[value].unit;
    const struct tensor *own = &r->own[value];
    return own->type == STRING ? *own : tensor_piece(own, rows.first * unit, rows.count * unit);
}

/* Returns the rows that the member gets if the whole group takes part. */
static struct tensor piece_for(const struct process_group *group, const struct collective_round *r,
                               int rank, int value)
{
    const struct row_routes *routing = &r->routed[value].routing;
    int own = collective_group_place(&r->call.group, group->interface.rank);
    struct row_range rows = {0, 0};
    if (r->call.has_root == (routing->root >= 0)) /* else the root is no member */
        rows = collective_rows_of(routing, own, collective_group_place(&r->call.group, rank));
    return own_rows(r, value, rows);
}

bool were_contributed(const struct process_group *group, const struct collective_round *r,
                      int value, int place)
{
    bool is_for_all =
        r->n_members == collective_group_size(&r->call.group, group->interface.size) ||
        !collective_parts(r->kinds[value]);
    return is_for_all && round_is_small(r, value, r->routed[value].routing.brought[place]);
}

/* Sends the contribution to the other members. */
static void contribution_send(struct process_group *group, struct collective_round *r)
{
    struct tensor *small = mem_array((size_t)r->call.n + 1, sizeof *small);
    for (int rank = 0; rank < group->interface.size; rank++) {
        int n = 0;
        if (rank == group->interface.rank || !meets(group, r, rank))
            continue;
        for (int i = 0; i < r->call.n; i++)
            if (round_is_small(r, i, r->routed[i].brought))
                small[n++] = piece_for(group, r, rank, i);
        const struct reduce bring = {
            .what = REDUCE_BRING, .round = r, .index = r->signature, .tensors = small, .n = n};
        reduce_send(group, rank, &bring);
    }
    mem_free(small);
}

/* Reads the row counts of a contribution, replacing those of a refused record. Returns false if
 * they are malformed. */
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

/* ---- results of small values ---- */

/* Sets the routing, which is now known, and allocates what this member gets. */
static int route(struct process_group *group, struct collective_round *r, int value,
                 struct error *err)
{
    struct routed_value *routed = &r->routed[value];
    int64_t *brought = routed->counts, *wanted = brought + r->n_members;
    struct tensor like = r->own[value];
    routed->routing = (struct row_routes){r->kinds[value], r->n_members, -1, brought,
                                          r->call.rows ? wanted : NULL};
    for (int k = 0; k < r->n_members; k++) {
        const struct round_contribution *c = &r->contributions[r->members[k]];
        const uint64_t own[2] = {(uint64_t)routed->brought, (uint64_t)routed->wanted};
        bool is_said = k != r->place && routed->is_routed; /* else it is as here */
        if (is_said && c->n_rows != 2 * r->n_routed)
            return error_set(err, ERR_PROTOCOL, "'%s': %s does not say how many rows it brings",
                             r->name, group->ends[r->members[k]].task);
        const uint64_t *counts = is_said ? c->rows + 2 * (size_t)routed->at : own;
        brought[k] = (int64_t)counts[0];
        wanted[k] = (int64_t)counts[1];
        if (r->call.has_root && r->members[k] == r->root)
            routed->routing.root = k;
    }
    if (collective_check_value(r->kinds[value], &like, err) ||
        collective_check_rows(&routed->routing, err))
        return error_prefix(err, "'%s': ", r->name);
    if (r->kinds[value] == COLLECTIVE_FIRST)
        return 0;
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

/* Finds member k's contribution to value i, borrowed; empty: it comes in chunks. */
static int find_value(const struct process_group *group, const struct collective_round *r, int i,
                      int k, struct tensor *value, struct error *err)
{
    struct round_contribution *c = &r->contributions[r->members[k]];
    const struct routed_value *routed = &r->routed[i];
    const struct tensor *own = &r->own[i];
    struct row_range range = collective_rows_of(&routed->routing, k, r->place);
    struct shape shape =
        own->type == STRING ? own->shape : shape_vector(range.count * routed->unit);
    *value = k == r->place ? own_rows(r, i, range) : (struct tensor){0};
    if (k == r->place || !round_is_small(r, i, routed->routing.brought[k]))
        return 0;
    if (c->n_taken == c->n)
        return error_set(err, ERR_PROTOCOL, "'%s': %s brings too little", r->name,
                         group->ends[r->members[k]].task);
    const struct tensor *t = &c->values[c->n_taken++];
    if (!were_contributed(group, r, i, k))
        return 0;
    *value = *t;
    return t->type == own->type && shape_equal(&t->shape, &shape)
               ? 0
               : error_set(err, ERR_PROTOCOL, "'%s': %s brings other rows than it says", r->name,
                           group->ends[r->members[k]].task);
}

static int combine(struct process_group *group, struct collective_round *r, int i,
                   struct tensor *values, struct error *err)
{
    enum collective_kind kind = r->kinds[i];
    const struct routed_value *routed = &r->routed[i];
    struct tensor *result = &r->results[i];
    int n = r->n_members, root = routed->routing.root;
    if (kind == COLLECTIVE_FIRST) {
        if (tensor_copy(result, &values[root < 0 ? 0 : root], err))
            return error_prefix(err, "'%s': ", r->name);
    } else if (collective_gets_zeros(&routed->routing, r->place)) {
        return 0;
    } else if (collective_adds(kind)) {
        if (were_contributed(group, r, i, 0))
            collective_sum_tensors(values, n, collective_divides(kind) ? n : 0, result);
    } else {
        for (int64_t k = 0, at = 0; k < n; k++) {
            struct row_range range = collective_rows_of(&routed->routing, (int)k, r->place);
            struct tensor place = tensor_piece(result, at, range.count * routed->unit);
            at += place.shape.dims[0];
            if (!values[k].data)
                continue;
            memcpy(place.data, values[k].data, tensor_bytes(&place));
            rows_divide(r, i, &place);
        }
    }
    return 0;
}

int contributions_combine(struct process_group *group, struct collective_round *r,
                          struct error *err)
{
    struct tensor *values = mem_array((size_t)r->n_members, sizeof *values);
    int code = 0;
    for (int i = 0; !code && i < r->call.n; i++) {
        if (!r->routed[i].is_routed && !round_is_small(r, i, r->routed[i].brought))
            continue;
        code = route(group, r, i, err);
        for (int k = 0; k < r->n_members && !code; k++)
            code = find_value(group, r, i, k, &values[k], err);
        if (!code)
            code = combine(group, r, i, values, err);
    }
    mem_free(values);
    return code;
}

/* ---- the members that take part ---- */

/* With the lock: returns whether the round can settle: all others have contributed or left. */
static bool has_all(const struct process_group *group, const struct collective_round *r)
{
    bool all = r->state == ROUND_CALLED;
    for (int k = 0; k < group->interface.size && all; k++) {
        const struct group_end *end = &group->ends[k];
        bool has_left = end->left || (end->leaving && !r->call.with_leaving);
        all = k == group->interface.rank || r->contributions[k].here || has_left ||
              !meets(group, r, k);
    }
    return all;
}

/* With the lock. */
static void settle(struct process_group *group, struct collective_round *r)
{
    int size = group->interface.size, rank = group->interface.rank;
    r->members = mem_array((size_t)size, sizeof *r->members);
    for (int k = 0; k < size; k++) {
        if (k == rank)
            r->place = r->n_members;
        if (k == rank || (r->contributions[k].here && meets(group, r, k)))
            r->members[r->n_members++] = k;
    }
    if (collective_group_size(&r->call.group, size) == size && !r->call.with_leaving)
        group->first = r->members[0];
    r->state = ROUND_SETTLED;
}

/* Checks that contributions agree, and come from members of this group. */
static int check(const struct process_group *group, const struct collective_round *r,
                 struct error *err)
{
    const char *own = group->ends[group->interface.rank].task;
    bool has_root = !r->call.has_root;
    for (int k = 0; k < group->interface.size; k++) {
        if (r->contributions[k].here && !meets(group, r, k))
            return error_set(err, ERR_DATA, "'%s': %s is of another group than %s", r->name,
                             group->ends[k].task, own);
        if (r->contributions[k].here && r->contributions[k].nothing)
            return error_set(err, ERR_DATA, "'%s': %s brings nothing: its input is dead", r->name,
                             group->ends[k].task);
    }
    for (int i = 0; i < r->n_members; i++) {
        int k = r->members[i];
        has_root |= k == r->root;
        if (k == group->interface.rank || r->contributions[k].signature == r->signature)
            continue;
        struct str values = STR_INIT;
        for (int v = 0; v < r->call.n && v < 8; v++) {
            str_printf(&values, "%s", v ? ", " : "");
            shape_print_typed(&values, r->own[v].type, &r->own[v].shape);
        }
        if (r->call.n > 8)
            str_printf(&values, " and %d more", r->call.n - 8);
        error_set(err, ERR_DATA, "'%s': %s brings other values than %s, which has %s", r->name,
                  group->ends[k].task, own, str_text(&values));
        str_release(&values);
        return err->code;
    }
    return has_root ? 0
                    : error_set(err, ERR_DATA, "'%s': the root, member %lld, takes no part",
                                r->name, (long long)r->root);
}

/* ---- progress ---- */

/* Continues a round that has just settled. */
static void begin(struct process_group *group, struct collective_round *r)
{
    struct error err = ERROR_INIT;
    int refused = -1;
    if (FAILPOINT("collective.begin"))
        error_set(&err, ERR_UNAVAILABLE, "failpoint collective.begin");
    bool agrees = !err.code && !r->declined && !check(group, r, &err) &&
                  !contributions_combine(group, r, &err);
    if (agrees && r->on_device && r->n_members < group->interface.size) {
        device_sum_to_host(r->on_device);
        return;
    }
    pthread_mutex_lock(&group->lock);
    if (agrees && r->state == ROUND_SETTLED) /* else it was cancelled */
        chunks_run(group, r, &refused, &err);
    if (r->on_device && r->state == ROUND_RUNNING)
        device_sums_look_at(group->sums, r);
    pthread_mutex_unlock(&group->lock);
    if (refused >= 0)
        end_close(group, refused, &err);
    else if (!agrees || err.code)
        round_fail(group, r, &err);
}

void round_go_on(struct process_group *group, struct collective_round *r)
{
    pthread_mutex_lock(&group->lock);
    bool settles = has_all(group, r);
    if (settles)
        settle(group, r);
    pthread_mutex_unlock(&group->lock);
    if (settles)
        begin(group, r);
    chunks_begin(group, r);
    pthread_mutex_lock(&group->lock);
    if (r->state == ROUND_RUNNING && !r->n_missing)
        r->answered = round_end(group, r);
    pthread_mutex_unlock(&group->lock);
}

void round_tell(struct process_group *group, struct collective_round *r, struct error *err)
{
    if (!err->code)
        contribution_send(group, r);
    if (!err->code && FAILPOINT("collective.bring"))
        error_set(err, ERR_UNAVAILABLE, "failpoint collective.bring");
    pthread_mutex_lock(&group->lock);
    if (r->state == ROUND_CALLING) /* else it was cancelled */
        r->state = ROUND_CALLED;
    if (!err->code && group->failed.code) {
        *err = group->failed;
        error_waited(err, "'%s'", r->name);
    }
    pthread_mutex_unlock(&group->lock);
    if (err->code)
        round_fail(group, r, err);
    else
        round_go_on(group, r);
    round_drop(group, r);
    pthread_mutex_lock(&group->lock);
    if (!--group->n_calls)
        pthread_cond_signal(&group->returned);
    pthread_mutex_unlock(&group->lock);
}

void rounds_settle(struct process_group *group)
{
    struct collective_round *r;
    while ((r = round_hold(group, has_all))) {
        round_go_on(group, r);
        round_drop(group, r);
    }
}
