/* SPDX-License-Identifier: Apache-2.0
 *
 * Which nodes are in each tower: those that depend on rows that are fed, but not on a gradient.
 * What comes after gradients, the update above all, is there once and gets what came of all towers.
 * A loop is in the towers as a whole or not at all.
 */
#include "base/memory.h"
#include "pass/part/part.h"
#include "pass/replicate/replicate_tower.h"

struct tower_finder {
    struct towers *t;
    bool *looked_at;                 /* by node: somebody takes a value of it */
    bool *loop_towered, *loop_whole; /* by frame, of those in no other */
};

bool towers_is_parted(const struct node *node)
{
    return node_is(node, "Placeholder") && node->outputs[0].shape.rank > 0 &&
           node->outputs[0].shape.dims[0] == SHAPE_UNKNOWN;
}

int towers_loop(const struct towers *t, const struct node *node)
{
    const struct frames *frames = t->frames;
    int frame = frames->frame[node->id];
    if (frame == FRAME_ROOT)
        frame = frames_output(frames, node);
    while (frame != FRAME_ROOT && frames->frames.items[frame].parent != FRAME_ROOT)
        frame = frames->frames.items[frame].parent;
    return frame;
}

/* A check that only others wait for is made once, of what came of all towers. */
static bool is_once(const struct tower_finder *f, const struct node *node)
{
    const struct replicator *r = f->t->r;
    return has(r, node->id, FACT_DOWN | FACT_UPDATE | FACT_INITIAL) ||
           part_written(r->from, node) || node_is(node, "Variable") ||
           (node_has(node, OP_CHECKS) && !f->looked_at[node->id]);
}

/* Returns whether what the node needs is in the towers, and of which feed that is a part. */
static bool needs_tower(const struct tower_finder *f, const struct node *node, int *feed)
{
    const struct towers *t = f->t;
    bool needs = false;
    *feed = -1;
    for (int i = 0; i < node->n_inputs; i++) {
        int from = node->inputs[i].node;
        needs |= t->towered[from] || towers_is_parted(graph_node(t->r->from, from));
        if (t->feed[from] >= 0 && *feed < 0)
            *feed = t->feed[from];
    }
    for (int i = 0; i < node->n_controls; i++)
        needs |= t->towered[node->controls[i]];
    return needs;
}

static bool visit(struct tower_finder *f, const struct node *node)
{
    struct towers *t = f->t;
    int loop = towers_loop(t, node), feed;
    if (towers_is_parted(node) || is_once(f, node) || (loop && f->loop_whole[loop]))
        return false;
    bool needs = needs_tower(f, node, &feed) || (loop && f->loop_towered[loop]);
    bool told = needs && feed >= 0 && t->feed[node->id] < 0;
    bool news = told || (needs && !t->towered[node->id]);
    t->towered[node->id] |= needs;
    if (told)
        t->feed[node->id] = feed;
    if (needs && loop && !f->loop_towered[loop])
        news = f->loop_towered[loop] = true;
    return news;
}

int towers_find(struct towers *t)
{
    const struct graph *from = t->r->from;
    struct arena *arena = &t->r->arena;
    size_t n_frames = t->frames->frames.n;
    bool parted = false;
    graph_each(node, t->r->from) {
        if (node_is(node, "Placeholder") && node->outputs[0].shape.rank < 0)
            return error_set(t->r->err, ERR_DATA,
                             "%s: Placeholder: towers get a part of its rows or all of it, which "
                             "its shape has to tell",
                             node_text(node));
        parted |= towers_is_parted(node) && has(t->r, node->id, FACT_NEEDED);
    }
    if (!parted)
        return error_set(t->r->err, ERR_DATA,
                         "nothing that the entry '%s' is fed has any number of rows (a first "
                         "dimension of -1), which towers could share",
                         t->r->entry->name);
    struct tower_finder f = {.t = t,
                             .looked_at = arena_array(arena, from->nodes.n + 1, sizeof(bool)),
                             .loop_towered = arena_array(arena, n_frames + 1, sizeof(bool)),
                             .loop_whole = arena_array(arena, n_frames + 1, sizeof(bool))};
    for (size_t i = 0; i < from->nodes.n; i++)
        t->feed[i] = towers_is_parted(graph_node(from, (int)i)) ? (int)i : -1;
    graph_each(node, from) {
        for (int k = 0; k < node->n_inputs; k++)
            f.looked_at[node->inputs[k].node] = true;
    }
    for (size_t i = 0; i < from->entries.n; i++)
        for (int k = 0; k < from->entries.items[i].n_edges; k++)
            if (from->entries.items[i].edges[k].slot != CONTROL_SLOT)
                f.looked_at[from->entries.items[i].edges[k].node] = true;
    for (size_t i = 0; i < from->nodes.n; i++)
        if (is_once(&f, graph_node(from, (int)i)))
            f.loop_whole[towers_loop(f.t, graph_node(from, (int)i))] = true;
    bool news = true;
    while (news) { /* until no loop comes along any more */
        news = false;
        for (size_t i = 0; i < from->nodes.n; i++)
            news |= visit(&f, graph_node(from, t->r->order[i]));
    }
    /* A stack that saves a loop's values for its gradient goes with the loop. */
    for (size_t i = 0; i < from->nodes.n; i++)
        for (int k = 0; f.t->towered[i] && k < graph_node(from, (int)i)->n_inputs; k++) {
            int input = graph_node(from, (int)i)->inputs[k].node;
            f.t->towered[input] |= node_makes_resource(graph_node(from, input));
        }
    return 0;
}
