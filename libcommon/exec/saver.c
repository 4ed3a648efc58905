/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/saver.h"

#include <string.h>

#include "base/memory.h"
#include "exec/device.h"

struct variable variable_of_node(const struct node *node, struct device *device)
{
    const char *container = node_string(node, "container");
    const char *shared = node_string(node, "shared_name");
    return (struct variable){.container = *container ? container : "default",
                             .name = *shared ? shared : node->name,
                             .type = node->outputs[0].type,
                             .shape = node->outputs[0].shape,
                             .device = device};
}

/* ---- saving ---- */

static int write_record(const struct variable *like, const struct saved_variable *saved,
                        int64_t step, struct stream_writer *writer, struct error *err)
{
    struct named_tensor t = {like->name, saved->value};
    msgpack_packer *packer = stream_begin(writer, RECORD_TENSOR, 3);
    pack_key(packer, "container");
    pack_text(packer, like->container);
    pack_key(packer, "step");
    msgpack_pack_int64(packer, step);
    pack_key(packer, "updates");
    msgpack_pack_int64(packer, saved->updates);
    return stream_write(writer, &t, 1, err);
}

int variable_write(const struct saved_variable *saved, int64_t step, struct stream_writer *writer,
                   struct error *err)
{
    struct variable like = variable_of_node(saved->node, NULL);
    return write_record(&like, saved, step, writer, err);
}

int variable_copy(const struct variable *variable, struct tensor *copy, struct error *err)
{
    struct device *device = variable->device;
    if (!device || device->is_host)
        return tensor_copy(copy, &variable->value, err);
    int code = tensor_alloc(copy, variable->type, &variable->value.shape, err);
    return code ? code
                : device->copy_out(device, copy->data, variable->value.data, tensor_bytes(copy),
                                   true, err);
}

int variable_take(struct variable_store *store, struct saved_variable *saved, struct error *err)
{
    struct variable like = variable_of_node(saved->node, NULL);
    struct variable *variable = variable_store_find(store, like.container, like.name);
    int code = 0;
    saved->value = (struct tensor)TENSOR_INIT;
    if (!variable)
        return 0;
    variable_hold_wait(variable, false);
    saved->updates = (int64_t)variable->updates;
    if (variable->initialized)
        code = variable_copy(variable, &saved->value, err);
    variable_unhold(variable, false);
    return code;
}

static int save_one(const struct variable *variable, int64_t step, struct stream_writer *writer,
                    struct error *err)
{
    struct saved_variable saved = {.value = variable->value, .updates = (int64_t)variable->updates};
    struct device *device = variable->device;
    if (!device || device->is_host)
        return write_record(variable, &saved, step, writer, err);
    saved.value = (struct tensor)TENSOR_INIT;
    int code = variable_copy(variable, &saved.value, err);
    if (!code)
        code = write_record(variable, &saved, step, writer, err);
    tensor_release(&saved.value);
    return code;
}

int variables_save(struct variable_store *store, int64_t step, struct stream_writer *writer,
                   struct error *err)
{
    int code = 0;
    for (struct variable *v = variable_store_first(store); v && !code; v = v->next) {
        variable_hold_wait(v, false);
        if (v->initialized)
            code = save_one(v, step, writer, err);
        variable_unhold(v, false);
    }
    return code;
}

/* ---- restoring ---- */

struct saved {
    char *container, *name;
    struct tensor value;
    int64_t updates;
};

typedef VEC(struct saved) saved_vec;

static int read_all(struct stream_reader *reader, saved_vec *all, int64_t *step, struct error *err)
{
    struct record record = {0};
    bool more = true;
    int code = 0;
    while (!(code = stream_read(reader, &record, &more, err)) && more) {
        const char *container = "default";
        struct saved saved = {0};
        if (record.kind != RECORD_TENSOR || record.n_tensors != 1) {
            code = error_set(err, ERR_DATA, "%s: a %s record among the variables",
                             stream_reader_name(reader), record_kind_name(record.kind));
            break;
        }
        record_get_text(&record.header, "container", &record.arena, &container);
        record_get_int(&record.header, "step", step);
        record_get_int(&record.header, "updates", &saved.updates);
        saved.container = mem_strdup(container);
        saved.name = mem_strdup(record.tensors[0].name);
        tensor_share(&saved.value, &record.tensors[0].tensor);
        vec_push(all, saved);
    }
    record_release(&record);
    return code;
}

static const struct saved *find(const saved_vec *all, const struct variable *like)
{
    for (size_t i = 0; i < all->n; i++)
        if (!strcmp(all->items[i].name, like->name) &&
            !strcmp(all->items[i].container, like->container))
            return &all->items[i];
    return NULL;
}

static bool has(const saved_vec *all, const struct node *node)
{
    struct variable like = variable_of_node(node, NULL);
    return find(all, &like) != NULL;
}

static bool may_lack(const struct variables_wanted *wanted, const struct node *node)
{
    return wanted->may_lack && wanted->may_lack(wanted->context, node);
}

/* Finds the node's value among all and moves it to *saved. */
static int pick(const saved_vec *all, const struct node *node, const char *from,
                struct saved_variable *picked, struct error *err)
{
    struct variable like = variable_of_node(node, NULL);
    const struct saved *saved = find(all, &like);
    if (!saved)
        return error_set(err, ERR_DATA, "%s: variable '%s' is not in it", from, like.name);
    if (saved->value.type != like.type || !shape_compatible(&saved->value.shape, &like.shape))
        return error_set(err, ERR_DATA, "%s: variable '%s' is %s there, but %s in the graph", from,
                         like.name, shape_text_typed(saved->value.type, &saved->value.shape),
                         shape_text_typed(like.type, &like.shape));
    *picked = (struct saved_variable){.node = node, .updates = saved->updates};
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
    saved_vec all = VEC_INIT;
    int code = read_all(reader, &all, step, err);
    for (size_t i = 0; !code && i < graph->nodes.n; i++) {
        const struct node *node = graph_node(graph, (int)i);
        struct saved_variable one;
        if (!node_is(node, "Variable") || (!has(&all, node) && may_lack(wanted, node)))
            continue;
        code = pick(&all, node, stream_reader_name(reader), &one, err);
        if (!code)
            vec_push(saved, one);
    }
    for (size_t i = 0; i < all.n; i++) {
        mem_free(all.items[i].container);
        mem_free(all.items[i].name);
        tensor_release(&all.items[i].value);
    }
    vec_release(&all);
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
    variable_hold_wait(variable, true);
    code = variable_prepare_write(variable, &saved->value.shape, false, err);
    if (!code)
        code = device->copy_in(device, variable->value.data, saved->value.data,
                               tensor_bytes(&saved->value), true, err);
    if (!code) {
        variable_written(variable);
        variable->updates = (uint64_t)saved->updates;
    }
    variable_unhold(variable, true);
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
