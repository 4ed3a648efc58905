/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/restore.h"

#include <string.h>

#include "base/memory.h"
#include "exec/aggregate.h"
#include "exec/resource.h"

int restore_check_names(const struct restore_names *names, struct error *err)
{
    for (size_t i = 0; i < names->n; i++) {
        const char *pair = names->pairs[i], *equals = strchr(pair, '=');
        if (!equals || equals == pair || !equals[1] ||
            (equals[-1] == '/') != (equals[strlen(equals) - 1] == '/'))
            return error_set(err, ERR_USAGE, "'%s' maps no names; NEW=OLD or NEW/=OLD/", pair);
    }
    return 0;
}

/* What a variable is called in the checkpoint. */
static const char *old_name(const struct restore_names *names, const char *name,
                            struct arena *arena)
{
    for (size_t i = 0; i < names->n; i++) {
        const char *pair = names->pairs[i], *old = strchr(pair, '=') + 1;
        size_t n = (size_t)(old - 1 - pair);
        if (strncmp(name, pair, n) != 0)
            continue;
        if (pair[n - 1] == '/')
            return arena_printf(arena, "%s%s", old, name + n);
        if (!name[n])
            return old;
    }
    return name;
}

/* Finds it, without reading. */
static int find_one(const struct checkpoint *c, const struct variable *like, const char *name,
                    int *i, struct error *err)
{
    *i = checkpoint_find(c, like->container, name);
    if (*i < 0)
        return error_set(err, ERR_DATA, "%s: variable '%s' is not in it", c->name, name);
    const struct manifest_tensor *t = c->entries.items[*i].tensor;
    if (t->type != like->type || !shape_compatible(&t->shape, &like->shape))
        return error_set(err, ERR_DATA, "%s: variable '%s' is %s there, but %s in the graph",
                         c->name, name, shape_text_typed(t->type, &t->shape),
                         shape_text_typed(like->type, &like->shape));
    return 0;
}

/* All that the graph wants of the checkpoint, or, with `saved` NULL, whether it fits. */
static int load(struct checkpoint *c, const struct graph *graph, const struct restore_names *names,
                saved_variables *saved, struct error *err)
{
    struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < graph->nodes.n && !err->code; i++) {
        struct saved_variable one = {.node = graph_node(graph, (int)i)};
        int at;
        if (!node_is(one.node, "Variable"))
            continue;
        struct variable like = variable_of_node(one.node, NULL);
        if (find_one(c, &like, old_name(names, like.name, &arena), &at, err) || !saved)
            continue;
        one.updates = (int64_t)c->entries.items[at].tensor->updates;
        if (!checkpoint_read(c, at, &one.value, err))
            vec_push(saved, one);
    }
    arena_release(&arena);
    return err->code;
}

int checkpoint_load(struct checkpoint *c, const struct graph *graph,
                    const struct restore_names *names, saved_variables *saved, struct error *err)
{
    error_clear(err);
    return load(c, graph, names, NULL, err) ? err->code : load(c, graph, names, saved, err);
}

static int apply(const struct restore_request *request, const saved_variables *saved,
                 struct error *err)
{
    for (size_t i = 0; i < saved->n; i++)
        if (variable_put(request->variables, &saved->items[i], request->device, err))
            return err->code;
    return 0;
}

/* What aggregates updates and counts workers, where there is such. */
static int load_resources(struct checkpoint *c, struct variable_store *variables, struct error *err)
{
    static const struct resource_kind *const kinds[] = {&clock_kind, &aggregator_kind, NULL};
    for (size_t i = 0; i < c->entries.n; i++) {
        const struct manifest_tensor *t = c->entries.items[i].tensor;
        struct tensor value;
        if (!resource_is_part(t->name))
            continue;
        if (checkpoint_read(c, (int)i, &value, err))
            return err->code;
        if (resource_load(variables, kinds, t->container, t->name, &value, err))
            error_prefix(err, "%s: ", c->name);
        tensor_release(&value);
        if (err->code)
            return err->code;
    }
    return 0;
}

static int restore_step(struct store *store, int64_t step, const struct restore_request *request,
                        struct restored *restored, struct error *err)
{
    struct checkpoint *c;
    saved_variables saved = VEC_INIT;
    struct error passed_over = ERROR_INIT;
    if (checkpoint_open(store, step, &c, &passed_over, err))
        return err->code;
    restored->step = c->manifest.step;
    if (!restored->passed_over.code)
        restored->passed_over = passed_over;
    restored->fits = !load(c, request->graph, &request->names, NULL, err);
    if (restored->fits && !load(c, request->graph, &request->names, &saved, err) &&
        !load_resources(c, request->variables, err))
        apply(request, &saved, err);
    saved_release(&saved);
    checkpoint_close(c);
    return err->code;
}

/* The ones before the newest, until one is intact. */
static int restore_older(struct store *store, const struct restore_request *request,
                         struct restored *restored, struct error *err)
{
    manifest_vec all;
    struct error damaged = ERROR_INIT, first = *err, other = ERROR_INIT;
    bool found = false;
    if (store_manifests(store, &all, &damaged, &other))
        return err->code;
    restored->passed_over = first;
    for (size_t i = all.n; i-- > 0 && !found;) {
        error_clear(&other);
        found = !restore_step(store, all.items[i].step, request, restored, &other);
    }
    manifests_release(&all);
    if (found)
        error_clear(err);
    else
        *err = first;
    return err->code;
}

int store_restore(struct store *store, int64_t step, const struct restore_request *request,
                  struct restored *restored, struct error *err)
{
    *restored = (struct restored){0};
    error_clear(err);
    int code = restore_step(store, step, request, restored, err);
    if (step != CHECKPOINT_NEWEST || !restored->fits || (code != ERR_DATA && code != ERR_IO))
        return code; /* a graph that does not fit is no damage */
    return restore_older(store, request, restored, err);
}
