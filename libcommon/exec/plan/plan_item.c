/* SPDX-License-Identifier: Apache-2.0
 *
 * Single items and values: how they are added, what an item costs, and how its errors name it.
 */
#include "base/container_of.h"
#include "base/memory.h"
#include "exec/device/fault.h"
#include "exec/plan/plan_steps.h"

/* ---- adding ---- */

bool item_may_be_dead(const struct plan *plan, int item)
{
    return item >= 0 && plan->items.items[item].flow != FLOW_ALWAYS;
}

static enum item_flow flow_of(const struct plan *plan, const struct item *item)
{
    if (item->node && node_is(item->node, "Switch"))
        return FLOW_SWITCH;
    if (item->node && node_is(item->node, "Merge"))
        return FLOW_MERGE;
    bool may = false;
    for (int i = 0; i < item->n_in && !may; i++)
        may = item_may_be_dead(plan, plan_maker(plan, item, i));
    for (int i = 0; i < item->n_controls && !may; i++)
        may = item_may_be_dead(plan, item->controls[i]);
    bool runs_dead = item->node && node_is(item->node, "ControlTrigger");
    return may && !runs_dead ? FLOW_INPUTS : FLOW_ALWAYS;
}

int plan_add_value(struct plan *plan, enum dtype type, const struct shape *shape)
{
    struct value value = {.kind = VALUE_COMPUTED,
                          .type = type,
                          .twin = -1,
                          .shape = *shape,
                          .feed = -1,
                          .item = -1,
                          .alias_input = -1,
                          .alias_of = -1,
                          .root = (int)plan->values.n,
                          .offset = -1};
    vec_push(&plan->values, value);
    return (int)plan->values.n - 1;
}

int plan_add_item(struct plan *plan, const struct item *item)
{
    int id = (int)plan->items.n;
    vec_push(&plan->items, *item);
    plan->items.items[id].frame = plan->in_frame;
    plan->items.items[id].condition = plan_condition_of(plan, item->node);
    plan->items.items[id].region = -1;
    plan->items.items[id].head = id;
    if (plan->has_branches && plan_has_order(plan, plan->in_frame))
        plan->items.items[id].flow = flow_of(plan, item);
    return id;
}

int plan_add_derived(struct plan *plan, struct item item, int value, bool on_device)
{
    const struct value from = plan->values.items[value];
    item.n_in = item.n_out = 1;
    item.in = arena_alloc(&plan->memory, 2 * sizeof *item.in);
    item.out = item.in + 1;
    item.in[0] = value;
    int derived = item.out[0] = plan_add_value(plan, from.type, &from.shape);
    plan->values.items[derived].on_device = on_device;
    plan->values.items[derived].item = plan_add_item(plan, &item);
    return derived;
}

int plan_add_copy(struct plan *plan, int value)
{
    struct item item = {.builtin = BUILTIN_COPY, .name = "copy", .kernel = "copy"};
    return plan_add_derived(plan, item, value, plan->values.items[value].on_device);
}

/* ---- costs ---- */

#define CHEAP_BYTES 4096        /* a few microseconds, whatever is computed on it */
#define CHEAP_FETCH_BYTES 65536 /* copied in a few microseconds */

/* Returns whether a value that leaves the process was not computed into outgoing memory, so that it
 * is copied there. */
static bool copies_to_send(const struct plan *plan, const struct item *item)
{
    bool leaves = false, computed = true;
    for (int i = 0; i < item->n_in; i++) {
        const struct value *value = item->in[i] < 0 ? NULL : &plan->values.items[item->in[i]];
        leaves |= value && value->is_outgoing;
        computed &= !value || value->kind == VALUE_COMPUTED;
    }
    for (int i = 0; i < item->n_out; i++)
        leaves |= plan->values.items[item->out[i]].is_outgoing &&
                  plan->values.items[item->out[i]].alias_input >= 0;
    return leaves && !computed && plan->options.outgoing;
}

bool item_is_cheap(const struct plan *plan, const struct item *item)
{
    int64_t bytes = 0, limit = CHEAP_BYTES;
    /* the time that a file or a queue takes does not depend on sizes */
    bool is_of_outside = item->node && !item->refs && node_has(item->node, OP_STATEFUL);
    if (item->builtin == BUILTIN_FETCH || copies_to_send(plan, item))
        limit = CHEAP_FETCH_BYTES;
    else if (item->flags & KERNEL_CHEAP)
        return true;
    else if (!item->node || item->builtin == BUILTIN_LOOP || is_of_outside || plan->options.spread)
        return false;
    for (int i = 0; i < item->n_in + item->n_out && bytes <= limit; i++) {
        int v = i < item->n_in ? item->in[i] : item->out[i - item->n_in];
        const struct value *value = v < 0 ? NULL : &plan->values.items[v];
        bool is_string = value && value->type == STRING;
        int64_t more = value && !is_string ? shape_bytes(&value->shape, value->type) : 0;
        if (is_string || more < 0) /* unknown */
            return false;
        bytes += more;
    }
    return bytes <= limit;
}

/* ---- errors ---- */

int tensor_in_buffer(struct tensor *t, enum dtype type, const struct shape *shape,
                     struct buffer *buffer, struct error *err)
{
    if (!buffer)
        return error_set(err, ERR_OS, "no memory for %s%s", shape_text_typed(type, shape),
                         mem_limit_text());
    *t = (struct tensor){.type = type, .shape = *shape, .data = buffer->data, .buffer = buffer};
    return 0;
}

int item_fail(const struct item *item, struct error *err)
{
    if (!item->node)
        return err->code;
    return node_fail(item->node, err);
}

int item_explain_fault(struct fault_source *source, const struct fault *fault, struct error *err)
{
    const struct plan *plan = CONTAINER_OF(source, struct plan, faults);
    const struct item *item = &plan->items.items[fault->item - source->first];
    struct fault_origin origin = {.node = item->node};
    if (fault->input < item->n_in && item->in[fault->input] >= 0) {
        const struct value *value = &plan->values.items[item->in[fault->input]];
        int seen = item_sees(item, fault->input);
        const struct shape *shape = seen >= 0 ? &plan->values.items[seen].shape : &value->shape;
        origin.type = value->type;
        origin.shape = shape_is_known(shape) ? shape : NULL;
    }
    fault_explain(plan->options.device, fault, &origin, err);
    return item_fail(item, err);
}
