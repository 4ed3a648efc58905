/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions of the public library: devices, a session on them, and the variables as files.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/new_file.h"
#include "exec/state/saver.h"
#include "ops/api/internal.h"
#include "ops/ops.h"

/* Options of an older header are shorter: missing members are 0. */
static int take_options(const struct tf_session_options *given, struct tf_session_options *options,
                        struct error *err)
{
    *options = (struct tf_session_options){.bytes = sizeof *options};
    if (!given)
        return 0;
    if (given->bytes < sizeof given->bytes || given->bytes > sizeof *options)
        return error_set(err, ERR_USAGE, "options of %u bytes: set the field to their size",
                         (unsigned)given->bytes);
    memcpy(options, given, given->bytes);
    if (options->threads < 0 || options->threads > 4096)
        return error_set(err, ERR_USAGE, "%d threads make no sense", (int)options->threads);
    return 0;
}

static int open_tf_session(tf_session *session, const struct tf_session_options *options,
                           struct error *err)
{
    const struct stream_graph *joined = &session->graph->joined;
    struct device_options device = {.threads = options->threads,
                                    .deterministic = options->deterministic != 0,
                                    .exact = options->exact != 0};
    if (device_set_open(&session->devices, joined->graph, joined->is_cut, &device, err))
        return err->code;
    struct session_options own = {
        .plan = {.kernels = ops_kernels(), .device = session->devices.devices.items[0]},
        .devices = session->devices.devices.items,
        .n_devices = joined->is_cut ? (int)session->devices.devices.n : 0};
    session->session = session_new(joined->graph, &own);
    session->seed = options->seed;
    return 0;
}

tf_session *api_session_new(tf_graph *graph, const struct tf_session_options *options,
                            struct tf_error *error)
{
    struct tf_session_options own;
    struct error err = ERROR_INIT;
    tf_session *session = mem_alloc(sizeof *session);
    session->graph = graph;
    if (!graph)
        error_set(&err, ERR_USAGE, "there is no graph");
    else if (!take_options(options, &own, &err) && open_tf_session(session, &own, &err))
        error_prefix(&err, "%s: ", graph->name);
    if (!err.code)
        return session;
    api_session_free(session);
    api_fail(&err, error);
    return NULL;
}

void api_session_free(tf_session *session)
{
    session_free(session->session);
    device_set_release(&session->devices);
    mem_free(session);
}

int api_session_init(tf_session *session, struct tf_error *error)
{
    struct error err = ERROR_INIT;
    struct request request = {.graph = session->graph->joined.graph};
    struct step step = {.number = 0, .seed = session->seed};
    if (!graph_entry(request.graph, "init"))
        return 0;
    pthread_mutex_lock(&session->graph->lock);
    int code = request_run(&request, "init", &err);
    pthread_mutex_unlock(&session->graph->lock);
    const struct plan_request call = request_with_feeds(&request, NULL, NULL, 0);
    struct tensor *values = mem_array(request.fetches.n + 1, sizeof *values);
    if (!code)
        code = session_run(session->session, &call, &step, values, &err);
    for (size_t i = 0; i < request.fetches.n; i++)
        tensor_release(&values[i]);
    mem_free(values);
    request_release(&request);
    if (!code)
        return 0;
    error_prefix(&err, "%s: init: ", session->graph->name);
    return api_fail(&err, error);
}

int64_t api_session_step(const tf_session *session)
{
    return atomic_load(&session->step);
}

/* ---- files ---- */

int api_session_save(tf_session *session, const char *file, struct tf_error *error)
{
    struct error err = ERROR_INIT;
    struct new_file new;
    if (new_file_open(&new, file, &err))
        return api_fail(&err, error);
    struct stream_writer *writer = stream_writer_new(new.fd, file, "libtf-tools", -1);
    int code = variables_save(session_variables(session->session), api_session_step(session),
                              writer, &err);
    if (!code)
        code = stream_finish(writer, &err);
    stream_writer_free(writer);
    if (code)
        new_file_discard(&new);
    else
        new_file_commit(&new, &err);
    return err.code ? api_fail(&err, error) : 0;
}

int api_session_restore(tf_session *session, const char *file, struct tf_error *error)
{
    struct error err = ERROR_INIT;
    int64_t step = 0;
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        error_set_errno(&err, file_error_code(), "%s", file);
        return api_fail(&err, error);
    }
    struct stream_reader *reader = stream_reader_new(fd, file);
    int code = variables_restore(session_variables(session->session), session->graph->joined.graph,
                                 &session->devices, reader, &step, &err);
    stream_reader_free(reader);
    close(fd);
    if (code)
        return api_fail(&err, error);
    atomic_store(&session->step, step);
    return 0;
}
