/* SPDX-License-Identifier: Apache-2.0
 *
 * Adding nodes: only here are the settings in force applied (scope, device, controls, control-flow
 * context).
 */
#include <string.h>

#include "ops/script/internal.h"

struct note *node_note(struct script *s, int node)
{
    if ((size_t)node >= s->notes.n)
        node_adopt(s);
    return &s->notes.items[node];
}

void node_adopt(struct script *s)
{
    while (s->notes.n < s->graph->nodes.n)
        vec_push(&s->notes, ((struct note){.context = s->context, .variable = -1, .leader = -1}));
}

const char *node_full_name(struct script *s, const char *name)
{
    if (name[0] == '/')
        return name + 1;
    return *s->scope ? arena_printf(&s->arena, "%s/%s", s->scope, name) : name;
}

const char *node_unique_name(struct script *s, const char *op)
{
    if (!*s->scope)
        return graph_unique_name(s->graph, op);
    return graph_unique_name(s->graph, arena_printf(&s->scratch, "%s/%s", s->scope, op));
}

/* The node's inputs as seen from its context; *guarded: it needs the pivot as a control input, as
 * no input depends on whether the branch is taken or the loop goes on. */
static struct edge *route_inputs(lua_State *L, const struct new_node *what, const struct op *op,
                                 bool *guarded)
{
    struct script *s = script_of(L);
    struct edge *inputs = arena_array(&s->scratch, (size_t)what->n_inputs + 1, sizeof *inputs);
    bool free = true, writes = false;
    for (int i = 0; i < what->n_inputs; i++) {
        bool is_ref = what->is_read || (i < op->n_inputs && op->inputs[i].is_ref);
        inputs[i] = what->inputs[i];
        if (what->is_read)
            continue;
        if (is_ref && edge_exists(inputs[i]))
            writes |= context_route_ref(L, s->context, inputs[i]);
        else if (edge_exists(inputs[i]))
            inputs[i] = context_route(L, s->context, inputs[i]);
        /* A value that enters a loop from outside exists even when the loop is over. */
        const struct node *from =
            edge_exists(inputs[i]) ? graph_node(s->graph, inputs[i].node) : NULL;
        free =
            free && from && (is_ref || (node_is(from, "Enter") && node_bool(from, "is_constant")));
    }
    *guarded = free || writes;
    return inputs;
}

/* A context's own Enter waits outside of the loop. */
static void add_control(lua_State *L, const struct new_node *what, int *controls, int *n, int node)
{
    const struct script *s = script_of(L);
    int context = what->context < 0 ? s->context : what->context;
    if (what->context >= 0 && !strcmp(what->op, "Enter"))
        context = s->contexts.items[context].parent;
    if (context_route_control(L, context, node))
        controls[(*n)++] = node;
}

struct node *node_make(lua_State *L, const struct new_node *what)
{
    struct script *s = script_of(L);
    if ((int64_t)s->graph->nodes.n >= s->options.nodes)
        place_error(L, "the graph has more than %lld nodes: is this an endless loop?",
                    (long long)s->options.nodes);
    limits_check_memory(L);
    node_adopt(s);
    const struct op *op = registry_find(s->graph->registry, what->op);
    bool guarded = false;
    struct node_spec spec = {.op = what->op, .inputs = what->inputs, .n_inputs = what->n_inputs};
    if (op && what->context < 0 && s->contexts.n > 1)
        spec.inputs = route_inputs(L, what, op, &guarded);
    /* When a constant runs does not matter, and without controls it can be folded. */
    size_t n_in_force = strcmp(what->op, "Const") ? s->controls.n : 0;
    size_t limit = n_in_force + (size_t)what->n_controls + 1;
    int *controls = arena_array(&s->scratch, limit, sizeof *controls);
    spec.n_controls = 0;
    for (size_t i = 0; i < n_in_force; i++)
        add_control(L, what, controls, &spec.n_controls, s->controls.items[i]);
    for (int i = 0; i < what->n_controls; i++)
        add_control(L, what, controls, &spec.n_controls, what->controls[i].node);
    if (what->context < 0 && s->context && guarded)
        controls[spec.n_controls++] = s->contexts.items[s->context].pivot;
    spec.controls = controls;
    spec.name = what->name ? what->name : node_unique_name(s, what->op);
    spec.attrs = what->attrs;
    spec.n_attrs = what->n_attrs;
    spec.device = what->device ? what->device : s->device;
    place_find(L, &spec.file, &spec.line);
    struct error err = ERROR_INIT;
    struct node *node = graph_add(s->graph, &spec, &err);
    if (!node)
        place_error(L, "%s", err.text);
    node_adopt(s);
    struct note *note = node_note(s, node->id);
    note->context = what->context < 0 ? s->context : what->context;
    note->leader = s->leader;
    note->named = what->is_explicit ? NAMED_EXPLICIT : NAMED_GENERATED;
    note->seeded = what->seeded;
    return node;
}

static void rename_one(lua_State *L, struct node *node, const char *name)
{
    struct error err = ERROR_INIT;
    if (graph_rename(script_of(L)->graph, node, name, &err))
        place_error(L, "%s", err.text);
}

/* Renames a node whose name begins with the renamed node's, as "Div/y" with "Div". */
static void rename_follower(lua_State *L, int id, const char *old, const char *name)
{
    struct script *s = script_of(L);
    struct node *node = graph_node(s->graph, id);
    size_t n = strlen(old);
    if (strncmp(node->name, old, n) || node->name[n] != '/')
        return;
    const char *full = arena_printf(&s->scratch, "%s%s", name, node->name + n);
    rename_one(L, node, graph_unique_name(s->graph, full));
}

void node_rename(lua_State *L, struct node *node, const char *name)
{
    struct script *s = script_of(L);
    const char *old = arena_strdup(&s->scratch, node->name);
    rename_one(L, node, name);
    for (int i = 0; i < node->n_inputs; i++)
        if (edge_exists(node->inputs[i]) &&
            node_is(graph_node(s->graph, node->inputs[i].node), "Const"))
            rename_follower(L, node->inputs[i].node, old, name);
    const struct variable_note *variable = variable_of(s, node->id);
    for (int id = variable ? variable->first : 0; variable && id <= variable->last; id++)
        rename_follower(L, id, old, name);
}
