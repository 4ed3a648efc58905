/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/variables/files.h"

#include <pthread.h>

#include "base/memory.h"
#include "checkpoint/formats/source.h"
#include "checkpoint/store/save.h"

#define LOCK_WAIT_SECONDS 600 /* a nightly job may be using the store */

struct files {
    struct checkpoint_files files; /* first */
    const char *producer;
    pthread_mutex_t lock; /* guards the run */
    struct ckpt_run run;  /* of saved files: a new run, or that of the file restored before */
};

static int save(struct checkpoint_files *files, const char *path, int64_t step,
                const struct named_tensor *tensors, int n, struct error *err)
{
    const struct store_options options = {
        .write = true, .lock_wait = LOCK_WAIT_SECONDS, .owner = "Save"};
    struct files *own = (struct files *)files;
    struct variable_record *values = mem_array((size_t)n + 1, sizeof *values);
    struct store *store;
    for (int i = 0; i < n; i++)
        values[i] = (struct variable_record){
            .container = DEFAULT_CONTAINER, .name = tensors[i].name, .value = tensors[i].tensor};
    struct save_request request = {
        .step = step, .producer = own->producer, .tensors = values, .n_tensors = (size_t)n};
    pthread_mutex_lock(&own->lock); /* steps may run at the same time */
    if (!run_is_known(&own->run))
        run_make(&own->run, NULL, err);
    request.run = own->run;
    pthread_mutex_unlock(&own->lock);
    if (!err->code && !store_open(path, &options, &store, err)) {
        store_save(store, &request, NULL, err);
        store_close(store);
    }
    mem_free(values);
    return err->code;
}

static int restore_variable(struct checkpoint_files *files, const char *path, const char *name,
                            struct tensor *value, struct error *err)
{
    struct source source;
    if (source_open(path, &source, err))
        return err->code;
    struct files *own = (struct files *)files;
    pthread_mutex_lock(&own->lock);
    if (source.checkpoint && !run_is_known(&own->run))
        own->run = source.checkpoint->manifest.run;
    pthread_mutex_unlock(&own->lock);
    int i = source_find_whole(&source, name, err);
    if (i >= 0)
        source_read(&source, (size_t)i, value, err);
    source_close(&source);
    return err->code;
}

struct checkpoint_files *checkpoint_files(const char *producer)
{
    static struct files files = {.files = {save, restore_variable},
                                 .lock = PTHREAD_MUTEX_INITIALIZER};
    files.producer = producer;
    return &files.files;
}
