/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and writes of a variable are ordered by the plan of its device (graph/access.h), which sees
 * one part only. Attributes tell it what it cannot see, as lists of nodes of its part, and
 * of texts:
 *
 *   - `_follows` of a Recv: writes from which a path of the whole graph leads to what is received.
 *   - `_after` of a write: others of the same variable that better come before it. Were their order
 *     left to the plans, those of two devices could choose orders that contradict each other
 *     through values that cross. A plan whose own reads demand another order does not follow it.
 *   - `_condition` of what has a variable, or opens a loop: predicates that decide whether it runs,
 *     as "NODE:SLOT BRANCH".
 */
#include "base/memory.h"
#include "pass/part/part_private.h"

static int tell_writers(struct cutter *c)
{
    size_t n = c->from->nodes.n;
    part_node_vec *before = mem_array(n + 1, sizeof *before);
    int code = 0;
    for (size_t i = 0; i < c->advice.wishes.n; i++)
        vec_push(&before[c->advice.wishes.items[i].to], c->advice.wishes.items[i].from);
    for (size_t i = 0; i < n && !code; i++)
        code = part_set_names(c, c->part[i], c->copy[i], "_after", &before[i]);
    for (size_t i = 0; i < n; i++)
        vec_release(&before[i]);
    mem_free(before);
    return code;
}

/* Whether the node is in the same loop within `frame` as the write: what it sends out of the loop
 * comes after the loop. */
static bool leaves_loop(const struct cutter *c, int frame, int write, int node)
{
    const int *parent = c->accesses.parent, *of = c->frames->frame;
    return of[write] != frame && of[node] != frame &&
           access_common_frame(parent, of[node], frame) == frame &&
           access_frame_below(parent, frame, of[write]) ==
               access_frame_below(parent, frame, of[node]);
}

static bool is_after(const struct part_crossing *crossing, const uint64_t *reached, int bit)
{
    bool after = reached[crossing->edge.node] >> bit & 1;
    for (int i = 0; i < crossing->n_also; i++)
        after |= reached[crossing->also[i]] >> bit & 1;
    return after;
}

/* Notes each of some writes with what its part receives after it, as far as `frame` is what both
 * are in. */
static void note_received(const struct cutter *c, int frame, const int *from, int n,
                          part_node_vec *before)
{
    uint64_t *reached = mem_array(c->from->nodes.n + 1, sizeof *reached);
    access_reach(&c->accesses, frame, from, n, reached);
    for (size_t k = 0; k < c->parts->crossings.n; k++) {
        const struct part_crossing *crossing = &c->parts->crossings.items[k];
        for (int i = 0; i < n; i++) {
            int of = c->frames->frame[from[i]];
            if (crossing->to == c->part[from[i]] &&
                access_common_frame(c->accesses.parent, of, crossing->frame) == frame &&
                (is_after(crossing, reached, i) ||
                 leaves_loop(c, frame, from[i], crossing->edge.node)))
                vec_push(&before[k], from[i]);
        }
    }
    mem_free(reached);
}

static void find_received(const struct cutter *c, int frame, part_node_vec *before)
{
    int from[ACCESS_BATCH], n = 0, last = -1;
    for (size_t i = 0; i < c->accesses.accesses.n; i++) {
        const struct access *access = &c->accesses.accesses.items[i];
        int of = c->frames->frame[access->node];
        if (!access->write || access->node == last ||
            access_common_frame(c->accesses.parent, of, frame) != frame)
            continue;
        from[n++] = last = access->node;
        if (n == ACCESS_BATCH) {
            note_received(c, frame, from, n, before);
            n = 0;
        }
    }
    if (n)
        note_received(c, frame, from, n, before);
}

static int tell_receivers(struct cutter *c)
{
    size_t n = c->parts->crossings.n;
    part_node_vec *before = mem_array(n + 1, sizeof *before);
    int code = 0;
    for (size_t f = 0; f < c->frames->frames.n; f++)
        find_received(c, (int)f, before);
    for (size_t i = 0; i < n && !code; i++) {
        const struct part_crossing *crossing = &c->parts->crossings.items[i];
        code = part_set_names(c, crossing->to, crossing->recv, "_follows", &before[i]);
        part_node_vec wait = VEC_INIT;
        if (crossing->wait >= 0)
            vec_push(&wait, crossing->wait);
        if (!code)
            code = part_set_names(c, crossing->to, crossing->recv, "_after", &wait);
        vec_release(&wait);
    }
    for (size_t i = 0; i < n; i++)
        vec_release(&before[i]);
    mem_free(before);
    return code;
}

int part_order_writes(struct cutter *c)
{
    int code = tell_writers(c);
    if (!code)
        code = tell_receivers(c);
    return code ? code : part_tell_conditions(c);
}
