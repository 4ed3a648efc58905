/* SPDX-License-Identifier: Apache-2.0 */
#include "ps/fields.h"

#include <stdio.h>
#include <string.h>

/* The fields by type: how records name them, the member, and when it is given. */
#define EACH_TEXT(X)                                                                               \
    X(text, "container", container, != NULL)                                                       \
    X(text, "name", name, != NULL)                                                                 \
    X(text, "folder", folder, != NULL)
#define EACH_NUMBER(X)                                                                             \
    X(float, "seconds", seconds, > 0)                                                              \
    X(int, "index", index, > 0)                                                                    \
    X(int, "variables", variables, > 0)                                                            \
    X(bool, "last", last, )                                                                        \
    X(bool, "versioned", is_versioned, )                                                           \
    X(bool, "exact", exact, )                                                                      \
    X(uint, "decision", origin.decision, > 0)                                                      \
    X(int, "step", origin.step, != CHECKPOINT_NEWEST)                                              \
    X(int, "sequence", origin.sequence, > 0)                                                       \
    X(int, "generation", origin.generation, > 0)

int shard_fields_count(const struct shard_fields *fields)
{
    int n = (fields->origin.decision > 0) + 2 * run_is_known(&fields->origin.run);
#define COUNT(type, key, member, is_given) n += fields->member is_given;
    EACH_TEXT(COUNT)
    EACH_NUMBER(COUNT)
#undef COUNT
    return n;
}

void shard_fields_pack(void *context, msgpack_packer *packer)
{
    const struct shard_fields *fields = context;
    char digest[2 * DIGEST_BYTES + 1], run[RUN_HEX_BYTES];
#define PACK(type, key, member, is_given)                                                          \
    if (fields->member is_given)                                                                   \
        pack_key_##type(packer, key, fields->member);
    EACH_TEXT(PACK)
    EACH_NUMBER(PACK)
#undef PACK
    if (fields->origin.decision) {
        digest_hex(&fields->origin.manifest, digest);
        pack_key_text(packer, "manifest", digest);
    }
    if (run_is_known(&fields->origin.run)) {
        run_hex(&fields->origin.run, run);
        pack_key_text(packer, "run", run);
        pack_key_text(packer, "run_name", fields->origin.run.name);
    }
}

static void take_digest(const char *text, struct digest *digest)
{
    bool fits = text && strlen(text) == 2 * sizeof digest->bytes;
    for (size_t i = 0; fits && i < sizeof digest->bytes; i++)
        fits = sscanf(text + 2 * i, "%2hhx", &digest->bytes[i]) == 1;
}

void shard_fields_take(struct shard_fields *fields, const msgpack_object *header,
                       struct arena *arena)
{
    struct error ignored = ERROR_INIT;
    struct ckpt_run run = {.name = ""};
    const char *id = record_text(header, "run"), *name = record_text(header, "run_name");
#define TAKE_TEXT(type, key, member, is_given)                                                     \
    if (arena)                                                                                     \
        record_get_text(header, key, arena, &fields->member);
#define TAKE(type, key, member, is_given) record_get_##type(header, key, &fields->member);
    EACH_TEXT(TAKE_TEXT)
    EACH_NUMBER(TAKE)
#undef TAKE_TEXT
#undef TAKE
    take_digest(record_text(header, "manifest"), &fields->origin.manifest);
    if (!id || !run_parse(id, &run))
        return;
    if (name && *name)
        run_set_name(&run, name, &ignored);
    fields->origin.run = run;
}

void shard_fields_add(struct task_request *request, struct shard_fields *fields)
{
    request->n_fields = shard_fields_count(fields);
    request->pack = shard_fields_pack;
    request->fields = fields;
}

static void take_reply(void *context, const char *task, const struct record *reply)
{
    (void)task;
    shard_fields_take(context, &reply->header, NULL);
}

int shard_fields_ask(struct client *client, int task, const char *verb, struct shard_fields *fields,
                     const char *about, struct error *err)
{
    struct task_request request = {
        .verb = verb, .about = about, .answered = take_reply, .context = fields};
    shard_fields_add(&request, fields);
    return client_ask_one(client, task, &request, err);
}
