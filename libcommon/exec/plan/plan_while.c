/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops that need no points are taken out of the plan's graph, and a node stands for each. Its
 * condition and its body are plans of a graph that has nothing else, fed where an iteration begins:
 * so they have a fixed order, planned memory, constants of their own, and loops in them are treated
 * alike.
 */
#include "base/memory.h"
#include "exec/plan/plan_while_private.h"

void while_free(struct while_loop *loop)
{
    plan_release(loop->condition);
    plan_release(loop->body);
    loop->condition = loop->body = NULL;
}

int plan_compile_while(struct plan *plan, struct while_loop *loop, struct error *err)
{
    struct plan_options options = plan->options;
    options.alone = plan_is_parallel(plan);
    options.shares_fetches = true;
    struct plan_request condition = {
        .feeds = loop->feeds, .n_feeds = loop->n_feeds, .fetches = &loop->goes_on, .n_fetches = 1};
    struct plan_request body = {.feeds = loop->feeds,
                                .n_feeds = loop->n_feeds,
                                .fetches = loop->next,
                                .n_fetches = loop->n_variables,
                                .targets = loop->targets,
                                .n_targets = loop->n_targets};
    int code = plan_new(loop->graph, &options, &condition, &loop->condition, err);
    if (!code)
        code = plan_new(loop->graph, &options, &body, &loop->body, err);
    if (!code && !(loop->condition->is_whole && loop->body->is_whole)) {
        vec_push(&plan->kept, loop->key);
        plan->keeps_more = true;
        code = error_set(err, ERR_INTERNAL, "loop '%s' has points", loop->frame);
    }
    if (code)
        while_free(loop);
    return code;
}

/* ---- finding them ---- */

static bool has_loops(const struct graph *graph)
{
    for (size_t i = 0; i < graph->nodes.n; i++)
        if (node_is(graph_node(graph, (int)i), "Enter"))
            return true;
    return false;
}

static int take_loops(struct while_search *s, struct edge *fetches, struct error *err)
{
    bool any = false;
    int code = while_find(s, fetches, err);
    for (size_t i = 0; i < s->frames->frames.n && !code; i++)
        any |= while_can_go(s, (int)i);
    if (any)
        while_take_out(s, fetches);
    return code;
}

int plan_take_loops(struct plan *plan, struct edge *fetch_edges, struct error *err)
{
    const struct plan_options *options = &plan->options;
    struct error unheard = ERROR_INIT; /* it is said when the loop is planned */
    struct arena memory = ARENA_INIT;
    size_t n = plan->graph->nodes.n + 1;
    struct while_search s = {.plan = plan, .graph = plan->graph};
    if (!options->device->is_host || options->cut != CUT_WHOLE || !has_loops(plan->graph) ||
        frames_new(plan->graph, &s.frames, &unheard))
        return 0;
    s.order = arena_array(&memory, n, sizeof *s.order);
    s.top = arena_array(&memory, n, sizeof *s.top);
    s.refused = arena_array(&memory, s.frames->frames.n, sizeof *s.refused);
    s.begun = arena_array(&memory, n, sizeof *s.begun);
    s.reached = arena_array(&memory, n, sizeof *s.reached);
    int code = take_loops(&s, fetch_edges, err);
    frames_free(s.frames);
    arena_release(&memory);
    return code;
}
