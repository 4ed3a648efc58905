/* SPDX-License-Identifier: Apache-2.0
 *
 * What a shard reports about a restore: how many counted pushes it undoes.
 */
#include <inttypes.h>
#include <libgen.h>

#include "base/memory.h"
#include "ps/containers.h"
#include "ps/shard_private.h"

void shard_say(struct shard *shard, const char *line)
{
    if (shard->options.tell)
        shard->options.tell(shard->options.context, line);
}

void shard_read_counts(const struct shard *shard, int64_t counts[PUSHES_WORKERS])
{
    for (int i = 0; i < PUSHES_WORKERS; i++)
        counts[i] = shard->pushes.counts ? pushes_read(&shard->pushes, i) : 0;
}

void shard_write_counts(struct shard *shard)
{
    struct clock_worker workers[SHARD_WORKERS_MAX];
    struct clock *clock = containers_clock(shard->options.variables);
    int n = clock ? clock_workers(clock, workers, SHARD_WORKERS_MAX) : 0;
    if (!shard->pushes.counts)
        return;
    for (int i = 0; i < PUSHES_WORKERS; i++)
        pushes_write(&shard->pushes, i, 0);
    for (int i = 0; i < n && i < SHARD_WORKERS_MAX; i++)
        if (workers[i].worker >= 0 && workers[i].worker < PUSHES_WORKERS)
            pushes_write(&shard->pushes, (int)workers[i].worker, workers[i].counted);
}

/* "; 3 pushes that had counted are undone (worker:0 2, worker:1 1)" */
static void print_undone(struct shard *shard, const int64_t before[PUSHES_WORKERS],
                         struct str *line)
{
    int64_t after[PUSHES_WORKERS], all = 0, damaged = 0;
    struct str each = STR_INIT;
    shard_read_counts(shard, after);
    for (int i = 0; i < PUSHES_WORKERS; i++) {
        int64_t undone = before[i] - after[i];
        damaged += before[i] < 0;
        if (undone <= 0)
            continue;
        str_printf(&each, "%sworker:%d %" PRId64, all ? ", " : "", i, undone);
        all += undone;
    }
    if (all)
        str_printf(line, "; %" PRId64 " push%s that had counted %s undone (%s)", all,
                   all == 1 ? "" : "es", all == 1 ? "is" : "are", str_text(&each));
    if (damaged)
        str_printf(line, "; of %" PRId64 " workers it is not known: the file 'pushes' is damaged",
                   damaged);
    str_release(&each);
}

void shard_say_restored(struct shard *shard, const char *folder, int64_t step,
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
        shard_say(shard, str_text(&line));
    str_release(&line);
    mem_free(copy);
}
