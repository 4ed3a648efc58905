/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/plan/fuse_alike.h"

#include <string.h>

#include "graph/access_nodes.h"
#include "graph/infer.h"

/* A gradient waits, in memory, until the last one of its group is there. One that is larger than
 * this keeps a device busy for longer than it takes to enqueue an update of its own. */
#define GRADIENT_BYTES_MAX (2 << 20)

static bool is_update(const struct node *node)
{
    return node->op->def->descent.gradient > 0;
}

const char *alike_joined_op(const struct fuse_groups *g, const struct node *node)
{
    if (!is_update(node))
        return NULL;
    const struct kernel_row *row = kernel_find(g->options->kernels, node, g->options->device);
    bool exists = row && row->with_others &&
                  kernel_exists(g->options->kernels, row->with_others, g->options->device);
    return exists ? row->with_others : NULL;
}

/* ---- variables ---- */

bool alike_writes(const struct alike *a, const struct node *node, int input)
{
    return node_writes_ref(node, input) && a->variable[node->inputs[input].node] >= 0;
}

/* And who waits for an update. */
static void find_writes(struct alike *a)
{
    const struct graph *graph = a->groups->graph;
    for (size_t i = 0; i < graph->nodes.n; i++) {
        const struct node *node = graph_node(graph, (int)i);
        for (int k = 0; k < node->n_inputs; k++) {
            if (!alike_writes(a, node, k))
                continue;
            struct alike_write write = {a->variable[node->inputs[k].node], node->id};
            vec_push(&a->writes, write);
            a->updated[write.variable] |= is_update(node);
        }
        for (int k = 0; k < node->n_controls; k++)
            if (is_update(graph_node(graph, node->controls[k])))
                vec_push(&a->waiters[node->controls[k]], node->id);
    }
}

/* ---- what runs in one step: a plan's graph has no entries, and runs as a whole ---- */

static void find_entries(struct alike *a)
{
    const struct fuse_groups *g = a->groups;
    size_t n = g->graph->nodes.n, n_entries = g->graph->entries.n;
    bool found = n_entries > 0;
    memset(a->entries, n_entries ? 0 : 0xff, n * sizeof *a->entries);
    for (size_t i = 0; i < n_entries; i++)
        for (int k = 0; k < g->graph->entries.items[i].n_edges; k++)
            a->entries[g->graph->entries.items[i].edges[k].node] |= (uint64_t)1
                                                                    << (i < 64 ? i : 63);
    while (found) { /* again, as values also go back, to the next iteration */
        found = false;
        for (size_t i = n; i-- > 0;) {
            const struct node *node = graph_node(g->graph, g->order[i]);
            uint64_t needed = a->entries[node->id];
            for (int k = 0; k < node->n_inputs + node->n_controls; k++) {
                int from = node_dependency(node, k).node;
                found |= from >= 0 && needed & ~a->entries[from];
                if (from >= 0)
                    a->entries[from] |= needed;
            }
        }
    }
}

/* ---- whose memory a value may be ---- */

/* Whether an output may be the memory of an input, as it is. */
static bool hands_on(const struct node *node)
{
    enum { FLAGS = OP_VIEW | OP_PASSES | OP_CHECKS | OP_CONTROL_FLOW };
    const struct op_identity *identity = &node->op->def->identity;
    bool may_be_input = identity->when != SAME_NEVER && identity->when != SAME_OPERAND;
    return may_be_input || node->op->def->flags & (FLAGS | OP_STATEFUL);
}

/* Again and again: values also go back, to the next iteration. */
static void find_shown(struct alike *a)
{
    const struct fuse_groups *g = a->groups;
    bool found;
    do {
        found = false;
        for (size_t i = 0; i < g->graph->nodes.n; i++) {
            const struct node *node = graph_node(g->graph, g->order[i]);
            int variable = a->variable[node->id];
            bool shows = a->shows[node->id] || (variable >= 0 && a->updated[variable]);
            for (int k = 0; k < node->n_inputs && !shows && hands_on(node); k++)
                shows = edge_exists(node->inputs[k]) && a->shows[node->inputs[k].node];
            found |= shows != a->shows[node->id];
            a->shows[node->id] = shows;
        }
    } while (found);
}

/* ---- updates ---- */

static bool is_small(const struct alike *a, const struct node *node)
{
    const struct node_output *gradient =
        fuse_source(a->groups, node->inputs[node->op->def->descent.gradient]);
    const struct node_output *updated = fuse_source(a->groups, node->inputs[0]);
    return shape_is_known(&gradient->shape) && shape_equal(&gradient->shape, &updated->shape) &&
           shape_bytes(&gradient->shape, gradient->type) <= GRADIENT_BYTES_MAX;
}

/* Of variables that nothing else writes, by values that no update changes. */
static bool keeps_apart(const struct alike *a, const struct node *node)
{
    for (int i = 0; i < node->n_inputs; i++) {
        const struct node *from = graph_node(a->groups->graph, node->inputs[i].node);
        bool is_ref = node->op->inputs[i].is_ref;
        if (is_ref ? from->n_inputs : a->shows[from->id])
            return false;
        for (size_t k = 0; is_ref && k < a->writes.n; k++) {
            const struct alike_write *write = &a->writes.items[k];
            if (write->variable == a->variable[from->id] && write->node != node->id &&
                a->entries[write->node] & a->entries[node->id])
                return false;
        }
    }
    return true;
}

/* Besides those that wait for it, nobody may know the node. */
static void find_updates(struct alike *a)
{
    const struct fuse_groups *g = a->groups;
    for (size_t i = 0; i < g->graph->nodes.n; i++) {
        const struct node *node = graph_node(g->graph, (int)i);
        bool is_known = g->uses[i] != (int)a->waiters[i].n || g->named[i];
        for (int k = 0; k < node->n_attrs; k++)
            is_known |=
                fuse_is_mark(node->attrs[k].name) && strcmp(node->attrs[k].name, "_class") != 0;
        if (is_update(node) && !is_known && is_small(a, node) && keeps_apart(a, node) &&
            alike_joined_op(g, node))
            vec_push(&a->updates, node->id);
    }
}

/* ---- classes ---- */

/* The same value, or constants that are equal. */
static bool same_scalar(const struct graph *graph, struct edge x, struct edge y)
{
    const struct tensor *a = graph_constant(graph, x), *b = graph_constant(graph, y);
    struct attr_value of_a, of_b;
    if (edge_equal(x, y) || !a || !b)
        return edge_equal(x, y);
    of_a = attr_tensor(a);
    of_b = attr_tensor(b);
    return attr_equal(&of_a, &of_b);
}

static bool are_alike(const struct alike *a, const struct node *x, const struct node *y)
{
    const node_vec *of_x = &a->waiters[x->id], *of_y = &a->waiters[y->id];
    if (x->op != y->op || !fuse_same_place(x, y) || of_x->n != of_y->n ||
        (of_x->n && memcmp(of_x->items, of_y->items, of_x->n * sizeof *of_x->items) != 0))
        return false;
    for (int i = 0; i < x->n_attrs; i++) {
        const struct attr *attr = &x->attrs[i];
        const struct attr_value *other = node_attr(y, attr->name);
        bool counts = !fuse_is_mark(attr->name) && strcmp(attr->name, "use_locking") != 0;
        if (counts && !(other && attr_equal(&attr->value, other)))
            return false;
    }
    for (int i = 0; i < x->n_inputs; i++)
        if (!x->op->inputs[i].is_ref && i != x->op->def->descent.gradient &&
            !same_scalar(a->groups->graph, x->inputs[i], y->inputs[i]))
            return false;
    return true;
}

static void find_classes(struct alike *a)
{
    const struct graph *graph = a->groups->graph;
    for (size_t i = 0; i < a->updates.n; i++) {
        int id = a->updates.items[i], like = id;
        for (size_t k = 0; k < i && like == id; k++) {
            int first = a->updates.items[k];
            if (a->class[first] == first &&
                are_alike(a, graph_node(graph, first), graph_node(graph, id)))
                like = first;
        }
        a->class[id] = like;
    }
    alike_split_by_causes(a);
}

void alike_init(struct alike *a, struct fuse_groups *groups)
{
    size_t n = groups->graph->nodes.n + 1;
    struct arena *memory = &groups->memory;
    *a = (struct alike){.groups = groups};
    a->variable = access_variables(groups->graph, memory);
    a->updated = arena_array(memory, n, sizeof *a->updated);
    a->entries = arena_array(memory, n, sizeof *a->entries);
    a->shows = arena_array(memory, n, sizeof *a->shows);
    a->waiters = arena_array(memory, n, sizeof *a->waiters);
    a->class = arena_array(memory, n, sizeof *a->class);
    find_writes(a);
    find_entries(a);
    find_shown(a);
    if (!alike_has_race(a))
        find_updates(a);
    find_classes(a);
}

void alike_release(struct alike *a)
{
    for (size_t i = 0; i < a->groups->graph->nodes.n; i++)
        vec_release(&a->waiters[i]);
    vec_release(&a->updates);
    vec_release(&a->writes);
}
