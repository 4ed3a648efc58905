/* SPDX-License-Identifier: Apache-2.0
 *
 * Items that bring values back to row-major order, for kernels that know no layouts.
 */
#include "exec/plan/plan_steps.h"

int plan_row_major(struct plan *plan, int v, struct error *err)
{
    struct value from = plan->values.items[v];
    if (!from.layout)
        return v;
    for (size_t i = 0; i < plan->items.n; i++) {
        const struct item *made = &plan->items.items[i];
        if (!made->node && made->code == plan->options.device->layout->relayout && made->in[0] == v)
            return made->out[0];
    }
    struct node_output type = {from.type, false, from.shape};
    struct kernel_output output = {.layout = NULL};
    const struct tensor *no_value = NULL;
    const struct kernel_code *relayout = plan->options.device->layout->relayout;
    struct kernel_setup setup = {.device = plan->options.device,
                                 .n_in = 1,
                                 .n_out = 1,
                                 .in_types = &type,
                                 .out_types = &type,
                                 .in_values = &no_value,
                                 .in_layouts = &from.layout,
                                 .shapes_known = true,
                                 .threads = plan->options.device->threads,
                                 .out = &output,
                                 .name = "relayout",
                                 .err = err};
    if (relayout->prepare(&setup))
        return -1;
    struct item item = {.code = relayout,
                        .name = "relayout",
                        .kernel = setup.name,
                        .state = setup.state,
                        .scratch_bytes = setup.scratch_bytes,
                        .n_in = 1,
                        .n_out = 1};
    item.in = arena_alloc(&plan->memory, 2 * sizeof *item.in);
    item.out = item.in + 1;
    item.in[0] = v;
    item.out[0] = plan_add_value(plan, from.type, &from.shape);
    plan->values.items[item.out[0]].on_device = from.on_device;
    plan->values.items[item.out[0]].item = plan_add_item(plan, &item);
    return item.out[0];
}
