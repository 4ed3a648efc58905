/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that are made again and again: what they need is looked for once.
 */
#include <string.h>

#include "base/memory.h"
#include "exec/session/session_private.h"

struct session_handle {
    struct session *session;
    struct session_call call;
    struct cached *plans; /* of the last step; NULL: none */
    enum dtype *types;    /* of its feeds, */
    struct shape *shapes; /* and theirs */
};

static void *copy_of(const void *items, int n, size_t size)
{
    char *copy = mem_array((size_t)n + 1, size);
    if (n)
        memcpy(copy, items, (size_t)n * size);
    return copy;
}

struct session_handle *session_prepare(struct session *session, const struct session_call *call)
{
    struct session_handle *handle = mem_alloc(sizeof *handle);
    handle->session = session;
    handle->call = *call;
    handle->call.feeds = copy_of(call->feeds, call->n_feeds, sizeof *call->feeds);
    handle->call.fetches = copy_of(call->fetches, call->n_fetches, sizeof *call->fetches);
    handle->call.targets = copy_of(call->targets, call->n_targets, sizeof *call->targets);
    handle->types = mem_array((size_t)call->n_feeds + 1, sizeof *handle->types);
    handle->shapes = mem_array((size_t)call->n_feeds + 1, sizeof *handle->shapes);
    return handle;
}

static void let_go(struct session_handle *handle)
{
    if (handle->plans)
        session_give_back(handle->plans);
    handle->plans = NULL;
}

int session_run_prepared(struct session_handle *handle, const struct tensor *feeds,
                         struct step *step, struct tensor *fetches, struct error *err)
{
    bool is_as_before = handle->plans != NULL;
    for (int i = 0; is_as_before && i < handle->call.n_feeds; i++)
        is_as_before =
            feeds[i].type == handle->types[i] && shape_equal(&feeds[i].shape, &handle->shapes[i]);
    if (!is_as_before) {
        let_go(handle);
        handle->call.feed_values = feeds;
        handle->plans = session_acquire(handle->session, &handle->call, step, err);
        for (int i = 0; i < handle->call.n_feeds; i++) {
            handle->types[i] = feeds[i].type;
            handle->shapes[i] = feeds[i].shape;
        }
    }
    if (!handle->plans)
        return err->code;
    return plan_set_run(handle->plans->set, step, feeds, fetches, err);
}

void session_handle_free(struct session_handle *handle)
{
    if (!handle)
        return;
    let_go(handle);
    mem_free((void *)(uintptr_t)handle->call.feeds);
    mem_free((void *)(uintptr_t)handle->call.fetches);
    mem_free((void *)(uintptr_t)handle->call.targets);
    mem_free(handle->types);
    mem_free(handle->shapes);
    mem_free(handle);
}
