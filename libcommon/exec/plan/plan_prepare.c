/* SPDX-License-Identifier: Apache-2.0
 *
 * From nodes to items: each node's kernel is found and prepared, and its outputs become values.
 */
#include <string.h>

#include "base/memory.h"
#include "exec/plan/plan_steps.h"
#include "exec/state/saver.h"
#include "graph/access_nodes.h"
#include "graph/device_name.h"

static int value_at(const struct plan *plan, struct edge edge)
{
    return plan->value_of[edge.node] < 0 ? -1 : plan->value_of[edge.node] + edge.slot;
}

/* Returns the first of them. */
static struct value *add_outputs(struct plan *plan, const struct node *node)
{
    int first = plan->value_of[node->id] = (int)plan->values.n;
    for (int i = 0; i < node->n_outputs; i++) {
        int v = plan_add_value(plan, node->outputs[i].type, &node->outputs[i].shape);
        plan->values.items[v].is_ref = node->outputs[i].is_ref;
    }
    return &plan->values.items[first];
}

/* ---- values without an item ---- */

/* One store serves all devices, but a variable is in the memory of one of them. */
static int add_variable(struct plan *plan, const struct node *node, struct error *err)
{
    const struct device *here = plan->options.device, *there;
    struct variable like = variable_of_node(node, plan->options.device);
    struct variable *variable;
    if (variable_store_get(plan->options.variables, &like, &variable, err))
        return error_prefix(err, "%s: ", node_text(node));
    there = variable->device;
    if (here != there && !(here->is_host && (!there || there->is_host)))
        return error_set(err, ERR_DATA, "%s: variable '%s' is in the memory of %s:%d, not of %s:%d",
                         node_text(node), variable->name, there ? there->type : "CPU",
                         there ? there->index : 0, here->type, here->index);
    struct value *value = add_outputs(plan, node);
    value->kind = VALUE_VARIABLE;
    value->variable = variable;
    value->on_device = !here->is_host;
    return 0;
}

/* A constant may belong to a loop or a branch, and exists only where that runs. The nodes that it
 * waits for come earlier in the order. */
static void add_constant(struct plan *plan, const struct node *node)
{
    struct value *value = add_outputs(plan, node);
    value->kind = VALUE_CONSTANT;
    value->constant = *node_attr(node, "value")->tensor;
    value->constant.buffer = NULL;
    bool may = node->n_controls && !plan_has_order(plan, plan_frame_of(plan, node));
    for (int i = 0; i < node->n_controls && !may; i++)
        may = item_may_be_dead(plan, plan->item_of[node->controls[i]]) ||
              plan->may_be_absent[node->controls[i]];
    plan->may_be_absent[node->id] = may;
}

typedef VEC(int) int_vec;

/* Collects control inputs, a constant's in place of a constant. `number` identifies this search,
 * which visits each node once. */
static void collect_controls(struct plan *plan, const struct node *node, int number,
                             int_vec *controls)
{
    int_vec todo = VEC_INIT;
    vec_push(&todo, node->id);
    while (todo.n) {
        node = graph_node(plan->graph, vec_pop(&todo));
        for (int i = 0; i < node->n_controls; i++) {
            int before = node->controls[i];
            bool is_new = plan->looked_at[before] != number;
            plan->looked_at[before] = number;
            if (is_new && plan->item_of[before] >= 0)
                vec_push_in(&plan->memory, controls, plan->item_of[before]);
            else if (is_new && plan->may_be_absent[before])
                vec_push(&todo, before);
        }
    }
    vec_release(&todo);
}

/* A kernel finds constants in the plan, so it waits for the nodes that these wait for. As items the
 * constants would arrive anew in each iteration, and put each consumer into a region of its own. */
static void bind_controls(struct plan *plan, struct item *item)
{
    const struct node *node = item->node;
    int_vec controls = VEC_INIT;
    int number = ++plan->n_looks;
    collect_controls(plan, node, number, &controls);
    for (int i = 0; i < node->n_inputs; i++) /* it waits for these in any case */
        plan->looked_at[node->inputs[i].node] = number;
    for (int i = 0; i < node->n_inputs && !item->is_point; i++)
        if (plan->may_be_absent[node->inputs[i].node])
            collect_controls(plan, graph_node(plan->graph, node->inputs[i].node), number,
                             &controls);
    item->controls = controls.items;
    item->n_controls = (int)controls.n;
}

/* An async op must see deadness arrive, so a constant that may be absent becomes an item for it. */
static int arriving_at(struct plan *plan, struct edge edge)
{
    const struct node *node = graph_node(plan->graph, edge.node);
    int v = value_at(plan, edge), frame = plan->in_frame;
    if (!plan->may_be_absent[node->id])
        return v;
    if (plan->item_of[node->id] < 0) {
        struct value value = plan->values.items[v];
        struct item item = {.node = node,
                            .name = node->name,
                            .kernel = "constant",
                            .builtin = BUILTIN_CONSTANT,
                            .flags = KERNEL_CHEAP,
                            .is_point = true,
                            .n_out = 1,
                            .out = arena_alloc(&plan->memory, sizeof *item.out)};
        plan->in_frame = plan_frame_of(plan, node);
        bind_controls(plan, &item);
        item.out[0] = plan_add_value(plan, value.type, &value.shape);
        plan->item_of[node->id] = plan_add_item(plan, &item);
        plan->values.items[item.out[0]].kind = VALUE_CONSTANT;
        plan->values.items[item.out[0]].constant = value.constant;
        plan->values.items[item.out[0]].item = plan->item_of[node->id];
        plan->in_frame = frame;
    }
    return plan->items.items[plan->item_of[node->id]].out[0];
}

/* ---- one node ---- */

static int no_kernel(const struct plan *plan, const struct node *node, struct error *err)
{
    struct str types = STR_INIT;
    for (int i = 0; i < node->n_attrs; i++)
        if (node->attrs[i].value.kind == ATTR_TYPE)
            str_printf(&types, " %s=%s", node->attrs[i].name,
                       dtype_name(node->attrs[i].value.type));
    const char *device = plan->options.device->type;
    bool other = kernel_exists(plan->options.kernels, node->op->def->name, device);
    error_set(err, ERR_DATA, "no %s kernel%s%s", device, other ? " for" : "",
              other ? str_text(&types) : "");
    str_release(&types);
    return node_fail(node, err);
}

static int bind_inputs(struct plan *plan, struct item *item, struct error *err)
{
    const struct node *node = item->node;
    item->n_in = node->n_inputs;
    item->in = arena_array(&plan->memory, (size_t)node->n_inputs + 1, sizeof *item->in);
    for (int i = 0; i < node->n_inputs; i++) {
        int v =
            item->is_point ? arriving_at(plan, node->inputs[i]) : value_at(plan, node->inputs[i]);
        bool on_device = plan_puts_on_device(plan, item->row, node, false, i);
        bool as_it_comes =
            item->flags & KERNEL_LAYOUT && (v < 0 || plan->values.items[v].on_device == on_device);
        bool reads = v >= 0 && !node_has(node, OP_SHAPE_ONLY);
        if (reads && !as_it_comes && (v = plan_row_major(plan, v, err)) < 0)
            return err->code;
        if (reads && (v = plan_in_memory(plan, v, on_device, item, err)) < 0)
            return err->code;
        /* The users of a Merge's output are not known as users of the variable, so the variable is
         * copied under the condition of this input. */
        if (v >= 0 && plan_has_order(plan, plan->in_frame) && node_is(node, "Merge") &&
            plan->values.items[plan_root_value(plan, v)].kind == VALUE_VARIABLE) {
            v = plan_add_copy(plan, v);
            plan->items.items[plan->values.items[v].item].condition =
                frames_edge_condition(plan->graph_frames, plan->graph, node->inputs[i]);
        }
        item->in[i] = v; /* -1: a back edge, bound when its producer exists */
        if (!node_takes_ref(node, i))
            continue;
        /* The op declares a reference: it gets the variable itself. */
        if (!item->refs)
            item->refs = arena_array(&plan->memory, (size_t)item->n_in + 1, sizeof *item->refs);
        item->refs[i] = plan->values.items[v].variable;
    }
    return 0;
}

/* ---- all nodes ---- */

static int add_item(struct plan *plan, const struct node *node, struct error *err)
{
    const struct kernel_row *row =
        kernel_find(plan->options.kernels, node, plan->options.device->type);
    if (!row)
        return no_kernel(plan, node, err);
    struct item item = {
        .node = node, .row = row, .name = node->name, .kernel = row->code, .flags = row->flags};
    bool is_wiring = plan_is_wiring(plan, node);
    item.frame = plan->in_frame;
    item.is_point = (node_has(node, OP_CONTROL_FLOW) && !is_wiring) || row->flags & KERNEL_ASYNC;
    if (plan_hands_over(plan, node))
        item.flags |= KERNEL_ASYNC;
    if (plan->options.no_layouts || item.is_point || !plan_has_known_shapes(plan, node))
        item.flags &= ~(unsigned)KERNEL_LAYOUT;
    if (!plan_find_code(plan, &item))
        return error_set(err, ERR_CONFIG, "%s: kernel '%s' is not in the %s module",
                         node_text(node), row->code, row->device);
    bind_controls(plan, &item);
    int code = bind_inputs(plan, &item, err);
    if (code)
        return code;
    add_outputs(plan, node);
    item.n_out = node->n_outputs;
    item.out = arena_array(&plan->memory, (size_t)item.n_out + 1, sizeof *item.out);
    for (int i = 0; i < item.n_out; i++) {
        item.out[i] = plan->value_of[node->id] + i;
        plan->values.items[item.out[i]].on_device = plan_puts_on_device(plan, row, node, true, i);
    }
    if ((code = plan_prepare_kernel(plan, &item, err)))
        return code;
    int id = plan_add_item(plan, &item);
    plan->item_of[node->id] = id;
    for (int i = 0; i < item.n_out; i++)
        plan->values.items[item.out[i]].item = id;
    plan_fold(plan, &plan->items.items[id]);
    if (is_wiring)
        plan_bind_wiring(plan, node);
    return 0;
}

static int add_node(struct plan *plan, const struct node *node, struct error *err)
{
    int feed = edge_map_get(&plan->fed, (struct edge){node->id, 0});
    plan->in_frame = plan_frame_of(plan, node);
    if (plan_add_wiring(plan, node))
        return 0;
    if (feed >= 0) {
        struct value *value = add_outputs(plan, node);
        value->kind = VALUE_FEED;
        value->feed = feed;
        return 0;
    }
    if (node_is(node, "Variable"))
        return add_variable(plan, node, err);
    if (node_is(node, "Const")) {
        add_constant(plan, node);
        return 0;
    }
    return add_item(plan, node, err);
}

/* ---- orders besides data and control inputs ---- */

/* A Variable has no item that could wait for its control inputs, so its consumers do, and so do
 * copies that read it for them. This follows a path of the graph that the plan does not have. */
static void follow_variable(struct plan *plan, int id, int node)
{
    const struct node *variable = graph_node(plan->graph, node);
    const struct item *item = &plan->items.items[id];
    for (int i = 0; node_is(variable, "Variable") && i < variable->n_controls; i++) {
        int before = plan->item_of[variable->controls[i]];
        if (before < 0 || before == id || plan->items.items[before].removed)
            continue;
        for (int k = -1; k < item->n_in; k++) {
            int waits = k < 0 ? id : plan_copy_for(plan, item, k);
            if (waits < 0)
                continue;
            vec_push_in(&plan->memory, &plan->items.items[waits].after, before);
        }
    }
}

/* `_after` names nodes that should be over before, dead or alive, if they are in the plan and this
 * contradicts nothing. */
static void bind_after(struct plan *plan)
{
    for (int i = 0; i < (int)plan->items.n; i++) {
        const struct node *node = plan->items.items[i].node;
        const struct attr_value *names = node ? node_attr(node, "_after") : NULL;
        bool wishes = names && names->kind == ATTR_LIST_STRING && !plan->items.items[i].removed;
        for (int k = 0; wishes && k < names->n; k++) {
            const struct node *named = graph_find(plan->graph, names->strings[k]);
            int before = named ? plan->item_of[named->id] : -1;
            if (before >= 0 && before != i && !plan->items.items[before].removed)
                vec_push_in(&plan->memory, &plan->wishes, ((struct arc){before, i}));
        }
        for (int k = 0; node && k < node->n_inputs + node->n_controls; k++)
            follow_variable(plan, i, node_dependency(node, k).node);
    }
}

/* ---- values that leave the process ---- */

/* Inputs of Sends to other tasks and of AllReduces, and the values that such inputs are views of. A
 * value that a loop or a branch yields is not followed into it: every iteration would get outgoing
 * memory, which only one of them needs. */
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
    /* Rows with destinations of their own, and broadcast values, are copied in any case. */
    const char *reduction = node_attr(item->node, "reductions")->strings[input];
    return !strcmp(reduction, "sum") || !strcmp(reduction, "mean");
}

/* Marks variables that are sent unchanged, also if another plan sends them: this plan may be the
 * one that allocates their memory. */
static void mark_sent_variables(struct plan *plan)
{
    const struct graph *graph = plan->source;
    graph_each(send, graph) {
        const struct node *node = send;
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

/* Consumers come after producers, except where a loop is closed. */
static void find_outgoing(struct plan *plan)
{
    if (!plan->options.outgoing || !plan->options.device->is_host)
        return;
    mark_sent_variables(plan);
    for (size_t i = plan->items.n; i-- > 0;) {
        const struct item *item = &plan->items.items[i];
        for (int k = 0; k < item->n_in && !item->removed; k++)
            if (leaves(item, k))
                plan->values.items[item->in[k]].is_outgoing = true;
        /* Marks inputs whose memory an outgoing output is, except variables, which stay where they
         * are. */
        for (int k = 0; k < item->n_out && !item->removed; k++) {
            const struct value *output = &plan->values.items[item->out[k]];
            if (!output->is_outgoing || output->alias_input < 0)
                continue;
            struct value *input = &plan->values.items[item->in[output->alias_input]];
            input->is_outgoing |= input->kind == VALUE_COMPUTED;
        }
    }
}

/* ---- the rest ---- */

/* Binds inputs that close a loop, which did not exist when their consumer was made. They cannot be
 * copied between iterations: NextIteration and Merge keep a value in its memory. */
static int bind_back_edges(struct plan *plan, struct error *err)
{
    vec_each(item, &plan->items) {
        for (int k = 0; item->row && k < item->n_in; k++) {
            if (item->in[k] >= 0)
                continue;
            item->in[k] = value_at(plan, item->node->inputs[k]);
            if (plan->values.items[item->in[k]].on_device !=
                plan_puts_on_device(plan, item->row, item->node, false, k))
                return error_set(err, ERR_INTERNAL, "%s: the loop brings input %d in other memory",
                                 node_text(item->node), k);
        }
    }
    return 0;
}

static int add_fetches(struct plan *plan, const struct edge *edges, struct error *err)
{
    plan->fetch_values =
        arena_array(&plan->memory, (size_t)plan->n_fetches + 1, sizeof *plan->fetch_values);
    for (int i = 0; i < plan->n_fetches; i++) {
        int v = plan_row_major(plan, arriving_at(plan, edges[i]), err);
        if (v < 0)
            return err->code;
        struct item item = {.builtin = BUILTIN_FETCH,
                            .name = "fetch",
                            .kernel = "fetch",
                            .flags = KERNEL_CHEAP,
                            .n_in = 1};
        int *index = mem_alloc(sizeof *index);
        *index = i;
        item.state = index;
        item.in = arena_alloc(&plan->memory, sizeof *item.in);
        item.in[0] = plan->fetch_values[i] = v;
        follow_variable(plan, plan_add_item(plan, &item), edges[i].node);
    }
    return 0;
}

int plan_prepare(struct plan *plan, const struct edge *fetch_edges, struct error *err)
{
    size_t n = plan->graph->nodes.n;
    int *order = mem_array(n + 1, sizeof *order);
    plan->value_of = arena_array(&plan->memory, n + 1, sizeof *plan->value_of);
    plan->item_of = arena_array(&plan->memory, n + 1, sizeof *plan->item_of);
    plan->may_be_absent = arena_array(&plan->memory, n + 1, sizeof *plan->may_be_absent);
    plan->looked_at = arena_array(&plan->memory, n + 1, sizeof *plan->looked_at);
    memset(plan->value_of, -1, n * sizeof *plan->value_of);
    memset(plan->item_of, -1, n * sizeof *plan->item_of);
    int code = graph_order(plan->graph, order, err);
    for (size_t i = 0; !code && i < n; i++)
        if (!(code = plan_goes_on(plan, err)))
            code = add_node(plan, graph_node(plan->graph, order[i]), err);
    mem_free(order);
    plan->in_frame = FRAME_ROOT;
    if (code)
        return code;
    if ((code = bind_back_edges(plan, err)))
        return code;
    bind_after(plan);
    find_outgoing(plan);
    return add_fetches(plan, fetch_edges, err);
}
