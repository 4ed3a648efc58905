/* SPDX-License-Identifier: Apache-2.0
 *
 * Where values are, and in which layout. A device may have memory of its own; kernels say for each
 * argument in which memory they want it, and if a value is in the other one, the planner adds an
 * item that copies it. Constants are copied once, when the plan is made. On a device whose memory
 * is the host's nothing here adds a copy.
 */
#include <string.h>

#include "base/memory.h"
#include "exec/device/queue.h"
#include "exec/plan/plan_steps.h"
#include "graph/device_name.h"

static bool is_of_type(const struct device *device, const char *text, struct device_name *name)
{
    struct error ignored = ERROR_INIT;
    return !device_name_parse(name, text, &ignored) && !strcmp(name->type, device->type);
}

/* Returns whether a value may go from one device of a process to another, or to itself, without
 * passing through host memory. */
static bool reaches(struct device *device, const char *sender, const char *receiver)
{
    struct device_name from, to;
    if (!is_of_type(device, sender, &from) || !is_of_type(device, receiver, &to) ||
        !device_name_same_task(&from, &to))
        return false;
    if (from.index == to.index)
        return from.index == device->index;
    return device->peer && (from.index == device->index || to.index == device->index) &&
           device->peer->reaches(device, from.index, to.index);
}

static bool is_reduced(const struct node *node)
{
    bool is_reduced = node_round(node) == ROUND_REDUCE;
    for (int i = 0; is_reduced && i < node->n_outputs; i++)
        is_reduced = node->outputs[i].type != STRING && node->outputs[i].type != RESOURCE;
    return is_reduced;
}

bool plan_hands_over(const struct plan *plan, const struct node *node)
{
    struct device *device = plan->options.device;
    if (device->is_host || is_reduced(node))
        return !device->is_host;
    if (!node_is(node, "Send") && !node_is(node, "Recv"))
        return false;
    enum dtype type = node_type(node, node->n_outputs ? "tensor_type" : "T");
    return type != STRING && type != RESOURCE &&
           reaches(device, node_string(node, "send_device"), node_string(node, "recv_device"));
}

bool plan_puts_on_device(const struct plan *plan, const struct kernel_row *row,
                         const struct node *node, bool is_output, int i)
{
    return !plan->options.device->is_host &&
           (plan_hands_over(plan, node) ||
            !kernel_on_host(is_output ? row->host_outputs : row->host_inputs, node,
                            is_output ? node->op->outputs : node->op->inputs, i));
}

bool plan_find_code(const struct plan *plan, struct item *item)
{
    struct device *device = plan->options.device;
    const struct node *node = item->node;
    if (!plan_hands_over(plan, node))
        item->code = item->row->own ? item->row->own : device->code(device, item->row->code);
    else if (node_round(node) == ROUND_REDUCE)
        item->builtin = BUILTIN_REDUCE;
    else
        item->builtin = node->n_inputs ? BUILTIN_HAND_OVER : BUILTIN_TAKE_OVER;
    return item->code || item->builtin;
}

static void make_twins(struct plan *plan, int a, int b)
{
    plan->values.items[a].twin = b;
    plan->values.items[b].twin = a;
}

const struct tensor *plan_host_constant(const struct plan *plan, int v)
{
    const struct value *value = &plan->values.items[v];
    if (value->kind == VALUE_CONSTANT && value->on_device)
        value = &plan->values.items[value->twin];
    return value->kind == VALUE_CONSTANT ? &value->constant : NULL;
}

/* ---- constants ---- */

/* In a loop or a branch the copy, too, exists only where that runs. */
static int upload_constant(struct plan *plan, int v, struct error *err)
{
    struct device *device = plan->options.device;
    struct value from = plan->values.items[v];
    size_t bytes = tensor_bytes(&from.constant);
    struct tensor constant;
    if (tensor_in_buffer(&constant, from.type, &from.shape, device_alloc(device, bytes), err))
        return -1;
    if (device_write(device, constant.data, from.constant.data, bytes, err)) {
        tensor_release(&constant);
        return -1;
    }
    int twin = plan_add_value(plan, from.type, &from.shape);
    struct value *to = &plan->values.items[twin];
    to->kind = VALUE_CONSTANT;
    to->constant = constant;
    to->on_device = true;
    if (from.item >= 0) {
        struct item item = plan->items.items[from.item];
        item.out = arena_alloc(&plan->memory, sizeof *item.out);
        item.out[0] = twin;
        to->item = plan_add_item(plan, &item);
    }
    make_twins(plan, v, twin);
    return twin;
}

/* ---- copies in every step ---- */

static int add_copy(struct plan *plan, int v, bool on_device, struct item like)
{
    like.builtin = on_device ? BUILTIN_COPY_IN : BUILTIN_COPY_OUT;
    like.name = like.kernel = on_device ? "copy_in" : "copy_out";
    like.flags = on_device ? KERNEL_CHEAP : KERNEL_CHEAP | KERNEL_ASYNC;
    like.is_point = !on_device;
    return plan_add_derived(plan, like, v, on_device);
}

/* A read of a variable sees its value at that moment, so the copy serves one consumer and waits for
 * everything that the consumer waits for, which also puts it into the consumer's loop. */
static int copy_variable(struct plan *plan, int v, const struct item *consumer)
{
    const struct node *node = consumer->node;
    struct item like = {.n_controls = consumer->n_controls};
    size_t n = (size_t)(consumer->n_controls + node->n_inputs) + 1;
    like.controls = arena_array(&plan->memory, n, sizeof *like.controls);
    if (consumer->n_controls)
        memcpy(like.controls, consumer->controls, (size_t)consumer->n_controls * sizeof(int));
    for (int i = 0; i < node->n_inputs; i++) {
        int first = plan->value_of[node->inputs[i].node];
        int from = first < 0 ? -1 : plan->values.items[first + node->inputs[i].slot].item;
        if (from >= 0 && !plan->items.items[from].removed)
            like.controls[like.n_controls++] = from;
    }
    int copy = add_copy(plan, v, false, like);
    plan->items.items[plan->values.items[copy].item].condition = plan_condition_of(plan, node);
    return copy;
}

int plan_copy_for(const struct plan *plan, const struct item *item, int input)
{
    int from = plan->values.items[item->in[input]].item;
    if (from < 0 || plan->items.items[from].builtin != BUILTIN_COPY_OUT)
        return -1;
    return plan->values.items[plan->items.items[from].in[0]].kind == VALUE_VARIABLE ? from : -1;
}

bool plan_is_copied(const struct plan *plan, const struct item *item)
{
    return item->builtin == BUILTIN_COPY_IN ||
           (item->builtin == BUILTIN_FETCH && plan->values.items[item->in[0]].on_device);
}

bool plan_is_feed_copy(const struct plan *plan, const struct item *item)
{
    return item->builtin == BUILTIN_COPY_IN && plan->values.items[item->in[0]].kind == VALUE_FEED;
}

int plan_in_memory(struct plan *plan, int v, bool on_device, const struct item *consumer,
                   struct error *err)
{
    const struct value *value = &plan->values.items[v];
    if (value->on_device == on_device)
        return v;
    if (value->kind == VALUE_VARIABLE)
        return copy_variable(plan, v, consumer);
    if (value->twin >= 0)
        return value->twin;
    if (value->kind == VALUE_CONSTANT)
        return upload_constant(plan, v, err);
    int copy = add_copy(plan, v, on_device, (struct item){0});
    make_twins(plan, v, copy);
    return copy;
}

/* ---- layouts: kernels that support none get values in row-major order ---- */

int plan_row_major(struct plan *plan, int v, struct error *err)
{
    const struct value *from = &plan->values.items[v];
    if (!from->layout)
        return v;
    const struct kernel_code *relayout = plan->options.device->layout->relayout;
    vec_each(made, &plan->items) {
        if (!made->node && made->code == relayout && made->in[0] == v)
            return made->out[0];
    }
    struct item item = {.code = relayout, .name = "relayout", .kernel = "relayout"};
    int made = plan_add_derived(plan, item, v, from->on_device);
    struct item *added = &plan->items.items[plan->values.items[made].item];
    return plan_prepare_kernel(plan, added, err) ? -1 : made;
}
