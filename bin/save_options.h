/* SPDX-License-Identifier: Apache-2.0
 *
 * The options by which a program keeps the variables of its graph; their rows are in
 * bin/save_rows.def. A template, as bin/cluster_options.h is.
 */
#ifndef TF_BIN_SAVE_OPTIONS_H
#define TF_BIN_SAVE_OPTIONS_H

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "checkpoint/autosave.h"
#include "checkpoint/files.h"
#include "checkpoint/restore.h"
#include "checkpoint/retain.h"
#include "checkpoint/source.h"
#include "cli/record_file.h"
#include "exec/driver.h"

static const char *save_path, *save_every, *save_best, *restore_path;
static int64_t save_rate;
static bool resume;
static struct option_list restore_names;

struct saving {
    struct tool *tool;
    struct driver *driver;
    struct variable_store *variables; /* set before anything is restored or saved */
    struct device *device;            /* of variables that are not there yet */
    bool has_all;                     /* no other task has variables */
    int64_t resumed;                  /* the step; 0: none */
    struct autosave *autosave;        /* of a store, since there was something to save there */
    struct arena arena;
};

static inline bool saving_is_folder(const char *path)
{
    struct stat status;
    return path && (str_ends(path, "/") || (!stat(path, &status) && S_ISDIR(status.st_mode)));
}

static inline bool saving_to_store(void)
{
    return saving_is_folder(save_path);
}

/* The store's name, without the slash at its end. */
static inline const char *saving_name(struct saving *s)
{
    size_t n = strlen(save_path);
    while (n > 1 && save_path[n - 1] == '/')
        n--;
    return arena_strndup(&s->arena, save_path, n);
}

/* Where --restore is a store: its path and step. */
static inline bool restoring_from_store(struct saving *s, const char **path, int64_t *step)
{
    if (!restore_path)
        return false;
    source_split(restore_path, &s->arena, path, step);
    return *step != CHECKPOINT_NEWEST || saving_is_folder(*path);
}

static inline bool saving_fetches(const struct driver *driver, const char *name)
{
    for (size_t i = 0; i < driver->request.names.n; i++)
        if (!strcmp(driver->request.names.items[i], name))
            return true;
    return false;
}

/* "loss", "loss:min", "accuracy:max" */
static inline const char *saving_metric(struct saving *s, bool *is_low)
{
    if (!save_best)
        return NULL;
    char *name = arena_strdup(&s->arena, save_best), *colon = strrchr(name, ':');
    bool said = colon && (!strcmp(colon, ":min") || !strcmp(colon, ":max"));
    *is_low = said ? colon[2] == 'i' : retain_is_low(name);
    if (said)
        *colon = '\0';
    return name;
}

/* What can be known before anything is run; has_all: all variables are in this process. */
static inline int saving_check(struct saving *s, bool has_all, struct error *err)
{
    const struct restore_names names = {restore_names.items, restore_names.n};
    const char *path, *metric;
    int64_t step;
    bool is_low, store = saving_to_store();
    if (!store && (save_every || save_best || save_rate || resume))
        return error_set(err, ERR_USAGE, "--%s needs --save DIR/",
                         resume      ? "resume"
                         : save_best ? "save-best"
                         : save_rate ? "save-rate"
                                     : "save-every");
    s->has_all = has_all;
    if (!has_all && store)
        return error_set(err, ERR_USAGE, "--save names a file where other tasks have variables");
    if (restore_names.n && !resume && (!has_all || !restoring_from_store(s, &path, &step)))
        return error_set(err, ERR_USAGE,
                         "--restore-as is for stores, and where no other task has variables");
    if (restore_check_names(&names, err))
        return err->code;
    metric = saving_metric(s, &is_low);
    if (metric && !saving_fetches(s->driver, metric))
        return error_set(err, ERR_USAGE, "--save-best %s: it is not fetched; --fetch %s", metric,
                         metric);
    return save_path && !store ? record_file_probe(save_path, err) : 0;
}

/* ---- restoring ---- */

static inline int saving_read_store(struct saving *s, const char *path, int64_t step,
                                    struct restored *restored, struct error *err)
{
    const struct restore_request request = {.variables = s->variables,
                                            .graph = s->driver->graph,
                                            .names = {restore_names.items, restore_names.n},
                                            .device = s->device};
    struct store *store;
    if (store_open(path, NULL, &store, err))
        return err->code;
    if (!store_restore(store, step, &request, restored, err) && restored->passed_over.code)
        tool_say(s->tool, "%s; restored %s@%" PRId64, restored->passed_over.text, path,
                 restored->step);
    store_close(store);
    return err->code;
}

/* What --restore names, as one stream. */
static inline int saving_open_reader(struct saving *s, struct stream_reader **reader,
                                     struct error *err)
{
    struct error passed_over = ERROR_INIT;
    const char *path;
    int64_t step;
    if (!restoring_from_store(s, &path, &step))
        return tool_open_reader(s->tool, restore_path, reader, err);
    if (!store_stream(path, step, s->driver->graph, reader, &passed_over, err) && passed_over.code)
        tool_say(s->tool, "%s; restoring %s", passed_over.text, stream_reader_name(*reader));
    return err->code;
}

static inline void saving_close_reader(struct saving *s, struct stream_reader *reader)
{
    const char *path;
    int64_t step;
    if (restoring_from_store(s, &path, &step))
        stream_reader_free(reader);
    else
        tool_close_reader(reader);
}

/* The feeds of the steps that were run already are passed over. */
static inline int saving_pass_over(struct saving *s, int64_t step, struct error *err)
{
    struct driver *driver = s->driver;
    const char *name = saving_name(s);
    if (!driver->feed_reader) {
        driver->step = step;
        tool_say(s->tool, "%s: resumed at step %" PRId64, name, step);
        return 0;
    }
    if (driver_pass_over(driver, step, err))
        return err->code;
    if (driver->step < step)
        return error_set(err, ERR_DATA,
                         "%s: resumed at step %" PRId64 ", but the feeds end after step %" PRId64,
                         name, step, driver->step);
    tool_say(s->tool, "%s: resumed at step %" PRId64 "; %" PRId64 " feed records passed over", name,
             step, stream_reader_count(driver->feed_reader));
    return 0;
}

static inline const char *saving_producer(struct saving *s)
{
    return arena_strdup(&s->arena, tool_provenance(s->tool));
}

/* *done tells whether the variables have their values now. Where they are those of --resume,
 * s->resumed is their step. */
static inline int saving_restore(struct saving *s, bool *done, struct error *err)
{
    struct restored restored;
    const char *path;
    int64_t step;
    *done = true;
    if (resume && store_exists(saving_name(s))) {
        int code = saving_read_store(s, saving_name(s), CHECKPOINT_NEWEST, &restored, err);
        s->resumed = code ? 0 : restored.step;
        if (!code)
            return 0;
        if (code != ERR_NOINPUT)
            return code;
        error_clear(err); /* nothing was saved yet */
    }
    if (s->has_all && restoring_from_store(s, &path, &step))
        return saving_read_store(s, path, step, &restored, err);
    *done = false;
    return 0;
}

/* The newest step in the store that --resume would go on from; -1: none. */
static inline int saving_newest(struct saving *s, int64_t *step, struct error *err)
{
    struct error damaged = ERROR_INIT;
    struct checkpoint *newest;
    struct store *store;
    *step = -1;
    if (!resume || !store_exists(saving_name(s)))
        return 0;
    if (store_open(saving_name(s), NULL, &store, err))
        return err->code;
    if (!checkpoint_open(store, CHECKPOINT_NEWEST, &newest, &damaged, err)) {
        *step = newest->manifest.step;
        checkpoint_close(newest);
    } else if (err->code == ERR_NOINPUT) {
        error_clear(err);
    }
    store_close(store);
    return err->code;
}

/* ---- saving ---- */

static inline void saving_say(void *context, const char *line)
{
    struct saving *s = context;
    tool_say(s->tool, "%s", line);
}

static inline void saving_take_scalar(void *context, const char *name, const struct tensor *value)
{
    struct saving *s = context;
    if (tensor_count(value) == 1 && (DTYPE_BIT(value->type) & DTYPES_REAL))
        autosave_set_scalar(s->autosave, name, tensor_get_float64(value, 0));
}

/* Where the data of the step came from. */
static inline void saving_take_place(struct saving *s)
{
    struct feed_position position;
    struct str text = STR_INIT;
    if (!s->driver->feed_reader ||
        !record_get_position(&s->driver->record, &s->driver->record.arena, &position))
        return;
    str_printf(&text, "source %s\nepoch %" PRId64 "\noffset %" PRId64 "\nseed %" PRIu64 "\n",
               position.source, position.epoch, position.offset, position.seed);
    autosave_set_blob(s->autosave, "place", text.data, text.n);
    str_release(&text);
}

/* After the variables were restored or initialized; nothing if it is open, or not to a store. */
static inline int saving_open(struct saving *s, struct error *err)
{
    struct autosave_options options = {.path = NULL,
                                       .step = s->resumed,
                                       .bytes_per_second = (double)save_rate,
                                       .owner = s->tool->table->tool,
                                       .say = saving_say,
                                       .context = s};
    if (!saving_to_store() || s->autosave)
        return 0;
    options.variables = s->variables;
    options.path = saving_name(s);
    options.producer = saving_producer(s);
    options.best = saving_metric(s, &options.best_is_low);
    if ((save_every &&
         autosave_parse_interval(save_every, &options.every_steps, &options.every_seconds, err)) ||
        autosave_open(&options, &s->autosave, err))
        return err->code;
    s->driver->fetched = saving_take_scalar;
    s->driver->fetched_context = s;
    return 0;
}

static inline int saving_step(struct saving *s, struct error *err)
{
    if (saving_open(s, err) || !s->autosave)
        return err->code;
    saving_take_place(s);
    autosave_step(s->autosave, s->driver->step);
    return 0;
}

static inline void saving_close(struct saving *s)
{
    autosave_close(s->autosave);
    arena_release(&s->arena);
}

#endif
