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

/* Rows that go their ways, and what is broadcast, are copied in any case. */
static bool is_read_where_it_is(const char *reduction)
{
    return !strcmp(reduction, "sum") || !strcmp(reduction, "mean");
}

static bool leaves(const struct item *item, int input)
{
    if (!item->node || item->in[input] < 0)
        return false;
    if (node_is(item->node, "Send"))
        return goes_to_another_task(item->node);
    return node_round(item->node) == ROUND_REDUCE &&
           is_read_where_it_is(node_attr(item->node, "reductions")->strings[input]);
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

/* The variable that is sent as it is; NULL: something else is. */
static const struct node *sent_variable(const struct graph *graph, const struct node *send)
{
    const struct node *node = graph_node(graph, send->inputs[0].node);
    while (node_is(node, "Identity"))
        node = graph_node(graph, node->inputs[0].node);
    return node_is(node, "Variable") ? node : NULL;
}

static struct variable *find_variable(const struct plan *plan, const struct node *node)
{
    const struct variable key = variable_of_node(node, NULL);
    return variable_store_find(plan->options.variables, key.container, key.name);
}

/* Also when another plan sends it: this one may be what gives the variable its memory. */
static void mark_sent_variables(struct plan *plan)
{
    const struct graph *graph = plan->source;
    for (size_t i = 0; i < graph->nodes.n; i++) {
        const struct node *node = graph_node(graph, (int)i);
        if (!node_is(node, "Send") || !goes_to_another_task(node))
            continue;
        const struct node *sent = sent_variable(graph, node);
        struct variable *variable = sent ? find_variable(plan, sent) : NULL;
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
        if (item->removed)
            continue;
        mark_inputs(plan, item);
        mark_aliased(plan, item);
    }
}
