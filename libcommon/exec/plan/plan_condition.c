/* SPDX-License-Identifier: Apache-2.0
 *
 * Under which conditions items run: as far as the graph shows it, and as tf-part has told.
 */
#include <string.h>

#include "base/memory.h"
#include "exec/plan/plan_internal.h"
#include "graph/access.h"
#include "graph/frames.h"

struct conditions {
    const struct plan *plan;
    struct access_graph *graph;
    struct arena *memory;
    struct map predicates; /* by name */
    int *condition;        /* by item */
};

static int predicate_number(struct conditions *c, const char *name)
{
    int64_t number = (int64_t)c->predicates.n;
    if (!map_get(&c->predicates, name, &number))
        map_put(&c->predicates, name, number);
    return (int)number;
}

/* "PREDICATE BRANCH", as tf-part says what a part does not show. */
static int told_condition(struct conditions *c, const struct attr_value *told)
{
    int condition = -1;
    for (int i = 0; i < told->n; i++) {
        const char *space = strrchr(told->strings[i], ' ');
        if (!space)
            continue;
        const char *name =
            arena_printf(c->memory, "%.*s", (int)(space - told->strings[i]), told->strings[i]);
        condition =
            access_condition_add(c->graph, predicate_number(c, name), space[1] == '1', condition);
    }
    return condition;
}

/* Those of the graph, with the same numbers. */
static void add_known(struct conditions *c, const struct frames *frames)
{
    for (size_t i = 0; i < frames->conditions.n; i++) {
        const struct condition *known = &frames->conditions.items[i];
        const char *name = arena_printf(c->memory, "%s:%d",
                                        graph_node(c->plan->graph, known->predicate.node)->name,
                                        known->predicate.slot);
        access_condition_add(c->graph, predicate_number(c, name), known->branch, known->parent);
    }
}

static void find_condition(struct conditions *c, int id, const struct frames *frames)
{
    const struct plan *plan = c->plan;
    const struct node *node = plan->items.items[id].node;
    const struct attr_value *told = node ? node_attr(node, "_condition") : NULL;
    if (told && told->kind == ATTR_LIST_STRING)
        c->condition[id] = told_condition(c, told);
    else if (node)
        c->condition[id] = frames->condition[node->id];
}

/* What is copied for a Merge is copied where it is there. */
static void find_copies_for(struct conditions *c, const struct item *merge,
                            const struct frames *frames)
{
    const struct plan *plan = c->plan;
    for (int k = 0; k < merge->n_in; k++) {
        int copy = plan->values.items[merge->in[k]].item;
        if (copy >= 0 && plan->items.items[copy].code == &plan_copy_code)
            c->condition[copy] = frames_edge_condition(frames, plan->graph, merge->node->inputs[k]);
    }
}

/* A copy that the planner made for one consumer runs when that does. */
static void find_copies(struct conditions *c, const struct frames *frames)
{
    const struct plan *plan = c->plan;
    for (size_t i = 0; i < plan->items.n; i++)
        if (plan->items.items[i].flow == FLOW_MERGE)
            find_copies_for(c, &plan->items.items[i], frames);
    for (size_t i = 0; i < plan->items.n; i++)
        for (int k = 0; k < plan->items.items[i].n_in; k++) {
            int copy =
                plan->items.items[i].in[k] < 0 ? -1 : plan_copy_for(plan, &plan->items.items[i], k);
            if (copy >= 0)
                c->condition[copy] = c->condition[i];
        }
}

const int *plan_find_conditions(const struct plan *plan, struct access_graph *graph,
                                struct arena *memory)
{
    struct conditions c = {plan, graph, memory, MAP_INIT, NULL};
    struct error ignored = ERROR_INIT;
    struct frames *frames;
    if (frames_new(plan->graph, &frames, &ignored)) /* then nothing is known */
        return NULL;
    c.condition = arena_array(memory, plan->items.n + 1, sizeof *c.condition);
    memset(c.condition, -1, plan->items.n * sizeof *c.condition);
    add_known(&c, frames);
    for (size_t i = 0; i < plan->items.n; i++)
        find_condition(&c, (int)i, frames);
    find_copies(&c, frames);
    frames_free(frames);
    map_release(&c.predicates);
    return c.condition;
}
