/* SPDX-License-Identifier: Apache-2.0
 *
 * The public library: loads the core at the first call, and forwards calls to it.
 */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "api/core.h"

#define CORE_FILE "tf-tools/libtf-graph.so"

static const struct tf_core *core;
static char why_none[TF_ERROR_BYTES];

/* Loads the core that lies beside this library, privately: no other code sees its names. */
static void load_library(void)
{
    Dl_info info;
    char path[PATH_MAX];
    if (!dladdr((void *)(uintptr_t)&load_library, &info) || !info.dli_fname) {
        snprintf(why_none, sizeof why_none, "cannot find where libtf-tools was loaded from");
        return;
    }
    const char *slash = strrchr(info.dli_fname, '/');
    int n = slash ? (int)(slash + 1 - info.dli_fname) : 0;
    snprintf(path, sizeof path, "%.*s" CORE_FILE, n, info.dli_fname);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const struct tf_core *found = library ? dlsym(library, "tf_core") : NULL;
    if (!found)
        snprintf(why_none, sizeof why_none, "%s", dlerror());
    else if (found->bytes != sizeof *found || found->abi != TF_TOOLS_ABI)
        snprintf(why_none, sizeof why_none, "%s beside libtf-tools is of another version",
                 CORE_FILE);
    else
        core = found;
}

/* Returns the core; NULL with the error set if it is not installed. */
static const struct tf_core *find_core(struct tf_error *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_library);
    if (!core && error) {
        error->code = TF_CONFIG;
        memcpy(error->text, why_none, sizeof why_none);
    }
    return core;
}

uint32_t tf_abi(void)
{
    return find_core(NULL) ? core->abi : 0;
}

const char *tf_version(void)
{
    return find_core(NULL) ? core->version : "";
}

int tf_ops_load(const char *file, struct tf_error *error)
{
    return find_core(error) ? core->ops_load(file, error) : TF_CONFIG;
}

void tf_on_print(void (*print)(const char *line, void *context), void *context)
{
    if (find_core(NULL))
        core->on_print(print, context);
}

tf_graph *tf_graph_open(const char *file, struct tf_error *error)
{
    return find_core(error) ? core->graph_open(file, error) : NULL;
}

tf_graph *tf_graph_read(const void *bytes, size_t n, struct tf_error *error)
{
    return find_core(error) ? core->graph_read(bytes, n, error) : NULL;
}

/* ---- calls that need no check: there is a graph, or nothing to do ---- */

void tf_graph_free(tf_graph *graph)
{
    if (graph)
        core->graph_free(graph);
}

tf_session *tf_session_new(tf_graph *graph, const struct tf_session_options *options,
                           struct tf_error *error)
{
    return find_core(error) ? core->session_new(graph, options, error) : NULL;
}

void tf_session_free(tf_session *session)
{
    if (session)
        core->session_free(session);
}

int tf_session_init(tf_session *session, struct tf_error *error)
{
    return core->session_init(session, error);
}

int tf_session_save(tf_session *session, const char *file, struct tf_error *error)
{
    return core->session_save(session, file, error);
}

int tf_session_restore(tf_session *session, const char *file, struct tf_error *error)
{
    return core->session_restore(session, file, error);
}

int64_t tf_session_step(const tf_session *session)
{
    return core->session_step(session);
}

tf_call *tf_call_prepare(tf_session *session, const char *feeds, const char *fetches,
                         const char *targets, struct tf_error *error)
{
    return find_core(error) ? core->call_prepare(session, feeds, fetches, targets, error) : NULL;
}

void tf_call_free(tf_call *call)
{
    if (call)
        core->call_free(call);
}

int tf_call_feed(tf_call *call, int i, const struct tf_tensor *value, struct tf_error *error)
{
    return core->call_feed(call, i, value, error);
}

int tf_call_feed_strings(tf_call *call, int i, const struct tf_shape *shape,
                         const char *const *texts, const size_t *lengths, struct tf_error *error)
{
    return core->call_feed_strings(call, i, shape, texts, lengths, error);
}

int tf_call_run(tf_call *call, struct tf_error *error)
{
    return core->call_run(call, error);
}

int tf_call_fetches(const tf_call *call)
{
    return core->call_fetches(call);
}

const char *tf_call_fetch_name(const tf_call *call, int i)
{
    return core->call_fetch_name(call, i);
}

int tf_call_fetch(const tf_call *call, int i, struct tf_tensor *value, struct tf_error *error)
{
    return core->call_fetch(call, i, value, error);
}

const char *tf_call_fetch_string(const tf_call *call, int i, int64_t element, size_t *length)
{
    return core->call_fetch_string(call, i, element, length);
}
