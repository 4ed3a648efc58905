/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/state/saver.h"

#include <string.h>

#include "exec/device/device.h"
#include "exec/state/resource.h"
#include "graph/slice_attr.h"

/* An offset is a row of the whole, or one number for each axis. */
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
                             .device = device};
}

/* ---- saving ---- */

int variable_write(const struct saved_variable *saved, int64_t step, struct stream_writer *writer,
                   struct error *err)
{
    struct variable like = variable_of_node(saved->node, NULL);
    const struct variable_record record = {like.container, like.name, saved->value,
                                           (uint64_t)saved->updates, step};
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

static int save_one(const struct variable *variable, int64_t step, struct stream_writer *writer,
                    struct error *err)
{
    struct variable_record record = {variable->container, variable->name, TENSOR_INIT,
                                     variable->updates, step};
    if (!variable_get_value(variable, &record.value, err))
        stream_write_variable(writer, &record, err);
    tensor_release(&record.value);
    return err->code;
}

int variables_save(struct variable_store *store, int64_t step, struct stream_writer *writer,
                   struct error *err)
{
    error_clear(err);
    struct variable *v = NULL;
    while (!err->code && (v = variable_store_next(store, v))) {
        variable_lock_wait(v, false);
        if (v->initialized)
            save_one(v, step, writer, err);
        variable_unlock(v, false);
    }
    return err->code;
}

/* ---- restoring ---- */

struct saved_stream { /* all that a stream has */
    VEC(struct variable_record) records;
    struct arena arena;
};

static int read_all(struct stream_reader *reader, struct saved_stream *all, struct error *err)
{
    struct record record = {0};
    bool more = true;
    int code = 0;
    while (!code && !(code = stream_read(reader, &record, &more, err)) && more) {
        struct variable_record saved;
        if ((code = record_get_variable(&record, &all->arena, &saved, err))) {
            error_prefix(err, "%s: ", stream_reader_name(reader));
            break;
        }
        tensor_share(&saved.value, &record.tensors[0].tensor);
        vec_push(&all->records, saved);
    }
    record_release(&record);
    return code;
}

static const struct variable_record *find(const struct saved_stream *all,
                                          const struct variable *like)
{
    for (size_t i = 0; i < all->records.n; i++) {
        const struct variable_record *saved = &all->records.items[i];
        if (!strcmp(saved->name, like->name) && !strcmp(saved->container, like->container))
            return saved;
    }
    return NULL;
}

static bool has(const struct saved_stream *all, const struct node *node)
{
    struct variable like = variable_of_node(node, NULL);
    return find(all, &like) != NULL;
}

static bool may_lack(const struct variables_wanted *wanted, const struct node *node)
{
    return wanted->may_lack && wanted->may_lack(wanted->context, node);
}

/* Finds the node's value among all and moves it to *saved. */
static int pick(const struct saved_stream *all, const struct node *node, const char *from,
                struct saved_variable *picked, struct error *err)
{
    struct variable like = variable_of_node(node, NULL);
    const struct variable_record *saved = find(all, &like);
    if (!saved)
        return error_set(err, ERR_DATA, "%s: variable '%s' is not in it", from, like.name);
    if (saved->value.type != like.type || !shape_compatible(&saved->value.shape, &like.shape))
        return error_set(err, ERR_DATA, "%s: variable '%s' is %s there, but %s in the graph", from,
                         like.name, shape_text_typed(saved->value.type, &saved->value.shape),
                         shape_text_typed(like.type, &like.shape));
    *picked = (struct saved_variable){.node = node, .updates = (int64_t)saved->updates};
    tensor_share(&picked->value, &saved->value);
    return 0;
}

static struct device *device_of(const struct device_set *set, const struct node *node,
                                struct error *err)
{
    int n = (int)set->devices.n, i = n > 1 ? device_find(set->devices.items, n, node, err) : 0;
    return i < 0 ? NULL : set->devices.items[i];
}

int variables_load(const struct variables_wanted *wanted, struct stream_reader *reader,
                   saved_variables *saved, int64_t *step, struct error *err)
{
    const struct graph *graph = wanted->graph;
    struct saved_stream all = {0};
    int code = read_all(reader, &all, err);
    for (size_t i = 0; !code && i < graph->nodes.n; i++) {
        const struct node *node = graph_node(graph, (int)i);
        struct saved_variable one;
        if (!node_is(node, "Variable") || (!has(&all, node) && may_lack(wanted, node)))
            continue;
        code = pick(&all, node, stream_reader_name(reader), &one, err);
        if (!code)
            vec_push(saved, one);
    }
    for (size_t i = 0; !code && wanted->part && i < all.records.n; i++)
        if (resource_is_part(all.records.items[i].name))
            code = wanted->part(wanted->context, &all.records.items[i], err);
    if (!code && all.records.n)
        *step = all.records.items[all.records.n - 1].step;
    for (size_t i = 0; i < all.records.n; i++)
        tensor_release(&all.records.items[i].value);
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
    code = variable_copy_in(variable, &saved->value, err);
    if (!code)
        variable->updates = (uint64_t)saved->updates;
    variable_unlock(variable, true);
    return code;
}

int variables_restore(struct variable_store *store, const struct graph *graph,
                      const struct device_set *devices, struct stream_reader *reader, int64_t *step,
                      struct error *err)
{
    const struct variables_wanted wanted = {.graph = graph};
    saved_variables saved = VEC_INIT;
    int code = variables_load(&wanted, reader, &saved, step, err);
    for (size_t i = 0; !code && i < saved.n; i++) {
        struct device *device = device_of(devices, saved.items[i].node, err);
        code = device ? variable_put(store, &saved.items[i], device, err) : err->code;
    }
    saved_release(&saved);
    return code;
}
