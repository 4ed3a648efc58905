/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes of the graph with slices: copies of the source's, and what parts and joins.
 */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "graph/group.h"
#include "pass/slice/slice_private.h"

/* ---- names, groups, attributes ---- */

const char *slice_name(struct slicer *s, const char *base, int k)
{
    struct arena *arena = &s->r.to->arena;
    const char *name = k < 0 ? base : arena_printf(arena, "%s/part_%d", base, k);
    for (int i = 1; (k >= 0 && graph_find(s->from, name)) || graph_find(s->r.to, name) ||
                    map_get(&s->from->alias_names, name, NULL);
         i++)
        name = k < 0 ? arena_printf(arena, "%s_%d", base, i)
                     : arena_printf(arena, "%s/part_%d_%d", base, k, i);
    return name;
}

const char *slice_map_group(struct slicer *s, const char *group, int k)
{
    const struct node *leader = group_leader(s->from, group);
    if (!leader || s->role[leader->id] != SLICE_VARIABLE)
        return group;
    int at = k < 0 || k >= slicing_at(s, s->slicing[leader->id]).n ? 0 : k;
    return arena_printf(&s->r.to->arena, "loc:@%s", s->names[leader->id][at]);
}

static struct attr_value map_groups(struct slicer *s, const struct attr_value *value, int k)
{
    struct attr_value groups = *value;
    const char **texts = arena_array(&s->r.to->arena, (size_t)value->n + 1, sizeof *texts);
    for (int i = 0; i < value->n; i++)
        texts[i] = slice_map_group(s, value->strings[i], k);
    groups.strings = texts;
    return groups;
}

struct edge slice_add_copy(struct slicer *s, const struct slice_copy *what)
{
    const struct node *node = what->node;
    bool waits = !node_is(node, "Variable"); /* which is no value yet */
    if (s->err->code || (waits && slice_await(s, node)))
        return EDGE_NONE;
    struct node view = rewrite_view(&s->r, node);
    struct node_spec spec = {.op = node->op->def->name,
                             .name = what->k < 0 ? node->name : slice_name(s, node->name, what->k),
                             .inputs = what->inputs,
                             .n_inputs = what->n_inputs,
                             .controls = view.controls,
                             .n_controls = waits ? view.n_controls : 0,
                             .device = node->device,
                             .assigned = node->assigned,
                             .file = node->file,
                             .line = node->line};
    struct attr *attrs =
        arena_array(&s->arena, (size_t)(node->n_attrs + what->n_more) + 1, sizeof *attrs);
    spec.n_attrs = 0;
    for (int i = 0; i < node->n_attrs; i++) {
        struct attr attr = node->attrs[i];
        int declared = op_find_attr(node->op, attr.name), k = 0;
        while (k < what->n_more && strcmp(what->more[k].name, attr.name) != 0)
            k++;
        if (k < what->n_more || (declared >= 0 && node->op->attrs[declared].inferred) ||
            !strcmp(attr.name, SLICE_WANTED) || !strcmp(attr.name, SLICE_AXIS))
            continue;
        if (!strcmp(attr.name, "_class") && attr.value.kind == ATTR_LIST_STRING)
            attr.value = map_groups(s, &attr.value, what->k);
        attrs[spec.n_attrs++] = attr;
    }
    for (int i = 0; i < what->n_more; i++)
        attrs[spec.n_attrs++] = what->more[i];
    spec.attrs = attrs;
    struct node *copy = graph_add(s->r.to, &spec, s->err);
    return copy ? (struct edge){copy->id, 0} : EDGE_NONE;
}

/* What is not copied is shared with the source. */
int slice_copy_whole(struct slicer *s, const struct node *node)
{
    struct node view = rewrite_view(&s->r, node);
    view.attrs =
        arena_copy(&s->r.to->arena, node->attrs, (size_t)node->n_attrs * sizeof *view.attrs);
    for (int i = 0; i < node->n_attrs; i++)
        if (!strcmp(view.attrs[i].name, "_class") && view.attrs[i].value.kind == ATTR_LIST_STRING)
            view.attrs[i].value = map_groups(s, &view.attrs[i].value, -1);
    rewrite_add(&s->r, node, &view);
    return 0;
}

/* Beside the slice, unless the script wants it elsewhere: only the rows that were found travel. */
struct edge slice_add_gather(struct slicer *s, const struct node *node, int k, struct edge table,
                             struct edge rows)
{
    struct edge inputs[] = {table, rows};
    struct slice_copy copy = {.node = node, .k = k, .inputs = inputs, .n_inputs = 2};
    const struct node *variable = graph_node(s->from, node->inputs[0].node);
    while (variable->n_inputs)
        variable = graph_node(s->from, variable->inputs[0].node);
    const char *group = arena_printf(&s->arena, "loc:@%s", s->names[variable->id][k]);
    struct attr with = {"_class", {.kind = ATTR_LIST_STRING, .n = 1, .strings = &group}};
    bool free = !*node->device || !strcmp(node->device, variable->device);
    copy.more = &with;
    copy.n_more = free && !node_attr(node, "_class");
    return slice_add_copy(s, &copy);
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
    if (groups && groups->kind == ATTR_LIST_STRING && groups->n)
        s->b.colocate = slice_map_group(s, groups->strings[0], site->k);
    if (edge_exists(site->here) && frames_output(s->frames, site->with) != FRAME_ROOT) {
        s->b.controls = arena_copy(&s->arena, &site->here.node, sizeof site->here.node);
        s->b.n_controls = 1;
    }
    return &s->b;
}

/* What is on a shard cannot have it there: the workers can, if each has a part of the graph. But an
 * update, which shards run by themselves, has no worker. */
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
    struct slicing cut = slicing_at(s, form->slicing);
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
        graph_rename(s->r.to, graph_node(s->r.to, whole.node), slice_name(s, node->name, -1),
                     s->err);
    return whole;
}
