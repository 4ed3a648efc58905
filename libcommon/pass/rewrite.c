/* SPDX-License-Identifier: Apache-2.0 */
#include "pass/rewrite.h"

#include <string.h>

#include "graph/marks.h"

/* ---- what is known of the source ---- */

static int flag_all(struct rewrite *r, struct error *err)
{
    const struct graph *from = r->from;
    graph_each(node, from) {
        unsigned char *flags = &r->flags[node->id];
        if (node_has(node, OP_STATEFUL) ||
            node_attr(node, "_gradient")) /* tf-replicate cuts there */
            *flags |= REWRITE_STATEFUL;
        if (node_attr(node, TOTAL)) /* an evaluation feeds what it has added up */
            *flags |= REWRITE_OPAQUE;
        r->has_control_flow |= node_has(node, OP_CONTROL_FLOW);
        for (int j = 0; j < node->n_outputs; j++)
            if (node->outputs[j].is_ref)
                *flags |= REWRITE_STATEFUL;
        for (int j = 0; j < node->n_inputs; j++)
            if (graph_output(r->from, node->inputs[j])->is_ref)
                *flags |= REWRITE_STATEFUL;
        for (int j = 0; j < node->n_controls; j++)
            r->flags[node->controls[j]] |= REWRITE_AWAITED;
        const struct attr_value *groups = node_attr(node, "_class");
        for (int j = 0; groups && j < groups->n; j++) {
            const struct node *leader = group_leader(r->from, groups->strings[j]);
            if (leader && leader != node)
                r->flags[leader->id] |= REWRITE_KEPT;
        }
    }
    vec_each(entry, &from->entries) {
        for (int k = 0; k < entry->n_edges; k++)
            r->flags[entry->edges[k].node] |= REWRITE_KEPT;
    }
    for (int i = 0; i < r->options->n_keep; i++) {
        struct edge edge;
        if (graph_parse_edge(from, r->options->keep[i], &edge, err))
            return err->code;
        r->flags[edge.node] |= REWRITE_OPAQUE;
    }
    return 0;
}

int rewrite_open(struct rewrite *r, const struct graph *from, const struct pass_options *options,
                 struct error *err)
{
    static const struct pass_options none = {0};
    memset(r, 0, sizeof *r);
    r->from = from;
    r->options = options ? options : &none;
    r->err = err;
    size_t n = from->nodes.n;
    r->order = arena_array(&r->arena, n, sizeof *r->order);
    r->flags = arena_alloc(&r->arena, n + 1);
    r->first = arena_array(&r->arena, n, sizeof *r->first);
    r->after = arena_array(&r->arena, n, sizeof *r->after);
    for (size_t i = 0; i < n; i++) {
        r->first[i] = (int)r->n_outputs;
        r->n_outputs += (size_t)graph_node(from, (int)i)->n_outputs;
    }
    r->edges = rewrite_edges(r);
    if (graph_order(from, r->order, err) || flag_all(r, err)) {
        arena_release(&r->arena);
        return err->code;
    }
    r->to = graph_new(from->registry);
    r->rules = (struct copy_rules){.from = from, .to = r->to};
    return 0;
}

struct edge *rewrite_edges(struct rewrite *r)
{
    struct edge *edges = arena_array(&r->arena, r->n_outputs, sizeof *edges);
    for (size_t i = 0; i < r->n_outputs; i++)
        edges[i] = EDGE_NONE;
    return edges;
}

/* ---- the mapping ---- */

struct edge rewrite_edge(const struct rewrite *r, struct edge edge)
{
    return r->edges[r->first[edge.node] + edge.slot];
}

static struct edge edge_for(struct rewrite *r, const struct node *asker, struct edge edge)
{
    struct edge there = rewrite_edge(r, edge);
    bool makes = r->make && !edge_exists(there) && !graph_is_back_edge(r->from, asker, edge);
    return makes ? r->make(r->rules.context, asker, edge) : there;
}

void rewrite_make_named(struct rewrite *r)
{
    graph_each_named(at, r->from)
        if (at.edge.slot != CONTROL_SLOT)
            edge_for(r, graph_node(r->from, at.edge.node), at.edge);
}

/* An edge of an entry. */
struct entry_edge {
    const char *entry;
    struct edge edge;
};

void rewrite_extend_entry(struct rewrite *r, const char *entry, struct edge edge)
{
    vec_push_in(&r->arena, &r->added, ((struct entry_edge){entry, edge}));
}

/* Nodes of `to` after which a node may run that waited for those of `node`; sorted, once each. */
static void map_controls(struct rewrite *r, const struct node *node, struct node *view)
{
    view->controls = NULL;
    view->n_controls = 0;
    for (int i = 0; i < node->n_controls; i++) {
        int before = node->controls[i];
        if (r->make && !r->after[before])
            r->make(r->rules.context, node, (struct edge){before, CONTROL_SLOT});
        for (const int *after = r->after[before]; after && *after >= 0; after++)
            graph_add_control(r->to, view, *after);
    }
}

struct node rewrite_view(struct rewrite *r, const struct node *node)
{
    struct node view = *node;
    view.inputs = arena_array(&r->arena, (size_t)node->n_inputs, sizeof *view.inputs);
    for (int i = 0; i < node->n_inputs; i++)
        view.inputs[i] = edge_for(r, node, node->inputs[i]);
    map_controls(r, node, &view);
    return view;
}

struct build rewrite_build(const struct rewrite *r, const struct node *node, const char *scope,
                           const char *device)
{
    return (struct build){.graph = r->to,
                          .scope = scope,
                          .device = device,
                          .file = node->file,
                          .line = node->line,
                          .err = r->err};
}

struct node *rewrite_add_as(struct rewrite *r, const struct node *node, const struct node *view,
                            const char *name)
{
    struct node_spec spec = graph_spec_like(node);
    spec.op = view->op->def->name;
    spec.name = name;
    spec.inputs = view->inputs;
    spec.n_inputs = view->n_inputs;
    spec.controls = view->controls;
    spec.n_controls = view->n_controls;
    spec.attrs = view->attrs;
    spec.n_attrs = view->n_attrs;
    spec.assigned = node->assigned;
    return graph_add_trusted(r->to, &spec, view->outputs, view->n_outputs);
}

/* What stands for node `node` of the source, as copy k, with a map or as the rewrite's edges. */
struct open_node {
    int node, copy, k;
    rewrite_map *map;
};

static void note_open(struct rewrite *r, struct open_node made)
{
    const struct node *copy = graph_node(r->to, made.copy);
    bool is_open = false;
    for (int i = 0; i < copy->n_inputs; i++)
        is_open |= !edge_exists(copy->inputs[i]);
    if (is_open)
        vec_push_in(&r->arena, &r->open, made);
}

struct node *rewrite_add(struct rewrite *r, const struct node *node, const struct node *view)
{
    struct node *copy = rewrite_add_as(r, node, view, node->name);
    note_open(r, (struct open_node){node->id, copy->id, -1, NULL});
    rewrite_stand_in(r, node, copy->id);
    return copy;
}

void rewrite_stand_in(struct rewrite *r, const struct node *node, int copy)
{
    rewrite_await_parts(r, node, &(struct edge){copy, 0}, 1);
    for (int i = 0; i < node->n_outputs; i++)
        r->edges[r->first[node->id] + i] = (struct edge){copy, i};
}

void rewrite_await_parts(struct rewrite *r, const struct node *node, const struct edge *parts,
                         int n)
{
    int *after = arena_array(&r->arena, (size_t)n + 1, sizeof *after);
    for (int k = 0; k < n; k++)
        after[k] = parts[k].node;
    after[n] = -1;
    r->after[node->id] = after;
}

const char *rewrite_free_name(const struct graph *from, struct graph *to, const char *base)
{
    const char *name = base;
    for (int i = 1;
         graph_find(from, name) || graph_find(to, name) || map_get(&from->alias_names, name, NULL);
         i++)
        name = arena_printf(&to->arena, "%s_%d", base, i);
    return name;
}

const char *rewrite_name_near(struct rewrite *r, const char *near, const char *suffix)
{
    return rewrite_free_name(r->from, r->to, arena_printf(&r->to->arena, "%s/%s", near, suffix));
}

struct node *rewrite_copy(struct rewrite *r, const struct node *node)
{
    struct node view = rewrite_view(r, node);
    if (r->rules.leader)
        view.attrs = copy_attrs(&r->rules, node, -1, NULL, &view.n_attrs);
    return rewrite_add(r, node, &view);
}

bool rewrite_reads(const struct rewrite *r, struct edge edge)
{
    return edge.slot >= 0 && graph_output(r->to, edge)->is_ref;
}

static bool may_replace(const struct rewrite *r, const struct node *node, struct edge by)
{
    unsigned char flags = r->flags[node->id];
    const struct node *source = graph_node(r->to, by.node);
    if (flags & (REWRITE_KEPT | REWRITE_OPAQUE | REWRITE_STATEFUL) ||
        node_has(node, OP_CONTROL_FLOW))
        return false;
    if (node->n_controls || node->n_outputs != 1 || rewrite_reads(r, by))
        return false;
    if (*node->device && strcmp(node->device, source->device))
        return false;
    if (*node->assigned && strcmp(node->assigned, source->assigned))
        return false;
    /* After a Switch is not after one of its outputs. */
    return !((flags & REWRITE_AWAITED) && node_has(source, OP_CONTROL_FLOW));
}

bool rewrite_replace(struct rewrite *r, const struct node *node, struct edge by, const char *what)
{
    if (!may_replace(r, node, by))
        return false;
    struct edge *parts = arena_array(&r->arena, (size_t)node->n_inputs + 1, sizeof *parts);
    int n = 0;
    parts[n++] = by;
    for (int i = 0; i < node->n_inputs; i++) {
        struct edge input = rewrite_edge(r, node->inputs[i]);
        const struct node *producer = graph_node(r->to, input.node);
        if (input.node != by.node && (!node_is(producer, "Const") || producer->n_controls))
            parts[n++] = input;
    }
    rewrite_await_parts(r, node, parts, n);
    r->edges[r->first[node->id]] = by;
    if (rewrite_has_own_name(r, node))
        vec_push_in(&r->arena, &r->lost, ((struct alias){node->name, by}));
    rewrite_note(r, node->name, what);
    return true;
}

/* ---- facts ---- */

bool spread_facts(const struct graph *graph, const int *order, unsigned *facts, struct spread how)
{
    bool found = false;
    for (bool news = true; news; news &= how.loops) {
        news = false;
        for (size_t i = 0, n = graph->nodes.n; i < n; i++) {
            const struct node *node = graph_node(graph, order[how.up ? n - 1 - i : i]);
            for (int k = 0; k < node->n_inputs + (how.controls ? node->n_controls : 0); k++) {
                struct edge edge = node_dependency(node, k);
                int from = how.up ? node->id : edge.node, to = how.up ? edge.node : node->id;
                if (!edge_exists(edge) || !(facts[from] & (how.roots | how.fact)) ||
                    facts[to] & (how.fact | how.unless) || (how.only && !(facts[to] & how.only)) ||
                    (how.follows && !how.follows(graph, edge)))
                    continue;
                facts[to] |= how.fact;
                found = news = true;
            }
        }
    }
    return found;
}

/* ---- copies ---- */

const char *rewrite_part_name(struct rewrite *r, const char *name, int k)
{
    return rewrite_name_near(r, name, arena_printf(&r->arena, "part_%d", k));
}

static void map_groups(const struct copy_rules *rules, struct attr_value *groups, int k)
{
    struct arena *arena = &rules->to->arena;
    const char **kept = arena_array(arena, (size_t)groups->n + 1, sizeof *kept);
    int n = 0;
    for (int i = 0; i < groups->n; i++) {
        const struct node *was = group_leader(rules->from, groups->strings[i]);
        const char *leader = was ? rules->leader(rules->context, was, k) : NULL;
        if (!was || leader == was->name)
            kept[n++] = groups->strings[i];
        else if (leader)
            kept[n++] = group_attr(arena, leader).value.strings[0];
    }
    groups->strings = kept;
    groups->n = n;
}

struct attr *copy_attrs(const struct copy_rules *rules, const struct node *node, int k,
                        const struct attr *more, int *n)
{
    int n_more = 0;
    while (more && more[n_more].name)
        n_more++;
    struct attr *attrs =
        arena_array(&rules->to->arena, (size_t)(node->n_attrs + n_more) + 1, sizeof *attrs);
    *n = 0;
    for (int i = 0; i < node->n_attrs; i++) {
        struct attr attr = node->attrs[i];
        bool stays = true;
        for (int j = 0; j < n_more; j++)
            stays &= strcmp(more[j].name, attr.name) != 0;
        if (!stays)
            continue;
        if (!strcmp(attr.name, "_class") && attr.value.kind == ATTR_LIST_STRING) {
            if (rules->leader)
                map_groups(rules, &attr.value, k);
            stays = attr.value.n > 0;
        } else if (rules->attr) {
            stays = rules->attr(rules->context, node, k, &attr);
        }
        if (stays)
            attrs[(*n)++] = attr;
    }
    for (int j = 0; j < n_more; j++)
        attrs[(*n)++] = more[j];
    return attrs;
}

struct edge rewrite_add_copy(struct rewrite *r, const struct rewrite_copy *copy)
{
    if (r->err->code)
        return EDGE_NONE;
    struct node view = {.n_controls = 0};
    if (!node_is(copy->node, "Variable"))
        map_controls(r, copy->node, &view);
    if (r->err->code)
        return EDGE_NONE;
    struct node_spec spec = graph_spec_like(copy->node);
    int n;
    struct attr *attrs = copy_attrs(&r->rules, copy->node, copy->k, copy->more, &n);
    spec.n_attrs = 0;
    for (int i = 0; i < n; i++) {
        int declared = op_find_attr(copy->node->op, attrs[i].name);
        if (declared < 0 || !copy->node->op->attrs[declared].inferred)
            attrs[spec.n_attrs++] = attrs[i];
    }
    spec.attrs = attrs;
    spec.name = copy->name ? copy->name : spec.name;
    spec.device = copy->device ? copy->device : spec.device;
    spec.inputs = copy->inputs;
    spec.n_inputs = copy->n_inputs;
    spec.controls = view.controls;
    spec.n_controls = view.n_controls;
    const struct node *added = graph_add(r->to, &spec, r->err);
    return added ? (struct edge){added->id, 0} : EDGE_NONE;
}

struct node *rewrite_add_mapped(struct rewrite *r, const struct rewrite_copy *copy,
                                rewrite_map *map)
{
    const struct node *node = copy->node;
    struct node_spec spec = graph_spec_like(node);
    struct edge *inputs = arena_array(&r->arena, (size_t)node->n_inputs + 1, sizeof *inputs);
    for (int i = 0; i < node->n_inputs; i++)
        inputs[i] = map(r->rules.context, node, node->inputs[i], copy->k);
    spec.inputs = inputs;
    spec.n_inputs = node->n_inputs;
    spec.attrs = copy_attrs(&r->rules, node, copy->k, NULL, &spec.n_attrs);
    spec.name = copy->name ? copy->name : spec.name;
    spec.device = copy->device ? copy->device : spec.device;
    struct node *made = graph_add_trusted(r->to, &spec, node->outputs, node->n_outputs);
    for (int i = 0; i < node->n_controls; i++) {
        struct edge before = {node->controls[i], CONTROL_SLOT};
        before = map(r->rules.context, node, before, copy->k);
        if (edge_exists(before))
            graph_add_control(r->to, made, before.node);
    }
    note_open(r, (struct open_node){node->id, made->id, copy->k, map});
    return made;
}

/* ---- constants ---- */

struct node rewrite_constant_view(struct rewrite *r, const struct node *node, struct tensor *value)
{
    struct arena *arena = &r->to->arena;
    const struct node_output output = {value->type, false, value->shape};
    struct attr *attrs = arena_array(arena, 3, sizeof *attrs);
    const struct attr_value *groups = node_attr(node, "_class");
    int n = 0;
    if (groups)
        attrs[n++] = (struct attr){"_class", *groups};
    struct attr_value wrapped = attr_tensor(value);
    attrs[n++] = (struct attr){"dtype", attr_type(value->type)};
    attrs[n++] = (struct attr){"value", attr_copy(arena, &wrapped)};
    tensor_release(value);
    return (struct node){.op = registry_find(r->from->registry, "Const"),
                         .attrs = attrs,
                         .n_attrs = n,
                         .outputs = arena_copy(&r->arena, &output, sizeof output),
                         .n_outputs = 1};
}

struct edge rewrite_constant(struct rewrite *r, const struct node *near, const char *suffix,
                             struct tensor *value)
{
    const struct node view = rewrite_constant_view(r, near, value);
    const char *name = rewrite_name_near(r, near->name, suffix);
    return (struct edge){rewrite_add_as(r, near, &view, name)->id, 0};
}

bool rewrite_is_opaque(const struct rewrite *r, const struct node *copy)
{
    if (!r->options->n_keep)
        return false;
    const struct node *node = graph_find(r->from, copy->name);
    return node && r->flags[node->id] & REWRITE_OPAQUE;
}

const struct tensor *rewrite_value(const struct rewrite *r, struct edge edge)
{
    const struct node *node = graph_node(r->to, edge.node);
    if (!node_is(node, "Const") || node->n_controls || rewrite_is_opaque(r, node) ||
        node_attr(node, "_loss"))
        return NULL;
    return node_attr(node, "value")->tensor;
}

/* ---- names and the end ---- */

bool rewrite_has_own_name(struct rewrite *r, const struct node *node)
{
    const char *op = node->op->def->name, *last = strrchr(node->name, '/');
    size_t n = strlen(op);
    if (last && node_is(node, "Const")) { /* "Div/y": a number, for the node that a script wrote */
        int prefix = (int)(last - node->name);
        if (graph_find(r->from, arena_printf(&r->arena, "%.*s", prefix, node->name)))
            return false;
    }
    last = last ? last + 1 : node->name;
    if (strncmp(last, op, n))
        return true;
    if (last[n] == '\0')
        return false;
    return last[n] != '_' || !last[n + 1] || last[n + 1 + strspn(last + n + 1, "0123456789")];
}

void rewrite_note(struct rewrite *r, const char *node, const char *what)
{
    r->n_changes++;
    pass_note(r->options, node, what);
}

/* A name goes when nothing stands for what had it. Those that stay were good in the source, and no
 * node took them. */
static void copy_names(struct rewrite *r)
{
    struct error err = ERROR_INIT;
    const struct graph *from = r->from;
    vec_each(entry, &from->entries) {
        /* A node that runs is all the nodes that came of it. */
        VEC(struct edge) edges = VEC_INIT;
        for (int j = 0; j < entry->n_edges; j++) {
            const int *after = r->after[entry->edges[j].node];
            if (entry->edges[j].slot != CONTROL_SLOT)
                vec_push_in(&r->arena, &edges, rewrite_edge(r, entry->edges[j]));
            else
                for (; *after >= 0; after++)
                    vec_push_in(&r->arena, &edges, ((struct edge){*after, CONTROL_SLOT}));
        }
        vec_each(added, &r->added) {
            if (strcmp(added->entry, entry->name) != 0)
                continue;
            if (added->edge.slot != CONTROL_SLOT)
                edges.n = 0;
            vec_push_in(&r->arena, &edges, added->edge);
        }
        graph_add_entry(r->to, entry->name, edges.items, (int)edges.n);
    }
    vec_each(alias, &from->aliases) {
        struct edge edge = alias->edge.slot == CONTROL_SLOT
                               ? (struct edge){r->after[alias->edge.node][0], CONTROL_SLOT}
                               : rewrite_edge(r, alias->edge);
        BUG_ON(edge_exists(edge) && graph_add_alias(r->to, alias->name, edge, &err));
    }
    vec_each(lost, &r->lost)
        BUG_ON(graph_add_alias(r->to, lost->name, lost->edge, &err));
    graph_add_history(r->to, from);
}

int rewrite_close(struct rewrite *r, int code, struct graph **to, int *n_changes)
{
    if (!code && r->n_changes) {
        vec_each(open, &r->open) {
            const struct node *node = graph_node(r->from, open->node);
            struct node *copy = graph_node(r->to, open->copy);
            for (int i = 0; i < node->n_inputs; i++)
                if (!edge_exists(copy->inputs[i]))
                    copy->inputs[i] =
                        open->map ? open->map(r->rules.context, node, node->inputs[i], open->k)
                                  : rewrite_edge(r, node->inputs[i]);
        }
        copy_names(r);
        *n_changes = r->n_changes;
        *to = r->to;
    } else {
        graph_free(r->to);
    }
    frames_free(r->frames);
    r->frames = NULL;
    r->to = NULL;
    arena_release(&r->arena);
    return code;
}

int rewrite_finish(struct rewrite *r, int code, struct graph **to)
{
    int n_changes = 0;
    struct error *err = r->err;
    *to = NULL;
    code = rewrite_close(r, code, to, &n_changes);
    if (!code && *to && (code = graph_check(*to, err))) {
        graph_free(*to);
        *to = NULL;
    }
    return code;
}
