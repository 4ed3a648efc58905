/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of the public library: a request by names, its feeds and results.
 */
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "ops/api/internal.h"
#include "ops/user/internal.h"

/* ---- preparing ---- */

static int add_feed(tf_call *call, const char *name, struct error *err)
{
    struct edge edge;
    const struct graph *graph = call->request.graph;
    if (graph_parse_edge(graph, name, &edge, err))
        return err->code;
    if (edge.slot == CONTROL_SLOT)
        return error_set(err, ERR_DATA, "feed '%s': not a tensor", name);
    for (size_t i = 0; i < call->feeds.n; i++)
        if (call->feeds.items[i].node == edge.node && call->feeds.items[i].slot == edge.slot)
            return error_set(err, ERR_USAGE, "'%s' is fed twice", name);
    vec_push(&call->feeds, edge);
    return 0;
}

/* Returns the next of several names, separated by commas, which the call keeps; NULL: there is none
 * left. */
static const char *next_name(tf_call *call, const char **names)
{
    const char *first = *names;
    if (!first || !*first)
        return NULL;
    size_t n = strcspn(first, ",");
    *names = first + n + (first[n] == ',');
    return arena_strndup(&call->names, first, n);
}

static int prepare(tf_call *call, const char *feeds, const char *fetches, const char *targets,
                   struct error *err)
{
    pthread_mutex_t *lock = &call->session->graph->lock;
    const char *name;
    int code = 0;
    pthread_mutex_lock(lock);
    while (!code && (name = next_name(call, &feeds)))
        code = add_feed(call, name, err);
    while (!code && (name = next_name(call, &fetches)))
        code = request_fetch(&call->request, name, err);
    while (!code && (name = next_name(call, &targets)))
        code = request_run(&call->request, name, err);
    pthread_mutex_unlock(lock);
    if (!code && !call->request.fetches.n && !call->request.targets.n)
        code = error_set(err, ERR_USAGE, "nothing to fetch or to run");
    if (code)
        return code;
    struct node_list needs = {0};
    struct str text = STR_INIT;
    request_needs(&call->request, call->feeds.items, (int)call->feeds.n, &needs);
    request_print_needs(&text, call->request.graph, &needs);
    if (needs.n)
        error_set(err, ERR_NOINPUT, "not among what is fed: %s", str_text(&text));
    str_release(&text);
    vec_release(&needs);
    return err->code;
}

tf_call *api_call_prepare(tf_session *session, const char *feeds, const char *fetches,
                          const char *targets, struct tf_error *error)
{
    struct error err = ERROR_INIT;
    if (!session) {
        error_set(&err, ERR_USAGE, "there is no session");
        api_fail(&err, error);
        return NULL;
    }
    tf_call *call = mem_alloc(sizeof *call);
    call->session = session;
    call->request.graph = session->graph->joined.graph;
    if (!prepare(call, feeds, fetches, targets, &err)) {
        call->values = mem_array(call->feeds.n + 1, sizeof *call->values);
        call->results = mem_array(call->request.fetches.n + 1, sizeof *call->results);
        const struct plan_request own =
            request_with_feeds(&call->request, call->feeds.items, NULL, call->feeds.n);
        call->handle = session_prepare(call->session->session, &own);
        return call;
    }
    api_call_free(call);
    error_prefix(&err, "%s: ", session->graph->name);
    api_fail(&err, error);
    return NULL;
}

static void forget_results(tf_call *call)
{
    for (size_t i = 0; call->results && i < call->request.fetches.n; i++)
        tensor_release(&call->results[i]);
}

void api_call_free(tf_call *call)
{
    session_handle_free(call->handle);
    forget_results(call);
    for (size_t i = 0; call->values && i < call->feeds.n; i++)
        tensor_release(&call->values[i]);
    mem_free(call->values);
    mem_free(call->results);
    vec_release(&call->feeds);
    request_release(&call->request);
    arena_release(&call->names);
    mem_free(call);
}

/* ---- feeding ---- */

/* Prefixes an error with "digits.tfg: feed 'x': ". */
static int bad_feed(const tf_call *call, int i, struct error *err, struct tf_error *error)
{
    const char *graph = call->session->graph->name;
    if (i >= 0 && (size_t)i < call->feeds.n)
        error_prefix(err, "%s: feed '%s': ", graph,
                     graph_node(call->request.graph, call->feeds.items[i].node)->name);
    else
        error_set(err, ERR_USAGE, "%s: there is no feed %d: there are %zu", graph, i,
                  call->feeds.n);
    return api_fail(err, error);
}

/* Returns the graph's type and shape of a fed value; NULL: there is no such feed. */
static const struct node_output *wanted(const tf_call *call, int i)
{
    if (i < 0 || (size_t)i >= call->feeds.n)
        return NULL;
    struct edge edge = call->feeds.items[i];
    return &graph_node(call->request.graph, edge.node)->outputs[edge.slot];
}

static int check_value(const struct node_output *output, enum dtype type, const struct shape *shape,
                       struct error *err)
{
    if (output->type != type || !shape_compatible(&output->shape, shape))
        return error_set(err, ERR_DATA, "is %s, but is fed %s",
                         shape_text_typed(output->type, &output->shape),
                         shape_text_typed(type, shape));
    return 0;
}

int api_call_feed(tf_call *call, int i, const struct tf_tensor *value, struct tf_error *error)
{
    struct error err = ERROR_INIT;
    struct shape shape;
    const struct node_output *output = wanted(call, i);
    if (!output)
        return bad_feed(call, i, &err, error);
    if (!user_shape_in(&value->shape, true, &shape))
        error_set(&err, ERR_USAGE, "its shape is none");
    else if (value->type == TF_STRING)
        error_set(&err, ERR_USAGE, "strings are fed by tf_call_feed_strings");
    else if (!check_value(output, (enum dtype)value->type, &shape, &err)) {
        enum dtype type = (enum dtype)value->type;
        int64_t bytes = shape_bytes(&shape, type);
        size_t one = dtype_bytes(type) == 8 && type == COMPLEX64 ? 4 : dtype_bytes(type);
        if (bytes < 0 || (size_t)bytes != value->bytes)
            error_set(&err, ERR_USAGE, "%s takes %" PRId64 " bytes, not %zu",
                      shape_text_typed(type, &shape), bytes, value->bytes);
        else if (bytes && (!value->data || (uintptr_t)value->data % one))
            error_set(&err, ERR_USAGE, "its elements are %s",
                      value->data ? "not aligned" : "not given");
    }
    if (err.code)
        return bad_feed(call, i, &err, error);
    tensor_release(&call->values[i]);
    call->values[i] =
        tensor_borrow((enum dtype)value->type, &shape, (void *)(uintptr_t)value->data);
    return 0;
}

int api_call_feed_strings(tf_call *call, int i, const struct tf_shape *shape,
                          const char *const *texts, const size_t *lengths, struct tf_error *error)
{
    struct error err = ERROR_INIT;
    struct shape own;
    struct tensor value = TENSOR_INIT;
    const struct node_output *output = wanted(call, i);
    if (!output)
        return bad_feed(call, i, &err, error);
    if (!user_shape_in(shape, true, &own))
        error_set(&err, ERR_USAGE, "its shape is none");
    else if (!check_value(output, STRING, &own, &err))
        tensor_from_strings(&value, &own, texts, lengths, &err);
    if (err.code)
        return bad_feed(call, i, &err, error);
    tensor_release(&call->values[i]);
    call->values[i] = value;
    return 0;
}

/* ---- running ---- */

int api_call_run(tf_call *call, struct tf_error *error)
{
    struct error err = ERROR_INIT;
    forget_results(call);
    for (size_t i = 0; i < call->feeds.n && !err.code; i++)
        if (call->values[i].type == DTYPE_INVALID)
            error_set(&err, ERR_NOINPUT, "%s: not fed",
                      node_text(graph_node(call->request.graph, call->feeds.items[i].node)));
    if (!err.code) {
        struct step step = {.number = atomic_fetch_add(&call->session->step, 1) + 1,
                            .seed = call->session->seed};
        if (!session_run_prepared(call->handle, call->values, &step, call->results, &err))
            return 0;
        error_prefix(&err, "step %" PRId64 ": ", step.number);
    }
    memset(call->results, 0, call->request.fetches.n * sizeof *call->results);
    error_prefix(&err, "%s: ", call->session->graph->name);
    return api_fail(&err, error);
}

/* ---- fetching ---- */

int api_call_fetches(const tf_call *call)
{
    return (int)call->request.fetches.n;
}

static bool has_fetch(const tf_call *call, int i)
{
    return i >= 0 && (size_t)i < call->request.fetches.n;
}

const char *api_call_fetch_name(const tf_call *call, int i)
{
    return has_fetch(call, i) ? call->request.names.items[i] : NULL;
}

int api_call_fetch(const tf_call *call, int i, struct tf_tensor *value, struct tf_error *error)
{
    struct error err = ERROR_INIT;
    const char *graph = call->session->graph->name;
    if (!has_fetch(call, i))
        error_set(&err, ERR_USAGE, "%s: there is no fetch %d: there are %zu", graph, i,
                  call->request.fetches.n);
    else if (call->results[i].type == DTYPE_INVALID)
        error_set(&err, ERR_USAGE, "%s: '%s' has no value: no step was run that gave it one", graph,
                  call->request.names.items[i]);
    if (err.code)
        return api_fail(&err, error);
    const struct tensor *result = &call->results[i];
    *value = (struct tf_tensor){.type = (int32_t)result->type,
                                .shape = user_shape_out(&result->shape),
                                .data = result->type == STRING ? NULL : result->data,
                                .bytes = tensor_bytes(result)};
    return 0;
}

const char *api_call_fetch_string(const tf_call *call, int i, int64_t element, size_t *length)
{
    const char *text = NULL;
    *length = 0;
    if (has_fetch(call, i) && call->results[i].type == STRING && element >= 0 &&
        element < tensor_count(&call->results[i]))
        tensor_string(&call->results[i], element, &text, length);
    return text;
}
