/* SPDX-License-Identifier: Apache-2.0
 *
 * Advice for a graph that is cut. What is run later is some part of it, and what holds of all of it
 * may contradict itself; but no edge between two strongly connected components is on a cycle of any
 * part of the graph, so that all such edges can be followed together.
 */
#include "base/memory.h"
#include "graph/access_private.h"

static void advise_copies(const struct access_rule *rule, bool *advised,
                          struct access_advice *advice)
{
    for (size_t i = 0; i < rule->edges.n; i++) {
        const struct rule_edge *edge = &rule->edges.items[i];
        if (edge->access < 0 || advised[edge->access] || access_rule_holds(rule, edge))
            continue;
        advised[edge->access] = true;
        vec_push(&advice->copies, edge->access);
    }
}

/* Of two writes of a variable the first one that is placed comes first. */
static void advise_writes(const struct access_sorter *s, struct access_advice *advice)
{
    const struct access_rule *rule = s->rule;
    const struct access *accesses = s->graph->accesses.items;
    access_place_vec places = VEC_INIT;
    size_t n = advice->wishes.n;
    access_sort_places(s, &places);
    for (size_t i = 0; i < places.n; i++) {
        const struct access *first = &accesses[places.items[i].access];
        for (size_t k = i + 1; first->write && k < places.n; k++) {
            const struct access *then = &accesses[places.items[k].access];
            int from = rule->level.vertex[first->node], to = rule->level.vertex[then->node];
            if (then->variable != first->variable)
                break;
            if (then->write && rule->component[from] != rule->component[to])
                vec_push(&advice->wishes, ((struct access_edge){first->node, then->node}));
        }
    }
    access_level_drop_implied(&rule->level, &advice->wishes, n);
    vec_release(&places);
}

static void advise_frame(const struct access_graph *graph, int frame, bool *advised,
                         struct access_advice *advice)
{
    struct access_rule rule;
    struct access_sorter s;
    if (!access_frame_writes(graph, frame) || !access_rule_init(&rule, graph, frame))
        return;
    rule.is_loose = true;
    if (access_sort(&s, &rule))
        advise_writes(&s, advice);
    advise_copies(&rule, advised, advice);
    access_sort_release(&s);
    access_rule_release(&rule);
}

void access_advise(const struct access_graph *graph, struct access_advice *advice)
{
    bool *advised = mem_alloc(graph->accesses.n + 1);
    *advice = (struct access_advice){0};
    for (int f = 0; f < (graph->frame ? graph->n_frames : 1); f++)
        advise_frame(graph, f, advised, advice);
    mem_free(advised);
}
