/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/memory.h"
#include "graph/access_private.h"

int access_common_frame(const int *parent, int a, int b)
{
    while (a != b) { /* parents come before children */
        if (a > b)
            a = parent[a];
        else
            b = parent[b];
    }
    return a;
}

int access_frame_below(const int *parent, int outer, int frame)
{
    while (frame > outer && parent[frame] != outer)
        frame = parent[frame];
    return frame;
}

/* Returns the child of the level's frame around the node, or that frame itself; -1: neither. */
static int child_frame(const struct access_level *level, int node)
{
    const struct access_graph *graph = level->graph;
    int of = graph->frame ? graph->frame[node] : 0;
    if (of == level->frame)
        return of;
    if (access_common_frame(graph->parent, level->frame, of) != level->frame)
        return -1;
    return access_frame_below(graph->parent, level->frame, of);
}

/* ---- conditions ---- */

int access_level_condition(const struct access_level *level, int node)
{
    const struct access_graph *graph = level->graph;
    int place = child_frame(level, node);
    if (!graph->condition)
        return -1;
    return place == level->frame ? graph->condition[node] : graph->frame_condition[place];
}

bool access_level_excludes(const struct access_level *level, int a, int b)
{
    const struct access_graph *graph = level->graph;
    const struct access_condition *all = graph->conditions.items;
    int of_b = access_level_condition(level, b);
    for (int x = access_level_condition(level, a); x >= 0; x = all[x].parent)
        for (int y = of_b; y >= 0; y = all[y].parent)
            if (all[x].predicate == all[y].predicate && all[x].branch != all[y].branch)
                return true;
    return false;
}

/* ---- vertices and edges ---- */

void access_level_init(struct access_level *level, const struct access_graph *graph, int frame)
{
    *level = (struct access_level){.graph = graph, .frame = frame, .memory = ARENA_INIT};
    int n_frames = graph->frame ? graph->n_frames : 1;
    int *loop = arena_array(&level->memory, (size_t)n_frames + 1, sizeof *loop);
    level->vertex = arena_array(&level->memory, (size_t)graph->n + 1, sizeof *level->vertex);
    level->node = arena_array(&level->memory, (size_t)graph->n + 1, sizeof *level->node);
    memset(loop, -1, (size_t)n_frames * sizeof *loop);
    for (int i = 0; i < graph->n; i++) {
        int place = child_frame(level, i);
        if (place < 0) {
            level->vertex[i] = -1;
        } else if (place == level->frame) {
            level->node[level->n] = i;
            level->vertex[i] = level->n++;
        } else {
            if (loop[place] < 0) {
                level->node[level->n] = i;
                loop[place] = level->n++;
            }
            level->vertex[i] = loop[place];
        }
    }
    const arc_vec *all = &level->graph->edges;
    for (size_t i = 0; i < all->n; i++) {
        struct arc edge = {level->vertex[all->items[i].from], level->vertex[all->items[i].to]};
        if (edge.from >= 0 && edge.to >= 0 && edge.from != edge.to)
            vec_push(&level->edges, edge);
    }
    level->next =
        successors_new(&level->memory, (size_t)level->n, (const arc_vec *[]){&level->edges, NULL});
    level->order = arena_array(&level->memory, (size_t)level->n + 1, sizeof *level->order);
    level->place = arena_array(&level->memory, (size_t)level->n + 1, sizeof *level->place);
    for (int i = successors_order(&level->next, level->order, level->place); i < level->n; i++)
        level->place[level->order[i]] = i;
}

void access_level_release(struct access_level *level)
{
    vec_release(&level->edges);
    arena_release(&level->memory);
}

bool access_level_reach(const struct access_level *level, const int *from, int n, int last,
                        uint64_t *reached)
{
    int first = level->n;
    for (int i = 0; i < n; i++)
        if (level->place[from[i]] < first)
            first = level->place[from[i]];
    if (first >= last)
        return false;
    memset(reached, 0, (size_t)level->n * sizeof *reached);
    uint64_t *at = mem_array((size_t)level->n + 1, sizeof *at); /* and the starts */
    for (int i = 0; i < n; i++)
        at[from[i]] |= (uint64_t)1 << i;
    for (int i = first; i < last; i++) {
        int v = level->order[i];
        uint64_t mask = at[v] | reached[v];
        if (!mask)
            continue;
        for (int e = level->next.first[v]; e < level->next.first[v + 1]; e++)
            reached[level->next.to[e]] |= mask;
    }
    mem_free(at);
    return true;
}
