/* SPDX-License-Identifier: Apache-2.0
 *
 * Send and Recv of values in host memory, over the step's rendezvous. The executor itself passes
 * values on a device with memory of its own (exec/run/builtin.c).
 */
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "exec/step/rendezvous.h"

static int send_run(struct kernel_call *call)
{
    struct rendezvous *rendezvous = rendezvous_of(call);
    struct rendezvous_key key = rendezvous_key_of(call);
    struct rendezvous_value value = {.tensor = TENSOR_INIT};
    if (!rendezvous || (call->in[0] && kernel_keep_input(call, 0, &value.tensor)))
        return call->err->code;
    return rendezvous->send(rendezvous, &key, call->in[0] ? &value : NULL, call->err);
}

const struct kernel_code kernel_send = {.prepare = rendezvous_prepare, .run = send_run};

static int take_received(struct kernel_call *call, const struct rendezvous_value *value)
{
    const struct device *device = value->at.device;
    if (device)
        return error_set(call->err, ERR_INTERNAL, "was sent what is in the memory of %s:%d",
                         device->type, device->index);
    return kernel_share_output(call, 0, &value->tensor) ? 0 : call->err->code;
}

static int recv_run(struct kernel_call *call)
{
    return rendezvous_receive(call, take_received);
}

const struct kernel_code kernel_recv = {.prepare = rendezvous_prepare, .run = recv_run};

/* ---- several as one ---- */

/* They are sent as bytes: a hash of their names, so that no others are mistaken for them, and the
 * values, each aligned. */
#define VALUE_BYTES_MAX (1 << 20)

struct send_group {
    struct rendezvous_key key; /* first */
    uint64_t names;
    size_t bytes;
    size_t offsets[];
};

static int group_prepare(struct kernel_setup *setup)
{
    const struct attr_value *types = node_attr(setup->node, "T");
    const struct attr_value *shapes = node_attr(setup->node, "shapes");
    const struct attr_value *names = node_attr(setup->node, "names");
    struct send_group *group = mem_alloc(sizeof *group + (size_t)types->n * sizeof *group->offsets);
    rendezvous_prepare(setup);
    group->key = *(const struct rendezvous_key *)setup->state;
    mem_free(setup->state);
    setup->state = group; /* released even if prepare fails */
    group->bytes = ALIGN_UP(sizeof group->names);
    for (int i = 0; i < types->n; i++) {
        group->names = hash_bytes(names->strings[i], strlen(names->strings[i]), group->names);
        bool is_bytes = types->types[i] != STRING && types->types[i] != RESOURCE;
        int64_t bytes = is_bytes ? shape_bytes(&shapes->shapes[i], types->types[i]) : -1;
        if (bytes < 0 || bytes > VALUE_BYTES_MAX)
            return kernel_setup_fail(setup, "'%s' is not known to be small", names->strings[i]);
        group->offsets[i] = group->bytes;
        group->bytes += ALIGN_UP((size_t)bytes);
    }
    return 0;
}

static int send_group_run(struct kernel_call *call)
{
    const struct send_group *group = call->state;
    struct rendezvous *rendezvous = rendezvous_of(call);
    struct rendezvous_key key = rendezvous_key_of(call);
    struct rendezvous_value value = {.tensor = TENSOR_INIT};
    struct shape shape = shape_vector((int64_t)group->bytes);
    bool is_dead = false; /* tf-part ensures that all are dead or none is */
    for (int i = 0; i < call->n_in; i++)
        is_dead |= !call->in[i];
    if (!rendezvous || (!is_dead && tensor_alloc(&value.tensor, UINT8, &shape, call->err)))
        return call->err->code;
    char *to = value.tensor.data;
    if (!is_dead)
        memcpy(to, &group->names, sizeof group->names);
    for (int i = 0; i < call->n_in && !is_dead; i++) {
        size_t end = i + 1 < call->n_in ? group->offsets[i + 1] : group->bytes;
        if (tensor_bytes(call->in[i]) > end - group->offsets[i]) {
            tensor_release(&value.tensor);
            return kernel_fail(call, "value %d is not of the shape that it was to have", i);
        }
        memcpy(to + group->offsets[i], call->in[i]->data, tensor_bytes(call->in[i]));
    }
    return rendezvous->send(rendezvous, &key, is_dead ? NULL : &value, call->err);
}

const struct kernel_code kernel_send_group = {.prepare = group_prepare, .run = send_group_run};

static int take_group(struct kernel_call *call, const struct rendezvous_value *value)
{
    const struct send_group *group = call->state;
    char *from = value->tensor.data;
    if (value->at.device || value->tensor.type != UINT8 ||
        tensor_bytes(&value->tensor) != group->bytes ||
        memcmp(from, &group->names, sizeof group->names) != 0)
        return kernel_fail(call, "was sent other values than these %d", call->n_out);
    for (int i = 0; i < call->n_out; i++) {
        const struct node_output *output = &call->node->outputs[i];
        struct tensor part = tensor_borrow(output->type, &output->shape, from + group->offsets[i]);
        part.buffer = value->tensor.buffer;
        if (!kernel_share_output(call, i, &part))
            return call->err->code;
    }
    return 0;
}

static int recv_group_run(struct kernel_call *call)
{
    return rendezvous_receive(call, take_group);
}

const struct kernel_code kernel_recv_group = {.prepare = group_prepare, .run = recv_group_run};
