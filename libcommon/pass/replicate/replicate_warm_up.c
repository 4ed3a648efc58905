/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients that cross whole in the first updates, when they are large and change quickly, and in
 * code after these: a count of updates, which checkpoints have, steers each of them. All workers
 * have the same count, so all do the one or the other.
 */
#include "graph/worker_attr.h"
#include "pass/replicate/replicate_private.h"

#define COUNT ALLREDUCE_SCOPE "updates"

void replicate_begin_warm_up(struct replicator *r)
{
    const struct attr mark = {PER_WORKER, attr_string(PER_WORKER_SAME)};
    r->coding = EDGE_NONE;
    if (!r->options->code.name || r->options->after < 1)
        return;
    r->updates = replicate_variable(r, &mark, COUNT, INT64, &SHAPE_SCALAR);
    struct edge after = replicate_number(r, COUNT "/after", INT64, r->options->after);
    struct edge zero = replicate_number(r, COUNT "/zero", INT64, 0);
    int set = replicate_op(r, "Assign", COUNT "/Assign", r->updates, zero);
    r->coding =
        replicate_out(replicate_op(r, "GreaterEqual", ALLREDUCE_SCOPE "codes", r->updates, after));
    if (set >= 0)
        vec_push(&r->inits, set);
}

struct edge replicate_steer(struct replicator *r, struct edge gradient, struct edge *whole)
{
    struct edge value = replicate_exchanged(r, gradient);
    if (!edge_exists(r->coding))
        return value;
    int node =
        replicate_op(r, "Switch", replicate_name_of(r, gradient, "Switch"), value, r->coding);
    *whole = (struct edge){node, 0};
    return (struct edge){node, 1};
}

struct edge replicate_merge(struct replicator *r, struct edge gradient, struct edge mean)
{
    if (!edge_exists(r->coding) || r->err->code)
        return mean;
    struct edge whole = replicate_find_reduced(r, gradient, FOR_WARM_UP, "mean");
    r->merged = replicate_op(r, "Merge", replicate_name_of(r, gradient, "Merge"), whole, mean);
    return replicate_out(r->merged);
}

/* After the last one has come. */
void replicate_end_warm_up(struct replicator *r)
{
    if (!edge_exists(r->coding) || !r->coded.n || r->err->code)
        return;
    struct edge one = replicate_number(r, COUNT "/one", INT64, 1);
    int counted = replicate_op(r, "AssignAdd", COUNT "/AssignAdd", r->updates, one);
    if (counted < 0)
        return;
    graph_add_control(r->to, graph_node(r->to, counted), r->merged);
    vec_push(&r->ends, counted);
}
