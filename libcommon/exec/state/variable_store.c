/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/state/variable.h"

#include <string.h>

#include "base/memory.h"
#include "exec/device/pool.h"
#include "exec/state/files.h"
#include "exec/state/resource_table.h"

struct variable_store {
    struct resource_table resources;
    struct checkpoint_files *files;
    _Atomic(struct outgoing *) outgoing;
    pthread_mutex_t lock; /* guards what follows, and the variables' `next` */
    struct variable *first, *last;
    struct map names; /* -> the newest variable of the name */
    struct variable_watcher *watcher;
};

struct variable_store *variable_store_new(void)
{
    struct variable_store *store = mem_alloc(sizeof *store);
    pthread_mutex_init(&store->lock, NULL);
    resource_table_init(&store->resources);
    return store;
}

static void variable_free(struct variable *v)
{
    tensor_release(&v->value);
    tensor_release(&v->left);
    pool_free(v->pool);
    pthread_mutex_destroy(&v->mutex);
    mem_free((char *)(uintptr_t)v->container);
    mem_free((char *)(uintptr_t)v->name);
    mem_free((char *)(uintptr_t)v->slice.of);
    mem_free(v);
}

void variable_store_free(struct variable_store *store)
{
    if (!store)
        return;
    for (struct variable *v = store->first, *next; v; v = next) {
        next = v->next;
        variable_free(v);
    }
    map_release(&store->names);
    resource_table_release(&store->resources);
    pthread_mutex_destroy(&store->lock);
    mem_free(store);
}

struct resource_table *variable_store_resources(struct variable_store *store)
{
    return &store->resources;
}

static struct variable *find(struct variable_store *store, const char *container, const char *name)
{
    int64_t newest = 0;
    map_get(&store->names, name, &newest);
    struct variable *v = (struct variable *)(intptr_t)newest;
    while (v && strcmp(v->container, container) != 0)
        v = v->same_name;
    return v;
}

/* Also of one that was made when nobody knew of it, and which others may be saving or restoring. */
static void take_slice(struct variable *v, const struct variable *like)
{
    struct variable_slice slice = like->slice;
    if (!slice.of)
        return;
    pthread_mutex_lock(&v->mutex);
    if (!v->slice.of) {
        slice.of = mem_strdup(slice.of);
        v->slice = slice;
    }
    pthread_mutex_unlock(&v->mutex);
}

static struct variable *variable_new(const struct variable *like)
{
    struct variable *v = mem_alloc(sizeof *v);
    v->container = mem_strdup(like->container);
    v->name = mem_strdup(like->name);
    v->type = like->type;
    v->shape = like->shape;
    v->device = like->device;
    pthread_mutex_init(&v->mutex, NULL);
    take_slice(v, like);
    return v;
}

/* Nobody finds it before the watcher has given it its value, which the watcher does without a lock.
 */
static int add(struct variable_store *store, const struct variable *like, struct variable **added,
               struct error *err)
{
    struct variable *v = variable_new(like);
    v->store = store;
    int code = store->watcher ? store->watcher->made(store->watcher, v, err) : 0;
    if (code) {
        variable_free(v);
        return code;
    }
    v->id = store->last ? store->last->id + 1 : 0;
    if (store->last)
        store->last->next = v;
    else
        store->first = v;
    store->last = *added = v;
    int64_t newest = 0;
    map_get(&store->names, v->name, &newest);
    v->same_name = (struct variable *)(intptr_t)newest;
    map_put(&store->names, v->name, (int64_t)(intptr_t)v);
    return 0;
}

int variable_store_get(struct variable_store *store, const struct variable *like,
                       struct variable **variable, struct error *err)
{
    int code = 0;
    pthread_mutex_lock(&store->lock);
    struct variable *v = find(store, like->container, like->name);
    bool differs = v && (v->type != like->type || !shape_compatible(&v->shape, &like->shape));
    if (!v) {
        code = add(store, like, &v, err);
    } else if (differs && v->is_withdrawn) {
        struct variable *before = v;
        code = add(store, like, &v, err); /* the newest of a name is the one that is found */
        before->is_replaced = !code;
    } else if (differs) {
        code = error_set(err, ERR_DATA, "variable '%s' exists as %s, not %s", like->name,
                         shape_text_typed(v->type, &v->shape),
                         shape_text_typed(like->type, &like->shape));
    } else {
        take_slice(v, like);
    }
    pthread_mutex_unlock(&store->lock);
    *variable = v;
    return code;
}

struct variable *variable_store_find(struct variable_store *store, const char *container,
                                     const char *name)
{
    pthread_mutex_lock(&store->lock);
    struct variable *v = find(store, container, name);
    pthread_mutex_unlock(&store->lock);
    return v;
}

struct variable *variable_store_next(struct variable_store *store, const struct variable *variable)
{
    pthread_mutex_lock(&store->lock);
    struct variable *next = variable ? variable->next : store->first;
    while (next && next->is_replaced)
        next = next->next;
    pthread_mutex_unlock(&store->lock);
    return next;
}

void variable_watch(struct variable_store *store, struct variable_watcher *watcher)
{
    pthread_mutex_lock(&store->lock);
    store->watcher = watcher;
    pthread_mutex_unlock(&store->lock);
}

void variable_store_send_from(struct variable_store *store, struct outgoing *outgoing)
{
    atomic_store(&store->outgoing, outgoing);
}

struct outgoing *variable_store_outgoing(const struct variable_store *store)
{
    return atomic_load(&store->outgoing);
}

void variable_store_set_files(struct variable_store *store, struct checkpoint_files *files)
{
    store->files = files;
}

struct checkpoint_files *variable_store_files(struct variable_store *store)
{
    return store->files;
}
