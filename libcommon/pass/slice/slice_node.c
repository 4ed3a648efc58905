/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes of the graph with slices: copies of the source's, and what parts and joins.
 */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "graph/group.h"
#include "pass/slice/slice_private.h"

/* ---- copies ---- */

const char *slice_leader(void *context, const struct node *leader, int k)
{
    const struct slicer *s = context;
    if (s->role[leader->id] != SLICE_VARIABLE)
        return leader->name;
    bool has_own = k >= 0 && k < slice_cut_at(s, s->slicing[leader->id]).n;
    return s->names[leader->id][has_own ? k : 0];
}

/* The attributes that say how a table was to be cut are left out of its slices. */
bool slice_attr(void *context, const struct node *node, int k, struct attr *attr)
{
    (void)context, (void)node;
    return k < 0 || (strcmp(attr->name, SLICE_WANTED) != 0 && strcmp(attr->name, SLICE_AXIS) != 0);
}

struct edge slice_add_copy(struct slicer *s, struct rewrite_copy copy)
{
    if (s->err->code || (!node_is(copy.node, "Variable") && slice_await(s, copy.node)))
        return EDGE_NONE;
    copy.name = copy.k < 0 ? NULL : rewrite_part_name(&s->r, copy.node->name, copy.k);
    return rewrite_add_copy(&s->r, &s->rules, &copy, s->err);
}

/* Beside the slice, unless the script wants it elsewhere: only the rows that were found travel. */
struct edge slice_add_gather(struct slicer *s, const struct node *node, int k, struct edge table,
                             struct edge rows)
{
    const struct edge inputs[] = {table, rows};
    const struct node *variable = graph_node(s->from, node->inputs[0].node);
    while (variable->n_inputs)
        variable = graph_node(s->from, variable->inputs[0].node);
    const struct attr with = group_attr(&s->arena, s->names[variable->id][k]);
    bool free = !*node->device || !strcmp(node->device, variable->device);
    return slice_add_copy(s, (struct rewrite_copy){.node = node,
                                                   .k = k,
                                                   .inputs = inputs,
                                                   .n_inputs = 2,
                                                   .more = &with,
                                                   .n_more = free && !node_attr(node, "_class")});
}

/* ---- new nodes ---- */

struct build *slice_builder(struct slicer *s, const struct slice_site *site)
{
    const struct attr_value *groups = node_attr(site->with, "_class");
    s->b = (struct build){.graph = s->r.to,
                          .scope = arena_printf(&s->arena, "%s/%s", site->node->name, s->scope),
                          .device = site->with->device,
                          .file = site->node->file,
                          .line = site->node->line,
                          .err = s->err,
                          .failed = s->err->code != 0};
    if (groups && groups->kind == ATTR_LIST_STRING && groups->n) {
        const struct node *leader = group_leader(s->from, groups->strings[0]);
        s->b.colocate =
            leader ? group_attr(&s->arena, slice_leader(s, leader, site->k)).value.strings[0]
                   : groups->strings[0];
    }
    if (edge_exists(site->here) && frames_output(s->frames, site->with) != FRAME_ROOT) {
        s->b.controls = arena_copy(&s->arena, &site->here.node, sizeof site->here.node);
        s->b.n_controls = 1;
    }
    return &s->b;
}

/* A value that is on a shard cannot be parted there: the workers can, if each has a part of the
 * graph. But an update, which shards run by themselves, has no worker. */
static const char *reader_of(const struct slicer *s, const struct node *asker,
                             const struct node *node)
{
    if (s->updates[asker->id] && asker != node)
        return asker->device;
    struct device_name asked;
    struct error ignored = ERROR_INIT;
    bool shard =
        !device_name_parse(&asked, asker->device, &ignored) && !strcmp(asked.job, SHARD_JOB);
    for (size_t i = 0; shard && i < s->from->nodes.n; i++) {
        const char *device = graph_node(s->from, (int)i)->device;
        if (*device && !device_name_parse(&asked, device, &ignored) &&
            device_task_is_many(asked.task))
            return device;
    }
    return shard ? "" : asker->device;
}

/* It is large: not beside a slice, but with whom wants it. */
struct edge slice_concat(struct slicer *s, const struct node *asker, const struct form *form)
{
    struct slice_cut cut = slice_cut_at(s, form->slicing);
    const struct node *node = graph_node(s->from, form->edge.node);
    struct slice_site site = {node, node, -1, form->parts[0]};
    struct build *b = slice_builder(s, &site);
    struct edge *inputs = arena_array(&s->arena, (size_t)cut.n + 1, sizeof *inputs);
    b->colocate = NULL;
    b->device = reader_of(s, asker, node);
    inputs[0] = build_scalar(b, INT32, cut.axis);
    for (int k = 0; k < cut.n; k++) {
        struct edge part = inputs[k + 1] = form->parts[k];
        if (form->kind == FORM_INDEX)
            inputs[k + 1] = build_binary(b, "Add", part,
                                         build_scalar_like(b, part, (double)slice_first(cut, k)));
    }
    struct edge whole = build_op(b, "Concat", inputs, cut.n + 1, NULL, 0);
    if (asker == node && edge_exists(whole)) /* who asks for it asks by name */
        graph_rename(s->r.to, graph_node(s->r.to, whole.node), node->name, s->err);
    return whole;
}
