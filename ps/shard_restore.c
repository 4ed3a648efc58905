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

/* ---- what is undone ---- */

static void read_counts(const struct shard *shard, int64_t counts[PUSHES_WORKERS])
{
    for (int i = 0; i < PUSHES_WORKERS; i++)
        counts[i] = shard->pushes.counts ? atomic_load(&shard->pushes.counts[i]) : 0;
}

/* Those of the clock that was restored, into the file; all zero if there is none. */
static void write_counts(struct shard *shard)
{
    struct clock_worker workers[SHARD_WORKERS_MAX];
    struct clock *clock = shard_clock(shard);
    int n = clock ? clock_workers(clock, workers, SHARD_WORKERS_MAX) : 0;
    if (!shard->pushes.counts)
        return;
    for (int i = 0; i < PUSHES_WORKERS; i++)
        atomic_store(&shard->pushes.counts[i], 0);
    for (int i = 0; i < n && i < SHARD_WORKERS_MAX; i++)
        if (workers[i].worker >= 0 && workers[i].worker < PUSHES_WORKERS)
            atomic_store(&shard->pushes.counts[workers[i].worker], workers[i].counted);
}

/* "; 3 pushes that had counted are undone (worker:0 2, worker:1 1)" */
static void print_undone(struct shard *shard, const int64_t before[PUSHES_WORKERS],
                         struct str *line)
{
    int64_t after[PUSHES_WORKERS], all = 0;
    struct str each = STR_INIT;
    read_counts(shard, after);
    for (int i = 0; i < PUSHES_WORKERS; i++) {
        int64_t undone = before[i] - after[i];
        if (undone <= 0)
            continue;
        str_printf(&each, "%sworker:%d %" PRId64, all ? ", " : "", i, undone);
        all += undone;
    }
    if (all)
        str_printf(line, "; %" PRId64 " push%s that had counted %s undone (%s)", all,
                   all == 1 ? "" : "es", all == 1 ? "is" : "are", str_text(&each));
    str_release(&each);
}

/* "restored from ckpt@300" of "a/ckpt/" */
static void say_restored(struct shard *shard, const char *folder, int64_t step,
                         const int64_t before[PUSHES_WORKERS])
{
    struct str line = STR_INIT;
    char *copy = mem_strdup(folder);
    if (step >= 0)
        str_printf(&line, "restored from %s@%" PRId64, basename(copy), step);
    else
        str_printf(&line, "%s: no checkpoint there", basename(copy));
    size_t n = line.n;
    print_undone(shard, before, &line);
    if (step >= 0 || line.n > n)
        say(shard, str_text(&line));
    str_release(&line);
    mem_free(copy);
}

/* ---- restoring ---- */

static int restore(struct shard *shard, const char *folder, int64_t step, double seconds,
                   int64_t *restored, struct error *err)
{
    struct teller teller = {{say_skipped}, shard};
    struct manifest manifest = {0};
    char *path, name[80];
    struct str file = STR_INIT;
    int64_t before[PUSHES_WORKERS];
    read_counts(shard, before);
    int code = saves_find(folder, step, &teller.skipped, &manifest, &path, err);
    if (!code) {
        shard_file_name(shard->options.task, name, sizeof name);
        str_printf(&file, "%s/%s", path, name);
        code = snapshot_restore(shard->options.variables, shard->options.device, file.data, seconds,
                                err);
    }
    if (!code) {
        *restored = manifest.step;
        write_counts(shard);
        say_restored(shard, folder, manifest.step, before);
    }
    str_release(&file);
    mem_free(path);
    manifest_release(&manifest);
    return code;
}

int shard_resume(struct shard *shard, const char *folder, int64_t step, int64_t *restored,
                 struct error *err)
{
    int64_t before[PUSHES_WORKERS];
    *restored = -1;
    read_counts(shard, before);
    int code = restore(shard, folder, step, SHARD_WAIT_SECONDS, restored, err);
    if (code != ERR_NOINPUT || step >= 0)
        return code;
    error_clear(err);
    write_counts(shard);
    say_restored(shard, folder, -1, before);
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
