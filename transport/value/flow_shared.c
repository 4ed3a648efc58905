/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/value/flow_shared.h"

#include <string.h>

#include "base/memory.h"

void sharing_init(struct share_state *sharing, struct segments *segments, bool shares)
{
    sharing->segments = segments;
    atomic_init(&sharing->on, segments && shares);
    if (segments && shares)
        segments_have_reader(segments);
}

void shared_value_release(struct shared_value *shared)
{
    mem_free((char *)(uintptr_t)shared->id.key);
    tensor_release(&shared->value);
}

void sharing_release(struct share_state *sharing)
{
    for (size_t i = 0; i < sharing->shared.n; i++)
        shared_value_release(&sharing->shared.items[i]);
    vec_release(&sharing->shared);
}

/* ---- as the side that sends ---- */

bool sharing_copy(struct share_state *sharing, const struct tensor *value, struct tensor *copy)
{
    if (!atomic_load_explicit(&sharing->on, memory_order_relaxed) || value->layout ||
        !segment_suits(value->type, tensor_bytes(value)) || segment_has(value) ||
        !segments_alloc(sharing->segments, copy, value->type, &value->shape))
        return false;
    memcpy(copy->data, value->data, tensor_bytes(value));
    return true;
}

bool sharing_can(const struct share_state *sharing, const struct tensor *value)
{
    return atomic_load_explicit(&sharing->on, memory_order_relaxed) && segment_has(value);
}

int sharing_send(struct share_state *sharing, struct link *link, const struct value_id *id,
                 const struct tensor *value, bool granted, struct error *err)
{
    struct segment_offer offer = segment_share(value);
    struct shared_value shared = {
        .number = offer.number, .id = *id, .value = *value, .granted = granted};
    msgpack_packer *packer = link_begin(link, RECORD_SHARE, 6 + shared.granted);
    value_id_pack(packer, &shared.id);
    if (shared.granted)
        pack_key_bool(packer, "granted", true);
    pack_key_text(packer, "type", shape_text_typed(shared.value.type, &shared.value.shape));
    segment_offer_pack(packer, &offer);
    if (link_send(link, NULL, 0, err)) {
        segment_take_back(value);
        return err->code;
    }
    shared.id.key = mem_strdup(id->key);
    tensor_share(&shared.value, value);
    vec_push(&sharing->shared, shared);
    return 0;
}

/* Answers come in the order of what was shared. */
bool sharing_answered(struct share_state *sharing, struct link *link, const struct record *record,
                      struct shared_value *back)
{
    uint64_t number, answer;
    *back = (struct shared_value){0};
    if (!record_get_uint(&record->header, "number", &number) ||
        !record_get_uint(&record->header, "answer", &answer) || !sharing->shared.n ||
        sharing->shared.items[0].number != number || answer > SEGMENT_NOT_THERE)
        return false;
    struct shared_value shared = sharing->shared.items[0];
    memmove(sharing->shared.items, sharing->shared.items + 1, --sharing->shared.n * sizeof shared);
    if (answer == SEGMENT_TAKEN) {
        link_count_shared(link, 0, tensor_bytes(&shared.value));
        shared_value_release(&shared);
        return true;
    }
    segment_take_back(&shared.value);
    if (answer == SEGMENT_NOT_THERE)
        atomic_store_explicit(&sharing->on, false, memory_order_relaxed);
    *back = shared;
    return true;
}

/* ---- as the side that receives ---- */

int sharing_take(struct peer *peer, struct segments *segments, const struct record *record,
                 struct tensor *value, struct error *err)
{
    struct segment_offer offer;
    struct shape shape;
    enum dtype type;
    *value = (struct tensor)TENSOR_INIT;
    const msgpack_object *header = &record->header;
    const char *text = record_text(header, "type");
    bool good = text && segment_offer_read(header, &offer) && offer.offset % MEM_ALIGNMENT == 0 &&
                shape_parse_typed(text, &type, &shape) && shape_is_known(&shape);
    if (!good || !segment_suits(type, (size_t)shape_bytes(&shape, type)))
        return error_set(err, ERR_PROTOCOL, "shares a value and does not say which");
    enum segment_answer answer = segments_map(segments, &offer, type, &shape, value);
    struct error ignored = ERROR_INIT;
    msgpack_packer *packer = peer_begin(peer, RECORD_SHARE, 2, &ignored);
    if (packer) {
        pack_key_uint(packer, "number", offer.number);
        pack_key_int(packer, "answer", answer);
        peer_end(peer, NULL, 0, &ignored);
    }
    return 0;
}
