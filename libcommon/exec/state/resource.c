/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/state/resource.h"

#include <string.h>

#include "base/memory.h"
#include "exec/state/resource_table.h"

static struct resource *find(const struct resource_table *table, const char *kind,
                             const char *container, const char *name)
{
    for (struct resource *r = table->first; r; r = r->next)
        if (!strcmp(r->name, name) && !strcmp(r->kind->name, kind) &&
            !strcmp(r->container, container))
            return r;
    return NULL;
}

void *resource_get(struct variable_store *store, const struct resource_kind *kind,
                   const char *container, const char *name)
{
    struct resource_table *table = variable_store_resources(store);
    pthread_mutex_lock(&table->lock);
    struct resource *r = find(table, kind->name, container, name);
    if (!r) {
        r = mem_alloc(sizeof *r);
        r->kind = kind;
        r->container = mem_strdup(container);
        r->name = mem_strdup(name);
        r->object = kind->create(r->name);
        if (table->watcher)
            table->watcher->made(table->watcher, r);
        if (table->last)
            table->last->next = r;
        else
            table->first = r;
        table->last = r;
    }
    pthread_mutex_unlock(&table->lock);
    return r->object;
}

void resource_watch(struct variable_store *store, struct resource_watcher *watcher)
{
    struct resource_table *table = variable_store_resources(store);
    pthread_mutex_lock(&table->lock);
    table->watcher = watcher;
    pthread_mutex_unlock(&table->lock);
}

struct resource *resource_next(struct variable_store *store, const struct resource *resource)
{
    struct resource_table *table = variable_store_resources(store);
    pthread_mutex_lock(&table->lock);
    struct resource *next = resource ? resource->next : table->first;
    pthread_mutex_unlock(&table->lock);
    return next;
}

void resource_table_init(struct resource_table *table)
{
    pthread_mutex_init(&table->lock, NULL);
}

void resource_table_release(struct resource_table *table)
{
    for (struct resource *r = table->first, *next; r; r = next) {
        next = r->next;
        r->kind->free(r->object);
        mem_free((char *)(uintptr_t)r->container);
        mem_free((char *)(uintptr_t)r->name);
        mem_free(r);
    }
    pthread_mutex_destroy(&table->lock);
}

/* ---- marks ---- */

static void mark_kinds(struct variable_store *store, bool first, struct resource_marks *marks)
{
    for (struct resource *r = NULL; (r = resource_next(store, r));)
        if (r->kind->mark && r->kind->marked_first == first)
            vec_push(&marks->items, ((struct resource_mark){r, r->kind->mark(r->object)}));
}

void resource_marks_place(struct variable_store *store, struct resource_marks *marks)
{
    *marks = (struct resource_marks){0};
    mark_kinds(store, true, marks);
    mark_kinds(store, false, marks);
}

void resource_marks_release(struct resource_marks *marks)
{
    for (size_t i = 0; i < marks->items.n; i++)
        marks->items.items[i].resource->kind->free_mark(marks->items.items[i].state);
    vec_release(&marks->items);
}

/* ---- saving ---- */

struct named_sink {
    struct resource_sink sink; /* first */
    struct resource_writer *writer;
    const struct resource *resource;
};

static int put(struct resource_sink *sink, const char *part, const struct tensor *value,
               struct error *err)
{
    struct named_sink *to = (struct named_sink *)sink;
    struct str name = STR_INIT;
    str_printf(&name, "%s:%s/%s", to->resource->kind->name, to->resource->name, part);
    int code = to->writer->put(to->writer, to->resource->container, str_text(&name), value, err);
    str_release(&name);
    return code;
}

int resource_marks_save(const struct resource_marks *marks, struct resource_writer *writer,
                        struct error *err)
{
    int code = 0;
    for (size_t i = 0; !code && i < marks->items.n; i++) {
        const struct resource_mark *mark = &marks->items.items[i];
        struct named_sink to = {{put}, writer, mark->resource};
        code = mark->resource->kind->save(mark->state, &to.sink, err);
    }
    return code;
}

bool resource_is_part(const char *name)
{
    return strchr(name, ':') != NULL; /* which no name of a node has */
}

static const struct resource_kind *find_kind(const struct resource_kind *const *kinds,
                                             const char *name, size_t n)
{
    for (; *kinds; kinds++)
        if (strlen((*kinds)->name) == n && !strncmp((*kinds)->name, name, n))
            return *kinds;
    return NULL;
}

int resource_restore(struct variable_store *store, const struct resource_kind *const *kinds,
                     const char *container, const char *name, const struct tensor *value,
                     struct error *err)
{
    const char *colon = strchr(name, ':'), *part = strrchr(name, '/');
    const struct resource_kind *kind =
        colon ? find_kind(kinds, name, (size_t)(colon - name)) : NULL;
    if (!kind || !part || part < colon)
        return error_set(err, ERR_DATA, "'%s' is no part of a resource", name);
    char *own = mem_strndup(colon + 1, (size_t)(part - colon - 1));
    int code = kind->restore(resource_get(store, kind, container, own), part + 1, value, err);
    mem_free(own);
    return code ? error_prefix(err, "'%s': ", name) : 0;
}
