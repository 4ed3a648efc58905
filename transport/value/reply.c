/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers to requests that the connection manager has taken.
 */
#include "transport/value/conns.h"

#define LARGE_BYTES ((size_t)64 << 10)

static msgpack_packer *begin_reply(struct peer *peer, uint64_t id, int code, int n_fields)
{
    struct error ignored = ERROR_INIT;
    msgpack_packer *packer = peer_begin(peer, RECORD_REPLY, n_fields + 2, &ignored);
    if (!packer)
        return NULL;
    pack_key_uint(packer, "id", id);
    pack_key_int(packer, "code", code);
    return packer;
}

msgpack_packer *reply_begin(struct peer *peer, uint64_t id, int n_fields)
{
    return begin_reply(peer, id, 0, n_fields);
}

/* Values that are asked for by id may come in any order: large values do not keep others waiting.
 * */
static int end_reply(struct peer *peer, const struct named_tensor *tensors, int n,
                     struct error *err)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += tensor_bytes(&tensors[i].tensor);
    return peer_end_value(peer, bytes > LARGE_BYTES ? 0 : LINK_FIRST, tensors, n, err);
}

void reply_end(struct peer *peer, const struct named_tensor *tensors, int n)
{
    struct error err = ERROR_INIT;
    end_reply(peer, tensors, n, &err); /* who is gone needs no reply */
}

void reply_error(struct peer *peer, uint64_t id, const struct error *err)
{
    const char *reason = error_reason_name(err->reason);
    msgpack_packer *packer = begin_reply(peer, id, err->code, reason ? 2 : 1);
    if (!packer)
        return;
    pack_key_text(packer, "error", err->text);
    if (reason)
        pack_key_text(packer, "reason", reason);
    reply_end(peer, NULL, 0);
}

void reply_tensors(struct peer *peer, uint64_t id, const struct named_tensor *tensors, int n)
{
    struct error err = ERROR_INIT;
    if (begin_reply(peer, id, 0, 0) && end_reply(peer, tensors, n, &err))
        reply_error(peer, id, &err);
}

void reply_done(struct peer *peer, uint64_t id)
{
    if (begin_reply(peer, id, 0, 0))
        reply_end(peer, NULL, 0);
}
