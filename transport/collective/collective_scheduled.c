/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks that go by a schedule. What a member does about a block is a list: it sends what it has to
 * another, adds what comes of another, or takes the sum from one; each when those before are done
 * and what it wants is there. So each block goes its way by itself, blocks follow each other as
 * fast as links take them, and a block is added in the order of its list whenever parts of it come.
 *
 * The memory of the result holds what is added so far. It is not written again until the sum comes,
 * which it does not before all have what was sent of it.
 */
#include "base/memory.h"
#include "transport/collective/collective_private.h"

#define SCHEDULED_BYTES ((int64_t)64 << 10) /* of a block: short, so that links wait for few */

/* ---- the call ---- */

bool scheduled_value(const struct collective_round *m, int value)
{
    return collective_goes_by_schedule(&m->schedule, m->kinds[value], m->has_root, &m->own[value]);
}

/* The n-th block of each part in turn: the parts go different ways. */
size_t scheduled_cut(const struct process_group *group, struct collective_round *m, int value,
                     struct block *blocks)
{
    int64_t count = tensor_count(&m->own[value]);
    int64_t most = SCHEDULED_BYTES / (int64_t)dtype_bytes(m->own[value].type);
    int n_parts = collective_schedule_parts(&m->schedule, &m->group, group->interface.size,
                                            group->interface.rank);
    size_t n = 0;
    for (int64_t at = 0; at < collective_part(count, n_parts, 0).count; at += most)
        for (int part = 0; part < n_parts; part++) {
            struct row_range range = collective_part(count, n_parts, part);
            int64_t left = range.count - at;
            if (left <= 0)
                continue;
            if (blocks)
                blocks[n] = (struct block){.value = value,
                                           .first = range.first + at,
                                           .at = range.first + at,
                                           .count = left < most ? left : most,
                                           .to = TO_ALL,
                                           .is_scheduled = true,
                                           .part = part};
            n++;
        }
    return n;
}

/* ---- who takes part is known ---- */

void scheduled_settle(const struct process_group *group, struct collective_round *m)
{
    struct sum_schedule schedule = {0};
    int own = 0;
    if (m->schedule.kind == SCHEDULE_DIRECT || m->n_members < 2)
        return;
    while (m->members[own] != group->interface.rank)
        own++;
    collective_schedule_make(&m->schedule, m->members, m->n_members, &schedule);
    m->n_programs = schedule.n_pieces;
    m->programs = mem_array((size_t)schedule.n_pieces, sizeof *m->programs);
    for (int piece = 0; piece < schedule.n_pieces; piece++)
        program_make(&schedule, own, piece, &m->programs[piece]);
    /* Each way is full when as many blocks are under way as it has rounds; as many may wait. */
    m->window = SCHEDULED_BYTES * (2 * schedule.n_rounds + schedule.n_pieces + 2);
    schedule_release(&schedule);
}

void scheduled_free(struct collective_round *m)
{
    for (int i = 0; i < m->n_programs; i++)
        vec_release(&m->programs[i].actions);
    mem_free(m->programs);
}

static const struct chunk_program *program_of(const struct collective_round *m,
                                              const struct block *block)
{
    return &m->programs[block->part % m->n_programs];
}

/* With the lock, as the next ones. What is to be done next; NULL: nothing. */
static const struct chunk_action *next_of(const struct collective_round *m,
                                          const struct block *block)
{
    const struct chunk_program *program = program_of(m, block);
    return block->n_done < program->actions.n ? &program->actions.items[block->n_done] : NULL;
}

/* Whether that member may send what is to be added. */
static bool adds(const struct collective_round *m, const struct block *block, int rank)
{
    const struct chunk_program *program = m->programs ? program_of(m, block) : NULL;
    if (!m->settled)
        return true;
    for (size_t i = block->n_done; program && i < program->actions.n; i++) {
        const struct chunk_action *action = &program->actions.items[i];
        if (action->what == ACT_ADD && m->members[action->member] == rank)
            return true;
    }
    return false;
}

bool scheduled_awaits(const struct collective_round *m, const struct block *block, int rank)
{
    const struct chunk_action *next = m->programs ? next_of(m, block) : NULL;
    return next && next->what == ACT_COPY && m->members[next->member] == rank;
}

/* ---- actions ---- */

/* Takes the next one, if it can be done: nobody else does the next. */
static const struct chunk_action *begin(struct process_group *group, struct collective_round *m,
                                        struct block *block)
{
    pthread_mutex_lock(&group->lock);
    const struct chunk_action *next = next_of(m, block);
    if (!direct_agreed(group, m) || m->over || block->claimed)
        next = NULL;
    bool is_there =
        next && (next->what == ACT_SEND ||
                 (next->what == ACT_ADD && block->parts[m->members[next->member]].data));
    if (is_there) {
        block->claimed = true;
        block->n_done++; /* what a send leads to may come before it has returned */
    }
    pthread_mutex_unlock(&group->lock);
    return is_there ? next : NULL;
}

/* True: the block is over, since now. */
static bool end(struct process_group *group, struct collective_round *m, struct block *block)
{
    pthread_mutex_lock(&group->lock);
    block->claimed = false;
    bool over = !block->done && !next_of(m, block);
    if (over) {
        block->done = true;
        m->n_missing--;
        if (block->begun)
            m->flying -= reduce_block_bytes(m, block);
    }
    pthread_mutex_unlock(&group->lock);
    return over;
}

static struct tensor held(const struct collective_round *m, const struct block *block)
{
    const struct tensor *t = block->has_sum ? &m->results[block->value] : &m->own[block->value];
    return tensor_piece(t, block->first, block->count);
}

static void do_send(struct process_group *group, struct collective_round *m, struct block *block,
                    const struct chunk_action *action)
{
    int rank = m->members[action->member];
    struct tensor piece = held(m, block);
    const struct reduce reduce = {.what = action->whole ? REDUCE_SUM : REDUCE_PART,
                                  .round = m,
                                  .index = block->index,
                                  .tensors = &piece,
                                  .n = 1};
    reduce_send_copy(group, rank, &reduce);
}

static void do_add(struct process_group *group, struct collective_round *m, struct block *block,
                   const struct chunk_action *action)
{
    struct tensor *part = &block->parts[m->members[action->member]];
    struct tensor own = held(m, block);
    struct tensor sum = tensor_piece(&m->results[block->value], block->first, block->count);
    const void *data[2] = {part->data, own.data};
    bool divides = action->whole && collective_divides(m->kinds[block->value]);
    const struct collective_terms terms = {sum.type, data, 2, divides ? m->n_members : 0};
    collective_sum(&terms, sum.data, NULL, block->count);
    block->has_sum = true;
    pthread_mutex_lock(&group->lock);
    struct tensor taken = *part;
    *part = (struct tensor){0};
    pthread_mutex_unlock(&group->lock);
    tensor_release(&taken);
}

bool scheduled_go_on(struct process_group *group, struct collective_round *m, struct block *block)
{
    const struct chunk_action *action;
    bool over = false;
    while ((action = begin(group, m, block))) {
        if (action->what == ACT_SEND)
            do_send(group, m, block, action);
        else
            do_add(group, m, block, action);
        over |= end(group, m, block);
    }
    return over;
}

/* What waited for a block that is over. */
static void follow(struct process_group *group, struct collective_round *m)
{
    reduce_go_on(group, m);
    reduce_conclude(group, m);
}

/* ---- what comes ---- */

bool scheduled_take_part(struct process_group *group, struct collective_round *m,
                         struct block *block, int rank, const struct tensor *part)
{
    pthread_mutex_lock(&group->lock);
    bool good =
        !block->done && !block->parts[rank].data && m->brought[rank].here && adds(m, block, rank);
    bool settled = m->settled;
    if (good)
        tensor_share(&block->parts[rank], part);
    pthread_mutex_unlock(&group->lock);
    if (good && settled && scheduled_go_on(group, m, block))
        follow(group, m);
    return good;
}

void scheduled_take_sum(struct process_group *group, struct collective_round *m,
                        struct block *block)
{
    pthread_mutex_lock(&group->lock);
    bool busy = block->claimed; /* who is goes on with what follows */
    block->has_sum = block->claimed = true;
    block->n_done++;
    pthread_mutex_unlock(&group->lock);
    if (!busy && (end(group, m, block) || scheduled_go_on(group, m, block)))
        follow(group, m);
}
