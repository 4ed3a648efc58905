/* SPDX-License-Identifier: Apache-2.0 */
#include "pass/slice/slice.h"

#include <string.h>

#include "base/memory.h"
#include "graph/group.h"
#include "graph/prefix.h"
#include "pass/part/part.h"
#include "pass/place/place.h"
#include "pass/slice/slice_private.h"

/* ---- copies ---- */

/* Rules of copies: what is with a table is with its slice k, with the first if it is whole. */
static const char *leader_of_slice(void *context, const struct node *leader, int k)
{
    const struct slicer *s = context;
    if (s->role[leader->id] != SLICE_VARIABLE)
        return leader->name;
    bool has_own = k >= 0 && k < slice_cut_at(s, s->slicing[leader->id]).n[0];
    return s->names[leader->id][has_own ? k : 0];
}

/* The attributes that say how a table was to be cut are left out of its slices. */
static bool slice_keeps(void *context, const struct node *node, int k, struct attr *attr)
{
    (void)context, (void)node;
    return k < 0 || (strcmp(attr->name, SLICE_WANTED) != 0 && strcmp(attr->name, SLICE_AXIS) != 0);
}

struct edge slice_add_copy(struct slicer *s, struct rewrite_copy copy)
{
    if (s->err->code || (!node_is(copy.node, "Variable") && slice_await(s, copy.node)))
        return EDGE_NONE;
    copy.name = copy.k < 0 ? NULL : rewrite_part_name(&s->r, copy.node->name, copy.k);
    return rewrite_add_copy(&s->r, &copy);
}

/* Beside the slice, unless the script wants it elsewhere: only the rows that were found travel. */
struct edge slice_add_gather(struct slicer *s, const struct node *node, int k, struct edge table,
                             struct edge rows)
{
    const struct edge inputs[] = {table, rows};
    const struct node *variable = graph_node(s->from, node->inputs[0].node);
    while (variable->n_inputs)
        variable = graph_node(s->from, variable->inputs[0].node);
    const struct attr with = group_attr(&s->r.arena, s->names[variable->id][k]);
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
    const struct node *leader = group_first_leader(s->from, site->with);
    s->b = (struct build){.graph = s->r.to,
                          .scope = arena_printf(&s->r.arena, "%s/%s", s->prefix, site->node->name),
                          .device = site->with->device,
                          .file = site->node->file,
                          .line = site->node->line,
                          .err = s->err,
                          .failed = s->err->code != 0};
    if (leader)
        s->b.colocate =
            group_attr(&s->r.arena, leader_of_slice(s, leader, site->k)).value.strings[0];
    if (edge_exists(site->here) && frames_output(s->r.frames, site->with) != FRAME_ROOT) {
        s->b.controls = arena_copy(&s->r.arena, &site->here.node, sizeof site->here.node);
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

/* The parts one after another, for a node of the source that asks for the whole. It is large: not
 * beside a slice, but with whom wants it. */
static struct edge concat_parts(struct slicer *s, const struct node *asker, const struct form *form)
{
    struct partition cut = slice_cut_at(s, form->slicing);
    const struct node *node = graph_node(s->from, form->edge.node);
    struct slice_site site = {node, node, -1, form->parts[0]};
    struct build *b = slice_builder(s, &site);
    struct edge *parts = arena_copy(&s->r.arena, form->parts, (size_t)cut.n[0] * sizeof *parts);
    b->colocate = NULL;
    b->device = reader_of(s, asker, node);
    for (int k = 0; k < cut.n[0] && form->kind == FORM_INDEX; k++)
        parts[k] = build_binary(b, "Add", parts[k],
                                build_scalar_like(b, parts[k], (double)slice_first(cut, k)));
    struct edge whole = cut_concat(b, cut.axis[0], parts, cut.n[0]);
    if (asker == node && edge_exists(whole)) /* who asks for it asks by name */
        graph_rename(s->r.to, graph_node(s->r.to, whole.node), node->name, s->err);
    return whole;
}

/* ---- wholes ---- */

struct edge slice_is_whole(struct slicer *s, struct edge edge, struct edge whole)
{
    s->r.edges[s->r.first[edge.node] + edge.slot] = whole;
    return whole;
}

/* Stitches what was found in each slice, in the order of the numbers that it was looked for by. */
static struct edge stitch(struct slicer *s, const struct node *node, int slicing)
{
    struct edge ids = node->inputs[1];
    int n = slice_cut_at(s, slicing).n[0];
    const struct form *index = slice_index_of(s, slicing, ids);
    const struct form *table = index ? slice_rows_of(s, slicing, node->inputs[0]) : NULL;
    struct edge *inputs = arena_array(&s->r.arena, (size_t)n * 2 + 1, sizeof *inputs);
    for (int k = 0; table && k < n; k++)
        inputs[n + k] = slice_add_gather(s, node, k, table->parts[k], index->parts[k]);
    struct edge number = slice_number_of(s, slicing, ids), whole = slice_whole(s, node, ids);
    struct build *b =
        slice_builder(s, &(struct slice_site){node, graph_node(s->from, ids.node), -1, whole});
    struct edge range[] = {build_scalar(b, INT32, 0), build_unary(b, "Size", whole),
                           build_scalar(b, INT32, 1)};
    struct edge place = build_op(b, "Range", range, 3, NULL, 0);
    if (build_shape(b, whole)->rank != 1)
        place = build_binary(b, "Reshape", place, build_unary(b, "Shape", whole));
    struct attr parts = {"num_partitions", attr_int(n)};
    struct edge places =
        build_op(b, "DynamicPartition", (struct edge[]){place, number}, 2, &parts, 1);
    for (int k = 0; k < n; k++)
        inputs[k] = (struct edge){places.node, b->failed ? 0 : k};
    return build_op(b, "DynamicStitch", inputs, 2 * n, NULL, 0);
}

static struct edge gather_whole(struct slicer *s, const struct node *node, int slicing)
{
    struct edge rows = stitch(s, node, slicing), ids = slice_whole(s, node, node->inputs[1]);
    if (s->err->code)
        return EDGE_NONE;
    const struct node *numbers = graph_node(s->from, node->inputs[1].node);
    struct build *b = slice_builder(s, &(struct slice_site){node, numbers, -1, ids});
    const struct node *table = graph_node(s->from, node->inputs[0].node);
    const struct shape *shape = &table->outputs[node->inputs[0].slot].shape;
    bool vector = build_shape(b, ids)->rank == 1;
    struct edge inputs[] = {rows, EDGE_NONE};
    if (!vector) { /* the shape of numbers, and of a row */
        struct edge parts[] = {build_scalar(b, INT32, 0), EDGE_NONE, EDGE_NONE};
        parts[1] = build_unary(b, "Shape", ids);
        parts[2] = build_ints(b, shape->dims + 1, shape->rank - 1);
        inputs[1] = build_op(b, "Concat", parts, 3, NULL, 0);
    }
    b->colocate = NULL;
    b->n_controls = 0;
    struct edge whole = vector ? build_op(b, "Identity", inputs, 1, NULL, 0)
                               : build_op(b, "Reshape", inputs, 2, NULL, 0);
    if (b->failed || graph_rename(s->r.to, graph_node(s->r.to, whole.node), node->name, s->err))
        return EDGE_NONE;
    rewrite_stand_in(&s->r, node, whole.node);
    return whole;
}

const struct form *slice_first_known(const struct slicer *s, struct edge edge)
{
    for (const struct form *form = s->forms[edge.node]; form; form = form->next)
        if (form->edge.slot == edge.slot && form->kind != FORM_NUMBER)
            return form;
    return NULL;
}

static int copy_whole(struct slicer *s, const struct node *node)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (!graph_is_back_edge(s->from, node, node->inputs[i]) &&
            !edge_exists(slice_whole(s, node, node->inputs[i])))
            return s->err->code;
    if (slice_await(s, node))
        return s->err->code;
    rewrite_copy(&s->r, node);
    return 0;
}

struct edge slice_whole(struct slicer *s, const struct node *asker, struct edge edge)
{
    const struct node *node = graph_node(s->from, edge.node);
    struct edge whole = s->err->code ? EDGE_NONE : rewrite_edge(&s->r, edge);
    int slicing;
    if (s->err->code || edge_exists(whole))
        return whole;
    if (slice_is_table(s, edge, &slicing) && !slice_rows_of(s, slicing, edge))
        return EDGE_NONE;
    bool made = s->role[node->id] != SLICE_NONE || slice_is_table(s, edge, &slicing);
    const struct form *parts = made ? slice_first_known(s, edge) : NULL;
    if (parts)
        return slice_is_whole(s, edge, concat_parts(s, asker, parts));
    if (node_rows(node) == ROWS_LOOKUP && slice_is_table(s, node->inputs[0], &slicing))
        return gather_whole(s, node, slicing);
    return copy_whole(s, node) ? EDGE_NONE : rewrite_edge(&s->r, edge);
}

int slice_await(struct slicer *s, const struct node *node)
{
    for (int i = 0; i < node->n_controls && !s->err->code; i++) {
        const struct node *before = graph_node(s->from, node->controls[i]);
        struct edge edge = {before->id, 0};
        int slicing;
        if (s->r.after[before->id])
            continue;
        const struct form *rows =
            slice_is_table(s, edge, &slicing) ? slice_rows_of(s, slicing, edge) : NULL;
        if (rows)
            rewrite_await_parts(&s->r, before, rows->parts, slice_cut_at(s, slicing).n[0]);
        else if (!s->err->code)
            copy_whole(s, before);
    }
    return s->err->code;
}

/* ---- tables and what changes them ---- */

struct form slice_new_rows(struct slicer *s, const struct node *node, int slot)
{
    return slice_new_form(s, FORM_ROWS, s->slicing[node->id], (struct edge){node->id, slot});
}

static int visit_variable(struct slicer *s, const struct node *node)
{
    struct form form = slice_new_rows(s, node, 0);
    struct partition cut = slice_cut_at(s, form.slicing);
    for (int k = 0; k < cut.n[0]; k++)
        form.parts[k] = cut_variable(&s->r, node, &cut, k, s->names[node->id][k], NULL);
    if (!slice_note(s, &form))
        return s->err->code;
    rewrite_await_parts(&s->r, node, form.parts, cut.n[0]);
    rewrite_note(&s->r, node->name, "cut into slices");
    return 0;
}

/* The variables themselves, numbers for all, and of the rest each slice's own. */
static struct edge *writer_input(struct slicer *s, const struct node *node, int i)
{
    struct edge edge = node->inputs[i];
    int slicing = s->slicing[node->id];
    bool scatters = node_rows(node) == ROWS_SCATTER;
    if (slice_output(s, edge)->shape.rank == 0 && !scatters)
        return slice_same(s, slicing, node, edge);
    const struct form *form = !scatters || i == 0 ? slice_rows_of(s, slicing, edge)
                              : i == 1            ? slice_index_of(s, slicing, edge)
                                       : slice_part_of(s, slicing, edge, node->inputs[1]);
    return form ? form->parts : NULL;
}

static int visit_writer(struct slicer *s, const struct node *node)
{
    struct form form = slice_new_rows(s, node, 0);
    int n = slice_n_slices(s, node);
    struct edge **inputs = arena_array(&s->r.arena, (size_t)node->n_inputs, sizeof *inputs);
    for (int i = 0; i < node->n_inputs; i++)
        if (!(inputs[i] = writer_input(s, node, i)))
            return s->err->code;
    if (!slice_copies(s, &form, inputs))
        return s->err->code;
    rewrite_await_parts(&s->r, node, form.parts, n);
    if (node_rows(node) != ROWS_ASK)
        return 0;
    /* The reply is yes if all slices say so. */
    struct build *b = slice_builder(s, &(struct slice_site){node, node, -1, EDGE_NONE});
    slice_is_whole(s, form.edge, cut_ask(b, form.parts, n));
    return s->err->code;
}

/* ---- the rest ---- */

/* A read of a read, or after one: such chains may be long, so that each is made in its turn. Other
 * nodes that are made on demand are few behind each other (slice_find.c). */
static bool is_chained(const struct slicer *s, const struct node *node)
{
    int slicing;
    bool chained = node->n_inputs && graph_node(s->from, node->inputs[0].node)->n_inputs;
    for (int i = 0; i < node->n_controls && !chained; i++)
        chained = graph_node(s->from, node->controls[i])->n_outputs &&
                  slice_is_table(s, (struct edge){node->controls[i], 0}, &slicing);
    return chained;
}

static int visit(struct slicer *s, const struct node *node)
{
    switch ((enum slice_role)s->role[node->id]) {
    case SLICE_VARIABLE:
        return s->r.after[node->id] ? 0 : visit_variable(s, node);
    case SLICE_WRITER:
        return visit_writer(s, node);
    case SLICE_PUSH:
        return slice_visit_push(s, node);
    case SLICE_TAKE:
        return slice_visit_take(s, node);
    default:
        break;
    }
    if (node_round(node) == ROUND_COMMIT)
        return slice_visit_clock(s, node);
    int slicing;
    struct edge output = {node->id, 0};
    bool is_table = node->n_outputs && slice_is_table(s, output, &slicing);
    if (!s->r.after[node->id] && is_table && s->on_demand[node->id] && is_chained(s, node))
        return slice_rows_of(s, slicing, output) ? 0 : s->err->code;
    if (s->on_demand[node->id] || s->r.after[node->id])
        return 0;
    if (is_table) {
        struct edge whole = slice_whole(s, node, output);
        if (!s->err->code)
            rewrite_await_parts(&s->r, node, &whole, 1);
        return s->err->code;
    }
    if (node_rows(node) == ROWS_LOOKUP && slice_is_table(s, node->inputs[0], &slicing))
        return edge_exists(gather_whole(s, node, slicing)) ? 0 : s->err->code;
    return copy_whole(s, node);
}

static int build(struct slicer *s, struct graph **to)
{
    s->r.rules = (struct copy_rules){s->from, s->r.to, leader_of_slice, slice_keeps, s};
    slice_find_origins(s);
    int code = rewrite_find_frames(&s->r);
    if (!code)
        code = slice_find(s);
    size_t n = s->slicings.n ? s->from->nodes.n : 0;
    if (!code && n) {
        slice_find_updates(s);
        s->prefix = graph_free_prefix(&s->r.arena, s->from, "slices");
        graph_each(node, s->from) {
            int n_slices = s->role[node->id] == SLICE_VARIABLE ? slice_n_slices(s, node) : 0;
            if (n_slices)
                s->names[node->id] = arena_array(&s->r.arena, (size_t)n_slices, sizeof **s->names);
            for (int k = 0; k < n_slices; k++)
                s->names[node->id][k] = rewrite_part_name(&s->r, node->name, k);
        }
        /* Before anything else: others are with them. */
        for (size_t i = 0; i < s->from->nodes.n && !s->err->code; i++)
            if (s->role[i] == SLICE_VARIABLE)
                visit(s, graph_node(s->from, (int)i));
        code = s->err->code;
    }
    for (size_t i = 0; !code && i < n; i++)
        code = visit(s, graph_node(s->from, s->r.order[i]));
    for (size_t i = 0; n && i < s->from->entries.n; i++) {
        const struct entry *entry = &s->from->entries.items[i];
        for (int k = 0; k < entry->n_edges && !s->err->code; k++)
            if (entry->edges[k].slot != CONTROL_SLOT)
                slice_whole(s, graph_node(s->from, entry->edges[k].node), entry->edges[k]);
    }
    return rewrite_finish(&s->r, code ? code : s->err->code, to);
}

int slice_variables(const struct graph *from, const struct slice_options *options,
                    struct graph **to, struct error *err)
{
    static const struct pass_options none = {0};
    size_t n = from->nodes.n + 1;
    struct slicer s = {.from = from,
                       .placement = options->placement,
                       .balance_above = options->balance_above,
                       .err = err};
    *to = NULL;
    if (rewrite_open(&s.r, from, &none, err))
        return err->code;
    s.slicing = arena_array(&s.r.arena, n, sizeof *s.slicing);
    s.role = arena_alloc(&s.r.arena, n);
    s.origin = arena_array(&s.r.arena, n, sizeof *s.origin);
    s.on_demand = arena_alloc(&s.r.arena, n);
    s.updates = arena_array(&s.r.arena, n, sizeof *s.updates);
    s.names = arena_array(&s.r.arena, n, sizeof *s.names);
    s.take = arena_array(&s.r.arena, n, sizeof *s.take);
    s.forms = arena_array(&s.r.arena, n, sizeof(struct form *));
    return build(&s, to);
}
