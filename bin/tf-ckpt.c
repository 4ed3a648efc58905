/* SPDX-License-Identifier: Apache-2.0
 *
 * tf-ckpt: maintains stores of checkpoints, and inspects them. Made for cron: silent when all is
 * well.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/time.h"
#include "bin/ps_value.h"
#include "checkpoint/command/command.h"
#include "checkpoint/formats/bundle.h"
#include "checkpoint/formats/export.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/tool.h"
#include "ps/backup.h"

#define REPLY_SECONDS 30.0 /* of a shard */
#define STOP_SECONDS 0.01  /* from a signal until waits end */
#define LATE_SECONDS 0.5   /* for a verb that checks --max-runtime itself: its message is better */

struct ckpt_work {
    struct tool *tool;
    struct command command;
    struct progress progress;
    double began;
};

static atomic_bool is_stopped;
static struct ckpt_work work = {
    .command = {.cancelled = &is_stopped, .step = -1, .metrics = {.newest = -1, .problems = -1}}};
static double max_runtime; /* seconds; 0: unlimited */
static const char *job_folder, *key_file, *metrics_path, *data_text;

static const struct option_row rows[] = {
    {0, "json", OPTION_FLAG, &work.command.json, NULL, "an object a line"},
    {0, "all", OPTION_FLAG, &work.command.all, NULL,
     "also what a job keeps beside its variables, clocks and aggregators"},
    {0, "data", OPTION_OPTIONAL, &data_text, "SHARE",
     "read the data, too; --data=5% another twentieth of it each time"},
    {0, "keep-last", OPTION_NATURAL, &work.command.policy.last, "N", "keep the last N"},
    {0, "keep-hourly", OPTION_NATURAL, &work.command.policy.hourly, "N",
     "the last of each of N hours that have any"},
    {0, "keep-daily", OPTION_NATURAL, &work.command.policy.daily, "N", "of N days"},
    {0, "keep-weekly", OPTION_NATURAL, &work.command.policy.weekly, "N", "of N weeks"},
    {0, "keep-monthly", OPTION_NATURAL, &work.command.policy.monthly, "N", "of N months"},
    {0, "keep-best", OPTION_NATURAL, &work.command.policy.best, "N", "the N best, by a metric"},
    {0, "by", OPTION_TEXT, &work.command.by, "METRIC",
     "for --keep-best: a scalar of list; METRIC:min or METRIC:max, or by the name (loss, "
     "accuracy)"},
    {0, "keep-every", OPTION_NATURAL, &work.command.policy.every, "STEPS",
     "steps that are multiples of it"},
    {'n', "dry-run", OPTION_FLAG, &work.command.dry_run, NULL, "say what would be done"},
    {0, "step", OPTION_NATURAL, &work.command.step, "N",
     "the step that it is of (what the file says: of .ckpt its step, else global_step or\n"
     "the number behind TensorFlow's name; or 0)"},
    {0, "run-name", OPTION_TEXT, &work.command.run_name, "NAME", "of the run that it is to be of"},
    {0, "replace", OPTION_FLAG, &work.command.replace, NULL,
     "what is there of the same step, of another run or with other values"},
    {0, "job", OPTION_TEXT, &job_folder, "DIR", "the directory of the running job"},
    {0, "key-file", OPTION_TEXT, &key_file, "FILE", "the key of its links (the job's)"},
    {0, "lock-wait", OPTION_SECONDS, &work.command.lock_wait, "TIME",
     "wait for another writer, 60s (else exit 75 at once)"},
    {0, "max-runtime", OPTION_SECONDS, &max_runtime, "TIME",
     "stop after 10m, with exit 75, whatever it does or waits for"},
    {0, "metrics", OPTION_TEXT, &metrics_path, "FILE", "write figures of the run for Prometheus"},
    TOOL_OUTPUT_ROW,
    TOOL_COMMON_ROWS,
    {0}};

static const struct option_verb verbs[] = {
#define VERB(name, operands, help, options, ...) {name, operands, help, options},
#include "bin/ckpt_verbs.def"
#undef VERB
    {NULL, NULL, NULL, NULL}};

static const struct option_need needs[] = {{"by", "keep-best"}, {"key-file", "job"}, {NULL, NULL}};

static const struct option_table table = {
    .tool = "tf-ckpt",
    .summary = "keep checkpoints",
    .operands = "VERB NAME...",
    .description =
        "A NAME is a store (its newest complete checkpoint), STORE@STEP, or a file x.ckpt.\n"
        "\n"
        "Neither copy nor import replaces a checkpoint of another run, or with other values, "
        "without --replace.\n"
        "\n"
        "A job may save while these run; of those that write, one works at a time (exit 75: "
        "locked).",
    .examples = "tf-ckpt list ckpt\n"
                "tf-ckpt save backup --job run --lock-wait 60s --max-runtime 10m\n"
                "tf-ckpt diff ckpt@400 ckpt@460\n"
                "tf-ckpt forget ckpt --keep-last 8 --keep-daily 14 --keep-best 3 --by accuracy\n"
                "tf-ckpt prune ckpt\n"
                "tf-ckpt verify ckpt --data=5% --metrics ckpt.prom\n"
                "tf-ckpt export ckpt@460 digits.safetensors",
    .rows = rows,
    .verbs = verbs,
    .needs = needs,
    .operands_max = -1,
};

static bool watch(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    work.progress.total = (int64_t)total;
    progress_update(&work.progress, (int64_t)done, "");
    bool is_over = max_runtime > 0 && time_now() - work.began > max_runtime;
    return !tool_signal() && !is_over;
}

static void say(void *context, const char *line)
{
    struct tool *tool = context;
    bool quiet = tool->quiet;
    tool->quiet = false; /* -q does not silence reports of damage */
    tool_say(tool, "%s", line);
    tool->quiet = quiet;
}

/* ---- verbs that write files ---- */

static int ckpt_cat(struct command *c, struct error *err)
{
    struct source source;
    struct tensor value;
    const char *name = c->operands[1];
    bool npy = tool_output && str_ends(tool_output, ".npy");
    if (!npy && tool_open_writer(work.tool, 1, err)) /* in which a failure is told */
        return err->code;
    if (command_open(c, c->operands[0], &source, err))
        return err->code;
    int i = source_find_whole(&source, name, err);
    if (i >= 0 && !source_read(&source, (size_t)i, &value, err)) {
        if (ps_write_value(work.tool, name, &value, err) == ERR_DATA) /* .npy lacks its type */
            error_prefix(err, "%s: '%s': ", source.name, name);
        tensor_release(&value);
    }
    source_close(&source);
    return err->code;
}

/* Writes an export. A bundle's data gets its name before the index that refers to it, but after all
 * of that was written. */
static int write_file(struct source *source, const char *path, struct error *err)
{
    struct arena arena = ARENA_INIT;
    struct output *output = NULL, *data_output = NULL;
    struct export_files files = {.name = path};
    enum export_form form;
    if (export_form_find(path, &form, err))
        return err->code;
    if (form == EXPORT_NPZ || form == EXPORT_SAFETENSORS)
        source_drop_texts(source, tool_say_line, work.tool);
    const char *data_path = form == EXPORT_BUNDLE ? bundle_data_path(path, 0, 1, &arena) : NULL;
    if (!output_open_stream(path, &output, &files.file, err) &&
        !(data_path && output_open_stream(data_path, &data_output, &files.data, err)) &&
        !source_export(source, form, &files, tool_provenance(work.tool), err) && fflush(files.file))
        error_set_errno(err, ERR_IO, "%s", path);
    if (!err->code && !output_commit(data_output, err))
        output_commit(output, err);
    output_discard(data_output);
    output_discard(output);
    arena_release(&arena);
    return err->code;
}

static int ckpt_export(struct command *c, struct error *err)
{
    struct source source;
    const char *path = c->operands[1];
    enum export_form form;
    if (export_form_find(path, &form, err) || command_open(c, c->operands[0], &source, err))
        return err->code;
    /* Files for other programs need whole variables: missing slices are an error. */
    if (form == EXPORT_RECORDS || !source_join_slices(&source, err))
        write_file(&source, path, err);
    source_close(&source);
    return err->code;
}

static int ckpt_salvage(struct command *c, struct error *err)
{
    struct source source;
    size_t lost;
    if (source_salvage(c->operands[0], &source, &lost, c->say, c->context, err))
        return err->code;
    size_t saved = source.tensors.n;
    if (!write_file(&source, c->operands[1], err) && lost)
        error_set(err, ERR_NEGATIVE, "%s: %zu of %zu tensors are intact, and in %s", source.name,
                  saved, saved + lost, c->operands[1]);
    source_close(&source);
    return err->code;
}

/* ---- the verb that asks the shards of a running job ---- */

/* Adds to the message of a failure which checkpoint is still the newest. */
static void say_newest(const char *path, struct error *err)
{
    struct source newest;
    struct error ignored = ERROR_INIT;
    if (!source_open(path, &newest, &ignored)) {
        error_append(err, "; newest stays %s", newest.name);
        source_close(&newest);
    }
}

static int save_job(struct command *c, struct store *store, double seconds, struct error *err)
{
    struct str fetches = STR_INIT;
    struct client client = {.of_values = true, .cancelled = c->cancelled};
    str_printf(&fetches, "%s/worker-0.rec", job_folder); /* if its host is this host */
    const struct member_options options = {
        .job_folder = job_folder, .key_file = key_file, .producer = "tf-ckpt", .timeout = seconds};
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

static int ckpt_save(struct command *c, struct error *err)
{
    bool is_short = max_runtime > 0 && max_runtime < REPLY_SECONDS;
    struct store *store;
    if (!job_folder)
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

/* ---- the table ---- */

/* What each verb runs, in the order of `verbs`: both come from one list. */
static const struct ckpt_verb {
    int store;        /* which operand is a whole store; 0: none */
    const char *unit; /* that progress is counted in */
    int (*run)(struct command *command, struct error *err);
} works[] = {
#define VERB(name, operands, help, options, ...) {__VA_ARGS__},
#include "bin/ckpt_verbs.def"
#undef VERB
};

static int read_share(double *fraction, struct error *err)
{
    size_t n = data_text ? strlen(data_text) : 0;
    char number[32];
    *fraction = !data_text ? 0 : 1;
    if (!n)
        return 0;
    bool percent = data_text[n - 1] == '%';
    snprintf(number, sizeof number, "%.*s", (int)(n - percent), data_text);
    if (!str_to_float64(number, fraction) || !(*fraction > 0) || *fraction > (percent ? 100 : 1))
        return error_set(err, ERR_USAGE, "--data=%s is no share; try --data=5%%", data_text);
    *fraction /= percent ? 100 : 1;
    return 0;
}

/* ---- running ---- */

static void print_figures(struct text_metrics metrics, int status, struct str *text)
{
    metrics.status = status;
    metrics.time = (int64_t)(time_wall() * 1e6);
    metrics.seconds = time_now() - work.began;
    text_metrics(text, &metrics);
}

static int write_metrics(int status, struct error *err)
{
    struct str text = STR_INIT;
    struct output *output;
    FILE *out;
    print_figures(work.command.metrics, status, &text);
    if (!output_open_stream(metrics_path, &output, &out, err)) {
        fputs(text.data, out);
        output_commit(output, err);
    }
    str_release(&text);
    return err->code;
}

/* Ends the process wherever it is when --max-runtime is over: in a long read, or waiting for a
 * lock, a disk, or the other end of a pipe. Calls no function that may wait for a lock which the
 * stalled thread holds. To end here is safe: a store is whole whenever its writer ends, and only
 * complete files have names. */
static void end_in_time(void *context)
{
    const struct text_metrics *m = &work.command.metrics;
    (void)context;
    output_unlink_all();
    if (metrics_path) {
        struct stat old;
        struct str text = STR_INIT, temporary = STR_INIT;
        print_figures(
            (struct text_metrics){.verb = m->verb, .store = m->store, .newest = -1, .problems = -1},
            EX_TEMPFAIL, &text);
        /* The figures go to a temporary file, which is renamed once it is complete; what is no
         * regular file is written directly. */
        bool is_special = !stat(metrics_path, &old) && !S_ISREG(old.st_mode);
        str_printf(&temporary, "%s.%ld.tmp", metrics_path, (long)getpid());
        int fd = is_special ? open(metrics_path, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
                            : open(temporary.data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        bool written = fd >= 0 && write(fd, text.data, text.n) == (ssize_t)text.n;
        written = fd >= 0 && !close(fd) && written;
        if (fd >= 0 && !is_special && (!written || rename(temporary.data, metrics_path)))
            unlink(temporary.data);
    }
    fprintf(stderr, "tf-ckpt: %s: %s: stopped, as --max-runtime is over\n", m->store, m->verb);
    _exit(EX_TEMPFAIL);
}

static int run(struct tool *tool, int n, char **operands, struct error *err)
{
    static char owner[64];
    struct command *c = &work.command;
    int which = options_verb(&table, n, operands, err);
    if (which < 0)
        return err->code;
    const struct ckpt_verb *verb = &works[which];
    /* A verb for a whole store does not accept one of its checkpoints. */
    struct arena arena = ARENA_INIT;
    const char *path = "", *name = verb->store ? operands[verb->store] : "";
    int64_t at = CHECKPOINT_NEWEST;
    struct error none = ERROR_INIT; /* a name with an @ is not there: init may make it */
    for (int i = 1; i < n && !err->code; i++)
        if (!*operands[i])
            error_set(err, ERR_USAGE, "usage: tf-ckpt %s %s", operands[0],
                      verbs[verb - works].operands);
    if (!err->code)
        source_split(name, &arena, &path, &at, &none);
    if (none.code == ERR_NOINPUT && strcmp(operands[0], "init") != 0)
        *err = none;
    if (!err->code && !none.code && at != CHECKPOINT_NEWEST && store_exists(path))
        error_set(err, ERR_USAGE, "%s: %s takes a store, %s, not one of its checkpoints", name,
                  operands[0], path);
    arena_release(&arena);
    if (err->code || read_share(&c->fraction, err))
        return err->code;
    snprintf(owner, sizeof owner, "tf-ckpt %s", operands[0]);
    work.tool = tool;
    work.began = time_now();
    c->operands = operands + 1;
    c->n_operands = n - 1;
    c->verbose = tool->verbose > 0;
    if (max_runtime > 0 && !(c->lock_wait >= 0 && c->lock_wait < max_runtime))
        c->lock_wait = max_runtime;
    c->owner = owner;
    c->producer = tool_provenance(tool);
    c->watch.progress = watch;
    c->say = say;
    c->context = tool;
    c->metrics.verb = operands[0];
    c->metrics.store = operands[n - 1];
    tool_catch_signals();
    if (tool_cancel_after(STOP_SECONDS, &is_stopped, err))
        return err->code;
    tool_end_late(true); /* a store is whole whenever its writer ends */
    tool_wait_silently(tool);
    progress_start(&work.progress, tool_shows_progress(tool), stderr, verb->unit, 0, -1);
    /* save needs no limit: each of its requests to shards has a deadline. */
    if (max_runtime <= 0 || verb->run == ckpt_save ||
        !tool_limit_elapsed(max_runtime + LATE_SECONDS, end_in_time, NULL, err)) {
        verb->run(c, err);
        tool_end_limit();
    }
    progress_clear();
    if (err->code == ERR_CANCELLED && !tool_signal())
        err->code = ERR_RETRY; /* --max-runtime is over */
    /* Print the verb's output, and write the figures of --metrics, also after a failure. A failure
     * to do so is reported unless the verb failed. */
    struct error late = ERROR_INIT;
    int code = err->code;
    if (!code || code == ERR_NEGATIVE) {
        FILE *out;
        if (c->out.n && !tool_open_text(tool, &out, &late))
            fwrite(c->out.data, 1, c->out.n, out);
    }
    if (metrics_path && !late.code)
        write_metrics(code, &late);
    if (late.code && (!code || code == ERR_NEGATIVE))
        *err = late;
    command_release(c);
    return err->code;
}

int main(int argc, char **argv)
{
    return tool_main(&table, run, argc, argv);
}
