/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/state/variable.h"

#include <string.h>

#include "base/memory.h"
#include "exec/device/pool.h"
#include "exec/state/files.h"
#include "exec/state/resource.h"

struct variable_store {
    struct checkpoint_files *files;
    _Atomic(struct outgoing_memory *) outgoing;
    pthread_mutex_t lock;   /* guards the members below */
    variable_vec variables; /* by id */
    struct map names;       /* -> the newest variable of the name */

    pthread_mutex_t resources_lock; /* guards the members below */
    VEC(struct resource *) resources;
    struct variable_watcher *watcher; /* set with both locks; NULL: nobody */
};

struct variable_store *variable_store_new(void)
{
    struct variable_store *store = mem_alloc(sizeof *store);
    pthread_mutex_init(&store->lock, NULL);
    pthread_mutex_init(&store->resources_lock, NULL);
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
    vec_each(v, &store->variables) {
        variable_free(*v);
    }
    vec_release(&store->variables);
    map_release(&store->names);
    vec_each(at, &store->resources) {
        struct resource *r = *at;
        r->kind->free(r->object);
        mem_free((char *)(uintptr_t)r->container);
        mem_free((char *)(uintptr_t)r->name);
        mem_free(r);
    }
    vec_release(&store->resources);
    pthread_mutex_destroy(&store->resources_lock);
    pthread_mutex_destroy(&store->lock);
    mem_free(store);
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

/* Also for a variable that was made without a slice, which others may be saving or restoring. */
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

/* Makes a variable. Nobody finds it before the watcher has set its value, which needs no lock. */
static int add(struct variable_store *store, const struct variable *like, struct variable **added,
               struct error *err)
{
    struct variable *v = mem_alloc(sizeof *v);
    v->container = mem_strdup(like->container);
    v->name = mem_strdup(like->name);
    v->type = like->type;
    v->shape = like->shape;
    v->is_local = like->is_local;
    v->device = like->device;
    v->store = store;
    pthread_mutex_init(&v->mutex, NULL);
    take_slice(v, like);
    int code = store->watcher ? store->watcher->made(store->watcher, v, err) : 0;
    if (code) {
        variable_free(v);
        return code;
    }
    v->id = (int)store->variables.n;
    vec_push(&store->variables, v);
    *added = v;
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
        code = add(store, like, &v, err); /* a search finds the newest of a name */
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
    size_t at = variable ? (size_t)variable->id + 1 : 0;
    while (at < store->variables.n && store->variables.items[at]->is_replaced)
        at++;
    struct variable *next = at < store->variables.n ? store->variables.items[at] : NULL;
    pthread_mutex_unlock(&store->lock);
    return next;
}

void variable_watch(struct variable_store *store, struct variable_watcher *watcher)
{
    pthread_mutex_lock(&store->lock);
    pthread_mutex_lock(&store->resources_lock);
    store->watcher = watcher;
    pthread_mutex_unlock(&store->resources_lock);
    pthread_mutex_unlock(&store->lock);
}

void variable_store_send_from(struct variable_store *store, struct outgoing_memory *outgoing)
{
    atomic_store(&store->outgoing, outgoing);
}

struct outgoing_memory *variable_store_outgoing(const struct variable_store *store)
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

/* ---- resources ---- */

void *resource_get(struct variable_store *store, const struct resource_kind *kind,
                   const char *container, const char *name)
{
    pthread_mutex_lock(&store->resources_lock);
    struct resource *found = NULL;
    vec_each(r, &store->resources) {
        if (!strcmp((*r)->name, name) && !strcmp((*r)->kind->name, kind->name) &&
            !strcmp((*r)->container, container))
            found = *r;
    }
    if (!found) {
        found = mem_alloc(sizeof *found);
        *found = (struct resource){kind, mem_strdup(container), mem_strdup(name), NULL,
                                   (int)store->resources.n};
        found->object = kind->create(found->name);
        if (store->watcher && store->watcher->made_resource)
            store->watcher->made_resource(store->watcher, found);
        vec_push(&store->resources, found);
    }
    pthread_mutex_unlock(&store->resources_lock);
    return found->object;
}

struct resource *resource_next(struct variable_store *store, const struct resource *resource)
{
    pthread_mutex_lock(&store->resources_lock);
    size_t at = resource ? (size_t)resource->id + 1 : 0;
    struct resource *next = at < store->resources.n ? store->resources.items[at] : NULL;
    pthread_mutex_unlock(&store->resources_lock);
    return next;
}

/* ---- snapshots of resources ---- */

void resource_snapshots_place(struct variable_store *store, struct resource_snapshots *snapshots)
{
    *snapshots = (struct resource_snapshots){0};
    for (int first = 1; first >= 0; first--)
        for (struct resource *r = NULL; (r = resource_next(store, r));)
            if (r->kind->snapshot && r->kind->marked_first == first)
                vec_push(&snapshots->items,
                         ((struct resource_snapshot){r, r->kind->snapshot(r->object)}));
}

void resource_snapshots_release(struct resource_snapshots *snapshots)
{
    for (size_t i = 0; i < snapshots->items.n; i++)
        snapshots->items.items[i].resource->kind->free(snapshots->items.items[i].state);
    vec_release(&snapshots->items);
}

/* ---- saving and restoring resources ---- */

int resource_put(struct resource_sink *sink, const char *part, const struct tensor *value,
                 struct error *err)
{
    struct str name = STR_INIT;
    str_printf(&name, "%s:%s/%s", sink->saved->kind->name, sink->saved->name, part);
    int code = sink->put(sink, sink->saved->container, str_text(&name), value, err);
    str_release(&name);
    return code;
}

int resource_snapshots_save(const struct resource_snapshots *snapshots, struct resource_sink *sink,
                            struct error *err)
{
    int code = 0;
    for (size_t i = 0; !code && i < snapshots->items.n; i++) {
        sink->saved = snapshots->items.items[i].resource;
        code = sink->saved->kind->save(snapshots->items.items[i].state, sink, err);
    }
    return code;
}

bool resource_is_part(const char *name)
{
    return strchr(name, ':') != NULL; /* no node's name has one */
}

int resource_restore(struct variable_store *store, const struct resource_kind *const *kinds,
                     const char *container, const char *name, const struct tensor *value,
                     struct error *err)
{
    const char *colon = strchr(name, ':'), *part = strrchr(name, '/');
    while (colon && *kinds &&
           (strlen((*kinds)->name) != (size_t)(colon - name) ||
            strncmp((*kinds)->name, name, (size_t)(colon - name)) != 0))
        kinds++;
    if (!colon || !*kinds || !part || part < colon)
        return error_set(err, ERR_DATA, "'%s' is no part of a resource", name);
    char *own = mem_strndup(colon + 1, (size_t)(part - colon - 1));
    int code = (*kinds)->restore(resource_get(store, *kinds, container, own), part + 1, value, err);
    mem_free(own);
    return code ? error_prefix(err, "'%s': ", name) : 0;
}
