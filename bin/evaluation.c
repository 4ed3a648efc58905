/* SPDX-License-Identifier: Apache-2.0 */
#include "bin/evaluation.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/time.h"
#include "bin/cluster_options.h"
#include "bin/exec_request.h"
#include "exec/state/saver.h"
#include "graph/worker_attr.h"
#include "transport/job/job.h"

#define EVALUATION_BLOB "evaluation" /* of a checkpoint: how the rules stood */
#define REDUCE_BLOB "reduce"
#define HISTORY_BYTES (1 << 26)

struct evaluation_options evaluation_options;

/* ---- what is asked for ---- */

static int parse_rule(struct evaluation *e, struct stop_rule *rule, const char *text,
                      struct error *err)
{
    struct str names = STR_INIT;
    stop_rule_read(rule, text, rule == &e->reduce, &e->arena, err);
    for (size_t i = 0; i < e->names.n; i++)
        str_printf(&names, "%s%s", i ? ", " : "it is not evaluated; there are ", e->names.items[i]);
    if (vec_find(&e->names, rule->metric) == e->names.n)
        error_set(err, ERR_USAGE, "%s", names.n ? names.data : "nothing is evaluated");
    str_release(&names);
    return err->code;
}

/* NAME=METRIC,... */
static int read_reduce(struct evaluation *e, struct error *err)
{
    const char *text = evaluation_options.reduce, *end = strchr(text, '=');
    if (!end)
        return error_set(err, ERR_USAGE, "it is VARIABLE=METRIC,patience=...");
    const char *name = arena_strndup(&e->arena, text, (size_t)(end - text));
    e->reduced = graph_find(e->driver.graph, name);
    if (!e->reduced || !node_is(e->reduced, "Variable") ||
        !(DTYPE_BIT(e->reduced->outputs[0].type) & DTYPES_REAL))
        return error_set(err, ERR_USAGE, "there is no variable '%s' of numbers", name);
    return parse_rule(e, &e->reduce, end + 1, err);
}

/* A file that is no program is read; else it is a command. */
static int check_feed(struct evaluation *e, struct error *err)
{
    const char *feed = evaluation_options.feed;
    if (!feed || !strcmp(feed, "-"))
        return 0;
    bool is_file = !access(feed, R_OK);
    e->runs_feed = is_file ? !access(feed, X_OK) : strpbrk(feed, " \t") != NULL;
    return is_file || e->runs_feed ? 0 : error_set_errno(err, ERR_NOINPUT, "--eval-feed: %s", feed);
}

/* What another worker would have to do for this one's answer, or has another value of. */
static const char *not_here(const struct driver *driver)
{
    graph_each(node, driver->graph) {
        if (!cluster_options.task || !request_uses(&driver->request, node->id))
            continue;
        if (node_has(node, OP_ASYNC) && !node_is(node, "Recv"))
            return "all workers would have to run it";
        if (evaluation_options.split && node_attr(node, PER_WORKER))
            return "--eval-split: each worker has variables of its own in it";
    }
    return NULL;
}

static int check_request(const struct driver *driver, struct error *err)
{
    const struct request *request = &driver->request;
    const char *why = request->targets.n   ? "it runs ops, and does not only fetch"
                      : request->fetches.n ? NULL
                                           : "it fetches nothing";
    why = why ? why : not_here(driver);
    return why ? error_set(err, ERR_USAGE, "%s: --eval %s: %s", driver->name, driver->what, why)
               : 0;
}

static int check_is_fed(const struct driver *driver, struct error *err)
{
    struct str names = STR_INIT;
    for (size_t i = 0; i < driver->needs.n; i++)
        str_printf(&names, "%s%s", i ? ", " : "",
                   graph_node(driver->graph, driver->needs.items[i])->name);
    if (names.n && !evaluation_options.feed)
        error_set(err, ERR_USAGE, "%s: --eval %s is to be fed %s; --eval-feed names what does",
                  driver->name, driver->what, names.data);
    str_release(&names);
    return err->code;
}

int evaluation_check(struct evaluation *e, struct error *err)
{
    struct driver *driver = &e->driver;
    if (!evaluation_options.entry)
        return 0;
    if (evaluation_options.every && interval_parse(evaluation_options.every, &e->every, err))
        return error_prefix(err, "--eval-every: ");
    if (evaluation_options.split && e->every.seconds > 0)
        return error_set(err, ERR_USAGE,
                         "--eval-split: all evaluate after the same step: "
                         "--eval-every counts steps then");
    if (check_feed(e, err))
        return err->code;
    driver_init(driver, e->training->graph, e->training->name);
    driver->option = "--eval";
    driver->what = evaluation_options.entry;
    if (request_run(&driver->request, driver->what, err))
        return error_prefix(err, "%s: --eval: ", driver->name);
    for (size_t i = 0; i < driver->request.names.n; i++)
        driver->request.names.items[i] =
            arena_printf(&e->arena, "%s/%s", driver->what, driver->request.names.items[i]);
    if (check_request(driver, err) || exec_request_add_constants(driver, err) ||
        driver_ready(driver, err) || scores_begin(&e->scores, driver, err))
        return err->code;
    vec_each(score, &e->scores.items) {
        const struct node *node = graph_node(driver->graph, score->edge.node);
        if (node->outputs[score->edge.slot].shape.rank <= 0)
            vec_push(&e->names, score->name);
    }
    e->saving->measured = e->names.items;
    e->saving->n_measured = e->names.n;
    if (evaluation_options.stop && parse_rule(e, &e->stop, evaluation_options.stop, err))
        return error_prefix(err, "--stop-when %s: ", evaluation_options.stop);
    if (evaluation_options.reduce && read_reduce(e, err))
        return error_prefix(err, "--reduce %s: ", evaluation_options.reduce);
    return check_is_fed(driver, err);
}

/* ---- what is fed ---- */

static int run_feed(struct evaluation *e, struct error *err)
{
    const char *feed = evaluation_options.feed;
    bool more = true;
    fflush(NULL);
    FILE *pipe = e->runs_feed ? popen(feed, "r") : NULL;
    if (e->runs_feed && !pipe)
        return error_set_errno(err, ERR_OS, "--eval-feed '%s'", feed);
    e->driver.step = 0;
    e->driver.feed_reader = pipe ? stream_reader_new(fileno(pipe), "--eval-feed") : NULL;
    if (feed && !pipe && tool_open_reader(e->tool, feed, &e->driver.feed_reader, err))
        return error_prefix(err, "--eval-feed: ");
    /* Of n workers each runs every nth record, and for the shape of what comes of it the first. */
    for (int64_t i = 0; more && !tool_signal() && !driver_next_feeds(&e->driver, &more, err); i++) {
        if (more && i && i % e->n_workers != e->place)
            e->driver.step++;
        else if (more && driver_run_step(&e->driver, err))
            break;
        if (!i && e->place)
            scores_forget_steps(&e->scores);
        more &= feed != NULL;
    }
    if (!pipe) {
        tool_close_reader(e->driver.feed_reader);
        return err->code;
    }
    stream_reader_free(e->driver.feed_reader);
    int status = pclose(pipe);
    int ended = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    bool was_left = err->code && ended == 128 + SIGPIPE; /* as what it wrote was refused */
    if (ended && !was_left && !tool_signal())
        return error_set(err, ERR_DATA, "--eval-feed '%s' ended with %d", feed, ended);
    return err->code;
}

/* ---- workers that evaluate together ---- */

static int gather_rows(void *context, uint64_t number, const struct tensor *rows,
                       struct tensor *all, struct error *err)
{
    struct evaluation *e = context;
    const struct collective_call call = {.key = {"=scores", runner_meets_at(e->runner), number}};
    return worker_exchange(e->runner->worker, call, rows, NULL, all, err);
}

/* Finds who evaluates after this step. *here is false where `last`, and others go on, and where one
 * of them was asked to end. */
static int meet_evaluators(struct evaluation *e, bool last, bool *here, struct error *err)
{
    const struct collective_call call = {.key = {"=evaluates", runner_meets_at(e->runner), 0}};
    const struct shape shape = shape_matrix(1, 2);
    struct tensor own, all = TENSOR_INIT;
    const int64_t number = strtoll(strchr(cluster_options.task, ':') + 1, NULL, 10);
    *here = true;
    if (tensor_alloc(&own, INT64, &shape, err))
        return err->code;
    memcpy(own.data, (const int64_t[]){number, tool_signal() != 0}, tensor_bytes(&own));
    if (!worker_exchange(e->runner->worker, call, &own, last ? here : NULL, &all, err) && *here) {
        e->n_workers = all.shape.dims[0];
        for (int64_t k = 0; k < e->n_workers; k++) {
            e->place = tensor_get_int64(&all, 2 * k) == number ? k : e->place;
            *here &= !tensor_get_int64(&all, 2 * k + 1);
        }
    }
    tensor_release(&own);
    tensor_release(&all);
    return err->code;
}

/* Who saves has read how the rules stand, for all. */
static int share_history(struct evaluation *e, uint64_t which, struct str *lines, struct error *err)
{
    const struct collective_call call = {.key = {"=evaluations", e->training->step, which}};
    const struct shape shape = shape_vector((int64_t)lines->n);
    struct tensor own, all = TENSOR_INIT;
    if (tensor_alloc(&own, UINT8, &shape, err))
        return err->code;
    memcpy(own.data, str_text(lines), lines->n);
    str_clear(lines);
    if (!worker_exchange(e->runner->worker, call, &own, NULL, &all, err))
        str_append_bytes(lines, all.data, tensor_bytes(&all));
    tensor_release(&own);
    tensor_release(&all);
    return err->code;
}

/* ---- an evaluation ---- */

/* Tells checkpoints, and whoever looks on, what was measured. */
static void publish(struct evaluation *e)
{
    struct str line = STR_INIT;
    bool tells = !e->place;
    double value;
    vec_each(mean, &e->means) {
        mean->value = mean->n ? mean->sum / (double)mean->n : NAN;
        mean->sum = 0;
        mean->n = 0;
        str_printf(&line, "%s%s %.6g", line.n ? ", " : "", mean->name, mean->value);
    }
    for (size_t i = 0; i < e->scores.items.n; i++) {
        const char *name = e->scores.items.items[i].name;
        if (!score_number(&e->scores.items.items[i], &value))
            continue;
        str_printf(&line, "%s%s %.6g", line.n ? ", " : "", name, value);
        autosave_set_scalar(e->saving->autosave, name, value, false);
        if (e->stop.metric && !strcmp(name, e->stop.metric))
            stop_rule_apply(&e->stop, value);
        if (e->reduced && !strcmp(name, e->reduce.metric))
            stop_rule_apply(&e->reduce, value);
    }
    if (tells)
        tool_say(e->tool, "step %" PRId64 ": %s", e->last, str_text(&line));
    str_release(&line);
}

/* Lowers the learning rate when its rule says so; the rule then waits anew. */
static int reduce_rate(struct evaluation *e, struct error *err)
{
    struct saved_variable saved = {.node = e->reduced}, reduced;
    struct variable_store *variables = e->saving->variables;
    if (!e->reduce.stops || variable_take(variables, &saved, err) ||
        saved.value.type == DTYPE_INVALID)
        return err->code;
    reduced = saved;
    if (!tensor_alloc(&reduced.value, saved.value.type, &saved.value.shape, err)) {
        for (int64_t i = 0; i < tensor_count(&saved.value); i++)
            tensor_set_float64(
                &reduced.value, i,
                fmax(e->reduce.factor * tensor_get_float64(&saved.value, i), e->reduce.least));
        variable_put(variables, &reduced, e->saving->device, err);
        if (!e->place)
            tool_say(e->tool, "step %" PRId64 ": %s is %.6g now", e->last, e->reduced->name,
                     tensor_get_float64(&reduced.value, 0));
    }
    tensor_release(&reduced.value);
    tensor_release(&saved.value);
    e->reduce.stops = false;
    e->reduce.waits = 0;
    return err->code;
}

/* Returns the file that a worker keeps beside the checkpoints that shards make. NULL: it saves
 * itself. */
static char *history_path(const struct evaluation *e)
{
    const struct job job = {.folder = (char *)(uintptr_t)cluster_options.job};
    return cluster_options.job && e->training->version
               ? job_path(&job, cluster_options.task, ".evaluations")
               : NULL;
}

/* Saves how the rules stand, for a process that goes on from here. */
static int save_history(struct evaluation *e, struct error *err)
{
    struct str line = STR_INIT;
    char *path = history_path(e);
    stop_rule_print(&e->stop, e->last, &line);
    autosave_set_blob(e->saving->autosave, EVALUATION_BLOB, line.data, line.n);
    FILE *file = path ? fopen(path, "ae") : NULL;
    if (path && (!file || (fputs(line.data, file) < 0) | fclose(file)))
        error_set_errno(err, ERR_IO, "%s", path);
    str_clear(&line);
    stop_rule_print(&e->reduce, e->last, &line);
    if (e->reduced)
        autosave_set_blob(e->saving->autosave, REDUCE_BLOB, line.data, line.n);
    mem_free(path);
    str_release(&line);
    return err->code;
}

/* Returns the last step that the rule was applied to, as of `path` or the checkpoint; -1: none. */
static int64_t read_rule(struct evaluation *e, struct stop_rule *rule, const char *blob,
                         const char *path, struct error *err)
{
    struct str lines = STR_INIT;
    if (path && !access(path, F_OK))
        file_read(path, HISTORY_BYTES, &lines, err);
    else if (!path && runner_saves(e->runner))
        saving_read_blob(e->saving, blob, &lines, err);
    if (!err->code && evaluation_options.split)
        share_history(e, rule == &e->reduce, &lines, err);
    int64_t last = stop_rule_go_on(rule, str_text(&lines), e->training->step);
    str_release(&lines);
    return last;
}

static int read_history(struct evaluation *e, struct error *err)
{
    char *path = history_path(e);
    int64_t last = read_rule(e, &e->stop, EVALUATION_BLOB, path, err);
    e->last = last < 0 ? e->training->step : last;
    if (!err->code && e->reduced)
        read_rule(e, &e->reduce, REDUCE_BLOB, NULL, err);
    mem_free(path);
    return err->code;
}

/* `last`: training is over, for this worker at least. */
static int evaluate(struct evaluation *e, bool last, struct error *err)
{
    const struct scores_gather gather = {gather_rows, e};
    bool whole = true;
    if (evaluation_options.split && (meet_evaluators(e, last, &whole, err) || !whole))
        return err->code;
    e->driver.session = e->training->session;
    e->driver.device = e->training->device;
    e->driver.at_hand.seed = e->training->at_hand.seed;
    e->driver.run = e->training->run;
    e->driver.run_context = e->training->run_context;
    if (run_feed(e, err))
        return err->code;
    whole = !tool_signal();
    if (evaluation_options.split && scores_gather(&e->scores, &gather, &whole, err))
        return err->code;
    if (!whole || scores_end(&e->scores, err))
        return err->code;
    e->last = e->scored = e->training->step;
    e->last_time = time_now();
    publish(e);
    /* Between the records of the steps; the shards of a job keep what was measured of their
     * variables. */
    const struct driver *training = e->training;
    int64_t version = training->version ? training->version(training->run_context) : -1;
    if (!e->place && training->writer &&
        (scores_write(&e->scores, training->writer, e->last, version, err) ||
         stream_flush(training->writer, err)))
        return err->code;
    return reduce_rate(e, err) ? err->code : save_history(e, err);
}

/* ---- while another entry trains ---- */

static void add_to_mean(void *context, const char *name, const struct tensor *value,
                        const struct request_view *view)
{
    struct evaluation *e = context;
    if (e->fetched)
        e->fetched(e->fetched_context, name, value, view);
    if (tensor_count(value) != 1 || !(DTYPE_BIT(value->type) & DTYPES_REAL))
        return;
    size_t i = vec_find(&e->means, name);
    if (i == e->means.n) {
        struct training_mean mean = {.name = name, .value = NAN};
        vec_push(&e->means, mean);
    }
    e->means.items[i].sum += tensor_get_float64(value, 0);
    e->means.items[i].n++;
}

bool evaluation_is_here(const struct evaluation *e)
{
    return evaluation_options.split || runner_saves(e->runner);
}

int evaluation_begin(struct evaluation *e, struct error *err)
{
    if (!evaluation_options.entry)
        return 0;
    bool together = runner_goes_together(e->runner);
    if (evaluation_options.split && !together)
        return error_set(err, ERR_USAGE,
                         "%s: --eval-split: the workers of this graph do not go on "
                         "together",
                         e->driver.name);
    bool has_all = runner_has_all_variables(e->runner);
    if (e->reduced && (!has_all || (together && !evaluation_options.split)))
        return error_set(err, ERR_USAGE,
                         "%s: --reduce: not all workers would change '%s' of their own: "
                         "it wants --eval-split",
                         e->driver.name, e->reduced->name);
    e->started = e->last_time = time_now();
    e->scored = -1;
    e->n_workers = 1;
    e->fetched = e->training->fetched;
    e->fetched_context = e->training->fetched_context;
    e->training->fetched = add_to_mean;
    e->training->fetched_context = e;
    return read_history(e, err);
}

int evaluation_step(struct evaluation *e, bool is_settled, bool *stops, struct error *err)
{
    struct feed_position position;
    struct record *record = &e->training->feeds.record;
    if (!evaluation_options.entry)
        return 0;
    if (e->training->feed_reader && record_get_position(record, &record->arena, &position))
        e->epochs = position.epoch;
    for (size_t i = 0; e->scored == e->training->step - 1 && i < e->names.n; i++)
        autosave_drop_scalar(e->saving->autosave,
                             e->names.items[i]); /* it was of the step before */
    if (is_settled &&
        interval_is_over(&e->every, runner_meets_at(e->runner), e->last, e->last_time) &&
        evaluate(e, false, err))
        return err->code;
    *stops = e->stop.stops;
    return 0;
}

int evaluation_end(struct evaluation *e, bool saves, struct error *err)
{
    bool declines = tool_signal() && !evaluation_options.split;
    if (!evaluation_options.entry || declines || e->scored == e->training->step)
        return 0;
    int code = evaluate(e, true, err);
    return code || tool_signal() || !saves ? code : saving_step(e->saving, true, err);
}

void evaluation_decline(struct evaluation *e)
{
    struct error ignored = ERROR_INIT;
    bool here;
    if (evaluation_options.entry && evaluation_options.split && e->scored != e->training->step)
        meet_evaluators(e, true, &here, &ignored);
}

/* ---- what has come of it ---- */

static void add_cell(struct str *line, double value)
{
    char text[32] = "-";
    if (!isnan(value))
        snprintf(text, sizeof text, "%.6g", value);
    str_printf(line, "  %11s", text);
}

/* A row of the table: what was fetched in training, what was evaluated, and that of the best. */
static void say_row(struct evaluation *e, const char *name, double train, const struct score *score,
                    const struct saved_best *best)
{
    struct str line = STR_INIT;
    double value = NAN, kept = NAN;
    if (score)
        score_number(score, &value);
    size_t i = score ? names_find(best->scalars, best->n, score->name) : best->n;
    if (i < best->n)
        kept = best->scalars[i].value;
    str_printf(&line, "  %-16s", name);
    add_cell(&line, train);
    add_cell(&line, value);
    if (best->step >= 0)
        add_cell(&line, kept);
    tool_say(e->tool, "%s", str_text(&line));
    str_release(&line);
}

static void say_rows(struct evaluation *e, const struct saved_best *best)
{
    double value;
    size_t prefix = strlen(evaluation_options.entry) + 1;
    tool_say(e->tool, "  %-16s  %11s  %11s%s", "", "train", evaluation_options.entry,
             best->step >= 0 ? "         best" : "");
    vec_each(mean, &e->means) {
        const struct score *same = NULL;
        for (size_t k = 0; k < e->scores.items.n; k++)
            if (!strcmp(e->scores.items.items[k].name + prefix, mean->name))
                same = &e->scores.items.items[k];
        say_row(e, mean->name, mean->value, same, best);
    }
    vec_each(score, &e->scores.items) {
        if (score_number(score, &value) && vec_find(&e->means, score->name + prefix) == e->means.n)
            say_row(e, score->name + prefix, NAN, score, best);
    }
}

void evaluation_report(struct evaluation *e)
{
    struct str line = STR_INIT;
    struct saved_best best;
    if (!evaluation_options.entry || e->scored < 0 || tool_signal() || e->place)
        return;
    str_printf(&line, "%s: step %" PRId64, e->driver.name, e->training->step);
    if (e->epochs)
        str_printf(&line, ", epoch %" PRId64, e->epochs);
    str_printf(&line, ", after %.3g s", time_now() - e->started);
    if (e->stop.stops)
        str_printf(&line, "; stopped, as %s is no better since %" PRId64 " evaluations",
                   e->stop.metric, e->stop.waits);
    tool_say(e->tool, "%s", str_text(&line));
    saving_find_best(e->saving, &best);
    say_rows(e, &best);
    if (best.step >= 0)
        tool_say(e->tool, "the best is of step %" PRId64 ", %s@best", best.step, best.store);
    if (e->saving->options->path && !cluster_options.task)
        tool_say(e->tool, "tf-exec -g %s --run %s --restore %s%s",
                 request_options.graph ? request_options.graph : "GRAPH",
                 graph_entry(e->driver.graph, "predict") ? "predict" : evaluation_options.entry,
                 best.step >= 0 ? best.store : e->saving->options->path,
                 best.step >= 0 ? "@best" : "");
    str_release(&line);
}

void evaluation_close(struct evaluation *e)
{
    scores_release(&e->scores);
    driver_release(&e->driver);
    vec_release(&e->names);
    vec_release(&e->means);
    arena_release(&e->arena);
}
