/* SPDX-License-Identifier: Apache-2.0 */
#include "bin/runner.h"

#include <inttypes.h>

#include "base/memory.h"
#include "bin/cluster_options.h"
#include "cli/record_file.h"
#include "exec/state/saver.h"
#include "graph/holders.h"
#include "graph/task.h"

struct runner *runner_new(const struct runner_options *options)
{
    struct runner *r = mem_alloc(sizeof *r);
    *r = (struct runner){.options = *options, .first = INT64_MAX};
    r->worker = cluster_options.task ? mem_alloc(sizeof *r->worker) : NULL;
    return r;
}

bool runner_has_all_variables(const struct runner *r)
{
    struct error ignored = ERROR_INIT;
    char own[DEVICE_WORD_BYTES];
    int index;
    return !r->worker || (!task_parse(cluster_options.task, own, &index, &ignored) &&
                          !holders_find_elsewhere(r->options.joined->graph, own, index));
}

int runner_open(struct runner *r, struct error *err)
{
    struct saving *saving = r->options.saving;
    if (!r->options.plan_only && (saving_check(saving, runner_has_all_variables(r), err) ||
                                  (saving->options->path && !saving->to_store &&
                                   record_file_probe(saving->options->path, err))))
        return err->code;
    return (r->worker ? runner_open_worker : runner_open_session)(r, err);
}

void runner_close(struct runner *r)
{
    if (!r)
        return;
    if (r->worker)
        worker_close(r->worker);
    else
        session_free(r->options.driver->session);
    device_set_release(&r->devices);
    mem_free(r->worker);
    mem_free(r);
}

bool runner_saves(const struct runner *r)
{
    return !r->worker || worker_writes(r->worker);
}

/* ---- starting ---- */

/* Gives the variables their first values. */
static int begin(struct runner *r, struct error *err)
{
    struct runner_origin origin = {.reader = NULL};
    struct saving *saving = r->options.saving;
    bool reads = runner_saves(r);
    saving->takes_over = !reads;
    int code = reads ? saving_restore(saving, &origin.is_restored, err) : 0;
    if (code)
        return code;
    if (saving->options->partial && !origin.is_restored)
        return driver_initialize(r->options.driver, err) ? err->code
                                                         : saving_restore_partial(saving, err);
    bool from_reader = reads && saving->options->restore && !origin.is_restored;
    if (from_reader && saving_open_reader(saving, &origin.reader, err))
        return err->code;
    bool is_file = from_reader && !origin.reader;
    if (is_file && tool_open_reader(r->options.tool, saving->options->restore, &origin.reader, err))
        return err->code;
    code = (r->worker ? runner_start_worker : runner_start_session)(r, &origin, err);
    if (is_file)
        tool_close_reader(origin.reader);
    else if (from_reader)
        stream_reader_free(origin.reader);
    return code;
}

int runner_start(struct runner *r, struct error *err)
{
    int code = begin(r, err);
    if (!code)
        code = (runner_saves(r) ? saving_open : saving_await_turn)(r->options.saving, err);
    r->first = code ? INT64_MAX : r->options.driver->step;
    return code;
}

/* ---- running ---- */

bool runner_goes_together(const struct runner *r)
{
    return r->worker && r->worker->collective;
}

bool runner_begins(struct runner *r)
{
    return r->worker ? worker_begins(r->worker, r->options.driver, tool_signal(), r->ends)
                     : !runner_is_over(r);
}

bool runner_is_over(struct runner *r)
{
    /* workers that go on together end a step later, with all */
    bool asked = tool_signal() || (r->ends && !runner_goes_together(r));
    return r->worker ? worker_is_over(r->worker, r->options.driver, asked) : asked;
}

bool runner_saves_together(const struct runner *r)
{
    return r->worker && worker_shares_state(r->worker);
}

int runner_stepped(struct runner *r, bool is_last, struct error *err)
{
    enum worker_moment moment = is_last ? MOMENT_LAST : MOMENT_STEPPED;
    return r->worker ? worker_moment(r->worker, r->options.driver, moment, err) : 0;
}

bool runner_is_settled(const struct runner *r)
{
    return !r->worker || worker_is_settled(r->worker, r->options.driver->step);
}

int64_t runner_meets_at(const struct runner *r)
{
    int64_t step = r->options.driver->step;
    return r->worker ? worker_average_step(r->worker, step) : step;
}

int runner_step(struct runner *r, struct error *err)
{
    if (!runner_is_settled(r))
        return runner_saves(r) ? saving_step(r->options.saving, false, err) : 0;
    if (runner_saves_together(r)) {
        bool due, again = true;
        while (again) {
            due = false;
            if ((runner_saves(r) && saving_is_due(r->options.saving, &due, err)) ||
                worker_gather_state(r->worker, runner_meets_at(r), due, &again, err))
                return err->code;
        }
        if (!due)
            return 0;
        int code = saving_step(r->options.saving, true, err);
        return code ? code : worker_cut_parts(r->worker, err);
    }
    return runner_saves(r) ? saving_step(r->options.saving, true, err) : 0;
}

bool runner_was_stopped(struct runner *r)
{
    r->was_stopped = !tool_signal() && !r->ends && runner_is_over(r);
    return r->was_stopped;
}

bool runner_has_run(const struct runner *r)
{
    return r->options.driver->step > r->first;
}

/* ---- ending ---- */

/* Returns whether there is something to save. A process that was asked to end before its first step
 * has nothing: what it started from must neither be saved as another step nor replace a whole file.
 */
static bool has_to_save(const struct runner *r)
{
    bool asked = tool_signal() || r->was_stopped;
    return r->options.saving->options->path && (runner_has_run(r) || !asked) && runner_saves(r);
}

static int save(struct runner *r, bool has_values, struct error *err)
{
    struct record_file file;
    struct saving *saving = r->options.saving;
    const struct driver *driver = r->options.driver;
    error_clear(err); /* to be asked to end in a wait is no failure */
    if (!has_values || !has_to_save(r) || saving_open(saving, err))
        return err->code;
    if (saving->autosave)
        return saving_finish(saving, driver->step, err)
                   ? error_append(err, "; step %" PRId64 " is not saved", driver->step)
                   : 0;
    int code = record_file_open(&file, r->options.tool, saving->options->path, -1, err);
    if (code)
        return code;
    if (r->worker)
        code = worker_save(r->worker, driver->step, file.writer, err);
    else if (!(code = variables_check_all(saving->variables, driver->graph, err)))
        code = variables_save(saving->variables, driver->step, file.writer, err);
    if (!code)
        return record_file_commit(&file, err);
    record_file_discard(&file);
    return code;
}

static int leave(struct runner *r, int code, struct error *err)
{
    return r->worker ? runner_leave_worker(r, code, err) : code;
}

int runner_end(struct runner *r, bool has_values, int code, struct error *err)
{
    bool asked = code;
    if (has_values && runner_saves_together(r) &&
        worker_gather_last(r->worker, runner_meets_at(r), has_to_save(r), err))
        return leave(r, err->code, err);
    if (runner_goes_together(r))
        return leave(r, save(r, has_values, err), err);
    code = leave(r, code, err);
    return !code || asked ? save(r, has_values, err) : code;
}
