/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of passes, and the first of them, prune, which removes nodes that no entry, alias or
 * kept node needs. A graph without an entry of its own stays whole, since anything in it may be
 * fetched; `init` and `ready`, which every graph with variables has, do not count.
 */
#include "pass/simplify/simplify.h"

#include <string.h>

#include "graph/walk.h"
#include "pass/rewrite.h"

int pass_prune(const struct graph *from, const struct pass_options *options, struct graph **to,
               int *n_changes, struct error *err)
{
    struct rewrite r;
    bool has_own_entry = false;
    for (size_t i = 0; i < from->entries.n; i++)
        has_own_entry |= strcmp(from->entries.items[i].name, "init") &&
                         strcmp(from->entries.items[i].name, "ready");
    if (!has_own_entry)
        return 0;
    if (rewrite_open(&r, from, options, err))
        return err->code;
    struct graph_walk walk = graph_walk_new(&r.arena, from);
    graph_each_named(at, from)
        graph_walk_to(&walk, at.edge.node);
    for (size_t i = 0; i < from->nodes.n; i++)
        if (r.flags[i] & REWRITE_OPAQUE)
            graph_walk_to(&walk, (int)i);
    while (walk.n) {
        const struct node *node = graph_walk_next(&walk, from);
        graph_walk_needs(&walk, node);
        /* Also keep leaders of a node's colocation groups: they may have the group's device. */
        const struct attr_value *groups = node_attr(node, "_class");
        for (int i = 0; groups && i < groups->n; i++) {
            const struct node *leader = group_leader(from, groups->strings[i]);
            if (leader)
                graph_walk_to(&walk, leader->id);
        }
    }
    graph_each_ordered(node, from, r.order) {
        if (walk.seen[node->id])
            rewrite_copy(&r, node);
        else
            rewrite_note(&r, node->name, "no entry needs it");
    }
    return rewrite_close(&r, 0, to, n_changes);
}

const struct pass pass_list[] = {
    {"prune", "removed", pass_prune},
    {"arith", "simplified", pass_arith},
    {"fold", "folded", pass_fold},
    {"cse", "merged", pass_cse},
};
const int pass_count = sizeof pass_list / sizeof *pass_list;

const struct pass *pass_find(const char *name)
{
    for (int i = 0; i < pass_count; i++)
        if (!strcmp(pass_list[i].name, name))
            return &pass_list[i];
    return NULL;
}
