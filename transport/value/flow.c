/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/value/flow.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"
#include "transport/value/segment.h"

/* A value that the receiver has not granted yet, or has not confirmed yet. */
struct pending_value {
    struct value_id id;  /* the key is a copy */
    struct tensor value; /* zeroed: dead */
    bool granted;
    uint64_t number; /* of the segment in which it is shared */
};
typedef VEC(struct pending_value) pending_values;

struct peer {
    atomic_int holders;
    char *task, *text;
    uint64_t window;
    atomic_uint_fast64_t charged; /* received bytes not yet returned; added in the loop's thread */
    pthread_mutex_t lock;         /* guards the members below; held while a record is packed */
    struct link *link;            /* NULL: gone */
    struct error why;             /* why the link is gone */
    uint64_t credit;              /* bytes that may be sent without a grant */
    uint64_t owed;                /* credit to return to the peer */
    pending_values announced;
    /* Large values for a peer of this host are put into memory that it maps, and the link carries
     * only their place. The peer replies whether it has mapped the value; until then the value is
     * kept here, and if it has not, the value is sent as bytes. */
    struct segments *segments; /* of this process; NULL: none */
    atomic_bool shares;        /* the peer can map shared memory, as far as is known */
    pending_values shared;
};

struct peer *peer_new(struct link *link, uint64_t window, struct segments *segments)
{
    struct peer *peer = mem_alloc(sizeof *peer);
    const struct link_hello *hello = link_peer(link);
    atomic_init(&peer->holders, 1);
    peer->link = link;
    peer->task = mem_strdup(hello->task);
    peer->text = mem_strdup(link_name(link));
    peer->window = peer->credit = window;
    pthread_mutex_init(&peer->lock, NULL);
    peer->segments = segments;
    atomic_init(&peer->shares, segments && link_shares_memory(link));
    if (peer->shares)
        segments_have_reader(segments);
    return peer;
}

struct peer *peer_retain(struct peer *peer)
{
    atomic_fetch_add(&peer->holders, 1);
    return peer;
}

static void keep(pending_values *all, const struct value_id *id, const struct tensor *value,
                 bool granted, uint64_t number)
{
    struct pending_value kept = {.id = *id, .granted = granted, .number = number};
    kept.id.key = mem_strdup(id->key);
    if (value)
        tensor_share(&kept.value, value);
    vec_push(all, kept);
}

static void kept_release(struct pending_value *kept)
{
    mem_free((char *)(uintptr_t)kept->id.key);
    tensor_release(&kept->value);
}

static void kept_release_all(pending_values *all)
{
    vec_each(kept, all)
        kept_release(kept);
    vec_release(all);
}

void peer_release(struct peer *peer)
{
    if (!peer || atomic_fetch_sub(&peer->holders, 1) > 1)
        return;
    kept_release_all(&peer->announced);
    kept_release_all(&peer->shared);
    pthread_mutex_destroy(&peer->lock);
    mem_free(peer->task);
    mem_free(peer->text);
    mem_free(peer);
}

const char *peer_task(const struct peer *peer)
{
    return peer->task;
}

const char *peer_text(const struct peer *peer)
{
    return peer->text;
}

bool peer_shares_memory(struct peer *peer)
{
    pthread_mutex_lock(&peer->lock);
    bool shares = peer->link && link_shares_memory(peer->link);
    pthread_mutex_unlock(&peer->lock);
    return shares;
}

void peer_close(struct peer *peer, const struct error *why)
{
    pthread_mutex_lock(&peer->lock);
    peer->link = NULL;
    peer->why = *why;
    kept_release_all(&peer->announced);
    kept_release_all(&peer->shared);
    pthread_mutex_unlock(&peer->lock);
}

msgpack_packer *peer_begin(struct peer *peer, enum record_kind kind, int n_fields,
                           struct error *err)
{
    pthread_mutex_lock(&peer->lock);
    if (peer->link)
        return link_begin(peer->link, kind, n_fields);
    *err = peer->why;
    pthread_mutex_unlock(&peer->lock);
    return NULL;
}

int peer_end(struct peer *peer, const struct named_tensor *tensors, int n, struct error *err)
{
    return peer_end_value(peer, LINK_FIRST, tensors, n, err);
}

int peer_end_value(struct peer *peer, int32_t priority, const struct named_tensor *tensors, int n,
                   struct error *err)
{
    int code = link_send_value(peer->link, priority, tensors, n, err);
    pthread_mutex_unlock(&peer->lock);
    return code;
}

/* ---- values ---- */

uint64_t flow_cost(const struct tensor *value)
{
    return FLOW_VALUE_BYTES + (value ? tensor_bytes(value) : 0);
}

static void value_id_pack(msgpack_packer *packer, const struct value_id *id)
{
    pack_key_uint(packer, "session", id->session);
    pack_key_uint(packer, "step", id->step);
    pack_key_text(packer, "key", id->key);
    pack_key_uint(packer, "iteration", id->iteration);
}

/* Called with the lock, like the next functions. */
static int send_bytes(struct peer *peer, const struct value_id *id, const struct tensor *value,
                      bool granted, struct error *err)
{
    msgpack_packer *packer = link_begin(peer->link, RECORD_VALUE, 4 + granted);
    struct named_tensor named = {.name = ""};
    value_id_pack(packer, id);
    if (granted)
        pack_key_bool(packer, "granted", true);
    if (value)
        named.tensor = *value;
    return link_send_value(peer->link, id->priority, &named, value ? 1 : 0, err);
}

static int send_shared(struct peer *peer, const struct value_id *id, const struct tensor *value,
                       bool granted, struct error *err)
{
    struct segment_offer offer = segment_share(value);
    msgpack_packer *packer = link_begin(peer->link, RECORD_SHARE, 6 + granted);
    value_id_pack(packer, id);
    if (granted)
        pack_key_bool(packer, "granted", true);
    pack_key_text(packer, "type", shape_text_typed(value->type, &value->shape));
    segment_offer_pack(packer, &offer);
    int code = link_send(peer->link, NULL, 0, err);
    if (code)
        segment_take_back(value);
    else
        keep(&peer->shared, id, value, granted, offer.number);
    return code;
}

static int send_value(struct peer *peer, const struct value_id *id, const struct tensor *value,
                      bool granted, struct error *err)
{
    bool is_shared = value && segment_has(value) && atomic_load(&peer->shares);
    return (is_shared ? send_shared : send_bytes)(peer, id, value, granted, err);
}

/* Makes a shared copy of a value that is large enough and not shared yet. Called without the
 * lock. */
static bool copy_to_share(struct peer *peer, const struct tensor *value, struct tensor *copy)
{
    if (!value || !atomic_load_explicit(&peer->shares, memory_order_relaxed) || value->layout ||
        !segment_suits(value->type, tensor_bytes(value)) || segment_has(value) ||
        !segments_alloc(peer->segments, copy, value->type, &value->shape))
        return false;
    memcpy(copy->data, value->data, tensor_bytes(value));
    return true;
}

int flow_send(struct peer *peer, const struct value_id *id, const struct tensor *value,
              struct error *err)
{
    uint64_t bytes = flow_cost(value);
    struct tensor copy = TENSOR_INIT;
    int code;
    if (copy_to_share(peer, value, &copy))
        value = &copy;
    pthread_mutex_lock(&peer->lock);
    if (!peer->link) {
        *err = peer->why;
        code = err->code;
    } else if (bytes <= peer->credit) {
        peer->credit -= bytes;
        code = send_value(peer, id, value, false, err);
    } else {
        msgpack_packer *packer = link_begin(peer->link, RECORD_ANNOUNCE, 5);
        value_id_pack(packer, id);
        pack_key_uint(packer, "bytes", value ? tensor_bytes(value) : 0);
        code = link_send(peer->link, NULL, 0, err);
        if (!code)
            keep(&peer->announced, id, value, true, 0);
    }
    pthread_mutex_unlock(&peer->lock);
    tensor_release(&copy);
    return code;
}

void flow_forget(struct peer *peer, uint64_t session, uint64_t step)
{
    pthread_mutex_lock(&peer->lock);
    size_t kept = 0;
    vec_each(a, &peer->announced) {
        if (a->id.session == session && (!step || a->id.step == step))
            kept_release(a);
        else
            peer->announced.items[kept++] = *a;
    }
    peer->announced.n = kept;
    pthread_mutex_unlock(&peer->lock);
}

bool flow_charge(struct peer *peer, uint64_t bytes)
{
    bool fits = bytes <= peer->window - atomic_load(&peer->charged);
    if (fits)
        atomic_fetch_add(&peer->charged, bytes);
    return fits;
}

void flow_return(struct peer *peer, uint64_t bytes)
{
    struct error ignored = ERROR_INIT;
    pthread_mutex_lock(&peer->lock);
    peer->owed += bytes;
    if (peer->link && peer->owed >= peer->window / 4) {
        msgpack_packer *packer = link_begin(peer->link, RECORD_GRANT, 1);
        pack_key_uint(packer, "bytes", peer->owed);
        peer->charged -= peer->owed;
        peer->owed = 0;
        link_send(peer->link, NULL, 0, &ignored); /* a broken link ends by itself */
    }
    pthread_mutex_unlock(&peer->lock);
}

void flow_grant(struct peer *peer, const struct value_id *id)
{
    struct error ignored = ERROR_INIT;
    msgpack_packer *packer = peer_begin(peer, RECORD_GRANT, 4, &ignored);
    if (!packer)
        return;
    value_id_pack(packer, id);
    peer_end(peer, NULL, 0, &ignored);
}

/* The value may be gone, if it was granted after its step was over. */
static int send_announced(struct peer *peer, const struct value_id *id, struct error *err)
{
    int code = 0;
    for (size_t i = 0; i < peer->announced.n; i++) {
        struct pending_value a = peer->announced.items[i];
        if (a.id.session != id->session || a.id.step != id->step ||
            a.id.iteration != id->iteration || strcmp(a.id.key, id->key) != 0)
            continue;
        peer->announced.items[i] = vec_pop(&peer->announced);
        code = send_value(peer, &a.id, a.value.type == DTYPE_INVALID ? NULL : &a.value, true, err);
        kept_release(&a);
        break;
    }
    return code;
}

int flow_granted(struct peer *peer, const struct record *record, struct error *err)
{
    struct value_id id;
    int64_t bytes;
    int code = 0;
    pthread_mutex_lock(&peer->lock);
    if (record_get_int(&record->header, "bytes", &bytes)) {
        if (bytes < 0 || (uint64_t)bytes > peer->window - peer->credit)
            code = error_set(err, ERR_PROTOCOL, "gives back more credit than it had");
        else
            peer->credit += (uint64_t)bytes;
    } else if (value_id_read(&id, record)) {
        code = peer->link ? send_announced(peer, &id, err) : 0;
    } else {
        code = error_set(err, ERR_PROTOCOL, "grants nothing");
    }
    pthread_mutex_unlock(&peer->lock);
    return code;
}

int flow_take_shared(struct peer *peer, const struct record *record, struct tensor *value,
                     struct error *err)
{
    const msgpack_object *header = &record->header;
    const char *text = record_text(header, "type");
    struct error ignored = ERROR_INIT;
    struct segment_offer offer;
    struct shape shape;
    enum dtype type;
    *value = (struct tensor)TENSOR_INIT;
    pthread_mutex_lock(&peer->lock);
    struct link *link = peer->link;
    pthread_mutex_unlock(&peer->lock);
    if (!peer->segments || !link || !link_shares_memory(link))
        return error_set(err, ERR_PROTOCOL, "shares a value where no memory is shared");
    if (!text || !segment_offer_read(header, &offer) || offer.offset % MEM_ALIGNMENT ||
        !shape_parse_typed(text, &type, &shape) || !shape_is_known(&shape) ||
        !segment_suits(type, (size_t)shape_bytes(&shape, type)))
        return error_set(err, ERR_PROTOCOL, "shares a value and does not say which");
    enum segment_reply reply = segments_map(peer->segments, &offer, type, &shape, value);
    msgpack_packer *packer = peer_begin(peer, RECORD_SHARE, 2, &ignored);
    if (packer) {
        pack_key_uint(packer, "number", offer.number);
        pack_key_int(packer, "answer", reply);
        peer_end(peer, NULL, 0, &ignored);
    }
    if (reply == SEGMENT_TAKEN)
        link_count_shared(link, tensor_bytes(value), 0);
    return 0;
}

/* Replies arrive in the order of the offers. */
int flow_answered(struct peer *peer, const struct record *record, struct error *err)
{
    struct pending_value shared = {.number = 0};
    uint64_t number, reply = 0;
    int code = 0;
    bool good = record_get_uint(&record->header, "number", &number) &&
                record_get_uint(&record->header, "answer", &reply) && reply <= SEGMENT_NOT_THERE;
    pthread_mutex_lock(&peer->lock);
    if (peer->link && (!good || !peer->shared.n || peer->shared.items[0].number != number)) {
        code = error_set(err, ERR_PROTOCOL, "answers a loan that there is not");
    } else if (peer->link) {
        shared = peer->shared.items[0];
        memmove(peer->shared.items, peer->shared.items + 1, --peer->shared.n * sizeof shared);
        if (reply == SEGMENT_NOT_THERE)
            atomic_store(&peer->shares, false);
        if (reply == SEGMENT_TAKEN) {
            link_count_shared(peer->link, 0, tensor_bytes(&shared.value));
        } else {
            segment_take_back(&shared.value);
            code = send_bytes(peer, &shared.id, &shared.value, shared.granted, err);
        }
    }
    pthread_mutex_unlock(&peer->lock);
    kept_release(&shared);
    return code;
}

bool value_id_read(struct value_id *id, const struct record *record)
{
    const msgpack_object *header = &record->header;
    id->priority = 0;
    return record_get_uint(header, "session", &id->session) &&
           record_get_uint(header, "step", &id->step) &&
           record_get_uint(header, "iteration", &id->iteration) &&
           (id->key = record_text(header, "key"));
}
