/* SPDX-License-Identifier: Apache-2.0
 *
 * Common subexpressions: of nodes that compute the same from the same inputs, the first stays.
 * Equal inputs and controls imply the same loop and the same conditions. Not merged: nodes with
 * state or reads of variables, control flow, nodes that are fed, and constants with names of their
 * own, which are settings that users may want to change separately.
 */
#include <string.h>

#include "pass/rewrite.h"
#include "pass/simplify/simplify.h"

struct cse_table {
    struct rewrite *r;
    struct map last; /* by hash: the last node of `to` that has it */
    int *before;     /* by node of `to`: the one before it that has its hash; -1: none */
};

static bool may_swap(const struct node *node)
{
    return node_has(node, OP_COMMUTATIVE) && node->n_inputs == 2;
}

/* The same for operands that are swapped. */
static uint64_t hash_node(const struct node *node)
{
    size_t n = (size_t)node->n_inputs * sizeof *node->inputs;
    uint64_t hash = hash_bytes(&node->op, sizeof node->op, 1);
    if (may_swap(node))
        hash += hash_bytes(&node->inputs[0], sizeof *node->inputs, hash) +
                hash_bytes(&node->inputs[1], sizeof *node->inputs, hash);
    else
        hash = hash_bytes(node->inputs, n, hash);
    hash = hash_bytes(node->controls, (size_t)node->n_controls * sizeof *node->controls, hash);
    for (int i = 0; i < node->n_attrs; i++)
        hash = attr_hash(&node->attrs[i].value, hash);
    return hash;
}

static bool same_bytes(const void *a, const void *b, size_t n)
{
    return n == 0 || !memcmp(a, b, n);
}

/* Compares two nodes of `to`. */
static bool is_same(const struct node *a, const struct node *b)
{
    if (a->op != b->op || a->n_inputs != b->n_inputs || a->n_controls != b->n_controls ||
        !same_bytes(a->controls, b->controls, (size_t)a->n_controls * sizeof *a->controls) ||
        strcmp(a->device, b->device) || strcmp(a->assigned, b->assigned) ||
        a->n_attrs != b->n_attrs)
        return false;
    if (!same_bytes(a->inputs, b->inputs, (size_t)a->n_inputs * sizeof *a->inputs) &&
        !(may_swap(a) && edge_equal(a->inputs[0], b->inputs[1]) &&
          edge_equal(a->inputs[1], b->inputs[0])))
        return false;
    for (int i = 0; i < a->n_attrs; i++)
        if (strcmp(a->attrs[i].name, b->attrs[i].name) ||
            !attr_equal(&a->attrs[i].value, &b->attrs[i].value))
            return false;
    return true;
}

static void merge_node(struct cse_table *t, const struct node *node)
{
    struct rewrite *r = t->r;
    struct node view = rewrite_view(r, node);
    if (r->flags[node->id] & (REWRITE_STATEFUL | REWRITE_OPAQUE) ||
        node_has(node, OP_CONTROL_FLOW | OP_FED) || !node->n_outputs ||
        (node_is(node, "Const") && rewrite_has_own_name(r, node))) {
        rewrite_add(r, node, &view);
        return;
    }
    const uint64_t hash = hash_node(&view);
    int64_t last = -1;
    map_get_number(&t->last, hash, &last);
    const struct node *same = NULL; /* an earlier node of `to` that computes the same */
    for (int known = (int)last; known >= 0 && !same; known = t->before[known])
        if (is_same(graph_node(r->to, known), &view))
            same = graph_node(r->to, known);
    if (same && !(r->flags[node->id] & REWRITE_KEPT)) {
        rewrite_stand_in(r, node, same->id);
        if (rewrite_has_own_name(r, node))
            vec_push_in(&r->arena, &r->lost, ((struct alias){node->name, {same->id, 0}}));
        rewrite_note(r, node->name, arena_printf(&r->arena, "same as '%s'", same->name));
        return;
    }
    const struct node *copy = rewrite_add(r, node, &view);
    if (!same) {
        t->before[copy->id] = (int)last;
        map_put_number(&t->last, hash, copy->id);
    }
}

int pass_cse(const struct graph *from, const struct pass_options *options, struct graph **to,
             int *n_changes, struct error *err)
{
    struct rewrite r;
    struct cse_table t = {.r = &r};
    if (rewrite_open(&r, from, options, err))
        return err->code;
    t.before = arena_array(&r.arena, from->nodes.n + 1, sizeof *t.before);
    for (size_t i = 0; i < from->nodes.n; i++)
        merge_node(&t, graph_node(from, r.order[i]));
    map_release(&t.last);
    return rewrite_close(&r, 0, to, n_changes);
}
