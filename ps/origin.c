/* SPDX-License-Identifier: Apache-2.0 */
#include "ps/origin.h"

#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

#include "ps/fields.h"

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

int origin_ask(struct client *client, const char *task, struct shard_origin *origin,
               struct error *err)
{
    struct shard_fields fields = {.name = task, .origin.step = -1};
    int code =
        shard_fields_ask(client, 0, "origin", &fields, "which checkpoint to resume from", err);
    *origin = fields.origin;
    return code;
}
