/* SPDX-License-Identifier: Apache-2.0
 *
 * What members do about a round: send, add, answer.
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

static void bring_to(struct process_group *group, struct collective_round *m, int rank,
                     struct reduce bring)
{
    struct direct_offer *offers;
    bring.n_offers = direct_offer(group, m, rank, &offers);
    bring.offers = offers;
    reduce_send(group, rank, &bring);
    mem_free(offers);
}

void reduce_bring(struct process_group *group, struct collective_round *round)
{
    struct tensor *small = mem_array((size_t)round->n + 1, sizeof *small);
    int n = 0;
    for (int i = 0; i < round->n; i++)
        if (round_is_small(round, i))
            small[n++] = round->own[i];
    const struct reduce bring = {
        .what = REDUCE_BRING, .round = round, .index = round->signature, .tensors = small, .n = n};
    for (int k = 0; k < group->interface.size; k++)
        if (k != group->interface.rank)
            bring_to(group, round, k, bring);
    mem_free(small);
}

static int combine_small(const struct process_group *group, struct collective_round *m,
                         struct error *err)
{
    const struct tensor **values = mem_array((size_t)m->n_members, sizeof *values);
    int code = 0, at = 0;
    for (int i = 0; !code && i < m->n; i++) {
        if (!round_is_small(m, i))
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
static void send_piece(struct process_group *group, int rank, const struct reduce *reduce,
                       int shared)
{
    struct reduce where = *reduce;
    const struct block *block = &reduce->round->blocks[reduce->index];
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

static void send_to_all(struct process_group *group, struct collective_round *m, size_t index,
                        const struct tensor *piece, int shared)
{
    const struct reduce sum = {
        .what = REDUCE_SUM, .round = m, .index = index, .tensors = piece, .n = 1};
    for (int i = 0; i < m->n_members; i++)
        if (m->members[i] != group->interface.rank)
            send_piece(group, m->members[i], &sum, shared);
}

/* A block for all who can read it, and have no other way. */
static int share_with_all(struct process_group *group, const struct collective_round *m, int value,
                          const struct tensor *piece, void **data)
{
    int readers = 0;
    for (int i = 0; i < m->n_members; i++)
        readers += group->shares[m->members[i]] && !direct_is_read(m, m->members[i], value);
    return shared_block(group, m->kinds[value], tensor_bytes(piece), readers, data);
}

static void block_is_done(struct process_group *group, struct collective_round *m,
                          struct block *block)
{
    pthread_mutex_lock(&group->lock);
    block->done = true;
    m->n_missing--;
    pthread_mutex_unlock(&group->lock);
}

/* The value of the first member: its own. */
static void give_first(struct process_group *group, struct collective_round *m, size_t index)
{
    struct block *block = &m->blocks[index];
    struct tensor piece = tensor_piece(&m->own[block->value], block->first, block->count);
    void *data;
    int shared = share_with_all(group, m, block->value, &piece, &data);
    if (shared >= 0)
        memcpy(data, piece.data, tensor_bytes(&piece));
    send_to_all(group, m, index, &piece, shared);
    if (!block->first) {
        tensor_release(&m->results[block->value]);
        tensor_share(&m->results[block->value], &m->own[block->value]);
    }
    block_is_done(group, m, block);
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

void reduce_sum(struct process_group *group, struct collective_round *m, size_t index)
{
    struct block *block = &m->blocks[index];
    const void **data = mem_array((size_t)m->n_members, sizeof *data);
    struct tensor own = tensor_piece(&m->own[block->value], block->first, block->count);
    struct tensor sum = tensor_piece(&m->results[block->value], block->first, block->count);
    void *copy = NULL;
    int shared = share_with_all(group, m, block->value, &sum, &copy);
    for (int i = 0; i < m->n_members; i++)
        data[i] =
            m->members[i] == group->interface.rank ? own.data : part_data(m, block, m->members[i]);
    int divisor = collective_divides(m->kinds[block->value]) ? m->n_members : 0;
    const struct collective_terms terms = {sum.type, data, m->n_members, divisor};
    collective_sum(&terms, sum.data, copy, block->count);
    mem_free(data);
    for (int k = 0; k < group->interface.size; k++)
        tensor_release(&block->parts[k]);
    send_to_all(group, m, index, &sum, shared);
    block_is_done(group, m, block);
}

/* To its owner, unless that reads it where it is. */
static void send_part(struct process_group *group, struct collective_round *m, size_t index,
                      const struct tensor *piece)
{
    const struct reduce part = {
        .what = REDUCE_PART, .round = m, .index = index, .tensors = piece, .n = 1};
    int owner = m->blocks[index].owner, value = m->blocks[index].value;
    void *data;
    if (direct_is_read(m, owner, value))
        return;
    int shared =
        shared_block(group, m->kinds[value], tensor_bytes(piece), group->shares[owner], &data);
    if (shared >= 0)
        memcpy(data, piece->data, tensor_bytes(piece));
    send_piece(group, owner, &part, shared);
}

static bool claim(struct process_group *group, struct collective_round *m, size_t index)
{
    struct block *block = &m->blocks[index];
    pthread_mutex_lock(&group->lock);
    bool mine = !block->claimed && reduce_is_complete(group, m, block);
    block->claimed |= mine;
    pthread_mutex_unlock(&group->lock);
    return mine;
}

/* Whether this member's part of a block goes to another. */
static bool is_sent(const struct process_group *group, const struct collective_round *m,
                    const struct block *block)
{
    return collective_adds(m->kinds[block->value]) && block->owner != group->interface.rank;
}

static int64_t block_bytes(const struct collective_round *m, const struct block *block)
{
    return block->count * (int64_t)dtype_bytes(m->own[block->value].type);
}

static void begin_block(struct process_group *group, struct collective_round *m, size_t index)
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
static bool next_block(struct process_group *group, struct collective_round *m, size_t *index)
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

void reduce_go_on(struct process_group *group, struct collective_round *round)
{
    size_t index;
    while (next_block(group, round, &index))
        begin_block(group, round, index);
}

void reduce_begin(struct process_group *group, struct collective_round *round)
{
    struct error err = ERROR_INIT;
    if (round_check(group, round, &err) || combine_small(group, round, &err) ||
        direct_take(group, round, &err)) {
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
