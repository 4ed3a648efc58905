/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and writes of a variable are ordered by the plan of its device (reads come first unless an
 * edge says otherwise), which sees one part only. What it cannot see is said in `_after`
 * attributes, lists of nodes that must be over before, dead or alive:
 *
 *   - a read comes before a write that is not before it. Were that left to the plans, those of two
 *     devices could choose orders that contradict each other through values that cross.
 *   - a Recv comes after every write of its part that what it receives depends on, so that the plan
 *     does not put what follows the Recv before the write.
 */
#include <string.h>

#include "base/memory.h"
#include "pass/part/part_private.h"

typedef VEC(int) int_vec;

struct writes {
    struct cutter *c;
    int_vec *consumers; /* by node of the source */
    int_vec *after;     /* by node: what its copy is to come after */
    char *reached;
    int_vec todo;
};

static bool is_back(const struct node *from, const struct node *to)
{
    return node_is(from, "NextIteration") && node_is(to, "Merge");
}

/* ---- frames: the innermost that holds both, and the child of `outer` that holds `frame` ---- */

static int common_frame(const struct frames *frames, int a, int b)
{
    while (a != b) { /* parents come before children */
        if (a > b)
            a = frames->frames.items[a].parent;
        else
            b = frames->frames.items[b].parent;
    }
    return a;
}

static int frame_below(const struct frames *frames, int outer, int frame)
{
    while (frame != outer && frames->frames.items[frame].parent != outer)
        frame = frames->frames.items[frame].parent;
    return frame;
}

/* ---- what comes after what ---- */

static void find_consumers(struct writes *w)
{
    const struct graph *graph = w->c->from;
    for (size_t i = 0; i < graph->nodes.n; i++) {
        const struct node *node = graph_node(graph, (int)i);
        for (int k = 0; k < node->n_inputs; k++)
            vec_push(&w->consumers[node->inputs[k].node], (int)i);
        for (int k = 0; k < node->n_controls; k++)
            vec_push(&w->consumers[node->controls[k]], (int)i);
    }
}

/* Whether an edge leads to the next iteration of `frame` or of a loop that is not within it. */
static bool leaves(const struct writes *w, int from, int to, int frame)
{
    const struct frames *frames = w->c->frames;
    int of = frames->frame[from];
    return is_back(graph_node(w->c->from, from), graph_node(w->c->from, to)) &&
           (of == frame || common_frame(frames, of, frame) != frame);
}

/* Marks what comes after a node in one iteration of `frame`, for which a loop within it is one
 * thing. */
static void reach(struct writes *w, int from, int frame)
{
    memset(w->reached, 0, w->c->from->nodes.n);
    vec_push(&w->todo, from);
    while (w->todo.n) {
        int at = vec_pop(&w->todo);
        const int_vec *next = &w->consumers[at];
        for (size_t i = 0; i < next->n; i++) {
            int to = next->items[i];
            if (w->reached[to] || leaves(w, at, to, frame))
                continue;
            w->reached[to] = 1;
            vec_push(&w->todo, to);
        }
    }
}

/* The variable that the node writes to, or -1. */
static int written(const struct graph *graph, const struct node *node)
{
    for (int k = 0; k < node->n_inputs && !node_has(node, OP_READS_REF); k++)
        if (part_takes_ref(node, k) && part_is_variable(graph, node->inputs[k]))
            return node->inputs[k].node;
    return -1;
}

/* Adds that one node, or the loop within `frame` that has it, comes before another. */
static void add_before(struct writes *w, int before, int after, int frame)
{
    const struct frames *f = w->c->frames;
    int from = frame_below(f, frame, f->frame[before]), to = frame_below(f, frame, f->frame[after]);
    int_vec first = VEC_INIT, then = VEC_INIT;
    for (size_t i = 0; i < w->c->from->nodes.n; i++) {
        const struct node *node = graph_node(w->c->from, (int)i);
        bool leads_out = node_is(node, "Exit") && f->frame[i] == from;
        bool leads_in = node_is(node, "Enter") && frames_output(f, node) == to;
        if (from == frame ? (int)i == before : leads_out)
            vec_push(&first, (int)i);
        if (to == frame ? (int)i == after : leads_in)
            vec_push(&then, (int)i);
    }
    for (size_t i = 0; i < first.n; i++)
        for (size_t k = 0; k < then.n; k++)
            vec_push(&w->consumers[first.items[i]], then.items[k]);
    vec_release(&first);
    vec_release(&then);
}

/* A read from another part is one by its Send; the plan orders that as it would order the read. */
static void put_reads_first(struct writes *w, int variable, int writer)
{
    const int *frame = w->c->frames->frame;
    size_t n = w->consumers[variable].n;
    for (size_t i = 0; i < n; i++) {
        int user = w->consumers[variable].items[i];
        int common = common_frame(w->c->frames, frame[user], frame[writer]);
        if (user == writer || written(w->c->from, graph_node(w->c->from, user)) == variable)
            continue;
        reach(w, writer, common);
        if (w->reached[user])
            continue;
        add_before(w, user, writer, common);
        if (frame[user] == frame[writer] && w->c->part[user] == w->c->part[writer])
            vec_push(&w->after[writer], user);
    }
}

static int set_after(struct cutter *c, int part, int id, const char **names, size_t n)
{
    struct attr_value value = {.kind = ATTR_LIST_STRING, .n = (int)n, .strings = names};
    struct graph *graph = part_at(c, part);
    return graph_set_attr(graph, graph_node(graph, id), &(struct attr){"_after", value}, c->err);
}

static int tell_writers(struct writes *w)
{
    struct cutter *c = w->c;
    for (size_t i = 0; i < c->from->nodes.n; i++) {
        const int_vec *after = &w->after[i];
        const char **names = arena_array(&c->arena, after->n + 1, sizeof *names);
        for (size_t k = 0; k < after->n; k++)
            names[k] = graph_node(c->from, after->items[k])->name;
        if (after->n && set_after(c, c->part[i], c->copy[i], names, after->n))
            return c->err->code;
    }
    return 0;
}

/* By crossing: the writers of the receiving part that come before what is sent. */
static int tell_receivers(struct writes *w, const int_vec *before)
{
    struct cutter *c = w->c;
    for (size_t i = 0; i < c->parts->crossings.n; i++) {
        const struct part_crossing *crossing = &c->parts->crossings.items[i];
        const char **names = arena_array(&c->arena, before[i].n + 2, sizeof *names);
        size_t n = 0;
        for (; n < before[i].n; n++)
            names[n] = graph_node(c->from, before[i].items[n])->name;
        if (crossing->wait >= 0)
            names[n++] = graph_node(c->from, crossing->wait)->name;
        if (n && set_after(c, crossing->to, crossing->recv, names, n))
            return c->err->code;
    }
    return 0;
}

/* Notes the writer for what its part receives after it, as far as `frame` is what both are in. */
static void find_received(struct writes *w, int writer, int frame, int_vec *before)
{
    const struct cutter *c = w->c;
    reach(w, writer, frame);
    for (size_t k = 0; k < c->parts->crossings.n; k++) {
        const struct part_crossing *crossing = &c->parts->crossings.items[k];
        int common = common_frame(c->frames, c->frames->frame[writer], crossing->frame);
        bool reached = w->reached[crossing->edge.node];
        for (int i = 0; i < crossing->n_also; i++)
            reached |= w->reached[crossing->also[i]];
        if (crossing->to == c->part[writer] && common == frame && reached)
            vec_push(&before[k], writer);
    }
}

static int order(struct writes *w)
{
    struct cutter *c = w->c;
    size_t n = c->from->nodes.n, n_crossings = c->parts->crossings.n;
    int_vec *before = mem_array(n_crossings + 1, sizeof *before);
    for (size_t i = 0; i < n; i++) {
        int variable = written(c->from, graph_node(c->from, (int)i));
        if (variable >= 0)
            put_reads_first(w, variable, (int)i);
    }
    for (size_t i = 0; i < n; i++) {
        if (written(c->from, graph_node(c->from, (int)i)) < 0)
            continue;
        for (int f = c->frames->frame[i]; f >= 0; f = c->frames->frames.items[f].parent)
            find_received(w, (int)i, f, before);
    }
    int code = tell_writers(w);
    if (!code)
        code = tell_receivers(w, before);
    for (size_t i = 0; i < n_crossings; i++)
        vec_release(&before[i]);
    mem_free(before);
    return code;
}

static void writes_init(struct writes *w, struct cutter *c)
{
    size_t n = c->from->nodes.n;
    *w = (struct writes){.c = c};
    w->consumers = mem_array(n + 1, sizeof *w->consumers);
    w->after = mem_array(n + 1, sizeof *w->after);
    w->reached = mem_alloc(n + 1);
    find_consumers(w);
}

static void writes_release(struct writes *w)
{
    for (size_t i = 0; i < w->c->from->nodes.n; i++) {
        vec_release(&w->consumers[i]);
        vec_release(&w->after[i]);
    }
    vec_release(&w->todo);
    mem_free(w->consumers);
    mem_free(w->after);
    mem_free(w->reached);
}

void part_find_late(struct cutter *c)
{
    struct writes w;
    c->late = arena_alloc(&c->arena, c->from->nodes.n + 1);
    writes_init(&w, c);
    for (size_t i = 0; i < c->from->nodes.n; i++) {
        int variable = written(c->from, graph_node(c->from, (int)i));
        if (variable < 0)
            continue;
        reach(&w, (int)i, FRAME_ROOT); /* readers in loops are late anyway */
        for (size_t k = 0; k < w.consumers[variable].n; k++)
            c->late[w.consumers[variable].items[k]] |= w.reached[w.consumers[variable].items[k]];
    }
    writes_release(&w);
}

int part_order_writes(struct cutter *c)
{
    struct writes w;
    writes_init(&w, c);
    int code = order(&w);
    writes_release(&w);
    return code;
}
