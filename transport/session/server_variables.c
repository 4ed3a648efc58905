/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables of a session's graph, read and written whole, for drivers that save and restore. To
 * wait for steps that have a variable locked each request has a thread of its own: they are few.
 */
#include <string.h>

#include "base/memory.h"
#include "base/thread.h"
#include "exec/state/saver.h"
#include "graph/device_name.h"
#include "transport/session/server_private.h"

struct variable_access {
    struct served_session *served; /* held */
    struct peer *asker;            /* held */
    uint64_t query;
    const struct node *node;
    struct device *device;
    bool writes;
    int64_t updates;
    struct tensor value;
};

static void access_free(struct variable_access *access)
{
    served_drop(access->served);
    peer_release(access->asker);
    tensor_release(&access->value);
    mem_free(access);
}

static void reply_value(const struct variable_access *access, const struct saved_variable *saved)
{
    struct named_tensor named = {"", saved->value};
    msgpack_packer *packer = reply_begin(access->asker, access->query, 1);
    if (!packer)
        return;
    pack_key_int(packer, "updates", saved->updates);
    reply_end(access->asker, &named, saved->value.type != DTYPE_INVALID);
}

static void *run_access(void *argument)
{
    struct variable_access *access = argument;
    struct variable_store *store = access->served->server->options.variables;
    struct saved_variable saved = {
        .node = access->node, .updates = access->updates, .value = access->value};
    struct error err = ERROR_INIT;
    if (access->writes ? variable_put(store, &saved, access->device, &err)
                       : variable_take(store, &saved, &err))
        reply_error(access->asker, access->query, &err);
    else if (access->writes)
        reply_done(access->asker, access->query);
    else
        reply_value(access, &saved);
    if (!access->writes)
        tensor_release(&saved.value);
    access_free(access);
    return NULL;
}

/* The device that the node is on; NULL: not of this task. */
static struct device *device_of(const struct server *server, const struct node *node)
{
    struct error ignored = ERROR_INIT;
    struct device_name name;
    if (device_name_parse(&name, node->assigned, &ignored))
        return NULL;
    for (int i = 0; i < server->options.n_devices; i++) {
        struct device *device = server->options.devices[i];
        if (!strcmp(device->type, name.type) && device->index == name.index)
            return device;
    }
    return NULL;
}

static int read_query(struct variable_access *access, const struct query *query, struct error *err)
{
    const struct record *record = query->record;
    const char *named = record_text(&record->header, "name"), *name = named ? named : "";
    record_get_int(&record->header, "updates", &access->updates);
    access->node = graph_find(access->served->graph, name);
    if (!access->node || !node_is(access->node, "Variable"))
        error_set(err, ERR_PROTOCOL, "there is no variable '%.200s' in the session", name);
    else if (!(access->device = device_of(access->served->server, access->node)))
        error_set(err, ERR_CONFIG, "there is no device '%s' here", access->node->assigned);
    else if (record->n_tensors != access->writes)
        error_set(err, ERR_PROTOCOL, "%d values for '%.200s'", record->n_tensors, name);
    return err->code;
}

static void start_access(struct server *server, const struct query *query, bool writes)
{
    struct served_session *served = server_find(server, query, SERVED_ASKED);
    struct error err = ERROR_INIT;
    pthread_t thread;
    if (!served)
        return;
    struct variable_access *access = mem_alloc(sizeof *access);
    *access = (struct variable_access){
        .served = served, .asker = peer_retain(query->peer), .query = query->id, .writes = writes};
    served_retain(served);
    int code = read_query(access, query, &err);
    if (!code && writes)
        tensor_share(&access->value, &query->record->tensors[0].tensor);
    if (!code && thread_start(&thread, run_access, access))
        code = error_set(&err, ERR_OS, "cannot start a thread");
    if (!code) {
        pthread_detach(thread);
        return;
    }
    reply_error(query->peer, query->id, &err);
    access_free(access);
}

void server_verb_read(void *context, const struct query *query)
{
    start_access(context, query, false);
}

void server_verb_write(void *context, const struct query *query)
{
    start_access(context, query, true);
}
