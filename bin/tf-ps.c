/* SPDX-License-Identifier: Apache-2.0
 *
 * tf-ps: runs a parameter shard, which keeps variables between steps, sessions and workers; and
 * sends a user's requests to the shards of a running job.
 */
#include <inttypes.h>
#include <string.h>

#include "bin/cluster_options.h"
#include "bin/ops_option.h"
#include "bin/ps_job.h"
#include "bin/ps_serve.h"
#include "bin/ps_value.h"
#include "ops/ops.h"
#include "ps/verbs.h"
#include "show/shards.h"

static bool json, last;
static const char *by, *container;

static const struct option_row rows[] = {
#include "bin/cluster_rows.def"
    {0, "json", OPTION_FLAG, &json, NULL, "an object a line"},
    {0, "by", OPTION_TEXT, &by, "WHAT", "of shard, worker, key, peer or resource (shard)"},
    {0, "container", OPTION_TEXT, &container, "NAME", "of variables (reset: default; others: any)"},
    {0, "save", OPTION_TEXT, &ps_serving.save, "DIR/",
     "a store for checkpoints of the job, see tf-ckpt"},
    {0, "save-every", OPTION_TEXT, &ps_serving.save_every, "N|TIME",
     "one after every N updates, or every 30s"},
    {0, "save-best", OPTION_TEXT, &ps_serving.save_best, "METRIC",
     "the best of them by this fetch is DIR@best, and stays, too; METRIC:min, METRIC:max"},
    {0, "run-name", OPTION_TEXT, &ps_serving.run_name, "NAME",
     "of the run, by which stores know it"},
    {0, "resume", OPTION_FLAG, &ps_serving.resume, NULL, "go on from the newest in --save, if any"},
    {0, "keep", OPTION_NATURAL, &ps_serving.keep, "N", "checkpoints that stay in the store (5)"},
    {0, "last", OPTION_FLAG, &last, NULL, "from then on shards make none by themselves"},
    {0, "threads", OPTION_NATURAL, &ps_serving.threads, "N",
     "threads to compute with (as many as cores)"},
    {0, "deterministic", OPTION_FLAG, &ps_serving.deterministic, NULL,
     "the same bits whatever the number of threads"},
    {0, "exact", OPTION_FLAG, &ps_serving.exact, NULL, "no Winograd, no FFT, see tf-exec"},
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
    .summary = "a parameter shard, and questions to the shards of a running job",
    .operands = "VERB [NAME]...",
    .description =
        "All but serve ask the shards of the cluster of -c or of the job of --job, or the "
        "one of --task.",
    .examples = "tf-ps serve -c my.cluster --task ps:0\n"
                "tf-ps list --job run\n"
                "tf-ps get output/W --job run | tf-show\n"
                "watch -n 1 tf-ps stats --by worker --job run",
    .rows = rows,
    .verbs = verbs,
    .needs = needs,
    .operands_max = -1,
};

/* ---- asking ---- */

static void say_waiting(void *context, const char *text)
{
    tool_say_waiting(context, text);
}

static int open_client(struct client *client, struct tool *tool, struct error *err)
{
    struct client_options options = {.cluster_path = cluster_options.path,
                                     .job_folder = cluster_options.job,
                                     .key_file = cluster_options.key_file,
                                     .no_key = cluster_options.no_key,
                                     .task = cluster_options.task,
                                     .producer = tool->table->tool,
                                     .timeout = cluster_options.timeout,
                                     .waiting = say_waiting,
                                     .context = tool};
    return client_open(client, &options, err);
}

struct view_table {
    struct client client;
    const struct shard_view *view;
    VEC(struct str) rows; /* of each task */
};

static void take_rows(void *context, const char *task, const struct record *reply)
{
    struct view_table *t = context;
    struct str *own = &t->rows.items[client_task_index(&t->client, task)];
    shard_view_add(t->view, json, task, &reply->header, own);
}

static int ask_view(struct tool *tool, const char *name, struct error *err)
{
    struct view_table t = {.view = shard_view_find(name)};
    struct variable_place place = {container, NULL};
    int code = open_client(&t.client, tool, err);
    for (size_t i = 0; i < t.client.tasks.n; i++)
        vec_push(&t.rows, (struct str)STR_INIT);
    if (!code)
        code = verbs_ask(&t.client, shard_view_verb(t.view), &place, take_rows, &t, err);
    if (!code) {
        struct str all = STR_INIT, text = STR_INIT;
        FILE *out;
        code = tool_open_text(tool, &out, err);
        for (size_t i = 0; i < t.rows.n; i++)
            str_append_bytes(&all, str_text(&t.rows.items[i]), t.rows.items[i].n);
        if (!json)
            shard_view_print(t.view, &all, &text);
        if (!code)
            fputs(str_text(json ? &all : &text), out);
        str_release(&all);
        str_release(&text);
    }
    for (size_t i = 0; i < t.rows.n; i++)
        str_release(&t.rows.items[i]);
    vec_release(&t.rows);
    client_close(&t.client);
    return code;
}

static int run_list(struct tool *tool, char **operands, struct error *err)
{
    (void)operands;
    return ask_view(tool, "list", err);
}

static int run_status(struct tool *tool, char **operands, struct error *err)
{
    (void)operands;
    return ask_view(tool, "status", err);
}

static int run_stats(struct tool *tool, char **operands, struct error *err)
{
    const char *name = by ? by : "shard";
    (void)operands;
    if (strcmp(name, "worker") && strcmp(name, "shard") && strcmp(name, "key") &&
        strcmp(name, "peer") && strcmp(name, "resource"))
        return error_set(err, ERR_USAGE, "--by %s: it is worker, shard, key, peer or resource",
                         name);
    return ask_view(tool, name, err);
}

static int get(struct tool *tool, struct client *client, char **operands, struct error *err)
{
    struct variable_place place = {container, operands[0]};
    struct tensor value = TENSOR_INIT;
    int code = verbs_get(client, &place, &value, err);
    if (!code)
        code = ps_write_value(tool, operands[0], &value, err);
    tensor_release(&value);
    return code;
}

static int put(struct tool *tool, struct client *client, char **operands, struct error *err)
{
    struct variable_place place = {container, operands[0]};
    struct tensor value = TENSOR_INIT;
    int code = ps_read_value(tool, operands[1], operands[0], &value, err);
    if (!code)
        code = verbs_put(client, &place, &value, err);
    tensor_release(&value);
    return code;
}

static int reset(struct tool *tool, struct client *client, char **operands, struct error *err)
{
    int64_t n;
    (void)tool, (void)operands;
    return verbs_reset(client, container ? container : "default", &n, err);
}

static int save(struct tool *tool, struct client *client, char **operands, struct error *err)
{
    int64_t step;
    int code = verbs_save(client, operands[0], last, &step, err);
    if (!code && tool->verbose)
        tool_say(tool, "%s@%" PRId64, operands[0], step);
    return code;
}

static int restore(struct tool *tool, struct client *client, char **operands, struct error *err)
{
    int64_t step;
    int code = verbs_restore(client, operands[0], &step, err);
    if (!code)
        tool_say(tool, "restored from step %" PRId64, step);
    return code;
}

static int stop(struct tool *tool, struct client *client, char **operands, struct error *err)
{
    (void)operands;
    ps_warn_of_supervisor(tool);
    return verbs_stop(client, err);
}

/* ---- the verbs ---- */

/* What each verb runs, in the order of `verbs`: both come from one list. */
static const struct ps_verb {
    int (*run)(struct tool *tool, char **operands, struct error *err); /* one of the two */
    int (*ask)(struct tool *tool, struct client *client, char **operands, struct error *err);
} works[] = {
#define VERB(name, operands, help, options, ...) {__VA_ARGS__},
#include "bin/ps_verbs.def"
#undef VERB
};

static int run(struct tool *tool, int n_operands, char **operands, struct error *err)
{
    struct client client;
    int verb = options_verb(&table, n_operands, operands, err);
    if (verb < 0)
        return err->code;
    if (works[verb].run)
        return works[verb].run(tool, operands + 1, err);
    int code = open_client(&client, tool, err);
    if (!code)
        code = works[verb].ask(tool, &client, operands + 1, err);
    client_close(&client);
    return code;
}

int main(int argc, char **argv)
{
    return tool_main(&table, run, argc, argv);
}
