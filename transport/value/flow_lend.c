/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/value/flow_lend.h"

#include <string.h>

#include "base/memory.h"

void lending_init(struct lending *lending, struct segments *segments, bool shares)
{
    lending->segments = segments;
    atomic_init(&lending->on, segments && shares);
    if (segments && shares)
        segments_have_borrower(segments);
}

void lent_release(struct lent *lent)
{
    mem_free((char *)(uintptr_t)lent->id.key);
    tensor_release(&lent->value);
}

void lending_release(struct lending *lending)
{
    for (size_t i = 0; i < lending->lent.n; i++)
        lent_release(&lending->lent.items[i]);
    vec_release(&lending->lent);
}

/* ---- as the side that sends ---- */

bool lending_copy(struct lending *lending, const struct tensor *value, struct tensor *copy)
{
    if (!atomic_load_explicit(&lending->on, memory_order_relaxed) || value->layout ||
        !segment_suits(value->type, tensor_bytes(value)) || segment_has(value) ||
        !segments_alloc(lending->segments, copy, value->type, &value->shape))
        return false;
    memcpy(copy->data, value->data, tensor_bytes(value));
    return true;
}

bool lending_can(const struct lending *lending, const struct tensor *value)
{
    return atomic_load_explicit(&lending->on, memory_order_relaxed) && segment_has(value);
}

static int send_offer(struct link *link, const struct lent *lent, const struct lend_offer *offer,
                      struct error *err)
{
    msgpack_packer *packer = link_begin(link, RECORD_LEND, 5 + LEND_OFFER_FIELDS + lent->granted);
    value_id_pack(packer, &lent->id);
    if (lent->granted) {
        pack_key(packer, "granted");
        msgpack_pack_true(packer);
    }
    pack_key(packer, "type");
    pack_text(packer, shape_text_typed(lent->value.type, &lent->value.shape));
    lend_offer_pack(packer, offer);
    return link_send(link, NULL, 0, err);
}

int lending_lend(struct lending *lending, struct link *link, const struct value_id *id,
                 const struct tensor *value, bool granted, struct error *err)
{
    struct lend_offer offer = segment_lend(value);
    struct lent lent = {.number = offer.number, .id = *id, .value = *value, .granted = granted};
    if (send_offer(link, &lent, &offer, err)) {
        segment_take_back(value);
        return err->code;
    }
    lent.id.key = mem_strdup(id->key);
    tensor_share(&lent.value, value);
    vec_push(&lending->lent, lent);
    return 0;
}

/* Answers come in the order of what was lent. */
bool lending_answered(struct lending *lending, struct link *link, const struct record *record,
                      struct lent *back)
{
    uint64_t number, answer;
    *back = (struct lent){0};
    if (!record_get_uint(&record->header, "number", &number) ||
        !record_get_uint(&record->header, "answer", &answer) || !lending->lent.n ||
        lending->lent.items[0].number != number || answer > SEGMENT_NOT_THERE)
        return false;
    struct lent lent = lending->lent.items[0];
    memmove(lending->lent.items, lending->lent.items + 1, --lending->lent.n * sizeof lent);
    if (answer == SEGMENT_TAKEN) {
        link_count_lent(link, 0, tensor_bytes(&lent.value));
        lent_release(&lent);
        return true;
    }
    segment_take_back(&lent.value);
    if (answer == SEGMENT_NOT_THERE)
        atomic_store_explicit(&lending->on, false, memory_order_relaxed);
    *back = lent;
    return true;
}

/* ---- as the side that receives ---- */

static int read_offer(const struct record *record, struct lend_offer *offer, enum dtype *type,
                      struct shape *shape, struct error *err)
{
    const msgpack_object *header = &record->header;
    const char *text = record_text(header, "type");
    bool good = text && lend_offer_read(header, offer) && shape_parse_typed(text, type, shape) &&
                shape_is_known(shape);
    if (good && segment_suits(*type, (size_t)(shape_bytes(shape, *type))))
        return 0;
    return error_set(err, ERR_PROTOCOL, "lends a value and does not say which");
}

static void send_answer(struct peer *peer, uint64_t number, enum segment_answer answer)
{
    struct error ignored = ERROR_INIT;
    msgpack_packer *packer = peer_begin(peer, RECORD_LEND, 2, &ignored);
    if (!packer)
        return;
    pack_key(packer, "number");
    msgpack_pack_uint64(packer, number);
    pack_key(packer, "answer");
    msgpack_pack_int(packer, answer);
    peer_end(peer, NULL, 0, &ignored);
}

int lending_take(struct peer *peer, struct segments *segments, const struct record *record,
                 struct tensor *value, struct error *err)
{
    struct lend_offer offer;
    struct shape shape;
    enum dtype type;
    *value = (struct tensor)TENSOR_INIT;
    if (read_offer(record, &offer, &type, &shape, err))
        return err->code;
    enum segment_answer answer = segments_borrow(segments, &offer, type, &shape, value);
    send_answer(peer, offer.number, answer);
    return 0;
}
