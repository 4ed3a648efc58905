/* SPDX-License-Identifier: Apache-2.0
 *
 * Of which variables a fetch is computed: those before the step, or those after it. By the order of
 * reads and writes (graph/access.h) a read sees the writes from which a path leads to it. Shards
 * write a worker's pushes while its ClockPush waits, so that this op stands for the write of all
 * that they keep.
 *
 * A write whose place in the order is behind a node's comes after it. Where all come before it in
 * the order, whether paths lead from them is found for 64 of them at once.
 */
#include <string.h>

#include "base/memory.h"
#include "exec/session/request.h"
#include "graph/access_nodes.h"
#include "graph/join.h"
#include "graph/worker_attr.h"

/* Do all writes of the variable lead to the node? */
struct question {
    int node, variable;
};

struct write {
    int node, variable; /* -1: a commit, of all that the shards keep */
};

/* A request_view as bits. */
#define VIEW_BEFORE ((uint64_t)1)
#define VIEW_OF_OWN ((uint64_t)2)

struct moments {
    const struct graph *graph;
    const bool *used;
    int *order, n_order; /* nodes of a step, each behind what it depends on, but around loops */
    bool has_loops;
    int *place;      /* in the order, by node */
    int *n_writes;   /* by variable */
    int *last_write; /* its place, by variable; -1 */
    int n_commits, last_commit;
    uint64_t *views;          /* by node: of what it looks at itself, then of all below it, too */
    bool *is_write;           /* by node: it gives the variable as it has written it, whatever of */
    VEC(struct write) writes; /* in the order */
    VEC(struct question) questions;
};

/* The variable that an edge is, or is a reference to; -1: it is neither. *written: how often it was
 * written on the way. */
static int viewed_variable(const struct graph *graph, struct edge edge, int *written)
{
    *written = 0;
    while (edge.slot >= 0) {
        const struct node *node = graph_node(graph, edge.node);
        int k = 0;
        if (node_is(node, "Variable"))
            return node->id;
        while (k < node->n_inputs && !node_takes_ref(node, k))
            k++;
        if (k == node->n_inputs || !node->outputs[edge.slot].is_ref)
            return -1;
        *written += node_writes_ref(node, k);
        edge = node->inputs[k];
    }
    return -1;
}

/* A worker's copy of what the shards keep, or what it counts by. */
static bool is_own(const struct node *variable)
{
    return node_attr(variable, WORKER_LOCAL) != NULL;
}

/* The k-th of what a node waits for, and then the Send of a Recv; -1: that is none. */
static int dependency(const struct graph *graph, const struct node *node, int k)
{
    if (k < node->n_inputs + node->n_controls)
        return node_dependency(node, k).node;
    const struct node *send = join_send_of(graph, node);
    return send ? send->id : -1;
}

static int n_dependencies(const struct node *node)
{
    return node->n_inputs + node->n_controls + 1;
}

/* Depth first, each behind all that it leads to. */
static void order_depth_first(struct moments *m, struct arena *memory)
{
    size_t n = m->graph->nodes.n + 1;
    int *next = arena_array(memory, n, sizeof *next), n_stack = 0;
    int *stack = arena_array(memory, n, sizeof *stack);
    enum { NEW, UNDER_WAY, DONE } *state = arena_array(memory, n, sizeof *state);
    for (int i = 0; i < (int)n - 1; i++) {
        if (m->used[i] && state[i] == NEW)
            state[stack[n_stack++] = i] = UNDER_WAY;
        while (n_stack) {
            const struct node *node = graph_node(m->graph, stack[n_stack - 1]);
            if (next[node->id] == n_dependencies(node)) {
                state[node->id] = DONE;
                m->place[node->id] = m->n_order;
                m->order[m->n_order++] = node->id;
                n_stack--;
                continue;
            }
            int to = dependency(m->graph, node, next[node->id]++);
            m->has_loops |= to >= 0 && state[to] == UNDER_WAY;
            if (to >= 0 && state[to] == NEW)
                state[stack[n_stack++] = to] = UNDER_WAY;
        }
    }
}

static void find_writes(struct moments *m)
{
    int ignored;
    m->last_commit = -1;
    for (size_t i = 0; i < m->graph->nodes.n; i++)
        m->last_write[i] = -1;
    for (int at = 0; at < m->n_order; at++) {
        const struct node *node = graph_node(m->graph, m->order[at]);
        if (node_round(node) == ROUND_COMMIT) {
            vec_push(&m->writes, ((struct write){node->id, -1}));
            m->n_commits++;
            m->last_commit = at;
        }
        for (int k = 0; k < node->n_inputs; k++) {
            if (!node_writes_ref(node, k))
                continue;
            int variable = viewed_variable(m->graph, node->inputs[k], &ignored);
            m->is_write[node->id] = true;
            if (variable < 0)
                continue;
            vec_push(&m->writes, ((struct write){node->id, variable}));
            m->n_writes[variable]++;
            m->last_write[variable] = at;
        }
    }
}

/* Looks at a node's own reads. */
static void view_reads(struct moments *m, const struct node *node)
{
    uint64_t *view = &m->views[node->id];
    for (int k = 0; k < node->n_inputs; k++) {
        int written, variable = viewed_variable(m->graph, node->inputs[k], &written);
        if (variable < 0)
            continue;
        bool own = is_own(graph_node(m->graph, variable));
        int n_writes = m->n_writes[variable] + (own ? 0 : m->n_commits);
        *view |= own ? VIEW_OF_OWN : 0;
        if (written + node_writes_ref(node, k) >= n_writes)
            continue;
        int last = !own && m->last_commit > m->last_write[variable] ? m->last_commit
                                                                    : m->last_write[variable];
        if (!m->has_loops && last > m->place[node->id])
            *view |= VIEW_BEFORE;
        else
            vec_push(&m->questions, ((struct question){node->id, variable}));
    }
}

/* Bits of what a node depends on become its own, or by data alone: what it only waits for makes no
 * difference to its value, nor does what it has written over. Once more where there are loops,
 * until nothing changes. */
static void spread_mask(const struct moments *m, uint64_t *mask, bool by_data)
{
    bool changed = true;
    for (int pass = 0; changed && (!pass || m->has_loops); pass++) {
        changed = false;
        for (int at = 0; at < m->n_order; at++) {
            const struct node *node = graph_node(m->graph, m->order[at]);
            int first_wait = m->is_write[node->id] ? 0 : node->n_inputs;
            uint64_t before = mask[node->id];
            for (int k = 0; k < n_dependencies(node); k++) {
                bool is_send = k == n_dependencies(node) - 1;
                int from = dependency(m->graph, node, k);
                if (from >= 0 && (!by_data || k < first_wait || is_send))
                    mask[node->id] |= mask[from];
            }
            changed |= mask[node->id] != before;
        }
    }
}

static void answer(struct moments *m, struct arena *memory)
{
    size_t n = m->graph->nodes.n + 1;
    uint64_t *mask = arena_array(memory, n, sizeof *mask); /* by node: writes that lead to it */
    uint64_t *of = arena_array(memory, n, sizeof *of);     /* by variable: its writes */
    bool *is_asked = arena_array(memory, n, sizeof *is_asked);
    for (size_t i = 0; i < m->questions.n; i++)
        is_asked[m->questions.items[i].variable] = true;
    for (size_t w = 0; w < m->writes.n;) {
        uint64_t commits = 0;
        memset(mask, 0, n * sizeof *mask);
        memset(of, 0, n * sizeof *of);
        for (int bit = 0; w < m->writes.n && bit < 64; w++) {
            const struct write *write = &m->writes.items[w];
            if (write->variable >= 0 && !is_asked[write->variable])
                continue;
            uint64_t own = (uint64_t)1 << bit++;
            mask[write->node] |= own;
            *(write->variable < 0 ? &commits : &of[write->variable]) |= own;
        }
        spread_mask(m, mask, false);
        vec_each(q, &m->questions) {
            bool own = is_own(graph_node(m->graph, q->variable));
            uint64_t all = of[q->variable] | (own ? 0 : commits);
            m->views[q->node] |= (mask[q->node] & all) != all ? VIEW_BEFORE : 0;
        }
    }
}

struct request_view *request_views(const struct request *request)
{
    struct arena memory = ARENA_INIT;
    size_t n = request->graph->nodes.n + 1, n_fetches = request->fetches.n;
    struct request_view *views = mem_array(n_fetches + 1, sizeof *views);
    struct moments m = {.graph = request->graph,
                        .used = request_mark_used(request, NULL, 0, &memory)};
    m.order = arena_array(&memory, n, sizeof *m.order);
    m.place = arena_array(&memory, n, sizeof *m.place);
    m.n_writes = arena_array(&memory, n, sizeof *m.n_writes);
    m.last_write = arena_array(&memory, n, sizeof *m.last_write);
    m.views = arena_array(&memory, n, sizeof *m.views);
    m.is_write = arena_array(&memory, n, sizeof *m.is_write);
    order_depth_first(&m, &memory);
    find_writes(&m);
    for (int at = 0; at < m.n_order; at++)
        view_reads(&m, graph_node(m.graph, m.order[at]));
    if (m.questions.n)
        answer(&m, &memory);
    spread_mask(&m, m.views, true);
    for (size_t i = 0; i < n_fetches; i++) {
        uint64_t view = m.views[request->fetches.items[i].node];
        views[i] = (struct request_view){view & VIEW_BEFORE, view & VIEW_OF_OWN};
    }
    vec_release(&m.writes);
    vec_release(&m.questions);
    arena_release(&memory);
    return views;
}
