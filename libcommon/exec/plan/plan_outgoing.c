/* SPDX-License-Identifier: Apache-2.0
 *
 * Which values leave the process: inputs of Sends to other tasks and of AllReduces, and what such
 * an input is only another view of. A value that a loop or a branch brings is not followed into it:
 * every iteration would have memory that one of them needs.
 */
#include <string.h>

#include "exec/plan/plan_steps.h"
#include "exec/state/saver.h"
#include "graph/device_name.h"

static bool goes_to_another_task(const struct node *send)
{
    struct device_name from, to;
    struct error ignored = ERROR_INIT;
    return !device_name_parse(&from, node_string(send, "send_device"), &ignored) &&
           !device_name_parse(&to, node_string(send, "recv_device"), &ignored) &&
           !device_name_same_task(&from, &to);
}

static bool leaves(const struct item *item, int input)
{
    if (!item->node || item->in[input] < 0)
        return false;
    if (node_is(item->node, "Send"))
        return goes_to_another_task(item->node);
    if (node_round(item->node) != ROUND_REDUCE)
        return false;
    /* Rows that go their ways, and what is broadcast, are copied in any case. */
    const char *reduction = node_attr(item->node, "reductions")->strings[input];
    return !strcmp(reduction, "sum") || !strcmp(reduction, "mean");
}

/* Variables that are sent as they are, also when another plan sends them: this one may be what
 * gives them their memory. */
static void mark_sent_variables(struct plan *plan)
{
    const struct graph *graph = plan->source;
    for (size_t i = 0; i < graph->nodes.n; i++) {
        const struct node *node = graph_node(graph, (int)i);
        if (!node_is(node, "Send") || !goes_to_another_task(node))
            continue;
        do
            node = graph_node(graph, node->inputs[0].node);
        while (node_is(node, "Identity"));
        if (!node_is(node, "Variable"))
            continue;
        const struct variable key = variable_of_node(node, NULL);
        struct variable *variable =
            variable_store_find(plan->options.variables, key.container, key.name);
        if (variable)
            atomic_store_explicit(&variable->is_sent, true, memory_order_relaxed);
    }
}

/* Consumers come after producers, but where a loop is closed. */
void plan_find_outgoing(struct plan *plan)
{
    if (!plan->options.outgoing || !plan->options.device->is_host)
        return;
    mark_sent_variables(plan);
    for (size_t i = plan->items.n; i-- > 0;) {
        const struct item *item = &plan->items.items[i];
        for (int k = 0; k < item->n_in && !item->removed; k++)
            if (leaves(item, k))
                plan->values.items[item->in[k]].is_outgoing = true;
        /* Inputs that an outgoing output is the memory of; not a variable's, which stays where it
         * is. */
        for (int k = 0; k < item->n_out && !item->removed; k++) {
            const struct value *output = &plan->values.items[item->out[k]];
            if (!output->is_outgoing || output->alias_input < 0)
                continue;
            struct value *input = &plan->values.items[item->in[output->alias_input]];
            input->is_outgoing |= input->kind == VALUE_COMPUTED;
        }
    }
}
