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

/* ---- cutting ---- */

#define LEAST_BYTES ((int64_t)64 << 10)     /* least bytes of a chunk, if an owner has several */
#define SCHEDULED_BYTES ((int64_t)64 << 10) /* of a scheduled chunk: links wait for few bytes */
#define WINDOW_CHUNKS 2                     /* parts in flight for each owner, at least */

void chunks_append(chunk_vec *chunks, chunk_vec *flows, uint64_t n_flows, int64_t most)
{
    while (flows->n) {
        size_t left = 0;
        for (size_t i = 0; i < flows->n; i++) {
            struct chunk *flow = &flows->items[i], chunk = *flow;
            chunk.count = flow->count < most ? flow->count : most;
            vec_push(chunks, chunk);
            flow->index += n_flows;
            flow->first += chunk.count;
            flow->at += chunk.count;
            flow->count -= chunk.count;
            if (flow->count)
                flows->items[left++] = *flow;
        }
        flows->n = left;
    }
    vec_release(flows);
}

static void cut_value(const struct process_group *group, const struct collective_round *r,
                      int value, chunk_vec *chunks)
{
    const struct tensor *own = &r->own[value];
    int size = group->interface.size, n_parts = 1;
    int64_t count = tensor_count(own), bytes = (int64_t)dtype_bytes(own->type), most;
    bool is_scheduled =
        collective_goes_by_schedule(&r->call.schedule, r->kinds[value], r->call.has_root, own);
    chunk_vec parts = VEC_INIT;
    if (is_scheduled) {
        n_parts = collective_schedule_parts(&r->call.schedule, &r->call.group, size,
                                            group->interface.rank);
        most = SCHEDULED_BYTES / bytes;
    } else { /* one chunk for each owner, or several if they are not too small, so that sums of some
              * are in flight while parts of others are */
        int n_owners =
            r->call.by_servers ? count_servers(group) : collective_group_size(&r->call.group, size);
        int64_t least = LEAST_BYTES / bytes;
        most = (count + n_owners - 1) / n_owners;
        if (most > least)
            most = most / CHUNKS_EACH > least ? most / CHUNKS_EACH : least;
        most = (most + MEM_ALIGNMENT - 1) / MEM_ALIGNMENT * MEM_ALIGNMENT;
        most = most < CHUNK_BYTES / bytes ? most : CHUNK_BYTES / bytes;
    }
    for (int part = 0; part < n_parts; part++) {
        struct row_range range = collective_part(count, n_parts, part);
        if (range.count)
            vec_push(&parts, ((struct chunk){.value = value,
                                             .piece = is_scheduled ? part : -1,
                                             .first = range.first,
                                             .at = range.first,
                                             .count = range.count}));
    }
    chunks_append(chunks, &parts, 0, most);
}

void chunks_add(struct collective_round *r, chunk_vec *chunks)
{
    vec_each(chunk, chunks) {
        struct chunk *copy = mem_alloc(sizeof *copy);
        *copy = *chunk;
        vec_push(&r->chunks, copy);
    }
    r->n_missing += chunks->n;
    vec_release(chunks);
}

void chunks_cut(const struct process_group *group, struct collective_round *r)
{
    chunk_vec chunks = VEC_INIT;
    for (int v = 0; v < r->call.n; v++)
        if (!r->routed[v].is_routed && !round_is_small(r, v, r->routed[v].brought))
            cut_value(group, r, v, &chunks);
    for (size_t i = 0; i < chunks.n; i++)
        chunks.items[i].index = i;
    chunks_add(r, &chunks);
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
    for (int i = 0; i < r->n_programs; i++)
        program_release(&r->programs[i]);
    mem_free(r->programs);
}

/* ---- programs ---- */

/* The window has room for parts for all owners: otherwise the network adapters of some would be
 * idle. */
void chunks_settle(const struct process_group *group, struct collective_round *r)
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
    /* A root that takes no part is detected before it has to send. */
    bool is_rank = r->call.has_root && r->root >= 0 && r->root < group->interface.size;
    int giver = is_rank ? (int)r->root : r->members[0];
    vec_each(at, &r->chunks) {
        struct chunk *chunk = *at;
        bool is_first = r->kinds[chunk->value] == COLLECTIVE_FIRST;
        bool is_served = r->call.by_servers && r->n_members > 1 && !is_first;
        int owner = is_first    ? giver
                    : is_served ? server_of(group, r, chunk->index)
                                : r->members[chunk->index % (size_t)r->n_members];
        bool is_own = owner == group->interface.rank;
        chunk->peer = is_own ? TO_ALL : owner;
        if (chunk->piece >= 0 && r->programs) /* else the member is alone */
            chunk->program = &r->programs[chunk->piece % r->n_programs];
        else if (is_first)
            chunk->program = is_own ? &program_source : &program_destination;
        else
            chunk->program = is_own ? &program_owner : &program_member;
        if (is_first && is_own && !chunk->first) {
            tensor_release(&r->results[chunk->value]);
            tensor_share(&r->results[chunk->value], &r->own[chunk->value]);
        }
    }
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
            chunk->over = true;
            r->n_missing--;
            if (chunk->begun)
                r->flying -= awaited_bytes(r, chunk);
        }
        action = NULL;
        if (r->state == ROUND_RUNNING && !chunk->busy && !chunk->over && can_act(group, r, chunk)) {
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
            if (!chunk->over) /* only chunks that have yet to arrive count */
                r->flying += awaited_bytes(r, chunk);
        }
        pthread_mutex_unlock(&group->lock);
        if (chunk)
            chunk_advance(group, r, chunk);
    } while (chunk);
}

/* ---- receiving ---- */

/* Before the round settles, parts and broadcast values are accepted. */
static bool wants(const struct process_group *group, const struct collective_round *r,
                  const struct chunk *chunk, int end, bool is_whole)
{
    enum collective_kind kind = r->kinds[chunk->value];
    bool is_here = is_server(group, end) ? chunk->program != NULL : r->contributions[end].here;
    if (!is_here || chunk->over || (chunk->parts && chunk->parts[end].data))
        return false;
    if (!chunk->program)
        return is_whole ? kind == COLLECTIVE_FIRST && (!r->call.has_root || end == r->root)
                        : collective_adds(kind);
    bool wanted = false;
    for (size_t i = chunk->n_done; i < chunk->program->n && !wanted; i++) {
        const struct chunk_action *action = &chunk->program->actions[i];
        wanted = action->what == ACT_SUM ? !is_whole
                                         : action->what == (is_whole ? ACT_COPY : ACT_ADD) &&
                                               end_of(r, chunk, action) == end;
    }
    return wanted;
}

bool chunk_has_place(const struct process_group *group, const struct collective_round *r,
                     const struct chunk *chunk, int end)
{
    return wants(group, r, chunk, end, true) &&
           (!chunk->program || chunk->program->actions[chunk->n_done].what == ACT_COPY);
}

bool chunk_take(const struct process_group *group, const struct collective_round *r,
                struct chunk *chunk, int end, bool is_whole, const struct tensor *piece)
{
    if (!wants(group, r, chunk, end, is_whole))
        return false;
    if (!chunk->parts)
        chunk->parts = mem_array((size_t)group->n_ends, sizeof *chunk->parts);
    tensor_share(&chunk->parts[end], piece);
    return true;
}
