/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks between members on one host: what would be sent is put where the other reads it, and only
 * which block it is goes over the link. Each member offers its memory over links that go through
 * shared memory already, and uses it with those who answered that they have it.
 */
#include "base/memory.h"
#include "transport/collective/collective_private.h"

/* ---- the agreement: in the loop's thread, before members have met ---- */

void lend_offer_to(struct group *group, int rank)
{
    struct peer *peer = group->peers[rank];
    if (!group->lender || !peer_shares_memory(peer))
        return;
    struct lend_offer offer = lender_offer(group->lender);
    struct error ignored = ERROR_INIT; /* its loss is told otherwise */
    msgpack_packer *packer = peer_begin(peer, RECORD_REDUCE, 1 + LEND_OFFER_FIELDS, &ignored);
    if (!packer)
        return;
    pack_key(packer, "what");
    msgpack_pack_int(packer, REDUCE_OFFER);
    lend_offer_pack(packer, &offer);
    group->offered[rank] = true;
    peer_end(peer, NULL, 0, &ignored);
}

int lend_take_offer(struct group *group, int rank, const msgpack_object *header, struct error *err)
{
    struct lend_offer offer;
    if (group->borrowers[rank] || !lend_offer_read(header, &offer))
        return error_set(err, ERR_PROTOCOL, "offers its memory twice, or does not say where");
    group->borrowers[rank] = borrower_new(&offer);
    const struct reduce answer = {.what = REDUCE_ANSWER, .index = group->borrowers[rank] != NULL};
    reduce_send(group, rank, &answer);
    return 0;
}

int lend_take_answer(struct group *group, int rank, bool has_it, struct error *err)
{
    if (!group->offered[rank])
        return error_set(err, ERR_PROTOCOL, "answers what was not offered");
    group->offered[rank] = false;
    group->lends[rank] = has_it;
    return 0;
}

/* ---- blocks ---- */

int lend_block(struct group *group, size_t bytes, int readers, void **data)
{
    return readers && bytes <= LEND_BYTES ? lender_lend(group->lender, readers, data) : -1;
}

struct borrowed {
    struct buffer buffer; /* first */
    uint64_t block;
};

static void give_back(struct buffer *buffer)
{
    struct borrowed *borrowed = (struct borrowed *)buffer;
    borrower_return(buffer->owner, borrowed->block);
    mem_free(borrowed);
}

int lend_borrow(struct group *group, int rank, uint64_t block, struct tensor *t, struct error *err)
{
    struct borrower *borrower = group->borrowers[rank];
    void *data = borrower ? borrower_block(borrower, block) : NULL;
    struct shape shape = shape_vector((int64_t)LEND_BYTES);
    if (!data)
        return error_set(err, ERR_PROTOCOL, "lends a block that there is not");
    struct borrowed *borrowed = mem_alloc(sizeof *borrowed);
    borrowed->block = block;
    borrowed->buffer =
        (struct buffer){.bytes = LEND_BYTES, .data = data, .free = give_back, .owner = borrower};
    atomic_init(&borrowed->buffer.holders, 1);
    *t = tensor_borrow(UINT8, &shape, data);
    t->buffer = &borrowed->buffer;
    return 0;
}
