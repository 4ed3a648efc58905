/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that go from worker to worker: in host memory, by the step's collective.
 */
#include <string.h>

#include "base/memory.h"
#include "ops/aggregate/collective_share.h"

struct collective_route {
    struct collective_options options;
    enum collective_kind kind;
    bool has_root;
    int root;
};

static enum collective_kind kind_of(const struct node *node)
{
    static const struct {
        const char *op;
        enum collective_kind kind;
    } kinds[] = {{"CollectiveBroadcast", COLLECTIVE_FIRST},
                 {"CollectiveGather", COLLECTIVE_ROWS},
                 {"CollectiveAllGather", COLLECTIVE_ROWS},
                 {"CollectiveScatter", COLLECTIVE_PART},
                 {"CollectiveAllToAll", COLLECTIVE_PART}};
    enum collective_kind kind = COLLECTIVE_SUM_PART;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (node_is(node, kinds[i].op))
            return kinds[i].kind;
    if (node_is(node, "CollectiveGrad"))
        collective_kind_of(node_string(node, "reduction"), &kind);
    else if (!strcmp(node_string(node, "reduction"), "mean"))
        kind = COLLECTIVE_MEAN_PART;
    return kind;
}

static int prepare(struct kernel_setup *setup)
{
    const struct attr_value *root = node_attr(setup->node, "root");
    struct collective_route *route = setup->state = mem_alloc(sizeof *route);
    enum dtype type = setup->in_types[0].type;
    route->options = collective_options_of(setup->node);
    route->kind = kind_of(setup->node);
    route->has_root = root && root->i >= 0;
    route->root = route->has_root && root->i <= INT32_MAX ? (int)root->i : -1;
    if ((collective_adds(route->kind) || collective_divides(route->kind)) &&
        !collective_can_add(route->kind, type))
        return kernel_setup_fail(setup, "there is no %s of %s",
                                 collective_divides(route->kind) ? "mean" : "sum",
                                 dtype_name(type));
    return 0;
}

static int run(struct kernel_call *call)
{
    const struct collective_route *route = call->state;
    const struct tensor *shape = call->n_in > 1 ? call->in[1] : NULL;
    int64_t rows = shape && tensor_count(shape) ? tensor_get_int64(shape, 0) : 0;
    struct tensor value;
    if (rows < 0)
        return kernel_fail(call, "a shape begins with %lld", (long long)rows);
    int code = kernel_take_input(call, 0, &value);
    const struct collective_call what = {.kinds = &route->kind,
                                         .n = 1,
                                         .has_root = route->has_root,
                                         .root = route->root,
                                         .rows = shape ? &rows : NULL};
    return code ? code : collective_ask(call, &value, what, collective_share);
}

const struct kernel_code kernel_collective = {.prepare = prepare, .run = run};
