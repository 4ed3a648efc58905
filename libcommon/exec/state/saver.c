/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/state/saver.h"

#include <string.h>

#include "base/container_of.h"
#include "exec/device/device.h"
#include "exec/state/resource.h"
#include "exec/state/saved_parts.h"
#include "graph/holders.h"
#include "graph/marks.h"
#include "graph/worker_attr.h"

/* The offset is a row of the whole, or one number for each axis. */
static struct variable_slice slice_of_node(const struct node *node)
{
    const struct attr_value *of = node_attr(node, SLICE_OF), *shape = node_attr(node, SLICE_SHAPE),
                            *offset = node_attr(node, SLICE_OFFSET);
    struct variable_slice slice = {.of = NULL};
    if (!of || !shape || !offset || of->kind != ATTR_STRING || shape->kind != ATTR_SHAPE ||
        shape->shape->rank < 1)
        return slice;
    const struct shape *whole = shape->shape, *part = &node->outputs[0].shape;
    bool is_list = offset->kind == ATTR_LIST_INT && offset->n == whole->rank;
    if ((!is_list && offset->kind != ATTR_INT) || part->rank != whole->rank)
        return slice;
    slice = (struct variable_slice){
        .of = of->s, .rows = whole->dims[0], .first = is_list ? offset->ints[0] : offset->i};
    for (int i = 1; is_list && i < whole->rank; i++)
        if (part->dims[i] != whole->dims[i])
            slice.axes[i] = (struct slice_axis){whole->dims[i], offset->ints[i]};
    return slice;
}

struct variable variable_of_node(const struct node *node, struct device *device)
{
    const char *container = node_string(node, "container");
    const char *shared = node_string(node, "shared_name");
    struct variable_slice slice = slice_of_node(node);
    return (struct variable){.container = *container ? container : DEFAULT_CONTAINER,
                             .name = *shared ? shared : node->name,
                             .type = node->outputs[0].type,
                             .shape = node->outputs[0].shape,
                             .slice = slice,
                             .is_local = node_attr(node, WORKER_LOCAL) != NULL,
                             .device = device};
}

/* ---- saving ---- */

int variable_write(const struct saved_variable *saved, int64_t step, struct stream_writer *writer,
                   struct error *err)
{
    struct variable like = variable_of_node(saved->node, NULL);
    const struct variable_record record = {like.container,           like.name, saved->value,
                                           (uint64_t)saved->updates, step,      like.slice};
    return stream_write_variable(writer, &record, err);
}

int variable_take(struct variable_store *store, struct saved_variable *saved, struct error *err)
{
    struct variable like = variable_of_node(saved->node, NULL);
    struct variable *variable = variable_store_find(store, like.container, like.name);
    int code = 0;
    saved->value = (struct tensor)TENSOR_INIT;
    if (!variable)
        return 0;
    variable_lock_wait(variable, false);
    saved->updates = (int64_t)variable->updates;
    if (variable->initialized)
        code = variable_get_value(variable, &saved->value, err);
    variable_unlock(variable, false);
    return code;
}

int variables_save(struct variable_store *store, int64_t step, struct stream_writer *writer,
                   struct error *err)
{
    error_clear(err);
    struct variable *v = NULL;
    while (!err->code && (v = variable_store_next(store, v))) {
        variable_lock_wait(v, false);
        struct variable_record record = {v->container, v->name, TENSOR_INIT,
                                         v->updates,   step,    variable_get_slice(v)};
        if (v->initialized && !variable_get_value(v, &record.value, err))
            stream_write_variable(writer, &record, err);
        tensor_release(&record.value);
        variable_unlock(v, false);
    }
    return err->code;
}

const struct node *variables_find_lacking(struct variable_store *store, const struct graph *graph,
                                          size_t *at)
{
    while (*at < graph->nodes.n) {
        const struct node *node = graph_node(graph, (int)(*at)++);
        if (!holders_must_save(node))
            continue;
        const struct variable like = variable_of_node(node, NULL);
        struct variable *variable = variable_store_find(store, like.container, like.name);
        if (!variable)
            return node;
        variable_lock_wait(variable, false);
        bool has_value = variable->initialized;
        variable_unlock(variable, false);
        if (!has_value)
            return node;
    }
    return NULL;
}

int variables_check_all(struct variable_store *store, const struct graph *graph, struct error *err)
{
    size_t at = 0;
    const struct node *lacks = variables_find_lacking(store, graph, &at);
    return lacks ? error_set(err, ERR_DATA, "nothing saved: %s has no value", node_text(lacks)) : 0;
}

/* ---- restoring ---- */

struct saved_stream { /* the whole contents of a stream */
    struct saved_parts parts;
    struct name_index index;
    variable_records records;
    struct arena arena;
};

static const struct saved_stream *stream_of(const struct saved_parts *parts)
{
    return CONTAINER_OF(parts, const struct saved_stream, parts);
}

static struct saved_part part_at(const struct saved_parts *parts, size_t i)
{
    const struct variable_record *record = &stream_of(parts)->records.items[i];
    return (struct saved_part){.container = record->container,
                               .name = record->name,
                               .type = record->value.type,
                               .shape = &record->value.shape,
                               .slice = &record->slice,
                               .updates = record->updates};
}

static int read_part(const struct saved_parts *parts, size_t i, struct tensor *value,
                     struct error *err)
{
    (void)err;
    tensor_share(value, &stream_of(parts)->records.items[i].value);
    return 0;
}

int saved_parts_load(const struct saved_parts *parts, const struct load_request *wanted,
                     saved_variables *saved, struct error *err)
{
    error_clear(err);
    for (size_t i = 0; i < wanted->graph->nodes.n && !err->code; i++) {
        struct saved_variable one = {.node = graph_node(wanted->graph, (int)i)};
        uint64_t updates;
        if (!node_is(one.node, "Variable"))
            continue;
        const struct variable like = wanted->like ? wanted->like(wanted->context, one.node)
                                                  : variable_of_node(one.node, NULL);
        int code = saved_parts_read(parts, &like, saved ? &one.value : NULL, &updates, err);
        bool is_missing = code == ERR_NOINPUT;
        if (is_missing && wanted->may_lack && wanted->may_lack(wanted->context, one.node)) {
            error_clear(err);
        } else if (is_missing) {
            err->code = ERR_DATA;
        } else if (!code && saved) {
            one.updates = (int64_t)updates;
            vec_push(saved, one);
        }
    }
    return err->code;
}

int variables_load(const struct load_request *wanted, struct stream_reader *reader,
                   saved_variables *saved, int64_t *step, struct error *err)
{
    struct saved_stream all = {0};
    int code = stream_read_variables(reader, &all.arena, &all.records, err);
    all.parts =
        (struct saved_parts){stream_reader_name(reader), all.records.n, part_at, read_part, NULL};
    saved_parts_index(&all.parts, &all.index);
    all.parts.index = &all.index;
    code = code ? code : saved_parts_load(&all.parts, wanted, saved, err);
    for (size_t i = 0; !code && wanted->part && i < all.records.n; i++)
        if (resource_is_part(all.records.items[i].name))
            code = wanted->part(wanted->context, &all.records.items[i], err);
    if (!code && all.records.n)
        *step = all.records.items[all.records.n - 1].step;
    for (size_t i = 0; i < all.records.n; i++)
        tensor_release(&all.records.items[i].value);
    name_index_release(&all.index);
    vec_release(&all.records);
    arena_release(&all.arena);
    return code;
}

void saved_release(saved_variables *saved)
{
    for (size_t i = 0; i < saved->n; i++)
        tensor_release(&saved->items[i].value);
    vec_release(saved);
}

int variable_put(struct variable_store *store, const struct saved_variable *saved,
                 struct device *device, struct error *err)
{
    struct variable like = variable_of_node(saved->node, device), *variable;
    if (saved->value.type != like.type)
        return error_set(err, ERR_DATA, "variable '%s' is %s, not %s", like.name,
                         dtype_name(like.type), dtype_name(saved->value.type));
    int code = variable_store_get(store, &like, &variable, err);
    if (code)
        return code;
    variable_lock_wait(variable, true);
    code = variable_put_in(variable, &saved->value, err);
    if (!code)
        variable->updates = (uint64_t)saved->updates;
    variable_unlock(variable, true);
    return code;
}

int variables_restore(struct variable_store *store, const struct graph *graph,
                      const struct device_set *devices, struct stream_reader *reader, int64_t *step,
                      struct error *err)
{
    const struct load_request wanted = {.graph = graph};
    saved_variables saved = VEC_INIT;
    int code = variables_load(&wanted, reader, &saved, step, err);
    for (size_t i = 0; !code && i < saved.n; i++) {
        int n = (int)devices->devices.n;
        int at = n > 1 ? device_find(devices->devices.items, n, saved.items[i].node, err) : 0;
        code = at < 0 ? err->code
                      : variable_put(store, &saved.items[i], devices->devices.items[at], err);
    }
    saved_release(&saved);
    return code;
}
