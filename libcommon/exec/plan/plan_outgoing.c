/* SPDX-License-Identifier: Apache-2.0
 *
 * Which values leave the process: inputs of Sends to other tasks and of AllReduces, and what such
 * an input is only another view of. A value that a loop or a branch brings is not followed into it:
 * every iteration would have memory that one of them needs.
 */
#include <string.h>

#include "exec/plan/plan_internal.h"
#include "graph/device_name.h"

static bool goes_to_another_task(const struct node *send)
{
    struct device_name from, to;
    struct error ignored = ERROR_INIT;
    return !device_name_parse(&from, node_string(send, "send_device"), &ignored) &&
           !device_name_parse(&to, node_string(send, "recv_device"), &ignored) &&
           !device_name_same_task(&from, &to);
}

/* Rows that are gathered are copied in any case. */
static bool leaves(const struct item *item, int input)
{
    if (!item->node || item->in[input] < 0)
        return false;
    if (node_is(item->node, "Send"))
        return goes_to_another_task(item->node);
    return node_round(item->node) == ROUND_REDUCE &&
           !strstr(node_attr(item->node, "reductions")->strings[input], "rows");
}

static void mark_inputs(struct plan *plan, const struct item *item)
{
    for (int i = 0; i < item->n_in; i++)
        if (leaves(item, i))
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
        mark_inputs(plan, item);
        mark_aliased(plan, item);
    }
}
