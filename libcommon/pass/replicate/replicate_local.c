/* SPDX-License-Identifier: Apache-2.0
 *
 * What a worker keeps for itself: sums of gradients that are pushed every so often (accumulation,
 * and Downpour of DistBelief, Dean et al. 2012), and copies of variables that are fetched every so
 * often. Which steps do is told by a counter, and steered by Switches: a step that does not push
 * leaves its push dead.
 */
#include <string.h>

#include "graph/infer.h"
#include "graph/worker_attr.h"
#include "pass/part/part.h"
#include "pass/replicate/replicate_push.h"

int replicate_add_local(struct replicator *r)
{
    if (r->steps <= 1 && r->options->fetch <= 1)
        return 0;
    struct edge count = replicate_local(r, WORKER_STEP_COUNT, INT64, &SHAPE_SCALAR);
    struct edge zero = replicate_number(r, INT64, 0, "clock/count/zero");
    struct edge one = replicate_number(r, INT64, 1, "clock/count/one");
    struct edge next = replicate_op(r, "Add", count, one, "clock/count/next");
    if (r->err->code)
        return r->err->code;
    if (r->options->fetch > 1)
        r->fetches = replicate_due(r, "clock/fetches", count, r->options->fetch);
    if (r->steps > 1)
        r->fires = replicate_due(r, WORKER_PUSHES, next, r->steps);
    replicate_assign(r, &r->joined, count, zero, "clock/count/join");
    replicate_assign(r, &r->ends, count, next, "clock/count/Assign");
    return r->err->code;
}

/* ---- variables fetched every so often ---- */

/* The step that the worker takes in between: the rate times its gradient. */
static double rate_of(const struct replicator *r, const struct node *variable)
{
    for (size_t i = 0; i < r->from->nodes.n && r->options->rate < 0; i++) {
        const struct node *node = graph_node(r->from, (int)i);
        if (!has(r, (int)i, FACT_WRITER) || !node->op->def->descent.is_plain ||
            node->inputs[0].node != variable->id)
            continue;
        const struct tensor *rate =
            graph_constant(r->from, node->inputs[node->op->def->descent.rate]);
        return rate && tensor_count(rate) == 1 ? tensor_get_float64(rate, 0) : 0;
    }
    return r->options->rate > 0 ? r->options->rate : 0;
}

struct edge replicate_read(struct replicator *r, const struct node *reader, struct edge edge)
{
    /* The edge may be a variable's value, on a shard. */
    const struct node *node = graph_node(r->from, edge.node);
    if (node_is(node, "Identity") && has(r, node->id, FACT_SHARD))
        node = graph_node(r->from, node->inputs[0].node);
    const struct node *variable = edge.slot == 0 && node_is(node, "Variable") ? node : NULL;
    if (!edge_exists(r->fetches) || !variable || has(r, reader->id, FACT_SHARD | FACT_INITIAL))
        return replicate_edge(r, edge);
    for (size_t i = 0; i < r->locals.n; i++)
        if (r->locals.items[i].variable == variable)
            return r->locals.items[i].used;
    struct edge shared = replicate_edge(r, edge);
    const struct node_output *output = &variable->outputs[0];
    const char *name = replicate_text(r, variable->name, "local");
    struct edge copy = replicate_local(r, name, output->type, &output->shape);
    /* Sent by the shard only in steps that fetch. */
    struct edge fetched = replicate_op_beside(r, "Switch", shared, r->fetches, variable->name,
                                              "%s/local/fetched", variable->name);
    if (edge_exists(fetched) && !replicate_narrow(r, fetched.node))
        replicate_hurry(r, fetched.node, r->priority[variable->id]);
    struct edge kept = replicate_op(r, "Switch", copy, r->fetches, "%s/kept", name);
    struct edge used =
        replicate_op(r, "Merge", build_slot(kept, 0), build_slot(fetched, 1), "%s/used", name);
    replicate_assign(r, &r->joined, copy, shared, "%s/join", name);
    vec_push_in(&r->arena, &r->locals, ((struct local_copy){variable, copy, used}));
    return used;
}

/* After a step the copy is what was used, less what the step itself would change. */
int replicate_end_local(struct replicator *r)
{
    for (size_t i = 0; i < r->locals.n && !r->err->code; i++) {
        struct local_copy local = r->locals.items[i];
        const struct node *gradient = NULL;
        for (size_t k = 0; !gradient && k < r->from->nodes.n; k++)
            if (replicate_variable_of(r, graph_node(r->from, (int)k)) == local.variable)
                gradient = graph_node(r->from, (int)k);
        const char *name = replicate_text(r, local.variable->name, "local");
        double rate = gradient ? rate_of(r, local.variable) : 0;
        struct edge next = local.used;
        if (rate > 0 && replicate_may_leave_out(r))
            return error_set(r->err, ERR_DATA,
                             "the graph leaves out updates now and then, as a dynamic loss scale "
                             "does, which steps of a worker's own cannot: give downpour rate=0");
        if (rate > 0) {
            struct edge factor =
                replicate_number(r, local.variable->outputs[0].type, rate, "%s/rate", name);
            struct edge change =
                replicate_op(r, "Mul", replicate_edge(r, replicate_out(gradient->id)), factor,
                             "%s/change", name);
            next = replicate_op(r, "Sub", local.used, change, "%s/next", name);
        }
        replicate_assign(r, &r->ends, local.copy, next, "%s/Assign", name);
    }
    return r->err->code;
}
