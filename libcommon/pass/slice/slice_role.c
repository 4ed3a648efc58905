/* SPDX-License-Identifier: Apache-2.0
 *
 * What has to do with tables that are cut: what changes them, and the aggregators of their
 * gradients.
 */
#include <string.h>

#include "graph/access_nodes.h"
#include "graph/update_rows.h"
#include "pass/part/part.h"
#include "pass/slice/slice_private.h"

bool slice_can_write(const struct node *node)
{
    enum op_rows rows = node_rows(node);
    bool is_of_all = update_first_row(node) < 0;
    return (rows == ROWS_UPDATE && is_of_all) || rows == ROWS_SCATTER || rows == ROWS_ASK;
}

void slice_find_origins(struct slicer *s)
{
    graph_each_ordered(node, s->from, s->r.order) {
        bool hands_on =
            node_is(node, "Identity") || (node_is(node, "Enter") && node_bool(node, "is_constant"));
        s->origin[node->id] = hands_on ? s->origin[node->inputs[0].node] : node;
    }
}

const struct node *slice_origin(const struct slicer *s, struct edge edge)
{
    return s->origin[edge.node];
}

static int find_writer(struct slicer *s, const struct node *node)
{
    for (int i = 0; i < node->n_inputs; i++) {
        int from = node->inputs[i].node;
        if (!node_takes_ref(node, i) ||
            (s->role[from] != SLICE_VARIABLE && s->role[from] != SLICE_WRITER))
            continue;
        if (!slice_can_write(node))
            return error_set(s->err, ERR_DATA,
                             "%s: %s: needs '%s' whole, which is to be cut into %d slices",
                             node_text(node), node->op->def->name, graph_node(s->from, from)->name,
                             slice_cut_at(s, s->slicing[from]).n);
        s->role[node->id] = SLICE_WRITER;
        s->slicing[node->id] = s->slicing[from];
        return 0;
    }
    return 0;
}

static const struct node *table_of(const struct slicer *s, const struct node *node)
{
    const struct node *variable = graph_find(s->from, node_string(node, "aggregator"));
    bool is_cut = variable && node_is(variable, "Variable");
    return is_cut && s->role[variable->id] == SLICE_VARIABLE ? variable : NULL;
}

/* One of the two factors of a gradient, which have rows of batches, not of the table: "rows" and
 * "mean_rows" as well, but the first of floats. */
static bool is_factor(const struct node *take, int slot)
{
    const char *const *reductions = node_attr(take, "reductions")->strings;
    int left = strcmp(reductions[slot], "mean_rows") ? slot : slot - 1;
    return left >= 0 && !strcmp(reductions[left], "rows") &&
           dtype_is_floating(take->outputs[left].type);
}

enum taken slice_taken(const struct slicer *s, const struct node *take, int slot)
{
    if (is_factor(take, slot))
        return TAKEN_OTHER;
    const char *reduction = node_attr(take, "reductions")->strings[slot];
    const struct shape *shape = &take->outputs[slot].shape;
    const struct node *table = table_of(s, take);
    if (!strcmp(reduction, "rows"))
        return slice_partner(take, slot) < 0 ? TAKEN_OTHER : TAKEN_INDEX;
    if (!strcmp(reduction, "mean_rows"))
        return slice_partner(take, slot) < 0 ? TAKEN_OTHER : TAKEN_VALUES;
    return shape_equal(shape, &table->outputs[0].shape) ? TAKEN_DENSE : TAKEN_OTHER;
}

/* The i-th indices belong to the i-th values. */
int slice_partner(const struct node *take, int slot)
{
    const struct attr_value *reductions = node_attr(take, "reductions");
    bool values = !strcmp(reductions->strings[slot], "mean_rows");
    int before = 0;
    for (int i = 0; i < slot; i++)
        before += !strcmp(reductions->strings[i], reductions->strings[slot]) && !is_factor(take, i);
    for (int i = 0; i < reductions->n; i++)
        if (!strcmp(reductions->strings[i], values ? "rows" : "mean_rows") && !is_factor(take, i) &&
            before-- == 0)
            return i;
    return -1;
}

bool slice_is_table(const struct slicer *s, struct edge edge, int *slicing)
{
    const struct node *node = slice_origin(s, edge);
    if (s->role[node->id] != SLICE_VARIABLE)
        return false;
    *slicing = s->slicing[node->id];
    return true;
}

int slice_find_roles(struct slicer *s)
{
    for (size_t i = 0; i < s->from->nodes.n; i++)
        if (find_writer(s, graph_node(s->from, s->r.order[i])))
            return s->err->code;
    graph_each(take, s->from) {
        const struct node *table = node_round(take) == ROUND_TAKE ? table_of(s, take) : NULL;
        if (!table)
            continue;
        bool found = false;
        for (int j = 0; j < take->n_outputs; j++)
            found |= slice_taken(s, take, j) != TAKEN_OTHER;
        if (!found)
            continue;
        s->role[take->id] = SLICE_TAKE;
        s->slicing[take->id] = s->slicing[table->id];
        graph_each(push, s->from) {
            if (node_round(push) == ROUND_PUSH && push->n_inputs == take->n_outputs &&
                !strcmp(node_string(push, "aggregator"), node_string(take, "aggregator")) &&
                !strcmp(node_string(push, "container"), node_string(take, "container"))) {
                s->role[push->id] = SLICE_PUSH;
                s->slicing[push->id] = s->slicing[table->id];
                s->take[push->id] = take->id;
            }
        }
    }
    return 0;
}
