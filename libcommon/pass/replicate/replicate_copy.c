/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of the source's nodes: the worker's, those beside variables, and those in the update; and
 * the preparation of a worker's gradients before they cross.
 */
#include <string.h>

#include "pass/part/part.h"
#include "pass/replicate/replicate_push.h"
#include "pass/replicate/replicate_reduce.h"

/* ---- names, groups ---- */

/* If the node has two versions, the update's has a name of its own. */
static const char *update_name(struct replicator *r, const struct node *node)
{
    if (!has(r, node->id, FACT_KEPT))
        return node->name;
    return r->updated[node->id] >= 0 ? graph_node(r->to, r->updated[node->id])->name
                                     : replicate_name(r, replicate_text(r, node->name, "update"));
}

/* The update's node is grouped with the update's version of its leader. */
static const char *leader_in_update(void *context, const struct node *leader, int k)
{
    struct replicator *r = context;
    (void)k;
    return has(r, leader->id, FACT_UPDATE) ? update_name(r, leader) : leader->name;
}

/* ---- edges ---- */

/* Controls are added by replicate_wait_in_update. */
static struct edge in_update(struct replicator *r, const struct node *reader, struct edge edge,
                             int k)
{
    const struct exchange *x = replicate_exchange(r, edge);
    (void)reader, (void)k;
    if (edge.slot == CONTROL_SLOT)
        return EDGE_NONE;
    if (has(r, edge.node, FACT_UPDATE))
        return (struct edge){r->updated[edge.node], edge.slot};
    return x ? x->got : (struct edge){r->copy[edge.node], edge.slot};
}

static struct edge outside(struct replicator *r, const struct node *reader, struct edge edge, int k)
{
    (void)k;
    return replicate_pushes(r) ? replicate_read(r, reader, edge)
                               : replicate_reduced(r, reader, edge);
}

/* ---- copies ---- */

bool replicate_is_read(const struct replicator *r, const struct node *node)
{
    return has(r, node->id, FACT_SHARD) && node_is(node, "Identity") &&
           part_is_variable(r->from, node->inputs[0]);
}

static void copy_outside(struct replicator *r, const struct node *node)
{
    bool by_shards = replicate_pushes(r) && has(r, node->id, FACT_SHARD | FACT_INITIAL);
    const struct node_spec spec = {
        .name = node->name,
        .device = replicate_device(r, node, by_shards ? SHARD_DEVICE : WORKER_DEVICE)};
    int copy = r->copy[node->id] = replicate_add_mapped(r, node, &spec, outside, 0)->id;
    if (replicate_is_read(r, node) ||
        (has(r, node->id, FACT_SHARD) && replicate_is_lookup(r, node))) {
        replicate_narrow(r, copy);
        if (replicate_pushes(r)) /* otherwise it is not sent */
            replicate_hurry(r, copy, r->priority[node->id]);
    }
}

int replicate_copy_all(struct replicator *r, unsigned after)
{
    graph_each_ordered(node, r->from, r->order) {
        bool is_there = !replicate_pushes(r) || has(r, node->id, FACT_KEPT);
        if (is_there && (r->facts[node->id] & FACT_AFTER) == after &&
            !replicate_copy_pieces(r, node))
            copy_outside(r, node);
    }
    if (after)
        replicate_close(r);
    return r->err->code;
}

int replicate_copy_update(struct replicator *r)
{
    const struct copy_rules rules = {r->from, r->to, leader_in_update, NULL, r};
    for (size_t i = 0; i < r->from->nodes.n; i++) {
        if (!has(r, r->order[i], FACT_UPDATE))
            continue;
        const struct node *node = graph_node(r->from, r->order[i]);
        struct node_spec spec = {.name = update_name(r, node),
                                 .device = replicate_device(r, node, SHARD_DEVICE)};
        spec.attrs = copy_attrs(&rules, node, 0, NULL, &spec.n_attrs);
        size_t n_open = r->open.n;
        struct node *copy = replicate_add_mapped(r, node, &spec, in_update, 0);
        if (r->open.n > n_open)
            return error_set(r->err, ERR_DATA, "%s: %s: an update cannot have a loop",
                             node_text(node), node->op->def->name);
        if (replicate_wait_in_update(r, node, copy->id))
            return r->err->code;
        bool reads_state = node_has(node, OP_STATEFUL);
        for (int j = 0; j < node->n_inputs; j++)
            reads_state |= part_is_variable(r->from, node->inputs[j]);
        if (reads_state)
            graph_add_control(r->to, copy, r->round);
        r->updated[node->id] = copy->id;
        pass_note(r->options->pass, copy->name, "update");
    }
    return 0;
}

/* ---- gradients of some rows ----
 *
 * A batch contains the same word many times, and the gradient has a row for each occurrence. The
 * worker sums these first, so that each row crosses once. */

/* Returns the push's i-th exchange of that role; NULL: there are fewer. */
static struct exchange *with_role(const struct push *push, const char *role, int i)
{
    vec_each(x, &push->exchanges) {
        if (!strcmp(replicate_role((*x)->node), role) && i-- == 0)
            return *x;
    }
    return NULL;
}

/* Returns whether the numbers are known to be distinct. */
static bool is_distinct(const struct replicator *r, struct edge numbers)
{
    const struct node *node = graph_node(r->from, numbers.node);
    while (node->n_inputs == 1 && node->op->def->identity.when == SAME_ALWAYS) {
        numbers = node->inputs[0];
        node = graph_node(r->from, numbers.node);
    }
    return node_rows(node) == ROWS_DISTINCT && numbers.slot == 0;
}

static void sum(struct replicator *r, struct exchange *numbers, struct exchange *values)
{
    const char *name = values->node->name;
    struct edge distinct =
        replicate_op(r, "Unique", replicate_edge(r, numbers->edge), EDGE_NONE, "%s/distinct", name);
    struct edge size = replicate_op(r, "Size", distinct, EDGE_NONE, "%s/distinct/size", name);
    const struct edge inputs[] = {replicate_edge(r, values->edge), build_slot(distinct, 1), size};
    numbers->brought = distinct;
    values->brought = replicate_node(r, "UnsortedSegmentSum", inputs, 3, NULL, 0, "%s/sum", name);
}

int replicate_sum_rows(struct replicator *r)
{
    vec_each(push, &r->pushes) {
        for (size_t k = 0; k < push->exchanges.n; k++) {
            struct exchange *numbers = with_role(push, ROLE_INDICES, (int)k);
            struct exchange *values = with_role(push, ROLE_VALUES, (int)k);
            if (numbers && values && !is_distinct(r, numbers->edge))
                sum(r, numbers, values);
        }
    }
    return r->err->code;
}

struct edge replicate_crossing(struct replicator *r, const struct exchange *x)
{
    return edge_exists(x->brought) ? x->brought : replicate_edge(r, x->edge);
}
