/* SPDX-License-Identifier: Apache-2.0
 *
 * Of a checkpoint what fits a graph: to go on with another model that has some of its layers.
 */
#include <string.h>

#include "base/memory.h"
#include "checkpoint/formats/source.h"
#include "checkpoint/variables/restore.h"

struct partial {
    const struct restore_request *request;
    struct source source;
    bool *used; /* of each tensor of the source */
    saved_variables saved;
    struct arena arena;
};

static void leave(const struct partial *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void leave(const struct partial *p, const char *format, ...)
{
    char line[ERROR_TEXT_BYTES];
    size_t n = (size_t)snprintf(line, sizeof line, "%.400s: not restored: ", p->source.name);
    va_list args;
    va_start(args, format);
    vsnprintf(line + n, sizeof line - n, format, args);
    va_end(args);
    if (p->request->left)
        p->request->left(p->request->context, line);
}

static bool has_slices(const struct graph *graph)
{
    bool found = false;
    for (size_t i = 0; i < graph->nodes.n && !found; i++) {
        const struct node *node = graph_node(graph, (int)i);
        found = node_is(node, "Variable") && variable_of_node(node, NULL).slice.of;
    }
    return found;
}

/* -1: there is none. */
static int find(const struct source *source, const struct variable *like)
{
    for (size_t i = 0; i < source->tensors.n; i++)
        if (!strcmp(source->tensors.items[i].name, like->name) &&
            !strcmp(source->tensors.items[i].container, like->container))
            return (int)i;
    return -1;
}

static int take(struct partial *p, const struct node *node, struct error *err)
{
    const struct variable like = restore_variable(node, &p->request->names, &p->arena);
    struct saved_variable one = {.node = node};
    int i = find(&p->source, &like);
    if (i < 0) {
        leave(p, "variable '%s' is not in it", like.name);
        return 0;
    }
    const struct source_tensor *t = &p->source.tensors.items[i];
    p->used[i] = true;
    if (t->type != like.type || !shape_compatible(&t->shape, &like.shape)) {
        leave(p, "variable '%s' is %s there, but %s in the graph", like.name,
              shape_text_typed(t->type, &t->shape), shape_text_typed(like.type, &like.shape));
        return 0;
    }
    if (source_read(&p->source, (size_t)i, &one.value, err))
        return err->code;
    one.updates = (int64_t)t->updates;
    vec_push(&p->saved, one);
    return 0;
}

static int take_all(struct partial *p, struct error *err)
{
    const struct graph *graph = p->request->graph;
    p->used = arena_array(&p->arena, p->source.tensors.n + 1, sizeof *p->used);
    for (size_t i = 0; i < graph->nodes.n && !err->code; i++)
        if (node_is(graph_node(graph, (int)i), "Variable"))
            take(p, graph_node(graph, (int)i), err);
    for (size_t i = 0; i < p->source.tensors.n && !err->code; i++)
        if (!p->used[i])
            leave(p, "'%s' is not in the graph", source_outer_name(&p->source, i));
    if (!err->code && !p->saved.n)
        error_set(err, ERR_DATA, "%s: none of its variables fits the graph", p->source.name);
    return err->code;
}

int restore_partial(const char *name, const struct restore_request *request, struct error *err)
{
    struct partial p = {.request = request};
    if (source_open(name, &p.source, err))
        return err->code;
    if (p.source.passed_over.code && request->left)
        request->left(request->context, p.source.passed_over.text);
    source_drop_resources(&p.source);
    if (!has_slices(request->graph))
        source_join_slices(&p.source);
    take_all(&p, err);
    for (size_t i = 0; i < p.saved.n && !err->code; i++)
        variable_put(request->variables, &p.saved.items[i], request->device, err);
    saved_release(&p.saved);
    source_close(&p.source);
    arena_release(&p.arena);
    return err->code;
}
