/* SPDX-License-Identifier: Apache-2.0
 *
 * What members send each other, and servers: the records `reduce`, as they are packed.
 */
#include "base/memory.h"
#include "transport/collective/collective_private.h"

static struct peer *peer_of(struct process_group *group, int end)
{
    pthread_mutex_lock(&group->lock);
    struct peer *peer = group->ends[end].peer;
    if (peer)
        peer_retain(peer);
    pthread_mutex_unlock(&group->lock);
    return peer;
}

static bool has_rows(const struct reduce *reduce)
{
    return reduce->what == REDUCE_BRING && reduce->round->n_routed;
}

#define SERVED_FIELDS 3 /* which are all that a server has to know */

static void pack_served(const struct process_group *group, msgpack_packer *packer,
                        const struct collective_round *round, const struct chunk *chunk)
{
    pack_key(packer, "members");
    msgpack_pack_array(packer, (size_t)round->n_members);
    for (int i = 0; i < round->n_members; i++)
        pack_text(packer, group->ends[round->members[i]].task);
    pack_key(packer, "mean");
    if (collective_divides(round->kinds[chunk->value]))
        msgpack_pack_true(packer);
    else
        msgpack_pack_false(packer);
    pack_key(packer, "priority");
    msgpack_pack_int(packer, round->priority);
}

void reduce_pack(msgpack_packer *packer, enum reduce_what what, const struct collective_key *key,
                 uint64_t index)
{
    pack_key(packer, "what");
    msgpack_pack_int(packer, what);
    pack_key(packer, "name");
    pack_text(packer, key->name);
    pack_key(packer, "step");
    msgpack_pack_int64(packer, key->step);
    pack_key(packer, "iteration");
    msgpack_pack_uint64(packer, key->iteration);
    pack_key(packer, "index");
    msgpack_pack_uint64(packer, index);
}

void reduce_pack_number(msgpack_packer *packer, enum reduce_what what, uint64_t number)
{
    pack_key(packer, "what");
    msgpack_pack_int(packer, what);
    pack_key(packer, "number");
    msgpack_pack_uint64(packer, number);
}

static void pack(const struct process_group *group, msgpack_packer *packer,
                 const struct reduce *reduce)
{
    const struct collective_round *round = reduce->round;
    if (!round) {
        reduce_pack_number(packer, reduce->what, reduce->index);
        return;
    }
    reduce_pack(packer, reduce->what, &round->key, reduce->index);
    if (round->declined) {
        pack_key(packer, "nothing");
        msgpack_pack_true(packer);
    }
    if (has_rows(reduce))
        rows_pack(packer, round);
    if (reduce->served)
        pack_served(group, packer, round, reduce->served);
    if (reduce->n_offers)
        direct_pack(packer, reduce->offers, reduce->n_offers);
    if (reduce->is_shared) {
        pack_key(packer, "shared");
        msgpack_pack_uint64(packer, reduce->shared);
    }
    if (reduce->is_there) {
        pack_key(packer, "there");
        msgpack_pack_true(packer);
    }
}

/* What is of a round comes in order; that a member leaves, behind all that it has sent. */
static int32_t priority_of(const struct reduce *reduce)
{
    if (reduce->round)
        return reduce->round->priority;
    return reduce->what == REDUCE_LEAVE ? LINK_LAST : LINK_FIRST;
}

void reduce_send(struct process_group *group, int end, const struct reduce *reduce)
{
    struct error ignored = ERROR_INIT; /* its loss is told otherwise */
    struct named_tensor *named = mem_array((size_t)reduce->n + 1, sizeof *named);
    struct peer *peer = peer_of(group, end);
    for (int i = 0; i < reduce->n; i++)
        named[i] = (struct named_tensor){"", reduce->tensors[i]};
    int n_fields = reduce->round ? REDUCE_FIELDS + reduce->is_shared + reduce->is_there +
                                       reduce->round->declined + (reduce->n_offers > 0) +
                                       2 * has_rows(reduce) + (reduce->served ? SERVED_FIELDS : 0)
                                 : REDUCE_NUMBER_FIELDS;
    msgpack_packer *packer = peer ? peer_begin(peer, RECORD_REDUCE, n_fields, &ignored) : NULL;
    if (packer) {
        pack(group, packer, reduce);
        peer_end_value(peer, priority_of(reduce), named, reduce->n, &ignored);
    }
    peer_release(peer);
    mem_free(named);
}
