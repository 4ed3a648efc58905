/* SPDX-License-Identifier: Apache-2.0
 *
 * Chunks of large values. All are handled in one way: each has a program (collective/schedule.h),
 * and an action is done as soon as it can be, by the thread that delivered its last input. So
 * chunks advance independently, follow each other as fast as links take them, and are added in the
 * order of their programs whenever parts arrive.
 *
 * The result's memory holds the partial sum. It is not written again until the sum arrives, and the
 * sum does not arrive before all members have received what was sent of the partial sum.
 */
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "transport/collective/collective_record.h"
#include "transport/collective/collective_round.h"
#include "transport/value/segment.h"

struct tensor tensor_piece(const struct tensor *t, int64_t first, int64_t count)
{
    struct shape shape = shape_vector(count);
    struct tensor piece =
        tensor_borrow(t->type, &shape, (char *)t->data + (size_t)first * dtype_bytes(t->type));
    piece.buffer = t->buffer; /* a holder of the piece holds its buffer */
    return piece;
}

bool chunk_stays(const struct collective_round *r, const struct chunk *chunk)
{
    return r->routed[chunk->value].is_routed && collective_adds(r->kinds[chunk->value]);
}

/* ---- cutting, once the members that take part are known ---- */

#define LEAST_BYTES ((int64_t)64 << 10)       /* of a chunk of a sum, if an owner has several */
#define RELAY_LEAST_BYTES ((int64_t)32 << 10) /* of a chunk that a server forwards */
#define SCHEDULED_BYTES ((int64_t)64 << 10)   /* of a scheduled chunk: links wait for few bytes */
#define RELAY_MEMBERS_MIN 3                   /* a server would be a detour to a single other one */
#define CHUNKS_EACH 4                         /* of a flow, at least, if they are not too small */
#define WINDOW_CHUNKS 2                       /* parts in flight for each owner, at least */

/* The state of cutting one value. A flow is what one member sends another or all, or what one owner
 * adds. All members number all flows alike. */
struct value_cut {
    const struct process_group *group;
    struct collective_round *round;
    int value;
    uint64_t index;          /* of its first chunk */
    uint64_t n_flows;        /* of all members, */
    int64_t longest;         /* and elements of the longest one */
    int64_t least, most;     /* bytes of a chunk */
    VEC(struct chunk) flows; /* that this member has actions for */
};

static void add_flow(struct value_cut *c, struct chunk flow)
{
    if (!flow.count)
        return;
    flow.value = c->value;
    flow.index = c->index + c->n_flows++;
    c->longest = flow.count > c->longest ? flow.count : c->longest;
    if (flow.program)
        vec_push(&c->flows, flow);
}

/* Returns the server of chunk `number` of the round: servers take turns, and different rounds begin
 * with different servers. */
static int server_of(const struct process_group *group, const struct collective_round *r,
                     uint64_t number)
{
    uint64_t n = (uint64_t)count_servers(group);
    return group->interface.size + (int)((hash_text(r->name) % n + number) % n);
}

/* The flows of a value that all members get whole: an owner's part of a sum has several chunks if
 * these are not too small, so that sums of some are in flight while parts of others are. */
static void flows_of_whole(struct value_cut *c)
{
    struct collective_round *r = c->round;
    const struct collective_schedule *schedule = &r->call.schedule;
    const struct tensor *own = &r->own[c->value];
    int size = c->group->interface.size, rank = c->group->interface.rank;
    enum collective_kind kind = r->kinds[c->value];
    bool is_first = kind == COLLECTIVE_FIRST, is_served = r->call.by_servers && r->n_members > 1;
    bool is_scheduled = collective_goes_by_schedule(schedule, kind, r->call.has_root, own);
    int giver = r->call.has_root ? (int)r->root : r->members[0];
    int n = is_first       ? 1
            : is_scheduled ? collective_schedule_parts(schedule, &r->call.group, size, rank)
            : is_served    ? count_servers(c->group)
                           : r->n_members;
    c->most = is_scheduled ? SCHEDULED_BYTES : CHUNK_BYTES;
    c->least = LEAST_BYTES;
    for (int k = 0; k < n; k++) {
        struct row_range range = collective_part(tensor_count(own), n, k);
        int end = is_first    ? giver
                  : is_served ? server_of(c->group, r, (uint64_t)k)
                              : r->members[k % r->n_members];
        struct chunk flow = {.first = range.first,
                             .at = range.first,
                             .count = range.count,
                             .peer = end == rank ? TO_ALL : end};
        if (is_first)
            flow.program = end == rank ? &program_source : &program_destination;
        else
            flow.program = end == rank ? &program_owner : &program_member;
        if (is_scheduled && r->programs) /* else the member is alone */
            flow.program = &r->programs[k % r->n_programs];
        add_flow(c, flow);
    }
    if (is_first && giver == rank) {
        tensor_release(&r->results[c->value]);
        tensor_share(&r->results[c->value], own);
    }
}

/* The flows of rows that were not in contributions. Returns false if they are too long. */
static bool flows_of_rows(struct value_cut *c, bool is_to_all)
{
    const struct collective_round *r = c->round;
    const struct routed_value *routed = &r->routed[c->value];
    int n = r->n_members, place = r->place;
    bool adds = collective_adds(r->kinds[c->value]);
    for (int turn = 0; turn < (adds || is_to_all ? 1 : n); turn++)
        for (int from = 0; from < n; from++) {
            int to = (from + turn) % n;
            struct row_range rows = collective_rows_of(&routed->routing, adds ? 0 : from, to);
            bool sends = !adds && from == place, gets = is_to_all || to == place;
            struct chunk flow = {.peer = r->members[adds || sends ? to : from]};
            if ((!adds && !is_to_all && from == to) ||
                were_contributed(c->group, r, c->value, from))
                continue;
            if (__builtin_mul_overflow(rows.first, routed->unit, &flow.first) ||
                __builtin_mul_overflow(rows.count, routed->unit, &flow.count))
                return false;
            if (sends && is_to_all)
                flow.peer = TO_ALL;
            if (adds)
                flow.program = gets ? &program_owner : &program_member;
            else if (sends || gets)
                flow.program = sends ? &program_source : &program_destination;
            for (int k = 0; k < from && gets && !adds && !sends; k++) /* offset in the result */
                flow.at += collective_rows_of(&routed->routing, k, place).count * routed->unit;
            add_flow(c, flow);
        }
    return true;
}

/* Cuts a value's flows into chunks, which alternate; indices of one flow are n_flows apart. Flows
 * through a server are cut unless they are small, so that the first chunks are forwarded while the
 * last ones still arrive. Returns false if there are too many chunks. */
static bool cut_value(struct process_group *group, struct collective_round *r, int value,
                      uint64_t *index)
{
    const struct routed_value *routed = &r->routed[value];
    int64_t bytes = (int64_t)dtype_bytes(r->own[value].type);
    bool is_to_all = !collective_parts(r->kinds[value]) && routed->routing.root < 0;
    bool is_relayed =
        routed->is_routed && is_to_all && r->call.by_servers && r->n_members >= RELAY_MEMBERS_MIN;
    struct value_cut c = {.group = group,
                          .round = r,
                          .value = value,
                          .index = *index,
                          .least = is_relayed ? RELAY_LEAST_BYTES : CHUNK_BYTES,
                          .most = CHUNK_BYTES};
    bool fits = true;
    uint64_t n_chunks;
    if (routed->is_routed)
        fits = flows_of_rows(&c, is_to_all);
    else
        flows_of_whole(&c);
    int64_t most = c.longest / CHUNKS_EACH;
    most = most < c.least / bytes ? c.least / bytes : most;
    most = most < c.most / bytes ? most : c.most / bytes;
    while (c.flows.n && fits) {
        size_t left = 0;
        vec_each(flow, &c.flows) {
            struct chunk *chunk = mem_alloc(sizeof *chunk);
            uint64_t number = flow->index - c.index;
            *chunk = *flow;
            chunk->count = flow->count < most ? flow->count : most;
            if (is_relayed)
                chunk->peer = server_of(group, r, number / c.n_flows + number % c.n_flows);
            vec_push(&r->chunks, chunk);
            flow->index += c.n_flows;
            flow->first += chunk->count;
            flow->at += chunk->count;
            flow->count -= chunk->count;
            if (flow->count)
                c.flows.items[left++] = *flow;
        }
        c.flows.n = left;
    }
    vec_release(&c.flows);
    /* The next value's indices leave room for as many chunks of each flow as the longest has. */
    uint64_t turns = (uint64_t)(c.longest / most) + 1;
    return fits && !__builtin_mul_overflow(turns, c.n_flows, &n_chunks) &&
           !__builtin_add_overflow(c.index, n_chunks, index);
}

/* The window has room for parts for all owners: otherwise the network adapters of some would be
 * idle. */
static void set_window(const struct process_group *group, struct collective_round *r)
{
    int n_servers = r->call.by_servers ? count_servers(group) : 0;
    int64_t all =
        WINDOW_CHUNKS * CHUNK_BYTES * (n_servers > r->n_members ? n_servers : r->n_members);
    r->window = all > WINDOW_BYTES ? all : WINDOW_BYTES;
    if (r->call.schedule.kind != SCHEDULE_DIRECT && r->n_members > 1) {
        struct sum_schedule schedule = {0};
        collective_schedule_make(&r->call.schedule, r->members, r->n_members, &schedule);
        r->n_programs = schedule.n_pieces;
        r->programs = mem_array((size_t)schedule.n_pieces, sizeof *r->programs);
        for (int piece = 0; piece < schedule.n_pieces; piece++)
            program_make(&schedule, r->place, piece, &r->programs[piece]);
        /* A way is full when as many chunks are in flight as it has rounds; as many may wait. */
        r->window = SCHEDULED_BYTES * (2 * schedule.n_rounds + schedule.n_pieces + 2);
        schedule_release(&schedule);
    }
}

struct chunk *chunk_find(const struct collective_round *r, uint64_t index)
{
    size_t from = 0, to = r->chunks.n;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (r->chunks.items[middle]->index < index)
            from = middle + 1;
        else
            to = middle;
    }
    bool is_there = from < r->chunks.n && r->chunks.items[from]->index == index;
    return is_there ? r->chunks.items[from] : NULL;
}

void chunks_free(const struct process_group *group, struct collective_round *r)
{
    vec_each(chunk, &r->chunks) {
        for (int k = 0; k < group->n_ends && (*chunk)->parts; k++)
            tensor_release(&(*chunk)->parts[k]);
        mem_free((*chunk)->parts);
        mem_free(*chunk);
    }
    vec_release(&r->chunks);
    vec_each(piece, &r->early)
        tensor_release(&piece->data);
    vec_release(&r->early);
    for (int i = 0; i < r->n_programs; i++)
        program_release(&r->programs[i]);
    mem_free(r->programs);
}

static int end_of(const struct collective_round *r, const struct chunk *chunk,
                  const struct chunk_action *action)
{
    return action->member == PROGRAM_PEER ? chunk->peer : r->members[action->member];
}

/* ---- sending ---- */

/* Returns whether data for `peer` is sent to that rank. */
static bool goes_to(const struct process_group *group, int peer, int rank)
{
    return rank != group->interface.rank && (peer == TO_ALL || peer == rank);
}

/* Chunks of one member's value, for which hardly anybody waits, could take all blocks at once: they
 * share these few, and chunks that find none are sent. */
#define FIRST_BLOCKS 8

/* Gives the piece an unused block, which is to be filled for others to read. */
static void borrow_block(struct process_group *group, enum collective_kind kind,
                         const struct tensor *piece, struct tensor *block)
{
    struct segments *segments = conns_segments(group->conns);
    struct shape whole = shape_vector(CHUNK_BYTES);
    int most = collective_adds(kind) ? GROUP_BLOCKS : FIRST_BLOCKS;
    pthread_mutex_lock(&group->lock);
    int i = 0;
    while (i < most && group->blocks[i].data && !buffer_is_sole(group->blocks[i].buffer))
        i++; /* the first blocks are in the caches */
    if (i < most &&
        (group->blocks[i].data || segments_alloc(segments, &group->blocks[i], UINT8, &whole))) {
        tensor_share(block, &group->blocks[i]);
        block->type = piece->type;
        block->shape = piece->shape;
    }
    pthread_mutex_unlock(&group->lock);
}

/* Finds memory from which members on this host read the piece: the value's memory, if that is in a
 * segment, or else a block, which is to be filled; empty: none. The caller releases it. */
static struct tensor share_piece(struct process_group *group, const struct collective_round *r,
                                 const struct chunk *chunk, int peer, const struct tensor *piece)
{
    struct tensor shared = TENSOR_INIT;
    bool is_read = false;
    for (int i = 0; i < r->n_members; i++)
        is_read |= goes_to(group, peer, r->members[i]) && group->ends[r->members[i]].shares;
    if (is_read && segment_has_part(piece))
        tensor_share(&shared, piece);
    else if (is_read)
        borrow_block(group, r->kinds[chunk->value], piece, &shared);
    return shared;
}

/* Sends the piece to each destination: the address of shared memory, or bytes. */
static void send_piece(struct process_group *group, const struct collective_round *r,
                       const struct chunk *chunk, int peer, struct reduce reduce,
                       const struct tensor *shared)
{
    bool stays = reduce.what == REDUCE_SUM && chunk_stays(r, chunk);
    for (int i = 0; i < r->n_members; i++) {
        int rank = r->members[i];
        if (!goes_to(group, peer, rank))
            continue;
        reduce.shared = shared->data && group->ends[rank].shares ? shared : NULL;
        reduce.n = !stays && !reduce.shared;
        reduce_send(group, rank, &reduce);
    }
}

/* Returns the member's current value of the chunk. */
static struct tensor held(struct process_group *group, const struct collective_round *r,
                          const struct chunk *chunk)
{
    pthread_mutex_lock(&group->lock); /* the sum may come while an action is at work */
    bool has_sum = chunk->has_sum;
    pthread_mutex_unlock(&group->lock);
    return has_sum ? tensor_piece(&r->results[chunk->value], chunk->at, chunk->count)
                   : tensor_piece(&r->own[chunk->value], chunk->first, chunk->count);
}

/* ---- actions ---- */

static void do_send(struct process_group *group, struct collective_round *r, struct chunk *chunk,
                    const struct chunk_action *action)
{
    int peer = end_of(r, chunk, action);
    struct tensor piece = held(group, r, chunk);
    struct reduce reduce = {.what = action->whole ? REDUCE_SUM : REDUCE_PART,
                            .round = r,
                            .index = chunk->index,
                            .tensors = &piece,
                            .n = 1};
    if (peer != TO_ALL && is_server(group, peer)) {
        reduce.what = action->whole ? REDUCE_RELAY : REDUCE_PART;
        reduce.served = chunk;
        reduce_send(group, peer, &reduce);
        return;
    }
    struct tensor shared = share_piece(group, r, chunk, peer, &piece);
    if (shared.data && shared.data != piece.data)
        memcpy(shared.data, piece.data, tensor_bytes(&piece));
    send_piece(group, r, chunk, peer, reduce, &shared);
    tensor_release(&shared);
}

/* Releases a part that is now in the result. */
static void release_part(struct process_group *group, struct chunk *chunk, struct tensor *part)
{
    pthread_mutex_lock(&group->lock);
    chunk->has_sum = true;
    struct tensor taken = *part;
    *part = (struct tensor){0};
    pthread_mutex_unlock(&group->lock);
    tensor_release(&taken);
}

static void do_add(struct process_group *group, struct collective_round *r, struct chunk *chunk,
                   const struct chunk_action *action)
{
    struct tensor *part = &chunk->parts[r->members[action->member]], own = held(group, r, chunk);
    struct tensor sum = tensor_piece(&r->results[chunk->value], chunk->at, chunk->count);
    const void *data[2] = {part->data, own.data};
    bool divides = action->whole && collective_divides(r->kinds[chunk->value]);
    const struct collective_terms terms = {sum.type, data, 2, divides ? r->n_members : 0};
    collective_sum(&terms, sum.data, NULL, chunk->count);
    release_part(group, chunk, part);
}

/* A chunk that was read into its place, or stays with its owner, is not copied. */
static void do_copy(struct process_group *group, struct collective_round *r, struct chunk *chunk,
                    const struct chunk_action *action)
{
    struct tensor *whole = &chunk->parts[end_of(r, chunk, action)];
    struct tensor piece = tensor_piece(&r->results[chunk->value], chunk->at, chunk->count);
    if (!chunk_stays(r, chunk) && whole->data != piece.data)
        memcpy(piece.data, whole->data, tensor_bytes(&piece));
    rows_divide(r, chunk->value, &piece); /* here, as the source is memory of others */
    release_part(group, chunk, whole);
}

/* Returns NULL if the part has not arrived. */
static const void *part_data(const struct process_group *group, const struct collective_round *r,
                             const struct chunk *chunk, int rank)
{
    if (rank == group->interface.rank)
        return tensor_piece(&r->own[chunk->value], chunk->first, chunk->count).data;
    return chunk->parts ? chunk->parts[rank].data : NULL;
}

/* The sum is also written to shared memory while it is added. */
static void do_sum(struct process_group *group, struct collective_round *r, struct chunk *chunk,
                   const struct chunk_action *action)
{
    const void **data = mem_array((size_t)r->n_members, sizeof *data);
    struct tensor sum = tensor_piece(&r->results[chunk->value], chunk->at, chunk->count);
    struct tensor shared = TENSOR_INIT;
    int divisor = collective_divides(r->kinds[chunk->value]) ? r->n_members : 0;
    (void)action;
    if (!chunk_stays(r, chunk))
        shared = share_piece(group, r, chunk, TO_ALL, &sum);
    for (int i = 0; i < r->n_members; i++)
        data[i] = part_data(group, r, chunk, r->members[i]);
    const struct collective_terms terms = {sum.type, data, r->n_members, divisor};
    collective_sum(&terms, sum.data, shared.data == sum.data ? NULL : shared.data, chunk->count);
    mem_free(data);
    for (int k = 0; k < group->n_ends && chunk->parts; k++)
        tensor_release(&chunk->parts[k]);
    const struct reduce reduce = {
        .what = REDUCE_SUM, .round = r, .index = chunk->index, .tensors = &sum};
    send_piece(group, r, chunk, TO_ALL, reduce, &shared);
    tensor_release(&shared);
}

typedef void do_function(struct process_group *group, struct collective_round *r,
                         struct chunk *chunk, const struct chunk_action *action);
static do_function *const actions[] = {
    [ACT_SEND] = do_send, [ACT_ADD] = do_add, [ACT_SUM] = do_sum, [ACT_COPY] = do_copy};

/* Returns the bytes of a chunk that count for the window. Nobody has to wait for the value of a
 * broadcast. */
static int64_t awaited_bytes(const struct collective_round *r, const struct chunk *chunk)
{
    bool counts = chunk->program->awaits && r->kinds[chunk->value] != COLLECTIVE_FIRST;
    return counts ? chunk->count * (int64_t)dtype_bytes(r->own[chunk->value].type) : 0;
}

/* With the lock: returns whether the input of the next action is there. */
static bool can_act(const struct process_group *group, const struct collective_round *r,
                    const struct chunk *chunk)
{
    const struct chunk_action *action = &chunk->program->actions[chunk->n_done];
    bool can = true;
    if (action->what == ACT_ADD || action->what == ACT_COPY)
        return chunk->parts && chunk->parts[end_of(r, chunk, action)].data;
    for (int i = 0; can && action->what == ACT_SUM && i < r->n_members; i++)
        can = part_data(group, r, chunk, r->members[i]) != NULL;
    return can;
}

/* An action counts as done when it begins, as the reply to a send may arrive before the send has
 * returned. */
void chunk_advance(struct process_group *group, struct collective_round *r, struct chunk *chunk)
{
    const struct chunk_action *action = NULL;
    do {
        pthread_mutex_lock(&group->lock);
        if (action)
            chunk->busy = false;
        if (action && chunk->n_done == chunk->program->n) {
            r->n_missing--;
            if (chunk->begun)
                r->flying -= awaited_bytes(r, chunk);
        }
        action = NULL;
        if (r->state == ROUND_RUNNING && !chunk->busy && chunk->n_done < chunk->program->n &&
            can_act(group, r, chunk)) {
            action = &chunk->program->actions[chunk->n_done++];
            chunk->busy = true;
        }
        pthread_mutex_unlock(&group->lock);
        if (action)
            actions[action->what](group, r, chunk, action);
    } while (action);
}

void chunks_begin(struct process_group *group, struct collective_round *r)
{
    struct chunk *chunk;
    do {
        chunk = NULL;
        pthread_mutex_lock(&group->lock);
        if (r->state == ROUND_RUNNING && r->n_begun < r->chunks.n && r->flying < r->window) {
            chunk = r->chunks.items[r->n_begun++];
            chunk->begun = true;
            if (chunk->busy || chunk->n_done < chunk->program->n) /* it has yet to arrive */
                r->flying += awaited_bytes(r, chunk);
        }
        pthread_mutex_unlock(&group->lock);
        if (chunk)
            chunk_advance(group, r, chunk);
    } while (chunk);
}

/* ---- receiving ---- */

/* A server has what members sent it. */
static bool has_contributed(const struct process_group *group, const struct collective_round *r,
                            int end)
{
    return is_server(group, end) || r->contributions[end].here;
}

/* Returns whether an action to come wants that piece. */
static bool wants(const struct process_group *group, const struct collective_round *r,
                  const struct chunk *chunk, int end, bool is_part)
{
    bool is_wanted = false;
    if (!has_contributed(group, r, end) || (chunk->parts && chunk->parts[end].data))
        return false;
    for (size_t i = chunk->n_done; i < chunk->program->n && !is_wanted; i++) {
        const struct chunk_action *action = &chunk->program->actions[i];
        is_wanted = action->what == ACT_SUM ? is_part
                                            : action->what == (is_part ? ACT_ADD : ACT_COPY) &&
                                                  end_of(r, chunk, action) == end;
    }
    return is_wanted;
}

bool chunk_has_place(const struct process_group *group, const struct collective_round *r,
                     const struct chunk *chunk, int end)
{
    return wants(group, r, chunk, end, false) &&
           chunk->program->actions[chunk->n_done].what == ACT_COPY;
}

/* Returns whether the piece has the chunk's type and size; *data: what it has, which for a sum that
 * stays with its owner is not read. */
static bool piece_fits(const struct collective_round *r, const struct chunk *chunk,
                       const struct chunk_piece *piece, struct tensor *data)
{
    const struct tensor *sent = &piece->data;
    *data = tensor_piece(&r->own[chunk->value], chunk->first, chunk->count);
    if (!piece->is_part && chunk_stays(r, chunk))
        return !piece->n;
    bool fits = piece->n == 1 && tensor_bytes(sent) == tensor_bytes(data) &&
                (piece->is_shared ? (uintptr_t)sent->data % dtype_bytes(data->type) == 0
                                  : sent->type == data->type && sent->shape.rank == 1);
    data->data = sent->data;
    data->buffer = sent->buffer;
    return fits;
}

int chunk_take(const struct process_group *group, struct collective_round *r,
               const struct chunk_piece *piece, struct chunk **chunk, struct error *err)
{
    struct tensor data;
    bool is_early = r->state > ROUND_NEW && r->state < ROUND_RUNNING;
    *chunk = is_early ? NULL : chunk_find(r, piece->index);
    if (is_early && has_contributed(group, r, piece->end)) {
        struct chunk_piece kept = *piece;
        if (kept.data.buffer)
            tensor_share(&kept.data, &piece->data);
        vec_push(&r->early, kept);
        return 0;
    }
    if (!*chunk || !piece_fits(r, *chunk, piece, &data))
        return error_set(err, ERR_PROTOCOL, "sends a block of '%.200s' that it does not have",
                         r->name);
    if (!wants(group, r, *chunk, piece->end, piece->is_part))
        return error_set(err, ERR_PROTOCOL,
                         piece->is_part ? "sends a block of '%s' twice"
                                        : "sends a sum of '%s' that is not its own",
                         r->name);
    if (!(*chunk)->parts)
        (*chunk)->parts = mem_array((size_t)group->n_ends, sizeof *(*chunk)->parts);
    tensor_share(&(*chunk)->parts[piece->end], &data);
    return 0;
}

int chunks_run(struct process_group *group, struct collective_round *r, int *end, struct error *err)
{
    struct chunk *chunk;
    uint64_t index = 0;
    set_window(group, r);
    for (int v = 0; v < r->call.n && !r->on_device; v++)
        if ((r->routed[v].is_routed || !round_is_small(r, v, r->routed[v].brought)) &&
            !cut_value(group, r, v, &index))
            return error_set(err, ERR_DATA, "'%s': members bring more rows than there can be",
                             r->name);
    r->n_missing += r->chunks.n;
    r->state = ROUND_RUNNING;
    for (size_t i = 0; i < r->early.n && !err->code; i++) {
        struct chunk_piece *piece = &r->early.items[i];
        if (chunk_take(group, r, piece, &chunk, err))
            *end = piece->end;
        else
            tensor_release(&piece->data); /* its chunk holds it, until its action is done */
    }
    return err->code;
}
