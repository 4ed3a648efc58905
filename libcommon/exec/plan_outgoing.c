/* SPDX-License-Identifier: Apache-2.0
 *
 * Which values leave the process: inputs of Sends to other tasks, and what such an input is only
 * another view of. A value that a loop or a branch brings is not followed into it: every iteration
 * would have memory that one of them needs.
 */
#include "exec/plan_internal.h"
#include "graph/device_name.h"

static bool leaves(const struct item *item)
{
    struct device_name from, to;
    struct error ignored = ERROR_INIT;
    return item->node && node_is(item->node, "Send") &&
           !device_name_parse(&from, node_string(item->node, "send_device"), &ignored) &&
           !device_name_parse(&to, node_string(item->node, "recv_device"), &ignored) &&
           !device_name_same_task(&from, &to);
}

static void mark_inputs(struct plan *plan, const struct item *item)
{
    for (int i = 0; i < item->n_in; i++)
        if (item->in[i] >= 0)
            plan->values.items[item->in[i]].is_outgoing = true;
}

/* Inputs that an outgoing output is the memory of; not a variable's, which stays where it is. */
static void mark_aliased(struct plan *plan, const struct item *item)
{
    for (int i = 0; i < item->n_out; i++) {
        const struct value *output = &plan->values.items[item->out[i]];
        if (!output->is_outgoing || output->alias_input < 0)
            continue;
        struct value *input = &plan->values.items[item->in[output->alias_input]];
        input->is_outgoing |= input->kind == VALUE_COMPUTED;
    }
}

/* Consumers come after producers, but where a loop is closed. */
void plan_find_outgoing(struct plan *plan)
{
    if (!plan->options.outgoing || !plan->options.device->is_host)
        return;
    for (size_t i = plan->items.n; i-- > 0;) {
        const struct item *item = &plan->items.items[i];
        if (item->removed)
            continue;
        if (leaves(item))
            mark_inputs(plan, item);
        else
            mark_aliased(plan, item);
    }
}
