/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks between members on one host: what would be sent is put where the other reads it, and only
 * which block it is goes over the link. Each member offers its memory over links that go through
 * shared memory already, and uses it with those who answered that they have it.
 */
#include "base/memory.h"
#include "transport/collective/collective_private.h"

/* ---- the agreement: in the loop's thread, before members have met ---- */

void shared_offer_to(struct process_group *group, int rank)
{
    struct peer *peer = group->ends[rank].peer;
    if (!group->shared || !peer_shares_memory(peer))
        return;
    struct shared_offer offer = shared_blocks_offer(group->shared);
    struct error ignored = ERROR_INIT; /* its loss is told otherwise */
    msgpack_packer *packer = peer_begin(peer, RECORD_REDUCE, 1 + SHARED_OFFER_FIELDS, &ignored);
    if (!packer)
        return;
    pack_key(packer, "what");
    msgpack_pack_int(packer, REDUCE_OFFER);
    shared_offer_pack(packer, &offer);
    group->ends[rank].asked = true;
    peer_end(peer, NULL, 0, &ignored);
}

int shared_take_offer(struct process_group *group, int rank, const msgpack_object *header,
                      struct error *err)
{
    struct shared_offer offer;
    if (group->ends[rank].view || !shared_offer_read(header, &offer))
        return error_set(err, ERR_PROTOCOL, "offers its memory twice, or does not say where");
    group->ends[rank].view = shared_view_new(&offer);
    const struct reduce answer = {.what = REDUCE_ANSWER, .index = group->ends[rank].view != NULL};
    reduce_send(group, rank, &answer);
    return 0;
}

int shared_take_answer(struct process_group *group, int rank, bool has_it, struct error *err)
{
    if (!group->ends[rank].asked)
        return error_set(err, ERR_PROTOCOL, "answers what was not offered");
    group->ends[rank].asked = false;
    group->ends[rank].shares = has_it;
    return 0;
}

/* ---- blocks ---- */

void collective_links_trim(struct collective *collective)
{
    struct process_group *group = (struct process_group *)collective;
    if (group->shared)
        shared_blocks_trim(group->shared);
    recycle_trim(group->memory, 0);
}

/* What one member has is cut into blocks that hardly anybody waits for, and which would all be in
 * use at once. It comes once, while pages of blocks stay: what these few cannot take is sent. */
#define FIRST_BLOCKS 8

int shared_block(struct process_group *group, enum collective_kind kind, size_t bytes, int readers,
                 void **data)
{
    int most = collective_adds(kind) ? SHARED_BLOCKS : FIRST_BLOCKS;
    return readers && bytes <= SHARED_BLOCK_BYTES
               ? shared_blocks_grant(group->shared, most, readers, data)
               : -1;
}

struct shared_part {
    struct buffer buffer; /* first */
    uint64_t block;
};

static void give_back(struct buffer *buffer)
{
    struct shared_part *mapped = (struct shared_part *)buffer;
    shared_view_return(buffer->owner, mapped->block);
    mem_free(mapped);
}

static bool is_read(const struct buffer *buffer)
{
    (void)buffer;
    return true;
}

int shared_read(struct process_group *group, int rank, uint64_t block, struct tensor *t,
                struct error *err)
{
    struct shared_view *view = group->ends[rank].view;
    void *data = view ? shared_view_block(view, block) : NULL;
    struct shape shape = shape_vector((int64_t)SHARED_BLOCK_BYTES);
    if (!data)
        return error_set(err, ERR_PROTOCOL, "shares a block that there is not");
    struct shared_part *mapped = mem_alloc(sizeof *mapped);
    mapped->block = block;
    mapped->buffer = (struct buffer){.bytes = SHARED_BLOCK_BYTES,
                                     .data = data,
                                     .free = give_back,
                                     .owner = view,
                                     .is_read = is_read};
    atomic_init(&mapped->buffer.holders, 1);
    *t = tensor_borrow(UINT8, &shape, data);
    t->buffer = &mapped->buffer;
    return 0;
}
