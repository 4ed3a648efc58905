/* SPDX-License-Identifier: Apache-2.0
 *
 * How a request to a shard ends: with a reply, and freed.
 */
#include "base/memory.h"
#include "ps/shard_private.h"

void shard_query_free(struct shard_query *query)
{
    peer_release(query->peer);
    tensor_release(&query->value);
    arena_release(&query->arena);
    mem_free(query);
}

void shard_reply_failure(struct shard_query *query, const struct error *err)
{
    struct error told = *err;
    if (told.code == ERR_CANCELLED)
        told.code = ERR_UNAVAILABLE;
    reply_error(query->peer, query->id, &told);
}

void shard_query_end(struct shard_query *query, struct shard_fields *fields,
                     const struct error *err)
{
    msgpack_packer *packer;
    if (err->code) {
        shard_reply_failure(query, err);
    } else if ((packer =
                    reply_begin(query->peer, query->id, fields ? shard_fields_count(fields) : 0))) {
        if (fields)
            shard_fields_pack(fields, packer);
        reply_end(query->peer, NULL, 0);
    }
    shard_query_free(query);
}
