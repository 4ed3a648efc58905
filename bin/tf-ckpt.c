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
#include "bin/ckpt_verbs.h"
#include "cli/output.h"

#define STOP_SECONDS 0.01 /* from a signal until waits end */
#define LATE_SECONDS 0.5  /* for a verb that checks --max-runtime itself: its message is better */

static atomic_bool is_stopped;
static bool json, dry_run, all, replace;
static double lock_wait, max_runtime;
static const char *metrics_path, *data_text, *by, *run_name;
static struct retain_policy policy;
static int64_t step = INT64_MIN; /* not given */

static const struct option_row rows[] = {
    {0, "json", OPTION_FLAG, &json, NULL, "an object a line"},
    {0, "all", OPTION_FLAG, &all, NULL,
     "also what a job keeps beside its variables, clocks and aggregators"},
    {0, "data", OPTION_OPTIONAL, &data_text, "SHARE",
     "read the data, too; --data=5% another twentieth of it each time"},
    {0, "keep-last", OPTION_NATURAL, &policy.last, "N", "keep the last N"},
    {0, "keep-hourly", OPTION_NATURAL, &policy.hourly, "N",
     "the last of each of N hours that have any"},
    {0, "keep-daily", OPTION_NATURAL, &policy.daily, "N", "of N days"},
    {0, "keep-weekly", OPTION_NATURAL, &policy.weekly, "N", "of N weeks"},
    {0, "keep-monthly", OPTION_NATURAL, &policy.monthly, "N", "of N months"},
    {0, "keep-best", OPTION_NATURAL, &policy.best, "N", "the N best, by a metric"},
    {0, "by", OPTION_TEXT, &by, "METRIC",
     "for --keep-best: a scalar of list; METRIC:min or METRIC:max, or by the name (loss, "
     "accuracy)"},
    {0, "keep-every", OPTION_NATURAL, &policy.every, "STEPS", "steps that are multiples of it"},
    {'n', "dry-run", OPTION_FLAG, &dry_run, NULL, "say what would be done"},
    {0, "step", OPTION_NATURAL, &step, "N",
     "the step that it is of (what the file says: of .ckpt its step, else global_step or\n"
     "the number behind TensorFlow's name; or 0)"},
    {0, "run-name", OPTION_TEXT, &run_name, "NAME", "of the run that it is to be of"},
    {0, "replace", OPTION_FLAG, &replace, NULL,
     "what is there of the same step, of another run or with other values"},
    {0, "job", OPTION_TEXT, &ckpt_job.folder, "DIR", "the directory of the running job"},
    {0, "key-file", OPTION_TEXT, &ckpt_job.key_file, "FILE", "the key of its links (the job's)"},
    {0, "lock-wait", OPTION_SECONDS, &lock_wait, "TIME",
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
    struct ckpt_work *job = context;
    job->progress.total = (int64_t)total;
    progress_update(&job->progress, (int64_t)done, "");
    bool is_over = job->max_runtime > 0 && time_now() - job->began > job->max_runtime;
    return !tool_signal() && !is_over;
}

static void say(void *context, const char *line)
{
    struct ckpt_work *job = context;
    bool quiet = job->tool->quiet;
    job->tool->quiet = false; /* -q does not silence reports of damage */
    tool_say(job->tool, "%s", line);
    job->tool->quiet = quiet;
}

/* ---- the table ---- */

/* What each verb runs, in the order of `verbs`: both come from one list. */
static const struct ckpt_verb {
    int store;        /* which operand is a whole store; 0: none */
    const char *unit; /* that progress is counted in */
    int (*command)(struct command *command, struct error *err); /* one of the two */
    int (*run)(struct ckpt_work *job, struct error *err);
} works[] = {
#define VERB(name, operands, help, options, ...) {__VA_ARGS__},
#include "bin/ckpt_verbs.def"
#undef VERB
};

/* ---- options ---- */

static int take_share(double *fraction, struct error *err)
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

static int fill_command(struct ckpt_work *job, int n, char **operands, struct error *err)
{
    static char owner[64];
    struct command *c = &job->command;
    snprintf(owner, sizeof owner, "tf-ckpt %s", operands[0]);
    *c = (struct command){
        .operands = operands + 1,
        .n_operands = n - 1,
        .json = json,
        .dry_run = dry_run,
        .all = all,
        .replace = replace,
        .run_name = run_name,
        .verbose = job->tool->verbose > 0,
        .lock_wait = max_runtime > 0 && !(lock_wait >= 0 && lock_wait < max_runtime) ? max_runtime
                                                                                     : lock_wait,
        .cancelled = &is_stopped,
        .owner = owner,
        .producer = tool_provenance(job->tool),
        .step = step < 0 ? -1 : step,
        .policy = policy,
        .by = by,
        .watch = {watch, job},
        .say = say,
        .context = job,
        .metrics = {.verb = operands[0], .store = operands[n - 1], .newest = -1, .problems = -1}};
    return take_share(&c->fraction, err);
}

/* ---- running ---- */

static void print_figures(const struct ckpt_work *job, struct text_metrics metrics, int status,
                          struct str *text)
{
    metrics.status = status;
    metrics.time = (int64_t)(time_wall() * 1e6);
    metrics.seconds = time_now() - job->began;
    text_metrics(text, &metrics);
}

static int write_metrics(struct ckpt_work *job, int status, struct error *err)
{
    struct text_metrics *m = &job->command.metrics;
    struct str text = STR_INIT;
    struct output *output;
    int fd;
    print_figures(job, *m, status, &text);
    if (!output_open(metrics_path, &output, &fd, err)) {
        if (dprintf(fd, "%s", text.data) == (int)text.n) {
            output_commit(output, err);
        } else {
            error_set_errno(err, ERR_IO, "%s", metrics_path);
            output_discard(output);
        }
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
    const struct ckpt_work *job = context;
    const struct text_metrics *m = &job->command.metrics;
    output_unlink_all();
    if (metrics_path) {
        struct stat old;
        struct str text = STR_INIT, temporary = STR_INIT;
        print_figures(
            job,
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
    struct ckpt_work job = {.tool = tool, .began = time_now(), .max_runtime = max_runtime};
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
    if (err->code || fill_command(&job, n, operands, err))
        return err->code;
    tool_catch_signals();
    if (tool_cancel_after(STOP_SECONDS, &is_stopped, err))
        return err->code;
    tool_end_late(true); /* a store is whole whenever its writer ends */
    tool_wait_silently(tool);
    progress_start(&job.progress, tool_shows_progress(tool), stderr, verb->unit, 0, -1);
    /* save needs no limit: each of its requests to shards has a deadline. */
    if (max_runtime <= 0 || verb->run == ckpt_save ||
        !tool_limit_elapsed(max_runtime + LATE_SECONDS, end_in_time, &job, err)) {
        if (verb->run)
            verb->run(&job, err);
        else
            verb->command(&job.command, err);
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
        if (job.command.out.n && !tool_open_text(tool, &out, &late))
            fwrite(job.command.out.data, 1, job.command.out.n, out);
    }
    if (metrics_path && !late.code)
        write_metrics(&job, code, &late);
    if (late.code && (!code || code == ERR_NEGATIVE))
        *err = late;
    command_release(&job.command);
    arena_release(&job.arena);
    return err->code;
}

int main(int argc, char **argv)
{
    return tool_main(&table, run, argc, argv);
}
