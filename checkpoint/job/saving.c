/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/job/saving.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "checkpoint/formats/archive.h"
#include "checkpoint/formats/source.h"
#include "checkpoint/job/commit.h"
#include "checkpoint/policy/retain.h"
#include "checkpoint/store/best.h"
#include "exec/state/saver.h"
#include "graph/holders.h"

static bool is_folder(const char *path)
{
    struct stat status;
    return path && (str_ends(path, "/") || (!stat(path, &status) && S_ISDIR(status.st_mode)));
}

/* The store's name, without the slash at its end. */
static const char *saving_name(struct saving *s)
{
    size_t n = strlen(s->options->path);
    while (n > 1 && s->options->path[n - 1] == '/')
        n--;
    return arena_strndup(&s->arena, s->options->path, n);
}

/* Returns whether --restore names a store, with its path and step. */
static bool restoring_from_store(struct saving *s, const char **path, int64_t *step,
                                 struct error *err)
{
    if (!s->options->restore || source_split(s->options->restore, &s->arena, path, step, err))
        return false;
    return *step != CHECKPOINT_NEWEST || is_folder(*path);
}

/* Opens the checkpoint of a step. NULL: an error if `err` is set, else there is no store. */
static struct checkpoint *open_checkpoint(struct saving *s, int64_t step, struct store **store,
                                          struct error *err)
{
    struct checkpoint *checkpoint = NULL;
    if (!s->to_store || store_open(saving_name(s), NULL, store, err))
        return NULL;
    if (checkpoint_open(*store, step, &checkpoint, NULL, err))
        store_close(*store);
    return err->code ? NULL : checkpoint;
}

static void close_checkpoint(struct checkpoint *checkpoint, struct store *store)
{
    checkpoint_close(checkpoint);
    store_close(store);
}

int saving_check(struct saving *s, bool has_all, struct error *err)
{
    const struct node *one;
    const char *path;
    int64_t step;
    const char *of_store = s->options->resume  ? "resume"
                           : s->options->best  ? "save-best"
                           : s->options->rate  ? "save-rate"
                           : s->options->keep  ? "keep"
                           : s->options->every ? "save-every"
                                               : NULL;
    s->to_store = is_folder(s->options->path);
    if (!s->to_store && of_store)
        return error_set(err, ERR_USAGE, "--%s needs --save DIR/", of_store);
    s->has_all = has_all;
    if (s->options->path && holders_of(s->driver->graph, &one) == HOLDERS_NONE)
        return error_set(err, ERR_USAGE, "--save %s: the graph has no variables", s->options->path);
    if (s->options->partial && (!s->options->restore || !has_all))
        return error_set(err, ERR_USAGE, "--restore-partial is for --restore, without --task");
    if (!has_all && s->to_store)
        return error_set(err, ERR_USAGE, "--save names a file where other tasks have variables");
    if (s->options->names.n && !s->options->resume && !s->options->partial &&
        (!has_all || !restoring_from_store(s, &path, &step, err)))
        return err->code ? err->code
                         : error_set(err, ERR_USAGE,
                                     "--restore-as is for stores, and where no other task has "
                                     "variables");
    if (restore_check_names(&s->options->names, s->driver->graph, err) ||
        run_make(&s->writer.run, s->options->run_name, err))
        return err->code;
    if (s->to_store && store_check_place(s->options->path, err))
        return error_prefix(err, "--save %s: ", s->options->path);
    return saving_check_metric(s, err);
}

/* ---- the metric ---- */

static int say_no_scalar(const char *name, enum dtype type, const struct shape *shape,
                         struct error *err)
{
    return error_set(err, ERR_USAGE, "--save-best %s: it is %s, and no number", name,
                     shape_text_typed(type, shape));
}

int saving_check_metric(struct saving *s, struct error *err)
{
    const struct request *request = &s->driver->request;
    if (!s->options->best)
        return 0;
    s->metric = retain_metric(s->options->best, &s->arena, &s->metric_is_low, err);
    size_t k = names_find(s->measured, s->n_measured, s->metric);
    size_t i = vec_find(&request->names, s->metric);
    if (k == s->n_measured && i == request->names.n)
        return error_set(
            err, ERR_USAGE,
            "--save-best %s: neither fetched nor evaluated: METRIC, METRIC:min, METRIC:max",
            s->metric);
    if (err->code)
        return error_prefix(err, "--save-best %s: ", s->options->best);
    if (k < s->n_measured)
        return 0;
    const struct edge edge = request->fetches.items[i];
    const struct node_output *output = graph_output(request->graph, edge);
    bool may = DTYPE_BIT(output->type) & DTYPES_REAL;
    for (int d = 0; d < output->shape.rank; d++) /* unknown dimensions may turn out to be 1 */
        may &= output->shape.dims[d] == 1 || output->shape.dims[d] < 0;
    return may ? 0 : say_no_scalar(s->metric, output->type, &output->shape, err);
}

static void take_scalar(void *context, const char *name, const struct tensor *value,
                        const struct request_view *view)
{
    struct saving *s = context;
    if (tensor_count(value) == 1 && (DTYPE_BIT(value->type) & DTYPES_REAL))
        autosave_set_scalar(s->autosave, name, tensor_get_float64(value, 0), view->before);
    else if (s->metric && !strcmp(name, s->metric))
        say_no_scalar(name, value->type, &value->shape, &s->no_scalar);
}

/* ---- runs ---- */

/* Continues the run: saves are now of that run, under its name unless another is given. */
static int go_on_with(struct saving *s, const struct ckpt_run *run, struct error *err)
{
    s->writer.goes_on = true;
    if (!run_is_known(run))
        return 0;
    s->writer.run = *run;
    return run_set_name(&s->writer.run, s->options->run_name, err);
}

/* Finds the newest checkpoint, from which --resume would resume; *step is -1 if there is none. */
static int find_newest(struct saving *s, int64_t *step, struct ckpt_run *run, struct error *err)
{
    struct store *store;
    struct checkpoint *newest = open_checkpoint(s, CHECKPOINT_NEWEST, &store, err);
    *step = -1;
    if (newest) {
        *step = newest->manifest.step;
        *run = newest->manifest.run;
        close_checkpoint(newest, store);
    }
    if (err->code == ERR_NOINPUT)
        error_clear(err); /* nothing was saved yet */
    return err->code;
}

int saving_await_turn(struct saving *s, struct error *err)
{
    struct store *store;
    if (!s->to_store)
        return 0;
    if (!store_open(saving_name(s), NULL, &store, err)) {
        store_generation(store, &s->writer.generation, err);
        store_close(store);
    } else if (err->code == ERR_NOINPUT) {
        error_clear(err); /* it is on another host, or does not exist yet */
    }
    return err->code;
}

/* ---- restoring ---- */

static int saving_read_store(struct saving *s, const char *path, int64_t step,
                             struct restore_result *restored, struct error *err)
{
    const struct restore_request request = {.variables = s->variables,
                                            .graph = s->driver->graph,
                                            .names = s->options->names,
                                            .device = s->device};
    struct store *store;
    if (store_open(path, NULL, &store, err))
        return err->code;
    if (!store_restore(store, step, &request, restored, err) && restored->passed_over.code)
        log_tell(s->say, s->context, "%s; restored %s@%" PRId64, restored->passed_over.text, path,
                 restored->step);
    store_close(store);
    return err->code;
}

int saving_open_reader(struct saving *s, struct stream_reader **reader, struct error *err)
{
    struct error passed_over = ERROR_INIT;
    const char *path;
    int64_t step;
    *reader = NULL;
    if (!restoring_from_store(s, &path, &step, err))
        return err->code || !is_archive(path) ? err->code : archive_stream(path, reader, err);
    if (!store_stream(path, step, s->driver->graph, reader, &passed_over, err) && passed_over.code)
        log_tell(s->say, s->context, "%s; restoring %s", passed_over.text,
                 stream_reader_name(*reader));
    return err->code;
}

int saving_pass_over(struct saving *s, int64_t step, struct error *err)
{
    struct driver *driver = s->driver;
    const char *name = saving_name(s);
    if (!driver->feed_reader) {
        driver->step = step;
        log_tell(s->say, s->context, "%s: resumed at step %" PRId64, name, step);
        return 0;
    }
    if (driver_pass_over(driver, step, err))
        return err->code;
    if (driver->step < step)
        return error_set(err, ERR_DATA,
                         "%s: resumed at step %" PRId64 ", but the feeds end after step %" PRId64,
                         name, step, driver->step);
    log_tell(s->say, s->context,
             "%s: resumed at step %" PRId64 "; %" PRId64 " feed records passed over", name, step,
             stream_reader_count(driver->feed_reader));
    return 0;
}

int saving_restore(struct saving *s, bool *done, struct error *err)
{
    struct restore_result restored;
    const char *path;
    int64_t step;
    const struct store_options options = commit_options(s->owner);
    *done = true;
    /* Takes the store over first, so that all that another process saved before is found. */
    if (s->options->resume &&
        !store_take_over(saving_name(s), &options, s->claims, &s->writer.generation, err) &&
        !saving_read_store(s, saving_name(s), CHECKPOINT_NEWEST, &restored, err)) {
        s->resumed = restored.step;
        return go_on_with(s, &restored.run, err);
    }
    if (err->code && err->code != ERR_NOINPUT)
        return err->code;
    error_clear(err); /* nothing was saved yet */
    if (s->has_all && !s->options->partial && restoring_from_store(s, &path, &step, err))
        return saving_read_store(s, path, step, &restored, err);
    *done = false;
    return err->code;
}

int saving_restore_partial(struct saving *s, struct error *err)
{
    const struct restore_request request = {.variables = s->variables,
                                            .graph = s->driver->graph,
                                            .names = s->options->names,
                                            .device = s->device,
                                            .left = s->say,
                                            .context = s->context};
    return restore_partial(s->options->restore, &request, err);
}

int saving_newest(struct saving *s, int64_t *step, struct error *err)
{
    struct ckpt_run run;
    *step = -1;
    return s->options->resume ? find_newest(s, step, &run, err) : 0;
}

/* ---- saving ---- */

/* A variable without a value before the first step that steps do not set would be missing at the
 * end. */
static int check_values(const struct saving *s, struct error *err)
{
    const struct driver *driver = s->driver;
    const struct node *lacks;
    size_t at = 0;
    do
        lacks = variables_find_lacking(s->variables, driver->graph, &at);
    while (lacks && request_uses(&driver->request, lacks->id));
    if (!lacks)
        return 0;
    return error_set(err, ERR_DATA, "%s: --save %s: %s has no value, and %s %s gives it none",
                     driver->name, s->options->path, node_text(lacks), driver->option,
                     driver->what);
}

int saving_open(struct saving *s, struct error *err)
{
    int64_t newest;
    struct ckpt_run run;
    if (!s->to_store || s->autosave)
        return 0;
    /* The job's newest checkpoint was saved by the process that this one takes over from. */
    if (s->takes_over && !find_newest(s, &newest, &run, err) && newest >= 0)
        go_on_with(s, &run, err);
    if (err->code || check_values(s, err))
        return err->code;
    struct autosave_options options = {.path = saving_name(s),
                                       .step = s->resumed,
                                       .writer = s->writer,
                                       .best = s->metric,
                                       .best_is_low = s->metric_is_low,
                                       .keep = s->options->keep,
                                       .bytes_per_second = (double)s->options->rate,
                                       .producer = s->producer,
                                       .owner = s->owner,
                                       .variables = s->variables,
                                       .graph = s->driver->graph,
                                       .say = s->say,
                                       .context = s->context};
    if (s->options->every && interval_parse(s->options->every, &options.every, err))
        return error_prefix(err, "--save-every: ");
    if (autosave_open(&options, &s->autosave, err))
        return err->code;
    if (options.best) { /* each checkpoint names the metric by which the best is chosen */
        struct str text = STR_INIT;
        str_printf(&text, "%s:%s", s->metric, s->metric_is_low ? "min" : "max");
        autosave_set_blob(s->autosave, BEST_BLOB, text.data, text.n);
        str_release(&text);
    }
    s->driver->fetched = take_scalar;
    s->driver->fetched_context = s;
    autosave_begin(s->autosave);
    return 0;
}

int saving_is_due(struct saving *s, bool *due, struct error *err)
{
    *due = false;
    if (!saving_open(s, err) && s->autosave)
        *due = autosave_is_due(s->autosave, s->driver->step);
    return err->code;
}

int saving_step(struct saving *s, bool is_settled, struct error *err)
{
    *err = s->no_scalar;
    if (err->code || saving_open(s, err) || !s->autosave)
        return err->code;
    /* Records where the data of the step came from. */
    struct feed_position position;
    struct record *record = &s->driver->feeds.record;
    if (s->driver->feed_reader && record_get_position(record, &record->arena, &position)) {
        struct str text = STR_INIT;
        str_printf(&text, "source %s\nepoch %" PRId64 "\noffset %" PRId64 "\nseed %" PRIu64 "\n",
                   position.source, position.epoch, position.offset, position.seed);
        autosave_set_blob(s->autosave, "place", text.data, text.n);
        str_release(&text);
    }
    autosave_step(s->autosave, s->driver->step, is_settled);
    return autosave_check(s->autosave, err);
}

bool saving_collect(struct saving *s)
{
    return !s->autosave || autosave_collect(s->autosave, s->driver->step);
}

int saving_read_blob(struct saving *s, const char *name, struct str *text, struct error *err)
{
    struct store *store;
    struct checkpoint *from = s->resumed ? open_checkpoint(s, s->resumed, &store, err) : NULL;
    const struct manifest_blob *blob = from ? ckpt_manifest_find_blob(&from->manifest, name) : NULL;
    if (blob)
        str_append_bytes(text, blob->data, blob->n);
    if (from)
        close_checkpoint(from, store);
    return err->code;
}

void saving_find_best(struct saving *s, struct saved_best *best)
{
    struct store *store;
    struct error ignored = ERROR_INIT;
    struct checkpoint *from =
        s->metric ? open_checkpoint(s, CHECKPOINT_BEST, &store, &ignored) : NULL;
    *best = (struct saved_best){.step = -1};
    if (!from)
        return;
    best->step = from->manifest.step;
    best->store = saving_name(s);
    best->n = from->manifest.scalars.n;
    best->scalars = arena_array(&s->arena, best->n + 1, sizeof *best->scalars);
    for (size_t i = 0; i < best->n; i++) {
        const struct manifest_scalar *scalar = &from->manifest.scalars.items[i];
        best->scalars[i] =
            (struct manifest_scalar){arena_strdup(&s->arena, scalar->name), scalar->value};
    }
    close_checkpoint(from, store);
}

int saving_finish(struct saving *s, int64_t step, struct error *err)
{
    struct autosave_counts counts;
    struct str line = STR_INIT;
    autosave_finish(s->autosave, step, err);
    autosave_count(s->autosave, &counts);
    int64_t made = counts.begun - counts.failed;
    str_printf(&line, "%s: of the checkpoints in the background %" PRId64 " %s made",
               saving_name(s), made, made == 1 ? "was" : "were");
    if (counts.left_out)
        str_printf(&line, ", %" PRId64 " left out, as one was being written", counts.left_out);
    if (counts.failed)
        str_printf(&line, ", %" PRId64 " failed", counts.failed);
    if (counts.left_out || counts.failed)
        s->say(s->context, line.data);
    str_release(&line);
    return err->code;
}

void saving_close(struct saving *s)
{
    autosave_close(s->autosave);
    arena_release(&s->arena);
}
