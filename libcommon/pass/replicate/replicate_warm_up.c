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
    struct edge after = replicate_number(r, INT64, r->options->after, COUNT "/after");
    struct edge zero = replicate_number(r, INT64, 0, COUNT "/zero");
    replicate_assign(r, &r->inits, r->updates, zero, COUNT "/Assign");
    r->coding = replicate_op(r, "GreaterEqual", r->updates, after, ALLREDUCE_SCOPE "codes");
}

struct edge replicate_steer(struct replicator *r, struct edge gradient, struct edge *whole)
{
    struct edge value = replicate_exchanged(r, gradient);
    if (!edge_exists(r->coding))
        return value;
    struct edge node =
        replicate_op(r, "Switch", value, r->coding, "%s/Switch", replicate_edge_name(r, gradient));
    *whole = build_slot(node, 0);
    return build_slot(node, 1);
}

struct edge replicate_merge(struct replicator *r, struct edge gradient, struct edge mean)
{
    if (!edge_exists(r->coding) || r->err->code)
        return mean;
    struct edge whole = replicate_find_reduced(r, gradient, FOR_WARM_UP, "mean");
    struct edge merged =
        replicate_op(r, "Merge", whole, mean, "%s/Merge", replicate_edge_name(r, gradient));
    r->merged = merged.node;
    return merged;
}

/* After the last one has come. */
void replicate_end_warm_up(struct replicator *r)
{
    if (!edge_exists(r->coding) || !r->coded.n || r->err->code)
        return;
    struct edge one = replicate_number(r, INT64, 1, COUNT "/one");
    struct edge counted = replicate_op(r, "AssignAdd", r->updates, one, COUNT "/AssignAdd");
    replicate_wait(r, counted, r->merged);
    replicate_also(r, &r->ends, counted);
}
