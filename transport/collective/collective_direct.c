/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that members on one host read where they are (transport/value/segment.h): what a member
 * brings says in which memory its large values are and where their sums will be, and the others
 * answer how much of that they read, when they have heard of all (also to whom they only offered
 * something, and where rows come in blocks). From then on neither parts nor sums of these values
 * are sent: an owner adds a block where its parts lie, and says when the sum is there. Memory is
 * not written again until whoever reads it has let go of it.
 */
#include "base/memory.h"
#include "transport/collective/collective_private.h"
#include "transport/value/segment.h"

#define FIELDS 6 /* of an offer, in a record */

/* ---- what this member has for the others ---- */

static bool is_direct(const struct collective_round *m, int v)
{
    return collective_adds(m->kinds[v]) && segment_has(&m->own[v]) && segment_has(&m->results[v]);
}

void direct_choose(const struct process_group *group, struct collective_round *m)
{
    bool served = m->by_servers && group->interface.size > 1;
    for (int v = 0; v < m->n; v++) {
        if (m->routed[v].is_routed || round_is_small(m, v) || scheduled_value(m, v) || served ||
            !is_direct(m, v))
            continue;
        if (!m->direct)
            m->direct = mem_array((size_t)m->n, sizeof *m->direct);
        m->direct[m->n_direct++] = v;
    }
}

/* Of a value there are two: of its memory, and of its sum's. */
static const struct tensor *offered_at(const struct collective_round *m, int i)
{
    int v = m->direct[i / 2];
    return i % 2 ? &m->results[v] : &m->own[v];
}

int direct_offer(struct process_group *group, struct collective_round *m, int rank,
                 struct direct_offer **offers)
{
    pthread_mutex_lock(&group->lock);
    /* Who is not gives nothing back. */
    bool is_there = group->peers[rank] && !round_lacks(group, m, rank);
    pthread_mutex_unlock(&group->lock);
    int n = is_there && group->shares[rank] ? 2 * m->n_direct : 0;
    *offers = NULL;
    if (!n)
        return 0;
    *offers = mem_array((size_t)n, sizeof **offers);
    for (int i = 0; i < n; i++)
        (*offers)[i] =
            (struct direct_offer){(uint64_t)m->direct[i / 2], segment_share(offered_at(m, i))};
    pthread_mutex_lock(&group->lock);
    m->brought[rank].n_given = n;
    pthread_mutex_unlock(&group->lock);
    return n;
}

void direct_pack(msgpack_packer *packer, const struct direct_offer *offers, int n)
{
    pack_key(packer, "memory");
    msgpack_pack_array(packer, (size_t)n * FIELDS);
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
static bool has_offers(const struct brought *brought)
{
    return brought->n_given || brought->n_offers;
}

/* As well where rows come in blocks: their places are known to who has heard of all. */
static bool has_to_answer(const struct collective_round *m, const struct brought *brought)
{
    return has_offers(brought) || m->has_late;
}

bool direct_agreed(const struct process_group *group, struct collective_round *m)
{
    bool agreed = m->combined;
    for (int i = 0; i < m->n_members && agreed && !m->agreed; i++) {
        const struct brought *brought = &m->brought[m->members[i]];
        agreed = m->members[i] == group->interface.rank || !has_to_answer(m, brought) ||
                 brought->answered;
    }
    m->agreed |= agreed;
    return m->agreed;
}

int direct_take_answer(struct process_group *group, struct collective_round *m, int rank,
                       uint64_t n, struct error *err)
{
    struct brought *brought = &m->brought[rank];
    pthread_mutex_lock(&group->lock);
    bool good = (has_offers(brought) || m->n_routed) && !brought->answered &&
                n <= (uint64_t)brought->n_given;
    if (good) {
        brought->answered = true;
        brought->n_reads = (int)n;
        for (int i = (int)n; i < brought->n_given; i++)
            segment_take_back(offered_at(m, i));
    }
    pthread_mutex_unlock(&group->lock);
    if (!good)
        return error_set(err, ERR_PROTOCOL, "answers '%s', which it was not asked", m->name);
    reduce_go_on(group, m);
    reduce_conclude(group, m);
    return 0;
}

bool direct_is_read(const struct collective_round *m, int rank, int value)
{
    for (int i = 0; i < m->brought[rank].n_reads / 2; i++)
        if (m->direct[i] == value)
            return true;
    return false;
}

/* ---- what others have for this one ---- */

static bool read_offer(const msgpack_object *fields, struct direct_offer *offer)
{
    for (int i = 0; i < FIELDS; i++)
        if (fields[i].type != MSGPACK_OBJECT_POSITIVE_INTEGER)
            return false;
    *offer = (struct direct_offer){
        fields[0].via.u64,
        {{(int64_t)fields[1].via.u64, (int64_t)fields[2].via.u64, fields[3].via.u64},
         fields[4].via.u64,
         fields[5].via.u64}};
    return true;
}

bool direct_read(const struct record *record, struct brought *brought)
{
    const msgpack_object *field = record_field(&record->header, "memory");
    bool good = true;
    if (!field)
        return true;
    if (field->type != MSGPACK_OBJECT_ARRAY || field->via.array.size % (2 * FIELDS) ||
        field->via.array.size > INT32_MAX)
        return false;
    brought->n_offers = (int)field->via.array.size / FIELDS;
    brought->offers = mem_array((size_t)brought->n_offers + 1, sizeof *brought->offers);
    for (int i = 0; i < brought->n_offers && good; i++)
        good = read_offer(field->via.array.ptr + i * FIELDS, &brought->offers[i]);
    return good;
}

/* Two for each value, which has a sum in blocks. */
static bool offers_fit(const struct collective_round *m, const struct brought *brought)
{
    for (int i = 0; i < brought->n_offers; i++) {
        uint64_t v = brought->offers[i].value;
        if (v >= (uint64_t)m->n || v != brought->offers[i / 2 * 2].value ||
            m->routed[v].is_routed || !collective_adds(m->kinds[v]) || round_is_small(m, (int)v) ||
            scheduled_value(m, (int)v))
            return false;
    }
    return true;
}

/* As many as there is room for, in their order. */
static int map(struct process_group *group, const struct collective_round *m,
               const struct brought *brought, struct tensor *parts, struct tensor *sums)
{
    struct segments *segments = hub_segments(group->hub);
    int n = 0;
    for (; n < brought->n_offers; n++) {
        const struct direct_offer *offer = &brought->offers[n];
        const struct tensor *own = &m->own[offer->value];
        struct tensor *t = (n % 2 ? sums : parts) + offer->value;
        if (t->data ||
            segments_map(segments, &offer->memory, own->type, &own->shape, t) != SEGMENT_TAKEN)
            break;
    }
    return n;
}

static void take_from(struct process_group *group, struct collective_round *m, int rank)
{
    struct brought *brought = &m->brought[rank];
    struct tensor *parts = mem_array((size_t)m->n + 1, sizeof *parts);
    struct tensor *sums = mem_array((size_t)m->n + 1, sizeof *sums);
    int n = map(group, m, brought, parts, sums);
    pthread_mutex_lock(&group->lock);
    brought->parts = parts;
    brought->sums = sums;
    pthread_mutex_unlock(&group->lock);
    const struct reduce answer = {.what = REDUCE_READS, .round = m, .index = (uint64_t)n};
    reduce_send(group, rank, &answer);
}

int direct_take(struct process_group *group, struct collective_round *m, struct error *err)
{
    for (int i = 0; i < m->n_members; i++) {
        int k = m->members[i];
        if (k == group->interface.rank || !has_to_answer(m, &m->brought[k]))
            continue;
        if (!offers_fit(m, &m->brought[k]))
            return error_set(err, ERR_PROTOCOL, "'%s': %s offers memory for what it does not have",
                             m->name, group->tasks[k]);
        take_from(group, m, k);
    }
    return 0;
}

const struct tensor *direct_part(const struct collective_round *m, int rank, int value)
{
    return direct_sum(m, rank, value) ? &m->brought[rank].parts[value] : NULL;
}

const struct tensor *direct_sum(const struct collective_round *m, int rank, int value)
{
    const struct tensor *sums = m->brought[rank].sums;
    return sums && sums[value].data ? &sums[value] : NULL;
}

static void release(struct tensor **tensors, int n)
{
    for (int i = 0; *tensors && i < n; i++)
        tensor_release(&(*tensors)[i]);
    mem_free(*tensors);
    *tensors = NULL;
}

void direct_give_back(const struct process_group *group, struct collective_round *m)
{
    for (int k = 0; k < group->interface.size; k++) {
        release(&m->brought[k].parts, m->n);
        release(&m->brought[k].sums, m->n);
    }
}
