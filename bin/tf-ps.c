/* SPDX-License-Identifier: Apache-2.0
 *
 * tf-ps: runs a parameter shard, which keeps variables between steps, sessions and workers; and
 * sends a user's requests to the shards of a running job.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/words.h"
#include "bin/cluster_options.h"
#include "bin/ops_option.h"
#include "bin/ps_value.h"
#include "bin/watch_line.h"
#include "checkpoint/job/autosave.h"
#include "checkpoint/policy/retain.h"
#include "checkpoint/store/store.h"
#include "cli/progress.h"
#include "graph/task.h"
#include "ps/shard.h"
#include "ps/verbs.h"
#include "ps/watch.h"
#include "show/shards.h"
#include "supervise/job_state.h"
#include "transport/job/cluster_config.h"

static bool json, last;
static const char *by, *container;
static struct {
    int64_t threads, keep;
    bool deterministic, exact, resume;
    const char *save, *save_every, *save_best, *run_name;
} serving;

static const struct option_row rows[] = {
#include "bin/cluster_rows.def"
    {0, "json", OPTION_FLAG, &json, NULL, "an object a line"},
    {0, "by", OPTION_TEXT, &by, "WHAT", "of shard, worker, key, peer or resource (shard)"},
    {0, "container", OPTION_TEXT, &container, "NAME", "of variables (reset: default; others: any)"},
    {0, "save", OPTION_TEXT, &serving.save, "DIR/",
     "a store for checkpoints of the job, see tf-ckpt"},
    {0, "save-every", OPTION_TEXT, &serving.save_every, "N|TIME",
     "one after every N updates, or every 30s"},
    {0, "save-best", OPTION_TEXT, &serving.save_best, "METRIC",
     "the best of them by this fetch is DIR@best, and stays, too; METRIC:min, METRIC:max"},
    {0, "run-name", OPTION_TEXT, &serving.run_name, "NAME", "of the run, by which stores know it"},
    {0, "resume", OPTION_FLAG, &serving.resume, NULL, "go on from the newest in --save, if any"},
    {0, "keep", OPTION_NATURAL, &serving.keep, "N", "checkpoints that stay in the store (5)"},
    {0, "last", OPTION_FLAG, &last, NULL, "from then on shards make none by themselves"},
    {0, "threads", OPTION_NATURAL, &serving.threads, "N",
     "threads to compute with (as many as cores)"},
    {0, "deterministic", OPTION_FLAG, &serving.deterministic, NULL,
     "the same bits whatever the number of threads"},
    {0, "exact", OPTION_FLAG, &serving.exact, NULL, "no Winograd, no FFT, see tf-exec"},
    OPS_OPTION_ROW,
    TOOL_OUTPUT_ROW,
    TOOL_COMMON_ROWS,
    {0}};

static const struct option_verb verbs[] = {
#define VERB(name, operands, help, options, ...) {name, operands, help, options},
#include "bin/ps_verbs.def"
#undef VERB
    {NULL, NULL, NULL, NULL}};

static const struct option_need needs[] = {{"save-every save-best resume keep", "save"},
                                           {NULL, NULL}};

static const struct option_table table = {
    .tool = "tf-ps",
    .summary = "a parameter shard, and questions to a running job",
    .operands = "VERB [NAME]...",
    .description =
        "All but serve ask the shards of the cluster of -c or of the job of --job, or the "
        "one of --task. Where workers have the variables, list, get and save ask one of these.",
    .examples = "tf-ps serve -c my.cluster --task ps:0\n"
                "tf-ps list --job run\n"
                "tf-ps get output/W --job run | tf-show\n"
                "watch -n 1 tf-ps stats --by worker --job run",
    .rows = rows,
    .verbs = verbs,
    .needs = needs,
    .operands_max = -1,
};

struct ps_call {
    struct tool *tool;
    char **operands;       /* after the verb */
    struct client *client; /* NULL: the verb asks no shards */
    const struct shard_view *view;
};

typedef int ps_verb_run(struct ps_call *call, struct error *err);

/* ---- asking ---- */

struct view_table {
    const struct ps_call *call;
    VEC(struct str) rows; /* of each task */
};

static void take_rows(void *context, const char *task, const struct record *reply)
{
    struct view_table *t = context;
    struct str *own = &t->rows.items[client_task_index(t->call->client, task)];
    shard_view_add(t->call->view, json, task, &reply->header, own);
}

static int ask_view(struct ps_call *call, struct error *err)
{
    struct view_table t = {.call = call};
    struct variable_place place = {container, NULL};
    size_t n = call->client->tasks.n;
    for (size_t i = 0; i < n; i++)
        vec_push(&t.rows, (struct str)STR_INIT);
    if (!verbs_ask(call->client, shard_view_verb(call->view), &place, take_rows, &t, err)) {
        struct str all = STR_INIT, text = STR_INIT;
        FILE *out;
        for (size_t i = 0; i < n; i++)
            str_append_bytes(&all, str_text(&t.rows.items[i]), t.rows.items[i].n);
        if (!json)
            shard_view_print(call->view, &all, &text);
        if (!tool_open_text(call->tool, &out, err))
            fputs(str_text(json ? &all : &text), out);
        str_release(&all);
        str_release(&text);
    }
    for (size_t i = 0; i < n; i++)
        str_release(&t.rows.items[i]);
    vec_release(&t.rows);
    return err->code;
}

static int get(struct ps_call *call, struct error *err)
{
    struct variable_place place = {container, call->operands[0]};
    struct tensor value = TENSOR_INIT;
    if (!verbs_get(call->client, &place, &value, err))
        ps_write_value(call->tool, call->operands[0], &value, err);
    tensor_release(&value);
    return err->code;
}

static int put(struct ps_call *call, struct error *err)
{
    struct variable_place place = {container, call->operands[0]};
    struct tensor value = TENSOR_INIT;
    if (!ps_read_value(call->tool, call->operands[1], call->operands[0], &value, err))
        verbs_put(call->client, &place, &value, err);
    tensor_release(&value);
    return err->code;
}

static int reset(struct ps_call *call, struct error *err)
{
    int64_t n;
    return verbs_reset(call->client, container ? container : "default", &n, err);
}

static int save(struct ps_call *call, struct error *err)
{
    int64_t step;
    int code = verbs_save(call->client, call->operands[0], last, &step, err);
    if (!code && call->tool->verbose)
        tool_say(call->tool, "%s@%" PRId64, call->operands[0], step);
    return code;
}

static int restore(struct ps_call *call, struct error *err)
{
    int64_t step;
    int code = verbs_restore(call->client, call->operands[0], &step, err);
    if (!code)
        tool_say(call->tool, "restored from step %" PRId64, step);
    return code;
}

static int stop(struct ps_call *call, struct error *err)
{
    if (cluster_options.job && job_is_running(cluster_options.job))
        tool_say(call->tool,
                 "tf-run supervises this job and will start again what is stopped; "
                 "tf-run stop --job %s ends the job",
                 cluster_options.job);
    return verbs_ask(call->client, "stop", NULL, NULL, NULL, err);
}

/* ---- jobs ---- */

static int check_job(struct error *err)
{
    return cluster_options.job ? 0 : error_set(err, ERR_USAGE, "which job? --job DIR");
}

static int init_folder(struct ps_call *call, struct error *err)
{
    const char *config = getenv("TF_CONFIG"), *path = cluster_options.path;
    char task[TASK_TEXT_BYTES];
    struct str text = STR_INIT;
    (void)call;
    if (check_job(err))
        return err->code;
    if (!path && (!config || !*config))
        return error_set(err, ERR_USAGE, "which cluster? -c FILE, or TF_CONFIG");
    if (!(path ? file_read(path, WORDS_FILE_BYTES, &text, err)
               : cluster_config_text(&text, config, task, err)))
        job_begin(cluster_options.job, str_text(&text), path ? path : "TF_CONFIG", err);
    str_release(&text);
    return err->code;
}

static int end_folder(struct ps_call *call, struct error *err)
{
    (void)call;
    return check_job(err) ? err->code : job_end(cluster_options.job, err);
}

struct watch_view {
    FILE *out;
    struct progress progress;
};

static void print_line(void *context, const char *text)
{
    const struct watch_view *watching = context;
    progress_clear();
    fprintf(watching->out, "%s\n", text);
    fflush(watching->out);
}

static void draw(void *context, const struct watch_state *state)
{
    struct watch_view *watching = context;
    watch_line_draw(&watching->progress, state);
}

static int watch_lines(struct ps_call *call, struct error *err)
{
    struct tool *tool = call->tool;
    struct watch_view watching;
    struct watch_options options = {.job_folder = cluster_options.job,
                                    .key_file = cluster_options.key_file,
                                    .producer = tool->table->tool,
                                    .no_key = cluster_options.no_key,
                                    .lease = cluster_options.lease,
                                    .line = print_line,
                                    .state = draw,
                                    .ends = tool_is_asked,
                                    .context = &watching};
    if (check_job(err) || tool_open_text(tool, &watching.out, err))
        return err->code;
    tool_catch_signals();
    bool shown = isatty(STDERR_FILENO) && !isatty(STDOUT_FILENO) && !tool->quiet;
    progress_start(&watching.progress, shown, stderr, "step", 0, -1);
    return watch_job(&options, err);
}

/* ---- serving ---- */

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

static void say_line(void *context, const char *line)
{
    const struct served_shard *served = context;
    tool_say(served->tool, "%s: %s", cluster_options.task, line);
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
    struct served_shard *served = context;
    pthread_mutex_lock(&served->lock);
    served->failure = *why;
    pthread_mutex_unlock(&served->lock);
    loop_stop(served->loop);
}

/* Asks the first shard, which decides for all, which checkpoint to restore. */
static int ask_first(struct served_shard *served, struct shard_origin *origin, struct error *err)
{
    struct client client = {.awaits_start = true, .cancelled = cluster_cancelled()};
    const char *task = cluster_options.task;
    char first[TASK_TEXT_BYTES];
    snprintf(first, sizeof first, "%.*s:0", (int)strcspn(task, ":"), task);
    struct member_options options = cluster_client(served->tool);
    options.task = first;
    if (!client_open(&client, &options, err))
        verbs_origin(&client, task, origin, err);
    client_close(&client);
    return err->code ? error_prefix(err, "%s: resuming: ", task) : 0;
}

static int opening(void *context, struct conns *conns, struct variable_store *variables,
                   struct error *err)
{
    struct served_shard *served = context;
    struct shard_options options = {.conns = conns,
                                    .task = cluster_options.task,
                                    .variables = variables,
                                    .context = served,
                                    .find_cluster = find_cluster,
                                    .tell = say_line,
                                    .fail = fail,
                                    .save_folder = serving.save,
                                    .claims = served->claims,
                                    .save_every = every.steps,
                                    .save_seconds = every.seconds,
                                    .keep = (int)serving.keep,
                                    .producer = tool_provenance(served->tool),
                                    .run = served->run,
                                    .fetches = served->fetches,
                                    .best = served->best.data};
    served->loop = conns_loop(conns);
    served->shard = shard_new(&options);
    struct shard_origin origin;
    int64_t step;
    bool is_first = str_ends(cluster_options.task, ":0");
    if (serving.resume &&
        ((!is_first && ask_first(served, &origin, err)) ||
         shard_resume(served->shard, serving.save, is_first ? NULL : &origin, &step, err)))
        return err->code;
    if (shard_check_store(served->shard, err))
        return err->code;
    shard_start_saves(served->shard);
    return 0;
}

static void closing(void *context)
{
    struct served_shard *served = context;
    shard_free(served->shard);
}

static void ready(void *context, const char *task, const char *address)
{
    const struct served_shard *served = context;
    cluster_ready(served->tool, task, address);
}

static int serve_shard(struct ps_call *call, struct error *err)
{
    struct tool *tool = call->tool;
    struct served_shard shard = {
        .tool = tool, .lock = PTHREAD_MUTEX_INITIALIZER, .failure = ERROR_INIT};
    if (serving.threads > TOOL_THREADS_MOST)
        return error_set(err, ERR_USAGE, "--threads %" PRId64 ": at most %d", serving.threads,
                         TOOL_THREADS_MOST);
    if (serving.save_every && interval_parse(serving.save_every, &every, err))
        return error_prefix(err, "--save-every: ");
    if (serving.keep > INT_MAX)
        return error_set(err, ERR_USAGE, "--keep is at least 1");
    if (serving.save && store_check_place(serving.save, err))
        return error_prefix(err, "--save %s: ", serving.save);
    if (serving.save_best && retain_print_metric(serving.save_best, &shard.best, err))
        return error_prefix(err, "--save-best %s: ", serving.save_best);
    if (ops_option_load(err) || run_make(&shard.run, serving.run_name, err) ||
        cluster_catch_signals(err))
        return err->code;
    const struct device_options device = {.threads = (int)serving.threads,
                                          .deterministic = serving.deterministic,
                                          .exact = serving.exact};
    struct serve_options options = cluster_serving(tool, &device);
    if (cluster_options.job) {
        const struct job job = {.folder = (char *)(uintptr_t)cluster_options.job};
        shard.claims = job_path(&job, cluster_options.task, ".claims");
        shard.fetches = job_path(&job, "worker:0", ".rec");
    }
    options.context = &shard;
    options.parallel = true;
    options.ready = ready;
    options.opening = opening;
    options.closing = closing;
    if (!cluster_hold_parent_pipe(err) && !serve(&options, err))
        *err = shard.failure;
    mem_free(shard.claims);
    mem_free(shard.fetches);
    str_release(&shard.best);
    return err->code;
}

/* ---- the verbs ---- */

/* What each verb runs, in the order of `verbs`: both come from one list. */
static const struct ps_verb {
    ps_verb_run *run;
    enum { ASKS_NOBODY, ASKS_SHARDS, ASKS_HOLDERS } asks; /* ASKS_HOLDERS: of the variables */
    const char *view;                                     /* of their replies; "": what --by says */
} works[] = {
#define VERB(name, operands, help, options, ...) {__VA_ARGS__},
#include "bin/ps_verbs.def"
#undef VERB
};

static const struct shard_view *find_view(const char *name, struct error *err)
{
    const char *wanted = *name ? name : by ? by : "shard";
    const struct shard_view *view = shard_view_find(wanted);
    if (*name || (view && strcmp(wanted, "list") && strcmp(wanted, "status")))
        return view;
    error_set(err, ERR_USAGE, "--by %s: it is worker, shard, key, peer or resource", wanted);
    return NULL;
}

static int run(struct tool *tool, int n_operands, char **operands, struct error *err)
{
    struct client client = {.cancelled = NULL};
    struct ps_call call = {.tool = tool, .operands = operands + 1};
    int verb = options_verb(&table, n_operands, operands, err);
    if (verb >= 0 && works[verb].view)
        call.view = find_view(works[verb].view, err);
    if (err->code || works[verb].asks == ASKS_NOBODY)
        return err->code ? err->code : works[verb].run(&call, err);
    const struct member_options options = cluster_client(tool);
    call.client = &client;
    client.of_values = works[verb].asks == ASKS_HOLDERS;
    if (!client_open(&client, &options, err))
        works[verb].run(&call, err);
    client_close(&client);
    return err->code;
}

int main(int argc, char **argv)
{
    return tool_main(&table, run, argc, argv);
}
