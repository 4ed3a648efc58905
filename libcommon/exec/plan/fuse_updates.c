/* SPDX-License-Identifier: Apache-2.0
 *
 * Updates of variables that are alike become one node, in the place of the last one of them.
 */
#include <stdlib.h>

#include "base/container_of.h"
#include "base/memory.h"
#include "exec/plan/fuse_alike.h"

#define GROUP_MAX 32 /* whose gradients are kept until the last one is there */

struct updates {
    struct fuse_groups groups;
    struct alike alike;
};

/* ---- groups ---- */

/* The updates of a class that come next in the graph's order, from `at` on of `ordered`. */
static int next_of_class(const struct updates *u, const node_vec *ordered, size_t at, int class,
                         int group[GROUP_MAX])
{
    int n = 0;
    for (; at < ordered->n && n < GROUP_MAX; at++) {
        int id = ordered->items[at];
        if (u->alike.class[id] == class && u->groups.end[id] < 0)
            group[n++] = id;
    }
    return n;
}

static void claim(struct updates *u, const int *group, int n)
{
    int end = group[0];
    for (int i = 1; i < n; i++)
        end = group[i] > end ? group[i] : end;
    for (int i = 0; i < n; i++)
        u->groups.end[group[i]] = end;
    u->groups.fused->n_gone += n - 1;
}

/* In the graph's order, so that the gradients of a group are made one soon after the other. */
static void find_groups(struct updates *u)
{
    node_vec ordered = VEC_INIT;
    bool *is_update = arena_array(&u->groups.memory, u->groups.graph->nodes.n + 1, 1);
    int group[GROUP_MAX];
    for (size_t i = 0; i < u->alike.updates.n; i++)
        is_update[u->alike.updates.items[i]] = true;
    for (size_t i = 0; i < u->groups.graph->nodes.n; i++)
        if (is_update[u->groups.order[i]])
            vec_push(&ordered, u->groups.order[i]);
    for (size_t i = 0; i < ordered.n; i++) {
        int id = ordered.items[i];
        int n =
            u->groups.end[id] < 0 ? next_of_class(u, &ordered, i, u->alike.class[id], group) : 0;
        if (n > 1)
            claim(u, group, n);
    }
    vec_release(&ordered);
}

/* ---- their nodes ---- */

struct update_inputs {
    VEC(struct edge) variables, slots, gradients, scalars; /* scalars: those of one of them */
};

static void collect(const struct node *node, struct update_inputs *inputs)
{
    bool is_first = !inputs->variables.n;
    for (int i = 0; i < node->n_inputs; i++) {
        if (i == node->op->def->descent.gradient)
            vec_push(&inputs->gradients, node->inputs[i]);
        else if (node->op->inputs[i].is_ref && i)
            vec_push(&inputs->slots, node->inputs[i]);
        else if (node->op->inputs[i].is_ref)
            vec_push(&inputs->variables, node->inputs[i]);
        else if (is_first)
            vec_push(&inputs->scalars, node->inputs[i]);
    }
}

static const struct edge *list_all(struct arena *arena, const struct update_inputs *inputs, int *n)
{
    VEC(struct edge) all = VEC_INIT;
#define ADD(list)                                                                                  \
    for (size_t i = 0; i < inputs->list.n; i++)                                                    \
        vec_push(&all, inputs->list.items[i]);
    ADD(variables)
    ADD(slots)
    ADD(gradients)
    ADD(scalars)
#undef ADD
    const struct edge *copy = arena_copy(arena, all.items, all.n * sizeof *copy);
    *n = (int)all.n;
    vec_release(&all);
    return copy;
}

/* Sorted by name, as a node's are. */
static struct attr *describe_attrs(struct arena *arena, const struct node *end,
                                   const struct update_inputs *inputs, int *n)
{
    const struct attr_value *nesterov = node_attr(end, "use_nesterov");
    struct attr attrs[] = {
        {"M", attr_int((int64_t)inputs->slots.n)},
        {"N", attr_int((int64_t)inputs->variables.n)},
        {"S", attr_int((int64_t)inputs->scalars.n)},
        {"T", attr_type(end->outputs[0].type)},
        {"rule", attr_string(end->op->def->name)},
        {"use_nesterov", attr_bool(nesterov && nesterov->b)},
    };
    *n = sizeof attrs / sizeof *attrs;
    return arena_copy(arena, attrs, sizeof attrs);
}

static void describe(struct fuse_groups *groups, const struct node *end, struct node_spec *spec)
{
    const struct updates *u = CONTAINER_OF(groups, struct updates, groups);
    struct arena *arena = &groups->to->arena;
    struct update_inputs inputs = {VEC_INIT, VEC_INIT, VEC_INIT, VEC_INIT};
    for (size_t i = 0; i < u->alike.updates.n; i++)
        if (groups->end[u->alike.updates.items[i]] == end->id)
            collect(graph_node(groups->graph, u->alike.updates.items[i]), &inputs);
    spec->op = alike_joined_op(groups, end);
    spec->inputs = list_all(arena, &inputs, &spec->n_inputs);
    spec->attrs = describe_attrs(arena, end, &inputs, &spec->n_attrs);
    vec_release(&inputs.variables);
    vec_release(&inputs.slots);
    vec_release(&inputs.gradients);
    vec_release(&inputs.scalars);
}

/* Where no device asks for it, as the CPU does not, nothing more is looked at. */
static bool may_join(const struct fuse_groups *groups)
{
    for (size_t i = 0; i < groups->graph->nodes.n; i++)
        if (alike_joined_op(groups, graph_node(groups->graph, (int)i)))
            return true;
    return false;
}

void fuse_updates(const struct graph *graph, const struct fuse_options *options,
                  struct fused *fused)
{
    struct updates u;
    if (fuse_groups_init(&u.groups, graph, options, fused) && may_join(&u.groups)) {
        alike_init(&u.alike, &u.groups);
        u.groups.n_outputs = 0;
        find_groups(&u);
        if (fused->n_gone)
            fuse_rewrite(&u.groups, describe);
        alike_release(&u.alike);
    }
    fuse_groups_release(&u.groups);
}
