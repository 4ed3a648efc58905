/* SPDX-License-Identifier: Apache-2.0
 *
 * The records `reduce`, which members and servers send each other. Records for a round that is over
 * here are dropped.
 */

#include "transport/collective/collective_record.h"
#include "base/container_of.h"
#include "base/memory.h"
#include "transport/collective/collective_round.h"
#include "transport/value/segment.h"

/* ---- sending ---- */

#define KEY_FIELDS 5    /* of a record of a round: what, key, index */
#define NUMBER_FIELDS 2 /* of other records */
#define SERVED_FIELDS 3 /* all that a server has to know */

void reduce_send_to(const struct process_group *group, struct peer *peer,
                    const struct reduce *reduce)
{
    struct error ignored = ERROR_INIT; /* a lost peer is reported elsewhere */
    const struct collective_round *round = reduce->round;
    const struct collective_call *call = round ? &round->call : reduce->call;
    bool brings = reduce->what == REDUCE_BRING;
    /* Records of a round arrive in order; a member's leave arrives after all that it has sent. */
    int32_t of_none = reduce->what == REDUCE_LEAVE ? LINK_LAST : LINK_FIRST;
    int32_t priority = call ? call->priority : of_none;
    int n_fields = (call ? KEY_FIELDS : NUMBER_FIELDS) + (reduce->shared != NULL) +
                   (reduce->served ? SERVED_FIELDS : 0) + (brings ? contribution_fields(round) : 0);
    msgpack_packer *packer = peer_begin(peer, RECORD_REDUCE, n_fields, &ignored);
    if (!packer)
        return;
    pack_key_int(packer, "what", reduce->what);
    if (call) {
        pack_key_text(packer, "name", call->key.name);
        pack_key_int(packer, "step", call->key.step);
        pack_key_uint(packer, "iteration", call->key.iteration);
    }
    pack_key_uint(packer, call ? "index" : "number", reduce->index);
    if (brings)
        contribution_pack(round, round->contributions[group->interface.rank].number, packer);
    if (reduce->served) {
        pack_key_array(packer, "members", (size_t)round->n_members);
        for (int i = 0; i < round->n_members; i++)
            pack_text(packer, group->ends[round->members[i]].task);
        pack_key_bool(packer, "mean", collective_divides(round->kinds[reduce->served->value]));
        pack_key_int(packer, "priority", round->call.priority);
    }
    if (reduce->shared) {
        struct segment_offer offer = segment_share(reduce->shared);
        segment_offer_pack(packer, &offer);
    }
    struct named_tensor *named = mem_array((size_t)reduce->n + 1, sizeof *named);
    for (int i = 0; i < reduce->n; i++)
        named[i] = (struct named_tensor){"", reduce->tensors[i]};
    if (peer_end_value(peer, priority, named, reduce->n, &ignored) && reduce->shared)
        segment_take_back(reduce->shared);
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

void reduce_send_all(struct process_group *group, const struct reduce *reduce)
{
    for (int k = 0; k < group->interface.size; k++)
        if (k != group->interface.rank)
            reduce_send(group, k, reduce);
}

/* ---- receiving ---- */

/* Takes a record of a round: a contribution (`contribution`), which may be the first record of its
 * round, or a piece of a chunk; for that, a round that is not found is over. */
static int take_of_round(struct process_group *group, const struct collective_key *key,
                         const struct chunk_piece *piece, const struct record *contribution,
                         struct error *err)
{
    struct chunk *chunk = NULL;
    int code = 0;
    pthread_mutex_lock(&group->lock);
    struct collective_round *r = contribution ? round_get(group, key) : round_find(group, key);
    if (r)
        r->holders++;
    if (contribution)
        code = contribution_take(group, r, piece->end, piece->index, contribution, err);
    else if (r)
        code = chunk_take(group, r, piece, &chunk, err);
    pthread_mutex_unlock(&group->lock);
    if (chunk && !code)
        chunk_advance(group, r, chunk);
    if (r && !code)
        round_go_on(group, r);
    if (r)
        round_drop(group, r);
    return code;
}

static int find_end(struct process_group *group, const struct peer *peer)
{
    int end = -1;
    pthread_mutex_lock(&group->lock);
    for (int k = 0; k < group->n_ends; k++)
        if (group->ends[k].peer == peer)
            end = k;
    pthread_mutex_unlock(&group->lock);
    return end;
}

/* Maps a part of the sender's segment, of which the sender has offered a byte before. ERR_PROTOCOL:
 * it is not there. */
static int map_shared(struct process_group *group, const struct group_end *end,
                      const struct record *record, struct tensor *t, struct error *err)
{
    struct segment_offer offer;
    bool good = (t == &end->segment || end->segment.data) &&
                segment_offer_read(&record->header, &offer) && offer.bytes <= CHUNK_BYTES;
    struct shape shape = shape_vector(good ? (int64_t)offer.bytes : 0);
    return good && segments_map(conns_segments(group->conns), &offer, UINT8, &shape, t) ==
                       SEGMENT_TAKEN
               ? 0
               : error_set(err, ERR_PROTOCOL, "shares memory that is not there");
}

/* Takes a record that belongs to no round, of end k. */
static int take_number(struct process_group *group, int64_t what, int k,
                       const struct record *record, struct error *err)
{
    const msgpack_object *header = &record->header;
    struct group_end *end = &group->ends[k];
    uint64_t number;
    if (what == REDUCE_JOIN) {
        /* A segment that cannot be mapped is in another container, or of another user. */
        struct error why = ERROR_INIT;
        if (end->segment.data || !record_field(header, "memory"))
            return error_set(err, ERR_PROTOCOL, "offers its memory twice, or does not say where");
        bool has_it = !map_shared(group, end, record, &end->segment, &why);
        reduce_send(group, k, &(struct reduce){.what = REDUCE_REPLY, .index = has_it});
        return 0;
    }
    if (!record_get_uint(header, "number", &number) || number > INT64_MAX)
        return error_set(err, ERR_PROTOCOL, "a reduce record without its number");
    if (what == REDUCE_REPLY) {
        if (!end->asked)
            return error_set(err, ERR_PROTOCOL, "answers what was not offered");
        if (!number && !is_server(group, k))
            segment_take_back(&group->segment);
        end->asked = false;
        end->shares = number;
        return 0;
    }
    if (what == REDUCE_LAST) {
        pthread_mutex_lock(&group->lock);
        end->has_said = true;
        if ((int64_t)number > group->last_step)
            group->last_step = (int64_t)number;
        pthread_mutex_unlock(&group->lock);
        collective_links_ask_to_end(&group->interface);
        return 0;
    }
    if (number && group->leaves)
        group->leaves(group->context);
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

int reduce_take(struct conns_watcher *watcher, struct peer *peer, const struct record *record,
                struct error *err)
{
    struct process_group *group = CONTAINER_OF(watcher, struct process_group, watcher);
    const msgpack_object *header = &record->header;
    struct chunk_piece piece = {.end = find_end(group, peer), .n = record->n_tensors};
    struct collective_key key;
    int64_t what;
    int code = 0;
    if (piece.end < 0 || !record_get_int(header, "what", &what) || what < 0 || what > REDUCE_REPLY)
        return error_set(err, ERR_PROTOCOL, "a reduce record that has no place here");
    piece.is_part = what == REDUCE_PART;
    piece.is_shared = record_field(header, "memory");
    if (is_server(group, piece.end) && what != REDUCE_REPLY &&
        (what != REDUCE_SUM || piece.is_shared))
        return error_set(err, ERR_PROTOCOL, "a server's record that is no sum");
    if (what >= REDUCE_LEAVE)
        return take_number(group, what, piece.end, record, err);
    if (!reduce_read_key(header, &key, &piece.index))
        return error_set(err, ERR_PROTOCOL, "a reduce record that says not which it is");
    if (piece.is_shared)
        code = map_shared(group, &group->ends[piece.end], record, &piece.data, err);
    else if (piece.n)
        piece.data = record->tensors[0].tensor;
    piece.n += piece.is_shared;
    if (!code)
        code = take_of_round(group, &key, &piece, what == REDUCE_BRING ? record : NULL, err);
    if (piece.is_shared)
        tensor_release(&piece.data);
    return code;
}

/* ---- sums are read directly into their place ---- */

bool reduce_place(struct conns_watcher *watcher, struct peer *peer, const struct record *record,
                  const struct tensor *like, struct tensor *t)
{
    struct process_group *group = CONTAINER_OF(watcher, struct process_group, watcher);
    int end = find_end(group, peer);
    struct collective_key key;
    uint64_t index;
    int64_t what;
    if (record->n_tensors || end < 0 || !record_get_int(&record->header, "what", &what) ||
        what != REDUCE_SUM || !reduce_read_key(&record->header, &key, &index))
        return false;
    pthread_mutex_lock(&group->lock);
    struct collective_round *r = round_find(group, &key);
    const struct chunk *chunk = r ? chunk_find(r, index) : NULL;
    bool fits = chunk && !chunk_stays(r, chunk) && chunk_has_place(group, r, chunk, end) &&
                like->type == r->own[chunk->value].type && like->shape.rank == 1 &&
                like->shape.dims[0] == chunk->count;
    if (fits) {
        struct tensor piece = tensor_piece(&r->results[chunk->value], chunk->at, chunk->count);
        tensor_share(t, &piece);
    }
    pthread_mutex_unlock(&group->lock);
    return fits;
}
