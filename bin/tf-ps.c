/* SPDX-License-Identifier: Apache-2.0
 *
 * tf-ps: runs a parameter shard, which keeps variables between steps, sessions and workers; and
 * sends a user's requests to the shards of a running job.
 */
#include <inttypes.h>
#include <string.h>

#include "bin/cluster_options.h"
#include "bin/ops_option.h"
#include "bin/ps_serve.h"
#include "bin/ps_value.h"
#include "bin/ps_verbs.h"
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
    ps_warn_of_supervisor(call->tool);
    return verbs_ask(call->client, "stop", NULL, NULL, NULL, err);
}

/* ---- the verbs ---- */

/* What each verb runs, in the order of `verbs`: both come from one list. */
static const struct ps_verb {
    ps_verb_run *run;
    bool asks;        /* the shards */
    const char *view; /* of their replies; "": what --by says */
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
    if (err->code || !works[verb].asks)
        return err->code ? err->code : works[verb].run(&call, err);
    const struct member_options options = cluster_client(tool);
    call.client = &client;
    if (!client_open(&client, &options, err))
        works[verb].run(&call, err);
    client_close(&client);
    return err->code;
}

int main(int argc, char **argv)
{
    return tool_main(&table, run, argc, argv);
}
