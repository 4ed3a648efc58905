/* SPDX-License-Identifier: Apache-2.0
 *
 * Preparing one kernel: what the kernel is shown of the graph, and what it decides for its outputs.
 */
#include "base/memory.h"
#include "exec/plan/plan_steps.h"
#include "exec/step/collective_kernel.h"
#include "exec/step/rendezvous.h"

bool plan_has_known_shapes(const struct plan *plan, const struct node *node)
{
    bool known = true;
    for (int i = 0; known && i < node->n_inputs; i++)
        known = shape_is_known(&graph_output(plan->graph, node->inputs[i])->shape);
    for (int i = 0; known && i < node->n_outputs; i++)
        known = shape_is_known(&node->outputs[i].shape);
    return known;
}

/* Returns whether an alias of the input is known to be the same memory: always in a fixed order;
 * elsewhere for constants, and for values that no async op makes if none takes the alias. */
static bool is_in_order(const struct plan *plan, const struct item *item, int from)
{
    const struct value *root = &plan->values.items[plan_root_value(plan, item->in[from])];
    if (plan_has_order(plan, item->frame) || (root->kind == VALUE_CONSTANT && root->item < 0))
        return true;
    return !item->is_point && root->kind == VALUE_COMPUTED && root->item >= 0 &&
           !plan->items.items[root->item].is_point;
}

static int take_outputs(struct plan *plan, struct item *item, const struct kernel_output *out,
                        struct error *err)
{
    struct variable *variable = NULL;
    for (int i = 0; item->refs && i < item->n_in && !variable; i++)
        variable = item->refs[i];
    for (int i = 0; i < item->n_out; i++) {
        struct value *value = &plan->values.items[item->out[i]];
        int from = out[i].forward == FORWARD_ALIAS ? item->in[out[i].from] : -1;
        if (from >= 0 && plan->values.items[from].on_device != value->on_device)
            return error_set(err, ERR_INTERNAL,
                             "the row of kernel '%s' puts output %d and input %d, the same memory, "
                             "in different places",
                             item->kernel, i, out[i].from);
        if (out[i].forward == FORWARD_REUSE) {
            item->output_over = i + 1;
            item->output_from = out[i].from;
        }
        value->layout = out[i].layout;
        value->alias_input = out[i].forward == FORWARD_ALIAS ? out[i].from : -1;
        value->is_counted |= out[i].forward == FORWARD_SHARE && plan->options.device->is_host;
        if (value->is_ref) {
            value->kind = VALUE_VARIABLE;
            value->variable = variable;
        } else if (out[i].forward == FORWARD_ALIAS && is_in_order(plan, item, out[i].from)) {
            value->alias_of = from;
            value->root = plan->values.items[from].root;
        }
    }
    return 0;
}

/* The preparations of those built-in kernels that have one. */
static int (*const builtin_prepare[N_BUILTINS])(struct kernel_setup *setup) = {
    [BUILTIN_HAND_OVER] = rendezvous_prepare,
    [BUILTIN_TAKE_OVER] = rendezvous_prepare,
    [BUILTIN_REDUCE] = collective_prepare,
};

/* A loop's state is part of the plan. */
void plan_release_state(struct item *item)
{
    if (item->state && item->code && item->code->release)
        item->code->release(item->state);
    else if (item->builtin != BUILTIN_LOOP)
        mem_free(item->state);
    item->state = NULL;
}

int plan_prepare_kernel(struct plan *plan, struct item *item, struct error *err)
{
    const struct node *node = item->node;
    size_t n_in = (size_t)item->n_in + 1;
    struct arena arena = ARENA_INIT;
    struct node_output *in_types = arena_array(&arena, n_in, sizeof *in_types);
    const struct tensor **in_values = arena_array(&arena, n_in, sizeof *in_values);
    const struct layout **in_layouts = arena_array(&arena, n_in, sizeof *in_layouts);
    struct kernel_output *out = arena_array(&arena, (size_t)item->n_out + 1, sizeof *out);
    for (int i = 0; i < item->n_in; i++) {
        const struct value *value = item->in[i] < 0 ? NULL : &plan->values.items[item->in[i]];
        in_types[i] = node ? *graph_output(plan->graph, node->inputs[i])
                           : (struct node_output){value->type, false, value->shape};
        in_layouts[i] = value ? value->layout : NULL;
        in_values[i] = value ? plan_host_constant(plan, item->in[i]) : NULL;
    }
    item->shapes_known = !node || plan_has_known_shapes(plan, node);
    struct kernel_setup setup = {.node = node,
                                 .row = item->row,
                                 .form = item->code ? item->code->form : 0,
                                 .device = plan->options.device,
                                 .variables = plan->options.variables,
                                 .n_in = item->n_in,
                                 .n_out = item->n_out,
                                 .in_types = in_types,
                                 .out_types = node ? node->outputs : in_types,
                                 .in_values = in_values,
                                 .in_layouts = in_layouts,
                                 .shapes_known = item->shapes_known,
                                 .threads = plan_team(plan),
                                 .deterministic = plan->options.device->deterministic,
                                 /* non-finite values must be found where they arise */
                                 .exact =
                                     plan->options.device->exact || plan->options.check_numerics,
                                 .layouts = (item->flags & KERNEL_LAYOUT) != 0,
                                 .out = out,
                                 .name = item->kernel,
                                 .err = err};
    int (*prepare)(struct kernel_setup * setup) =
        item->builtin ? builtin_prepare[item->builtin] : item->code->prepare;
    int code = prepare ? prepare(&setup) : 0;
    item->state = setup.state;
    item->kernel = setup.name;
    item->scratch_bytes = ALIGN_UP(setup.scratch_bytes);
    if (!code)
        code = take_outputs(plan, item, out, err);
    if (code) {
        plan_release_state(item);
        item_fail(item, err);
    }
    arena_release(&arena);
    return code;
}
