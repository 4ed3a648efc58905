/* SPDX-License-Identifier: Apache-2.0
 *
 * Restores what fits a graph from a checkpoint, such as layers shared with another model.
 */

#include "base/log.h"
#include "checkpoint/formats/source.h"
#include "checkpoint/variables/restore.h"

struct partial {
    const struct restore_request *request;
    struct source source;
    struct name_index index;
    saved_variables saved;
    struct map wanted; /* "CONTAINER NAME" of variables and their wholes, as named in the source */
    struct arena arena;
};

static const char *key(struct partial *p, const char *container, const char *name)
{
    return arena_printf(&p->arena, "%s %s", container, name);
}

int restore_partial(const char *name, const struct restore_request *request, struct error *err)
{
    struct partial p = {.request = request};
    if (source_open(name, &p.source, err))
        return err->code;
    if (p.source.passed_over.code)
        log_tell(request->left, request->context, "%s", p.source.passed_over.text);
    source_drop_resources(&p.source);
    const struct graph *graph = p.request->graph;
    struct source_parts all =
        source_as_parts(&p.source, p.source.tensors.items, p.source.tensors.n);
    all.parts.from = arena_printf(&p.arena, "%.400s: not restored", p.source.name);
    saved_parts_index(&all.parts, &p.index);
    all.parts.index = &p.index;
    for (size_t i = 0; i < graph->nodes.n && !err->code; i++)
        if (node_is(graph_node(graph, (int)i), "Variable")) {
            const struct node *node = graph_node(graph, (int)i);
            const struct variable like = restore_variable(node, &p.request->names, &p.arena);
            struct saved_variable one = {.node = node};
            uint64_t updates;
            map_put(&p.wanted, key(&p, like.container, like.name), 0);
            if (like.slice.of)
                map_put(&p.wanted, key(&p, like.container, like.slice.of), 0);
            if (saved_parts_read(&all.parts, &like, NULL, NULL, err)) {
                if (err->code == ERR_DATA || err->code == ERR_NOINPUT) { /* it does not fit */
                    log_tell(request->left, request->context, "%s", err->text);
                    error_clear(err);
                }
            } else if (!saved_parts_read(&all.parts, &like, &one.value, &updates, err)) {
                one.updates = (int64_t)updates;
                vec_push(&p.saved, one);
            }
        }
    if (!err->code) {
        /* Reports tensors that the graph has no variable for, under the names of their wholes. */
        struct error ignored = ERROR_INIT;
        source_join_slices(&p.source, &ignored);
        for (size_t i = 0; i < p.source.tensors.n; i++) {
            const struct source_tensor *t = &p.source.tensors.items[i];
            if (!map_get(&p.wanted, key(&p, t->saved.container, t->saved.name), NULL) &&
                (!t->saved.slice.of ||
                 !map_get(&p.wanted, key(&p, t->saved.container, t->saved.slice.of), NULL)))
                log_tell(request->left, request->context, "%s: '%s' is not in the graph",
                         all.parts.from, source_outer_name(&p.source, i));
        }
    }
    if (!err->code && !p.saved.n)
        error_set(err, ERR_DATA, "%s: none of its variables fits the graph", p.source.name);
    for (size_t i = 0; i < p.saved.n && !err->code; i++)
        variable_put(request->variables, &p.saved.items[i], request->device, err);
    saved_release(&p.saved);
    map_release(&p.wanted);
    name_index_release(&p.index);
    source_close(&p.source);
    arena_release(&p.arena);
    return err->code;
}
