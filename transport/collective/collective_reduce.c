/* SPDX-License-Identifier: Apache-2.0
 *
 * What members do about a meeting: send, add, answer.
 */
#include <string.h>

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

/* ---- small values ---- */

static void bring_to(struct group *group, struct meeting *m, int rank, struct reduce bring)
{
    struct direct_offer *offers;
    bring.n_offers = direct_offer(group, m, rank, &offers);
    bring.offers = offers;
    reduce_send(group, rank, &bring);
    mem_free(offers);
}

void reduce_bring(struct group *group, struct meeting *meeting)
{
    struct tensor *small = mem_array((size_t)meeting->n + 1, sizeof *small);
    int n = 0;
    for (int i = 0; i < meeting->n; i++)
        if (meeting_is_small(meeting, i))
            small[n++] = meeting->own[i];
    const struct reduce bring = {.what = REDUCE_BRING,
                                 .meeting = meeting,
                                 .index = meeting->signature,
                                 .tensors = small,
                                 .n = n};
    for (int k = 0; k < group->interface.size; k++)
        if (k != group->interface.rank)
            bring_to(group, meeting, k, bring);
    mem_free(small);
}

static int combine_small(const struct group *group, struct meeting *m, struct error *err)
{
    const struct tensor **values = mem_array((size_t)m->n_members, sizeof *values);
    int code = 0, at = 0;
    for (int i = 0; !code && i < m->n; i++) {
        if (!meeting_is_small(m, i))
            continue;
        for (int k = 0; !code && k < m->n_members; k++) {
            const struct brought *brought = &m->brought[m->members[k]];
            bool is_own = m->members[k] == group->interface.rank;
            if (!is_own && at >= brought->n)
                code = error_set(err, ERR_PROTOCOL, "'%s': %s brings too little", m->name,
                                 group->tasks[m->members[k]]);
            else
                values[k] = is_own ? &m->own[i] : &brought->values[at];
        }
        at++;
        if (!code && collective_combine(m->kinds[i], values, m->n_members, &m->results[i], err))
            code = error_prefix(err, "'%s': ", m->name);
    }
    mem_free(values);
    return code;
}

/* ---- blocks ---- */

/* Where the member reads it already; else as it is, or as the block that has it (-1: none has). */
static void send_piece(struct group *group, int rank, const struct reduce *reduce, int lent)
{
    struct reduce where = *reduce;
    const struct block *block = &reduce->meeting->blocks[reduce->index];
    if (direct_is_read(reduce->meeting, rank, block->value)) {
        where.n = 0;
        where.is_there = true;
    } else if (lent >= 0 && group->lends[rank]) {
        where.n = 0;
        where.is_lent = true;
        where.lent = (uint64_t)lent;
    }
    reduce_send(group, rank, &where);
}

static void send_to_all(struct group *group, struct meeting *m, size_t index,
                        const struct tensor *piece, int lent)
{
    const struct reduce sum = {
        .what = REDUCE_SUM, .meeting = m, .index = index, .tensors = piece, .n = 1};
    for (int i = 0; i < m->n_members; i++)
        if (m->members[i] != group->interface.rank)
            send_piece(group, m->members[i], &sum, lent);
}

/* A block for all who can read it, and have no other way. */
static int lend_to_all(struct group *group, const struct meeting *m, int value,
                       const struct tensor *piece, void **data)
{
    int readers = 0;
    for (int i = 0; i < m->n_members; i++)
        readers += group->lends[m->members[i]] && !direct_is_read(m, m->members[i], value);
    return lend_block(group, tensor_bytes(piece), readers, data);
}

static void block_is_done(struct group *group, struct meeting *m, struct block *block)
{
    pthread_mutex_lock(&group->lock);
    block->done = true;
    m->n_missing--;
    pthread_mutex_unlock(&group->lock);
}

/* The value of the first member: its own. */
static void give_first(struct group *group, struct meeting *m, size_t index)
{
    struct block *block = &m->blocks[index];
    struct tensor piece = tensor_piece(&m->own[block->value], block->first, block->count);
    void *data;
    int lent = lend_to_all(group, m, block->value, &piece, &data);
    if (lent >= 0)
        memcpy(data, piece.data, tensor_bytes(&piece));
    send_to_all(group, m, index, &piece, lent);
    if (!block->first) {
        tensor_release(&m->results[block->value]);
        tensor_share(&m->results[block->value], &m->own[block->value]);
    }
    block_is_done(group, m, block);
}

/* NULL: it has not come. */
static const void *part_data(const struct meeting *m, const struct block *block, int rank)
{
    const struct tensor *part = direct_part(m, rank, block->value);
    return part ? tensor_piece(part, block->first, block->count).data : block->parts[rank].data;
}

bool reduce_is_complete(const struct group *group, const struct meeting *m,
                        const struct block *block)
{
    bool complete = m->agreed;
    for (int i = 0; i < m->n_members && complete; i++)
        complete =
            m->members[i] == group->interface.rank || part_data(m, block, m->members[i]) != NULL;
    return complete;
}

void reduce_sum(struct group *group, struct meeting *m, size_t index)
{
    struct block *block = &m->blocks[index];
    const void **data = mem_array((size_t)m->n_members, sizeof *data);
    struct tensor own = tensor_piece(&m->own[block->value], block->first, block->count);
    struct tensor sum = tensor_piece(&m->results[block->value], block->first, block->count);
    void *copy = NULL;
    int lent = lend_to_all(group, m, block->value, &sum, &copy);
    for (int i = 0; i < m->n_members; i++)
        data[i] =
            m->members[i] == group->interface.rank ? own.data : part_data(m, block, m->members[i]);
    const struct collective_terms terms = {sum.type, data, m->n_members,
                                           m->kinds[block->value] == COLLECTIVE_MEAN};
    collective_sum(&terms, sum.data, copy, block->count);
    mem_free(data);
    for (int k = 0; k < group->interface.size; k++)
        tensor_release(&block->parts[k]);
    send_to_all(group, m, index, &sum, lent);
    block_is_done(group, m, block);
}

/* To its owner, unless that reads it where it is. */
static void send_part(struct group *group, struct meeting *m, size_t index,
                      const struct tensor *piece)
{
    const struct reduce part = {
        .what = REDUCE_PART, .meeting = m, .index = index, .tensors = piece, .n = 1};
    int owner = m->blocks[index].owner;
    void *data;
    if (direct_is_read(m, owner, m->blocks[index].value))
        return;
    int lent = lend_block(group, tensor_bytes(piece), group->lends[owner], &data);
    if (lent >= 0)
        memcpy(data, piece->data, tensor_bytes(piece));
    send_piece(group, owner, &part, lent);
}

static bool claim(struct group *group, struct meeting *m, size_t index)
{
    struct block *block = &m->blocks[index];
    pthread_mutex_lock(&group->lock);
    bool mine = !block->claimed && reduce_is_complete(group, m, block);
    block->claimed |= mine;
    pthread_mutex_unlock(&group->lock);
    return mine;
}

/* Whether this member's part of a block goes to another. */
static bool is_sent(const struct group *group, const struct meeting *m, const struct block *block)
{
    return collective_adds(m->kinds[block->value]) && block->owner != group->interface.rank;
}

static int64_t block_bytes(const struct meeting *m, const struct block *block)
{
    return block->count * (int64_t)dtype_bytes(m->own[block->value].type);
}

static void begin_block(struct group *group, struct meeting *m, size_t index)
{
    struct block *block = &m->blocks[index];
    struct tensor piece = tensor_piece(&m->own[block->value], block->first, block->count);
    if (m->kinds[block->value] == COLLECTIVE_FIRST) {
        if (block->owner == group->interface.rank)
            give_first(group, m, index);
    } else if (block->owner != group->interface.rank) {
        send_part(group, m, index, &piece);
    } else if (claim(group, m, index)) {
        reduce_sum(group, m, index);
    }
}

/* The next block, if one may be begun; its part counts as sent. */
static bool next_block(struct group *group, struct meeting *m, size_t *index)
{
    pthread_mutex_lock(&group->lock);
    bool any =
        direct_agreed(group, m) && m->n_begun < m->n_blocks && m->flying < WINDOW_BYTES && !m->over;
    if (any) {
        *index = m->n_begun++;
        const struct block *block = &m->blocks[*index];
        if (is_sent(group, m, block))
            m->flying += block_bytes(m, block);
    }
    pthread_mutex_unlock(&group->lock);
    return any;
}

void reduce_go_on(struct group *group, struct meeting *meeting)
{
    size_t index;
    while (next_block(group, meeting, &index))
        begin_block(group, meeting, index);
}

void reduce_begin(struct group *group, struct meeting *meeting)
{
    struct error err = ERROR_INIT;
    if (meeting_check(group, meeting, &err) || combine_small(group, meeting, &err) ||
        direct_take(group, meeting, &err)) {
        reduce_fail(group, meeting, &err);
        return;
    }
    pthread_mutex_lock(&group->lock);
    meeting->combined = true;
    pthread_mutex_unlock(&group->lock);
    reduce_go_on(group, meeting);
    reduce_conclude(group, meeting);
}

/* ---- answers ---- */

void reduce_fail(struct group *group, struct meeting *meeting, const struct error *err)
{
    pthread_mutex_lock(&group->lock);
    struct collective_waiter *waiter = meeting_end(group, meeting);
    pthread_mutex_unlock(&group->lock);
    if (waiter)
        waiter->done(waiter, NULL, 0, err);
}

void reduce_conclude(struct group *group, struct meeting *meeting)
{
    struct collective_waiter *waiter = NULL;
    pthread_mutex_lock(&group->lock);
    if (meeting->combined && !meeting->n_missing)
        waiter = meeting_end(group, meeting);
    pthread_mutex_unlock(&group->lock);
    if (!waiter)
        return;
    direct_give_back(group, meeting); /* before anybody counts who has the memory */
    waiter->done(waiter, meeting->results, meeting->n_members, NULL);
}
