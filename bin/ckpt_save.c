/* SPDX-License-Identifier: Apache-2.0
 *
 * The verb of tf-ckpt that asks the shards of a running job.
 */

#include "bin/ckpt_verbs.h"
#include "ps/backup.h"

#define REPLY_SECONDS 30.0

struct ckpt_job ckpt_job;

/* Adds to the message of a failure which checkpoint is still the newest. */
static void say_newest(const char *path, struct error *err)
{
    struct store *store;
    struct checkpoint *newest;
    struct error ignored = ERROR_INIT;
    if (store_open(path, NULL, &store, &ignored))
        return;
    if (!checkpoint_open(store, CHECKPOINT_NEWEST, &newest, NULL, &ignored)) {
        error_append(err, "; newest stays %s", newest->name);
        checkpoint_close(newest);
    }
    store_close(store);
}

static int save_job(struct command *c, struct store *store, double seconds, struct error *err)
{
    struct str fetches = STR_INIT;
    struct client client = {.cancelled = c->cancelled};
    str_printf(&fetches, "%s/worker-0.rec", ckpt_job.folder); /* if its host is this host */
    const struct member_options options = {.job_folder = ckpt_job.folder,
                                           .key_file = ckpt_job.key_file,
                                           .producer = "tf-ckpt",
                                           .timeout = seconds};
    const struct backup backup = {.client = &client,
                                  .store = store,
                                  .path = c->operands[0],
                                  .owner = c->owner,
                                  .producer = c->producer,
                                  .lock_wait = c->lock_wait,
                                  .fetches = fetches.data,
                                  .watch = &c->watch};
    int64_t saved;
    if (!client_open(&client, &options, err) && !backup_save(&backup, &saved, err) && c->verbose)
        str_printf(&c->out, "%s@%lld\n", store_name(store), (long long)saved);
    client_close(&client);
    str_release(&fetches);
    return err->code;
}

int ckpt_save(struct ckpt_work *job, struct error *err)
{
    struct command *c = &job->command;
    double max_runtime = job->max_runtime;
    bool is_short = max_runtime > 0 && max_runtime < REPLY_SECONDS;
    struct store *store;
    if (!ckpt_job.folder)
        return error_set(err, ERR_USAGE, "which job? --job DIR");
    if (!command_open_writing(c, c->operands[0], &store, err)) {
        save_job(c, store, is_short ? max_runtime : REPLY_SECONDS, err);
        command_measure(c, store);
        store_close(store);
    }
    if (err->code && err->code != ERR_NOINPUT && err->code != ERR_USAGE)
        say_newest(c->operands[0], err);
    return err->code;
}
