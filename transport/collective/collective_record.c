/* SPDX-License-Identifier: Apache-2.0
 *
 * Taking the records `reduce`. What comes for a round that is over here is dropped.
 */
#include <string.h>

#include "base/memory.h"
#include "transport/collective/collective_private.h"

#define UNCALLED_MAX 4096 /* rounds that others came to, and this member not yet */

struct taken_record {
    int rank; /* of the sender, or a server's end */
    struct collective_key key;
    uint64_t index;
    const struct record *record;
    struct tensor shared; /* a block of the sender's, instead of the record's tensor; or zeroed */
    bool is_there;        /* neither of them: it is in the memory that was offered */
};

/* Works on what is settled since something came. */
static void begin_settled(struct process_group *group)
{
    for (;;) {
        pthread_mutex_lock(&group->lock);
        struct collective_round *m = group->rounds;
        while (m && !round_settle(group, m))
            m = m->next;
        if (m)
            m->holders++;
        pthread_mutex_unlock(&group->lock);
        if (!m)
            break;
        reduce_begin(group, m);
        round_drop(group, m);
    }
}

static int take_leave(struct process_group *group, const struct taken_record *taken)
{
    uint64_t is_about_to = 0;
    record_get_uint(&taken->record->header, "number", &is_about_to);
    bool *leave = is_about_to ? group->leaving : group->left;
    if (is_about_to && group->leaving_heard.hear)
        group->leaving_heard.hear(group->leaving_heard.context);
    pthread_mutex_lock(&group->lock);
    leave[taken->rank] = true;
    pthread_mutex_unlock(&group->lock);
    begin_settled(group);
    return 0;
}

static int take_bring(struct process_group *group, const struct taken_record *taken,
                      struct error *err)
{
    const struct record *record = taken->record;
    int code = 0;
    if (record_field(&record->header, "memory") && !group->views[taken->rank])
        return error_set(err, ERR_PROTOCOL, "offers memory where none is shared");
    pthread_mutex_lock(&group->lock);
    struct brought *brought = &round_get(group, &taken->key)->brought[taken->rank];
    if (brought->here || group->left[taken->rank] || group->n_uncalled > UNCALLED_MAX) {
        code = error_set(err, ERR_PROTOCOL, "comes to '%.200s' twice, or to too much",
                         taken->key.name);
    } else if (!direct_read(record, brought)) {
        code = error_set(err, ERR_PROTOCOL, "offers memory and does not say which");
    } else if (!rows_read(record, brought)) {
        code = error_set(err, ERR_PROTOCOL, "says of '%.200s' how many rows it has, and how not",
                         taken->key.name);
    } else {
        brought->here = true;
        brought->nothing = record_field(&record->header, "nothing") != NULL;
        brought->signature = taken->index;
        brought->n = record->n_tensors;
        brought->values = mem_array((size_t)record->n_tensors + 1, sizeof *brought->values);
        for (int i = 0; i < record->n_tensors; i++)
            tensor_share(&brought->values[i], &record->tensors[i].tensor);
    }
    pthread_mutex_unlock(&group->lock);
    if (!code)
        begin_settled(group);
    return code;
}

static int take_reads(struct process_group *group, const struct taken_record *taken,
                      struct error *err)
{
    pthread_mutex_lock(&group->lock);
    struct collective_round *m = round_find(group, &taken->key);
    if (m)
        m->holders++;
    pthread_mutex_unlock(&group->lock);
    if (!m)
        return 0;
    int code = direct_take_answer(group, m, taken->rank, taken->index, err);
    round_drop(group, m);
    return code;
}

static bool fits(const struct taken_record *taken, const struct block *block,
                 const struct collective_round *m)
{
    const struct record *record = taken->record;
    const struct tensor *t = record->n_tensors == 1 ? &record->tensors[0].tensor : NULL;
    const struct tensor *own = &m->own[block->value];
    if (taken->is_there)
        return !record->n_tensors && !taken->shared.data;
    if (taken->shared.data)
        return !t && block->count <= (int64_t)(SHARED_BLOCK_BYTES / dtype_bytes(own->type));
    return t && t->type == own->type && t->shape.rank == 1 && t->shape.dims[0] == block->count;
}

/* What came of a block that it fits to. Since the round is settled, if it is there. */
static struct tensor arrived(const struct taken_record *taken, const struct block *block,
                             const struct collective_round *m)
{
    struct tensor t = taken->shared;
    const struct tensor *sum = taken->is_there ? direct_sum(m, taken->rank, block->value) : NULL;
    if (sum)
        return tensor_piece(sum, block->first, block->count);
    if (!t.data)
        return taken->record->tensors[0].tensor;
    t.type = m->own[block->value].type;
    t.shape = shape_vector(block->count);
    return t;
}

/* The round, held, and its block that the record fits to; *m NULL: it is over. */
static int find_block(struct process_group *group, const struct taken_record *taken,
                      struct collective_round **found, struct error *err)
{
    int code = 0;
    pthread_mutex_lock(&group->lock);
    struct collective_round *m = *found = round_find(group, &taken->key);
    if (m) {
        const struct block *block = round_block(m, taken->index);
        if (!block || !fits(taken, block, m))
            code = error_set(err, ERR_PROTOCOL, "sends a block of '%.200s' that it does not have",
                             taken->key.name);
        m->holders += !code;
    }
    pthread_mutex_unlock(&group->lock);
    return code;
}

static int take_part(struct process_group *group, const struct taken_record *taken,
                     struct collective_round *m, struct error *err)
{
    struct block *block = round_block(m, taken->index);
    bool complete = false;
    int code = 0;
    pthread_mutex_lock(&group->lock);
    /* The parts of a block that is claimed are those of who adds them. */
    if (block->claimed || block->done || !block->parts || block->parts[taken->rank].data ||
        !m->brought[taken->rank].here || !collective_adds(m->kinds[block->value])) {
        code = error_set(err, ERR_PROTOCOL, "sends a block of '%s' twice", m->name);
    } else {
        struct tensor t = arrived(taken, block, m);
        tensor_share(&block->parts[taken->rank], &t);
        complete = block->owner == group->interface.rank && reduce_is_complete(group, m, block);
        block->claimed |= complete;
    }
    pthread_mutex_unlock(&group->lock);
    if (complete) {
        reduce_sum(group, m, taken->index);
        reduce_conclude(group, m);
    }
    return code;
}

/* With the lock: whether that member may send the sum, or what it has to give. */
static bool awaits_sum(const struct process_group *group, const struct collective_round *m,
                       const struct block *block, int rank)
{
    bool first = m->kinds[block->value] == COLLECTIVE_FIRST;
    if (served_is_server(group, rank))
        return served_awaits(m, block, rank);
    if (block->is_scheduled)
        return m->settled && !block->done && scheduled_awaits(m, block, rank);
    bool may_give = first && (!m->has_root || rank == m->root);
    return !block->done && !block->relay && m->brought[rank].here &&
           (m->settled ? block->owner == rank : may_give);
}

static bool is_awaited(const struct process_group *group, const struct collective_round *m,
                       const struct block *block, const struct taken_record *taken)
{
    if (!awaits_sum(group, m, block, taken->rank))
        return false;
    if (block_stays(m, block))
        return taken->is_there && block->begun;
    return !taken->is_there || direct_sum(m, taken->rank, block->value);
}

/* Nobody else writes there: sums of a block come from one member, in the loop's thread. */
static int take_sum(struct process_group *group, const struct taken_record *taken,
                    struct collective_round *m, struct error *err)
{
    struct block *block = round_block(m, taken->index);
    pthread_mutex_lock(&group->lock);
    bool good = is_awaited(group, m, block, taken);
    pthread_mutex_unlock(&group->lock);
    if (!good)
        return error_set(err, ERR_PROTOCOL, "sends a sum of '%s' that is not its own", m->name);
    if (!block_stays(m, block)) {
        struct tensor sum = arrived(taken, block, m);
        reduce_put(m, block, &sum);
    }
    if (block->is_scheduled)
        scheduled_take_sum(group, m, block);
    else
        reduce_arrived(group, m, block);
    return 0;
}

static int take_scheduled(struct process_group *group, const struct taken_record *taken,
                          struct collective_round *m, struct error *err)
{
    struct block *block = round_block(m, taken->index);
    struct tensor part = arrived(taken, block, m);
    if (scheduled_take_part(group, m, block, taken->rank, &part))
        return 0;
    return error_set(err, ERR_PROTOCOL, "sends a block of '%s' twice", m->name);
}

static int rank_of(struct process_group *group, const struct peer *peer)
{
    int rank = -1;
    pthread_mutex_lock(&group->lock);
    for (int k = 0; k < group->n_ends; k++)
        if (group->peers[k] == peer)
            rank = k;
    pthread_mutex_unlock(&group->lock);
    return rank;
}

static int take(struct process_group *group, int64_t what, const struct taken_record *taken,
                struct error *err)
{
    struct collective_round *round;
    if (what == REDUCE_BRING)
        return take_bring(group, taken, err);
    if (what == REDUCE_READS)
        return take_reads(group, taken, err);
    int code = find_block(group, taken, &round, err);
    if (code || !round)
        return code;
    bool is_part = what == REDUCE_PART;
    if (is_part && round_block(round, taken->index)->is_scheduled)
        code = take_scheduled(group, taken, round, err);
    else
        code = is_part ? take_part(group, taken, round, err) : take_sum(group, taken, round, err);
    round_drop(group, round);
    return code;
}

/* What belongs to no round. */
static int take_number(struct process_group *group, int64_t what, const struct taken_record *taken,
                       struct error *err)
{
    const msgpack_object *header = &taken->record->header;
    uint64_t number;
    if (what == REDUCE_OFFER)
        return shared_take_offer(group, taken->rank, header, err);
    if (!record_get_uint(header, "number", &number) || number > INT64_MAX)
        return error_set(err, ERR_PROTOCOL, "a reduce record without its number");
    if (what != REDUCE_LAST)
        return shared_take_answer(group, taken->rank, number != 0, err);
    end_take(group, taken->rank, (int64_t)number);
    return 0;
}

static bool take_key(const msgpack_object *header, struct taken_record *taken)
{
    taken->key.name = record_text(header, "name");
    return taken->key.name && record_get_int(header, "step", &taken->key.step) &&
           record_get_uint(header, "iteration", &taken->key.iteration) &&
           record_get_uint(header, "index", &taken->index);
}

/* Servers have neither memory nor values of their own. */
static bool is_of_server(const msgpack_object *header, int64_t what)
{
    return what == REDUCE_ANSWER || (what == REDUCE_SUM && !record_field(header, "there") &&
                                     !record_field(header, "shared"));
}

int reduce_take(void *context, struct peer *peer, const struct record *record, struct error *err)
{
    struct process_group *group = context;
    const msgpack_object *header = &record->header;
    struct taken_record taken = {.rank = rank_of(group, peer), .record = record};
    uint64_t shared;
    int64_t what;
    int code = 0;
    if (taken.rank < 0 || !record_get_int(header, "what", &what) || what < 0 || what > REDUCE_READS)
        return error_set(err, ERR_PROTOCOL, "a reduce record that has no place here");
    if (served_is_server(group, taken.rank) && !is_of_server(header, what))
        return error_set(err, ERR_PROTOCOL, "a server's record that is no sum");
    if (what == REDUCE_LEAVE)
        return take_leave(group, &taken);
    if (what > REDUCE_LEAVE && what < REDUCE_READS)
        return take_number(group, what, &taken, err);
    taken.is_there = what == REDUCE_SUM && record_field(header, "there");
    if (!take_key(header, &taken))
        code = error_set(err, ERR_PROTOCOL, "a reduce record that says not which it is");
    else if (record_get_uint(header, "shared", &shared))
        code = shared_read(group, taken.rank, shared, &taken.shared, err);
    if (!code)
        code = take(group, what, &taken, err);
    tensor_release(&taken.shared);
    return code;
}

/* ---- sums are read to where they belong ---- */

static bool place_sum(struct process_group *group, const struct taken_record *taken,
                      const struct tensor *like, struct tensor *t)
{
    pthread_mutex_lock(&group->lock);
    struct collective_round *m = round_find(group, &taken->key);
    const struct block *block = m ? round_block(m, taken->index) : NULL;
    bool fits = block && !block_stays(m, block) && awaits_sum(group, m, block, taken->rank) &&
                like->type == m->own[block->value].type && like->shape.rank == 1 &&
                like->shape.dims[0] == block->count;
    if (fits) {
        struct tensor piece = tensor_piece(&m->results[block->value], block->at, block->count);
        tensor_share(t, &piece);
    }
    pthread_mutex_unlock(&group->lock);
    return fits;
}

bool reduce_place(void *context, struct peer *peer, const struct record *record,
                  const struct tensor *like, struct tensor *t)
{
    struct process_group *group = context;
    struct taken_record taken = {.rank = rank_of(group, peer), .record = record};
    int64_t what;
    bool is_sum = !record->n_tensors && taken.rank >= 0 &&
                  record_get_int(&record->header, "what", &what) && what == REDUCE_SUM;
    return is_sum && take_key(&record->header, &taken) && place_sum(group, &taken, like, t);
}
