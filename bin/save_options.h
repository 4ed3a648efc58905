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
#include "ps/saves.h"

static const char *save_path, *save_every, *save_best, *restore_path;
static int64_t save_rate;
static bool resume;
static struct option_list restore_names;

struct saving {
    struct tool *tool;
    struct driver *driver;
    struct autosave *autosave; /* of a store; NULL: there is none */
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

/* Where --restore is a folder of either form: its path and step. */
static inline bool restoring_from_folder(struct saving *s, const char **path, int64_t *step)
{
    if (!restore_path)
        return false;
    source_split(restore_path, &s->arena, path, step);
    return *step != CHECKPOINT_NEWEST || saving_is_folder(*path);
}

/* Where --restore is a store. What the shards of a job have saved is none. */
static inline bool restoring_from_store(struct saving *s, const char **path, int64_t *step)
{
    return restoring_from_folder(s, path, step) && !saves_exist(*path);
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

/* What can be known before anything is run. */
static inline int saving_check(struct saving *s, bool in_cluster, struct error *err)
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
    if (in_cluster && (store || restoring_from_store(s, &path, &step)))
        return error_set(err, ERR_USAGE, "with --task, --save and --restore name files");
    if (restore_names.n && !resume && !restoring_from_store(s, &path, &step))
        return error_set(err, ERR_USAGE, "--restore-as is for stores");
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
    const struct restore_request request = {.variables = session_variables(s->driver->session),
                                            .graph = s->driver->graph,
                                            .names = {restore_names.items, restore_names.n},
                                            .device = s->driver->device};
    struct store *store;
    if (store_open(path, NULL, &store, err))
        return err->code;
    if (!store_restore(store, step, &request, restored, err) && restored->passed_over.code)
        tool_say(s->tool, "%s; restored %s@%" PRId64, restored->passed_over.text, path,
                 restored->step);
    store_close(store);
    return err->code;
}

struct saving_teller {
    struct saves_skipped skipped; /* first */
    struct saving *saving;
};

static inline void saving_tell_skipped(struct saves_skipped *skipped, const char *why)
{
    tool_say(((struct saving_teller *)skipped)->saving->tool, "passed over: %s", why);
}

/* What --restore names, as one stream: a file, or what the shards of a job have saved. */
static inline int saving_open_reader(struct saving *s, struct stream_reader **reader,
                                     struct error *err)
{
    struct saving_teller teller = {{saving_tell_skipped}, s};
    const char *path;
    int64_t step;
    if (!restoring_from_folder(s, &path, &step))
        return tool_open_reader(s->tool, restore_path, reader, err);
    return saves_read(path, step, &teller.skipped, reader, err);
}

static inline void saving_close_reader(struct saving *s, struct stream_reader *reader)
{
    const char *path;
    int64_t step;
    if (restoring_from_folder(s, &path, &step))
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

/* *done tells whether the variables have their values now. */
static inline int saving_restore(struct saving *s, bool *done, struct error *err)
{
    struct restored restored;
    const char *path;
    int64_t step;
    *done = true;
    if (s->driver->session)
        variable_store_set_files(session_variables(s->driver->session),
                                 checkpoint_files(saving_producer(s)));
    if (resume && store_exists(saving_name(s))) {
        int code = saving_read_store(s, saving_name(s), CHECKPOINT_NEWEST, &restored, err);
        if (!code)
            return saving_pass_over(s, restored.step, err);
        if (code != ERR_NOINPUT)
            return code;
        error_clear(err); /* nothing was saved yet */
    }
    if (restoring_from_store(s, &path, &step))
        return saving_read_store(s, path, step, &restored, err);
    *done = false;
    return 0;
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

/* After the variables were restored or initialized. */
static inline int saving_open(struct saving *s, struct error *err)
{
    struct autosave_options options = {.path = NULL,
                                       .step = s->driver->step,
                                       .bytes_per_second = (double)save_rate,
                                       .owner = s->tool->table->tool,
                                       .say = saving_say,
                                       .context = s};
    if (!saving_to_store())
        return 0;
    options.variables = session_variables(s->driver->session);
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

static inline void saving_step(struct saving *s)
{
    if (!s->autosave)
        return;
    saving_take_place(s);
    autosave_step(s->autosave, s->driver->step);
}

static inline void saving_close(struct saving *s)
{
    autosave_close(s->autosave);
    arena_release(&s->arena);
}

#endif
