/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/saver.h"

#include <string.h>

#include "base/memory.h"
#include "base/vec.h"
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

static int write_value(const struct variable *variable, const struct tensor *value, int64_t step,
                       struct stream_writer *writer, struct error *err)
{
    struct named_tensor t = {variable->name, *value};
    msgpack_packer *packer = stream_begin(writer, RECORD_TENSOR, 3);
    pack_key(packer, "container");
    pack_text(packer, variable->container);
    pack_key(packer, "step");
    msgpack_pack_int64(packer, step);
    pack_key(packer, "updates");
    msgpack_pack_uint64(packer, variable->updates);
    return stream_write(writer, &t, 1, err);
}

static int save_one(struct variable *variable, int64_t step, struct stream_writer *writer,
                    struct error *err)
{
    struct device *device = variable->device;
    if (!device || device->is_host)
        return write_value(variable, &variable->value, step, writer, err);
    struct tensor copy = TENSOR_INIT;
    int code = tensor_alloc(&copy, variable->type, &variable->value.shape, err);
    if (!code)
        code = device->copy_out(device, copy.data, variable->value.data, tensor_bytes(&copy), true,
                                err);
    if (!code)
        code = write_value(variable, &copy, step, writer, err);
    tensor_release(&copy);
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

static int check_one(const saved_vec *all, const struct node *node, const char *from,
                     struct error *err)
{
    struct variable like = variable_of_node(node, NULL);
    const struct saved *saved = find(all, &like);
    if (!saved)
        return error_set(err, ERR_DATA, "%s: variable '%s' is not in it", from, like.name);
    if (saved->value.type != like.type || !shape_compatible(&saved->value.shape, &like.shape))
        return error_set(err, ERR_DATA, "%s: variable '%s' is %s there, but %s in the graph", from,
                         like.name, shape_text_typed(saved->value.type, &saved->value.shape),
                         shape_text_typed(like.type, &like.shape));
    return 0;
}

static int restore_one(struct variable_store *store, const saved_vec *all, const struct node *node,
                       struct device *device, struct error *err)
{
    struct variable like = variable_of_node(node, device), *variable;
    const struct saved *saved = find(all, &like);
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
                      struct device *device, struct stream_reader *reader, int64_t *step,
                      struct error *err)
{
    saved_vec all = VEC_INIT;
    int code = read_all(reader, &all, step, err);
    for (int apply = 0; apply < 2; apply++) {
        for (size_t i = 0; !code && i < graph->nodes.n; i++) {
            const struct node *node = graph_node(graph, (int)i);
            if (node_is(node, "Variable"))
                code = apply ? restore_one(store, &all, node, device, err)
                             : check_one(&all, node, stream_reader_name(reader), err);
        }
    }
    for (size_t i = 0; i < all.n; i++) {
        mem_free(all.items[i].container);
        mem_free(all.items[i].name);
        tensor_release(&all.items[i].value);
    }
    vec_release(&all);
    return code;
}
