/* SPDX-License-Identifier: Apache-2.0
 *
 * The run that a shard saves as. The shards of a job save as one run: that of the leader of the
 * first save, or that of the checkpoint that they resumed from.
 */
#include <string.h>
#include <sys/stat.h>

#include "checkpoint/store/save.h"
#include "ps/shard_private.h"

void shard_go_on_with(struct shard *shard, const struct store_writer *writer)
{
    struct error ignored = ERROR_INIT;
    struct store_writer *own = &shard->saves_as;
    pthread_mutex_lock(&shard->lock);
    if (run_is_known(&writer->run))
        own->run = writer->run;
    own->goes_on |= writer->goes_on;
    if (writer->generation)
        own->generation = writer->generation;
    if (*shard->options.run.name)
        run_set_name(&own->run, shard->options.run.name, &ignored);
    pthread_mutex_unlock(&shard->lock);
}

struct store_writer shard_saves_as(struct shard *shard)
{
    pthread_mutex_lock(&shard->lock);
    struct store_writer writer = shard->saves_as;
    pthread_mutex_unlock(&shard->lock);
    return writer;
}

int shard_check_store(struct shard *shard, struct error *err)
{
    struct store *store;
    struct store_writer writer = shard_saves_as(shard);
    const char *folder = shard->options.save_folder;
    *err = shard->no_store;
    if (err->code)
        return err->code;
    if (!folder || writer.goes_on || !store_exists(folder) ||
        store_open(folder, NULL, &store, err)) {
        error_clear(err);
        return 0;
    }
    int64_t generation;
    if (!store_generation(store, &generation, err)) {
        store_check_writer(store, &writer, err);
        shard_go_on_with(shard, &writer);
        if (err->code != ERR_CONFIG && err->code != ERR_DENIED)
            error_clear(err);
    }
    store_close(store);
    return err->code;
}

/* The asker may name the folder by another path. */
bool shard_is_own_folder(const struct shard *shard, const char *folder)
{
    const char *own = shard->options.save_folder;
    struct stat a, b;
    return own && (!strcmp(own, folder) || (!stat(own, &a) && !stat(folder, &b) &&
                                            a.st_dev == b.st_dev && a.st_ino == b.st_ino));
}
