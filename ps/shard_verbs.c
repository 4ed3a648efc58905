/* SPDX-License-Identifier: Apache-2.0 */
#include "ps/containers.h"
#include "ps/shard_private.h"

/* ---- list ---- */

void shard_list(struct shard_query *query)
{
    const struct shard_fields *fields = &query->fields;
    const struct variable_place place = {fields->container, fields->name};
    variable_vec locked = VEC_INIT;
    struct error err = ERROR_INIT;
    if (containers_lock(query->shard->options.variables, &place, false, fields->seconds, &locked,
                        &err))
        shard_reply_failure(query, &err);
    msgpack_packer *packer = err.code ? NULL : reply_begin(query->peer, query->id, 1);
    if (packer) {
        pack_key_array(packer, "variables", locked.n);
        for (size_t i = 0; i < locked.n; i++) {
            const struct variable *v = locked.items[i];
            const struct shape *shape = v->initialized ? &v->value.shape : &v->shape;
            msgpack_pack_map(packer, 6);
            pack_key_text(packer, "container", v->container);
            pack_key_text(packer, "name", v->name);
            pack_key_text(packer, "type", shape_text_typed(v->type, shape));
            pack_key_bool(packer, "initialized", v->initialized);
            pack_key_uint(packer, "updates", v->updates);
            pack_key_int(packer, "bytes", v->initialized ? (int64_t)tensor_bytes(&v->value) : 0);
        }
        reply_end(query->peer, NULL, 0);
    }
    containers_unlock(&locked, false);
    shard_query_free(query);
}

/* ---- get, put, reset ---- */

/* Returns false if the query was answered with an error. */
static bool check_name(struct shard_query *query)
{
    struct error err = ERROR_INIT;
    if (query->fields.name && query->fields.container)
        return true;
    error_set(&err, ERR_PROTOCOL, "a request about a variable needs container and name");
    shard_query_end(query, NULL, &err);
    return false;
}

void shard_get(struct shard_query *query)
{
    struct error err = ERROR_INIT;
    const struct shard_fields *fields = &query->fields;
    struct named_tensor found = {fields->name, TENSOR_INIT};
    if (!check_name(query))
        return;
    if (containers_get(query->shard->options.variables, fields->container, fields->name,
                       fields->seconds, &found.tensor, &err)) {
        shard_reply_failure(query, &err);
    } else {
        reply_tensors(query->peer, query->id, &found, 1);
        tensor_release(&found.tensor);
    }
    shard_query_free(query);
}

void shard_put(struct shard_query *query)
{
    struct error err = ERROR_INIT;
    const struct shard_fields *fields = &query->fields;
    if (!check_name(query))
        return;
    if (!query->has_value)
        error_set(&err, ERR_PROTOCOL, "a request to put needs one tensor");
    else
        containers_put(query->shard->options.variables, fields->container, fields->name,
                       fields->seconds, &query->value, &err);
    shard_query_end(query, NULL, &err);
}

void shard_reset(struct shard_query *query)
{
    struct error err = ERROR_INIT;
    const struct shard_fields *fields = &query->fields;
    struct shard_fields reply = {.origin.step = -1};
    int n = 0;
    if (!fields->container)
        error_set(&err, ERR_PROTOCOL, "a request to reset needs a container");
    else
        containers_reset(query->shard->options.variables, fields->container, fields->seconds, &n,
                         &err);
    reply.variables = n;
    shard_query_end(query, &reply, &err);
}
