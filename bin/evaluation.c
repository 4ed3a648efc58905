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

#include "base/time.h"
#include "bin/cluster_options.h"
#include "bin/exec_request.h"
#include "checkpoint/policy/retain.h"

#define STOP_BLOB "stop" /* of a checkpoint: how the rule stood */

struct evaluation_options evaluation_options;

/* ---- what is asked for ---- */

static int bad_rule(const char *why, struct error *err)
{
    return error_set(err, ERR_USAGE, "--stop-when %s: %s", evaluation_options.stop, why);
}

static int read_rule(struct evaluation *e, struct error *err)
{
    struct stop_rule *rule = &e->stop;
    char *text = arena_strdup(&e->arena, evaluation_options.stop), *rest = text;
    const char *metric = strsep(&rest, ",");
    *rule = (struct stop_rule){.patience = 1, .best = NAN};
    rule->metric = retain_metric(metric, &e->arena, &rule->is_low);
    for (const char *part; (part = strsep(&rest, ","));) {
        if (!strncmp(part, "patience=", 9) && str_to_int64(part + 9, &rule->patience) &&
            rule->patience > 0)
            continue;
        if (!strncmp(part, "min-delta=", 10) && str_to_float64(part + 10, &rule->min_delta) &&
            rule->min_delta >= 0)
            continue;
        return bad_rule("it is METRIC,patience=EVALUATIONS,min-delta=VALUE", err);
    }
    for (size_t i = 0; i < e->names.n; i++)
        if (!strcmp(e->names.items[i], rule->metric))
            return 0;
    struct str names = STR_INIT;
    for (size_t i = 0; i < e->names.n; i++)
        str_printf(&names, "%s%s", i ? ", " : "it is not evaluated; there are ", e->names.items[i]);
    bad_rule(names.n ? str_text(&names) : "nothing is evaluated", err);
    str_release(&names);
    return err->code;
}

int evaluation_check(struct evaluation *e, struct error *err)
{
    const char *entry = evaluation_options.entry;
    struct driver *driver = &e->driver;
    if (!entry)
        return 0;
    if (cluster_options.task)
        return error_set(err, ERR_USAGE, "--eval is for a process alone, without --task");
    if (evaluation_options.every &&
        autosave_parse_interval(evaluation_options.every, &e->every_steps, &e->every_seconds, err))
        return error_prefix(err, "--eval-every: ");
    driver_init(driver, e->training->graph, e->training->name);
    driver->option = "--eval";
    driver->what = entry;
    if (request_run(&driver->request, entry, err) || driver_ready(driver, err))
        return error_prefix(err, "%s: --eval: ", driver->name);
    if (driver->request.targets.n)
        return error_set(err, ERR_USAGE, "%s: --eval %s: it runs ops, and does not only fetch",
                         driver->name, entry);
    if (scores_begin(&e->scores, driver, err))
        return err->code;
    for (size_t i = 0; i < e->scores.items.n; i++) {
        const struct score *score = &e->scores.items.items[i];
        const struct node *node = graph_node(driver->graph, score->edge.node);
        const char *name = arena_printf(&e->arena, "%s/%s", entry, score->name);
        if (node->outputs[score->edge.slot].shape.rank <= 0)
            vec_push(&e->names, name);
    }
    e->saving->measured = e->names.items;
    e->saving->n_measured = e->names.n;
    return evaluation_options.stop ? read_rule(e, err) : 0;
}

/* ---- what is fed ---- */

/* A file that is no program is read; else it is a command. */
static bool is_command(const char *feed)
{
    return access(feed, R_OK) ? strpbrk(feed, " \t") != NULL : !access(feed, X_OK);
}

static int run_steps(struct evaluation *e, struct error *err)
{
    bool more = true;
    e->driver.step = 0;
    while (!tool_signal() && !driver_next_feeds(&e->driver, &more, err) && more &&
           !driver_run_step(&e->driver, err) && e->driver.feed_reader)
        ;
    return err->code;
}

static int run_command(struct evaluation *e, const char *command, struct error *err)
{
    fflush(NULL);
    FILE *pipe = popen(command, "r");
    if (!pipe)
        return error_set_errno(err, ERR_OS, "--eval-feed '%s'", command);
    e->driver.feed_reader = stream_reader_new(fileno(pipe), "--eval-feed");
    run_steps(e, err);
    stream_reader_free(e->driver.feed_reader);
    int status = pclose(pipe);
    int ended = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    bool was_left = err->code && ended == 128 + SIGPIPE; /* as what it wrote was refused */
    if (ended && !was_left && !tool_signal())
        return error_set(err, ERR_DATA, "--eval-feed '%s' ended with %d", command, ended);
    return err->code;
}

static int run_feed(struct evaluation *e, struct error *err)
{
    const char *feed = evaluation_options.feed;
    e->driver.feed_reader = NULL;
    if (!feed)
        return run_steps(e, err);
    if (is_command(feed))
        return run_command(e, feed, err);
    if (tool_open_reader(e->tool, feed, &e->driver.feed_reader, err))
        return error_prefix(err, "--eval-feed: ");
    run_steps(e, err);
    tool_close_reader(e->driver.feed_reader);
    return err->code;
}

/* ---- an evaluation ---- */

static bool is_better(bool is_low, double value, double than)
{
    return !isnan(value) && (isnan(than) || (is_low ? value < than : value > than));
}

static void apply_rule(struct stop_rule *rule, const char *name, double value)
{
    if (!rule->metric || strcmp(name, rule->metric) != 0)
        return;
    double delta = rule->is_low ? -rule->min_delta : rule->min_delta;
    bool better = is_better(rule->is_low, value, rule->best + delta);
    rule->waits = better ? 0 : rule->waits + 1;
    rule->best = better ? value : rule->best;
    rule->stops = rule->waits >= rule->patience;
}

/* Tells checkpoints, and whoever looks on, what was measured. */
static void tell(struct evaluation *e)
{
    struct str line = STR_INIT, name = STR_INIT;
    double value;
    for (size_t i = 0; i < e->means.n; i++) {
        struct training_mean *mean = &e->means.items[i];
        mean->value = mean->n ? mean->sum / (double)mean->n : NAN;
        mean->sum = 0;
        mean->n = 0;
        str_printf(&line, "%s%s %.6g", line.n ? ", " : "", mean->name, mean->value);
    }
    for (size_t i = 0; i < e->scores.items.n; i++) {
        if (!score_number(&e->scores.items.items[i], &value))
            continue;
        str_clear(&name);
        str_printf(&name, "%s/%s", evaluation_options.entry, e->scores.items.items[i].name);
        str_printf(&line, "%s%s %.6g", line.n ? ", " : "", str_text(&name), value);
        saving_measure(e->saving, str_text(&name), value);
        apply_rule(&e->stop, str_text(&name), value);
    }
    tool_say(e->tool, "step %" PRId64 ": %s", e->last, str_text(&line));
    str_clear(&line);
    if (e->stop.metric) {
        str_printf(&line, "%" PRId64 " %.17g", e->stop.waits, e->stop.best);
        saving_set_blob(e->saving, STOP_BLOB, line.data, line.n);
    }
    str_release(&line);
    str_release(&name);
}

static int evaluate(struct evaluation *e, struct error *err)
{
    e->driver.session = e->training->session;
    e->driver.device = e->training->device;
    e->driver.seed = e->training->seed;
    if (run_feed(e, err) || tool_signal() || scores_end(&e->scores, err))
        return err->code;
    e->last = e->training->step;
    e->last_time = time_now();
    tell(e);
    return 0;
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
    size_t i = 0;
    while (i < e->means.n && strcmp(e->means.items[i].name, name) != 0)
        i++;
    if (i == e->means.n) {
        struct training_mean mean = {.name = name, .value = NAN};
        vec_push(&e->means, mean);
    }
    e->means.items[i].sum += tensor_get_float64(value, 0);
    e->means.items[i].n++;
}

int evaluation_begin(struct evaluation *e, struct error *err)
{
    struct str text = STR_INIT;
    if (!evaluation_options.entry)
        return 0;
    e->started = e->last_time = time_now();
    e->first = e->training->step;
    e->last = -1;
    e->fetched = e->training->fetched;
    e->fetched_context = e->training->fetched_context;
    e->training->fetched = add_to_mean;
    e->training->fetched_context = e;
    if (e->stop.metric && !saving_read_blob(e->saving, STOP_BLOB, &text, err) && text.n) {
        char *end;
        e->stop.waits = strtoll(str_text(&text), &end, 10);
        e->stop.best = strtod(end, NULL);
        e->stop.stops = e->stop.waits >= e->stop.patience;
    }
    str_release(&text);
    return err->code;
}

static bool is_due(const struct evaluation *e)
{
    return (e->every_steps > 0 && e->training->step % e->every_steps == 0) ||
           (e->every_seconds > 0 && time_now() - e->last_time >= e->every_seconds);
}

int evaluation_step(struct evaluation *e, bool *stops, struct error *err)
{
    struct feed_position position;
    if (!evaluation_options.entry)
        return 0;
    if (e->training->feed_reader &&
        record_get_position(&e->training->record, &e->training->record.arena, &position))
        e->epochs = position.epoch;
    for (size_t i = 0; e->last == e->training->step - 1 && i < e->names.n; i++)
        saving_unmeasure(e->saving, e->names.items[i]); /* it was of the step before */
    if (is_due(e) && evaluate(e, err))
        return err->code;
    *stops = e->stop.stops;
    return 0;
}

int evaluation_end(struct evaluation *e, struct error *err)
{
    if (!evaluation_options.entry || tool_signal() || e->last == e->training->step)
        return 0;
    int code = evaluate(e, err);
    return code || tool_signal() ? code : saving_step(e->saving, err);
}

/* ---- what has come of it ---- */

static void add_cell(struct str *line, bool is_there, double value)
{
    char text[32] = "-";
    if (is_there && !isnan(value))
        snprintf(text, sizeof text, "%.6g", value);
    str_printf(line, "  %11s", text);
}

/* A row of the table: what was fetched in training, what was evaluated, and that of the best. */
static void say_row(struct evaluation *e, const char *name, const struct saved_best *best)
{
    struct str line = STR_INIT;
    const struct training_mean *mean = NULL;
    const struct score *score = NULL;
    double value = NAN, kept = NAN;
    for (size_t i = 0; i < e->means.n; i++)
        mean = strcmp(e->means.items[i].name, name) ? mean : &e->means.items[i];
    for (size_t i = 0; i < e->scores.items.n; i++)
        score = strcmp(e->scores.items.items[i].name, name) ? score : &e->scores.items.items[i];
    const char *full = arena_printf(&e->arena, "%s/%s", evaluation_options.entry, name);
    for (size_t i = 0; i < best->n; i++)
        kept = strcmp(best->scalars[i].name, full) ? kept : best->scalars[i].value;
    str_printf(&line, "  %-16s", name);
    add_cell(&line, mean, mean ? mean->value : NAN);
    bool is_scored = score && score_number(score, &value);
    add_cell(&line, is_scored, value);
    if (best->step >= 0)
        add_cell(&line, true, kept);
    tool_say(e->tool, "%s", str_text(&line));
    str_release(&line);
}

static void say_rows(struct evaluation *e, const struct saved_best *best)
{
    double value;
    tool_say(e->tool, "  %-16s  %11s  %11s%s%s", "", "train", evaluation_options.entry,
             best->step >= 0 ? "         " : "", best->step >= 0 ? "best" : "");
    for (size_t i = 0; i < e->means.n; i++)
        say_row(e, e->means.items[i].name, best);
    for (size_t i = 0; i < e->scores.items.n; i++) {
        const struct score *score = &e->scores.items.items[i];
        bool is_new = score_number(score, &value);
        for (size_t k = 0; k < e->means.n; k++)
            is_new = is_new && strcmp(e->means.items[k].name, score->name) != 0;
        if (is_new)
            say_row(e, score->name, best);
    }
}

void evaluation_report(struct evaluation *e)
{
    struct str line = STR_INIT;
    struct saved_best best;
    if (!evaluation_options.entry || e->last < 0 || tool_signal())
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
    if (save_options.path)
        tool_say(e->tool, "tf-exec -g %s --run %s --restore %s%s",
                 request_options.graph ? request_options.graph : "GRAPH",
                 graph_entry(e->driver.graph, "predict") ? "predict" : evaluation_options.entry,
                 best.step >= 0 ? best.store : save_options.path, best.step >= 0 ? "@best" : "");
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
