/* SPDX-License-Identifier: Apache-2.0
 *
 * The records `reduce`, which members send each other, and servers. A record for a round that is
 * over here is dropped.
 */
#include <string.h>

#include "base/memory.h"
#include "transport/collective/collective_memory.h"
#include "transport/collective/collective_record.h"

/* ---- sending ---- */

#define KEY_FIELDS 5    /* of what belongs to a round: what it is, the key, and an index */
#define NUMBER_FIELDS 2 /* of what belongs to none */
#define SERVED_FIELDS 3 /* which are all that a server has to know */

static void pack(const struct process_group *group, msgpack_packer *packer,
                 const struct reduce *reduce, const struct collective_key *key)
{
    const struct collective_round *round = reduce->round;
    pack_key_int(packer, "what", reduce->what);
    if (key) {
        pack_key_text(packer, "name", key->name);
        pack_key_int(packer, "step", key->step);
        pack_key_uint(packer, "iteration", key->iteration);
        pack_key_uint(packer, "index", reduce->index);
    } else if (reduce->blocks) {
        shared_offer_pack(packer, reduce->blocks);
    } else {
        pack_key_uint(packer, "number", reduce->index);
    }
    if (reduce->what == REDUCE_BRING)
        contribution_pack(group, packer, reduce);
    if (reduce->served) {
        pack_key_array(packer, "members", (size_t)round->n_members);
        for (int i = 0; i < round->n_members; i++)
            pack_text(packer, group->ends[round->members[i]].task);
        pack_key_bool(packer, "mean", collective_divides(round->kinds[reduce->served->value]));
        pack_key_int(packer, "priority", round->priority);
    }
    if (reduce->is_shared)
        pack_key_uint(packer, "shared", reduce->shared);
    if (reduce->is_there)
        pack_key_bool(packer, "there", true);
}

void reduce_send_to(const struct process_group *group, struct peer *peer,
                    const struct reduce *reduce)
{
    struct error ignored = ERROR_INIT; /* its loss is told otherwise */
    const struct collective_round *round = reduce->round;
    const struct collective_key *key = round ? &round->key : reduce->key;
    /* Records of a round come in order; a member's leave comes behind all that it has sent. */
    int32_t of_none = reduce->what == REDUCE_LEAVE ? LINK_LAST : LINK_FIRST;
    int32_t priority = round ? round->priority : key ? reduce->priority : of_none;
    int n_fields = key ? KEY_FIELDS : reduce->blocks ? 1 + SHARED_OFFER_FIELDS : NUMBER_FIELDS;
    n_fields += reduce->is_shared + reduce->is_there + (reduce->served ? SERVED_FIELDS : 0);
    if (reduce->what == REDUCE_BRING)
        n_fields += contribution_fields(reduce);
    struct named_tensor *named = mem_array((size_t)reduce->n + 1, sizeof *named);
    for (int i = 0; i < reduce->n; i++)
        named[i] = (struct named_tensor){"", reduce->tensors[i]};
    msgpack_packer *packer = peer_begin(peer, RECORD_REDUCE, n_fields, &ignored);
    if (packer) {
        pack(group, packer, reduce, key);
        peer_end_value(peer, priority, named, reduce->n, &ignored);
    }
    mem_free(named);
}

void reduce_send(struct process_group *group, int end, const struct reduce *reduce)
{
    pthread_mutex_lock(&group->lock);
    struct peer *peer = group->ends[end].peer;
    if (peer)
        peer_retain(peer);
    pthread_mutex_unlock(&group->lock);
    if (peer)
        reduce_send_to(group, peer, reduce);
    peer_release(peer);
}

/* ---- taking ---- */

struct taken_record {
    int rank; /* of the sender, or a server's end */
    struct collective_key key;
    uint64_t index;
    const struct record *record;
    struct tensor shared; /* a block of the sender's, instead of the record's tensor; or zeroed */
    bool is_there;        /* neither of them: it is in the memory that was offered */
};

/* Finds a chunk's bytes: where the sender has them, in its block, or with the record. ERR_PROTOCOL:
 * it is not the chunk's. */
static int find_piece(const struct taken_record *taken, const struct chunk *chunk,
                      const struct collective_round *r, struct tensor *piece, struct error *err)
{
    const struct record *record = taken->record;
    const struct tensor *t = record->n_tensors == 1 ? &record->tensors[0].tensor : NULL;
    enum dtype type = r->own[chunk->value].type;
    bool fits;
    if (taken->is_there) {
        const struct tensor *sum = chunk_stays(r, chunk)
                                       ? &r->own[chunk->value] /* which is not read */
                                       : direct_sum(r, taken->rank, chunk->value);
        fits = !record->n_tensors && !taken->shared.data;
        if (sum)
            *piece = tensor_piece(sum, chunk->first, chunk->count);
    } else if (taken->shared.data) {
        fits = !t && chunk->count <= (int64_t)(SHARED_BLOCK_BYTES / dtype_bytes(type));
        *piece = taken->shared;
        piece->type = type;
        piece->shape = shape_vector(chunk->count);
    } else {
        fits = t && t->type == type && t->shape.rank == 1 && t->shape.dims[0] == chunk->count;
        if (fits)
            *piece = *t;
    }
    return fits ? 0
                : error_set(err, ERR_PROTOCOL, "sends a block of '%.200s' that it does not have",
                            r->name);
}

/* With the lock. A sum that stays with its owner is only said to be there. */
static int take_chunk(struct process_group *group, const struct taken_record *taken, bool is_part,
                      struct collective_round *r, struct chunk *chunk, struct error *err)
{
    struct tensor piece = TENSOR_INIT;
    if (find_piece(taken, chunk, r, &piece, err))
        return err->code;
    bool is_known = piece.data && (is_part || taken->is_there || !chunk_stays(r, chunk));
    if (is_known && chunk_take(group, r, chunk, taken->rank, !is_part, &piece))
        return 0;
    return is_part
               ? error_set(err, ERR_PROTOCOL, "sends a block of '%s' twice", r->name)
               : error_set(err, ERR_PROTOCOL, "sends a sum of '%s' that is not its own", r->name);
}

/* Takes a record of a round, which what is contributed may be the first of; else it is over. */
static int take_of_round(struct process_group *group, int64_t what,
                         const struct taken_record *taken, struct error *err)
{
    struct chunk *chunk = NULL;
    int code = 0;
    pthread_mutex_lock(&group->lock);
    struct collective_round *r =
        what == REDUCE_BRING ? round_get(group, &taken->key) : round_find(group, &taken->key);
    if (r)
        r->holders++;
    if (r && what == REDUCE_BRING) {
        code = contribution_take(group, r, taken->rank, taken->index, taken->record, err);
    } else if (r && what == REDUCE_READS) {
        if (round_react(r->state, ROUND_READS) == REACT_REFUSE ||
            !direct_take_answer(r, taken->rank, taken->index))
            code = error_set(err, ERR_PROTOCOL, "answers '%s', which it was not asked", r->name);
    } else if (r) {
        if (round_react(r->state, ROUND_CHUNK) != REACT_REFUSE)
            chunk = chunk_find(r, taken->index);
        code = chunk ? take_chunk(group, taken, what == REDUCE_PART, r, chunk, err)
                     : error_set(err, ERR_PROTOCOL,
                                 "sends a block of '%.200s' that it does not have", r->name);
    }
    pthread_mutex_unlock(&group->lock);
    if (chunk && !code)
        chunk_advance(group, r, chunk);
    if (r && !code)
        round_go_on(group, r);
    if (r)
        round_drop(group, r);
    return code;
}

static int peer_rank(struct process_group *group, const struct peer *peer)
{
    int rank = -1;
    pthread_mutex_lock(&group->lock);
    for (int k = 0; k < group->n_ends; k++)
        if (group->ends[k].peer == peer)
            rank = k;
    pthread_mutex_unlock(&group->lock);
    return rank;
}

/* Takes a record that belongs to no round. */
static int take_number(struct process_group *group, int64_t what, const struct taken_record *taken,
                       struct error *err)
{
    const msgpack_object *header = &taken->record->header;
    struct group_end *end = &group->ends[taken->rank];
    uint64_t number;
    if (what == REDUCE_OFFER)
        return shared_take_offer(group, taken->rank, header, err);
    if (!record_get_uint(header, "number", &number) || number > INT64_MAX)
        return error_set(err, ERR_PROTOCOL, "a reduce record without its number");
    if (what == REDUCE_ANSWER)
        return shared_take_answer(group, taken->rank, number != 0, err);
    if (what == REDUCE_LAST) {
        end_take(group, taken->rank, (int64_t)number);
        return 0;
    }
    if (number && group->leaving_heard.hear)
        group->leaving_heard.hear(group->leaving_heard.context);
    pthread_mutex_lock(&group->lock);
    *(number ? &end->leaving : &end->left) = true;
    pthread_mutex_unlock(&group->lock);
    rounds_settle(group);
    return 0;
}

bool reduce_read_key(const msgpack_object *header, struct collective_key *key, uint64_t *index)
{
    key->name = record_text(header, "name");
    return key->name && record_get_int(header, "step", &key->step) &&
           record_get_uint(header, "iteration", &key->iteration) &&
           record_get_uint(header, "index", index);
}

bool reduce_read_numbers(const struct record *record, const char *name, uint64_t most,
                         uint64_t **numbers, int *n)
{
    const msgpack_object *field = record_field(&record->header, name);
    bool good =
        !field || (field->type == MSGPACK_OBJECT_ARRAY && field->via.array.size < INT32_MAX);
    *n = field && good ? (int)field->via.array.size : 0;
    mem_free(*numbers);
    *numbers = mem_array((size_t)*n + 1, sizeof **numbers);
    for (int i = 0; i < *n && good; i++) {
        const msgpack_object *number = &field->via.array.ptr[i];
        good = number->type == MSGPACK_OBJECT_POSITIVE_INTEGER && number->via.u64 <= most;
        (*numbers)[i] = number->via.u64;
    }
    return good;
}

int reduce_take(void *context, struct peer *peer, const struct record *record, struct error *err)
{
    struct process_group *group = context;
    const msgpack_object *header = &record->header;
    struct taken_record taken = {.rank = peer_rank(group, peer), .record = record};
    uint64_t shared;
    int64_t what;
    int code = 0;
    if (taken.rank < 0 || !record_get_int(header, "what", &what) || what < 0 || what > REDUCE_READS)
        return error_set(err, ERR_PROTOCOL, "a reduce record that has no place here");
    if (is_server(group, taken.rank) && what != REDUCE_ANSWER &&
        (what != REDUCE_SUM || record_field(header, "there") || record_field(header, "shared")))
        return error_set(err, ERR_PROTOCOL, "a server's record that is no sum");
    if (what >= REDUCE_LEAVE && what < REDUCE_READS)
        return take_number(group, what, &taken, err);
    taken.is_there = what == REDUCE_SUM && record_field(header, "there");
    if (!reduce_read_key(header, &taken.key, &taken.index))
        code = error_set(err, ERR_PROTOCOL, "a reduce record that says not which it is");
    else if (record_get_uint(header, "shared", &shared))
        code = shared_read(group, taken.rank, shared, &taken.shared, err);
    if (!code)
        code = take_of_round(group, what, &taken, err);
    tensor_release(&taken.shared);
    return code;
}

/* ---- sums are read to where they belong ---- */

bool reduce_place(void *context, struct peer *peer, const struct record *record,
                  const struct tensor *like, struct tensor *t)
{
    struct process_group *group = context;
    struct taken_record taken = {.rank = peer_rank(group, peer), .record = record};
    int64_t what;
    if (record->n_tensors || taken.rank < 0 || !record_get_int(&record->header, "what", &what) ||
        what != REDUCE_SUM || !reduce_read_key(&record->header, &taken.key, &taken.index))
        return false;
    pthread_mutex_lock(&group->lock);
    struct collective_round *r = round_find(group, &taken.key);
    const struct chunk *chunk = r ? chunk_find(r, taken.index) : NULL;
    bool fits = chunk && !chunk_stays(r, chunk) && chunk_has_place(group, r, chunk, taken.rank) &&
                like->type == r->own[chunk->value].type && like->shape.rank == 1 &&
                like->shape.dims[0] == chunk->count;
    if (fits) {
        struct tensor piece = tensor_piece(&r->results[chunk->value], chunk->at, chunk->count);
        tensor_share(t, &piece);
    }
    pthread_mutex_unlock(&group->lock);
    return fits;
}
