/* SPDX-License-Identifier: Apache-2.0 */
#include "bin/ps_serve.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "bin/cluster_options.h"
#include "bin/ops_option.h"
#include "bin/ps_verbs.h"
#include "checkpoint/job/autosave.h"
#include "checkpoint/policy/retain.h"
#include "checkpoint/store/store.h"
#include "graph/task.h"
#include "ps/shard.h"
#include "ps/verbs.h"

struct ps_serve_options ps_serving;

static struct interval every; /* --save-every, in updates */

struct served_shard {
    struct tool *tool;
    struct shard *shard;
    char *claims;    /* file in the job's directory; NULL: no directory */
    char *fetches;   /* the first worker's records there; NULL likewise */
    struct str best; /* metric, for manifests; empty: none was named */
    pthread_mutex_t lock;
    struct error failure; /* why it cannot go on; guarded by the lock */
    struct loop *loop;
    struct ckpt_run run; /* names the run in what is saved, until it resumes */
};

static void print_line(void *context, const char *line)
{
    const struct served_shard *serving = context;
    tool_say(serving->tool, "%s: %s", cluster_options.task, line);
}

static int find_cluster(void *context, struct cluster *cluster, struct error *err)
{
    struct job job;
    (void)context;
    if (cluster_options.path)
        return cluster_read(cluster, cluster_options.path, err);
    int code = job_open(&job, cluster_options.job, err);
    if (!code) {
        code = job_cluster(&job, cluster, err);
        job_close(&job);
    }
    return code;
}

static void fail(void *context, const struct error *why)
{
    struct served_shard *serving = context;
    pthread_mutex_lock(&serving->lock);
    serving->failure = *why;
    pthread_mutex_unlock(&serving->lock);
    loop_stop(serving->loop);
}

/* Asks the first shard, which decides for all, which checkpoint to restore. */
static int ask_first(struct served_shard *serving, struct shard_origin *origin, struct error *err)
{
    struct client client = {.awaits_start = true, .cancelled = cluster_cancelled()};
    const char *task = cluster_options.task;
    char first[TASK_TEXT_BYTES];
    snprintf(first, sizeof first, "%.*s:0", (int)strcspn(task, ":"), task);
    struct member_options options = cluster_client(serving->tool);
    options.task = first;
    if (!client_open(&client, &options, err))
        verbs_origin(&client, task, origin, err);
    client_close(&client);
    return err->code ? error_prefix(err, "%s: resuming: ", task) : 0;
}

static int opening(void *context, struct conns *conns, struct variable_store *variables,
                   struct error *err)
{
    struct served_shard *serving = context;
    struct shard_options options = {.conns = conns,
                                    .task = cluster_options.task,
                                    .variables = variables,
                                    .context = serving,
                                    .find_cluster = find_cluster,
                                    .tell = print_line,
                                    .fail = fail,
                                    .save_folder = ps_serving.save,
                                    .claims = serving->claims,
                                    .save_every = every.steps,
                                    .save_seconds = every.seconds,
                                    .keep = (int)ps_serving.keep,
                                    .producer = tool_provenance(serving->tool),
                                    .run = serving->run,
                                    .fetches = serving->fetches,
                                    .best = serving->best.data};
    serving->loop = conns_loop(conns);
    serving->shard = shard_new(&options);
    struct shard_origin origin;
    int64_t step;
    bool is_first = str_ends(cluster_options.task, ":0");
    if (ps_serving.resume &&
        ((!is_first && ask_first(serving, &origin, err)) ||
         shard_resume(serving->shard, ps_serving.save, is_first ? NULL : &origin, &step, err)))
        return err->code;
    if (shard_check_store(serving->shard, err))
        return err->code;
    shard_start_saves(serving->shard);
    return 0;
}

static void closing(void *context)
{
    struct served_shard *serving = context;
    shard_free(serving->shard);
}

static void ready(void *context, const char *task, const char *address)
{
    const struct served_shard *serving = context;
    cluster_ready(serving->tool, task, address);
}

int ps_serve(struct ps_call *call, struct error *err)
{
    struct tool *tool = call->tool;
    struct served_shard serving = {
        .tool = tool, .lock = PTHREAD_MUTEX_INITIALIZER, .failure = ERROR_INIT};
    if (ps_serving.threads > TOOL_THREADS_MOST)
        return error_set(err, ERR_USAGE, "--threads %" PRId64 ": at most %d", ps_serving.threads,
                         TOOL_THREADS_MOST);
    if (ps_serving.save_every && interval_parse(ps_serving.save_every, &every, err))
        return error_prefix(err, "--save-every: ");
    if (ps_serving.keep > INT_MAX)
        return error_set(err, ERR_USAGE, "--keep is at least 1");
    if (ps_serving.save && store_check_place(ps_serving.save, err))
        return error_prefix(err, "--save %s: ", ps_serving.save);
    if (ps_serving.save_best && retain_print_metric(ps_serving.save_best, &serving.best, err))
        return error_prefix(err, "--save-best %s: ", ps_serving.save_best);
    if (ops_option_load(err) || run_make(&serving.run, ps_serving.run_name, err) ||
        cluster_catch_signals(err))
        return err->code;
    const struct device_options device = {.threads = (int)ps_serving.threads,
                                          .deterministic = ps_serving.deterministic,
                                          .exact = ps_serving.exact};
    struct serve_options options = cluster_serving(tool, &device);
    if (cluster_options.job) {
        const struct job job = {.folder = (char *)(uintptr_t)cluster_options.job};
        serving.claims = job_path(&job, cluster_options.task, ".claims");
        serving.fetches = job_path(&job, "worker:0", ".rec");
    }
    options.context = &serving;
    options.parallel = true;
    options.ready = ready;
    options.opening = opening;
    options.closing = closing;
    if (!cluster_hold_parent_pipe(err) && !serve(&options, err))
        *err = serving.failure;
    mem_free(serving.claims);
    mem_free(serving.fetches);
    str_release(&serving.best);
    return err->code;
}
