/* SPDX-License-Identifier: Apache-2.0
 *
 * A shard goes back to a checkpoint: when it starts, or at a request.
 */
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "ps/saves.h"
#include "ps/shard_private.h"

struct teller {
    struct saves_skipped skipped; /* first */
    struct shard *shard;
};

static void say(struct shard *shard, const char *line)
{
    if (shard->options.tell)
        shard->options.tell(shard->options.context, line);
}

static void say_skipped(struct saves_skipped *skipped, const char *why)
{
    char line[ERROR_TEXT_BYTES + 32];
    snprintf(line, sizeof line, "passed over: %s", why);
    say(((struct teller *)skipped)->shard, line);
}

/* "ckpt@300" of "a/ckpt/" */
static void say_restored(struct shard *shard, const char *folder, int64_t step)
{
    char line[512], *copy = mem_strdup(folder);
    snprintf(line, sizeof line, "restored from %s@%" PRId64, basename(copy), step);
    mem_free(copy);
    say(shard, line);
}

static int restore(struct shard *shard, const char *folder, int64_t step, double seconds,
                   int64_t *restored, struct error *err)
{
    struct teller teller = {{say_skipped}, shard};
    struct manifest manifest = {0};
    char *path, name[80];
    struct str file = STR_INIT;
    int code = saves_find(folder, step, &teller.skipped, &manifest, &path, err);
    if (!code) {
        shard_file_name(shard->options.task, name, sizeof name);
        str_printf(&file, "%s/%s", path, name);
        code = snapshot_restore(shard->options.variables, shard->options.device, file.data, seconds,
                                err);
    }
    if (!code) {
        *restored = manifest.step;
        say_restored(shard, folder, manifest.step);
    }
    str_release(&file);
    mem_free(path);
    manifest_release(&manifest);
    return code;
}

int shard_resume(struct shard *shard, const char *folder, int64_t step, int64_t *restored,
                 struct error *err)
{
    *restored = -1;
    int code = restore(shard, folder, step, SHARD_WAIT_SECONDS, restored, err);
    if (code != ERR_NOINPUT || step >= 0)
        return code;
    error_clear(err);
    return 0;
}

void shard_restore(struct shard_query *query)
{
    struct error err = ERROR_INIT;
    msgpack_packer *packer;
    const char *folder = query->folder ? query->folder : query->shard->options.save_folder;
    int64_t step;
    if (!folder)
        error_set(&err, ERR_USAGE, "no folder to restore from");
    else
        restore(query->shard, folder, query->step, query->seconds, &step, &err);
    if (err.code) {
        answer_error(query->peer, query->id, &err);
    } else if ((packer = answer_begin(query->peer, query->id, 1))) {
        pack_key(packer, "step");
        msgpack_pack_int64(packer, step);
        answer_end(query->peer, NULL, 0);
    }
    shard_query_free(query);
}
