/* SPDX-License-Identifier: Apache-2.0
 *
 * What members do about a round: send, add, answer.
 */
#include <string.h>

#include "base/failpoint.h"
#include "base/memory.h"
#include "transport/collective/collective_private.h"

struct tensor tensor_piece(const struct tensor *t, int64_t first, int64_t count)
{
    struct shape shape = shape_vector(count);
    struct tensor piece =
        tensor_borrow(t->type, &shape, (char *)t->data + (size_t)first * dtype_bytes(t->type));
    piece.buffer = t->buffer; /* who keeps the piece counts it there */
    return piece;
}

/* ---- what is brought ---- */

static void bring_to(struct process_group *group, struct collective_round *m, int rank)
{
    struct tensor *small = mem_array((size_t)m->n + 1, sizeof *small);
    struct direct_offer *offers;
    int n = 0, n_offers = direct_offer(group, m, rank, &offers);
    for (int i = 0; i < m->n; i++) {
        const struct routed_value *routed = &m->routed[i];
        if (routed->is_routed && rows_are_brought(m, i, routed->brought))
            small[n++] = rows_piece(group, m, rank, i);
        else if (!routed->is_routed && round_is_small(m, i))
            small[n++] = m->own[i];
    }
    const struct reduce bring = {.what = REDUCE_BRING,
                                 .round = m,
                                 .index = m->signature,
                                 .tensors = small,
                                 .n = n,
                                 .offers = offers,
                                 .n_offers = n_offers};
    reduce_send(group, rank, &bring);
    mem_free(offers);
    mem_free(small);
}

void reduce_bring(struct process_group *group, struct collective_round *round)
{
    for (int k = 0; k < group->interface.size; k++)
        if (k != group->interface.rank && round_meets(group, round, k))
            bring_to(group, round, k);
}

/* What each member has brought of value i, of whose tensors the next is at[]; NULL: nothing. */
static int find_brought(const struct process_group *group, const struct collective_round *m, int i,
                        int *at, const struct tensor **values, struct error *err)
{
    for (int k = 0; k < m->n_members; k++) {
        const struct brought *brought = &m->brought[m->members[k]];
        bool is_own = m->members[k] == group->interface.rank, is_there = round_is_small(m, i);
        const int64_t *counts = NULL;
        values[k] = is_own ? &m->own[i] : NULL;
        if (is_own)
            continue;
        if (m->routed[i].is_routed) {
            if (rows_counts(group, m, m->members[k], i, &counts, err))
                return err->code;
            is_there = rows_are_brought(m, i, counts[0]);
        }
        if (is_there && at[k] >= brought->n)
            return error_set(err, ERR_PROTOCOL, "'%s': %s brings too little", m->name,
                             group->tasks[m->members[k]]);
        if (is_there)
            values[k] = &brought->values[at[k]++];
    }
    return 0;
}

/* A value that does not go by rows. */
static int combine_whole(struct collective_round *m, int i, const struct tensor *const *values,
                         struct error *err)
{
    struct collective_routing routing = {.kind = m->kinds[i], .n = m->n_members, .root = -1};
    for (int k = 0; k < m->n_members && m->has_root; k++)
        if (m->members[k] == m->root)
            routing.root = k;
    return collective_combine_for(NULL, &routing, values, 0, &m->results[i], err)
               ? error_prefix(err, "'%s': ", m->name)
               : 0;
}

static int combine_brought(struct process_group *group, struct collective_round *m,
                           struct error *err)
{
    const struct tensor **values = mem_array((size_t)m->n_members, sizeof *values);
    int *at = mem_array((size_t)m->n_members, sizeof *at), code = 0;
    for (int i = 0; !code && i < m->n; i++) {
        if (!m->routed[i].is_routed && !round_is_small(m, i))
            continue;
        code = find_brought(group, m, i, at, values, err);
        if (!code && m->routed[i].is_routed)
            code = rows_take(group, m, i, values, err);
        else if (!code)
            code = combine_whole(m, i, values, err);
    }
    if (!code && late_cut(group, m, err))
        code = error_prefix(err, "'%s': ", m->name);
    mem_free(at);
    mem_free(values);
    return code;
}

/* ---- blocks ---- */

/* Where the member reads it already; else as it is, or as the block that has it (-1: none has). */
static void send_piece(struct process_group *group, int rank, const struct reduce *reduce,
                       int shared)
{
    struct reduce where = *reduce;
    const struct block *block = round_block(reduce->round, reduce->index);
    if (direct_is_read(reduce->round, rank, block->value)) {
        where.n = 0;
        where.is_there = true;
    } else if (shared >= 0 && group->shares[rank]) {
        where.n = 0;
        where.is_shared = true;
        where.shared = (uint64_t)shared;
    }
    reduce_send(group, rank, &where);
}

/* Whether the block goes from this member to that one. */
static bool goes_to(const struct process_group *group, const struct block *block, int rank)
{
    return rank != group->interface.rank && (block->to == TO_ALL || block->to == rank);
}

/* What its owner has, to those who are to have it. */
static void give_piece(struct process_group *group, struct collective_round *m, uint64_t index,
                       const struct tensor *piece, int shared)
{
    const struct block *block = round_block(m, index);
    const struct reduce sum = {
        .what = REDUCE_SUM, .round = m, .index = index, .tensors = piece, .n = 1};
    for (int i = 0; i < m->n_members; i++)
        if (goes_to(group, block, m->members[i]))
            send_piece(group, m->members[i], &sum, shared);
}

/* That the block is added, where it stays. */
static void tell_all(struct process_group *group, struct collective_round *m, uint64_t index)
{
    const struct reduce sum = {.what = REDUCE_SUM, .round = m, .index = index, .is_there = true};
    for (int i = 0; i < m->n_members; i++)
        if (m->members[i] != group->interface.rank)
            reduce_send(group, m->members[i], &sum);
}

/* A block for all who can read it, and have no other way. */
static int share_with_all(struct process_group *group, const struct collective_round *m,
                          const struct block *block, const struct tensor *piece, void **data)
{
    int readers = 0;
    for (int i = 0; i < m->n_members; i++)
        readers += goes_to(group, block, m->members[i]) && group->shares[m->members[i]] &&
                   !direct_is_read(m, m->members[i], block->value);
    return shared_block(group, m->kinds[block->value], tensor_bytes(piece), readers, data);
}

static void block_is_done(struct process_group *group, struct collective_round *m,
                          struct block *block)
{
    pthread_mutex_lock(&group->lock);
    block->done = true;
    m->n_missing--;
    pthread_mutex_unlock(&group->lock);
}

/* Of what its owner has: the value of the first member, or rows. */
static void give_block(struct process_group *group, struct collective_round *m, uint64_t index)
{
    struct block *block = round_block(m, index);
    struct tensor piece = tensor_piece(&m->own[block->value], block->first, block->count);
    void *data;
    int shared = block->relay ? -1 : share_with_all(group, m, block, &piece, &data);
    if (shared >= 0)
        memcpy(data, piece.data, tensor_bytes(&piece));
    if (block->relay)
        served_send(group, m, block, &piece);
    else
        give_piece(group, m, index, &piece, shared);
    if (m->kinds[block->value] == COLLECTIVE_FIRST && !block->first) {
        tensor_release(&m->results[block->value]);
        tensor_share(&m->results[block->value], &m->own[block->value]);
    }
    block_is_done(group, m, block);
}

/* Rows are divided where they arrive: they are others' memory before. A broadcast's blocks may come
 * while it is not known yet who takes part: how many these are is asked of rows only. */
void reduce_divide(const struct collective_round *m, int value, struct tensor *piece)
{
    const void *data = piece->data;
    if (!collective_gathers(m->kinds[value]) || !collective_divides(m->kinds[value]))
        return;
    const struct collective_terms terms = {piece->type, &data, 1, m->n_members};
    collective_sum(&terms, piece->data, NULL, tensor_count(piece));
}

void reduce_put(const struct collective_round *m, const struct block *block,
                const struct tensor *arrived)
{
    struct tensor piece = tensor_piece(&m->results[block->value], block->at, block->count);
    if (arrived->data != piece.data) /* it was not read to there */
        memcpy(piece.data, arrived->data, tensor_bytes(&piece));
    reduce_divide(m, block->value, &piece);
}

/* NULL: it has not come. */
static const void *part_data(const struct collective_round *m, const struct block *block, int rank)
{
    const struct tensor *part = direct_part(m, rank, block->value);
    return part ? tensor_piece(part, block->first, block->count).data : block->parts[rank].data;
}

bool reduce_is_complete(const struct process_group *group, const struct collective_round *m,
                        const struct block *block)
{
    bool complete = m->agreed;
    for (int i = 0; i < m->n_members && complete; i++)
        complete =
            m->members[i] == group->interface.rank || part_data(m, block, m->members[i]) != NULL;
    return complete;
}

void reduce_sum(struct process_group *group, struct collective_round *m, uint64_t index)
{
    struct block *block = round_block(m, index);
    bool stays = block_stays(m, block);
    const void **data = mem_array((size_t)m->n_members, sizeof *data);
    struct tensor own = tensor_piece(&m->own[block->value], block->first, block->count);
    struct tensor sum = tensor_piece(&m->results[block->value], block->at, block->count);
    void *copy = NULL;
    int shared = stays ? -1 : share_with_all(group, m, block, &sum, &copy);
    for (int i = 0; i < m->n_members; i++)
        data[i] =
            m->members[i] == group->interface.rank ? own.data : part_data(m, block, m->members[i]);
    int divisor = collective_divides(m->kinds[block->value]) ? m->n_members : 0;
    const struct collective_terms terms = {sum.type, data, m->n_members, divisor};
    collective_sum(&terms, sum.data, copy, block->count);
    mem_free(data);
    for (int k = 0; k < group->interface.size; k++)
        tensor_release(&block->parts[k]);
    if (stays)
        tell_all(group, m, index);
    else
        give_piece(group, m, index, &sum, shared);
    block_is_done(group, m, block);
}

void reduce_send_copy(struct process_group *group, int rank, const struct reduce *reduce)
{
    enum collective_kind kind =
        reduce->round->kinds[round_block(reduce->round, reduce->index)->value];
    size_t bytes = tensor_bytes(reduce->tensors);
    void *data;
    int shared = shared_block(group, kind, bytes, group->shares[rank], &data);
    if (shared >= 0)
        memcpy(data, reduce->tensors->data, bytes);
    send_piece(group, rank, reduce, shared);
}

/* To its owner, unless that reads it where it is. */
static void send_part(struct process_group *group, struct collective_round *m, uint64_t index,
                      const struct tensor *piece)
{
    const struct reduce part = {
        .what = REDUCE_PART, .round = m, .index = index, .tensors = piece, .n = 1};
    const struct block *block = round_block(m, index);
    if (!direct_is_read(m, block->owner, block->value))
        reduce_send_copy(group, block->owner, &part);
}

static bool claim(struct process_group *group, struct collective_round *m, struct block *block)
{
    pthread_mutex_lock(&group->lock);
    bool mine = !block->claimed && reduce_is_complete(group, m, block);
    block->claimed |= mine;
    pthread_mutex_unlock(&group->lock);
    return mine;
}

/* Whether others are not to run ahead of this member with it. The one value of a broadcast is
 * nobody's to wait for. */
static bool is_awaited(const struct process_group *group, const struct collective_round *m,
                       const struct block *block)
{
    return m->kinds[block->value] != COLLECTIVE_FIRST && block->owner != group->interface.rank;
}

int64_t reduce_block_bytes(const struct collective_round *m, const struct block *block)
{
    return block->count * (int64_t)dtype_bytes(m->own[block->value].type);
}

static void begin_block(struct process_group *group, struct collective_round *m, uint64_t index)
{
    struct block *block = round_block(m, index);
    struct tensor piece = tensor_piece(&m->own[block->value], block->first, block->count);
    if (block_is_scheduled(m, block)) {
        scheduled_go_on(group, m, block);
    } else if (block_is_given(m, block)) {
        if (block->owner == group->interface.rank)
            give_block(group, m, index);
    } else if (served_is_server(group, block->owner)) {
        served_send(group, m, block, &piece);
    } else if (block->owner != group->interface.rank) {
        send_part(group, m, index, &piece);
    } else if (claim(group, m, block)) {
        reduce_sum(group, m, index);
    }
}

/* The next block, if one may be begun; what is to come of it counts. */
static bool next_block(struct process_group *group, struct collective_round *m, uint64_t *index)
{
    pthread_mutex_lock(&group->lock);
    bool any = direct_agreed(group, m) && m->n_begun < m->n_blocks + m->n_late &&
               m->flying < m->window && !m->over;
    if (any) {
        size_t at = m->n_begun++;
        struct block *block = at < m->n_blocks ? &m->blocks[at] : &m->late[at - m->n_blocks];
        *index = block->index;
        block->begun = true;
        if (is_awaited(group, m, block) && !block->done)
            m->flying += reduce_block_bytes(m, block);
    }
    pthread_mutex_unlock(&group->lock);
    return any;
}

void reduce_arrived(struct process_group *group, struct collective_round *m, struct block *block)
{
    bool is_counted = is_awaited(group, m, block);
    pthread_mutex_lock(&group->lock);
    block->done = true;
    m->n_missing--;
    if (is_counted && block->begun)
        m->flying -= reduce_block_bytes(m, block);
    pthread_mutex_unlock(&group->lock);
    if (is_counted)
        reduce_go_on(group, m);
    reduce_conclude(group, m);
}

void reduce_go_on(struct process_group *group, struct collective_round *round)
{
    uint64_t index;
    while (next_block(group, round, &index))
        begin_block(group, round, index);
}

void reduce_begin(struct process_group *group, struct collective_round *round)
{
    struct error err = ERROR_INIT;
    if (FAILPOINT("collective.begin"))
        error_set(&err, ERR_UNAVAILABLE, "failpoint collective.begin");
    if (err.code || round->declined || round_check(group, round, &err) ||
        combine_brought(group, round, &err) || direct_take(group, round, &err)) {
        reduce_fail(group, round, &err);
        return;
    }
    pthread_mutex_lock(&group->lock);
    round->combined = true;
    pthread_mutex_unlock(&group->lock);
    reduce_go_on(group, round);
    reduce_conclude(group, round);
}

/* ---- answers ---- */

void reduce_fail(struct process_group *group, struct collective_round *round,
                 const struct error *err)
{
    pthread_mutex_lock(&group->lock);
    struct collective_waiter *waiter = round_end(group, round);
    pthread_mutex_unlock(&group->lock);
    if (waiter)
        waiter->done(waiter, NULL, err);
}

void reduce_conclude(struct process_group *group, struct collective_round *round)
{
    pthread_mutex_lock(&group->lock);
    if (round->combined && !round->n_missing && !round->over)
        round->answered = round_end(group, round);
    pthread_mutex_unlock(&group->lock);
}
