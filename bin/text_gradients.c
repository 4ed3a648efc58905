/* SPDX-License-Identifier: Apache-2.0
 *
 * A node's op has its gradient function make the gradient of such a node, in a graph of its own:
 * the ops that it makes with all that is known of the inputs, and with nothing. Nodes that it makes
 * in any case must be there, and none that it never makes. Passes leave out and replace nodes, so
 * of a graph that went through one it is enough that some of the ops are there.
 */
#include "bin/text_gradients.h"

#include <string.h>

#include "base/memory.h"
#include "pass/gradient/grad.h"

#define GRADIENTS "gradients/"

/* Names of ops, a few. */
typedef VEC(const char *) op_names;

static bool has(const op_names *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++)
        if (!strcmp(names->items[i], name))
            return true;
    return false;
}

static void add(op_names *names, const char *name)
{
    if (name && !has(names, name))
        vec_push(names, name);
}

/* ---- what an op's gradient function makes ---- */

/* A stand-in for an input, of which all or nothing but the type is known. */
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

/* The ops made for the gradient of output `only`, or of all for -1. False: nothing can be said. */
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
    done = done && !grad_finish(&g);
    for (size_t i = first; done && i < graph->nodes.n; i++)
        add(made, graph_node(graph, (int)i)->op->def->name);
    mem_free(edges);
    graph_free(graph);
    return done;
}

/* Finds the nodes that are made in some cases, and in all of them. */
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

/* ---- what there is ---- */

/* The forward node that "…gradients/NAME_grad/OP" names, or NULL. */
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

/* Returns whether nothing but what adds gradients has made the graph. */
static bool is_unchanged(const struct graph *graph)
{
    for (size_t i = 0; i < graph->made.n; i++)
        if (!str_starts(graph->made.items[i], "tf-graph ") &&
            !str_starts(graph->made.items[i], "tf-grad "))
            return false;
    return graph->made.n > 0;
}

/* Returns whether an op that the names do not show is there by another name, which a global may
 * give: it takes something of the gradient, or gives it something. `of`: whose gradient a node is.
 * */
static bool is_beside(const struct graph *graph, const int *of, int forward, const char *op)
{
    for (size_t i = 0; i < graph->nodes.n; i++) {
        const struct node *node = graph_node(graph, (int)i);
        for (int k = 0; k < node->n_inputs; k++) {
            const struct node *input = graph_node(graph, node->inputs[k].node);
            if ((of[i] == forward && node_is(input, op)) ||
                (of[input->id] == forward && node_is(node, op)))
                return true;
        }
    }
    return false;
}

/* Says what is wrong: an op of the gradient that is not its op's ("has X"), or one that is lacking.
 * Passes may make of a node what has no gradient. */
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
    int *of;         /* by node: whose gradient it is, -1 */
    struct map right;
    struct arena keys; /* of `right` */
    struct str key, what;
};

/* `near`: whose gradient is next to that of the node. */
static void check_node(struct check *c, const struct node *node, int near)
{
    const op_names *found = &c->found[node->id];
    /* Returns whether a node of this op with such a gradient was met, and right: most are alike. */
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

/* A gradient may be another's as it is, and so has no node; but what an op always makes is there
 * if a gradient came through the node: the only one between two that have a gradient. */
static void check_passed(struct check *c)
{
    const struct graph *graph = c->graph;
    /* By node, the one node before gradients that takes what it makes; -1 if there is none or
     * several. */
    int *taker = mem_array(graph->nodes.n + 1, sizeof *taker); /* 0: none yet; else id + 1 */
    for (size_t i = 0; i < graph->nodes.n; i++) {
        const struct node *node = graph_node(graph, (int)i);
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
    for (size_t i = 0; i < n; i++) {
        const struct node *node = graph_node(graph, (int)i);
        const struct node *forward = forward_of(graph, node->name);
        c.of[i] = forward ? forward->id : -1;
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
