/* SPDX-License-Identifier: Apache-2.0 */
#include "ps/origin.h"

#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

#include "ps/shard_private.h"

int origin_decide(struct shard_origin *origin, struct error *err)
{
    *origin = (struct shard_origin){.step = -1};
    if (getrandom(&origin->decision, sizeof origin->decision, 0) != sizeof origin->decision)
        return error_set_errno(err, ERR_OS, "getrandom");
    origin->decision |= 1; /* zero means none */
    return 0;
}

void origin_set(struct shard_origin *origin, const struct ckpt_manifest *manifest)
{
    origin->step = manifest->step;
    origin->sequence = manifest->sequence;
    origin->run = manifest->run;
    origin->manifest = manifest->digest;
}

int origin_check(const struct shard_origin *origin, const struct checkpoint *found,
                 struct error *err)
{
    const struct ckpt_manifest *m = &found->manifest;
    struct str wanted = STR_INIT, there = STR_INIT;
    if (run_equal(&origin->run, &m->run) && origin->sequence == m->sequence &&
        digest_equal(&origin->manifest, &m->digest))
        return 0;
    run_print(&origin->run, &wanted);
    run_print(&m->run, &there);
    error_set(err, ERR_RETRY,
              "%s: is number %" PRId64 " of run %s; the first shard goes on from number %" PRId64
              " of run %s",
              found->name, m->sequence, there.data, origin->sequence, wanted.data);
    str_release(&wanted);
    str_release(&there);
    return err->code;
}

/* ---- in records ---- */

void origin_pack(msgpack_packer *packer, const struct shard_origin *origin)
{
    char digest[2 * DIGEST_BYTES + 1];
    digest_hex(&origin->manifest, digest);
    pack_key_uint(packer, "decision", origin->decision);
    pack_key_int(packer, "step", origin->step);
    pack_key_int(packer, "sequence", origin->sequence);
    pack_key_text(packer, "manifest", digest);
    pack_key_int(packer, "generation", origin->generation);
    shard_pack_run(packer, &origin->run);
}

static bool take_digest(const msgpack_object *header, struct digest *digest)
{
    struct arena arena = ARENA_INIT;
    const char *text;
    bool fits = record_get_text(header, "manifest", &arena, &text) &&
                strlen(text) == 2 * sizeof digest->bytes;
    for (size_t i = 0; fits && i < sizeof digest->bytes; i++)
        fits = sscanf(text + 2 * i, "%2hhx", &digest->bytes[i]) == 1;
    arena_release(&arena);
    return fits;
}

void origin_take(const msgpack_object *header, struct shard_origin *origin)
{
    struct shard_origin o = {.decision = 0};
    if (record_get_uint(header, "decision", &o.decision) &&
        record_get_int(header, "step", &o.step) &&
        record_get_int(header, "sequence", &o.sequence) &&
        record_get_int(header, "generation", &o.generation) && take_digest(header, &o.manifest))
        shard_take_run(header, &o.run);
    else
        o.decision = 0;
    *origin = o;
}

/* ---- asking ---- */

struct origin_request {
    const char *task;
    struct shard_origin *origin;
};

static void pack_task(void *context, msgpack_packer *packer)
{
    pack_key_text(packer, "name", ((const struct origin_request *)context)->task);
}

static void take_reply(void *context, const char *task, const struct record *reply)
{
    (void)task;
    origin_take(&reply->header, ((struct origin_request *)context)->origin);
}

int origin_ask(struct client *client, const char *task, struct shard_origin *origin,
               struct error *err)
{
    struct origin_request asked = {task, origin};
    const struct task_request request = {.verb = "origin",
                                         .n_fields = 1,
                                         .pack = pack_task,
                                         .answered = take_reply,
                                         .about = "which checkpoint to resume from",
                                         .context = &asked};
    *origin = (struct shard_origin){.decision = 0};
    return client_ask(client, &request, err);
}
