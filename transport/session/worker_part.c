/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables of which each worker has a part along an axis (graph/worker_attr.h). Checkpoints
 * contain them whole, so that one process, or another number of workers, can continue from them.
 * Before a checkpoint all workers give their parts to the worker that writes it; its variable is
 * the whole until the checkpoint is made. A restored value is whole in every worker, which then
 * keeps its part.
 */
#include <string.h>

#include "exec/step/collective.h"
#include "graph/worker_attr.h"
#include "tensor/box.h"
#include "transport/session/worker_private.h"

bool worker_has_part(const struct worker *worker, const struct node *node)
{
    return node_is(node, "Variable") && node_attr(node, WORKER_PART_SHAPE) &&
           worker_task_of(worker, node) < 0;
}

static const struct shape *whole_shape(const struct node *node)
{
    return node_attr(node, WORKER_PART_SHAPE)->shape;
}

static struct box whole_box(const struct node *node)
{
    const struct shape *shape = whole_shape(node);
    struct box box = {.rank = shape->rank};
    memcpy(box.size, shape->dims, (size_t)shape->rank * sizeof *box.size);
    return box;
}

/* Returns the part of worker k of n. */
static struct box part_box(const struct node *node, int64_t k, int64_t n)
{
    struct box box = whole_box(node);
    int axis = (int)node_int(node, WORKER_PART_AXIS);
    struct row_range part = collective_part(box.size[axis], n, k);
    box.first[axis] = part.first;
    box.size[axis] = part.count;
    return box;
}

/* Sets the variable to a value of another shape than it has. */
static int put(struct worker *worker, struct saved_variable *saved, struct error *err)
{
    const struct variable like = variable_of_node(saved->node, NULL);
    struct variable *variable =
        variable_store_find(worker_variables(worker), like.container, like.name);
    if (variable) {
        variable_lock_wait(variable, true);
        variable_clear(variable);
        variable_unlock(variable, true);
    }
    return worker_put(worker, saved, err);
}

static int put_part(struct worker *worker, struct saved_variable *whole, struct error *err)
{
    const struct collective *collective = worker->collective;
    const struct node *node = whole->node;
    struct box all = whole_box(node);
    struct box part = part_box(node, collective->rank, collective->size);
    struct saved_variable own = {.node = node, .updates = whole->updates};
    struct shape shape = {.rank = part.rank};
    memcpy(shape.dims, part.size, (size_t)part.rank * sizeof *part.size);
    int code = tensor_alloc(&own.value, node->outputs[0].type, &shape, err);
    if (!code) {
        box_copy(own.value.data, &part, whole->value.data, &all, dtype_bytes(own.value.type));
        code = put(worker, &own, err);
    }
    tensor_release(&own.value);
    return code;
}

int worker_cut_parts(struct worker *worker, struct error *err)
{
    int code = 0;
    for (size_t i = 0; !code && worker->collective && i < worker->parts.n; i++) {
        struct saved_variable saved = {.node = worker->parts.items[i]};
        code = worker_take(worker, &saved, err);
        if (!code && saved.value.type != DTYPE_INVALID &&
            shape_equal(&saved.value.shape, whole_shape(saved.node)))
            code = put_part(worker, &saved, err);
        tensor_release(&saved.value);
    }
    return code;
}

/* Sets the variable to the whole, from all workers' parts, one after the other. */
static int put_whole(struct worker *worker, const struct node *node, int64_t updates,
                     const struct tensor *parts, struct error *err)
{
    struct saved_variable whole = {.node = node, .updates = updates};
    struct box all = whole_box(node);
    size_t element = dtype_bytes(node->outputs[0].type);
    const char *from = parts->data;
    int64_t n = worker->collective->size;
    if (tensor_count(parts) != shape_count(whole_shape(node)))
        return error_set(err, ERR_UNAVAILABLE, "%s: a worker that had a part of it has left",
                         node_text(node));
    int code = tensor_alloc(&whole.value, node->outputs[0].type, whole_shape(node), err);
    for (int64_t k = 0; !code && k < n; k++) {
        struct box part = part_box(node, k, n);
        box_copy(whole.value.data, &all, from, &part, element);
        from += (size_t)box_count(&part) * element;
    }
    if (!code)
        code = put(worker, &whole, err);
    tensor_release(&whole.value);
    return code;
}

static int join(struct worker *worker, const struct node *node, const struct collective_key *key,
                int root, struct error *err)
{
    const struct collective_call call = {.key = *key, .has_root = true, .root = root};
    struct saved_variable saved = {.node = node};
    struct tensor own, all = TENSOR_INIT;
    int code = worker_take_value(worker, &saved, err);
    if (!code) {
        own = saved.value;
        own.shape = shape_vector(tensor_count(&saved.value));
        code = worker_exchange(worker, call, &own, NULL, &all, err);
    }
    if (!code && worker_writes(worker))
        code = put_whole(worker, node, saved.updates, &all, err);
    tensor_release(&all);
    tensor_release(&saved.value);
    return code;
}

int worker_join_parts(struct worker *worker, int64_t step, int root, struct error *err)
{
    int code = 0;
    for (size_t i = 0; !code && i < worker->parts.n; i++) {
        const struct collective_key key = {"=part", step, i};
        code = join(worker, worker->parts.items[i], &key, root, err);
    }
    return code;
}
