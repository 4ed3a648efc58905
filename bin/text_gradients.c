/* SPDX-License-Identifier: Apache-2.0
 *
 * The gradient function of a node's op is run on a copy of the node, in a scratch graph, once with
 * all that is known of the inputs and once with only their types. Ops that it always makes must be
 * in the graph, and ops that it never makes must not. Passes remove and replace nodes, so a graph
 * that went through a pass needs only some of the ops.
 */
#include "bin/text_gradients.h"

#include <string.h>

#include "base/memory.h"
#include "pass/gradient/grad.h"

#define GRADIENTS "gradients/"

/* A short list of names of ops. */
typedef VEC(const char *) op_names;

static bool has(const op_names *names, const char *name)
{
    return vec_find(names, name) < names->n;
}

static void add(op_names *names, const char *name)
{
    if (name && !has(names, name))
        vec_push(names, name);
}

/* ---- what an op's gradient function makes ---- */

/* Makes a stand-in for an input; unless `known`, only its type is known. */
static struct edge stand_in(struct graph *graph, const struct graph *from, struct edge input,
                            bool known, struct error *err)
{
    const struct node *node = graph_node(from, input.node);
    const struct node_output *output = &node->outputs[input.slot];
    struct attr attrs[] = {{"dtype", attr_type(output->type)},
                           {"shape", attr_shape(known ? &output->shape : &SHAPE_ANY)}};
    struct node_spec spec = {
        .op = output->is_ref ? "Variable" : "Placeholder", .attrs = attrs, .n_attrs = 2};
    if (known && node_is(node, "Const"))
        spec = (struct node_spec){.op = "Const", .attrs = node->attrs, .n_attrs = node->n_attrs};
    struct node *made = graph_add(graph, &spec, err);
    return made ? (struct edge){made->id, 0} : EDGE_NONE;
}

static const struct node *copy_alone(struct graph *graph, const struct graph *from,
                                     const struct node *node, bool known, struct error *err)
{
    struct edge *inputs = mem_array((size_t)node->n_inputs + 1, sizeof *inputs);
    for (int i = 0; i < node->n_inputs && !err->code; i++)
        inputs[i] = stand_in(graph, from, node->inputs[i], known, err);
    struct node_spec spec = {.op = node->op->def->name,
                             .inputs = inputs,
                             .n_inputs = node->n_inputs,
                             .attrs = node->attrs,
                             .n_attrs = node->n_attrs};
    const struct node *copy = err->code ? NULL : graph_add(graph, &spec, err);
    mem_free(inputs);
    return copy;
}

/* Finds the ops made for the gradient of output `only`, -1: of all. Returns false if unknown. */
static bool ops_of_gradient(const struct graph *from, const struct node *node, bool known, int only,
                            op_names *made)
{
    struct graph *graph = graph_new(from->registry);
    struct error err = ERROR_INIT;
    const struct node *copy = copy_alone(graph, from, node, known, &err);
    size_t n_out = (size_t)node->n_outputs, n_in = (size_t)node->n_inputs;
    struct edge *edges = mem_array(n_out + 2 * n_in + 1, sizeof *edges);
    for (size_t i = 0; i < n_out + 2 * n_in; i++)
        edges[i] = EDGE_NONE;
    for (int k = 0; copy && k < copy->n_outputs && !err.code; k++)
        if ((only < 0 || k == only) && dtype_is_floating(copy->outputs[k].type))
            edges[k] = stand_in(graph, graph, (struct edge){copy->id, k}, known, &err);
    size_t first = graph->nodes.n;
    struct grad g = {.b = {.graph = graph, .scope = "g", .err = &err},
                     .node = copy,
                     .out = edges,
                     .in = edges + n_out,
                     .in_indices = edges + n_out + n_in};
    bool done = copy && !err.code;
    if (done)
        node->op->def->gradient(&g);
    done = done && !err.code;
    for (size_t i = first; done && i < graph->nodes.n; i++)
        add(made, graph_node(graph, (int)i)->op->def->name);
    mem_free(edges);
    graph_free(graph);
    return done;
}

/* Finds the ops that are made in some cases, and those that are made in all. */
static bool expect(const struct graph *graph, const struct node *node, op_names *ever,
                   op_names *always)
{
    int n = 0;
    for (int only = -1; only < node->n_outputs && node->op->def->gradient; only++) {
        for (int known = 0; known < 2; known++) {
            op_names made = VEC_INIT;
            if (ops_of_gradient(graph, node, known, only, &made)) {
                for (size_t i = 0; i < made.n; i++)
                    add(ever, made.items[i]);
                for (size_t i = 0; n == 0 && i < made.n; i++)
                    add(always, made.items[i]);
                for (size_t i = always->n; i-- > 0;)
                    if (!has(&made, always->items[i]))
                        always->items[i] = always->items[--always->n];
                n++;
            }
            vec_release(&made);
        }
    }
    return n || !node->op->def->gradient;
}

/* ---- what the graph has ---- */

/* Returns the forward node that "…gradients/NAME_grad/OP" names, or NULL. */
static const struct node *forward_of(const struct graph *graph, const char *name)
{
    const char *slash = strrchr(name, '/');
    for (const char *at = strstr(name, GRADIENTS); at && at < slash; at = strstr(at, GRADIENTS)) {
        bool begins = at == name || at[-1] == '/';
        at += strlen(GRADIENTS);
        size_t n = slash > at ? (size_t)(slash - at) : 0, n_end = strlen("_grad");
        if (!begins || n <= n_end || memcmp(slash - n_end, "_grad", n_end) != 0)
            continue;
        char *text = mem_strndup(at, n - n_end);
        const struct node *node = graph_find(graph, text);
        mem_free(text);
        if (node)
            return node;
    }
    return NULL;
}

/* Returns whether only tf-graph and tf-grad have made the graph. */
static bool is_unchanged(const struct graph *graph)
{
    for (size_t i = 0; i < graph->made.n; i++)
        if (!str_starts(graph->made.items[i], "tf-graph ") &&
            !str_starts(graph->made.items[i], "tf-grad "))
            return false;
    return graph->made.n > 0;
}

/* Returns whether an op that is missing by name is there under another name, which a global may
 * give: as an input of the gradient's nodes, or as a taker of their outputs. `of`: as in check.
 * */
static bool is_beside(const struct graph *graph, const int *of, int forward, const char *op)
{
    graph_each(node, graph) {
        for (int k = 0; k < node->n_inputs; k++) {
            const struct node *input = graph_node(graph, node->inputs[k].node);
            if ((of[node->id] == forward && node_is(input, op)) ||
                (of[input->id] == forward && node_is(node, op)))
                return true;
        }
    }
    return false;
}

/* Finds what is wrong: an op in the gradient that the node's op does not make ("has X"), or one
 * that is missing. Passes may replace a node by one whose op has no gradient. */
static bool is_wrong(const struct graph *graph, const struct node *node, const op_names *found,
                     const int *of, int near, struct str *what)
{
    op_names ever = VEC_INIT, always = VEC_INIT;
    bool exact = is_unchanged(graph), any = false;
    bool is_known = expect(graph, node, &ever, &always) && (exact || node->op->def->gradient);
    const char *more = NULL, *lacking = NULL;
    for (size_t i = 0; i < found->n; i++) {
        bool made = has(&ever, found->items[i]);
        any = any || made || !strcmp(found->items[i], "Const");
        if (!made && (!more || !strcmp(more, "Const")))
            more = found->items[i];
    }
    for (size_t i = 0; i < always.n; i++)
        if (!has(found, always.items[i]) && !is_beside(graph, of, near, always.items[i]))
            lacking = always.items[i];
    bool wrong = is_known && (exact ? more || lacking : !any);
    str_clear(what);
    str_printf(what, more ? "has %s" : "has no %s", more ? more : lacking ? lacking : "");
    vec_release(&ever);
    vec_release(&always);
    return wrong;
}

struct check {
    const struct tool *tool;
    const struct graph *graph;
    const char *path;
    op_names *found; /* by forward node: the ops of its gradient */
    int *of;         /* by node: the forward node whose gradient it is part of; -1 */
    struct map right;
    struct arena keys; /* of `right`, op and gradient that were found right */
    struct str key, what;
};

/* Checks a node; `near`: the node whose gradient is next to this one's. */
static void check_node(struct check *c, const struct node *node, int near)
{
    const op_names *found = &c->found[node->id];
    /* Return at once if a node of this op with such a gradient was right before: most are alike. */
    str_clear(&c->key);
    str_append(&c->key, node->op->def->name);
    for (size_t i = 0; i < found->n; i++)
        str_printf(&c->key, " %s", found->items[i]);
    if (map_get(&c->right, str_text(&c->key), NULL))
        return;
    if (!is_wrong(c->graph, node, found, c->of, near, &c->what))
        map_put(&c->right, arena_strdup(&c->keys, str_text(&c->key)), 1);
    else
        tool_say(c->tool,
                 "%s: '%s' is %s, but its gradient %s: it was made for another op; change ops "
                 "before gradients are added (tf-grad)",
                 c->path, node->name, node->op->def->name, str_text(&c->what));
}

/* Checks nodes without nodes of a gradient. A gradient may be passed on unchanged, but what an op
 * always makes must be there if a gradient came through: the only way between two that have one. */
static void check_passed(struct check *c)
{
    const struct graph *graph = c->graph;
    /* By node, the one forward node that takes its outputs; -1 if there is none or several.
     */
    int *taker = mem_array(graph->nodes.n + 1, sizeof *taker); /* 0: none yet; else id + 1 */
    graph_each(node, graph) {
        for (int k = 0; k < node->n_inputs && !strstr(node->name, GRADIENTS); k++) {
            int *known = &taker[node->inputs[k].node];
            *known = *known && *known != node->id + 1 ? -1 : node->id + 1;
        }
    }
    for (size_t i = 0; i < graph->nodes.n; i++)
        taker[i] = taker[i] > 0 ? taker[i] - 1 : -1;
    for (size_t i = 0; i < graph->nodes.n && is_unchanged(graph); i++) {
        int next = taker[i], last = next >= 0 ? taker[next] : -1;
        if (last >= 0 && c->found[i].n && !c->found[next].n && c->found[last].n &&
            graph_node(graph, next)->op->def->gradient)
            check_node(c, graph_node(graph, next), (int)i);
    }
    mem_free(taker);
}

void text_gradients_check(const struct tool *tool, const struct graph *graph, const char *path)
{
    size_t n = graph->nodes.n;
    struct check c = {.tool = tool, .graph = graph, .path = path};
    c.found = mem_array(n + 1, sizeof *c.found);
    c.of = mem_array(n + 1, sizeof *c.of);
    graph_each(node, graph) {
        const struct node *forward = forward_of(graph, node->name);
        c.of[node->id] = forward ? forward->id : -1;
        if (forward && !node_has(forward, OP_CONTROL_FLOW))
            add(&c.found[forward->id], node->op->def->name);
    }
    for (size_t i = 0; i < n; i++)
        if (c.found[i].n)
            check_node(&c, graph_node(graph, (int)i), (int)i);
    check_passed(&c);
    for (size_t i = 0; i < n; i++)
        vec_release(&c.found[i]);
    mem_free(c.found);
    mem_free(c.of);
    map_release(&c.right);
    arena_release(&c.keys);
    str_release(&c.key);
    str_release(&c.what);
}
