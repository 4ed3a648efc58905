/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory between members on one host, of two kinds.
 *
 * Blocks: what would be sent is put where the other reads it, and only which block it is goes over
 * the link. Each member offers its memory over links that go through shared memory already, and
 * uses it with those who answered that they have it.
 *
 * Values that members on one host read where they are (transport/value/segment.h): what a member
 * brings says in which memory its large values are and where their sums will be, and the others
 * answer how much of that they read, when they have heard of all (also to whom they only offered
 * something, and where rows come in blocks). From then on neither parts nor sums of these values
 * are sent: an owner adds a block where its parts lie, and says when the sum is there. Memory is
 * not written again until whoever reads it has let go of it.
 */
#include "transport/collective/collective_memory.h"
#include "base/memory.h"
#include "transport/collective/collective_record.h"
#include "transport/value/segment.h"

#define FIELDS 6 /* of an offer, in a record */

/* ---- what this member has for the others ---- */

void direct_choose(const struct process_group *group, struct collective_round *r)
{
    bool served = r->by_servers && group->interface.size > 1;
    for (int v = 0; v < r->n; v++) {
        if (r->routed[v].is_routed || round_is_small(r, v) || value_is_scheduled(r, v) || served ||
            !collective_adds(r->kinds[v]) || !segment_has(&r->own[v]) ||
            !segment_has(&r->results[v]))
            continue;
        vec_push(&r->direct, v);
    }
}

/* A value has two offers: of its memory, and of its sum's. */
static const struct tensor *offered_at(const struct collective_round *r, int i)
{
    int v = r->direct.items[i / 2];
    return i % 2 ? &r->results[v] : &r->own[v];
}

int direct_offer(struct process_group *group, struct collective_round *r, int rank,
                 struct memory_offer **offers)
{
    pthread_mutex_lock(&group->lock);
    /* A member that is not there gives nothing back. */
    bool reads = group->ends[rank].peer && !round_lacks(group, r, rank) && group->ends[rank].shares;
    int n = reads ? 2 * (int)r->direct.n : 0;
    pthread_mutex_unlock(&group->lock);
    *offers = mem_array((size_t)n + 1, sizeof **offers);
    for (int i = 0; i < n; i++)
        (*offers)[i] = (struct memory_offer){(uint64_t)r->direct.items[i / 2],
                                             segment_share(offered_at(r, i))};
    pthread_mutex_lock(&group->lock);
    r->contributions[rank].n_given = n; /* only what is shared can be given back */
    pthread_mutex_unlock(&group->lock);
    return n;
}

void direct_pack(msgpack_packer *packer, const struct memory_offer *offers, int n)
{
    pack_key_array(packer, "memory", (size_t)n * FIELDS);
    for (int i = 0; i < n; i++) {
        msgpack_pack_uint64(packer, offers[i].value);
        const struct segment_offer *memory = &offers[i].memory;
        msgpack_pack_int64(packer, memory->at.pid);
        msgpack_pack_int64(packer, memory->at.fd);
        msgpack_pack_uint64(packer, memory->at.number);
        msgpack_pack_uint64(packer, memory->offset);
        msgpack_pack_uint64(packer, memory->slot);
    }
}

/* From one to the other, or back: then both answer, as a sum is for who has heard of all. */
static bool has_offers(const struct round_contribution *c)
{
    return c->n_given || c->n_offers;
}

/* As well where rows come in blocks: their places are known to who has heard of all. */
static bool has_to_answer(const struct collective_round *r, const struct round_contribution *c)
{
    return has_offers(c) || r->has_late;
}

bool direct_agreed(const struct process_group *group, const struct collective_round *r)
{
    bool agreed = true;
    for (int i = 0; i < r->n_members && agreed; i++) {
        const struct round_contribution *c = &r->contributions[r->members[i]];
        agreed = r->members[i] == group->interface.rank || !has_to_answer(r, c) || c->answered;
    }
    return agreed;
}

bool direct_take_answer(struct collective_round *r, int rank, uint64_t n)
{
    struct round_contribution *c = &r->contributions[rank];
    if ((!has_offers(c) && !r->n_routed) || c->answered || n > (uint64_t)c->n_given)
        return false;
    c->answered = true;
    c->n_reads = (int)n;
    for (int i = (int)n; i < c->n_given; i++)
        segment_take_back(offered_at(r, i));
    return true;
}

bool direct_is_read(const struct collective_round *r, int rank, int value)
{
    for (int i = 0; i < r->contributions[rank].n_reads / 2; i++)
        if (r->direct.items[i] == value)
            return true;
    return false;
}

/* ---- what others have for this one ---- */

bool direct_read(const struct record *record, struct round_contribution *c)
{
    uint64_t *fields = NULL;
    int n;
    bool good =
        reduce_read_numbers(record, "memory", UINT64_MAX, &fields, &n) && n % (2 * FIELDS) == 0;
    mem_free(c->offers); /* of one that was refused */
    c->n_offers = good ? n / FIELDS : 0;
    c->offers = mem_array((size_t)c->n_offers + 1, sizeof *c->offers);
    for (int i = 0; i < c->n_offers; i++) {
        const uint64_t *f = fields + (size_t)i * FIELDS;
        c->offers[i] =
            (struct memory_offer){f[0], {{(int64_t)f[1], (int64_t)f[2], f[3]}, f[4], f[5]}};
    }
    mem_free(fields);
    return good;
}

int direct_take(struct process_group *group, struct collective_round *r, struct error *err)
{
    for (int i = 0; i < r->n_members; i++) {
        int k = r->members[i], n = 0;
        struct round_contribution *c = &r->contributions[k];
        bool fits = true, has_room = true;
        if (k == group->interface.rank || !has_to_answer(r, c))
            continue;
        for (int o = 0; o < c->n_offers && fits;
             o++) { /* two for each value with a sum in blocks */
            uint64_t v = c->offers[o].value;
            fits = v < (uint64_t)r->n && v == c->offers[o / 2 * 2].value &&
                   !r->routed[v].is_routed && collective_adds(r->kinds[v]) &&
                   !round_is_small(r, (int)v) && !value_is_scheduled(r, (int)v);
        }
        if (!fits)
            return error_set(err, ERR_PROTOCOL, "'%s': %s offers memory for what it does not have",
                             r->name, group->ends[k].task);
        struct tensor *mapped = mem_array(2 * (size_t)r->n + 1, sizeof *mapped);
        while (n < c->n_offers && has_room) { /* as many as there is room for, in their order */
            const struct memory_offer *offer = &c->offers[n];
            const struct tensor *own = &r->own[offer->value];
            struct tensor *t = &mapped[2 * offer->value + (uint64_t)n % 2];
            has_room = !t->data && segments_map(hub_segments(group->hub), &offer->memory, own->type,
                                                &own->shape, t) == SEGMENT_TAKEN;
            n += has_room;
        }
        pthread_mutex_lock(&group->lock);
        c->mapped = mapped;
        pthread_mutex_unlock(&group->lock);
        const struct reduce answer = {.what = REDUCE_READS, .round = r, .index = (uint64_t)n};
        reduce_send(group, k, &answer);
    }
    return 0;
}

const struct tensor *direct_part(const struct collective_round *r, int rank, int value)
{
    return direct_sum(r, rank, value) ? &r->contributions[rank].mapped[2 * value] : NULL;
}

const struct tensor *direct_sum(const struct collective_round *r, int rank, int value)
{
    const struct tensor *mapped = r->contributions[rank].mapped;
    return mapped && mapped[2 * value + 1].data ? &mapped[2 * value + 1] : NULL;
}

/* ---- the agreement: in the loop's thread, before members have met ---- */

void shared_offer_to(struct process_group *group, int rank)
{
    struct peer *peer = group->ends[rank].peer;
    if (!group->shared || !peer_shares_memory(peer))
        return;
    struct shared_offer offer = shared_blocks_offer(group->shared);
    group->ends[rank].asked = true;
    reduce_send_to(group, peer, &(struct reduce){.what = REDUCE_OFFER, .blocks = &offer});
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

/* One member's value is cut into blocks that hardly anybody waits for, and which would all be in
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

static void return_memory(struct buffer *buffer)
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
                                     .free = return_memory,
                                     .owner = view,
                                     .is_read = is_read};
    atomic_init(&mapped->buffer.holders, 1);
    *t = tensor_borrow(UINT8, &shape, data);
    t->buffer = &mapped->buffer;
    return 0;
}
